import { randomBytes } from 'node:crypto';
import type { Identifiers } from '../core/identifiers.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const BYTES_EACH = 20;
const POOL = BYTES_EACH * 256;

/** 100 random bits in 20 characters. Random bytes are fetched in bulk: one system call serves hundreds of ids. */
export function randomIdentifiers(): Identifiers {
  let pool = randomBytes(POOL);
  let at = 0;
  const take = (count: number) => {
    if (at + count > POOL) {
      pool = randomBytes(POOL);
      at = 0;
    }
    at += count;
    return pool.subarray(at - count, at);
  };
  return {
    next(prefix) {
      let id = `${prefix}_`;
      for (const byte of take(BYTES_EACH)) id += ALPHABET[byte & 31];
      return id;
    },
    random: () => take(4).readUInt32LE(0) / 2 ** 32,
  };
}
