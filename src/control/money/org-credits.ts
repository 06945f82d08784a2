import { SandboxerError } from '../../contract/errors/errors.ts';
import type { OrgCredits } from '../../contract/money/credits.ts';
import { accounts } from '../../core/credits/accounts.ts';
import { contributionOf, divide } from '../../core/credits/ledger/org-purse.ts';
import type { MoneyPolicy } from '../../core/credits/policy.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';
import { settleGrants } from './expire-grants.ts';
import { policyOf } from './sandbox-money.ts';

interface Move {
  readonly from: string;
  readonly to: string;
  readonly amountMicroUsd: number;
  /** The workspace whose books list the move. */
  readonly workspaceId: string;
}

/** Moves money from one purse to another; 0 writes nothing. */
export async function moveMoney(tx: Tx, deps: ControlPorts, move: Move): Promise<void> {
  const { from: debit, to: credit, amountMicroUsd, workspaceId } = move;
  if (amountMicroUsd <= 0) return;
  const id = `move:${workspaceId}:${deps.ids.next('move')}`;
  const at = deps.clock.now();
  const owner = { workspaceId, holdId: null, sandboxUid: null };
  await tx.ledger.transfer([{ id, at, kind: 'move', debit, credit, amountMicroUsd, ...owner }]);
}

/** Moves the credits of a workspace into the purse of its org, with the grants that they came from. */
async function join(tx: Tx, deps: ControlPorts, policy: MoneyPolicy, purse: string): Promise<void> {
  const now = deps.clock.now();
  const { workspaceId, purse: from } = policy;
  const grants = await settleGrants(tx, from, now);
  await moveMoney(tx, deps, { from, to: purse, amountMicroUsd: await tx.ledger.balance(from), workspaceId });
  for (const grant of grants) await tx.ledger.updateGrant({ ...grant, purse });
  await tx.ledger.setPolicy({ ...policy, purse, joinedAt: now });
}

/** Splits a shared purse: each workspace gets its share of what is left, and the grants that were its own. */
async function split(
  tx: Tx,
  deps: ControlPorts,
  shared: string,
  policies: readonly MoneyPolicy[],
): Promise<void> {
  const now = deps.clock.now();
  const grants = await settleGrants(tx, shared, now);
  const left = await tx.ledger.balance(shared);
  const contributions = [];
  for (const policy of policies) contributions.push(await contributionOf(tx, policy));
  const shares = divide(left, contributions);
  for (const policy of policies) {
    const { workspaceId } = policy;
    const purse = accounts.credits(workspaceId);
    const amountMicroUsd = shares.get(workspaceId) ?? 0;
    await moveMoney(tx, deps, { from: shared, to: purse, amountMicroUsd, workspaceId });
    for (const grant of grants.filter((one) => one.workspaceId === workspaceId))
      await tx.ledger.updateGrant({ ...grant, purse });
    await tx.ledger.setPolicy({ ...policy, purse, joinedAt: now });
  }
}

interface SetOrgCredits {
  readonly orgId: string;
  readonly credits: OrgCredits;
}

/**
 * Sets whether the workspaces of an org spend from one purse. Their credits move into the shared purse, and when that is split
 * each gets its share by what it put in. Amounts on hold follow when they are released.
 */
export async function setOrgCredits(
  deps: ControlPorts,
  caller: Caller,
  { orgId, credits: { mode } }: SetOrgCredits,
): Promise<OrgCredits> {
  requireScope(caller, 'server');
  const subject = { action: 'setOrgCredits', target: orgId, details: { mode } };
  return auditedTransaction(deps, caller, { label: 'org-credits', subject }, async (tx) => {
    const org = await tx.tenancy.org(orgId);
    if (!org || org.deletedAt !== undefined)
      throw new SandboxerError('SBX_NOT_FOUND', `There is no org "${orgId}".`);
    const shared = accounts.orgCredits(orgId);
    const members: MoneyPolicy[] = [];
    for (const { id, deletedAt } of await tx.tenancy.workspaces(orgId))
      if (deletedAt === undefined) members.push(await policyOf(tx, id));
    if (mode === 'shared') {
      for (const policy of members) if (policy.purse !== shared) await join(tx, deps, policy, shared);
      return { mode };
    }
    const sharing = members.filter(({ purse }) => purse === shared);
    if (sharing.length > 0) await split(tx, deps, shared, sharing);
    return { mode };
  });
}
