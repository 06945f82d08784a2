import assert from 'node:assert/strict';
import type { EventQuery } from '../../core/ports/store/event-store.ts';
import type { Store } from '../../core/ports/store/store.ts';
import { sampleEvent, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, write } from './store-case.ts';

async function seqs(store: Store, query: Partial<EventQuery>): Promise<number[]> {
  const events = await read(store, (tx) =>
    tx.events.list({ workspaceId: null, after: 0, limit: 99, ...query }),
  );
  return events.map(({ seq }) => seq);
}

export const eventCases: StoreCase[] = [
  {
    name: 'are numbered from 1 in the order of the commits, and given back as they were',
    async run(store) {
      const draft = sampleEvent('a', {
        type: 'sandbox.ready',
        state: 'ready',
        previousState: 'provisioning',
        generation: 2,
        subjectSeq: 9,
        consumer: { harness: 'h' },
        details: { nested: { list: [1, null] } },
      });
      const [first] = await write(store, (tx) => tx.events.append([draft]));
      assert.deepEqual(first, { ...draft, seq: 1 });
      const about = sampleEvent(null, { type: 'credits.granted', state: null, generation: null });
      const rest = await write(store, (tx) => tx.events.append([about, sampleEvent('b')]));
      assert.deepEqual(
        rest.map(({ seq }) => seq),
        [2, 3],
      );
      assert.deepEqual(await write(store, (tx) => tx.events.append([])), []);
      assert.equal(await read(store, (tx) => tx.events.lastSeq()), 3);
      const all = await read(store, (tx) => tx.events.list({ workspaceId: null, after: 0, limit: 9 }));
      assert.deepEqual(all, [first, ...rest]);
    },
  },
  {
    name: 'are listed after or before a number, by workspace, sandbox and type',
    async run(store) {
      await write(store, (tx) =>
        tx.events.append([
          sampleEvent('a'),
          sampleEvent('b', { workspaceId: 'w2' }),
          sampleEvent('a', { type: 'sandbox.ready' }),
          sampleEvent(null, { type: 'profile.pushed' }),
          sampleEvent('a', { type: 'sandbox.destroyed' }),
        ]),
      );
      assert.deepEqual(await seqs(store, { after: 2 }), [3, 4, 5]);
      assert.deepEqual(await seqs(store, { limit: 2 }), [1, 2]);
      assert.deepEqual(await seqs(store, { workspaceId: 'default' }), [1, 3, 4, 5]);
      assert.deepEqual(await seqs(store, { workspaceId: 'w2' }), [2]);
      assert.deepEqual(await seqs(store, { sandboxUid: 'a', after: 1 }), [3, 5]);
      assert.deepEqual(await seqs(store, { sandboxUid: 'a', workspaceId: 'w2' }), []);
      assert.deepEqual(await seqs(store, { types: ['sandbox.ready', 'profile.pushed'] }), [3, 4]);
      assert.deepEqual(await seqs(store, { types: [] }), []);
      assert.deepEqual(await seqs(store, { before: 5 }), [4, 3, 2, 1]);
      assert.deepEqual(await seqs(store, { before: 99, limit: 2 }), [5, 4]);
      assert.deepEqual(await seqs(store, { before: 5, after: 1, sandboxUid: 'a' }), [3]);
      assert.deepEqual(await seqs(store, { before: 1 }), []);
    },
  },
  {
    name: 'show a stable prefix while many are written at the same time',
    async run(store) {
      const seen: number[][] = [];
      const watch = store.onCommit(() => {
        void seqs(store, {}).then((now) => seen.push(now));
      });
      const results = await Promise.allSettled(
        Array.from({ length: 60 }, (_, i) =>
          write(store, async (tx) => {
            await tx.events.append([sampleEvent(`s${i}`), sampleEvent(`s${i}`)]);
            if (i % 4 === 0) throw new Error('no');
          }),
        ),
      );
      watch();
      const committed = results.filter(({ status }) => status === 'fulfilled').length * 2;
      const all = await seqs(store, { limit: 999 });
      assert.deepEqual(
        all,
        Array.from({ length: committed }, (_, i) => i + 1),
      );
      for (const prefix of seen) assert.deepEqual(prefix, all.slice(0, prefix.length));
    },
  },
  {
    name: 'keep their numbers for ever, even when all of them are pruned',
    async run(store) {
      await write(store, (tx) => tx.events.append([sampleEvent('a'), sampleEvent('b')]));
      assert.equal(await write(store, (tx) => tx.events.prune(T0 + 1, 2, 9)), 2);
      assert.deepEqual(await seqs(store, {}), []);
      assert.equal(await read(store, (tx) => tx.events.lastSeq()), 2);
      const [next] = await write(store, (tx) => tx.events.append([sampleEvent('c')]));
      assert.equal(next?.seq, 3);
    },
  },
];
