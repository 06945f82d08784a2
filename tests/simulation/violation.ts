/** A broken promise: which, and how it showed. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly invariant: string;

  constructor(invariant: string, detail: string) {
    super(detail);
    this.invariant = invariant;
  }
}

/** Where everybody who finds a broken promise reports it. The first one counts. */
export class Verdict {
  violation: Violation | null = null;

  fail(invariant: string, detail: string): void {
    this.violation ??= new Violation(invariant, detail);
  }
}
