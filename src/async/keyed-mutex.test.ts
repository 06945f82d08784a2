import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { KeyedMutex } from './keyed-mutex.ts';

it('run: work of one key runs one at a time and in order, also after a failure', async () => {
  const mutex = new KeyedMutex();
  const seen: string[] = [];
  const work = (key: string, name: string, ms: number, fails = false) =>
    mutex.run(key, async () => {
      seen.push(`${name}+`);
      await sleep(ms);
      seen.push(`${name}-`);
      if (fails) throw new Error(name);
      return name;
    });
  const results = await Promise.allSettled([
    work('a', 'one', 20, true),
    work('a', 'two', 1),
    work('b', 'three', 5),
  ]);
  expect(seen).toEqual(['one+', 'three+', 'three-', 'one-', 'two+', 'two-']);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
});
