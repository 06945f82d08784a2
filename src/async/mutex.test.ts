import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Mutex } from './mutex.ts';

it('lock: a free mutex is held at once, others get it in the order of their calls', async () => {
  const mutex = new Mutex();
  expect(mutex.lock()).toBeNull();
  const seen: string[] = [];
  void mutex.lock()?.then(() => seen.push('second'));
  void mutex.lock()?.then(() => seen.push('third'));
  await turn();
  expect(seen).toEqual([]);
  mutex.unlock();
  await turn();
  expect(seen).toEqual(['second']);
  mutex.unlock();
  await turn();
  expect(seen).toEqual(['second', 'third']);
  mutex.unlock();
  expect(mutex.lock()).toBeNull();
});

it('unlock: the lock passes to the waiting call, not to a later one', async () => {
  const mutex = new Mutex();
  expect(mutex.lock()).toBeNull();
  const waiting = mutex.lock();
  mutex.unlock();
  expect(mutex.lock()).not.toBeNull();
  await waiting;
});

it('run: pieces of work do not overlap, and a failure frees the lock', async () => {
  const mutex = new Mutex();
  const seen: string[] = [];
  const work = (name: string, fails = false) =>
    mutex.run(async () => {
      seen.push(`${name}+`);
      await turn();
      seen.push(`${name}-`);
      if (fails) throw new Error(name);
      return name;
    });
  const results = await Promise.allSettled([work('one', true), work('two')]);
  expect(seen).toEqual(['one+', 'one-', 'two+', 'two-']);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
});
