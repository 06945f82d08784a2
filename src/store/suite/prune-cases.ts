import assert from 'node:assert/strict';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Store } from '../../core/ports/store/store.ts';
import {
  sampleAttempt,
  sampleDocuments,
  sampleEvent,
  sampleHold,
  sampleMeter,
  sampleSandbox,
  sampleTransfer,
  T0,
} from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

/** Makes a sandbox with everything that hangs on it; returns the number of its event. */
function insertWhole(store: Store, over: Partial<SandboxRecord> & { uid: string }): Promise<number> {
  const { uid } = over;
  return write(store, async (tx) => {
    await tx.sandboxes.insert(sampleSandbox({ state: 'destroyed', labels: { l: '1' }, ...over }));
    await tx.sandboxes.insertDocuments(sampleDocuments(uid, 1));
    await tx.sandboxes.insertDocuments(sampleDocuments(uid, 2));
    await tx.attempts.insert(sampleAttempt(uid));
    await tx.attempts.putSetup({
      attemptId: `${uid}-g1-a1`,
      sandboxUid: uid,
      generation: 1,
      n: 1,
      extensionId: 'ext.memory',
      steps: [],
    });
    await tx.meters.insert(sampleMeter(`m-${uid}`, { sandboxUid: uid }));
    await tx.ledger.insertHold(sampleHold(`h-${uid}`, { sandboxUid: uid }));
    await tx.ledger.transfer([sampleTransfer(`t-${uid}`, { holdId: `h-${uid}`, sandboxUid: uid })]);
    const [event] = await tx.events.append([sampleEvent(uid)]);
    return event?.seq ?? Number.NaN;
  });
}

const prune = (store: Store, before: number, eventSeq: number, limit = 99) =>
  write(store, (tx) => tx.sandboxes.prune(before, eventSeq, limit));

async function exists(store: Store, uid: string): Promise<boolean> {
  return (await read(store, (tx) => tx.sandboxes.get(uid))) !== null;
}

const parked = { sinkId: 's', subject: 'a', tries: 1, nextAt: T0, lastError: 'e', dead: true };

export const pruneCases: StoreCase[] = [
  {
    name: 'leaves no attempt to be updated, also by whoever read it before',
    async run(store) {
      const seq = await insertWhole(store, { uid: 'a' });
      const late = write(store, async (tx) => {
        const [attempt] = await tx.attempts.forSandbox('a');
        assert(attempt);
        assert.equal(await tx.sandboxes.prune(T0 + 1, seq, 9), 1);
        await tx.attempts.update(attempt);
      });
      await rejectsWith('SBX_CONFLICT', late);
    },
  },
  {
    name: 'removes a destroyed sandbox with all that hangs on it, except money',
    async run(store) {
      const seq = await insertWhole(store, { uid: 'a' });
      await insertWhole(store, { uid: 'b', state: 'ready' });
      assert.equal(await prune(store, T0 + 1, seq), 1);
      await read(store, async (tx) => {
        assert.equal(await tx.sandboxes.get('a'), null);
        assert.equal(await tx.sandboxes.find('default', 'a'), null);
        assert.equal(await tx.sandboxes.documents('a', 1), null);
        assert.equal(await tx.sandboxes.documents('a', 2), null);
        assert.deepEqual(await tx.attempts.forSandbox('a'), []);
        assert.deepEqual(await tx.attempts.setups('a'), []);
        assert.equal((await tx.attempts.setups('b')).length, 1);
        const ofA = { workspaceId: null, sandboxUid: 'a', after: 0, limit: 9 };
        assert.deepEqual(await tx.events.list(ofA), []);
        const labelled = await tx.sandboxes.list({ workspaceId: null, labels: { l: '1' }, limit: 9 });
        assert.equal(labelled.items.length, 1);
        assert.ok(await tx.meters.get('m-a'));
        assert.ok(await tx.ledger.getHold('h-a'));
        assert.ok(await tx.ledger.getTransfer('t-a'));
        assert.equal(await tx.ledger.balance('liab:credits:default'), 2_000_000);
        assert.ok(await tx.sandboxes.get('b'));
        assert.equal(await tx.events.lastSeq(), 2);
      });
    },
  },
  {
    name: 'keeps what is young, not destroyed, or has an event that is not delivered',
    async run(store) {
      const old = await insertWhole(store, { uid: 'old', stateSince: T0 });
      await insertWhole(store, { uid: 'young', stateSince: T0 + 5 });
      await insertWhole(store, { uid: 'failed', state: 'failed', stateSince: T0 });
      const undelivered = await insertWhole(store, { uid: 'undelivered', stateSince: T0 });
      assert.equal(await prune(store, T0 + 5, undelivered - 1), 1);
      assert.equal(await exists(store, 'old'), false);
      for (const uid of ['young', 'failed', 'undelivered']) assert.ok(await exists(store, uid), uid);
      assert.equal(await prune(store, T0 + 5, undelivered), 1);
      assert.equal(await exists(store, 'undelivered'), false);
      assert.ok(old < undelivered);
    },
  },
  {
    name: 'keeps what a sink has parked, and the sandbox that it is about',
    async run(store) {
      const seq = await insertWhole(store, { uid: 'a' });
      await write(store, (tx) => tx.outbox.park({ ...parked, seq }));
      assert.equal(await prune(store, T0 + 1, seq), 0);
      assert.equal(await write(store, (tx) => tx.events.prune(T0 + 1, seq, 9)), 0);
      await write(store, (tx) => tx.outbox.unpark('s', seq));
      assert.equal(await write(store, (tx) => tx.events.prune(T0 + 1, seq, 9)), 1);
      assert.equal(await prune(store, T0 + 1, seq), 1);
    },
  },
  {
    name: 'removes the oldest first, no more than the limit',
    async run(store) {
      for (const [uid, age] of [
        ['c', 3],
        ['a', 1],
        ['b', 2],
      ] as const) {
        await insertWhole(store, { uid, stateSince: T0 + age });
      }
      assert.equal(await prune(store, T0 + 9, 99, 2), 2);
      assert.ok(await exists(store, 'c'));
      assert.equal(await prune(store, T0 + 9, 99, 2), 1);
      assert.equal(await prune(store, T0 + 9, 99, 2), 0);
    },
  },
  {
    name: 'brings everything back when the transaction is undone',
    async run(store) {
      const seq = await insertWhole(store, { uid: 'a' });
      await assert.rejects(
        write(store, async (tx) => {
          assert.equal(await tx.sandboxes.prune(T0 + 1, seq, 9), 1);
          await tx.events.append([sampleEvent('b')]);
          await tx.sandboxes.insert(sampleSandbox({ uid: 'a2', id: 'a' }));
          throw new Error('no');
        }),
      );
      await read(store, async (tx) => {
        assert.equal((await tx.sandboxes.find('default', 'a'))?.uid, 'a');
        assert.ok(await tx.sandboxes.documents('a', 2));
        assert.equal((await tx.attempts.forSandbox('a')).length, 1);
        assert.equal((await tx.events.list({ workspaceId: null, after: 0, limit: 9 })).length, 1);
        const labelled = await tx.sandboxes.list({ workspaceId: 'default', labels: { l: '1' }, limit: 9 });
        assert.equal(labelled.items.length, 1);
      });
      assert.equal(await prune(store, T0 + 1, seq), 1);
    },
  },
  {
    name: 'prunes events that are old and delivered',
    async run(store) {
      await write(store, (tx) =>
        tx.events.append([
          sampleEvent('a', { at: T0 }),
          sampleEvent('a', { at: T0 + 9 }),
          sampleEvent(null, { at: T0 + 1 }),
          sampleEvent('b', { at: T0 + 2 }),
        ]),
      );
      assert.equal(await write(store, (tx) => tx.events.prune(T0 + 5, 3, 1)), 1);
      assert.equal(await write(store, (tx) => tx.events.prune(T0 + 5, 3, 9)), 1);
      const left = await read(store, (tx) => tx.events.list({ workspaceId: 'default', after: 0, limit: 9 }));
      assert.deepEqual(
        left.map(({ seq }) => seq),
        [2, 4],
      );
    },
  },
];
