import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Semaphore } from './semaphore.ts';

it('run: at most two run at a time, in order, and a failure makes room', async () => {
  const semaphore = new Semaphore(2);
  const begun: number[] = [];
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  const all = ends.map(({ promise }, n) =>
    semaphore
      .run(async () => {
        begun.push(n);
        await promise;
      })
      .catch(() => {}),
  );
  await turn();
  expect(begun).toEqual([0, 1]);
  ends[1]?.reject(new Error('it failed'));
  await turn();
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  await Promise.all(all);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  expect(await semaphore.run(async () => 'again')).toBe('again');
});
