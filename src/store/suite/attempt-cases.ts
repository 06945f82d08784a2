import assert from 'node:assert/strict';
import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import type { SetupLog } from '../../core/lifecycle/setup-log.ts';
import { sampleAttempt, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

function setupLog(sandboxUid: string, generation: number, n: number, output = ''): SetupLog {
  const step = { command: 'true', output, truncated: false, exitCode: 0, startedAt: T0, endedAt: T0 + 1 };
  const attemptId = attemptIdOf(sandboxUid, generation, n);
  return { attemptId, sandboxUid, generation, n, extensionId: 'ext.memory', steps: [step] };
}

export const attemptCases: StoreCase[] = [
  {
    name: 'of two updates at once, the last one is kept whole',
    async run(store) {
      const attempt = sampleAttempt('a');
      await write(store, ({ attempts }) => attempts.insert(attempt));
      const kept = await write(store, async ({ attempts }) => {
        const known = (await attempts.get(attempt.attemptId)) ?? attempt;
        const first = attempts.update({ ...known, teardownError: 'one' });
        const second = attempts.update({ ...known, teardownTries: 7 });
        await Promise.all([first, second]);
        return await attempts.get(attempt.attemptId);
      });
      assert.deepEqual(kept, { ...attempt, teardownTries: 7 });
    },
  },
  {
    name: 'keep what setup wrote, once for each, in their order',
    async run(store) {
      await write(store, async ({ attempts }) => {
        await attempts.putSetup(setupLog('a', 2, 1));
        await attempts.putSetup(setupLog('a', 1, 2, 'first try'));
        await attempts.putSetup(setupLog('b', 1, 1));
      });
      const again = setupLog('a', 1, 2, 'after a crash: \u0000 “€”');
      await write(store, ({ attempts }) => attempts.putSetup(again));
      const kept = await read(store, ({ attempts }) => attempts.setups('a'));
      assert.deepEqual(kept, [again, setupLog('a', 2, 1)]);
      assert.deepEqual(await read(store, ({ attempts }) => attempts.setups('c')), []);
    },
  },
  {
    name: 'attempts.recent gives the last of each backend on each host, newest first',
    async run(store) {
      const other = { extensionId: 'ext.other' };
      await write(store, async (tx) => {
        await tx.attempts.insert(sampleAttempt('a', { startedAt: T0 + 1 }));
        await tx.attempts.insert(sampleAttempt('b', { startedAt: T0 + 5 }));
        await tx.attempts.insert(sampleAttempt('c', { startedAt: T0 + 2 }));
        await tx.attempts.insert(sampleAttempt('d', { startedAt: T0, ...other }));
        await tx.attempts.insert(sampleAttempt('e', { startedAt: T0 + 3, ...other, hostId: 'h' }));
      });
      const recent = await read(store, (tx) => tx.attempts.recent(2));
      assert.deepEqual(
        recent.map(({ sandboxUid }) => sandboxUid),
        ['b', 'e', 'c', 'd'],
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
        judged: { at: T0 + 2, outcome: 'ready', load: 3, ownMs: 1 },
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
