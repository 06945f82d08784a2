import { describe, expect, test } from 'vitest';
import type { JournalEntry } from './journal.ts';
import { parseJournal } from './journal.ts';
import { endedBadly, judged, toRepeat, troublesOf, verdictOf } from './judge.ts';

const well = { code: 0, signal: null, seconds: 1 };
const badly = { code: 1, signal: null, seconds: 1 };
const meant: JournalEntry = { kind: 'meant', files: ['a.test.ts', 'b.test.ts'] };
const passed = (file: string): JournalEntry => ({ kind: 'ended', file, failures: [], seconds: 1 });
const broken = { test: 'adds', message: 'expected 2 to be 3' };
const failed = (file: string): JournalEntry => ({ ...passed(file), failures: [broken] }) as JournalEntry;
const filesOf = (journal: JournalEntry[], ended = badly) =>
  troublesOf(journal, ended).map(({ file }) => file);

describe('the troubles of a run', () => {
  test('a run without a failed file has no troubles', () => {
    expect(troublesOf([meant, passed('a.test.ts'), passed('b.test.ts')], well)).toEqual([]);
  });

  test('a file that failed, with the test and what it said', () => {
    expect(troublesOf([meant, passed('a.test.ts'), failed('b.test.ts')], badly)).toEqual([
      { file: 'b.test.ts', failures: [broken] },
    ]);
  });

  test('a run that was stopped: the files that had no result by then', () => {
    const stopped = { ...well, code: null, signal: 'SIGTERM', stoppedAfterMs: 1_200_000 } as const;
    expect(troublesOf([meant, passed('a.test.ts')], stopped)).toEqual([
      {
        file: 'b.test.ts',
        failures: [{ test: null, message: 'no result: stopped after 20 min' }],
      },
    ]);
  });

  test('a file without a result is trouble also where vitest says that all is well', () => {
    expect(filesOf([meant, passed('a.test.ts')], well)).toEqual(['b.test.ts']);
  });

  test('an error outside of any test belongs to its file, whose tests passed', () => {
    const stray: JournalEntry = { kind: 'stray', file: 'a.test.ts', message: 'late' };
    expect(filesOf([meant, passed('a.test.ts'), passed('b.test.ts'), stray])).toEqual(['a.test.ts']);
  });

  test('an error without a file belongs to the file whose worker died', () => {
    const stray: JournalEntry = { kind: 'stray', file: null, message: 'worker exited' };
    expect(troublesOf([meant, passed('a.test.ts'), stray], badly)).toEqual([
      { file: 'b.test.ts', failures: [{ test: null, message: 'no result: exit 1: worker exited' }] },
    ]);
  });

  test('a failure that no file accounts for belongs to the level', () => {
    const all = [meant, passed('a.test.ts'), passed('b.test.ts')];
    expect(filesOf(all)).toEqual([null]);
    expect(filesOf([...all, { kind: 'stray', file: null, message: 'late' }])).toEqual([null]);
  });

  test('a run of no file shows nothing, however it ended', () => {
    expect(filesOf([], well)).toEqual([null]);
    expect(filesOf([{ kind: 'meant', files: [] }], well)).toEqual([null]);
  });
});

describe('the second look', () => {
  const first = [{ file: 'b.test.ts', failures: [broken] }];

  test('the second run covers the files in trouble, or all files where one trouble is the level’s', () => {
    expect(toRepeat(first)).toEqual(['b.test.ts']);
    expect(toRepeat([...first, { file: null, failures: [broken] }])).toEqual([null]);
  });

  test('the second run turns a failed file into a pass, and keeps its first message', () => {
    const all = judged(first, new Map([['b.test.ts', []]]));
    expect(all).toEqual([{ file: 'b.test.ts', failures: [broken], again: undefined }]);
    expect(verdictOf(all)).toBe('passed');
  });

  test('a second run of the whole level decides for each of its files', () => {
    expect(verdictOf(judged(first, new Map([[null, []]])))).toBe('passed');
    expect(verdictOf(judged(first, new Map([[null, first]])))).toBe('failed');
  });

  test('the second run confirms a failure, with its second message', () => {
    const other = { test: 'adds', message: 'expected 2 to be 4' };
    const all = judged(first, new Map([['b.test.ts', [{ file: 'b.test.ts', failures: [other] }]]]));
    expect(all[0]?.again).toEqual([other]);
    expect(verdictOf(all)).toBe('failed');
  });

  test('a second run that did not take place leaves the file failed', () => {
    expect(verdictOf(judged(first, new Map()))).toBe('failed');
    const two = [...first, { file: 'c.test.ts', failures: [broken] }];
    expect(verdictOf(judged(two, new Map([['b.test.ts', []]])))).toBe('failed');
  });
});

test('the end of a command is described in words', () => {
  expect(endedBadly(well)).toBeUndefined();
  expect(endedBadly(badly)).toBe('exit 1');
  expect(endedBadly({ ...well, code: null, signal: 'SIGKILL' })).toBe('killed by SIGKILL');
  expect(endedBadly({ ...well, code: null, problem: 'spawn tsc ENOENT' })).toBe('spawn tsc ENOENT');
});

test('a journal that was cut off holds the lines before', () => {
  expect(parseJournal(`${JSON.stringify(meant)}\n{"kind":"end`)).toEqual([meant]);
  expect(parseJournal('')).toEqual([]);
});
