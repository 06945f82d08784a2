import { describe, expect, test } from 'vitest';
import { SandboxerError } from '../contract/errors.ts';
import { parseJson } from './parse-json.ts';

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
  test('takes what JSON is', () => {
    expect(parse('{"a":[1,"ü\\n\\u00fc",null]}')).toEqual({ a: [1, 'ü\nü', null] });
    expect(parse('{"constructor":"x","prototype":1}')).toEqual({ constructor: 'x', prototype: 1 });
    expect(parse('"\\ud83d\\ude00"')).toBe('😀');
    expect(parse('{"a":"[[[[{{{\\"[["}')).toEqual({ a: '[[[[{{{"[[' });
  });

  test('bounds the nesting', () => {
    expect(parse(`${'['.repeat(64)}${']'.repeat(64)}`)).toBeTruthy();
    expect(refusal(`${'['.repeat(65)}${']'.repeat(65)}`).detail).toContain('64');
    expect(refusal('['.repeat(1_000_000)).code).toBe('SBX_INVALID_REQUEST');
  });

  test('refuses names that reach a prototype, however they are spelled', () => {
    expect(refusal('{"a":{"__proto__":1}}').extras.field).toBe('a.__proto__');
    expect(refusal('{"\\u005f_proto__":1}').extras.field).toBe('__proto__');
    expect(refusal('{"constructor":{"prototype":{}}}').extras.field).toBe('constructor');
    expect(refusal('{"c\\u006fnstructor":{"prototype":{}}}').extras.field).toBe('constructor');
  });

  test('refuses text that no database keeps as it is', () => {
    expect(refusal('{"a":["x","\\ud800"]}').extras.field).toBe('a.1');
    expect(refusal('{"a":"\\u0000"}').extras.field).toBe('a');
    expect(refusal('{"\\u0000":1}').code).toBe('SBX_INVALID_REQUEST');
    expect(parse('{"a":"\\u0000"}', true)).toEqual({ a: '\0' });
    expect(refusal(Buffer.from([0x22, 0xff, 0x22])).detail).toContain('UTF-8');
  });
});
