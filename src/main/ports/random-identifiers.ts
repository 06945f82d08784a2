import { randomBytes } from 'node:crypto';
import type { Identifiers } from '../../core/ports/identifiers.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const TIME_CHARACTERS = 8;
const RANDOM_CHARACTERS = 12;
const POOL = RANDOM_CHARACTERS * 256;
/** Year 2025. Forty bits of milliseconds last for 34 years; afterwards the order begins anew, and nothing depends on it. */
const EPOCH_MS = 1_735_689_600_000;

/**
 * Makes ids of the time, then 60 random bits. Objects made at about the same time lie side by side in every index: a commit then
 * changes few pages, whatever the size. Random bytes are fetched in bulk: one system call serves hundreds of ids.
 */
export function randomIdentifiers(now: () => number): Identifiers {
  let pool = randomBytes(POOL);
  let at = 0;
  let timeAt = -1;
  let time = '';
  const take = (count: number) => {
    if (at + count > POOL) {
      pool = randomBytes(POOL);
      at = 0;
    }
    at += count;
    return pool.subarray(at - count, at);
  };
  const timePart = () => {
    const since = Math.max(0, Math.floor(now()) - EPOCH_MS);
    if (since === timeAt) return time;
    timeAt = since;
    time = '';
    for (let left = since, n = 0; n < TIME_CHARACTERS; n++, left = Math.floor(left / 32))
      time = (ALPHABET[left % 32] as string) + time;
    return time;
  };
  return {
    next(prefix) {
      let id = `${prefix}_${timePart()}`;
      for (const byte of take(RANDOM_CHARACTERS)) id += ALPHABET[byte & 31];
      return id;
    },
    random: () => take(4).readUInt32LE(0) / 2 ** 32,
  };
}
