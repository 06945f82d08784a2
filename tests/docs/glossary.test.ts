/** `docs/glossary.md`: each word once, with a file that knows it. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './run-document.ts';

interface Entry {
  readonly word: string;
  readonly meaning: string;
  readonly file: string;
}

const page = readFileSync(path.join(ROOT, 'docs/glossary.md'), 'utf8');
const entries: Entry[] = [...page.matchAll(/^\| ([a-z][a-z ]+) \| (.+) \| `([^`]+)` \|$/gm)].map(
  ([, word = '', meaning = '', file = '']) => ({ word, meaning, file }),
);

/** The words of a text, those inside names included: `providerKeys` has `provider` and `keys`. */
function wordsOf(text: string): string[] {
  return text
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/);
}

/** Whether the path or the text says the word, in any form of it. */
function isKnown({ word, file }: Entry): boolean {
  const full = path.join(ROOT, file);
  const inside = statSync(full).isDirectory() ? globSync('**/*.{ts,c,h}', { cwd: full }) : null;
  const texts = inside?.map((name) => readFileSync(path.join(full, name), 'utf8')) ?? [
    readFileSync(full, 'utf8'),
  ];
  const known = new Set(wordsOf([file, ...texts].join(' ')));
  return word.split(' ').every((part) => [...known].some((other) => other.startsWith(part)));
}

/** Words that a reader of the code meets in every room. */
const EXPECTED =
  `sandbox profile recipe extension backend host attempt handle hold meter lease lane step settle edit claim hedge probe
  teardown asset scope fingerprint plan quote funding breaker canary outbox sink spawner launcher zygote agent channel
  session door relay`.split(/\s+/);

describe('the glossary', () => {
  it('glossary: has every word that the code uses everywhere', () => {
    const words = entries.map(({ word }) => word);
    expect(EXPECTED.filter((word) => !words.includes(word))).toEqual([]);
  });

  it('glossary: reads every row of its tables', () => {
    const rows = page.split('\n').filter((line) => /^\| (?!word )/.test(line));
    expect(entries).toHaveLength(rows.length);
  });

  it('glossary: a word stands there once', () => {
    const words = entries.map(({ word }) => word);
    expect(words.filter((word, at) => words.indexOf(word) !== at)).toEqual([]);
  });

  it('glossary: every file exists', () => {
    expect(entries.filter(({ file }) => !existsSync(path.join(ROOT, file)))).toEqual([]);
  });

  it('glossary: every word is found in the file that defines it', () => {
    expect(entries.filter((entry) => !isKnown(entry))).toEqual([]);
  });

  it('glossary: a word that its file does not know is found', () => {
    expect(isKnown({ word: 'flibbertigibbet', meaning: '', file: 'src/core/lifecycle/sandbox.ts' })).toBe(
      false,
    );
  });
});
