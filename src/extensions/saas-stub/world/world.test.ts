import { beforeEach, describe, expect, it } from 'vitest';
import type { FaultRule, StubRequest } from '../wire/protocol.ts';
import { StubWorld } from './world.ts';
import type { StubEvent } from './world-event.ts';

let now = 0;
const clock = { now: () => now };
const labels = (name: string, owner = 'us') => ({ sandbox_uid: name, attempt_id: name, owner });

function create(name: string, parts: Partial<Extract<StubRequest, { op: 'create' }>> = {}): StubRequest {
  const boot = { env: {}, files: [] };
  return { op: 'create', name, labels: labels(name), ends_at: 100_000, boot, faults: [], ...parts };
}

function rule(op: FaultRule['op'], kind: FaultRule['kind'], rest: Partial<FaultRule> = {}): FaultRule {
  return { op, kind, params: {}, ...rest };
}

const at = (name: string, owner = 'us') => ({ name, owner });

function bodyOf(world: StubWorld, request: StubRequest): { status: number; body: never } {
  const outcome = world.handle(request);
  if (outcome.kind !== 'reply') throw new Error(outcome.kind);
  return outcome.reply as never;
}

function stateOf(world: StubWorld, name: string): string | null {
  return world.objects().find((object) => object.name === name)?.state ?? null;
}

describe('the stub’s world', () => {
  beforeEach(() => {
    now = 1_000;
  });

  it('the stub’s world runs an object when its time has come', () => {
    const world = new StubWorld({ clock, createMs: 500 });
    expect(bodyOf(world, create('a')).status).toBe(201);
    expect(stateOf(world, 'a')).toBe('creating');
    expect(world.nextChangeAt()).toBe(1_500);
    now = 1_500;
    expect(stateOf(world, 'a')).toBe('running');
  });

  it('the stub’s world creates one object for each name', () => {
    const world = new StubWorld({ clock });
    bodyOf(world, create('a'));
    expect(bodyOf(world, create('a')).status).toBe(200);
    expect(bodyOf(world, create('a', { labels: labels('a', 'them') })).status).toBe(409);
    expect(world.objects()).toHaveLength(1);
  });

  it('the stub’s world bills running time, to the millisecond, at every reading', () => {
    const world = new StubWorld({ clock, createMs: 100 });
    bodyOf(world, create('a'));
    now = 2_100;
    expect(bodyOf(world, { op: 'usage', ...at('a') }).body).toEqual({ billed_ms: 1_000 });
    bodyOf(world, { op: 'pause', ...at('a') });
    now = 5_000;
    expect(bodyOf(world, { op: 'usage', ...at('a') }).body).toEqual({ billed_ms: 1_000 });
    bodyOf(world, { op: 'resume', ...at('a') });
    now = 5_500;
    bodyOf(world, { op: 'delete', ...at('a') });
    now = 9_000;
    expect(bodyOf(world, { op: 'usage', ...at('a') }).body).toEqual({ billed_ms: 1_500 });
  });

  it('the stub’s world ends an object exactly at its deadline', () => {
    const world = new StubWorld({ clock });
    bodyOf(world, create('a', { ends_at: 3_000 }));
    bodyOf(world, { op: 'extend', ...at('a'), ends_at: 4_000 });
    now = 50_000;
    expect(stateOf(world, 'a')).toBeNull();
    expect(bodyOf(world, { op: 'usage', ...at('a') }).body).toEqual({ billed_ms: 3_000 });
  });

  it('the stub’s world lists by owner, page by page', () => {
    const world = new StubWorld({ clock });
    for (const name of ['c', 'a', 'b']) bodyOf(world, create(name));
    bodyOf(world, create('x', { labels: labels('x', 'them') }));
    const first = bodyOf(world, { op: 'list', owner: 'us', cursor: null, limit: 2 });
    expect(first.body).toMatchObject({ items: [{ name: 'a' }, { name: 'b' }], next_cursor: 'b' });
    const second = bodyOf(world, { op: 'list', owner: 'us', cursor: 'b', limit: 2 });
    expect(second.body).toMatchObject({ items: [{ name: 'c' }], next_cursor: null });
  });

  it('the stub’s world is equal after it was saved and loaded', () => {
    const world = new StubWorld({ clock, faults: [rule('delete', 'stuck_teardown', { times: 1 })] });
    bodyOf(world, create('a', { faults: [rule('get', 'auth', { times: 1 })] }));
    bodyOf(world, { op: 'snapshot', ...at('a'), snapshot_id: 's', title: null });
    const again = new StubWorld({ clock, state: JSON.parse(JSON.stringify(world.toState())) });
    expect(JSON.stringify(again.toState())).toBe(JSON.stringify(world.toState()));
    expect(bodyOf(again, { op: 'get', ...at('a') }).status).toBe(401);
    expect(bodyOf(again, { op: 'delete', ...at('a') }).body).toMatchObject({ gone: false });
  });

  it('the stub’s world saves no secret', () => {
    const world = new StubWorld({ clock });
    const boot = { env: { TOKEN: 'hush' }, files: [{ name: 'KEY', content: 'hush' }] };
    bodyOf(world, create('a', { boot }));
    world.handle(create('b', { boot, faults: [rule('create', 'late_create', { params: { ms: 10 } })] }));
    expect(JSON.stringify(world.toState())).not.toContain('hush');
  });

  it('the stub’s world sends a duplicate webhook twice, under one id', () => {
    const world = new StubWorld({ clock, faults: [rule('create', 'duplicate_webhook')] });
    const told: StubEvent[] = [];
    world.listen((event) => told.push(event));
    bodyOf(world, create('a'));
    bodyOf(world, { op: 'delete', ...at('a') });
    const bodies = told.filter((event) => event.type === 'webhook').map((event) => event.body);
    expect(bodies).toHaveLength(2);
    expect(bodies[0]).toEqual(bodies[1]);
  });

  it('the stub’s world ends an object early or late by a clock that is off', () => {
    const world = new StubWorld({ clock });
    bodyOf(
      world,
      create('early', {
        ends_at: 10_000,
        faults: [rule('create', 'skewed_clock', { params: { ms: 5_000 } })],
      }),
    );
    bodyOf(
      world,
      create('late', {
        ends_at: 10_000,
        faults: [rule('create', 'skewed_clock', { params: { ms: -5_000 } })],
      }),
    );
    now = 5_000;
    expect([stateOf(world, 'early'), stateOf(world, 'late')]).toEqual([null, 'running']);
    now = 14_999;
    expect(stateOf(world, 'late')).toBe('running');
    now = 15_000;
    expect(stateOf(world, 'late')).toBeNull();
  });

  it('the stub’s world counts the rules of a sandbox over all its attempts', () => {
    const world = new StubWorld({ clock });
    const faults = [rule('create', 'error_before', { times: 1 })];
    const attempt = (n: number) =>
      create(`u-a${n}`, { labels: { ...labels(`u-a${n}`), sandbox_uid: 'u' }, faults });
    expect(bodyOf(world, attempt(1)).status).toBe(500);
    expect(bodyOf(world, attempt(2)).status).toBe(201);
    expect(bodyOf(world, create('other')).status).toBe(201);
  });
});
