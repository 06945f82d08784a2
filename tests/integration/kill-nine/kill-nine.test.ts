import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningStub } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { bundleServer } from '../../support/bundle-server.ts';
import type { ChildServer } from '../../support/child-server.ts';
import { removeDir, startChild, temporaryDir } from '../../support/child-server.ts';
import { UnixClient } from '../../support/unix-client.ts';
import { EventReceiver } from './event-receiver.ts';
import type { Acknowledged } from './load.ts';
import { runLoad } from './load.ts';
import { seededRandom } from './seeded-random.ts';

const KILLS = Number(process.env.KILLS ?? 200);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const LANES = 8;
const GRANTED = 1_000_000_000;

const random = seededRandom(SEED);
const dir = temporaryDir();
let stub: RunningStub;
let program: string;
let server: ChildServer;
let receiver: EventReceiver;

interface Sandbox {
  readonly sandbox_id: string;
  readonly uid: string;
  readonly state: string;
}

function start(): Promise<ChildServer> {
  return startChild(program, dir, {
    SANDBOXER_CONFIG: join(dir, 'config.yaml'),
    TEST_RECEIVER: join(dir, 'receiver.sock'),
  });
}

beforeAll(async () => {
  stub = await startStubServer({ createMs: 15, deleteMs: 10 });
  writeFileSync(join(dir, 'stub.key'), stub.key);
  writeFileSync(
    join(dir, 'config.yaml'),
    `extensions: { saas_stub: { default: { url: "${stub.url}", key_file: "${join(dir, 'stub.key')}" } } }
timing: { lease: 5s, first_retry: 1s, longest_retry: 2s, reconcile: 2s, meter_tick: 1s, wait: 20s }
`,
  );
  receiver = new EventReceiver(random);
  await receiver.listen(join(dir, 'receiver.sock'));
  program = await bundleServer(join(import.meta.dirname, 'server.ts'), 'kill-nine');
  // Stopped in order once: what it compiled makes the many starts that follow short.
  await (await start()).stop();
  server = await start();
});

afterAll(async () => {
  await server?.kill();
  await receiver?.close();
  await stub?.stop();
  removeDir(dir);
});

async function listAll(client: UnixClient): Promise<Sandbox[]> {
  const all: Sandbox[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page: { items: Sandbox[]; next_cursor: string | null } = await client.expect(
      200,
      'GET',
      `/v1/sandboxes?limit=500${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`,
    );
    all.push(...page.items);
    cursor = page.next_cursor;
  }
  return all;
}

async function until(what: string, seconds: number, done: () => Promise<boolean>): Promise<void> {
  const endsAt = Date.now() + seconds * 1000;
  while (!(await done())) {
    if (Date.now() > endsAt) throw new Error(`not within ${seconds} s: ${what} (SEED=${SEED})`);
    await sleep(100);
  }
}

it(`the server loses and leaks nothing over ${KILLS} kills (SEED=${SEED})`, async () => {
  const client = new UnixClient(server.socketPath, LANES + 2);
  await client.expect(200, 'POST', '/v1/credits/grants', { amount_micro_usd: GRANTED, reference: 'test' });
  const acknowledged: Acknowledged = { created: new Map(), destroyed: new Set() };
  let stopped = false;
  const lanes = Array.from({ length: LANES }, (_, lane) =>
    runLoad({ client, random, acknowledged, stopped: () => stopped }, lane),
  );
  for (let kills = 0; kills < KILLS; kills++) {
    await sleep(20 + random() * 250);
    await server.kill();
    server = await start();
  }
  stopped = true;
  await Promise.all(lanes);

  const sandboxes = await listAll(client);
  const known = new Map(sandboxes.map((sandbox) => [sandbox.uid, sandbox]));
  for (const [id, uid] of acknowledged.created)
    expect(known.has(uid), `${id} was acknowledged and is lost`).toBe(true);

  await until('what was destroyed is gone', 180, async () => {
    const now = await listAll(client);
    return now.every(
      ({ sandbox_id, state }) => !acknowledged.destroyed.has(sandbox_id) || state === 'destroyed',
    );
  });
  for (const { sandbox_id, state } of await listAll(client)) {
    if (state !== 'destroyed') await client.call('DELETE', `/v1/sandboxes/${sandbox_id}?wait=none`);
  }
  await until('everything is destroyed', 180, async () =>
    (await listAll(client)).every(({ state }) => state === 'destroyed'),
  );
  await until(
    'the backend has nothing left',
    180,
    async () => Object.keys((await stub.objects()).objects).length === 0,
  );

  const last = await client.expect<{ items: { data: { seq: number }; subject: string; sequence: string }[] }>(
    200,
    'GET',
    '/v1/events?limit=1',
  );
  expect(last.items.length).toBe(1);
  const perSubject = new Map<string, number>();
  let after = 0;
  for (;;) {
    const page = await client.expect<{
      items: { data: { seq: number }; subject: string; sequence: string }[];
    }>(200, 'GET', `/v1/events?limit=500&after=${after}`);
    for (const event of page.items)
      perSubject.set(event.subject, Math.max(perSubject.get(event.subject) ?? 0, Number(event.sequence)));
    after = page.items.at(-1)?.data.seq ?? after;
    if (page.items.length < 500) break;
  }
  await until('every event was delivered', 180, async () =>
    [...perSubject].every(([subject, count]) => receiver.countOf(subject) === count),
  );
  expect(receiver.outOfOrder).toEqual([]);

  const balance = await client.expect<{
    available_micro_usd: number;
    held_micro_usd: number;
    spent_micro_usd: number;
  }>(200, 'GET', '/v1/credits');
  expect(balance.held_micro_usd).toBe(0);
  expect(balance.available_micro_usd + balance.spent_micro_usd).toBe(GRANTED);
  expect(balance.spent_micro_usd).toBeGreaterThan(0);
  console.log(
    `${KILLS} kills, ${sandboxes.length} sandboxes, ${after} events, ${receiver.received} deliveries, spent ${balance.spent_micro_usd} µ$`,
  );
  client.close();
}, 1_800_000);
