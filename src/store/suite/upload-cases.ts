import assert from 'node:assert/strict';
import { sampleSandbox, sampleUpload, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, write } from './store-case.ts';

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

export const uploadCases: StoreCase[] = [
  {
    name: 'are kept, and put again only to stay longer',
    async run(store) {
      const origin = { kind: 'git', url: 'https://h/r.git', ref: 'main', commit: 'c'.repeat(40) } as const;
      const first = sampleUpload('u', { origin, sizeBytes: 5_000_000_000, expiresAt: T0 + 5 });
      assert.deepEqual(await write(store, (tx) => tx.uploads.put(first)), first);
      assert.deepEqual(await read(store, (tx) => tx.uploads.get('u')), first);
      const later = { ...first, createdAt: T0 + 2, expiresAt: T0 + 9 };
      assert.deepEqual(await write(store, (tx) => tx.uploads.put(later)), { ...first, expiresAt: T0 + 9 });
      assert.deepEqual(await write(store, (tx) => tx.uploads.put(first)), { ...first, expiresAt: T0 + 9 });
      assert.equal(await read(store, (tx) => tx.uploads.get('none')), null);
    },
  },
  {
    name: 'are listed newest first in pages, and summed by workspace',
    async run(store) {
      await write(store, async ({ uploads }) => {
        await uploads.put(sampleUpload('a', { createdAt: T0, sizeBytes: 1 }));
        await uploads.put(sampleUpload('c', { createdAt: T0 + 1, sizeBytes: 2 }));
        await uploads.put(sampleUpload('b', { createdAt: T0 + 1, sizeBytes: 4 }));
        await uploads.put(sampleUpload('d', { createdAt: T0 + 2, workspaceId: 'w2', sizeBytes: 8 }));
      });
      const all = await read(store, (tx) => tx.uploads.list({ workspaceId: null, limit: 9 }));
      assert.deepEqual(idsOf(all.items), ['d', 'c', 'b', 'a']);
      const first = await read(store, (tx) => tx.uploads.list({ workspaceId: 'default', limit: 2 }));
      assert.deepEqual(idsOf(first.items), ['c', 'b']);
      const rest = { workspaceId: 'default', limit: 2, cursor: first.nextCursor };
      const second = await read(store, (tx) => tx.uploads.list(rest));
      assert.deepEqual(idsOf(second.items), ['a']);
      assert.equal(second.nextCursor, null);
      assert.equal(await read(store, (tx) => tx.uploads.totalBytes('default')), 7);
      assert.equal(await read(store, (tx) => tx.uploads.totalBytes('nobody')), 0);
    },
  },
  {
    name: 'go when their time is over, but not while a sandbox has them',
    async run(store) {
      const living = sampleSandbox({ uid: 's1' });
      await write(store, async (tx) => {
        await tx.sandboxes.insert(living);
        await tx.sandboxes.insert(sampleSandbox({ uid: 's2', state: 'destroyed' }));
        for (const id of ['a', 'b', 'c', 'd']) {
          await tx.uploads.put(sampleUpload(id, { expiresAt: id === 'd' ? T0 + 9 : T0 + 1 }));
        }
        await tx.uploads.use('a', 's1');
        await tx.uploads.use('a', 's1');
        await tx.uploads.use('a', 's2');
        await tx.uploads.use('b', 's2');
      });
      const due = (limit: number) => read(store, (tx) => tx.uploads.due(T0 + 5, limit));
      assert.deepEqual(idsOf(await due(9)), ['b', 'c']);
      assert.deepEqual(idsOf(await due(1)), ['b']);
      assert.equal(await read(store, (tx) => tx.uploads.inUse('a')), true);
      assert.equal(await read(store, (tx) => tx.uploads.inUse('b')), false);
      await write(store, (tx) => tx.sandboxes.update({ ...living, state: 'destroyed' }));
      assert.deepEqual(idsOf(await due(9)), ['a', 'b', 'c']);
      await write(store, (tx) => tx.uploads.remove('a'));
      await write(store, (tx) => tx.uploads.put(sampleUpload('a', { expiresAt: T0 + 1 })));
      assert.deepEqual(idsOf(await due(9)), ['a', 'b', 'c']);
      assert.equal(await read(store, (tx) => tx.uploads.inUse('a')), false);
    },
  },
];
