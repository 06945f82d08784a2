import { SandboxerError } from '../../contract/errors/errors.ts';
import { isLiving } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxDocuments, SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { pendingOperation } from '../../core/lifecycle/sandbox.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { requireRoom } from '../assets/require-room.ts';
import type { Driver, TakenUp } from '../lifecycle/driver.ts';
import { SandboxEdit } from '../lifecycle/edit/sandbox-edit.ts';
import { waitForSandbox } from '../lifecycle/wait-for-sandbox.ts';
import { admissionWant, policyOf, spenderIn, tellBudgets } from '../money/sandbox-money.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
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
  /** The one that is to be replaced: where somebody else has done so, theirs is waited for. */
  readonly generation?: number;
  /** Written with it, and not when it is refused. */
  readonly alsoWrite?: (tx: Tx) => Promise<void>;
}

/**
 * Destroys it and builds the same recipe again under the same public id. The money for the new generation is held
 * before the old one is given up, so that a refusal changes nothing.
 */
export async function recreateSandbox(
  deps: ControlPorts,
  driver: Driver,
  caller: Caller,
  id: string,
  options: WaitOptions & RecreateOptions,
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
  const taken = await recordedTransaction(deps, caller, recorded, async (tx): Promise<Taken> => {
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
    const now = deps.clock.now();
    const seed = (await tx.sandboxes.documents(row.uid, row.generation)) as SandboxDocuments;
    const bound = seed.origin.kind === 'recipe' ? null : seed.origin.extensionId;
    const plan = await planRoute(tx, deps, row.workspaceId, seed.recipe, {
      seed: `${row.uid}-g${next}`,
      boundTo: bound,
    });
    requireRoute(plan);
    const policy = await policyOf(tx, row.workspaceId);
    if (!isLiving(row.state)) await requireRoom(tx, deps, policy, now);
    interrupts = row.state === 'provisioning' || pendingOperation(row) !== null;
    const edit = new SandboxEdit(row, deps, now);
    const holdId = `hold-${row.uid}-g${next}`;
    edit.patch({ recreating: true, holdId });
    edit.move('destroying', { actor: caller.actor }, { reason: 'recreate' });
    await tx.sandboxes.insertDocuments({ ...seed, generation: next, plan });
    const takenUp = await driver.takeUp(tx, edit);
    const charges = await deps.ledger.hold(tx, {
      ...admissionWant(deps, plan, seed.recipe.ttlSeconds * 1000),
      holdId,
      workspaceId: row.workspaceId,
      sandboxUid: row.uid,
      generation: next,
      at: now,
      policy,
      spender: await spenderIn(tx, policy, row),
    });
    await tellBudgets(tx, deps, row.workspaceId, charges, now);
    return { ...takenUp, next };
  });
  const { sandbox, next } = taken;
  if (interrupts) driver.interrupt(sandbox.uid);
  void driver.follow(taken);
  if (!options.wait) return { sandbox, reused: false };
  const settled = (row: SandboxRecord) =>
    (row.generation >= next && row.state !== 'requested' && row.state !== 'provisioning') ||
    row.state === 'destroyed' ||
    (row.generation < next && !row.recreating);
  const last = await waitForSandbox(
    deps,
    sandbox.uid,
    settled,
    options.timeoutMs ?? deps.settings.waitMs,
    options.signal,
  );
  if (last && settled(last)) requireEstablished(last);
  return { sandbox: last ?? sandbox, reused: false };
}
