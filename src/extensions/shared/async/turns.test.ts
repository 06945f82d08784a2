import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Turns } from './turns.ts';

it('one at a time for each key, in order, also after a failure', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const work = (key: string, name: string, ms: number, fails = false) =>
    turns.take(key, async () => {
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
