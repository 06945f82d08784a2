import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Channel } from './channel.ts';
import { KeptChannels } from './kept-channels.ts';

function channel(): Channel & { closed: number; isLost: boolean } {
  const made = {
    closed: 0,
    isLost: false,
    session: {
      close: async () => {
        made.closed += 1;
      },
    } as unknown as Channel['session'],
  };
  return made;
}

it('a kept channel is given out once, and never one that is lost', () => {
  const kept = new KeptChannels();
  const first = channel();
  kept.keep('a', first);
  expect(kept.take('a')).toBe(first);
  expect(kept.take('a')).toBeNull();
  expect(first.closed).toBe(0);
  const lost = channel();
  kept.keep('a', lost);
  lost.isLost = true;
  expect(kept.take('a')).toBeNull();
});

it('an unused kept channel is closed after a while, when another comes, and at the end', async () => {
  const kept = new KeptChannels(20);
  const [first, second, third] = [channel(), channel(), channel()];
  kept.keep('a', first);
  kept.keep('a', second);
  expect(first.closed).toBe(1);
  for (let tries = 0; tries < 20_000 && second.closed === 0; tries++) await sleep(10);
  expect(second.closed).toBe(1);
  kept.keep('b', third);
  kept.close();
  expect(third.closed).toBe(1);
});

it('a channel being opened is waited for, kept for the next, and closed when it is no longer wanted', async () => {
  const kept = new KeptChannels();
  const [first, second] = [channel(), channel()];
  const opening = Promise.withResolvers<Channel>();
  kept.keepOpening('a', opening.promise);
  expect(kept.take('a')).toBeNull();
  const soon = kept.takeSoon('a');
  opening.resolve(first);
  expect(await soon).toBe(first);
  expect(await kept.takeSoon('a')).toBeNull();

  const late = Promise.withResolvers<Channel>();
  kept.keepOpening('a', late.promise);
  kept.drop('a');
  late.resolve(second);
  for (let tries = 0; tries < 20_000 && second.closed === 0; tries++) await sleep(1);
  expect(second.closed).toBe(1);

  kept.keepOpening('a', Promise.reject(new Error('it has ended')));
  expect(await kept.takeSoon('a')).toBeNull();
});
