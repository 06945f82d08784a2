/** Changes bytes, in the same way for the same seed. */
export type Random = () => number;

/** Numbers below 1, the same sequence for each seed. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const below = (random: Random, end: number) => Math.floor(random() * end);

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[below(random, list.length)] as T;
}

/** One to eight changes: bits, bytes, runs that are doubled, dropped or taken from another seed, words of the format. */
export function mutate(
  random: Random,
  seeds: readonly Buffer[],
  words: readonly string[],
  most: number,
): Buffer {
  let bytes = Buffer.from(pick(random, seeds));
  for (let count = 1 + below(random, 8); count > 0; count--) {
    const at = below(random, bytes.length + 1);
    const length = below(random, pick(random, [4, 64, 1024]));
    const kind = below(random, 6);
    if (kind === 0 && at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << below(random, 8));
    else if (kind === 1 && at < bytes.length) bytes[at] = pick(random, [0, 1, 0x7f, 0x80, 0xff, 0x2f, 0x2e]);
    else if (kind === 2)
      bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at)]);
    else if (kind === 3) bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    else if (kind === 4) {
      const other = pick(random, seeds);
      const from = below(random, other.length);
      bytes = Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + length), bytes.subarray(at)]);
    } else {
      const word = Buffer.from(pick(random, words), 'latin1');
      bytes = Buffer.concat([bytes.subarray(0, at), word, bytes.subarray(at + word.length)]);
    }
  }
  return bytes.subarray(0, most);
}
