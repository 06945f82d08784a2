import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { sampleHeader, sampleRecipe } from '../../../tests/support/route-samples.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { BooleanInput } from '../../contract/profiles/inputs.ts';
import type { Json } from '../../contract/values/json.ts';
import { inputMisfits, requireUsableInputs } from './usable-inputs.ts';

const STACKS = sampleHeader('ext.stacks', {
  inputs: { wait_for: z.string(), keep: BooleanInput.default(false), compose_bundle_ref: z.string() },
});
const PLAIN = sampleHeader('ext.plain');
const BOTH = [STACKS, PLAIN];

function refusal(inputs: Record<string, Json>, pinnedExtension: string | null = null, headers = BOTH) {
  try {
    requireUsableInputs(headers, { ...sampleRecipe(), inputs, pinnedExtension });
    return null;
  } catch (error) {
    if (!(error instanceof SandboxerError)) throw error;
    return { code: error.code, remedy: error.remedy, ...error.extras };
  }
}

describe('requireUsableInputs', () => {
  it('requireUsableInputs refuses a name that no backend takes, with the nearest one that is taken', () => {
    const found = refusal({ wait_fr: 'a' });
    expect(found).toMatchObject({ code: 'SBX_INVALID_REQUEST', field: 'inputs.wait_fr' });
    expect(found).toMatchObject({ creation: 'not_created', remedy: expect.stringMatching(/"wait_for"/) });
  });

  it('requireUsableInputs names every input that cannot be used, in one error', () => {
    const found = refusal({ wait_fr: 'a', keep: 'maybe', constructor: 1 });
    expect(found?.issues?.map(({ field }) => field)).toEqual([
      'inputs.wait_fr',
      'inputs.keep',
      'inputs.constructor',
    ]);
  });

  it('requireUsableInputs refuses what the pinned backend does not take, though another one would', () => {
    expect(refusal({ wait_for: 'a' }, 'ext.plain')?.field).toBe('inputs.wait_for');
    expect(refusal({ wait_for: 'a' }, 'ext.stacks')).toBeNull();
  });

  it('a pinned backend that is not enabled: only names that no backend knows are refused', () => {
    expect(refusal({ wait_for: 'a', files_ref: 'x' }, 'ext.absent')).toBeNull();
    expect(refusal({ wait_fr: 'a' }, 'ext.absent')?.field).toBe('inputs.wait_fr');
  });

  it('requireUsableInputs refuses the name of a tree that is no tree where no backend takes it as text', () => {
    expect(refusal({ compose_bundle_ref: 'bundle-v3' }, 'ext.plain')).toMatchObject({
      field: 'inputs.compose_bundle_ref',
      remedy: expect.stringMatching(/upload/),
    });
    expect(refusal({ compose_bundle_ref: 'bundle-v3' }, 'ext.stacks')).toBeNull();
  });

  it('requireUsableInputs accepts inputs that every backend takes', () => {
    expect(refusal({ warm: false, elevated: false })).toBeNull();
  });
});

describe('inputMisfits', () => {
  const misfits = (inputs: Record<string, Json>, header = PLAIN) =>
    inputMisfits(header, { ...sampleRecipe(), inputs }).map(({ code, detail }) => `${code}: ${detail}`);

  it('inputMisfits excludes a backend that would drop an input', () => {
    expect(misfits({ wait_for: 'a', warm: false })).toEqual(['inputs: takes no input wait_for']);
    expect(misfits({ wait_for: 'a' }, STACKS)).toEqual([]);
  });

  it('inputMisfits excludes a backend that cannot use a value', () => {
    expect(misfits({ keep: 'maybe' }, STACKS)).toEqual(['inputs: inputs.keep: Write true or false.']);
  });
});
