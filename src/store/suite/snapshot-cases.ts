import assert from 'node:assert/strict';
import type { SnapshotQuery } from '../../core/ports/store/snapshot-store.ts';
import { sampleSnapshot, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

export const snapshotCases: StoreCase[] = [
  {
    name: 'are kept, and updated only in the version that was read',
    async run(store) {
      const full = sampleSnapshot('s', {
        name: 'n',
        hostId: 'h',
        state: 'available',
        ref: { image: ['x'] },
        sizeBytes: 5_000_000_000,
        labels: { a: 'b' },
        expiresAt: T0 + 9,
        deletedAt: T0 + 10,
        cause: 'idle',
        digest: 'sha256:00',
      });
      await write(store, (tx) => tx.snapshots.insert(full));
      assert.deepEqual(await read(store, (tx) => tx.snapshots.get('s')), full);
      const next = await write(store, (tx) => tx.snapshots.update({ ...full, name: null, ref: null }));
      assert.deepEqual(next, { ...full, name: null, ref: null, version: 2 });
      assert.deepEqual(await read(store, (tx) => tx.snapshots.get('s')), next);
      const again = [full, sampleSnapshot('none')];
      for (const row of again) {
        await rejectsWith(
          'SBX_CONFLICT',
          write(store, (tx) => tx.snapshots.update(row)),
        );
      }
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.snapshots.insert(full)),
      );
    },
  },
  {
    name: 'are listed newest first without the deleted, in pages',
    async run(store) {
      await write(store, async (tx) => {
        await tx.snapshots.insert(sampleSnapshot('a', { createdAt: T0 }));
        await tx.snapshots.insert(sampleSnapshot('c', { createdAt: T0 + 1 }));
        await tx.snapshots.insert(sampleSnapshot('b', { createdAt: T0 + 1, sandboxUid: 'other' }));
        await tx.snapshots.insert(sampleSnapshot('d', { createdAt: T0 + 2, state: 'deleted' }));
        await tx.snapshots.insert(sampleSnapshot('e', { createdAt: T0 + 3, workspaceId: 'w2' }));
      });
      const list = (query: Partial<SnapshotQuery>) =>
        read(store, (tx) => tx.snapshots.list({ workspaceId: 'default', limit: 9, ...query }));
      assert.deepEqual(idsOf((await list({})).items), ['c', 'b', 'a']);
      assert.deepEqual(idsOf((await list({ workspaceId: null })).items), ['e', 'c', 'b', 'a']);
      assert.deepEqual(idsOf((await list({ sandboxUid: 'other' })).items), ['b']);
      const first = await list({ limit: 2 });
      assert.deepEqual(idsOf(first.items), ['c', 'b']);
      const second = await list({ limit: 2, cursor: first.nextCursor });
      assert.deepEqual(idsOf(second.items), ['a']);
      assert.equal(second.nextCursor, null);
    },
  },
  {
    name: 'are due for deletion when it was asked for or their time is over, and pruned when deleted',
    async run(store) {
      await write(store, async (tx) => {
        const { snapshots } = tx;
        await snapshots.insert(sampleSnapshot('a', { state: 'deleting', createdAt: T0 + 3 }));
        await snapshots.insert(sampleSnapshot('b', { state: 'available', expiresAt: T0 + 5, createdAt: T0 }));
        await snapshots.insert(sampleSnapshot('c', { state: 'available', expiresAt: T0 + 6 }));
        await snapshots.insert(sampleSnapshot('d', { state: 'deleted', expiresAt: T0, deletedAt: T0 + 8 }));
        await snapshots.insert(sampleSnapshot('e', { state: 'deleting', expiresAt: T0, createdAt: T0 + 1 }));
        await snapshots.insert(sampleSnapshot('f', { state: 'deleted', deletedAt: T0 + 9 }));
      });
      const due = (limit: number) => read(store, (tx) => tx.snapshots.dueDeletion(T0 + 5, limit));
      assert.deepEqual(idsOf(await due(9)), ['b', 'e', 'a']);
      assert.deepEqual(idsOf(await due(2)), ['b', 'e']);
      assert.equal(await write(store, (tx) => tx.snapshots.prune(T0 + 9, 9)), 1);
      assert.equal(await read(store, (tx) => tx.snapshots.get('d')), null);
      assert.ok(await read(store, (tx) => tx.snapshots.get('f')));
      assert.ok(await read(store, (tx) => tx.snapshots.get('a')));
    },
  },
  {
    name: 'are counted and summed for each workspace, without the deleted',
    async run(store) {
      await write(store, async ({ snapshots }) => {
        await snapshots.insert(sampleSnapshot('a', { sizeBytes: 3_000_000_000 }));
        await snapshots.insert(sampleSnapshot('b', { sizeBytes: 2_000_000_000, state: 'deleting' }));
        await snapshots.insert(sampleSnapshot('c'));
        await snapshots.insert(sampleSnapshot('d', { sizeBytes: 7, state: 'deleted', deletedAt: T0 }));
        await snapshots.insert(sampleSnapshot('e', { sizeBytes: 9, workspaceId: 'w2' }));
      });
      const usage = (workspaceId: string) => read(store, (tx) => tx.snapshots.usage(workspaceId));
      assert.deepEqual(await usage('default'), { count: 3, bytes: 5_000_000_000 });
      assert.deepEqual(await usage('w2'), { count: 1, bytes: 9 });
      assert.deepEqual(await usage('w3'), { count: 0, bytes: 0 });
    },
  },
];
