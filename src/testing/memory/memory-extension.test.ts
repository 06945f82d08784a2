import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Subject } from '../conformance/subject.ts';
import { describeConformance } from '../conformance.ts';
import { createMemoryExtension } from './memory-extension.ts';

const create = async () => ({ extension: createMemoryExtension(), cleanup: async () => {} });

describeConformance({ describe, it, beforeAll, afterAll }, 'ext.memory', {
  create,
  shell: false,
  skip: { 'deny_all: nothing outside can be reached': 'There is nothing inside that could connect.' },
});

describe('ext.memory', () => {
  it('ext.memory waits for nothing until it is ready', async () => {
    const timers = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'setImmediate')];
    const extension = createMemoryExtension();
    const subject = new Subject(extension, { create });
    await subject.establish();
    for (const timer of timers) expect(timer).not.toHaveBeenCalled();
    vi.restoreAllMocks();
    await subject.sweep();
  });

  it('ext.memory charges its configured price', () => {
    expect(createMemoryExtension().header).toMatchObject({ price: null, capabilities: { pricing: 'free' } });
  });
});
