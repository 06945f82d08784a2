import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import { BENCH_PROFILE } from '../control/profile.ts';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';
import { Subscriber } from './subscriber.ts';

const SUBSCRIBERS = 1_000;
const EVENTS_PER_SECOND = 1_000;
const SECONDS = 10;
const WARM_UP_LIVES = 600;
/** Events of one sandbox: requested, provisioning, ready, destroying, destroyed. */
const EVENTS_PER_LIFE = 5;

/** Creates and destroys, `perSecond` a second as far as the server can. Resolves with the time that it took. */
async function live(client: UnixClient, lives: number, perSecond: number): Promise<number> {
  const startedAt = Date.now();
  const running: Promise<unknown>[] = [];
  for (let life = 0; life < lives; life++) {
    const wait = startedAt + (life / perSecond) * 1000 - Date.now();
    if (wait > 0) await sleep(wait);
    const created = client.expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', {
      profile: BENCH_PROFILE.id,
    });
    running.push(
      created.then(({ sandbox_id }) => client.expect(200, 'DELETE', `/v1/sandboxes/${sandbox_id}`)),
    );
  }
  await Promise.all(running);
  return (Date.now() - startedAt) / 1000;
}

async function allArrived(subscribers: readonly Subscriber[], expected: number): Promise<void> {
  const endsAt = Date.now() + 20_000;
  while (subscribers.some(({ received }) => received < expected) && Date.now() < endsAt) await sleep(50);
  const wrong = subscribers.filter(({ received }) => received !== expected).length;
  if (wrong > 0)
    throw new Error(`${wrong} of ${subscribers.length} subscribers did not get exactly ${expected} events`);
}

export const benchmark: Benchmark = {
  name: 'events.sse',
  description: '1,000 subscribers, 1,000 events a second: none lost, delivery p99 (target ≤ 100 ms)',
  async run(context) {
    const lives = context.smoke ? 5 : (EVENTS_PER_SECOND * SECONDS) / EVENTS_PER_LIFE;
    const dir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, '..', 'control', 'control-server.ts'), dir);
    const client = new UnixClient(server.socketPath, 16);
    const subscribers: Subscriber[] = [];
    try {
      await client.expect(201, 'POST', '/v1/profiles', BENCH_PROFILE);
      const perSecond = EVENTS_PER_SECOND / EVENTS_PER_LIFE;
      await live(client, context.smoke ? 1 : WARM_UP_LIVES, perSecond);
      for (let at = 0; at < (context.smoke ? 20 : SUBSCRIBERS); at++)
        subscribers.push(new Subscriber(server.socketPath, at % 100 === 0));
      await Promise.all(subscribers.map(({ opened }) => opened));
      const seconds = await live(client, lives, perSecond);
      const events = lives * EVENTS_PER_LIFE;
      await allArrived(subscribers, events);
      const samples = subscribers.flatMap(({ delays }) => delays).sort((a, b) => a - b);
      const details = {
        subscribers: subscribers.length,
        events,
        events_per_s: Math.round(events / seconds),
        lost: 0,
      };
      return [summarize({ name: 'events.sse', unit: 'ms', samples, details })];
    } finally {
      for (const subscriber of subscribers) subscriber.close();
      client.close();
      server.process.kill('SIGKILL');
      await server.stop();
      removeDir(dir);
    }
  },
};
