/** Ids and randomness come in through here, so that a simulation can own them. */
export interface Identifiers {
  /** `sbx_…`, `snap_…`: a prefix, an underscore, 20 or more characters of [a-z0-9] that cannot be guessed. */
  next(prefix: string): string;
  /** A uniformly distributed number in [0, 1). */
  random(): number;
}
