import { describe, expect, it } from 'vitest';
import { RANGE_SIZE, STORAGE_RANGE, UidRanges } from './uid-ranges.ts';

describe('UidRanges', () => {
  it('gives each range to one at a time, never that of files at rest, and the last freed first', () => {
    const ranges = new UidRanges([STORAGE_RANGE + RANGE_SIZE]);
    const first = ranges.take();
    const second = ranges.take();
    expect([first, second]).toEqual([STORAGE_RANGE + 2 * RANGE_SIZE, STORAGE_RANGE + 3 * RANGE_SIZE]);
    ranges.give(first ?? 0);
    ranges.give(first ?? 0);
    expect(ranges.take()).toBe(first);
    expect(ranges.take()).toBe(STORAGE_RANGE + 4 * RANGE_SIZE);
  });

  it('stays within what nobody else uses, and says when it is at its end', () => {
    const ranges = new UidRanges([]);
    const taken = new Set<number>();
    for (let first = ranges.take(); first !== null; first = ranges.take()) taken.add(first);
    expect(taken.size).toBe(4093);
    expect(Math.max(...taken) + RANGE_SIZE).toBeLessThanOrEqual(2_147_352_576);
    ranges.give(STORAGE_RANGE + RANGE_SIZE);
    expect(ranges.take()).toBe(STORAGE_RANGE + RANGE_SIZE);
  });
});
