import assert from 'node:assert/strict';
import { sampleAttempt, T0 } from '../sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

export const attemptCases: StoreCase[] = [
  {
    name: 'are found newest first, over all sandboxes',
    async run(store) {
      await write(store, async (tx) => {
        await tx.attempts.insert(sampleAttempt('a', { n: 1, startedAt: T0 + 1 }));
        await tx.attempts.insert(sampleAttempt('b', { n: 1, startedAt: T0 + 3 }));
        await tx.attempts.insert(sampleAttempt('c', { n: 1, startedAt: T0 + 2 }));
      });
      const recent = await read(store, (tx) => tx.attempts.recent(2));
      assert.deepEqual(
        recent.map(({ sandboxUid }) => sandboxUid),
        ['b', 'c'],
      );
    },
  },
  {
    name: 'are kept and changed, in the order of generation and number',
    async run(store) {
      const won = sampleAttempt('a', {
        n: 2,
        state: 'won',
        handle: { version: 1, data: { pid: 7 } },
        creation: 'created',
        error: { code: 'SBX_TIMEOUT', detail: 'slow' },
        hostId: 'h',
        provisionedAt: T0 + 1,
        endedAt: T0 + 2,
        teardownTries: 3,
        teardownError: 'stuck',
        stuckSince: T0 + 3,
        hedgeAt: T0 + 4,
        hedges: 1,
        outrunBy: 3,
      });
      await write(store, async (tx) => {
        await tx.attempts.insert(sampleAttempt('a', { generation: 2, n: 1 }));
        await tx.attempts.insert(sampleAttempt('a', { n: 2 }));
        await tx.attempts.insert(sampleAttempt('a', { n: 1 }));
        await tx.attempts.insert(sampleAttempt('b', { n: 1 }));
        await tx.attempts.update(won);
      });
      assert.deepEqual(await read(store, (tx) => tx.attempts.forSandbox('a')), [
        sampleAttempt('a', { n: 1 }),
        won,
        sampleAttempt('a', { generation: 2, n: 1 }),
      ]);
      assert.deepEqual(await read(store, (tx) => tx.attempts.get(won.attemptId)), won);
      assert.equal(await read(store, (tx) => tx.attempts.get('none')), null);
      assert.deepEqual(await read(store, (tx) => tx.attempts.forSandbox('none')), []);
    },
  },
  {
    name: 'exist once, and are changed only when they exist',
    async run(store) {
      await write(store, (tx) => tx.attempts.insert(sampleAttempt('a')));
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.attempts.insert(sampleAttempt('a'))),
      );
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.attempts.update(sampleAttempt('b'))),
      );
    },
  },
];
