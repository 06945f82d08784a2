import { createHash } from 'node:crypto';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { hasEnded } from './key-rights.ts';

const USE_NOTED_MS = 60_000;

export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** The last use of a key is written at most once a minute, and never waited for. */
function noteUse(deps: ControlPorts, { id, lastUsedAt }: KeyRecord, now: number): void {
  const isNews = (at: number | null) => at === null || now - at >= USE_NOTED_MS;
  if (!isNews(lastUsedAt)) return;
  deps.store
    .transaction('key-used', async (tx) => {
      const key = await tx.tenancy.key(id);
      if (key && isNews(key.lastUsedAt)) await tx.tenancy.updateKey({ ...key, lastUsedAt: now });
    })
    .catch((error: unknown) => deps.log.debug({ err: error, key: id }, 'the use of a key was not noted'));
}

/**
 * Returns the line of the first key above this one that the tenant has: a key that makes keys gets no more of the server
 * by that. A key that an operator made, or one of another workspace, is not the tenant's own: each such key begins anew.
 */
async function limitLineOf(tx: Tx, { lines, workspaceId }: KeyRecord): Promise<string> {
  for (const line of lines.slice(1).reverse()) {
    const maker = await tx.tenancy.key(line);
    if (maker?.workspaceId === workspaceId && !maker.scopes.includes('server')) return line;
  }
  return lines[0];
}

/**
 * Returns the caller whose key has this hash, or `null`. The look-up is by hash, so its time reveals nothing about near misses.
 */
export async function authenticate(deps: ControlPorts, secretHash: string): Promise<Caller | null> {
  const found = await deps.store.read('authenticate', async (tx) => {
    const key = await tx.tenancy.keyByHash(secretHash);
    const workspace = key ? await tx.tenancy.workspace(key.workspaceId) : null;
    if (!key || !workspace || workspace.deletedAt !== undefined) return null;
    return { key, workspace, limitLine: await limitLineOf(tx, key) };
  });
  if (!found) return null;
  const { key, workspace, limitLine } = found;
  const now = deps.clock.now();
  if (hasEnded(key, now)) return null;
  noteUse(deps, key, now);
  return {
    actor: key.actor,
    workspaceId: key.workspaceId,
    orgId: workspace.orgId,
    keyId: key.id,
    keyNumber: key.number,
    keyEndsAt: key.expiresAt,
    limitLine,
    scopes: new Set(key.scopes),
    local: false,
  };
}
