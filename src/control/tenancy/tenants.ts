import { SandboxerError } from '../../contract/errors/errors.ts';
import type { RouteCeiling } from '../../contract/routing/route.ts';
import { accounts } from '../../core/credits/accounts.ts';
import { defaultPolicy } from '../../core/credits/policy.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { OrgRecord, WorkspaceRecord } from '../../core/tenancy/tenancy.ts';
import type { Control } from '../control.ts';
import type { LeftCredits } from '../money/clear-purses.ts';
import { clearPurses } from '../money/clear-purses.ts';
import { auditedTransaction } from '../requests/audit.ts';

/** Orgs and workspaces are the server's business: all of this needs the scope `server`. */

/** The workspace that every installation has; the local administrator acts in it. */
const PERMANENT = 'default';

function missing(kind: 'org' | 'workspace', id: string): SandboxerError {
  return new SandboxerError('SBX_NOT_FOUND', `There is no ${kind} "${id}".`);
}

function refused(detail: string, remedy: string): SandboxerError {
  return new SandboxerError('SBX_CONFLICT', detail, { retryable: false, remedy });
}

async function findOrg(tx: Tx, id: string): Promise<OrgRecord> {
  const org = await tx.tenancy.org(id);
  if (org && org.deletedAt === undefined) return org;
  throw missing('org', id);
}

async function findWorkspace(tx: Tx, id: string): Promise<WorkspaceRecord> {
  const workspace = await tx.tenancy.workspace(id);
  if (workspace && workspace.deletedAt === undefined) return workspace;
  throw missing('workspace', id);
}

const isThere = ({ deletedAt }: { readonly deletedAt?: number }) => deletedAt === undefined;

interface NamedTenant {
  readonly id: string;
  readonly name: string;
}

export async function createOrg(
  control: Control,
  caller: Caller,
  { id, name }: NamedTenant,
): Promise<OrgRecord> {
  requireScope(caller, 'server');
  const org = { id, name, createdAt: control.clock.now() };
  return auditedTransaction(
    control,
    caller,
    { label: 'create-org', subject: { action: 'createOrg', target: id } },
    async (tx) => {
      if (await tx.tenancy.org(id)) throw refused(`The id "${id}" was given before.`, 'Choose another id.');
      await tx.tenancy.insertOrg(org);
      return org;
    },
  );
}

export async function listOrgs(control: Control, caller: Caller): Promise<readonly OrgRecord[]> {
  requireScope(caller, 'server');
  return control.store.read('orgs', async (tx) => (await tx.tenancy.orgs()).filter(isThere));
}

export async function getOrg(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<OrgRecord> {
  requireScope(caller, 'server');
  return control.store.read('orgs', (tx) => findOrg(tx, id));
}

export async function renameOrg(
  control: Control,
  caller: Caller,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<OrgRecord> {
  requireScope(caller, 'server');
  return auditedTransaction(
    control,
    caller,
    { label: 'rename-org', subject: { action: 'renameOrg', target: id } },
    async (tx) => {
      const org = { ...(await findOrg(tx, id)), name };
      await tx.tenancy.updateOrg(org);
      return org;
    },
  );
}

export async function deleteOrg(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<void> {
  requireScope(caller, 'server');
  await auditedTransaction(
    control,
    caller,
    { label: 'delete-org', subject: { action: 'deleteOrg', target: id } },
    async (tx) => {
      const org = await findOrg(tx, id);
      if (id === PERMANENT) throw refused('This org is always there.', 'Leave it.');
      if ((await tx.tenancy.workspaces(id)).some(isThere)) {
        throw refused('The org has workspaces.', 'Delete its workspaces first.');
      }
      if ((await tx.ledger.balance(accounts.orgCredits(id))) > 0)
        throw refused(
          'The purse of the org has credits.',
          'Create a workspace in it, set the credits of the org to `shared` and to `split`, and delete the workspace with `credits=move`.',
        );
      await tx.tenancy.updateOrg({ ...org, deletedAt: control.clock.now() });
    },
  );
}

/** Joins a new workspace to the shared purse, where the workspaces of its org spend from one. */
async function joinPurse(tx: Tx, id: string, orgId: string): Promise<void> {
  const sibling = (await tx.tenancy.workspaces(orgId)).find(isThere);
  const purse = accounts.orgCredits(orgId);
  if (sibling && (await tx.ledger.policy(sibling.id))?.purse === purse)
    await tx.ledger.setPolicy({ ...defaultPolicy(id), purse });
}

export async function createWorkspace(
  control: Control,
  caller: Caller,
  wanted: { readonly id: string; readonly orgId: string; readonly name: string },
): Promise<WorkspaceRecord> {
  requireScope(caller, 'server');
  const { id, orgId } = wanted;
  const workspace = { ...wanted, createdAt: control.clock.now() };
  const subject = { action: 'createWorkspace', target: id, workspaceId: id };
  return auditedTransaction(control, caller, { label: 'create-workspace', subject }, async (tx) => {
    await findOrg(tx, orgId);
    if (await tx.tenancy.workspace(id))
      throw refused(`The id "${id}" was given before.`, 'Choose another id.');
    await joinPurse(tx, id, orgId);
    await tx.tenancy.insertWorkspace(workspace);
    return workspace;
  });
}

export async function listWorkspaces(
  control: Control,
  caller: Caller,
  { orgId }: { readonly orgId: string | null },
): Promise<readonly WorkspaceRecord[]> {
  requireScope(caller, 'server');
  return control.store.read('workspaces', async (tx) => (await tx.tenancy.workspaces(orgId)).filter(isThere));
}

export async function getWorkspace(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<WorkspaceRecord> {
  requireScope(caller, 'server');
  return control.store.read('workspaces', (tx) => findWorkspace(tx, id));
}

export async function renameWorkspace(
  control: Control,
  caller: Caller,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<WorkspaceRecord> {
  requireScope(caller, 'server');
  const subject = { action: 'renameWorkspace', target: id, workspaceId: id };
  return auditedTransaction(control, caller, { label: 'rename-workspace', subject }, async (tx) => {
    const workspace = { ...(await findWorkspace(tx, id)), name };
    await tx.tenancy.updateWorkspace(workspace);
    return workspace;
  });
}

interface SetWorkspacePolicy {
  readonly id: string;
  readonly policy: RouteCeiling | null;
}

/** Sets the policy of a workspace from the next decision on. Sandboxes that run stay where they are. */
export async function setWorkspacePolicy(
  control: Control,
  caller: Caller,
  { id, policy }: SetWorkspacePolicy,
): Promise<WorkspaceRecord> {
  requireScope(caller, 'server');
  const subject = { action: 'setWorkspacePolicy', target: id, workspaceId: id };
  return auditedTransaction(control, caller, { label: 'workspace-policy', subject }, async (tx) => {
    const { policy: _before, ...workspace } = await findWorkspace(tx, id);
    const changed = policy === null ? workspace : { ...workspace, policy };
    await tx.tenancy.updateWorkspace(changed);
    return changed;
  });
}

/** Refuses to delete a workspace that still has things which only a decision of their own may end. */
async function requireEmpty(tx: Tx, id: string): Promise<void> {
  const present = [
    'requested',
    'provisioning',
    'ready',
    'active',
    'paused',
    'expired',
    'failed',
    'destroying',
  ] as const;
  const { items: sandboxes } = await tx.sandboxes.list({ workspaceId: id, states: present, limit: 1 });
  if (sandboxes.length > 0) throw refused('The workspace has sandboxes.', 'Destroy its sandboxes first.');
  const { items: snapshots } = await tx.snapshots.list({ workspaceId: id, limit: 1 });
  if (snapshots.length > 0) throw refused('The workspace has snapshots.', 'Delete its snapshots first.');
  const held = await tx.ledger.balance(accounts.held(accounts.credits(id)));
  if (held !== 0)
    throw refused('The workspace has money on hold.', 'Try again when its last hold is resolved.');
}

interface DeleteWorkspace {
  readonly id: string;
  readonly left?: LeftCredits;
}

/**
 * Deletes a workspace: its keys end and its webhooks go with it; its history stays, and its id is never given again. Credits that
 * it has are moved or taken back, or it is not deleted.
 */
export async function deleteWorkspace(
  control: Control,
  caller: Caller,
  { id, left = { kind: 'none' } }: DeleteWorkspace,
): Promise<void> {
  requireScope(caller, 'server');
  const subject = {
    action: 'deleteWorkspace',
    target: id,
    workspaceId: id,
    details: { credits: { ...left } },
  };
  await auditedTransaction(control, caller, { label: 'delete-workspace', subject }, async (tx) => {
    const workspace = await findWorkspace(tx, id);
    if (id === PERMANENT) throw refused('This workspace is always there.', 'Leave it.');
    await requireEmpty(tx, id);
    if (left.kind === 'move') {
      await findWorkspace(tx, left.to);
      if (left.to === id)
        throw refused('Credits are not moved into the workspace that is deleted.', 'Name another in `to`.');
    }
    await clearPurses(tx, control, workspace, left);
    const now = control.clock.now();
    for (const key of await tx.tenancy.keys(id)) {
      if (key.revokedAt === null) await tx.tenancy.updateKey({ ...key, revokedAt: now });
    }
    for (const webhook of await tx.webhooks.list(id)) {
      await tx.webhooks.remove(webhook.id);
      await tx.outbox.removeSink(webhookSinkId(webhook.id));
    }
    await tx.tenancy.updateWorkspace({ ...workspace, deletedAt: now });
  });
  await control.webhooks?.changed();
}

/** Returns the same caller in another workspace, with no reach beyond it. Any caller may name its own. */
export async function actIn(
  control: Control,
  caller: Caller,
  { workspaceId }: { readonly workspaceId: string },
): Promise<Caller> {
  if (workspaceId === caller.workspaceId && visibleWorkspace(caller) === workspaceId) return caller;
  if (caller.actor !== 'adm' || !caller.scopes.has('server')) {
    throw new SandboxerError(
      'SBX_FORBIDDEN',
      'Only an administrator of the server acts in other workspaces.',
    );
  }
  const workspace = await control.store.read('workspaces', (tx) => findWorkspace(tx, workspaceId));
  return { ...caller, workspaceId, orgId: workspace.orgId, narrowed: true };
}
