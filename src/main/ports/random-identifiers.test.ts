import { describe, expect, it } from 'vitest';
import { randomIdentifiers } from './random-identifiers.ts';

describe('identifiers', () => {
  it('identifiers are all different, of one form, and sort by the time they were made at', () => {
    let now = Date.UTC(2026, 0, 1);
    const ids = randomIdentifiers(() => now);
    const made: string[] = [];
    for (let n = 0; n < 2000; n++) {
      if (n % 2 === 0) now += 1 + (n % 7) * 1000;
      made.push(ids.next('sbx'));
    }
    expect(new Set(made).size).toBe(made.length);
    for (const id of made) expect(id).toMatch(/^sbx_[a-z0-9]{20}$/);
    const times = made.map((id) => id.slice(0, 'sbx_'.length + 8));
    expect(times).toEqual([...times].sort());
    expect(new Set(times).size).toBe(made.length / 2);
  });
});
