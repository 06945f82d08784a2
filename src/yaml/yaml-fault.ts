/** The reason why a text is refused, as data: every room words its own errors. */
export interface YamlFault {
  /** A clause without a full stop. */
  readonly message: string;
  readonly remedy: string;
  readonly code: string;
  readonly line: number | null;
  readonly column: number | null;
}

/** Thrown inside this room alone; `readYaml` returns it as a `YamlFault`. */
export class Refusal extends Error {
  readonly code: string;
  readonly remedy: string;
  readonly offset: number | undefined;

  constructor(code: string, message: string, remedy: string, offset?: number) {
    super(message);
    this.code = code;
    this.remedy = remedy;
    this.offset = offset;
  }
}
