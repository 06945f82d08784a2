import assert from 'node:assert/strict';
import type { CommitNotice } from '../../core/ports/store/store.ts';
import {
  sampleAttempt,
  sampleDocuments,
  sampleEvent,
  sampleHold,
  sampleMeter,
  sampleSandbox,
  sampleSnapshot,
  sampleTransfer,
  T0,
} from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, uidsOf, write } from './store-case.ts';

const boom = new Error('boom');

export const transactionCases: StoreCase[] = [
  {
    name: 'answers what the work answers',
    async run(store) {
      assert.equal(await write(store, async () => 42), 42);
      assert.equal(await read(store, async () => 'x'), 'x');
    },
  },
  {
    name: 'sees its own writes, and others see them afterwards',
    async run(store) {
      await write(store, async (tx) => {
        await tx.setSetting('a', '1');
        assert.equal(await tx.setting('a'), '1');
      });
      assert.equal(await read(store, (tx) => tx.setting('a')), '1');
    },
  },
  {
    name: 'leaves nothing behind when the work rejects, numbers included',
    async run(store) {
      await write(store, async (tx) => {
        await tx.sandboxes.insert(sampleSandbox({ uid: 'kept', labels: { team: 'a' }, reuseKey: 'k' }));
        await tx.events.append([sampleEvent('kept')]);
        await tx.ledger.transfer([sampleTransfer('t1')]);
      });
      const failing = write(store, async (tx) => {
        const kept = await tx.sandboxes.get('kept');
        assert.ok(kept);
        await tx.sandboxes.update({ ...kept, state: 'destroyed', labels: { team: 'b' }, reuseKey: null });
        await tx.sandboxes.insert(sampleSandbox({ uid: 'gone', labels: { team: 'a' }, reuseKey: 'k' }));
        await tx.sandboxes.insertDocuments(sampleDocuments('gone'));
        await tx.attempts.insert(sampleAttempt('gone'));
        await tx.events.append([sampleEvent('gone'), sampleEvent('gone')]);
        await tx.outbox.setCursor({ sinkId: 's', cursor: 2 });
        await tx.idempotency.insert({
          workspaceId: 'default',
          key: 'i',
          requestDigest: 'd',
          result: 'sandbox:gone',
          createdAt: T0,
        });
        await tx.snapshots.insert(sampleSnapshot('snap_1'));
        await tx.meters.insert(sampleMeter('m'));
        await tx.ledger.insertHold(sampleHold('h'));
        await tx.ledger.transfer([
          sampleTransfer('t2', {
            kind: 'hold',
            debit: 'liab:credits:default',
            credit: 'liab:held:default',
            holdId: 'h',
          }),
        ]);
        await tx.setSetting('a', '1');
        throw boom;
      });
      await assert.rejects(failing, boom);
      await write(store, async (tx) => {
        const labelled = (team: string) =>
          tx.sandboxes.list({ workspaceId: null, labels: { team }, limit: 9 });
        assert.deepEqual(uidsOf((await labelled('a')).items), ['kept']);
        assert.deepEqual(uidsOf((await labelled('b')).items), []);
        assert.equal((await tx.sandboxes.get('kept'))?.state, 'requested');
        assert.equal((await tx.sandboxes.findReusable('default', 'k'))?.uid, 'kept');
        assert.equal(await tx.sandboxes.get('gone'), null);
        assert.equal(await tx.sandboxes.find('default', 'gone'), null);
        assert.equal(await tx.sandboxes.countLiving('default'), 1);
        assert.equal(await tx.sandboxes.documents('gone', 1), null);
        assert.deepEqual(await tx.attempts.forSandbox('gone'), []);
        assert.equal(await tx.events.lastSeq(), 1);
        assert.equal((await tx.events.list({ workspaceId: null, after: 0, limit: 9 })).length, 1);
        assert.equal(await tx.outbox.minCursor(), null);
        assert.equal(await tx.idempotency.get('default', 'i'), null);
        assert.equal(await tx.snapshots.get('snap_1'), null);
        assert.equal(await tx.meters.get('m'), null);
        assert.equal(await tx.ledger.getHold('h'), null);
        assert.equal(await tx.ledger.balance('liab:credits:default'), 1_000_000);
        assert.equal(await tx.setting('a'), null);
        const [event] = await tx.events.append([sampleEvent('kept')]);
        assert.equal(event?.seq, 2);
        await tx.ledger.transfer([sampleTransfer('t3')]);
        assert.equal((await tx.ledger.getTransfer('t3'))?.seq, 2);
      });
    },
  },
  {
    name: 'goes on after a refusal that the work handles',
    async run(store) {
      await write(store, async (tx) => {
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a', id: 'same' }));
        await rejectsWith('SBX_ID_TAKEN', tx.sandboxes.insert(sampleSandbox({ uid: 'b', id: 'same' })));
        await tx.ledger.transfer([sampleTransfer('t1')]);
        await rejectsWith('SBX_CONFLICT', tx.ledger.transfer([sampleTransfer('t2'), sampleTransfer('t1')]));
        await tx.setSetting('done', 'yes');
      });
      await read(store, async (tx) => {
        assert.equal(await tx.setting('done'), 'yes');
        assert.equal(await tx.sandboxes.get('b'), null);
        assert.equal(await tx.ledger.getTransfer('t2'), null);
      });
    },
  },
  {
    name: 'lets none of those that run at the same time miss what another wrote',
    async run(store) {
      await write(store, (tx) => tx.setSetting('n', '0'));
      await Promise.all(
        Array.from({ length: 200 }, () =>
          write(store, async (tx) => tx.setSetting('n', String(Number(await tx.setting('n')) + 1))),
        ),
      );
      assert.equal(await read(store, (tx) => tx.setting('n')), '200');
    },
  },
  {
    name: 'rejects one of a group and keeps the others, in the order of the calls',
    async run(store) {
      const results = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          write(store, async (tx) => {
            const [event] = await tx.events.append([sampleEvent(`s${i}`)]);
            await tx.sandboxes.insert(sampleSandbox({ uid: `s${i}` }));
            if (i % 3 === 0) throw boom;
            return event?.seq;
          }),
        ),
      );
      const kept = Array.from({ length: 20 }, (_, i) => i).filter((i) => i % 3 !== 0);
      for (const [i, result] of results.entries()) {
        if (i % 3 === 0) assert.equal(result.status === 'rejected' && result.reason, boom);
        else assert.equal(result.status === 'fulfilled' && result.value, kept.indexOf(i) + 1);
      }
      const events = await read(store, (tx) => tx.events.list({ workspaceId: null, after: 0, limit: 99 }));
      assert.deepEqual(
        events.map(({ sandboxUid }) => sandboxUid),
        kept.map((i) => `s${i}`),
      );
      assert.equal(await read(store, (tx) => tx.sandboxes.countLiving('default')), kept.length);
    },
  },
  {
    name: 'reads a consistent view that does not change while it is looked at',
    async run(store) {
      await write(store, (tx) => tx.setSetting('x', 'old'));
      const reading = read(store, async (tx) => {
        const first = await tx.setting('x');
        for (let i = 0; i < 50; i++) await tx.setting('x');
        return [first, await tx.setting('x')];
      });
      const writing = write(store, (tx) => tx.setSetting('x', 'new'));
      const [first, second] = await reading;
      assert.equal(first, second);
      await writing;
      assert.equal(await read(store, (tx) => tx.setting('x')), 'new');
    },
  },
  {
    name: 'refuses every write in a read',
    async run(store) {
      const writes = [
        read(store, (tx) => tx.sandboxes.insert(sampleSandbox())),
        read(store, (tx) => tx.sandboxes.update(sampleSandbox())),
        read(store, (tx) => tx.sandboxes.insertDocuments(sampleDocuments('a'))),
        read(store, (tx) => tx.sandboxes.releaseForeignLeases('me', T0)),
        read(store, (tx) => tx.sandboxes.prune(T0, 0, 1)),
        read(store, (tx) => tx.attempts.insert(sampleAttempt('a'))),
        read(store, (tx) => tx.events.append([sampleEvent('a')])),
        read(store, (tx) => tx.events.prune(T0, 0, 1)),
        read(store, (tx) => tx.outbox.setCursor({ sinkId: 's', cursor: 1 })),
        read(store, (tx) => tx.outbox.unpark('s', 1)),
        read(store, (tx) => tx.snapshots.insert(sampleSnapshot('snap_1'))),
        read(store, (tx) => tx.snapshots.prune(T0, 1)),
        read(store, (tx) => tx.idempotency.prune(T0, 1)),
        read(store, (tx) => tx.meters.insert(sampleMeter('m'))),
        read(store, (tx) => tx.ledger.transfer([sampleTransfer('t')])),
        read(store, (tx) => tx.ledger.insertHold(sampleHold('h'))),
        read(store, (tx) => tx.setSetting('a', 'b')),
      ];
      for (const refused of writes) await rejectsWith('SBX_INTERNAL', refused);
      assert.equal(await read(store, (tx) => tx.events.lastSeq()), 0);
    },
  },
  {
    name: 'tells of a commit after it is there: which sandboxes, and the highest event',
    async run(store) {
      const notices: CommitNotice[] = [];
      const stop = store.onCommit((notice) => notices.push(notice));
      await write(store, async (tx) => {
        await tx.sandboxes.insert(sampleSandbox({ uid: 'a' }));
        await tx.events.append([sampleEvent('a'), sampleEvent('a')]);
        await tx.sandboxes.insert(sampleSandbox({ uid: 'b' }));
        assert.equal(notices.length, 0);
      });
      await assert.rejects(
        write(store, async (tx) => {
          await tx.sandboxes.insert(sampleSandbox({ uid: 'c' }));
          throw boom;
        }),
      );
      await write(store, async (tx) => {
        const row = await tx.sandboxes.get('b');
        assert.ok(row);
        await tx.sandboxes.update(row);
      });
      assert.deepEqual(
        notices.map(({ sandboxUids, lastSeq }) => ({ uids: [...sandboxUids].sort(), lastSeq })),
        [
          { uids: ['a', 'b'], lastSeq: 2 },
          { uids: ['b'], lastSeq: 0 },
        ],
      );
      stop();
      await write(store, async (tx) => tx.events.append([sampleEvent('a')]));
      assert.equal(notices.length, 2);
    },
  },
  {
    name: 'has told before the transaction resolves, and what it told can be read',
    async run(store) {
      const seen: Promise<number>[] = [];
      store.onCommit(() => seen.push(read(store, (tx) => tx.events.lastSeq())));
      await write(store, (tx) => tx.events.append([sampleEvent('a')]));
      assert.equal(seen.length, 1);
      assert.equal(await seen[0], 1);
    },
  },
  {
    name: 'refuses to work when it is closed, after finishing what was asked before',
    async run(store) {
      const pending = write(store, (tx) => tx.setSetting('a', '1'));
      await store.close();
      await pending;
      await rejectsWith(
        'SBX_UNAVAILABLE',
        write(store, async () => 1),
      );
      await rejectsWith(
        'SBX_UNAVAILABLE',
        read(store, async () => 1),
      );
    },
  },
];
