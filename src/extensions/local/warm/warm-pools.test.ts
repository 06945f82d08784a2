import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { WarmRecipe } from './warm-pools.ts';
import { WarmPools } from './warm-pools.ts';

interface One {
  readonly name: string;
  readonly layer: string;
}

function recipe(layer: string, workspaceId: string | null = null): WarmRecipe {
  const process = { env: {}, user: null, cwd: null };
  const limits = {
    memoryBytes: null,
    pids: null,
    cpuMillis: null,
    openFiles: null,
    diskMb: null,
    roomBytes: null,
  };
  const rootFs = { layers: [layer], host: [], process };
  return { rootFs, workspaceId, openFiles: null, noNewPrivs: false, limits, program: null };
}

function pools(most: number, forgottenMs?: number) {
  const made: string[] = [];
  const dropped: string[] = [];
  const warm = new WarmPools<One>(
    most,
    {
      async make(name, { rootFs }) {
        const layer = rootFs.layers[0] ?? '';
        made.push(layer);
        return { name, layer };
      },
      drop: ({ layer }) => void dropped.push(layer),
    },
    forgottenMs,
  );
  return { warm, made, dropped };
}

async function until(check: () => boolean): Promise<void> {
  for (let tries = 0; tries < 2_000; tries++) {
    if (check()) return;
    await sleep(10);
  }
  throw new Error('it did not come to that');
}

describe('WarmPools', () => {
  it('WarmPools hands out only sandboxes of an equal recipe', async () => {
    const { warm, made } = pools(4);
    expect(warm.take(recipe('a'))).toBeNull();
    await until(() => made.includes('a'));
    expect(warm.take(recipe('b'))).toBeNull();
    expect(warm.take({ ...recipe('a'), noNewPrivs: true })).toBeNull();
    expect(warm.take(recipe('a'))?.layer).toBe('a');
    warm.close();
  });

  it('take: a sandbox of an image is for the workspace that it was made for', async () => {
    const { warm, made } = pools(4);
    warm.take(recipe('a', 'one'));
    await until(() => made.length > 0);
    expect(warm.take(recipe('a', 'another'))).toBeNull();
    expect(warm.take(recipe('a', 'one'))?.layer).toBe('a');
    warm.close();
  });

  it('WarmPools gives the room of the least recently requested recipe to the current one', async () => {
    const { warm, made, dropped } = pools(4);
    warm.take(recipe('a'));
    warm.take(recipe('b'));
    await until(() => made.length === 4);
    warm.take(recipe('c'));
    expect(dropped).toEqual(['a']);
    await until(() => made.includes('c'));
    const left = warm.close().map(({ layer }) => layer);
    expect(left.sort()).toEqual(['a', 'b', 'b', 'c']);
  });

  it('WarmPools releases sandboxes that are no longer requested, but not expected ones', async () => {
    const { warm, made, dropped } = pools(4, 30);
    warm.expect(recipe('usual'));
    await until(() => made.length === 1);
    warm.take(recipe('a'));
    await until(() => made.includes('a') && dropped.length > 0);
    expect(new Set(dropped)).toEqual(new Set(['a']));
    expect(warm.take(recipe('usual'))?.layer).toBe('usual');
    warm.close();
  });

  it('WarmPools drops a finished sandbox whose layers are gone', async () => {
    const { promise, resolve } = Promise.withResolvers<One>();
    const dropped: string[] = [];
    const begun: string[] = [];
    const warm = new WarmPools<One>(4, {
      make(name) {
        begun.push(name);
        return promise;
      },
      drop: ({ name }) => void dropped.push(name),
    });
    warm.take(recipe('a'));
    await until(() => begun.length === 1);
    warm.dissolve(({ rootFs }) => rootFs.layers.includes('a'));
    resolve({ name: begun[0] ?? '', layer: 'a' });
    await until(() => dropped.length === 1);
    expect(dropped).toEqual(begun);
  });

  it('WarmPools is off at 0', () => {
    const { warm, made } = pools(0);
    warm.expect(recipe('a'));
    expect(warm.take(recipe('a'))).toBeNull();
    expect(made).toEqual([]);
  });
});
