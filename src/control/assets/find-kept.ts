import { SandboxerError } from '../../contract/errors/errors.ts';
import type { KeptResource } from '../../core/assets/kept-resource.ts';
import type { KeptStore } from '../../core/ports/store/kept-store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { visibleWorkspace } from '../../core/tenancy/caller.ts';

interface FindKept<R extends KeptResource> {
  readonly noun: string;
  readonly ref: string;
  readonly matches?: (record: R) => boolean;
}

/** Finds an asset by id or by name, the newest first; an asset of another workspace counts as not found. */
export async function findKept<R extends KeptResource>(
  store: KeptStore<R>,
  caller: Caller,
  { noun, ref, matches = (record) => record.id === ref || record.name === ref }: FindKept<R>,
): Promise<R> {
  const visible = await store.list(visibleWorkspace(caller));
  const found = visible.filter(matches);
  // An asset of the caller's own workspace wins over a shared one.
  const own = found.filter(({ workspaceId }) => workspaceId === caller.workspaceId);
  const record = own.at(-1) ?? found.at(-1);
  if (record) return record;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no ${noun} "${ref}".`, {
    remedy: `List the ${noun}s to see which exist.`,
  });
}

/**
 * Fails unless the asset belongs to the caller's workspace: a shared asset is seen by all, and changed only by its own workspace.
 */
export function requireOwn(caller: Caller, record: KeptResource, noun: string): void {
  const workspace = visibleWorkspace(caller);
  if (workspace === null || record.workspaceId === workspace) return;
  throw new SandboxerError('SBX_FORBIDDEN', `The ${noun} "${record.name}" is shared by another workspace.`, {
    remedy: 'Ask who shares it.',
  });
}

/** Fails unless the caller sees all workspaces: only such a caller may share an asset. */
export function requireSharer(caller: Caller): void {
  if (visibleWorkspace(caller) === null) return;
  throw new SandboxerError(
    'SBX_FORBIDDEN',
    'Only the administrator of the server shares with all workspaces.',
    {
      remedy: 'Leave "shared" out, or use a key with the scope "server".',
    },
  );
}
