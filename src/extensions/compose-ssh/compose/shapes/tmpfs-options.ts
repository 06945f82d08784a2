/** Options of a tmpfs: each word is read, and written anew. Other words of the kernel are refused. */
import { posix } from 'node:path';
import { textOf } from '../yaml/scalars.ts';
import type { Reading } from './reading.ts';
import type { Shape } from './shape.ts';
import { insidePath } from './words.ts';

const FLAGS = new Set(['ro', 'rw', 'exec', 'noexec', 'nosuid', 'nodev', 'noatime', 'relatime', 'nodiratime']);
const VALUES: Readonly<Record<string, RegExp>> = {
  size: /^(?:\d{1,16}[kmgKMG]?|\d{1,2}%|100%)$/,
  mode: /^[0-7]{1,4}$/,
  uid: /^\d{1,10}$/,
  gid: /^\d{1,10}$/,
  nr_inodes: /^\d{1,12}[kmgKMG]?$/,
};
const UNDERSTOOD = [...Object.keys(VALUES), ...FLAGS].join(', ');

/** Returns the first word that is not understood, or `null`. */
function oddWord(words: readonly string[]): string | null {
  const known = (word: string) => {
    const [key = '', value, ...rest] = word.split('=');
    if (value === undefined) return FLAGS.has(key);
    return rest.length === 0 && Object.hasOwn(VALUES, key) && VALUES[key]?.test(value);
  };
  return words.find((word) => !known(word)) ?? null;
}

/** Reads `size=64m,mode=1777`, as `-o` of mount takes it; other words are a finding of the given kind. */
export function readTmpfsOptions(
  given: string,
  at: Reading,
  kind: 'boundary' | 'invalid',
): string | undefined {
  const words = given.split(',').filter((word) => word !== '');
  const odd = oddWord(words);
  if (odd === null) return words.join(',');
  const detail = `${JSON.stringify(odd.slice(0, 80))} is no option of a tmpfs that is understood.`;
  return at[kind](detail, `Use only ${UNDERSTOOD}.`);
}

/** Shape of an item of `tmpfs:` of a service: `/run`, or with options `/run:size=64m`. */
export const tmpfsMount: Shape<string> = {
  read(value, at) {
    const given = textOf(value) ?? '';
    const colon = given.indexOf(':');
    const path = insidePath(colon === -1 ? given : given.slice(0, colon));
    if (path === null)
      return at.invalid(`${JSON.stringify(given)} is not an absolute path.`, 'Write "/path:size=64m".');
    const options = colon === -1 ? '' : readTmpfsOptions(given.slice(colon + 1), at, 'invalid');
    if (options === undefined) return undefined;
    return `${posix.normalize(path)}${options === '' ? '' : `:${options}`}`;
  },
  examples: ['/run', '/tmp:size=64m,mode=1777,noexec'],
};
