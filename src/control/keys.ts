import { createHash } from 'node:crypto';
import { SandboxerError } from '../contract/errors.ts';
import type { CreateKeyRequest, RotateKeyRequest } from '../contract/tenancy.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope, visibleWorkspace } from '../core/caller.ts';
import type { Tx } from '../core/store.ts';
import type { KeyRecord } from '../core/tenancy.ts';
import { auditedTransaction } from './audit.ts';
import type { ControlDeps } from './deps.ts';

function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

function newSecret(deps: ControlDeps): string {
  return `sk-${deps.ids.next('sbx')}${deps.ids.next('k').slice(2)}`;
}

function requireNoMore(caller: Caller, wanted: Pick<KeyRecord, 'scopes' | 'actor'>): void {
  const beyond = wanted.scopes.filter((scope) => !caller.scopes.has('server') && !caller.scopes.has(scope));
  if (beyond.length === 0 && (wanted.actor !== 'adm' || caller.actor === 'adm')) return;
  throw new SandboxerError('SBX_FORBIDDEN', 'A key cannot be given more than its maker has.', {
    field: beyond.length > 0 ? 'scopes' : 'actor',
  });
}

async function findKey(tx: Tx, caller: Caller, id: string): Promise<KeyRecord> {
  const key = await tx.tenancy.key(id);
  const workspace = visibleWorkspace(caller);
  if (key && (workspace === null || key.workspaceId === workspace)) return key;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no key "${id}".`);
}

/** A key never gives more than its maker has. */
export async function createKey(
  deps: ControlDeps,
  caller: Caller,
  request: CreateKeyRequest,
): Promise<{ key: KeyRecord; secret: string }> {
  requireScope(caller, 'keys');
  const all = caller.scopes.has('server');
  const workspaceId = request.workspace_id ?? caller.workspaceId;
  requireNoMore(caller, request);
  if (workspaceId !== caller.workspaceId && !all)
    throw new SandboxerError('SBX_FORBIDDEN', 'That is another workspace.', { field: 'workspace_id' });
  const secret = newSecret(deps);
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
  const details = { name: key.name, actor: key.actor, scopes: key.scopes };
  const subject = { action: 'createKey', target: key.id, workspaceId, details };
  await auditedTransaction(deps, caller, 'create-key', subject, async (tx) => {
    const workspace = await tx.tenancy.workspace(workspaceId);
    if (!workspace || workspace.deletedAt !== undefined)
      throw new SandboxerError('SBX_NOT_FOUND', `There is no workspace "${workspaceId}".`, {
        field: 'workspace_id',
      });
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
  return auditedTransaction(deps, caller, 'revoke-key', { action: 'revokeKey', target: id }, async (tx) => {
    const key = await findKey(tx, caller, id);
    if (key.revokedAt !== null) return key;
    const revoked = { ...key, revokedAt: deps.clock.now() };
    await tx.tenancy.updateKey(revoked);
    return revoked;
  });
}

/** A successor with the same rights; the old key ends now, or after the overlap. */
export async function rotateKey(
  deps: ControlDeps,
  caller: Caller,
  id: string,
  request: RotateKeyRequest,
): Promise<{ key: KeyRecord; secret: string }> {
  requireScope(caller, 'keys');
  const secret = newSecret(deps);
  const successor = deps.ids.next('key');
  const subject = { action: 'rotateKey', target: id, details: { successor } };
  const key = await auditedTransaction(deps, caller, 'rotate-key', subject, async (tx) => {
    const old = await findKey(tx, caller, id);
    requireNoMore(caller, old);
    const now = deps.clock.now();
    if (old.revokedAt !== null || (old.expiresAt !== null && old.expiresAt <= now)) {
      throw new SandboxerError('SBX_CONFLICT', `The key "${id}" has ended.`, {
        retryable: false,
        remedy: 'Make a new key.',
      });
    }
    const lifeMs =
      request.expires_in === undefined
        ? old.expiresAt && old.expiresAt - old.createdAt
        : request.expires_in * 1000;
    const next: KeyRecord = {
      ...old,
      id: successor,
      secretHash: hashSecret(secret),
      createdAt: now,
      expiresAt: lifeMs === null ? null : now + lifeMs,
      lastUsedAt: null,
    };
    await tx.tenancy.insertKey(next);
    const endsAt = now + (request.overlap ?? 0) * 1000;
    if (request.overlap === undefined) await tx.tenancy.updateKey({ ...old, revokedAt: now });
    else await tx.tenancy.updateKey({ ...old, expiresAt: Math.min(old.expiresAt ?? endsAt, endsAt) });
    return next;
  });
  return { key, secret };
}

const USE_NOTED_MS = 60_000;

/** Written at most once a minute, and never waited for. */
function noteUse(deps: ControlDeps, { id, lastUsedAt }: KeyRecord, now: number): void {
  const isNews = (at: number | null) => at === null || now - at >= USE_NOTED_MS;
  if (!isNews(lastUsedAt)) return;
  deps.store
    .transaction('key-used', async (tx) => {
      const key = await tx.tenancy.key(id);
      if (key && isNews(key.lastUsedAt)) await tx.tenancy.updateKey({ ...key, lastUsedAt: now });
    })
    .catch((error: unknown) => deps.log.debug({ err: error, key: id }, 'the use of a key was not noted'));
}

/** Who holds this secret, or `null`. The look-up is by hash, so its time tells nothing about near misses. */
export async function authenticate(deps: ControlDeps, secret: string): Promise<Caller | null> {
  const found = await deps.store.read('authenticate', async (tx) => {
    const key = await tx.tenancy.keyByHash(hashSecret(secret));
    const workspace = key ? await tx.tenancy.workspace(key.workspaceId) : null;
    return key && workspace && workspace.deletedAt === undefined ? { key, workspace } : null;
  });
  if (!found) return null;
  const { key, workspace } = found;
  const now = deps.clock.now();
  if (key.revokedAt !== null || (key.expiresAt !== null && key.expiresAt <= now)) return null;
  noteUse(deps, key, now);
  return {
    actor: key.actor,
    workspaceId: key.workspaceId,
    orgId: workspace.orgId,
    keyId: key.id,
    scopes: new Set(key.scopes),
    local: false,
  };
}
