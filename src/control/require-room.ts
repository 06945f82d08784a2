import { SandboxerError } from '../contract/errors.ts';
import type { Tx } from '../core/store.ts';
import type { ControlDeps } from './deps.ts';

const PAGE = 100;

/** Sandboxes on their way to the next generation: they will live again, so their places are not free. */
async function countRecreating(tx: Tx, workspaceId: string, enough: number): Promise<number> {
  let count = 0;
  let cursor: string | null = null;
  do {
    const page = await tx.sandboxes.list({ workspaceId, states: ['destroying'], cursor, limit: PAGE });
    count += page.items.filter((row) => row.recreating).length;
    cursor = page.nextCursor;
  } while (cursor !== null && count < enough);
  return count;
}

/** Refuses one more living sandbox when the workspace has its number. */
export async function requireRoom(tx: Tx, deps: ControlDeps, workspaceId: string): Promise<void> {
  const { maxLiving } = deps.settings;
  if (maxLiving === null) return;
  const free = maxLiving - (await tx.sandboxes.countLiving(workspaceId));
  if (free > 0 && (await countRecreating(tx, workspaceId, free)) < free) return;
  throw new SandboxerError(
    'SBX_QUOTA_EXCEEDED',
    `The workspace has its ${maxLiving} living sandboxes already.`,
    {
      creation: 'not_created',
    },
  );
}
