/** Error in the command line: exit code 2 (125 where the exit code is the program's). */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}
