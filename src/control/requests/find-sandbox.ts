import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { visibleWorkspace } from '../../core/tenancy/caller.ts';

/** Finds a sandbox that the caller may see; one of another workspace counts as not found. */
export async function findSandbox(tx: Tx, caller: Caller, id: string): Promise<SandboxRecord> {
  const row = await tx.sandboxes.find(visibleWorkspace(caller), id);
  if (row) return row;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no sandbox "${id}".`, {
    remedy: 'List the sandboxes to see which exist.',
  });
}
