import { request } from 'node:http';
import { join } from 'node:path';
import { removeDir, startChild, temporaryDir } from '../../tests/support/child-server.ts';
import { UnixClient } from '../../tests/support/unix-client.ts';
import { BENCH_PROFILE } from '../control/profile.ts';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';

const SUBSCRIBERS = 1_000;
const EVENTS_PER_SECOND = 1_000;
const SECONDS = 10;
/** requested, provisioning, ready, destroying, destroyed */
const EVENTS_PER_LIFE = 5;

/** Counts what one subscriber gets; a few also read when each event was made. */
class Subscriber {
  received = 0;
  readonly delays: number[] = [];
  #tail = '';

  constructor(socketPath: string, timed: boolean, opened: () => void) {
    const outgoing = request(
      { socketPath, path: '/v1/events', headers: { accept: 'text/event-stream' } },
      (response) => {
        opened();
        response.on('data', (chunk: Buffer) => (timed ? this.#read(chunk) : this.#count(chunk)));
        response.on('error', () => {});
      },
    );
    outgoing.on('error', () => {});
    outgoing.end();
  }

  #count(chunk: Buffer): void {
    for (let at = chunk.indexOf('\ndata: '); at >= 0; at = chunk.indexOf('\ndata: ', at + 1))
      this.received += 1;
  }

  #read(chunk: Buffer): void {
    const now = Date.now();
    const text = this.#tail + chunk.toString();
    const end = text.lastIndexOf('\n\n');
    if (end < 0) {
      this.#tail = text;
      return;
    }
    this.#tail = text.slice(end);
    for (const [, time] of text.slice(0, end).matchAll(/"time":"([^"]+)"/g)) {
      this.received += 1;
      this.delays.push(now - Date.parse(time as string));
    }
  }
}

export const benchmark: Benchmark = {
  name: 'events.sse',
  description: '1,000 subscribers, 1,000 events a second: none lost, delivery p99 (target ≤ 100 ms)',
  async run(context) {
    const count = context.smoke ? 20 : SUBSCRIBERS;
    const lives = context.smoke ? 5 : (EVENTS_PER_SECOND * SECONDS) / EVENTS_PER_LIFE;
    const dir = temporaryDir();
    const server = await startChild(join(import.meta.dirname, '..', 'control', 'control-server.ts'), dir);
    const client = new UnixClient(server.socketPath, 16);
    try {
      await client.expect(201, 'POST', '/v1/profiles', BENCH_PROFILE);
      const before = await client.expect<{ items: unknown[] }>(200, 'GET', '/v1/events?limit=500');
      const subscribers: Subscriber[] = [];
      await new Promise<void>((resolve) => {
        let open = 0;
        for (let at = 0; at < count; at++)
          subscribers.push(
            new Subscriber(server.socketPath, at % 100 === 0, () => ++open === count && resolve()),
          );
      });
      const startedAt = Date.now();
      const pace = (EVENTS_PER_LIFE / EVENTS_PER_SECOND) * 1000;
      const running: Promise<unknown>[] = [];
      for (let life = 0; life < lives; life++) {
        const wait = startedAt + life * pace - Date.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        running.push(
          client
            .expect<{ sandbox_id: string }>(201, 'POST', '/v1/sandboxes', { profile: BENCH_PROFILE.id })
            .then(({ sandbox_id }) => client.expect(200, 'DELETE', `/v1/sandboxes/${sandbox_id}`)),
        );
      }
      await Promise.all(running);
      const seconds = (Date.now() - startedAt) / 1000;
      const expected = lives * EVENTS_PER_LIFE;
      const endsAt = Date.now() + 20_000;
      while (subscribers.some(({ received }) => received < expected) && Date.now() < endsAt)
        await new Promise((resolve) => setTimeout(resolve, 50));
      const short = subscribers.filter(({ received }) => received < expected).length;
      if (short > 0)
        throw new Error(
          `${short} of ${count} subscribers did not get all of ${expected} events (${before.items.length} were there before)`,
        );
      const samples = subscribers.flatMap(({ delays }) => delays).sort((a, b) => a - b);
      const details = {
        subscribers: count,
        events: expected,
        events_per_s: Math.round(expected / seconds),
        lost: 0,
      };
      return [summarize({ name: 'events.sse', unit: 'ms', samples, details })];
    } finally {
      client.close();
      server.process.kill('SIGKILL');
      await server.stop();
      removeDir(dir);
    }
  },
};
