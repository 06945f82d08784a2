export interface Page<T> {
  readonly items: readonly T[];
  /** Pass it back to go on; `null` at the end. */
  readonly nextCursor: string | null;
}
