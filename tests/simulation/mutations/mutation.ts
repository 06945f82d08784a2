/** A mistake, as a patch to the source, and the promises that it breaks. */
export interface Mutation {
  readonly name: string;
  readonly what: string;
  readonly patches: readonly Patch[];
  /** One of these must be found broken. */
  readonly breaks: readonly string[];
}

export interface Patch {
  /** Relative to the repository. */
  readonly file: string;
  /** Found exactly once, or the mutation is out of date. */
  readonly search: string;
  readonly replace: string;
}
