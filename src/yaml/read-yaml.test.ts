import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { checkPriceList } from '../catalogue/price-list.ts';
import { parseProfileText } from '../catalogue/profiles/profile-document.ts';
import { SandboxerError } from '../contract/errors/errors.ts';
import { parseComposeYaml } from '../extensions/compose-ssh/compose/yaml/compose-yaml.ts';
import { isFaulty, readYaml } from './read-yaml.ts';
import type { YamlFault } from './yaml-fault.ts';
import { FILE, PAGE } from './yaml-limits.ts';

function accepted(text: string, merge = false): unknown {
  const read = readYaml(text, { merge, limits: FILE });
  if (isFaulty(read)) throw new Error(JSON.stringify(read));
  return read.value;
}

function faultOf(text: string, merge = false): YamlFault {
  const read = readYaml(text, { merge });
  if (!isFaulty(read)) throw new Error(`accepted: ${JSON.stringify(read.value).slice(0, 100)}`);
  return read[0] as YamlFault;
}

const nested = (levels: number) => '{'.repeat(levels) + '}'.repeat(levels);

describe('YAML whose keys are no plain text', () => {
  it.each([
    ['a map 40 levels deep as the key of a map', nested(40)],
    ['a map 30 levels deep as the key of a map', nested(30)],
    ['twelve such maps in a list', `- ${nested(24)}\n`.repeat(12)],
    ['thousands of such maps in a list', `- ${nested(24)}\n`.repeat(2_000)],
    ['a list as a key', '? [a, b]\n: c'],
    ['a map as a key', '? {a: b}\n: c'],
    ['an alias as a key', '- &a x\n- *a : y'],
    ['an empty key', '{ : x }'],
    ['a block map as a key', '? a: b\n: c'],
    ['keys of keys', '? ? ? ? ? ? a'],
  ])('readYaml: %s is refused within 250 ms, with a place and a remedy', (_name, text) => {
    const before = performance.now();
    const fault = faultOf(text);
    expect(performance.now() - before).toBeLessThan(250);
    expect(fault.remedy).toBeTruthy();
    expect(fault.line).toBeGreaterThan(0);
  });
});

describe('YAML whose work is bounded', () => {
  const bomb = (width: number) =>
    ['a: &a [x, x, x, x, x, x, x, x]']
      .concat([...'bcdefgh'].map((name, at) => `${name}: &${name} [${`*${'abcdefg'[at]}, `.repeat(width)}]`))
      .join('\n');

  it.each([
    ['lists nested 100,000 deep', '['.repeat(100_000), 'TOO_DEEP'],
    ['maps nested 100,000 deep', '{a: '.repeat(60_000), 'TOO_DEEP'],
    ['block lists nested 100,000 deep', '- '.repeat(100_000), 'TOO_DEEP'],
    ['aliases that double at each level', bomb(8), 'TOO_LARGE'],
    [
      'one long text used a thousand times',
      `- &a ${'x'.repeat(100_000)}\n${'- *a\n'.repeat(1_000)}`,
      'TOO_LARGE',
    ],
    ['more bytes than a page', 'x'.repeat(PAGE.bytes + 1), 'TOO_LARGE'],
    ['more tokens than a page', '- a\n'.repeat(PAGE.tokens), 'TOO_LARGE'],
    ['an alias within its own anchor', 'a: &a [*a]', 'BAD_ALIAS'],
    ['an alias of a later anchor', '- *a\n- &a x', 'BAD_ALIAS'],
    ['thousands of documents', '---\n'.repeat(3_000), 'MULTIPLE_DOCS'],
    ['a key that stands twice', 'a: 1\nb: 2\na: 3', 'DUPLICATE_KEY'],
  ])('readYaml: %s are refused', (_name, text, code) => {
    expect(faultOf(text).code).toBe(code);
  });

  it('readYaml: depth counts through aliases', () => {
    const levels = Array.from({ length: 12 }, (_, at) => `- &a${at + 1} [[[*a${at}]]]`);
    expect(faultOf(['- &a0 x', ...levels].join('\n')).code).toBe('TOO_DEEP');
  });

  it('readYaml: reading stops when its time is over', () => {
    const read = readYaml('- a\n'.repeat(20_000), { limits: { ...FILE, milliseconds: 1 } });
    expect(isFaulty(read) && read[0]?.code).toBe('TOO_SLOW');
  });
});

describe('YAML with many faults', () => {
  it.each([
    ['a wrong escape in every second byte', `"${'\\x'.repeat(125_000)}"`, 'BAD_DQ_ESCAPE'],
    ['wrong escapes in a text without an end', `"${'\\q'.repeat(125_000)}`, 'BAD_DQ_ESCAPE'],
    ['an unknown directive on every line', '%X\n'.repeat(80_000), 'BAD_DIRECTIVE'],
    ['a bracket too many on every line', '- ]\n'.repeat(24_000), 'UNEXPECTED_TOKEN'],
    ['a brace too many on every line', '}\n'.repeat(48_000), 'UNEXPECTED_TOKEN'],
  ])('readYaml: %s is refused at the twentieth fault, within 150 ms', (_name, text, code) => {
    let least = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < 5 && least > 150; attempt += 1) {
      const before = performance.now();
      const read = readYaml(text, { limits: FILE });
      least = Math.min(least, performance.now() - before);
      expect(isFaulty(read) && read.map((fault) => fault.code)).toEqual(Array(20).fill(code));
    }
    expect(least).toBeLessThan(150);
  });
});

describe('YAML that is accepted', () => {
  it('readYaml: any JSON value written as YAML is read back as it was', () => {
    const key = fc.string({ minLength: 1, maxLength: 12 }).filter((name) => name !== '<<');
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(fc.string({ maxLength: 40 }), fc.integer(), fc.boolean(), fc.constant(null)),
        fc.array(tie('tree'), { maxLength: 5 }),
        fc.dictionary(key, tie('tree'), { maxKeys: 5, noNullPrototype: true }),
      ),
    }));
    void fc.assert(
      fc.property(tree, (value) => {
        expect(accepted(stringify(value))).toEqual(value);
        expect(accepted(JSON.stringify(value))).toEqual(value);
      }),
      { numRuns: 200 },
    );
  });

  it('readYaml: merge keys give way to the keys of the map, and the first of two maps wins', () => {
    const text = 'x: &x { a: 1, b: 1 }\ny: &y { b: 2, c: 2 }\nz: { <<: [*x, *y], a: 0 }\nw: { c: 0, <<: *y }';
    expect(accepted(text, true)).toMatchObject({ z: { a: 0, b: 1, c: 2 }, w: { b: 2, c: 0 } });
    expect(accepted('{ "<<": { a: 1 } }', true)).toEqual({ '<<': { a: 1 } });
    expect(faultOf('<<: text', true).code).toBe('BAD_MERGE');
  });

  it('readYaml: an anchor that is given again stands for its latest value', () => {
    expect(accepted('- &a 1\n- *a\n- &a 2\n- *a')).toEqual([1, 1, 2, 2]);
  });

  it('readYaml: a key named __proto__ is a key and no prototype', () => {
    const value = accepted('__proto__: { polluted: 1 }') as object;
    expect(Object.keys(value)).toEqual(['__proto__']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('locate: a field has the place of its key, a missing field that of its parent', () => {
    const read = readYaml('a:\n  - b: 1\n    c: 2\n');
    if (isFaulty(read)) throw new Error('refused');
    expect(read.locate(['a', 0, 'c'])).toEqual({ line: 3, column: 5 });
    expect(read.locate(['a', 0, 'd'])).toEqual({ line: 2, column: 5 });
    expect(read.locate(['e'])).toEqual({ line: 1, column: 1 });
  });
});

describe('every entrance of YAML from outside', () => {
  it.each([
    ['a profile', (text: string) => parseProfileText(text)],
    ['a compose file', (text: string) => parseComposeYaml(text, 'compose.yml')],
    [
      'a price list',
      (text: string) => {
        const [problem] = checkPriceList('x.yaml', text);
        if (problem) throw new SandboxerError('SBX_PROFILE_INVALID', problem.problem);
      },
    ],
  ])('%s: a map 40 levels deep as a key is refused within 250 ms', (_name, read) => {
    const before = performance.now();
    expect(() => read(nested(40))).toThrow(SandboxerError);
    expect(performance.now() - before).toBeLessThan(250);
  });
});
