import { describe, expect, it } from 'vitest';
import { byteText, moneyText } from './amounts.ts';
import { ageOf, relativeTime, shortDuration, waitText } from './relative-time.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');

describe('shortDuration', () => {
  it.each([
    [0, '0s'],
    [0.4, '0s'],
    [59, '59s'],
    [60, '1m'],
    [90, '1m30s'],
    [3600, '1h'],
    [3661, '1h1m'],
    [3605, '1h'],
    [86_400, '1d'],
    [100_000, '1d3h'],
    [-5, '0s'],
  ])('%d seconds are %s', (seconds, text) => {
    expect(shortDuration(seconds)).toBe(text);
  });
});

describe('relativeTime', () => {
  it('relativeTime covers past and future', () => {
    expect(relativeTime('2026-01-01T11:57:00Z', NOW)).toBe('3m ago');
    expect(relativeTime('2026-01-01T14:00:00Z', NOW)).toBe('in 2h');
    expect(relativeTime('2026-01-01T12:00:00.200Z', NOW)).toBe('now');
    expect(relativeTime(null, NOW)).toBe('-');
    expect(ageOf('2026-01-01T11:59:15Z', NOW)).toBe('45s');
  });
});

describe('amounts', () => {
  it.each([
    [0, '$0.00'],
    [1_500_000, '$1.50'],
    [16_650, '$0.01665'],
    [-3, '-$0.000003'],
    [5_000_000_000, '$5000.00'],
  ])('%d micro-USD are %s', (micro, text) => {
    expect(moneyText(micro)).toBe(text);
  });

  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1500, '1.5 kB'],
    [123_456_789, '123 MB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(byteText(bytes)).toBe(text);
  });
});

it.each([
  [0, '0ms'],
  [39.6, '40ms'],
  [999.4, '999ms'],
  [999.6, '1.0s'],
  [9_949, '9.9s'],
  [9_960, '10s'],
  [90_000, '1m30s'],
])('formatting takes %d ms: %s', (ms, text) => expect(waitText(ms)).toBe(text));
