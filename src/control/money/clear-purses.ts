import { SandboxerError } from '../../contract/errors/errors.ts';
import { accounts } from '../../core/credits/accounts.ts';
import { dollars } from '../../core/credits/dollars.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { WorkspaceRecord } from '../../core/tenancy/tenancy.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { settleGrants } from './expire-grants.ts';
import { moveMoney } from './org-credits.ts';
import { policyOf } from './sandbox-money.ts';

/** The caller's choice for the credits of a deleted workspace. Without a choice, a workspace that has credits is not deleted. */
export type LeftCredits =
  | { readonly kind: 'none' | 'expire' }
  | { readonly kind: 'move'; readonly to: string };

/** Returns the workspace's own purse, and that of its org where no other workspace spends from it. */
async function pursesOf(tx: Tx, { id, orgId }: WorkspaceRecord): Promise<readonly string[]> {
  const own = accounts.credits(id);
  const { purse } = await policyOf(tx, id);
  if (purse === own) return [own];
  for (const other of await tx.tenancy.workspaces(orgId))
    if (other.id !== id && other.deletedAt === undefined && (await policyOf(tx, other.id)).purse === purse)
      return [own];
  return [own, purse];
}

async function expire(tx: Tx, deps: ControlPorts, workspaceId: string, purse: string): Promise<void> {
  const at = deps.clock.now();
  const amountMicroUsd = await tx.ledger.balance(purse);
  const id = deps.ids.next('evt');
  const transfer = { id: `expiry:${workspaceId}:${id}`, at, kind: 'expiry' as const, amountMicroUsd };
  const owner = { workspaceId, holdId: null, sandboxUid: null };
  await tx.ledger.transfer([{ ...transfer, ...owner, debit: purse, credit: accounts.external }]);
  await tx.events.append([
    {
      id,
      at,
      type: 'credits.expired',
      workspaceId,
      subject: `workspace:${workspaceId}:expiry:${id}`,
      subjectSeq: 1,
      sandboxUid: null,
      sandboxId: null,
      generation: null,
      state: null,
      previousState: null,
      actor: 'adm',
      consumer: {},
      details: { amount_micro_usd: amountMicroUsd, reason: 'the workspace was deleted' },
    },
  ]);
}

async function moveTo(tx: Tx, deps: ControlPorts, purse: string, to: string): Promise<void> {
  const target = (await policyOf(tx, to)).purse;
  const grants = await settleGrants(tx, purse, deps.clock.now());
  const amountMicroUsd = await tx.ledger.balance(purse);
  await moveMoney(tx, deps, { from: purse, to: target, amountMicroUsd, workspaceId: to });
  for (const grant of grants) await tx.ledger.updateGrant({ ...grant, purse: target });
}

/** Moves or expires the money that no workspace could spend any more, or refuses. */
export async function clearPurses(
  tx: Tx,
  deps: ControlPorts,
  workspace: WorkspaceRecord,
  left: LeftCredits,
): Promise<void> {
  for (const purse of await pursesOf(tx, workspace)) {
    const amount = await tx.ledger.balance(purse);
    if (amount <= 0) continue;
    if (left.kind === 'none') {
      throw new SandboxerError('SBX_CONFLICT', `The workspace "${workspace.id}" has ${dollars(amount)}.`, {
        retryable: false,
        remedy: 'Move its credits with `credits=move&to=WORKSPACE`, or take them back with `credits=expire`.',
      });
    }
    if (left.kind === 'move') await moveTo(tx, deps, purse, left.to);
    else await expire(tx, deps, workspace.id, purse);
    await settleGrants(tx, purse, deps.clock.now());
  }
}
