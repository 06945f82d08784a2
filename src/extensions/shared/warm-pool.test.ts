import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WarmPool } from './warm-pool.ts';

function pool(most: number) {
  let made = 0;
  return new WarmPool(most, async (name) => ({ name, range: ++made }));
}

describe('WarmPool', () => {
  it('WarmPool hands each sandbox out once and fills up again', async () => {
    const warm = pool(3);
    expect(warm.take()).toBeNull();
    await sleep(60);
    const taken = [warm.take(), warm.take(), warm.take()].filter((one) => one !== null);
    await sleep(60);
    taken.push(...[warm.take(), warm.take()].filter((one) => one !== null));
    expect(taken.length).toBeGreaterThanOrEqual(3);
    expect(new Set(taken.map(({ name }) => name)).size).toBe(taken.length);
  });

  it('WarmPool forgets one that ended by itself, and gives back the rest when it is closed', async () => {
    const warm = pool(1);
    warm.fill();
    await sleep(60);
    const [one] = warm.close();
    expect(one).toBeDefined();
    warm.lose(one?.name ?? '');
    expect(warm.take()).toBeNull();
  });

  it('WarmPool retries a failed start without another request', async () => {
    let tries = 0;
    const made = Promise.withResolvers<void>();
    const make = async (name: string) => {
      if (++tries < 4) throw new Error('not now');
      made.resolve();
      return { name };
    };
    const warm = new WarmPool(1, make, () => {}, 2);
    expect(warm.take()).toBeNull();
    await made.promise;
    await sleep(0);
    expect([tries, warm.size]).toEqual([4, 1]);
  });

  it('WarmPool fills up for a request that arrives in the moment in which it is full', async () => {
    let made = 0;
    const second = Promise.withResolvers<void>();
    const warm: WarmPool<{ name: string }> = new WarmPool(1, async (name) => {
      if (++made === 2) second.resolve();
      // After the pool has it, and before any other task runs.
      else queueMicrotask(() => queueMicrotask(() => warm.take()));
      return { name };
    });
    warm.fill();
    await second.promise;
    expect(made).toBe(2);
  });

  it('WarmPool is off at 0', async () => {
    const warm = pool(0);
    warm.fill();
    await sleep(40);
    expect(warm.take()).toBeNull();
  });
});
