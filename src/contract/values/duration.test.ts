import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DurationSeconds, formatDuration, parseDuration } from './duration.ts';

describe('durations', () => {
  it.each([
    ['30s', 30],
    ['15m', 900],
    ['4h', 14_400],
    ['1h30m', 5_400],
    ['1h 30m', 5_400],
    ['2d', 172_800],
    ['1w', 604_800],
  ])('%s is %i seconds', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
    expect(DurationSeconds.parse(text)).toBe(seconds);
  });

  it.each(['', '4', 'h', '-1h', '1.5h', '1 hour', '0s', '99999999w', '1h;', '١h'])(
    '%j is refused',
    (text) => {
      expect(parseDuration(text)).toBeNull();
      expect(DurationSeconds.safeParse(text).success).toBe(false);
    },
  );

  it('formatDuration writes text that parses to the same number', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300_000_000 }),
        (seconds) => parseDuration(formatDuration(seconds)) === seconds,
      ),
    );
  });

  it('formatDuration refuses numbers that are not whole and positive', () => {
    for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      expect(DurationSeconds.safeParse(value).success).toBe(false);
  });
});
