import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { visibleWorkspace } from '../../core/tenancy/caller.ts';

/** A sandbox that the caller may see; another workspace's is not found, like one that never was. */
export async function findSandbox(tx: Tx, caller: Caller, id: string): Promise<SandboxRecord> {
  const row = await tx.sandboxes.find(visibleWorkspace(caller), id);
  if (row) return row;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no sandbox "${id}".`, {
    remedy: 'List the sandboxes to see which exist.',
  });
}
