import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { weightsOf } from './group-weights.ts';

const scratch = mkdtempSync(join(tmpdir(), 'sbx-weights-'));
let made = 0;

/** Makes the group of one sandbox, whose parent has these files. */
function group(files: Record<string, string>): string {
  const all = join(scratch, String(made++));
  mkdirSync(join(all, 's0'), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(all, name), `${text}\n`);
  return join(all, 's0');
}

afterAll(() => rmSync(scratch, { recursive: true }));

describe('weightsOf', () => {
  it('version 2: both are in force where both files have less than the usual', () => {
    const group_unified = group({ 'cpu.weight': '50', 'io.bfq.weight': 'default 50' });
    expect(weightsOf({ group_unified })).toEqual({ cpu: true, io: true });
    expect(weightsOf({ group_unified: group({ 'cpu.weight': '50', 'io.weight': 'default 50' }) }).io).toBe(
      true,
    );
  });

  it('version 2: a usual weight, or no file, is none', () => {
    const group_unified = group({ 'cpu.weight': '100' });
    expect(weightsOf({ group_unified })).toEqual({ cpu: false, io: false });
    expect(weightsOf({ group_unified: group({}) })).toEqual({ cpu: false, io: false });
  });

  it('version 1: each controller has a group of its own, or none', () => {
    const group_cpu = group({ 'cpu.shares': '512' });
    expect(weightsOf({ group_cpu })).toEqual({ cpu: true, io: false });
    const group_blkio = group({ 'blkio.bfq.weight': '50' });
    expect(weightsOf({ group_cpu, group_blkio })).toEqual({ cpu: true, io: true });
    expect(weightsOf({ group_cpu: group({ 'cpu.shares': '8192' }) }).cpu).toBe(false);
    expect(weightsOf({})).toEqual({ cpu: false, io: false });
  });
});
