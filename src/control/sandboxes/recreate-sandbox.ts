import { SandboxerError } from '../../contract/errors/errors.ts';
import { isLiving } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { requireRoom } from '../assets/require-room.ts';
import type { Control } from '../control.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { waitForSandbox } from '../lifecycle/wait-for-sandbox.ts';
import { admissionWant, policyOf, spenderIn, tellBudgets } from '../money/sandbox-money.ts';
import type { Recorded } from '../requests/audit.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { findSandbox } from '../requests/find-sandbox.ts';
import type { Establishment, WaitOptions } from './establish.ts';
import { requireEstablished } from './establish.ts';
import { planRoute, requireRoute } from './plan-route.ts';

function refuseFrom(state: SandboxRecord['state']): SandboxerError {
  const remedy =
    state === 'destroyed' ? 'Create a new sandbox.' : 'Wait until it is gone, then create a new sandbox.';
  return new SandboxerError('SBX_INVALID_STATE', `A sandbox that is ${state} cannot be recreated.`, {
    remedy,
  });
}

export interface RecreateOptions {
  /** The generation to replace: if another request has replaced it already, its generation is awaited. */
  readonly generation?: number;
  /** Called in the transaction of the recreate, and not when that is refused. */
  readonly alsoWrite?: (tx: Tx) => Promise<void>;
}

type RecreateSandbox = WaitOptions &
  RecreateOptions & {
    readonly id: string;
  };

/**
 * Destroys a sandbox and builds the same recipe again under the same public id. The money for the new generation is held before
 * the old one is given up, so that a refusal changes nothing.
 */
export async function recreateSandbox(
  control: Control,
  caller: Caller,
  { id, ...options }: RecreateSandbox,
): Promise<Establishment> {
  requireScope(caller, 'sandboxes');
  let interrupts = false;
  let changes = false;
  type Taken = TakenUp & { readonly next: number };
  const recorded: Recorded<Taken> = {
    label: 'recreate',
    action: 'recreateSandbox',
    target: ({ sandbox }) => sandbox.id,
    // A sandbox that is further than the caller knows, or on its way already, is left as it is.
    changed: () => changes,
  };
  const taken = await recordedTransaction(control, caller, recorded, async (tx): Promise<Taken> => {
    changes = false;
    interrupts = false;
    const row = await findSandbox(tx, caller, id);
    await options.alsoWrite?.(tx);
    if (options.generation !== undefined && row.generation > options.generation)
      return { sandbox: row, claim: null, next: row.generation };
    const next = row.generation + 1;
    if (row.state === 'destroying' && row.recreating) return { sandbox: row, claim: null, next };
    if (row.state === 'destroying' || row.state === 'destroyed' || row.state === 'expired')
      throw refuseFrom(row.state);
    changes = true;
    const now = control.clock.now();
    const seed = (await tx.sandboxes.documents(row.uid, row.generation)) as SandboxDocuments;
    const bound = seed.origin.kind === 'recipe' ? null : seed.origin.extensionId;
    const plan = await planRoute(tx, control, {
      workspaceId: row.workspaceId,
      recipe: seed.recipe,
      seed: `${row.uid}-g${next}`,
      boundTo: bound,
    });
    requireRoute(plan);
    const policy = await policyOf(tx, row.workspaceId);
    if (!isLiving(row.state)) await requireRoom(tx, control, policy, now);
    interrupts = row.state === 'provisioning' || pendingOperation(row) !== null;
    const edit = new SandboxEdit(row, control, now);
    const holdId = `hold-${row.uid}-g${next}`;
    edit.patch({ recreating: true, holdId });
    edit.move('destroying', { actor: caller.actor }, { reason: 'recreate' });
    await tx.sandboxes.insertDocuments({ ...seed, generation: next, plan });
    const takenUp = await control.driver.takeUp(tx, edit);
    const charges = await control.ledger.hold(tx, {
      ...admissionWant(control, plan, seed.recipe.ttlSeconds * 1000),
      holdId,
      workspaceId: row.workspaceId,
      sandboxUid: row.uid,
      generation: next,
      at: now,
      policy,
      spender: await spenderIn(tx, policy, row),
    });
    await tellBudgets({ tx, deps: control, at: now }, row.workspaceId, charges);
    return { ...takenUp, next };
  });
  const { sandbox, next } = taken;
  if (interrupts) control.driver.interrupt(sandbox.uid);
  void control.driver.follow(taken);
  if (!options.wait) return { sandbox, reused: false };
  const settled = (row: SandboxRecord) =>
    (row.generation >= next && row.state !== 'requested' && row.state !== 'provisioning') ||
    row.state === 'destroyed' ||
    (row.generation < next && !row.recreating);
  const last = await waitForSandbox(control, sandbox.uid, settled, {
    timeoutMs: options.timeoutMs ?? control.settings.waitMs,
    signal: options.signal,
  });
  if (last && settled(last)) requireEstablished(last);
  return { sandbox: last ?? sandbox, reused: false };
}
