import { describe, expect, it } from 'vitest';
import { SeenRows } from './seen-rows.ts';

interface Row {
  readonly id: string;
  readonly state: string;
  readonly tries: number | null;
}

const STORED: Row = { id: 'a', state: 'open', tries: null };

describe('rows that a transaction has seen', () => {
  it('says what of a row has changed since', () => {
    const seen = new SeenRows<Row>();
    seen.set('a', STORED);
    expect(seen.changes('a', { ...STORED, tries: 0 })).toEqual({ tries: 0 });
    expect(seen.changes('a', { id: 'a', state: 'closed', tries: 1 })).toEqual({ state: 'closed', tries: 1 });
  });

  it('says nothing of a row that is as it was', () => {
    const seen = new SeenRows<Row>();
    seen.set('a', STORED);
    expect(seen.changes('a', { ...STORED })).toBeNull();
  });

  it('says all of a row that nobody looked at, or that is forgotten', () => {
    const seen = new SeenRows<Row>();
    expect(seen.changes('a', STORED)).toEqual(STORED);
    seen.set('a', STORED);
    seen.delete('a');
    expect(seen.changes('a', STORED)).toEqual(STORED);
  });
});
