import { SandboxerError } from '../../contract/errors/errors.ts';
import type { CreateKeyRequest, RotateKeyRequest } from '../../contract/tenancy/tenancy.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditDraft, auditedTransaction } from '../requests/audit.ts';
import { hashSecret } from './authenticate.ts';
import { endOf, hasEnded, linesBelow, ownKey, requireNoMore, requireSameBudgets } from './key-rights.ts';

function newSecret(deps: ControlPorts): string {
  return `sk-${deps.ids.next('sbx')}${deps.ids.next('k').slice(2)}`;
}

async function findKey(tx: Tx, caller: Caller, id: string): Promise<KeyRecord> {
  const key = await tx.tenancy.key(id);
  const workspace = visibleWorkspace(caller);
  if (key && (workspace === null || key.workspaceId === workspace)) return key;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no key "${id}".`);
}

/** Creates a key. A key made by another has no more rights and no more budget than its maker, and ends no later. */
export async function createKey(
  control: Control,
  caller: Caller,
  request: CreateKeyRequest,
): Promise<{ key: KeyRecord; secret: string }> {
  requireScope(caller, 'keys');
  const all = caller.scopes.has('server');
  const workspaceId = request.workspace_id ?? caller.workspaceId;
  requireNoMore(caller, request);
  if (workspaceId !== caller.workspaceId && !all)
    throw new SandboxerError('SBX_FORBIDDEN', 'That is another workspace.', { field: 'workspace_id' });
  const secret = newSecret(control);
  const { name, actor, scopes } = request;
  const id = control.ids.next('key');
  const subject = { action: 'createKey', target: id, workspaceId, details: { name, actor, scopes } };
  const key = await auditedTransaction(control, caller, { label: 'create-key', subject }, async (tx) => {
    const now = control.clock.now();
    const maker = await ownKey(tx, caller, now);
    const workspace = await tx.tenancy.workspace(workspaceId);
    if (!workspace || workspace.deletedAt !== undefined)
      throw new SandboxerError('SBX_NOT_FOUND', `There is no workspace "${workspaceId}".`, {
        field: 'workspace_id',
      });
    const made: KeyRecord = {
      id,
      workspaceId,
      name,
      secretHash: hashSecret(secret),
      number: (await tx.tenancy.lastKeyNumber()) + 1,
      rotatedFrom: null,
      ...linesBelow(caller, maker, id),
      actor,
      scopes,
      createdAt: now,
      expiresAt: endOf(maker, now, request.expires_in, null),
      revokedAt: null,
      lastUsedAt: null,
    };
    await requireSameBudgets(tx, caller, maker, made);
    await tx.tenancy.insertKey(made);
    return made;
  });
  return { key, secret };
}

export async function listKeys(control: Control, caller: Caller): Promise<readonly KeyRecord[]> {
  requireScope(caller, 'keys');
  return control.store.read('keys', (tx) => tx.tenancy.keys(visibleWorkspace(caller)));
}

async function revokeIn(tx: Tx, key: KeyRecord, now: number): Promise<KeyRecord> {
  if (key.revokedAt !== null) return key;
  const revoked = { ...key, revokedAt: now };
  await tx.tenancy.updateKey(revoked);
  return revoked;
}

interface RevokeKey {
  readonly id: string;
  readonly keepsMade?: boolean;
}

/** Ends a key, and the keys it made unless `keepsMade` says otherwise. Idempotent. */
export async function revokeKey(
  control: Control,
  caller: Caller,
  { id, keepsMade = false }: RevokeKey,
): Promise<KeyRecord> {
  requireScope(caller, 'keys');
  const subject = { action: 'revokeKey', target: id, details: keepsMade ? { keep_made: true } : {} };
  return auditedTransaction(control, caller, { label: 'revoke-key', subject }, async (tx) => {
    const key = await findKey(tx, caller, id);
    if (key.id !== caller.keyId) requireNoMore(caller, key, 'ends');
    const now = control.clock.now();
    const [line] = key.lines;
    if (!keepsMade) {
      for (const made of await tx.tenancy.keys(null)) {
        if (made.revokedAt !== null || !made.lines.slice(1).includes(line)) continue;
        await revokeIn(tx, made, now);
        const { id: target, workspaceId } = made;
        const record = { action: 'revokeKey', target, workspaceId, details: { made_by: line } };
        await tx.audit.append([auditDraft(control, caller, record)]);
      }
    }
    return revokeIn(tx, key, now);
  });
}

interface RotateKey {
  readonly id: string;
  readonly request: RotateKeyRequest;
}

/** Makes a successor with the same rights, in the same line; the old key ends now, or after the overlap. */
export async function rotateKey(
  control: Control,
  caller: Caller,
  { id, request }: RotateKey,
): Promise<{ key: KeyRecord; secret: string }> {
  requireScope(caller, 'keys');
  const secret = newSecret(control);
  const successor = control.ids.next('key');
  const subject = { action: 'rotateKey', target: id, details: { successor } };
  const key = await auditedTransaction(control, caller, { label: 'rotate-key', subject }, async (tx) => {
    const old = await findKey(tx, caller, id);
    requireNoMore(caller, old, 'rotates');
    const now = control.clock.now();
    const own = await ownKey(tx, caller, now);
    await requireSameBudgets(tx, caller, own, old);
    if (hasEnded(old, now)) {
      throw new SandboxerError('SBX_CONFLICT', `The key "${id}" has ended.`, {
        retryable: false,
        remedy: 'Make a new key.',
      });
    }
    const usual = old.expiresAt === null ? null : now + (old.expiresAt - old.createdAt);
    const next: KeyRecord = {
      ...old,
      id: successor,
      secretHash: hashSecret(secret),
      number: (await tx.tenancy.lastKeyNumber()) + 1,
      rotatedFrom: id,
      createdAt: now,
      expiresAt: endOf(own, now, request.expires_in, usual),
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
