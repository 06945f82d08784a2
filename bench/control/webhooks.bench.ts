import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { deliverEvents } from '../../src/control/events/deliver-events.ts';
import type { ControlPorts } from '../../src/control/ports/control-ports.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import type { EventSink } from '../../src/core/events/event-sink.ts';
import { systemClock } from '../../src/main/ports/system-clock.ts';
import { SealedBox } from '../../src/secrets/sealed-box.ts';
import { newWebhookSecret } from '../../src/sinks/webhook-signature.ts';
import { WebhookSink } from '../../src/sinks/webhook-sink.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { sampleEvent } from '../../src/store/suite/sample-records.ts';
import { removeDir, temporaryDir } from '../../tests/support/child-server.ts';
import type { Benchmark } from '../harness.ts';
import { summarize } from '../harness.ts';

const RECEIVER_MS = 5;
const SUBJECTS = 50;

/** Receiver that waits for a while before it answers with success. */
async function startReceiver(): Promise<{ url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => setTimeout(() => response.writeHead(204).end(), RECEIVER_MS));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function webhookTo(url: string, concurrency: number): WebhookSink {
  const box = new SealedBox(Buffer.alloc(32, 1));
  const id = `bench-${concurrency}`;
  const webhook = {
    id,
    workspaceId: 'default',
    version: 1,
    url,
    types: null,
    description: '',
    sealedSecret: box.seal(newWebhookSecret(), `webhook:${id}`),
    previousSecret: null,
    createdAt: 0,
    enabledAt: 0,
    disabled: null,
    eventSeq: 0,
  };
  return new WebhookSink(webhook, {
    box,
    clock: systemClock,
    policy: { allowPrivate: true, allowHttp: true },
    source: 'urn:bench',
    userAgent: 'bench',
    maxTries: 3,
    timeoutMs: 10_000,
    longestRetryMs: 1_000,
    concurrency,
  });
}

export const benchmark: Benchmark = {
  name: 'control.webhooks',
  description:
    'signed events per second to a receiver that takes 5 ms each, 8 sandboxes at a time; baseline: one',
  async run(context) {
    const dir = temporaryDir();
    const store = await SqliteStore.open({ path: join(dir, 'bench.db') });
    const receiver = await startReceiver();
    const ids = { next: (prefix: string) => prefix, random: Math.random };
    const deps = { store, clock: systemClock, ids, settings: DEFAULT_SETTINGS } as unknown as ControlPorts;
    const events = context.iterations(1_000);
    try {
      const drafts = Array.from({ length: events }, (_, i) =>
        sampleEvent(`sbx-${i % SUBJECTS}`, { id: `evt_${i}` }),
      );
      await store.transaction('fill', (tx) => tx.events.append(drafts));
      const deliverAll = async (sink: EventSink): Promise<number> => {
        await store.transaction('rewind', (tx) => tx.outbox.setCursor({ sinkId: sink.id, cursor: 0 }));
        const startedAt = performance.now();
        while ((await deliverEvents(deps, sink, new AbortController().signal)).more) {}
        return events / ((performance.now() - startedAt) / 1000);
      };
      const [many, one] = [webhookTo(receiver.url, 8), webhookTo(receiver.url, 1)];
      const samples: number[] = [];
      const baseline: number[] = [];
      for (let round = 0; round < (context.smoke ? 1 : 5); round++) {
        baseline.push(await deliverAll(one));
        samples.push(await deliverAll(many));
      }
      many.close();
      one.close();
      samples.sort((a, b) => a - b);
      baseline.sort((a, b) => a - b);
      const details = { receiver_ms: RECEIVER_MS, subjects: SUBJECTS, events };
      return [summarize({ name: 'control.webhooks', unit: 'per_s', samples, baseline, details })];
    } finally {
      receiver.close();
      await store.close();
      removeDir(dir);
    }
  },
};
