import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import type { Outcome } from './summary.ts';
import { summaryOf } from './summary.ts';

const level = (name: string, parts: Partial<Outcome> = {}): Outcome => ({
  name,
  verdict: 'passed',
  seconds: 2,
  note: '',
  troubles: [],
  files: [],
  ...parts,
});
const said = (message: string) => [{ test: 'adds', message }];
const linesOf = (outcomes: Outcome[]) => stripVTControlCharacters(summaryOf(outcomes)).split('\n');

test('the last lines are the table and the count', () => {
  const outcomes = [level('unit'), level('lint', { verdict: 'failed', note: 'exit 1' })];
  const skipped = level('bench', { verdict: 'skipped', note: 'no benchmarks yet' });
  expect(linesOf([...outcomes, skipped]).slice(-5)).toEqual([
    'unit   passed      2.0 s',
    'lint   failed      2.0 s  exit 1',
    'bench  skipped            no benchmarks yet',
    '',
    '1 passed, 1 failed, 1 skipped',
  ]);
});

test('a file that passed only alone is named, with its first message', () => {
  const file = 'tests/a.test.ts';
  const troubles = [{ file, failures: said('too slow\nat line 3'), again: undefined }];
  expect(linesOf([level('e2e', { troubles })]).slice(0, 4)).toEqual([
    'unsteady: failed once, passed alone',
    '  e2e  tests/a.test.ts > adds',
    '      too slow',
    '      at line 3',
  ]);
});

test('a failed file is named, with its last message', () => {
  const troubles = [{ file: 'tests/a.test.ts', failures: said('first'), again: said('second') }];
  expect(linesOf([level('e2e', { verdict: 'failed', troubles })]).slice(0, 3)).toEqual([
    'failed',
    '  e2e  tests/a.test.ts > adds',
    '      second',
  ]);
});

test('the slowest ten files, over all levels', () => {
  const files = Array.from({ length: 12 }, (_, n) => ({ file: `${n}.test.ts`, failures: [], seconds: n }));
  const lines = linesOf([
    level('unit', { files: files.slice(0, 6) }),
    level('e2e', { files: files.slice(6) }),
  ]);
  expect(lines.slice(0, 3)).toEqual([
    'the slowest 10 files',
    '   11.0 s  e2e  11.test.ts',
    '   10.0 s  e2e  10.test.ts',
  ]);
  expect(lines.indexOf('')).toBe(11);
});
