import { describe, expect, it } from 'vitest';
import { cutText, displayWidth, plainText } from './plain-text.ts';
import type { Column } from './table.ts';
import { tableLines } from './table.ts';

interface Row {
  readonly id: string;
  readonly text: string;
  readonly n: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'ID', value: (row) => row.id },
  { title: 'TEXT', cuttable: true, value: (row) => row.text },
  { title: 'N', align: 'right', value: (row) => row.n },
];

describe('tableLines', () => {
  it('tableLines drops optional columns before it cuts the others to nothing', () => {
    const [id, text, n] = COLUMNS as [Column<Row>, Column<Row>, Column<Row>];
    const more = { ...text, title: 'MORE', spare: true };
    const most = { ...text, title: 'MOST', spare: true };
    const rows = [{ id: 'an-id-of-20-columns-', text: 'quite a lot of text', n: '1' }];
    const titles = (width: number) => tableLines([id, more, text, n, most], rows, width)[0]?.split(/ +/);
    expect(titles(100)).toEqual(['ID', 'MORE', 'TEXT', 'N', 'MOST']);
    expect(titles(60)).toEqual(['ID', 'MORE', 'TEXT', 'N']);
    expect(titles(40)).toEqual(['ID', 'TEXT', 'N']);
    for (const width of [100, 60, 40])
      for (const line of tableLines([id, more, text, n, most], rows, width))
        expect(displayWidth(line)).toBeLessThanOrEqual(width);
  });

  it('tableLines aligns its columns', () => {
    const rows = [
      { id: 'a', text: 'one', n: '1' },
      { id: 'bbb', text: 'twenty', n: '100' },
    ];
    expect(tableLines(COLUMNS, rows, undefined)).toEqual([
      'ID   TEXT      N',
      'a    one       1',
      'bbb  twenty  100',
    ]);
  });

  it('tableLines cuts to the width of the terminal, and never cuts an id', () => {
    const id = 'sbx_0123456789abcdefghij';
    const rows = [{ id, text: 'a long text that cannot all be shown', n: '1' }];
    const lines = tableLines(COLUMNS, rows, 45);
    expect(lines[1]).toContain(id);
    expect(lines[1]).toContain('…');
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(45);
    expect(tableLines(COLUMNS, rows, 20)[1]).toContain(id);
  });

  it('tableLines counts the columns that a terminal shows', () => {
    const rows = [
      { id: '漢字', text: 'e\u0301', n: '1' },
      { id: 'abcd', text: 'x', n: '2' },
    ];
    expect(tableLines(COLUMNS, rows, undefined).slice(1)).toEqual(['漢字  e\u0301     1', 'abcd  x     2']);
    expect(cutText('漢字漢字', 5)).toBe('漢字…');
  });

  it('tableLines lets no text steer the terminal', () => {
    const rows = [{ id: 'a\x1b[31m', text: 'b\nc\u202e', n: '\x07' }];
    const line = tableLines(COLUMNS, rows, undefined)[1] ?? '';
    expect(line).toBe('a\\x1b[31m  b c\\x202e  \\x07');
    expect(plainText('plain')).toBe('plain');
    expect(plainText('bad\udcfe 😀')).toBe('bad\\xfe 😀');
  });
});
