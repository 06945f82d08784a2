import { describe, expect, it } from 'vitest';
import { SeenRows } from './seen-rows.ts';

interface Row {
  readonly id: string;
  readonly state: string;
  readonly tries: number | null;
}

const STORED: Row = { id: 'a', state: 'open', tries: null };

describe('rows that a transaction has seen', () => {
  it('SeenRows returns the changed fields of a row', () => {
    const seen = new SeenRows<Row>();
    seen.set('a', STORED);
    expect(seen.changes('a', { ...STORED, tries: 0 })).toEqual({ tries: 0 });
    expect(seen.changes('a', { id: 'a', state: 'closed', tries: 1 })).toEqual({ state: 'closed', tries: 1 });
  });

  it('SeenRows returns nothing for an unchanged row', () => {
    const seen = new SeenRows<Row>();
    seen.set('a', STORED);
    expect(seen.changes('a', { ...STORED })).toBeNull();
  });

  it('SeenRows returns all of a row that was never read, or is forgotten', () => {
    const seen = new SeenRows<Row>();
    expect(seen.changes('a', STORED)).toEqual(STORED);
    seen.set('a', STORED);
    seen.delete('a');
    expect(seen.changes('a', STORED)).toEqual(STORED);
  });
});
