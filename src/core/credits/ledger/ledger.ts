import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Tx } from '../../ports/store/store.ts';
import { accounts } from '../accounts.ts';
import type { Spender } from '../budget.ts';
import { dollars } from '../dollars.ts';
import type { MoneyPolicy } from '../policy.ts';
import { defaultPolicy } from '../policy.ts';
import type { HoldRecord, TransferDraft, TransferKind } from '../transfer.ts';
import type { Lives, Reserve } from './affordable.ts';
import { affordableSeconds } from './affordable.ts';
import type { BudgetCharge } from './budget-ledger.ts';
import { captureBudgets, releaseBudgets, reserveBudgets } from './budget-ledger.ts';

/** A backend that would cost less, for a refusal to name. */
export interface Alternative {
  readonly extension: string;
  readonly micro_usd_per_hour: number;
  readonly needed_micro_usd: number;
}

/** The amounts to reserve, with the figures that a refusal names. */
export interface Want extends Reserve {
  /** Reserves of shorter lives, so that a refusal can name the longest that is admitted. */
  readonly lives: Lives;
  readonly cheapest: Alternative | null;
}

export interface HoldRequest extends Want {
  readonly holdId: string;
  readonly workspaceId: string;
  readonly sandboxUid: string;
  readonly generation: number;
  readonly at: number;
  readonly policy: MoneyPolicy;
  readonly spender: Spender;
}

export interface Raise extends Want {
  readonly holdId: string;
  /** The id, derived from the purpose: a repetition cannot reserve twice. */
  readonly transferId: string;
  readonly at: number;
  readonly policy: MoneyPolicy;
  readonly spender: Spender;
}

export interface Capture {
  readonly holdId: string;
  readonly transferId: string;
  readonly extensionId: string;
  readonly priceVersion: string;
  readonly amountMicroUsd: number;
  readonly at: number;
}

/**
 * Moves the money of the lifecycle. Every method works inside the caller's transaction, so that a transition and its money are
 * one commit. Transfer ids derive from their purpose: repeating a step cannot move money twice.
 */
export interface Ledger {
  /** Reserves at admission, of the purse and of every budget that is concerned, or of none; 402 when there is too little. */
  hold(tx: Tx, request: HoldRequest): Promise<readonly BudgetCharge[]>;
  /** Reserves more under an open hold; 402 like `hold`. */
  raise(tx: Tx, raise: Raise): Promise<readonly BudgetCharge[]>;
  /** Takes up to `amountMicroUsd` of an open hold as earned; returns the amount taken, never more than is held. */
  capture(tx: Tx, capture: Capture): Promise<number>;
  /** Counts what a vendor bills the workspace itself, in the budgets that include own keys. */
  count(tx: Tx, counted: Pick<Capture, 'holdId' | 'transferId' | 'amountMicroUsd' | 'at'>): Promise<void>;
  /**
   * Ends a hold: the rest goes back to the purse that the workspace spends from. `voided` when nothing was established. A
   * resolved hold stays as it is.
   */
  resolve(tx: Tx, holdId: string, outcome: 'settled' | 'voided', at: number): Promise<void>;
}

type Payment = Want & Pick<HoldRequest, 'policy' | 'spender' | 'at'>;

async function insufficient(
  tx: Tx,
  available: number,
  needed: number,
  payment: Payment,
): Promise<SandboxerError> {
  return new SandboxerError(
    'SBX_INSUFFICIENT_CREDITS',
    `This needs ${dollars(needed)}, ${dollars(available)} is available, ${dollars(needed - available)} is missing.`,
    {
      creation: 'not_created',
      members: {
        scope: payment.policy.purse.startsWith(accounts.orgCredits('')) ? 'org' : 'workspace',
        shortfall_micro_usd: needed - available,
        available_micro_usd: available,
        affordable_seconds: await affordableSeconds(tx, payment, payment.lives),
        resets_at: null,
        cheapest_alternative: payment.cheapest,
      },
    },
  );
}

async function requireAvailable(tx: Tx, amount: number, payment: Payment): Promise<void> {
  const available = await tx.ledger.balance(payment.policy.purse);
  if (available < amount) throw await insufficient(tx, available, amount, payment);
}

async function openHold(tx: Tx, holdId: string): Promise<HoldRecord | null> {
  const hold = await tx.ledger.getHold(holdId);
  return hold?.state === 'open' ? hold : null;
}

function move(
  hold: HoldRecord,
  transfer: Pick<TransferDraft, 'id' | 'at' | 'debit' | 'credit' | 'amountMicroUsd'> & {
    readonly kind: TransferKind;
    readonly priceVersion?: string;
  },
): TransferDraft {
  const { workspaceId, id: holdId, sandboxUid } = hold;
  return { ...transfer, workspaceId, holdId, sandboxUid };
}

interface PurseReservation {
  readonly id: string;
  readonly amountMicroUsd: number;
  readonly at: number;
  readonly purse?: string;
}

/** Moves the reserved amount of a purse; returns nothing where only budgets are concerned. */
function reservation(
  hold: HoldRecord,
  { id, amountMicroUsd, at, purse = hold.purse }: PurseReservation,
): TransferDraft[] {
  if (amountMicroUsd === 0) return [];
  const between = { debit: purse, credit: accounts.held(hold.purse) };
  return [move(hold, { id, at, kind: 'hold', ...between, amountMicroUsd })];
}

/**
 * Returns the accounts for releasing a reservation: the money goes to the purse that the workspace spends from now. The purse
 * that it left would be stranded.
 */
async function wayBack(
  tx: Tx,
  { purse, workspaceId }: HoldRecord,
): Promise<{ debit: string; credit: string }> {
  const policy = (await tx.ledger.policy(workspaceId)) ?? defaultPolicy(workspaceId);
  return { debit: accounts.held(purse), credit: policy.purse };
}

export const ledger: Ledger = {
  async hold(tx, request) {
    const { holdId, workspaceId, sandboxUid, generation, amountMicroUsd, at, policy } = request;
    const { purse } = policy;
    const hold: HoldRecord = {
      id: holdId,
      workspaceId,
      sandboxUid,
      generation,
      state: 'open',
      purse,
      heldMicroUsd: amountMicroUsd,
      capturedMicroUsd: 0,
      budgets: [],
      createdAt: at,
      resolvedAt: null,
    };
    if (amountMicroUsd === 0 && request.ownKeyMicroUsd === 0) {
      await tx.ledger.insertHold(hold);
      return [];
    }
    await requireAvailable(tx, amountMicroUsd, request);
    const transferId = `${holdId}:hold`;
    const reserved = await reserveBudgets(tx, hold, { ...request, transferId, admits: true });
    await tx.ledger.insertHold({ ...hold, budgets: reserved.shares });
    await tx.ledger.transfer([
      ...reservation(hold, { id: transferId, amountMicroUsd, at }),
      ...reserved.transfers,
    ]);
    return reserved.charges;
  },

  async raise(tx, raise) {
    const { holdId, transferId, amountMicroUsd, at } = raise;
    if (amountMicroUsd <= 0 && raise.ownKeyMicroUsd <= 0) return [];
    const hold = await openHold(tx, holdId);
    if (!hold) throw new SandboxerError('SBX_CONFLICT', 'The hold of this sandbox is resolved already.');
    const more = Math.max(0, amountMicroUsd);
    // The workspace may spend from another purse by now.
    const { purse } = raise.policy;
    await requireAvailable(tx, more, raise);
    const reserved = await reserveBudgets(tx, hold, { ...raise, admits: false });
    await tx.ledger.transfer([
      ...reservation(hold, { id: transferId, amountMicroUsd: more, at, purse }),
      ...reserved.transfers,
    ]);
    await tx.ledger.updateHold({
      ...hold,
      heldMicroUsd: hold.heldMicroUsd + more,
      budgets: reserved.shares,
    });
    return reserved.charges;
  },

  async capture(tx, { holdId, transferId, extensionId, priceVersion, amountMicroUsd, at }) {
    if (amountMicroUsd <= 0) return 0;
    const hold = await openHold(tx, holdId);
    if (!hold) return 0;
    const amount = Math.min(amountMicroUsd, hold.heldMicroUsd);
    if (amount <= 0) return 0;
    const between = { debit: accounts.held(hold.purse), credit: accounts.revenue(extensionId) };
    const budgets = captureBudgets(hold, { transferId, amountMicroUsd: amount, at });
    await tx.ledger.transfer([
      move(hold, { id: transferId, at, kind: 'capture', ...between, amountMicroUsd: amount, priceVersion }),
      ...budgets.transfers,
    ]);
    await tx.ledger.updateHold({
      ...hold,
      heldMicroUsd: hold.heldMicroUsd - amount,
      capturedMicroUsd: hold.capturedMicroUsd + amount,
      budgets: budgets.shares,
    });
    return amount;
  },

  async count(tx, { holdId, transferId, amountMicroUsd, at }) {
    const hold = await openHold(tx, holdId);
    if (!hold?.budgets.some(({ ownKeys }) => ownKeys)) return;
    const { shares, transfers } = captureBudgets(hold, { transferId, amountMicroUsd, at, onlyOwnKeys: true });
    if (transfers.length > 0) await tx.ledger.transfer(transfers);
    await tx.ledger.updateHold({ ...hold, budgets: shares });
  },

  async resolve(tx, holdId, outcome, at) {
    const hold = await openHold(tx, holdId);
    if (!hold) return;
    const { heldMicroUsd } = hold;
    const id = `${holdId}:release`;
    const rest =
      heldMicroUsd > 0
        ? [
            move(hold, {
              id,
              at,
              kind: 'release',
              ...(await wayBack(tx, hold)),
              amountMicroUsd: heldMicroUsd,
            }),
          ]
        : [];
    const transfers = [...rest, ...releaseBudgets(hold, id, at)];
    if (transfers.length > 0) await tx.ledger.transfer(transfers);
    await tx.ledger.updateHold({ ...hold, state: outcome, heldMicroUsd: 0, budgets: [], resolvedAt: at });
  },
};
