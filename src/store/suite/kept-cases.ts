import assert from 'node:assert/strict';
import type { ImageRecord } from '../../core/assets/image.ts';
import type { VolumeRecord } from '../../core/assets/volume.ts';
import { T0 } from './sample-records.ts';
import type { StoreCase } from './store-case.ts';
import { read, rejectsWith, write } from './store-case.ts';

const common = {
  workspaceId: 'default',
  version: 1,
  name: 'one',
  shared: false,
  state: 'available' as const,
  createdAt: T0,
  expiresAt: null,
  extensionId: 'ext.local',
};

function image(id: string, over: Partial<ImageRecord> = {}): ImageRecord {
  const config = { env: { A: 'b' }, user: '1000', workdir: '/w', entrypoint: ['e'], cmd: [] };
  return { ...common, id, digest: null, architecture: 'amd64', sizeBytes: 7, source: 'oci', config, ...over };
}

function volume(id: string, over: Partial<VolumeRecord> = {}): VolumeRecord {
  return { ...common, id, sizeMb: null, labels: { a: 'b' }, ...over };
}

const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id);

export const keptCases: StoreCase[] = [
  {
    name: 'keeps images and volumes apart, changed by compare-and-set',
    async run(store) {
      const full = image('a', { digest: `sha256:${'0'.repeat(64)}`, expiresAt: T0 + 9 });
      await write(store, async (tx) => {
        await tx.images.insert(full);
        await tx.volumes.insert(volume('a', { sizeMb: 64 }));
      });
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.images.insert(image('a'))),
      );
      assert.deepEqual(await read(store, (tx) => tx.images.get('a')), full);
      assert.deepEqual(await read(store, (tx) => tx.volumes.get('a')), volume('a', { sizeMb: 64 }));
      const changed = await write(store, (tx) => tx.images.update({ ...full, state: 'deleting' }));
      assert.equal(changed.version, 2);
      assert.deepEqual(await read(store, (tx) => tx.images.get('a')), changed);
      await rejectsWith(
        'SBX_CONFLICT',
        write(store, (tx) => tx.images.update(full)),
      );
      await write(store, async (tx) => {
        await tx.images.remove('a');
        await tx.images.remove('none');
      });
      assert.equal(await read(store, (tx) => tx.images.get('a')), null);
      assert.notEqual(await read(store, (tx) => tx.volumes.get('a')), null);
    },
  },
  {
    name: 'lists what a workspace has and what is shared, and finds what is due',
    async run(store) {
      await write(store, async ({ images }) => {
        await images.insert(image('c', { createdAt: T0 + 3 }));
        await images.insert(image('b', { workspaceId: 'other', createdAt: T0 + 2 }));
        await images.insert(image('d', { workspaceId: 'other', shared: true, createdAt: T0 + 1 }));
        await images.insert(image('e', { state: 'deleting', createdAt: T0 + 5 }));
        await images.insert(image('f', { expiresAt: T0 + 9, createdAt: T0 + 4 }));
      });
      await read(store, async ({ images }) => {
        assert.deepEqual(idsOf(await images.list('default')), ['d', 'c', 'f', 'e']);
        assert.deepEqual(idsOf(await images.list('third')), ['d']);
        assert.deepEqual(idsOf(await images.list(null)), ['d', 'b', 'c', 'f', 'e']);
        assert.deepEqual(idsOf(await images.due(T0 + 8, 9)), ['e']);
        assert.deepEqual(idsOf(await images.due(T0 + 9, 9)), ['f', 'e']);
        assert.deepEqual(idsOf(await images.due(T0 + 9, 1)), ['f']);
      });
    },
  },
];
