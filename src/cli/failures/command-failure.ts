export interface FailureDetails {
  readonly code: string;
  readonly remedy: string;
  readonly exitCode?: number;
  readonly cause?: unknown;
}

/** Failure on this side of the API, with its remedy. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly code: string;
  readonly remedy: string;
  readonly exitCode: number;

  constructor(message: string, details: FailureDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.remedy = details.remedy;
    this.exitCode = details.exitCode ?? 1;
  }
}
