import { describe, expect, test } from 'vitest';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { JsonScanner } from '../bounds/json-scanner.ts';
import { parseJson, parseScanned } from './parse-json.ts';

const parse = (text: string, allowsNul = false) => parseJson(Buffer.from(text), allowsNul);

function refusal(text: string | Buffer): SandboxerError {
  try {
    parseJson(Buffer.from(text as string), false);
  } catch (error) {
    if (error instanceof SandboxerError) return error;
    throw error;
  }
  throw new Error(`it was taken: ${text}`);
}

describe('parseJson', () => {
  test('parseJson accepts every form of JSON', () => {
    expect(parse('{"a":[1,"ü\\n\\u00fc",null]}')).toEqual({ a: [1, 'ü\nü', null] });
    expect(parse('{"constructor":"x","prototype":1}')).toEqual({ constructor: 'x', prototype: 1 });
    expect(parse('"\\ud83d\\ude00"')).toBe('😀');
    expect(parse('{"a":"[[[[{{{\\"[["}')).toEqual({ a: '[[[[{{{"[[' });
  });

  test('parseJson bounds the nesting', () => {
    expect(parse(`${'['.repeat(64)}${']'.repeat(64)}`)).toBeTruthy();
    expect(refusal(`${'['.repeat(65)}${']'.repeat(65)}`).detail).toContain('64');
    expect(refusal('['.repeat(1_000_000)).code).toBe('SBX_INVALID_REQUEST');
  });

  test('parseJson refuses names that reach a prototype, however they are spelled', () => {
    expect(refusal('{"a":{"__proto__":1}}').extras.field).toBe('a.__proto__');
    expect(refusal('{"\\u005f_proto__":1}').extras.field).toBe('__proto__');
    expect(refusal('{"constructor":{"prototype":{}}}').extras.field).toBe('constructor');
    expect(refusal('{"c\\u006fnstructor":{"prototype":{}}}').extras.field).toBe('constructor');
  });

  test('parseJson refuses text that no database stores unchanged', () => {
    expect(refusal('{"a":["x","\\ud800"]}').extras.field).toBe('a.1');
    expect(refusal('{"a":"\\u0000"}').extras.field).toBe('a');
    expect(refusal('{"\\u0000":1}').code).toBe('SBX_INVALID_REQUEST');
    expect(parse('{"a":"\\u0000"}', true)).toEqual({ a: '\0' });
    expect(refusal(Buffer.from([0x22, 0xff, 0x22])).detail).toContain('UTF-8');
  });
});

describe('JsonScanner', () => {
  const scan = (text: string, piece: number, most: number) => {
    const scanner = new JsonScanner(most);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += piece) scanner.feed(bytes.subarray(at, at + piece));
  };

  test('JsonScanner counts values outside of strings, however the text is cut', () => {
    const text = '{"a,b[{":["\\",",1,{"c":2}],"d":"\\\\","e":3}';
    for (const piece of [1, 2, 3, 7, 100]) {
      expect(() => scan(text, piece, 8)).not.toThrow();
      expect(() => scan(text, piece, 7)).toThrow('more than 7 values');
    }
  });

  test('JsonScanner refuses many values and deep nesting before the rest arrives', () => {
    const scanner = new JsonScanner(1_000);
    expect(() => scanner.feed(Buffer.from('[0'.padEnd(3_000, ',0')))).toThrow('more than 1000 values');
    expect(() => scan('['.repeat(65), 1, 1_000)).toThrow('64 levels');
  });
});

describe('parseScanned', () => {
  test('a large body is what JSON.parse makes of it, wherever a character is cut', async () => {
    for (const filler of ['aé', '€', '😀x', '\\n"', '\u0001']) {
      const value = { command: ['x'], stdin: filler.repeat(300_000), shift: '' };
      for (const shift of ['', 'a', 'bb', 'ccc']) {
        const body = Buffer.from(JSON.stringify({ ...value, shift }));
        expect(await parseScanned(body, true)).toEqual({ ...value, shift });
      }
    }
  });

  test('a large body is refused where a small one is', async () => {
    const long = 'x'.repeat(600_000);
    const refused = [
      Buffer.concat([Buffer.from(`"${long}`), Buffer.from([0xff, 0x22])]),
      Buffer.concat([Buffer.from(`"${long}"`), Buffer.from([0xc3])]),
      Buffer.from(`"${long}`),
      Buffer.from(`["${long}", {"__proto__": 1}]`),
      Buffer.from(`["${long}\\u0000"]`),
    ];
    for (const body of refused)
      await expect(parseScanned(body, false)).rejects.toMatchObject({ code: 'SBX_INVALID_REQUEST' });
    expect(await parseScanned(Buffer.from(`"${long}"`), false)).toBe(long);
  });

  test('other requests go on between the pieces of a large body', async () => {
    let ticks = 0;
    const count = () => {
      ticks += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    await parseScanned(Buffer.from(`"${'x'.repeat(8_000_000)}"`), false);
    clearImmediate(timer);
    expect(ticks).toBeGreaterThan(20);
  });
});
