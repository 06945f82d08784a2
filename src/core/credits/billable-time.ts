/**
 * Measures time for bills: from one look at the wall clock on, only time that really passed. A clock that is set right or wrong
 * meanwhile, or a machine that sleeps, adds nothing to a bill. Milliseconds since 1970.
 */
export function billableTime(wall: () => number, monotonic: () => number): () => number {
  const anchor = wall() - monotonic();
  return () => Math.floor(anchor + monotonic());
}
