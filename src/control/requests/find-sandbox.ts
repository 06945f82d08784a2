import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Caller } from '../../core/caller.ts';
import { visibleWorkspace } from '../../core/caller.ts';
import type { SandboxRecord } from '../../core/sandbox.ts';
import type { Tx } from '../../core/store.ts';

/** A sandbox that the caller may see; another workspace's is not found, like one that never was. */
export async function findSandbox(tx: Tx, caller: Caller, id: string): Promise<SandboxRecord> {
  const row = await tx.sandboxes.find(visibleWorkspace(caller), id);
  if (row) return row;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no sandbox "${id}".`, {
    remedy: 'List the sandboxes to see which exist.',
  });
}
