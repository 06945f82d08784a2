import { SandboxerError } from '../../contract/errors/errors.ts';
import type { MoneyPolicy } from '../../core/credits/policy.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

const PAGE = 100;
const MINUTE_MS = 60_000;

/** Sandboxes on their way to the next generation count as living: their places are not free. */
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

/** Refuses one more living sandbox when the workspace has its number, or had too many within a minute. */
export async function requireRoom(
  tx: Tx,
  deps: ControlPorts,
  policy: MoneyPolicy,
  now: number,
): Promise<void> {
  const { workspaceId, createsPerMinute } = policy;
  if (createsPerMinute !== null) {
    const made = await tx.sandboxes.countCreated(workspaceId, now - MINUTE_MS);
    if (made >= createsPerMinute) {
      throw new SandboxerError(
        'SBX_RATE_LIMITED',
        `The workspace makes at most ${createsPerMinute} sandboxes in a minute.`,
        { creation: 'not_created', retryAfterSeconds: 60 },
      );
    }
  }
  const limits = [deps.settings.maxLiving, policy.maxLiving].filter((limit) => limit !== null);
  if (limits.length === 0) return;
  const most = Math.min(...limits);
  const free = most - (await tx.sandboxes.countLiving(workspaceId));
  if (free > 0 && (await countRecreating(tx, workspaceId, free)) < free) return;
  throw new SandboxerError('SBX_QUOTA_EXCEEDED', `The workspace has its ${most} living sandboxes already.`, {
    creation: 'not_created',
  });
}
