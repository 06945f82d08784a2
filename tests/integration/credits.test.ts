import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reconcileExtension } from '../../src/control/hosts/reconcile-extension.ts';
import { auditLedger } from '../../src/control/money/audit-ledger.ts';
import type { ControlPorts } from '../../src/control/ports/control-ports.ts';
import { DEFAULT_SETTINGS } from '../../src/control/ports/settings.ts';
import type { Clock } from '../../src/core/ports/clock.ts';
import type { Extension, Handle } from '../../src/core/ports/extension.ts';
import type { Caller } from '../../src/core/tenancy/caller.ts';
import { DEFAULT_PRICE } from '../../src/extensions/saas-stub/config.ts';
import { createSaasStubExtension } from '../../src/extensions/saas-stub/create.ts';
import { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import { WorldTransport } from '../../src/extensions/saas-stub/world/world-transport.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { sampleAttempt, sampleSandbox, sampleTransfer } from '../../src/store/suite/sample-records.ts';
import type { Fixture } from './http/fixture.ts';
import { startFixture } from './http/fixture.ts';

const clock: Clock = { now: () => Date.now(), sleep: (ms, signal) => sleep(ms, undefined, { signal }) };
const world = new StubWorld({ clock, createMs: 1, deleteMs: 1, faults: [] });
/** A thousandth of a dollar to make one, then ten micro-dollars a second. */
const price = {
  ...DEFAULT_PRICE,
  version: 'worked-1',
  create_fee_micro_usd: 1_000,
  vcpu_pico_usd_per_second: '10000000',
  gib_pico_usd_per_second: '0',
};
const PROFILE = {
  id: 'profile.stub-paid',
  version: '1.0.0',
  extension: 'ext.saas-stub',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '1h', max: '2h' },
};
/** The fee, and ten minutes ahead with two of grace. */
const NEEDED = 1_000 + 10 * (10 + 2) * 60;

let f: Fixture;
beforeAll(async () => {
  const transport = new WorldTransport(world, clock);
  // A vendor in earnest, and dearer than the demo beside it.
  const dearer = { ...price, version: 'vendor-1', create_fee_micro_usd: 5_000 };
  const vendor = { id: 'ext.vendor', transport, price: dearer, capabilities: { demo: false } };
  f = await startFixture({
    extensions: [createSaasStubExtension({ transport, price }), createSaasStubExtension(vendor)],
  });
  const workspace = { workspace_id: 'paid', org_id: 'default' };
  expect((await f.call('POST', '/v1/workspaces', { json: workspace })).status).toBe(201);
  expect((await call('POST', '/v1/profiles', { json: PROFILE })).status).toBe(201);
});
afterAll(() => f.close());

/** In a workspace of its own, which has no credits to begin with. */
const call = (method: string, path: string, options: { json?: unknown } = {}) =>
  f.call(method, path, { ...options, headers: { 'sandboxer-workspace': 'paid' } });
const post = (path: string, json: unknown) => call('POST', path, { json });
const create = (over: object = {}) => post('/v1/sandboxes', { profile: PROFILE.id, ...over });
const balance = async () => (await call('GET', '/v1/credits')).json;

describe('credits', () => {
  it('credits refuse what cannot be paid for, with everything a caller needs to decide', async () => {
    const refused = await create();
    expect(refused.status).toBe(402);
    expect(refused.json).toMatchObject({
      code: 'SBX_INSUFFICIENT_CREDITS',
      retryable: false,
      scope: 'workspace',
      shortfall_micro_usd: NEEDED,
      available_micro_usd: 0,
      affordable_seconds: 0,
      cheapest_alternative: { extension: 'ext.saas-stub', needed_micro_usd: NEEDED },
    });
    expect(world.objects()).toHaveLength(0);
  });

  it('credits hold ten minutes of an hour, and give back what was not used', async () => {
    await post('/v1/credits/grants', { amount_micro_usd: 20_000, kind: 'top_up' });
    const made = await create({ id: 'paid', consumer: { run_id: 'r1' } });
    expect(made.status).toBe(201);
    expect(await balance()).toMatchObject({ available_micro_usd: 20_000 - NEEDED, held_micro_usd: NEEDED });
    const [object] = world.objects();
    const lifeMs = (object?.endsAt ?? 0) - Date.now();
    expect(lifeMs).toBeGreaterThan(11 * 60_000);
    expect(lifeMs).toBeLessThanOrEqual(12 * 60_000);
    expect((await call('DELETE', '/v1/sandboxes/paid')).status).toBe(200);
    const after = await balance();
    expect(after.held_micro_usd).toBe(0);
    expect(after.spent_micro_usd).toBeGreaterThanOrEqual(1_000);
    expect(after.available_micro_usd + after.spent_micro_usd).toBe(20_000);
    const { items } = (await call('GET', '/v1/events?limit=1000')).json;
    const billed = items.find(({ type }: { type: string }) => type.endsWith('sandbox.billed'));
    expect(billed.data.details).toMatchObject({
      charged_micro_usd: after.spent_micro_usd,
      run_id: 'r1',
      evidence: 'own_clock',
    });
  });

  it('credits are reported and exported to the micro-dollar, the same bytes each time', async () => {
    const { spent_micro_usd: spent } = await balance();
    const to = new Date(Date.now() + 1_000).toISOString();
    for (const by of ['day', 'profile', 'extension', 'actor', 'key', 'run', 'sandbox']) {
      const report = (await call('GET', `/v1/credits/usage?by=${by}`)).json;
      expect(report.total_micro_usd).toBe(spent);
      if (by === 'run') expect(report.items).toMatchObject([{ name: 'r1', amount_micro_usd: spent }]);
    }
    for (const format of ['focus', 'cloudevents']) {
      const read = () => call('GET', `/v1/credits/export?format=${format}&to=${to}`);
      const [first, second] = [await read(), await read()];
      expect(first.json.total_micro_usd).toBe(spent);
      expect(second.text).toBe(first.text);
    }
    const { content } = (await call('GET', `/v1/credits/export?format=focus&to=${to}`)).json;
    const [header, ...rows] = content.trimEnd().split('\n');
    expect(header.split(',').filter((name: string) => !name.startsWith('x_'))).toHaveLength(21);
    const column = header.split(',').indexOf('BilledCost');
    const sum = rows.reduce((total: number, row: string) => total + Number(row.split(',')[column]), 0);
    expect(Math.round(sum * 1_000_000)).toBe(spent);
    const lines = (await call('GET', `/v1/credits/export?format=cloudevents&to=${to}`)).json.content;
    const events = lines
      .trimEnd()
      .split('\n')
      .map((line: string) => JSON.parse(line));
    const told = events.reduce(
      (total: number, { data }: { data: { amount_micro_usd: number } }) => total + data.amount_micro_usd,
      0,
    );
    expect(told).toBe(spent);
    expect(new Set(events.map(({ id }: { id: string }) => id)).size).toBe(events.length);
  });

  it('credits have budgets that are hard, and report when they begin anew', async () => {
    const budget = { scope: 'run', period: 'day', limit_micro_usd: NEEDED + 10 };
    const { budget_id } = (await post('/v1/budgets', budget)).json;
    expect((await create({ id: 'one', consumer: { run_id: 'r2' } })).status).toBe(201);
    const refused = await create({ id: 'two', consumer: { run_id: 'r2' } });
    expect(refused.json).toMatchObject({
      code: 'SBX_BUDGET_EXCEEDED',
      retryable: false,
      scope: 'run',
      budget_id,
      shortfall_micro_usd: NEEDED - 10,
      resets_at: expect.stringMatching(/T00:00:00.000Z$/),
    });
    const [shown] = (await call('GET', '/v1/budgets')).json.items;
    expect(shown.used).toMatchObject([{ name: 'r2', held_micro_usd: NEEDED, left_micro_usd: 10 }]);
    const { items } = (await call('GET', '/v1/events?limit=1000')).json;
    const alerts = items.filter(({ type }: { type: string }) => type.endsWith('budget.alert'));
    expect(alerts).toMatchObject([{ data: { details: { budget_id, percent: 80 } } }]);
    await call('DELETE', '/v1/sandboxes/one');
    expect((await call('DELETE', `/v1/budgets/${budget_id}`)).status).toBe(204);
  });

  it('limit how many sandboxes there are', async () => {
    const set = await call('PUT', '/v1/credits/limits', {
      json: { max_living: 0, creates_per_minute: null },
    });
    expect(set.status).toBe(200);
    expect((await create()).json.code).toBe('SBX_QUOTA_EXCEEDED');
    await call('PUT', '/v1/credits/limits', { json: { max_living: null, creates_per_minute: 1 } });
    expect((await create()).json.code).toBe('SBX_RATE_LIMITED');
    await call('PUT', '/v1/credits/limits', { json: { max_living: null, creates_per_minute: null } });
  });

  it('credits count a sandbox as running that its backend runs, whatever we believe', async () => {
    await post('/v1/credits/grants', { amount_micro_usd: NEEDED, kind: 'top_up' });
    const { uid } = (await create({ id: 'resumed' })).json;
    expect((await call('POST', '/v1/sandboxes/resumed/pause')).json.state).toBe('paused');
    const row = () => f.store.read('row', (tx) => tx.sandboxes.get(uid));
    const meter = async () => (await f.store.read('meter', (tx) => tx.meters.forSandbox(uid)))[0];
    expect((await meter())?.rate).toBe(0n);
    // The backend resumed it, and nobody heard of that.
    const { control } = f;
    const extension = control.extensions.get('ext.saas-stub') as Extension;
    const { signal } = new AbortController();
    const context = { signal, clock, log: control.log, host: null };
    await extension.resume?.((await row())?.handle as Handle, context);
    await sleep(5);
    await reconcileExtension(control, extension, new Set(), signal);
    expect(await row()).toMatchObject({ state: 'active', pauseKind: null });
    expect((await meter())?.rate).toBe((await meter())?.runningRate);
    await reconcileExtension(control, extension, new Set(), signal);
    expect((await row())?.state).toBe('active');
    await call('DELETE', '/v1/sandboxes/resumed');
  });

  it('credits agree with themselves, with the backends and with an invoice', async () => {
    expect((await call('GET', '/v1/credits/audit')).json).toMatchObject({ findings: [], open_holds: 0 });
    const { items } = (await call('GET', '/v1/credits/transfers?limit=1000')).json;
    const owed = new Map<string, number>();
    for (const { kind, sandbox_id, amount_micro_usd } of items) {
      if (kind === 'cost' || kind === 'insurance')
        owed.set(sandbox_id, (owed.get(sandbox_id) ?? 0) + amount_micro_usd);
    }
    const [first, second] = [...owed];
    const line = (sandbox: string, amount: number) => ({
      extension: 'ext.saas-stub',
      sandbox,
      amount_micro_usd: amount,
    });
    const invoice = [
      line(first?.[0] as string, first?.[1] as number),
      line(second?.[0] as string, (second?.[1] as number) * 2),
      line('sbx_nobody', 5),
    ];
    const report = (await post('/v1/credits/reconcile', { invoice, apply: true })).json;
    expect(report.counts).toEqual({ match: 1, billed_more: 1, foreign: 1 });
    const written = report.items.find(({ kind }: { kind: string }) => kind === 'billed_more').correction;
    const again = (await post('/v1/credits/reconcile', { invoice })).json;
    expect(again.counts).toEqual({ match: 2, foreign: 1 });
    const span = { from: '2020-01-01T00:00:00Z', to: new Date(Date.now() + 1_000).toISOString() };
    const [known] = invoice;
    const short = (await post('/v1/credits/reconcile', { invoice: [known], ...span })).json;
    expect(short.counts).toEqual({ match: 1, not_billed: owed.size - 1 });
    const left = short.items.filter(({ kind }: { kind: string }) => kind === 'not_billed');
    for (const { sandbox, ours_micro_usd: ours, theirs_micro_usd: theirs } of left) {
      expect(ours).toBe((owed.get(sandbox) as number) * (sandbox === second?.[0] ? 2 : 1));
      expect(theirs).toBe(0);
    }
    const before = (await post('/v1/credits/reconcile', { invoice: [known], from: span.from, to: span.from }))
      .json;
    expect(before.counts).toEqual({ match: 1 });
    await post('/v1/credits/reconcile', { invoice: [known], ...span, apply: true });
    const settled = (await post('/v1/credits/reconcile', { invoice: [known], ...span })).json;
    expect(settled.counts).toEqual({ match: 1 });
    const { json } = await call('GET', '/v1/credits/transfers?limit=1000');
    const correction = json.items.find(({ transfer_id }: { transfer_id: string }) => transfer_id === written);
    expect(correction.linked_to).toMatch(/:cost$|:establishment$/);
    const meters = await f.store.read('meters', (tx) => tx.meters.forSandbox(first?.[0] as string));
    expect(meters.map(({ evidence }) => evidence)).toContain('provider_exact');
    expect((await call('GET', '/v1/credits/audit')).json.findings).toEqual([]);
  });
});

describe('the cost of own hosts', () => {
  it('a host’s cost: divided among what ran there and compared with the cheapest vendor, never with a demo', async () => {
    const capacity = { sandboxes: null, cpu: 8, memory_mb: 16_384 };
    const ssh = { destination: 'own.invalid', host_keys: ['ssh-ed25519 AAAA'] };
    const json = { ssh, capacity, cost_micro_usd_per_hour: 400_000 };
    expect((await f.call('PUT', '/v1/hosts/own', { json })).status).toBe(200);
    const now = Date.now();
    const hour = 3_600_000;
    await f.store.transaction('past', async (tx) => {
      const host = await tx.hosts.get('own');
      if (host) await tx.hosts.update({ ...host, createdAt: now - 24 * hour });
      for (const [n, hours] of [18, 12].entries()) {
        const uid = `sbx_past${n}`;
        await tx.sandboxes.insert(sampleSandbox({ uid, state: 'destroyed', createdAt: now - hours * hour }));
        await tx.attempts.insert(
          sampleAttempt(uid, {
            hostId: 'own',
            reserved: { millicpu: 4_000, memoryMb: 2_048 },
            state: 'gone',
            startedAt: now - hours * hour,
            endedAt: now - (hours - 6) * hour,
          }),
        );
      }
    });
    const report = (await f.call('GET', '/v1/credits/hosts')).json;
    const [own] = report.items.filter(({ host }: { host: string }) => host === 'own');
    expect(own.used_micro_usd + own.idle_micro_usd).toBe(own.total_micro_usd);
    expect(own.sandboxes).toBe(2);
    expect(own.utilisation).toBeCloseTo(0.25, 2);
    // Four processors for twelve hours at ten micro-dollars a second each, and two fees.
    expect(own).toMatchObject({
      cheapest_elsewhere: 'ext.vendor',
      elsewhere_micro_usd: 2 * (5_000 + 4 * 10 * 6 * 3600),
    });
    expect(own.saved_micro_usd).toBe(own.elsewhere_micro_usd - own.total_micro_usd);
    expect(own.break_even_utilisation).toBeGreaterThan(1);
    const { own_machines: machines } = (await f.call('GET', '/v1/credits/usage')).json;
    expect(machines).toMatchObject({
      sandboxes: 2,
      elsewhere_micro_usd: own.elsewhere_micro_usd,
      break_even_utilisation: own.break_even_utilisation,
    });
    expect(machines.saved_micro_usd).toBe(machines.elsewhere_micro_usd - machines.total_micro_usd);
  });
});

describe('an audit', () => {
  it('the credit audit finds a row that was changed behind our back', async () => {
    const root = mkdtempSync(join(tmpdir(), 'sandboxer-audit-'));
    const path = join(root, 'state', 'sandboxer.db');
    const caller = { actor: 'adm', scopes: new Set(['server']) } as unknown as Caller;
    const audit = async () => {
      const store = await SqliteStore.open({ path });
      try {
        const control = { store, clock, settings: DEFAULT_SETTINGS } as unknown as ControlPorts;
        return (await auditLedger(control, caller)).findings.map(({ invariant }) => invariant);
      } finally {
        await store.close();
      }
    };
    try {
      const store = await SqliteStore.open({ path });
      for (const id of ['a', 'b', 'c']) {
        await store.transaction('t', (tx) => tx.ledger.transfer([sampleTransfer(id)]));
      }
      await store.close();
      expect(await audit()).toEqual([]);
      const database = new DatabaseSync(path);
      database.exec('DROP TRIGGER transfers_are_not_changed');
      database.exec("UPDATE transfers SET amount_micro_usd = 2000000 WHERE id = 'b'");
      database.close();
      expect(await audit()).toEqual(expect.arrayContaining(['I10', 'I1']));
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });
});
