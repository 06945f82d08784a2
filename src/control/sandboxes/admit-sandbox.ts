import { SandboxerError } from '../../contract/errors/errors.ts';
import type { RoutePlan } from '../../contract/routing/route.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { SandboxOrigin, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { TransactionOptions, Tx } from '../../core/ports/store/store.ts';
import type { Recipe } from '../../core/recipe/recipe.ts';
import { recipeFingerprint } from '../../core/recipe/resolve-recipe.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireRoom } from '../assets/require-room.ts';
import type { Control } from '../control.ts';
import { advanceSandbox } from '../lifecycle/advance.ts';
import type { Driver } from '../lifecycle/driver.ts';
import type { Attribution } from '../lifecycle/edit/sandbox-edit.ts';
import { SandboxEdit, saveEdit } from '../lifecycle/edit/sandbox-edit.ts';
import type { Claim } from '../lifecycle/lanes.ts';
import { isClaim } from '../lifecycle/lanes.ts';
import { admissionWant, policyOf, spenderIn, tellBudgets } from '../money/sandbox-money.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { Recorded } from '../requests/audit.ts';
import { auditDraft } from '../requests/audit.ts';
import { requireRoute, takeTrials } from './plan-route.ts';

export interface Admission {
  readonly uid: string;
  readonly caller: Caller;
  readonly request: CreateSandboxRequest;
  readonly requestDigest: string;
  readonly recipe: Recipe;
  readonly plan: RoutePlan;
  readonly origin: SandboxOrigin;
  readonly labels: Readonly<Record<string, string>>;
  /** `null` when it is not to be found by scope. */
  readonly reuseKey: string | null;
}

function newRecord(admission: Admission, now: number, driver: Driver): SandboxRecord {
  const { uid, caller, request, recipe } = admission;
  return {
    uid,
    id: request.id ?? uid,
    workspaceId: caller.workspaceId,
    orgId: caller.orgId,
    generation: 1,
    version: 1,
    state: 'requested',
    stateSince: now,
    pauseKind: null,
    profileId: recipe.profileId,
    profileVersion: recipe.profileVersion,
    fingerprint: recipeFingerprint(recipe),
    requestDigest: admission.requestDigest,
    scope: recipe.scope,
    reuseKey: admission.reuseKey,
    labels: admission.labels,
    consumer: request.consumer,
    actor: caller.actor,
    keyId: caller.keyId,
    elevated: recipe.elevated,
    exposedSecrets: recipe.secretRefs.filter((ref) => ref.delivery !== 'broker').map((ref) => ref.name),
    createdAt: now,
    readyAt: null,
    lastActivityAt: null,
    deadlineAt: now + recipe.ttlSeconds * 1000,
    maxDeadlineAt: now + recipe.maxTtlSeconds * 1000,
    idleReapSeconds: recipe.idleReapSeconds,
    idleDeadlineAt: null,
    attempt: null,
    extensionId: null,
    hostId: null,
    isolation: null,
    region: null,
    handle: null,
    reachability: null,
    notes: [],
    failure: null,
    operation: null,
    recreating: false,
    lease: driver.newLease(now),
    workDueAt: now,
    holdId: `hold-${uid}-g1`,
    meterId: null,
    eventSeq: 0,
    inputs: admission.recipe.trees ?? [],
  };
}

/** Audits a request that reaches further than usual, in the transaction of the admission. */
async function auditGrants(tx: Tx, deps: ControlPorts, caller: Caller, record: SandboxRecord): Promise<void> {
  const { id: target, elevated, exposedSecrets } = record;
  if (elevated) await tx.audit.append([auditDraft(deps, caller, { action: 'elevateSandbox', target })]);
  if (exposedSecrets.length === 0) return;
  const details = { names: exposedSecrets };
  await tx.audit.append([auditDraft(deps, caller, { action: 'exposeSecrets', target, details })]);
}

/**
 * Binds the uploads to the sandbox: they stay as long as it does. A sandbox made from a snapshot or a fork has the files already.
 */
async function useUploads(tx: Tx, { uid, inputs }: SandboxRecord, origin: SandboxOrigin): Promise<void> {
  for (const { uploadId } of inputs) {
    if (await tx.uploads.get(uploadId)) await tx.uploads.use(uploadId, uid);
    else if (origin.kind === 'recipe') {
      throw new SandboxerError('SBX_NOT_FOUND', `There is no upload "${uploadId}" any more.`, {
        creation: 'not_created',
        remedy: 'Upload it again: uploads that no sandbox has expire.',
      });
    }
  }
}

/** Refuses when the workspace was deleted since the caller was authenticated: the sandbox would belong to no workspace. */
async function requireWorkspace(tx: Tx, id: string): Promise<void> {
  const workspace = await tx.tenancy.workspace(id);
  if (workspace?.deletedAt === undefined) return;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no workspace ${id}.`, { creation: 'not_created' });
}

/** Returns how the admission of a sandbox is audited: with a new sandbox, and not with one that was there before. */
export function recordedAdmission(
  label: string,
  action: string,
  options: TransactionOptions<Claim | SandboxRecord>,
): Recorded<Claim | SandboxRecord> {
  const target = (result: Claim | SandboxRecord) => (isClaim(result) ? result.sandbox.id : result.id);
  return { label, action, target, changed: isClaim, options };
}

/**
 * Admits a sandbox in one transaction: room, money, row, plan, events, and the first attempt journalled under our own lease, so
 * that the hand-over to the driver costs no second commit. Nothing remains if any of it is refused.
 */
export async function admitSandbox(tx: Tx, control: Control, admission: Admission): Promise<Claim> {
  const { plan, recipe, caller } = admission;
  requireRoute(plan);
  const now = control.clock.now();
  await requireWorkspace(tx, caller.workspaceId);
  const policy = await policyOf(tx, caller.workspaceId);
  await requireRoom(tx, control, policy, now);
  const record = newRecord(admission, now, control.driver);
  const charges = await control.ledger.hold(tx, {
    ...admissionWant(control, plan, recipe.ttlSeconds * 1000),
    holdId: record.holdId as string,
    workspaceId: record.workspaceId,
    sandboxUid: record.uid,
    generation: 1,
    at: now,
    policy,
    spender: await spenderIn(tx, policy, record),
  });
  await tellBudgets({ tx, deps: control, at: now }, record.workspaceId, charges);
  const by: Attribution = { actor: caller.actor };
  const edit = new SandboxEdit(record, control, now, true);
  edit.announce(by, { profile: `${recipe.profileId}@${recipe.profileVersion}`, reason: plan.reason });
  if (recipe.elevated) edit.note('sandbox.elevated', by, { key_id: caller.keyId });
  if (record.exposedSecrets.length > 0)
    edit.note('sandbox.secret_exposed', by, { names: record.exposedSecrets });
  await auditGrants(tx, control, caller, record);
  const documents = {
    uid: record.uid,
    generation: 1,
    request: admission.request,
    recipe,
    plan,
    origin: admission.origin,
  };
  await useUploads(tx, record, admission.origin);
  await tx.sandboxes.insertDocuments(documents);
  const steps = await advanceSandbox({ tx, deps: control, edit, attempts: [] }, async () => documents);
  const sandbox = await saveEdit(tx, control, edit);
  takeTrials(control, plan);
  return { sandbox, token: (record.lease as { token: string }).token, steps, documents };
}
