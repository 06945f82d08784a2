import { describe, expect, it } from 'vitest';
import { RANGE_SIZE, STORAGE_RANGE, UidRanges } from './uid-ranges.ts';

const rangesFrom = (first: number, count: number) =>
  Array.from({ length: count }, (_, at) => first + at * RANGE_SIZE);

describe('UidRanges', () => {
  it('UidRanges gives each range to one holder at a time, and the last freed first', () => {
    const [begin = 0] = [new UidRanges([]).take() ?? 0];
    const ranges = new UidRanges([begin]);
    const first = ranges.take();
    const second = ranges.take();
    expect([begin, first, second]).toEqual(rangesFrom(begin, 3));
    ranges.give(first ?? 0);
    ranges.give(first ?? 0);
    expect(ranges.take()).toBe(first);
    expect(ranges.take()).toBe(begin + 3 * RANGE_SIZE);
  });

  it('UidRanges avoids ids in use, never gives that of files at rest, and fails when none is left', () => {
    const ranges = new UidRanges([], 'some directory');
    const taken = new Set<number>();
    for (let first = ranges.take(); first !== null; first = ranges.take()) taken.add(first);
    expect(taken.size).toBe(4093);
    expect(Math.min(...taken)).toBe(STORAGE_RANGE + RANGE_SIZE);
    expect(Math.max(...taken) + RANGE_SIZE).toBeLessThanOrEqual(2_147_352_576);
    ranges.give(STORAGE_RANGE + RANGE_SIZE);
    expect(ranges.take()).toBe(STORAGE_RANGE + RANGE_SIZE);
  });

  it('UidRanges starts at another range for another server', () => {
    expect(new UidRanges([], '/a').take()).not.toBe(new UidRanges([], '/b').take());
  });
});
