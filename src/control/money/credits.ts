import { SandboxerError } from '../../contract/errors/errors.ts';
import type { GrantRequest } from '../../contract/money/money.ts';
import { accounts } from '../../core/credits/accounts.ts';
import { dollars } from '../../core/credits/dollars.ts';
import { burnDown } from '../../core/credits/grant.ts';
import type { TransferRecord } from '../../core/credits/transfer.ts';
import type { TransferQuery } from '../../core/ports/store/ledger-store.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';
import { settleGrants } from './expire-grants.ts';
import { policyOf } from './sandbox-money.ts';

export interface WorkspaceBalance {
  readonly workspaceId: string;
  /** The account it spends from; several workspaces of an org may share one. */
  readonly purse: string;
  readonly availableMicroUsd: number;
  readonly heldMicroUsd: number;
  readonly spentMicroUsd: number;
  readonly expiringMicroUsd: number;
  readonly expiresAt: number | null;
}

async function balanceOf(tx: Tx, workspaceId: string): Promise<WorkspaceBalance> {
  const { purse } = await policyOf(tx, workspaceId);
  const available = await tx.ledger.balance(purse);
  const held = await tx.ledger.balance(accounts.held(purse));
  const funding = await tx.ledger.funding(workspaceId);
  const came = (funding.get('grant') ?? 0) + (funding.get('top_up') ?? 0);
  const went = funding.get('expiry') ?? 0;
  // Grants that end first are spent first: the first of those that are left.
  const [first] = burnDown(await tx.ledger.liveGrants(purse), available + held).filter(
    ({ expiresAt, remainingMicroUsd }) => expiresAt !== null && remainingMicroUsd > 0,
  );
  const shared = purse !== accounts.credits(workspaceId) || funding.has('move');
  return {
    workspaceId,
    purse,
    availableMicroUsd: available,
    heldMicroUsd: held,
    spentMicroUsd: shared ? await chargedTo(tx, workspaceId) : came - went - available - held,
    expiringMicroUsd: first?.remainingMicroUsd ?? 0,
    expiresAt: first?.expiresAt ?? null,
  };
}

const PAGE = 1_000;

/** Returns the sum of a workspace's own charges, where it shares its purse. */
async function chargedTo(tx: Tx, workspaceId: string): Promise<number> {
  let sum = 0;
  for (let after = 0; ; ) {
    const query = { workspaceId, kinds: ['capture', 'correction'] as const, after, limit: PAGE };
    const page = await tx.ledger.transfers(query);
    for (const { kind, amountMicroUsd } of page) sum += kind === 'capture' ? amountMicroUsd : -amountMicroUsd;
    if (page.length < PAGE) return sum;
    after = page.at(-1)?.seq ?? after;
  }
}

export async function getBalance(deps: ControlPorts, caller: Caller): Promise<WorkspaceBalance> {
  requireScope(caller, 'read');
  return deps.store.read('balance', (tx) => balanceOf(tx, caller.workspaceId));
}

/** A reference names one grant for ever: another amount under it is a mistake that would go unnoticed. */
function requireSameGrant(
  before: TransferRecord,
  reference: string,
  { amount_micro_usd: amountMicroUsd, kind }: GrantRequest,
): void {
  if (before.amountMicroUsd === amountMicroUsd && before.kind === kind) return;
  throw new SandboxerError(
    'SBX_IDEMPOTENCY_MISMATCH',
    `The reference "${reference}" is that of a ${before.kind} of ${dollars(before.amountMicroUsd)}, not of a ${kind} of ${dollars(amountMicroUsd)}.`,
    { remedy: 'Repeat the amount and kind of the first request, or choose another `reference`.' },
  );
}

/** A repeated reference is the same grant: it adds nothing again. */
export async function grantCredits(
  deps: ControlPorts,
  caller: Caller,
  request: GrantRequest,
): Promise<WorkspaceBalance> {
  requireScope(caller, 'billing');
  if (caller.actor !== 'adm')
    throw new SandboxerError('SBX_FORBIDDEN', 'Only an administrator grants credits.');
  const { workspaceId } = caller;
  const reference = request.reference ?? deps.ids.next('grant');
  const { amount_micro_usd: amountMicroUsd, kind } = request;
  const details = { amount_micro_usd: amountMicroUsd, kind };
  const subject = { action: 'grantCredits', target: reference, details };
  return auditedTransaction(deps, caller, { label: 'grant', subject }, async (tx) => {
    const now = deps.clock.now();
    const id = `grant:${workspaceId}:${reference}`;
    const before = await tx.ledger.getTransfer(id);
    if (before !== null) {
      requireSameGrant(before, reference, request);
      return balanceOf(tx, workspaceId);
    }
    const { purse } = await policyOf(tx, workspaceId);
    await settleGrants(tx, purse, now);
    const expiresAt = request.expires_in === undefined ? null : now + request.expires_in * 1000;
    await tx.ledger.insertGrant({
      id,
      workspaceId,
      purse,
      kind,
      amountMicroUsd,
      remainingMicroUsd: amountMicroUsd,
      createdAt: now,
      expiresAt,
      endedAt: null,
    });
    await tx.ledger.transfer([
      {
        id,
        at: now,
        kind,
        debit: accounts.external,
        credit: purse,
        amountMicroUsd,
        workspaceId,
        holdId: null,
        sandboxUid: null,
        reference,
      },
    ]);
    await tx.events.append([
      {
        id: deps.ids.next('evt'),
        at: now,
        type: 'credits.granted',
        workspaceId,
        subject: `workspace:${workspaceId}:grant:${reference}`,
        subjectSeq: 1,
        sandboxUid: null,
        sandboxId: null,
        generation: null,
        state: null,
        previousState: null,
        actor: caller.actor,
        consumer: {},
        details: { ...details, reference },
      },
    ]);
    return balanceOf(tx, workspaceId);
  });
}

export async function listTransfers(
  deps: ControlPorts,
  caller: Caller,
  span: Pick<TransferQuery, 'after' | 'before' | 'limit'>,
): Promise<readonly TransferRecord[]> {
  requireScope(caller, 'read');
  return deps.store.read('transfers', (tx) =>
    tx.ledger.transfers({ workspaceId: caller.workspaceId, ...span }),
  );
}
