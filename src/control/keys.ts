import { createHash } from 'node:crypto';
import { SandboxerError } from '../contract/errors.ts';
import type { CreateKeyRequest } from '../contract/tenancy.ts';
import { type Caller, requireScope, visibleWorkspace } from '../core/caller.ts';
import type { KeyRecord } from '../core/tenancy.ts';
import type { ControlDeps } from './deps.ts';

export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** A key never gives more than its maker has. */
export async function createKey(deps: ControlDeps, caller: Caller, request: CreateKeyRequest): Promise<{ key: KeyRecord; secret: string }> {
  requireScope(caller, 'keys');
  const all = caller.scopes.has('server');
  const workspaceId = request.workspace_id ?? caller.workspaceId;
  const beyond = request.scopes.filter((scope) => !all && !caller.scopes.has(scope));
  if (beyond.length > 0 || (request.actor === 'adm' && caller.actor !== 'adm')) {
    throw new SandboxerError('SBX_FORBIDDEN', 'A key cannot be given more than its maker has.', { field: beyond.length > 0 ? 'scopes' : 'actor' });
  }
  if (workspaceId !== caller.workspaceId && !all) throw new SandboxerError('SBX_FORBIDDEN', 'That is another workspace.', { field: 'workspace_id' });
  const secret = `sk-${deps.ids.next('sbx')}${deps.ids.next('k').slice(2)}`;
  const now = deps.clock.now();
  const key: KeyRecord = {
    id: deps.ids.next('key'),
    workspaceId,
    name: request.name,
    secretHash: hashSecret(secret),
    actor: request.actor,
    scopes: request.scopes,
    createdAt: now,
    expiresAt: request.expires_in === undefined ? null : now + request.expires_in * 1000,
    revokedAt: null,
    lastUsedAt: null,
  };
  await deps.store.transaction('create-key', async (tx) => {
    if (!(await tx.tenancy.workspace(workspaceId))) throw new SandboxerError('SBX_NOT_FOUND', `There is no workspace "${workspaceId}".`, { field: 'workspace_id' });
    await tx.tenancy.insertKey(key);
  });
  return { key, secret };
}

export async function listKeys(deps: ControlDeps, caller: Caller): Promise<readonly KeyRecord[]> {
  requireScope(caller, 'keys');
  return deps.store.read('keys', (tx) => tx.tenancy.keys(visibleWorkspace(caller)));
}

/** Idempotent. */
export async function revokeKey(deps: ControlDeps, caller: Caller, id: string): Promise<KeyRecord> {
  requireScope(caller, 'keys');
  return deps.store.transaction('revoke-key', async (tx) => {
    const key = await tx.tenancy.key(id);
    const workspace = visibleWorkspace(caller);
    if (!key || (workspace !== null && key.workspaceId !== workspace)) throw new SandboxerError('SBX_NOT_FOUND', `There is no key "${id}".`);
    if (key.revokedAt !== null) return key;
    const revoked = { ...key, revokedAt: deps.clock.now() };
    await tx.tenancy.updateKey(revoked);
    return revoked;
  });
}

/** Who holds this secret, or `null`. The look-up is by hash, so its time tells nothing about near misses. */
export async function authenticate(deps: ControlDeps, secret: string): Promise<Caller | null> {
  const found = await deps.store.read('authenticate', async (tx) => {
    const key = await tx.tenancy.keyByHash(hashSecret(secret));
    const workspace = key ? await tx.tenancy.workspace(key.workspaceId) : null;
    return key && workspace ? { key, workspace } : null;
  });
  if (!found) return null;
  const { key, workspace } = found;
  const now = deps.clock.now();
  if (key.revokedAt !== null || (key.expiresAt !== null && key.expiresAt <= now)) return null;
  return {
    actor: key.actor,
    workspaceId: key.workspaceId,
    orgId: workspace.orgId,
    keyId: key.id,
    scopes: new Set(key.scopes),
    local: false,
  };
}
