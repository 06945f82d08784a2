import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { BudgetState } from '../../ports/store/ledger-store.ts';
import type { Tx } from '../../ports/store/store.ts';
import { accounts } from '../accounts.ts';
import type { BudgetRecord, Spender } from '../budget.ts';
import { alertAt, budgetMark, rearm, spenderName, windowOf } from '../budget.ts';
import { dollars } from '../dollars.ts';
import type { MoneyPolicy } from '../policy.ts';
import type { BudgetShare, HoldRecord, TransferDraft } from '../transfer.ts';
import type { Lives, Reserve } from './affordable.ts';
import { affordableSeconds, budgetShareOf } from './affordable.ts';
import type { Alternative } from './ledger.ts';

/** The effect of a reservation on a budget; `tell` is an alert level that it reached. */
export interface BudgetCharge {
  readonly budget: BudgetRecord;
  readonly name: string;
  readonly usedMicroUsd: number;
  readonly tell: number | null;
}

interface Reservation extends Reserve {
  /** A new sandbox, which a throttle holds back; what runs is not throttled. */
  readonly admits: boolean;
  readonly transferId: string;
  readonly at: number;
  readonly lives: Lives;
  readonly cheapest: Alternative | null;
  readonly policy: MoneyPolicy;
  readonly spender: Spender;
}

interface Reserved {
  readonly shares: readonly BudgetShare[];
  readonly transfers: readonly TransferDraft[];
  readonly charges: readonly BudgetCharge[];
}

const THROTTLE_FROM_PERCENT = 80;

/** A budget with less left than is asked of it. */
interface Shortage {
  readonly budget: BudgetRecord;
  readonly name: string;
  readonly left: number;
  readonly amountMicroUsd: number;
}

async function exceeded(
  tx: Tx,
  { budget, name, left, amountMicroUsd }: Shortage,
  request: Reservation,
): Promise<SandboxerError> {
  const { resetsAt } = windowOf(budget.period, request.at);
  const of = budget.scope === 'workspace' ? 'the workspace' : `${budget.scope} ${name}`;
  return new SandboxerError(
    'SBX_BUDGET_EXCEEDED',
    `This needs ${dollars(amountMicroUsd)}, and the ${budget.period} budget of ${of} has ${dollars(left)} left.`,
    {
      creation: 'not_created',
      members: {
        scope: budget.scope,
        budget_id: budget.id,
        shortfall_micro_usd: amountMicroUsd - left,
        available_micro_usd: left,
        affordable_seconds: await affordableSeconds(tx, request, request.lives),
        resets_at: resetsAt === null ? null : new Date(resetsAt).toISOString(),
        cheapest_alternative: request.cheapest,
      },
    },
  );
}

function throttled(budget: BudgetRecord, waitMs: number): SandboxerError {
  return new SandboxerError(
    'SBX_RATE_LIMITED',
    `The ${budget.period} budget ${budget.id} is nearly used up: one sandbox every ${budget.throttleSeconds} s.`,
    { creation: 'not_created', retryAfterSeconds: Math.ceil(waitMs / 1000) },
  );
}

/** Refuses, or returns what to write: nothing is reserved of one budget when another has too little. */
export async function reserveBudgets(tx: Tx, hold: HoldRecord, request: Reservation): Promise<Reserved> {
  const { at, policy, spender, transferId } = request;
  const shares = [...hold.budgets];
  const transfers: TransferDraft[] = [];
  const charges: BudgetCharge[] = [];
  const states: BudgetState[] = [];
  for (const budget of policy.budgets) {
    const name = spenderName(budget, spender);
    const ownKeys = budget.ownKeys === true;
    const amountMicroUsd = budgetShareOf(budget, request);
    if (name === null || amountMicroUsd <= 0) continue;
    const mark = budgetMark(budget, name, at);
    const used = -(await tx.ledger.balance(accounts.budgetQuota(mark)));
    const left = budget.limitMicroUsd - used;
    if (amountMicroUsd > left) throw await exceeded(tx, { budget, name, left, amountMicroUsd }, request);
    const usedMicroUsd = used + amountMicroUsd;
    const state = await tx.ledger.budgetState(mark);
    if (request.admits && budget.throttleSeconds !== null && state !== null) {
      const waitMs = state.admittedAt + budget.throttleSeconds * 1000 - at;
      if (waitMs > 0 && used * 100 >= budget.limitMicroUsd * THROTTLE_FROM_PERCENT) {
        throw throttled(budget, waitMs);
      }
    }
    // Money given back since the last reservation lowered the use without changing the alert level: the level is lowered now.
    const before = rearm(state?.told ?? 0, used, budget.limitMicroUsd);
    const { told, tell } = alertAt(before, usedMicroUsd, budget.limitMicroUsd);
    const admittedAt = request.admits ? at : (state?.admittedAt ?? 0);
    states.push({ mark, told, admittedAt });
    charges.push({ budget, name, usedMicroUsd, tell });
    transfers.push({
      id: `${transferId}:${mark}`,
      at,
      kind: 'budget_hold',
      debit: accounts.budgetQuota(mark),
      credit: accounts.budgetHeld(mark),
      amountMicroUsd,
      ...ownerOf(hold),
    });
    const i = shares.findIndex((share) => share.mark === mark);
    const share = shares[i];
    if (share) shares[i] = { ...share, heldMicroUsd: share.heldMicroUsd + amountMicroUsd };
    else
      shares.push({ budgetId: budget.id, mark, heldMicroUsd: amountMicroUsd, ...(ownKeys && { ownKeys }) });
  }
  for (const state of states) await tx.ledger.setBudgetState(state);
  return { shares, transfers, charges };
}

interface BudgetCapture {
  readonly transferId: string;
  readonly amountMicroUsd: number;
  readonly at: number;
  readonly onlyOwnKeys?: boolean;
}

/**
 * Spends reserved amounts of each budget, those reserved first before the others: money counts in the window in which it was
 * reserved. `onlyOwnKeys`: the vendor bills it to the customer, and only budgets that include own keys count it.
 */
export function captureBudgets(
  hold: HoldRecord,
  { transferId, amountMicroUsd, at, onlyOwnKeys = false }: BudgetCapture,
): { readonly shares: readonly BudgetShare[]; readonly transfers: readonly TransferDraft[] } {
  const left = new Map<string, number>();
  const transfers: TransferDraft[] = [];
  const shares = hold.budgets.map((share) => {
    if (onlyOwnKeys && share.ownKeys !== true) return share;
    const wanted = left.get(share.budgetId) ?? amountMicroUsd;
    const taken = Math.min(wanted, share.heldMicroUsd);
    left.set(share.budgetId, wanted - taken);
    if (taken === 0) return share;
    transfers.push({
      id: `${transferId}:${share.mark}`,
      at,
      kind: 'budget_capture',
      debit: accounts.budgetHeld(share.mark),
      credit: accounts.budgetSpent(share.mark),
      amountMicroUsd: taken,
      ...ownerOf(hold),
    });
    return { ...share, heldMicroUsd: share.heldMicroUsd - taken };
  });
  return { shares: shares.filter(({ heldMicroUsd }) => heldMicroUsd > 0), transfers };
}

export function releaseBudgets(hold: HoldRecord, transferId: string, at: number): TransferDraft[] {
  return hold.budgets.map(({ mark, heldMicroUsd }) => ({
    id: `${transferId}:${mark}`,
    at,
    kind: 'budget_release' as const,
    debit: accounts.budgetHeld(mark),
    credit: accounts.budgetQuota(mark),
    amountMicroUsd: heldMicroUsd,
    ...ownerOf(hold),
  }));
}

function ownerOf({ workspaceId, id: holdId, sandboxUid }: HoldRecord) {
  return { workspaceId, holdId, sandboxUid };
}
