import { describe, expect, test } from 'vitest';
import type { TestLevel } from '../test-levels.ts';
import { testLevels } from '../test-levels.ts';
import { runStages, stagesOf } from './schedule.ts';

describe('the levels', () => {
  test('the levels are each in one stage', () => {
    const planned = stagesOf(testLevels).flatMap((stage) => stage.flatMap(({ levels }) => levels));
    expect(planned.map(({ name }) => name).sort()).toEqual(testLevels.map(({ name }) => name).sort());
  });

  test('levels that look at the whole machine run alone', async () => {
    const running = new Set<string>();
    const beside = new Map<string, Set<string>>();
    await runStages(stagesOf(testLevels), async ({ name }: TestLevel) => {
      for (const other of running) {
        beside.set(name, (beside.get(name) ?? new Set()).add(other));
        beside.set(other, (beside.get(other) ?? new Set()).add(name));
      }
      running.add(name);
      await new Promise(setImmediate);
      running.delete(name);
    });
    expect(beside.get('security')).toBeUndefined();
    expect(beside.get('bench')).toBeUndefined();
    expect(beside.get('simulation')).toContain('unit');
    expect(beside.has('typecheck')).toBe(true);
  });

  test('levels that depend on the sources alone are never run a second time', () => {
    const never = testLevels.filter(({ again }) => again === 'never').map(({ name }) => name);
    expect(never).toEqual(['typecheck', 'build', 'lint', 'imports', 'knip', 'simulation']);
  });
});
