import type { ImageRecord } from '../../core/assets/image.ts';
import { imageReference } from '../../core/assets/image.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findKept, requireOwn } from './find-kept.ts';
import { sweepKept } from './sweep-kept.ts';

export async function listImages(deps: ControlPorts, caller: Caller): Promise<readonly ImageRecord[]> {
  requireScope(caller, 'read');
  return await deps.store.read('list-images', (tx) => tx.images.list(visibleWorkspace(caller)));
}

/** Finds an image by id, name, or `name@digest`. */
async function findImage(tx: Tx, caller: Caller, ref: string): Promise<ImageRecord> {
  return await findKept(tx.images, caller, {
    noun: 'image',
    ref,
    matches: (image) =>
      image.id === ref || image.name === ref || imageReference(image) === ref || image.digest === ref,
  });
}

export async function getImage(
  deps: ControlPorts,
  caller: Caller,
  { ref }: { readonly ref: string },
): Promise<ImageRecord> {
  requireScope(caller, 'read');
  return await deps.store.read('get-image', (tx) => findImage(tx, caller, ref));
}

/** Idempotent by id. Sandboxes and snapshots that were made from it go on. */
export async function deleteImage(
  deps: ControlPorts,
  caller: Caller,
  { ref }: { readonly ref: string },
): Promise<void> {
  requireScope(caller, 'sandboxes');
  const recorded = { label: 'delete-image', action: 'deleteImage', target: ({ id }: ImageRecord) => id };
  const marked = await recordedTransaction(deps, caller, recorded, async (tx) => {
    const image = await findImage(tx, caller, ref);
    requireOwn(caller, image, 'image');
    return image.state === 'deleting' ? image : await tx.images.update({ ...image, state: 'deleting' });
  });
  await sweepKept(deps, marked.id);
}
