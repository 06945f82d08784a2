import type { KeptResource } from '../../core/assets/kept-resource.ts';
import type { Extension, ExtensionContext } from '../../core/ports/extension.ts';
import type { KeptStore } from '../../core/ports/store/kept-store.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import { contextFor } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { mountsOf } from './volume-mounts.ts';

const BATCH = 50;
const TIMEOUT_MS = 60_000;

type Kept = KeptResource & { readonly extensionId: string };

interface Kind<R extends Kept> {
  readonly noun: 'image' | 'volume';
  store(tx: Tx): KeptStore<R>;
  remove(extension: Extension, id: string, ctx: ExtensionContext): Promise<void> | undefined;
  /** Whether it has to wait. */
  isUsed(tx: Tx, record: R): Promise<boolean>;
}

async function sweep<R extends Kept>(deps: ControlPorts, kind: Kind<R>, only: string | null): Promise<void> {
  const now = deps.clock.now();
  const due = await deps.store.read(`due-${kind.noun}s`, async (tx) => {
    const found = only === null ? await kind.store(tx).due(now, BATCH) : [await kind.store(tx).get(only)];
    const free: R[] = [];
    for (const record of found) if (record && !(await kind.isUsed(tx, record))) free.push(record);
    return free;
  });
  for (const record of due) {
    const extension = deps.extensions.get(record.extensionId);
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      if (extension) await kind.remove(extension, record.id, await contextFor(deps, null, signal));
    } catch (error) {
      deps.log.warn({ err: error, id: record.id }, `${kind.noun} not deleted; it will be tried again`);
      continue;
    }
    await deps.store.transaction(`${kind.noun}-deleted`, (tx) => kind.store(tx).remove(record.id));
  }
}

/** Deletes at the backend what is marked for it, past its time, or was never finished. What fails is tried again. */
export async function sweepKept(deps: ControlPorts, only: string | null = null): Promise<void> {
  if (only === null || only.startsWith('img_')) {
    await sweep(
      deps,
      {
        noun: 'image',
        store: (tx) => tx.images,
        remove: (extension, id, ctx) => extension.deleteImage?.(id, deps.owner, ctx),
        isUsed: async () => false,
      },
      only,
    );
  }
  if (only === null || only.startsWith('vol_')) {
    await sweep(
      deps,
      {
        noun: 'volume',
        store: (tx) => tx.volumes,
        remove: (extension, id, ctx) => extension.deleteVolume?.(id, deps.owner, ctx),
        isUsed: async (tx, volume) => (await mountsOf(tx, volume.workspaceId)).has(volume.id),
      },
      only,
    );
  }
}
