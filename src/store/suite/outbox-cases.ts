import assert from 'node:assert/strict';
import { T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

const parked = (sinkId: string, seq: number) => ({
  sinkId,
  seq,
  subject: 'a',
  tries: 1,
  nextAt: T0,
  lastError: 'refused',
  dead: false,
});

export const outboxCases: StoreCase[] = [
  {
    name: 'has a cursor for each sink and knows the lowest',
    async run(store) {
      assert.equal(await read(store, (tx) => tx.outbox.minCursor()), null);
      await write(store, async (tx) => {
        await tx.outbox.setCursor({ sinkId: 'a', cursor: 5 });
        await tx.outbox.setCursor({ sinkId: 'b', cursor: 3 });
        await tx.outbox.setCursor({ sinkId: 'a', cursor: 7 });
      });
      assert.equal(await read(store, (tx) => tx.outbox.cursor('a')), 7);
      assert.equal(await read(store, (tx) => tx.outbox.cursor('none')), null);
      assert.equal(await read(store, (tx) => tx.outbox.minCursor()), 3);
      await write(store, (tx) => tx.outbox.removeSink('b'));
      assert.equal(await read(store, (tx) => tx.outbox.minCursor()), 7);
    },
  },
  {
    name: 'parks, changes and takes back deliveries, in the order of the events',
    async run(store) {
      const dead = { ...parked('a', 2), tries: 9, dead: true, nextAt: T0 + 5, lastError: 'given up' };
      await write(store, async (tx) => {
        await tx.outbox.park(parked('a', 11));
        await tx.outbox.park(parked('a', 2));
        await tx.outbox.park(parked('b', 1));
        await tx.outbox.park(dead);
      });
      assert.deepEqual(await read(store, (tx) => tx.outbox.parked('a')), [dead, parked('a', 11)]);
      await write(store, (tx) => tx.outbox.unpark('a', 2));
      await write(store, (tx) => tx.outbox.unpark('a', 99));
      assert.deepEqual(await read(store, (tx) => tx.outbox.parked('a')), [parked('a', 11)]);
      await write(store, (tx) => tx.outbox.removeSink('a'));
      assert.deepEqual(await read(store, (tx) => tx.outbox.parked('a')), []);
      assert.equal((await read(store, (tx) => tx.outbox.parked('b'))).length, 1);
    },
  },
  {
    name: 'remembers idempotency keys of each workspace until they are pruned',
    async run(store) {
      const record = (key: string, createdAt: number, workspaceId = 'default') => ({
        workspaceId,
        key,
        requestDigest: 'd',
        result: `sandbox:${key}`,
        createdAt,
      });
      await write(store, async (tx) => {
        await tx.idempotency.insert(record('a', T0));
        await tx.idempotency.insert(record('b', T0 + 1));
        await tx.idempotency.insert(record('c', T0 + 2));
        await tx.idempotency.insert(record('a', T0 + 2, 'w2'));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.idempotency.insert(record('a', T0))),
      );
      assert.deepEqual(await read(store, (tx) => tx.idempotency.get('default', 'a')), record('a', T0));
      assert.equal(await write(store, (tx) => tx.idempotency.prune(T0 + 2, 1)), 1);
      assert.equal(await read(store, (tx) => tx.idempotency.get('default', 'a')), null);
      assert.equal(await write(store, (tx) => tx.idempotency.prune(T0 + 2, 9)), 1);
      assert.ok(await read(store, (tx) => tx.idempotency.get('default', 'c')));
      assert.ok(await read(store, (tx) => tx.idempotency.get('w2', 'a')));
    },
  },
];
