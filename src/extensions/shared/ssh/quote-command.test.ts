import { execFileSync, spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { quoteCommand, quoteWord, remoteCommand } from './quote-command.ts';

const HOSTILE = [
  '',
  ' ',
  '-n',
  '--',
  "'",
  "''",
  "'\\''",
  '"',
  '\\',
  '\\\\',
  '$(id)',
  '`id`',
  '$HOME',
  '~',
  '~root',
  '*',
  '{a,b}',
  '!!',
  '#x',
  'a=b',
  'a\nb',
  '\n',
  'a\r\nb',
  '\t',
  ';reboot',
  '&& x',
  '| x',
  '> /tmp/x',
  'é\u{1f600}\u202e',
  '\u0001\u007f',
  'x'.repeat(5000),
];

/** Returns the arguments that a real shell passes on, each ended by a null byte. */
function argumentsSeen(words: readonly string[]): string[] {
  const command = quoteCommand(['printf', '%s\\0', ...words]);
  const output = execFileSync('/bin/sh', ['-c', command], { maxBuffer: 1 << 26 }).toString('utf8');
  return output.split('\0').slice(0, -1);
}

describe('quoting for a shell', () => {
  it('quoting for a shell keeps hostile words as they are', () => {
    expect(argumentsSeen(HOSTILE)).toEqual(HOSTILE);
    for (const word of HOSTILE) expect(argumentsSeen([word])).toEqual([word]);
  });

  it('quoting for a shell keeps any words as they are, twice quoted too', () => {
    const piece = fc.oneof(
      fc.constantFrom(...HOSTILE),
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.string({ unit: fc.constantFrom("'", '"', '\\', '$', '`', '\n', ' ', '!', '(', '*', 'a') }),
    );
    const word = fc
      .array(piece, { maxLength: 4 })
      .map((pieces) => pieces.join('').replaceAll('\0', '').toWellFormed());
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), (words) => {
        expect(argumentsSeen(words)).toEqual(words);
        const twice = remoteCommand(['printf', '%s\\0', ...words]);
        const output = execFileSync('/bin/sh', ['-c', twice]).toString('utf8');
        expect(output.split('\0').slice(0, -1)).toEqual(words);
      }),
      { numRuns: 60 },
    );
  });

  it('quoting for a shell never makes an assignment or an option of the shell out of the program', () => {
    expect(quoteWord('A=b')).toBe("'A=b'");
    expect(() => quoteCommand([])).toThrow(/no name/);
    expect(() => quoteCommand(['', 'x'])).toThrow(/no name/);
    expect(() => quoteWord('a\0b')).toThrow(/null character/);
  });

  it('quoting for a shell keeps a killed program apart from a failed one', () => {
    const status = (script: string) =>
      spawnSync('/bin/sh', ['-c', remoteCommand(['sh', '-c', script])]).status;
    expect([status('exit 255'), status('kill -9 $$'), status('true')]).toEqual([255, 137, 0]);
  });
});
