import assert from 'node:assert/strict';
import { sampleAttempt, sampleProviderKey, sampleSandbox, sampleSnapshot, T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

export const providerKeyCases: readonly StoreCase[] = [
  {
    name: 'keeps one for each workspace and backend, and one of the platform',
    async run(store) {
      const platform = sampleProviderKey('pky_1', { workspaceId: null });
      const own = sampleProviderKey('pky_2', { workspaceId: 'a', refusedAt: T0, state: 'refused' });
      const other = sampleProviderKey('pky_3', { workspaceId: 'b', label: 'ours' });
      for (const key of [other, own, platform]) await write(store, (tx) => tx.providerKeys.insert(key));
      assert.deepEqual(await read(store, (tx) => tx.providerKeys.list()), [platform, own, other]);
      assert.deepEqual(await read(store, (tx) => tx.providerKeys.usableBy('a')), [platform, own]);
      assert.deepEqual(await read(store, (tx) => tx.providerKeys.usableBy('c')), [platform]);
      assert.deepEqual(await read(store, (tx) => tx.providerKeys.get('pky_3')), other);
      for (const workspaceId of [null, 'a']) {
        const second = sampleProviderKey('pky_9', { workspaceId });
        await rejectsWith(
          'SBX_CONFLICT',
          write(store, (tx) => tx.providerKeys.insert(second)),
        );
      }
    },
  },
  {
    name: 'changes what was read, and nothing else',
    async run(store) {
      const key = sampleProviderKey('pky_1');
      await write(store, (tx) => tx.providerKeys.insert(key));
      const changed = await write(store, (tx) => tx.providerKeys.update({ ...key, sealed: 'anew' }));
      assert.deepEqual(changed, { ...key, sealed: 'anew', version: 2 });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.providerKeys.update(key)),
      );
      await write(store, (tx) => tx.providerKeys.remove('pky_1'));
      assert.equal(await read(store, (tx) => tx.providerKeys.get('pky_1')), null);
    },
  },
  {
    name: 'knows what was made with it',
    async run(store) {
      const isUsed = (id: string) => read(store, (tx) => tx.providerKeys.isUsed(id));
      await write(store, async (tx) => {
        await tx.sandboxes.insert(sampleSandbox({ uid: 'sbx_0001' }));
        await tx.attempts.insert(sampleAttempt('sbx_0001', { providerKeyId: 'pky_1' }));
        await tx.snapshots.insert(sampleSnapshot('snap_1', { providerKeyId: 'pky_2' }));
      });
      assert.deepEqual(
        [await isUsed('pky_1'), await isUsed('pky_2'), await isUsed('pky_3')],
        [true, true, false],
      );
      await write(store, async (tx) => {
        await tx.attempts.update(sampleAttempt('sbx_0001', { providerKeyId: 'pky_1', state: 'gone' }));
        await tx.snapshots.update(
          sampleSnapshot('snap_1', { providerKeyId: 'pky_2', state: 'deleted', deletedAt: T0 }),
        );
      });
      assert.deepEqual([await isUsed('pky_1'), await isUsed('pky_2')], [false, false]);
    },
  },
];
