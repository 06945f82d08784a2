/** Tests the inputs that the built-in backends declare. On the command line every value of theirs is text. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CommonInputs } from '../contract/profiles/inputs.ts';
import { StackInputs } from './compose-ssh/stack/stack-inputs.ts';
import { DockerInputs } from './docker/containers/docker-inputs.ts';
import { StubInputs } from './saas-stub/wire/boot.ts';

const DECLARED = Object.entries({
  ...CommonInputs.shape,
  ...StackInputs.shape,
  ...DockerInputs.shape,
  ...StubInputs.shape,
});
const isBoolean = ([, schema]: (typeof DECLARED)[number]) => schema.safeParse(true).data === true;

describe('declared inputs', () => {
  it('booleans: these are all there are', () => {
    expect(DECLARED.filter(isBoolean).map(([name]) => name)).toEqual([
      'elevated',
      'warm',
      'keep_images',
      'remove_pulled',
      'read_only_root',
    ]);
  });

  it.each(DECLARED.filter(isBoolean))('%s: a text of true or false is what it says', (_name, schema) => {
    const read = (value: unknown) => schema.safeParse(value).data;
    expect(['false', 'no', '0', 'False', 0, false].map(read)).toEqual(Array(6).fill(false));
    expect(['true', 'yes', '1', 'TRUE', 1, true].map(read)).toEqual(Array(6).fill(true));
  });

  it.each(DECLARED.filter(isBoolean))('%s: anything else is refused', (_name, schema) => {
    for (const value of ['', 'maybe', 'off', 'on', ' true', 2, null, [], {}, 'constructor'])
      expect([value, schema.safeParse(value).success]).toEqual([value, false]);
  });

  it('errors: every input that a remedy of a stack names is one that is taken', () => {
    const folder = join(import.meta.dirname, 'compose-ssh');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /(?<!\.test)\.ts$/.test(path),
    );
    const named = files.flatMap((path) =>
      [...readFileSync(join(folder, path), 'utf8').matchAll(/\binput "(\w+)"/g)].map(([, name = '']) => name),
    );
    expect(named).toContain('compose_files');
    for (const name of named) expect(Object.keys(StackInputs.shape)).toContain(name);
  });

  it('wait_seconds: a number, or its text', () => {
    const { wait_seconds } = StackInputs.shape;
    expect([5, '5', '1.5'].map((value) => wait_seconds.safeParse(value).data)).toEqual([5, 5, 1.5]);
    for (const value of ['', 'soon', true, [5], null, '-1', '0', '1e3', 0, 3601])
      expect([value, wait_seconds.safeParse(value).success]).toEqual([value, false]);
  });
});
