import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { AuditEntry } from '../../../src/contract/tenancy/audit.ts';
import type { RunningStub } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../../src/extensions/saas-stub/server/start-server.ts';
import { bundleServer } from '../../support/bundle-server.ts';
import type { ChildServer } from '../../support/child-server.ts';
import { removeDir, startChild, temporaryDir } from '../../support/child-server.ts';
import { UnixClient } from '../../support/unix-client.ts';
import { EventReceiver } from './event-receiver.ts';
import { seededRandom } from './seeded-random.ts';

const KILLS = Number(process.env.AUDIT_KILLS ?? 8);
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000);
const LANES = 8;

const random = seededRandom(SEED);
const dir = temporaryDir();
let stub: RunningStub;
let program: string;
let server: ChildServer;
let receiver: EventReceiver;

/** What was answered as done, by the action of its record. */
const answered: Record<string, string[]> = {
  createSandbox: [],
  destroySandbox: [],
  execInSandbox: [],
  extendSandbox: [],
  grantCredits: [],
};

const start = () =>
  startChild(program, dir, {
    SANDBOXER_CONFIG: join(dir, 'config.yaml'),
    TEST_RECEIVER: join(dir, 'receiver.sock'),
  });

beforeAll(async () => {
  stub = await startStubServer();
  writeFileSync(join(dir, 'stub.key'), stub.key);
  writeFileSync(
    join(dir, 'config.yaml'),
    `extensions: { saas_stub: { default: { url: "${stub.url}", key_file: "${join(dir, 'stub.key')}" } } }
timing: { lease: 5s, first_retry: 1s, longest_retry: 2s, reconcile: 2s, meter_tick: 1s, wait: 20s }
`,
  );
  receiver = new EventReceiver(random);
  await receiver.listen(join(dir, 'receiver.sock'));
  program = await bundleServer(join(import.meta.dirname, 'server.ts'), 'audit-kill');
  server = await start();
  const client = new UnixClient(server.socketPath, 1);
  await client.expect(200, 'POST', '/v1/credits/grants', { amount_micro_usd: 1_000_000_000 });
  client.close();
});

afterAll(async () => {
  await server?.kill();
  await receiver?.close();
  await stub?.stop();
  removeDir(dir);
});

/** Each request is sent once: what is not answered may be recorded or not. */
async function lane(client: UnixClient, n: number, stopped: () => boolean): Promise<void> {
  const mine: string[] = [];
  const done = async (action: string, target: string, method: string, path: string, json?: object) => {
    const { status } = await client.call(method, path, json);
    if (status < 300) answered[action]?.push(target);
    return status < 300;
  };
  for (let turn = 0; !stopped(); turn += 1) {
    const roll = random();
    const id = mine[Math.floor(random() * mine.length)];
    const wait = random() < 0.5 ? 'none' : 'ready';
    try {
      if (id === undefined || roll < 0.4) {
        const wanted = `a-${n}-${turn}`;
        const json = { id: wanted, profile: 'profile.stub-metered', ttl: '30m' };
        if (await done('createSandbox', wanted, 'POST', `/v1/sandboxes?wait=${wait}`, json))
          mine.push(wanted);
      } else if (roll < 0.6) {
        mine.splice(mine.indexOf(id), 1);
        await done('destroySandbox', id, 'DELETE', `/v1/sandboxes/${id}?wait=none`);
      } else if (roll < 0.85) {
        const json = { command: ['/bin/true'] };
        await done('execInSandbox', id, 'POST', `/v1/sandboxes/${id}/exec`, json);
      } else if (roll < 0.93) {
        await done('extendSandbox', id, 'POST', `/v1/sandboxes/${id}/extend`, { ttl: '20m' });
      } else {
        const json = { amount_micro_usd: 1, reference: `g-${n}-${turn}` };
        await done('grantCredits', json.reference, 'POST', '/v1/credits/grants', json);
      }
    } catch {
      await sleep(5 + random() * 20);
    }
  }
}

async function records(client: UnixClient): Promise<AuditEntry[]> {
  const all: AuditEntry[] = [];
  for (let cursor = ''; ; ) {
    const page: { items: AuditEntry[]; next_cursor: string | null } = await client.expect(
      200,
      'GET',
      `/v1/audit?limit=1000${cursor}`,
    );
    all.push(...page.items);
    if (page.next_cursor === null) return all;
    cursor = `&cursor=${page.next_cursor}`;
  }
}

interface Listed {
  readonly items: readonly { readonly sandbox_id: string }[];
  readonly next_cursor: string | null;
}

it(`audit log: ${KILLS} kills lose no record of what was answered or made (SEED=${SEED})`, async () => {
  const client = new UnixClient(server.socketPath, LANES + 2);
  let stopped = false;
  const lanes = Array.from({ length: LANES }, (_, n) => lane(client, n, () => stopped));
  // On a slow machine more kills follow, until the server lived long enough once for each kind of request.
  const isUnanswered = () => Object.values(answered).some((targets) => targets.length === 0);
  for (let kills = 0; kills < KILLS || (isUnanswered() && kills < 5 * KILLS); kills += 1) {
    await sleep(250 + random() * 500 + Math.max(0, kills - KILLS) * 100);
    await server.kill();
    server = await start();
  }
  await sleep(200);
  await server.kill();
  stopped = true;
  await Promise.all(lanes);
  server = await start();

  const recorded = new Map<string, number>();
  for (const { action, target, outcome } of await records(client)) {
    if (outcome !== 'ok') continue;
    const name = `${action} ${target}`;
    recorded.set(name, (recorded.get(name) ?? 0) + 1);
  }
  const counted = new Map<string, number>();
  for (const [action, targets] of Object.entries(answered)) {
    expect(targets.length, action).toBeGreaterThan(0);
    for (const target of targets)
      counted.set(`${action} ${target}`, (counted.get(`${action} ${target}`) ?? 0) + 1);
  }
  const lost = [...counted].filter(([name, count]) => (recorded.get(name) ?? 0) < count);
  expect(lost).toEqual([]);
  // Also those whose client never heard of them.
  const nameless: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: Listed = await client.expect(
      200,
      'GET',
      `/v1/sandboxes?limit=500${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    for (const { sandbox_id: id } of page.items) if (!recorded.has(`createSandbox ${id}`)) nameless.push(id);
    cursor = page.next_cursor;
  }
  expect(nameless).toEqual([]);
  client.close();
}, 300_000);

it('audit log: a create whose client hung up is recorded with the sandbox it made', async () => {
  const client = new UnixClient(server.socketPath, 1);
  const json = { profile: 'profile.stub-metered', id: 'unheard' };
  const hangsUp = new UnixClient(server.socketPath, 1);
  const sent = hangsUp.call('POST', '/v1/sandboxes?wait=ready', json).catch(() => {});
  const made = async () => (await client.call('GET', '/v1/sandboxes/unheard')).status === 200;
  for (const endsAt = Date.now() + 20_000; !(await made()); await sleep(1))
    if (Date.now() > endsAt) throw new Error('the sandbox was not made');
  hangsUp.close();
  await sent;
  await sleep(500);
  const { items } = await client.expect<{ items: AuditEntry[] }>(200, 'GET', '/v1/audit?target=unheard');
  expect(items).toMatchObject([{ action: 'createSandbox', outcome: 'ok' }]);
  client.close();
});
