import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WarmPool } from './warm-pool.ts';

function pool(most: number) {
  let made = 0;
  return new WarmPool(most, async (name) => ({ name, range: ++made }));
}

describe('WarmPool', () => {
  it('hands each out once and fills up again', async () => {
    const warm = pool(3);
    expect(warm.take()).toBeNull();
    await sleep(60);
    const taken = [warm.take(), warm.take(), warm.take()].filter((one) => one !== null);
    await sleep(60);
    taken.push(...[warm.take(), warm.take()].filter((one) => one !== null));
    expect(taken.length).toBeGreaterThanOrEqual(3);
    expect(new Set(taken.map(({ name }) => name)).size).toBe(taken.length);
  });

  it('forgets one that has gone by itself, and gives back what is left when it is closed', async () => {
    const warm = pool(1);
    warm.fill();
    await sleep(60);
    const [one] = warm.close();
    expect(one).toBeDefined();
    warm.lose(one?.name ?? '');
    expect(warm.take()).toBeNull();
  });

  it('is off at 0', async () => {
    const warm = pool(0);
    warm.fill();
    await sleep(40);
    expect(warm.take()).toBeNull();
  });
});
