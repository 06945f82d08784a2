import assert from 'node:assert/strict';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Store, Tx } from '../../core/ports/store/store.ts';
import { sampleSandbox, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, uidsOf, write } from './store-case.ts';

const NEVER = T0 + 1_000_000_000;

function insertAll(store: Store, rows: readonly Partial<SandboxRecord>[]): Promise<void> {
  return write(store, async (tx) => {
    for (const row of rows) await tx.sandboxes.insert(sampleSandbox({ deadlineAt: NEVER, ...row }));
  });
}

function due(
  store: Store,
  kind: 'dueWork' | 'dueDeadlines' | 'dueIdle',
  now: number,
  limit = 99,
): Promise<string[]> {
  return read(store, async (tx) => uidsOf(await tx.sandboxes[kind](now, limit)));
}

const nextDueAt = (tx: Tx) => tx.sandboxes.nextDueAt();

function lease(until: number, owner = 'me') {
  return { owner, token: 't', until };
}

export const dueCases: StoreCase[] = [
  {
    name: 'finds work that is due and not under a lease in force, oldest first',
    async run(store) {
      await insertAll(store, [
        { uid: 'late', workDueAt: T0 + 20 },
        { uid: 'early', workDueAt: T0 + 10 },
        { uid: 'same', workDueAt: T0 + 10 },
        { uid: 'future', workDueAt: T0 + 31 },
        { uid: 'none', workDueAt: null },
        { uid: 'leased', workDueAt: T0, lease: lease(T0 + 31) },
        { uid: 'lapsed', workDueAt: T0 + 5, lease: lease(T0 + 30) },
      ]);
      assert.deepEqual(await due(store, 'dueWork', T0 + 30), ['early', 'same', 'late', 'lapsed']);
      assert.deepEqual(await due(store, 'dueWork', T0 + 30, 2), ['early', 'same']);
      assert.deepEqual(await due(store, 'dueWork', T0 + 9), []);
      assert.deepEqual((await due(store, 'dueWork', T0 + 31)).slice(-2).sort(), ['future', 'leased']);
    },
  },
  {
    name: 'finds deadlines of what is living or failed',
    async run(store) {
      const states = [
        'requested',
        'provisioning',
        'ready',
        'active',
        'paused',
        'expired',
        'failed',
        'destroying',
        'destroyed',
      ] as const;
      await insertAll(
        store,
        states.map((state, i) => ({ uid: state, state, deadlineAt: T0 + i })),
      );
      assert.deepEqual(await due(store, 'dueDeadlines', T0 + 99), [
        'requested',
        'provisioning',
        'ready',
        'active',
        'paused',
        'failed',
      ]);
      assert.deepEqual(await due(store, 'dueDeadlines', T0 + 1), ['requested', 'provisioning']);
      assert.deepEqual(await due(store, 'dueDeadlines', T0 - 1), []);
    },
  },
  {
    name: 'finds idleness of what is established and not paused',
    async run(store) {
      await insertAll(store, [
        { uid: 'ready', state: 'ready', idleDeadlineAt: T0 + 2 },
        { uid: 'active', state: 'active', idleDeadlineAt: T0 + 1 },
        { uid: 'unlimited', state: 'active', idleDeadlineAt: null },
        { uid: 'paused', state: 'paused', idleDeadlineAt: T0 },
        { uid: 'requested', state: 'requested', idleDeadlineAt: T0 },
        { uid: 'failed', state: 'failed', idleDeadlineAt: T0 },
      ]);
      assert.deepEqual(await due(store, 'dueIdle', T0 + 9), ['active', 'ready']);
      assert.deepEqual(await due(store, 'dueIdle', T0 + 1), ['active']);
    },
  },
  {
    name: 'knows when the next of them will be due',
    async run(store) {
      assert.equal(await read(store, nextDueAt), null);
      await insertAll(store, [{ uid: 'gone', state: 'destroyed', deadlineAt: T0 }]);
      assert.equal(await read(store, nextDueAt), null);
      await insertAll(store, [{ uid: 'a', deadlineAt: T0 + 100 }]);
      assert.equal(await read(store, nextDueAt), T0 + 100);
      await insertAll(store, [{ uid: 'b', state: 'ready', idleDeadlineAt: T0 + 90 }]);
      assert.equal(await read(store, nextDueAt), T0 + 90);
      await insertAll(store, [{ uid: 'c', state: 'destroying', workDueAt: T0 + 1, lease: lease(T0 + 80) }]);
      assert.equal(await read(store, nextDueAt), T0 + 80);
      await insertAll(store, [{ uid: 'd', state: 'destroying', workDueAt: T0 + 70 }]);
      assert.equal(await read(store, nextDueAt), T0 + 70);
    },
  },
  {
    name: 'follows every update',
    async run(store) {
      await insertAll(store, [
        { uid: 'a', workDueAt: T0, state: 'ready', idleDeadlineAt: T0, deadlineAt: T0 },
      ]);
      await write(store, async (tx) => {
        const row = await tx.sandboxes.get('a');
        assert.ok(row);
        await tx.sandboxes.update({ ...row, state: 'destroying', lease: lease(T0 + 50) });
      });
      assert.deepEqual(await due(store, 'dueWork', T0 + 49), []);
      assert.deepEqual(await due(store, 'dueIdle', T0 + 49), []);
      assert.deepEqual(await due(store, 'dueDeadlines', T0 + 49), []);
      assert.deepEqual(await due(store, 'dueWork', T0 + 50), ['a']);
    },
  },
  {
    name: 'gives up the leases of others, which are then due at once',
    async run(store) {
      await insertAll(store, [
        { uid: 'mine', workDueAt: T0, lease: lease(NEVER, 'me') },
        { uid: 'theirs', workDueAt: T0, lease: lease(NEVER, 'dead') },
        { uid: 'waiting', workDueAt: NEVER, lease: lease(NEVER, 'dead') },
        { uid: 'free', workDueAt: NEVER },
      ]);
      assert.equal(await write(store, (tx) => tx.sandboxes.releaseForeignLeases('me', T0 + 1)), 2);
      assert.deepEqual(await due(store, 'dueWork', T0 + 1), ['theirs', 'waiting']);
      const theirs = await read(store, (tx) => tx.sandboxes.get('theirs'));
      assert.equal(theirs?.lease, null);
      assert.equal(theirs?.version, 2);
      assert.equal((await read(store, (tx) => tx.sandboxes.get('mine')))?.version, 1);
      assert.equal(await write(store, (tx) => tx.sandboxes.releaseForeignLeases('me', T0 + 1)), 0);
    },
  },
];
