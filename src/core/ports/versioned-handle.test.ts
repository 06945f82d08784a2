import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Json } from '../../contract/values/json.ts';
import { versionedHandle } from './versioned-handle.ts';

const steps: number[] = [];
const handles = versionedHandle(
  z.strictObject({ name: z.string(), region: z.string(), size: z.number() }),
  3,
  (data, from) => {
    steps.push(from);
    const older = data as { [key: string]: Json };
    return from === 1 ? { ...older, region: 'eu' } : { ...older, size: 1 };
  },
);

describe('versionedHandle', () => {
  it('read: a handle that was just written gives its data', () => {
    const data = { name: 'a', region: 'us', size: 2 };
    expect(handles.write(data)).toEqual({ version: 3, data });
    expect(handles.read(handles.write(data))).toEqual(data);
  });

  it('read: an older handle is upgraded one version at a time', () => {
    steps.length = 0;
    expect(handles.read({ version: 1, data: { name: 'a' } })).toEqual({ name: 'a', region: 'eu', size: 1 });
    expect(steps).toEqual([1, 2]);
    expect(handles.read({ version: 2, data: { name: 'a', region: 'us' } })).toMatchObject({ region: 'us' });
  });

  it('read: a newer handle is refused with the remedy', () => {
    expect(() => handles.read({ version: 4, data: { name: 'a', region: 'us', size: 2 } })).toThrow(
      expect.objectContaining({
        code: 'SBX_EXTENSION_FAILED',
        retryable: false,
        detail: 'The handle is of version 4; versions up to 3 are read here.',
        remedy: expect.stringContaining('Run the version of sand-boxer that made the sandbox'),
      }),
    );
  });

  it.each([0, -1, 1.5, Number.NaN])('read: version %s is refused', (version) => {
    expect(() => handles.read({ version, data: {} })).toThrow(/was never written/);
  });

  it('read: data that the schema refuses is refused by field', () => {
    expect(() => handles.read({ version: 3, data: { name: 'a', region: 'us', size: 'big' } })).toThrow(
      /version 3 cannot be read: size: /,
    );
  });
});
