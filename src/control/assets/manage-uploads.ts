import { SandboxerError } from '../../contract/errors/errors.ts';
import type { UploadRecord } from '../../core/assets/upload.ts';
import type { Page } from '../../core/ports/store/page.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { requireInputs } from './stage-upload.ts';

async function findUpload(tx: Tx, caller: Caller, id: string): Promise<UploadRecord> {
  const record = await tx.uploads.get(id);
  const workspace = visibleWorkspace(caller);
  if (record && (workspace === null || record.workspaceId === workspace)) return record;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no upload "${id}".`, {
    remedy: 'Upload it again: uploads that no sandbox has expire.',
  });
}

export function getUpload(
  deps: ControlPorts,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<UploadRecord> {
  requireScope(caller, 'read');
  return deps.store.read('upload', (tx) => findUpload(tx, caller, id));
}

export function listUploads(
  deps: ControlPorts,
  caller: Caller,
  query: { readonly limit: number; readonly cursor: string | null },
): Promise<Page<UploadRecord>> {
  requireScope(caller, 'read');
  return deps.store.read('uploads', (tx) =>
    tx.uploads.list({ ...query, workspaceId: visibleWorkspace(caller) }),
  );
}

/** A JSON document on each line. */
export async function uploadEntries(
  deps: ControlPorts,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<AsyncIterable<Uint8Array>> {
  await getUpload(deps, caller, { id });
  return requireInputs(deps).entries(id);
}

export async function deleteUpload(
  deps: ControlPorts,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<void> {
  requireScope(caller, 'sandboxes');
  const recorded = { label: 'delete-upload', action: 'deleteUpload', target: () => id };
  await requireInputs(deps).drop(id, () =>
    recordedTransaction(deps, caller, recorded, async (tx) => {
      const { id: found } = await findUpload(tx, caller, id);
      if (await tx.uploads.inUse(found)) {
        throw new SandboxerError('SBX_INVALID_STATE', 'A sandbox was made from this upload.', {
          remedy: 'Destroy the sandbox first: a recreate would need it.',
        });
      }
      await tx.uploads.remove(found);
      return true;
    }),
  );
}
