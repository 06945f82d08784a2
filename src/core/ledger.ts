import { SandboxerError } from '../contract/errors.ts';
import type { Tx } from './store.ts';
import type { HoldRecord } from './transfer.ts';

/** Accounts: what a workspace may spend, what is reserved of it, what came in, what was earned. */
export const accounts = {
  credits: (workspaceId: string) => `credits:${workspaceId}`,
  held: (workspaceId: string) => `held:${workspaceId}`,
  revenue: (extensionId: string) => `revenue:${extensionId}`,
  external: 'external',
} as const;

export interface HoldRequest {
  readonly holdId: string;
  readonly workspaceId: string;
  readonly sandboxUid: string;
  readonly generation: number;
  readonly amountMicroUsd: number;
  readonly at: number;
  /** For the 402: what one second costs, in pico-USD. */
  readonly rate: bigint;
}

/**
 * Money's part in the lifecycle. Every method works inside the caller's transaction, so that a transition and its
 * money are one commit. Transfer ids derive from what they are for: repeating a step cannot move money twice.
 */
export interface Ledger {
  /** Reserves at admission; 402 with the shortfall when there is not enough. */
  hold(tx: Tx, request: HoldRequest): Promise<void>;
  /** Raises an open hold by an amount (a later deadline); 402 like `hold`. */
  raise(
    tx: Tx,
    holdId: string,
    transferId: string,
    amountMicroUsd: number,
    at: number,
    rate: bigint,
  ): Promise<void>;
  /** Takes up to `amountMicroUsd` of an open hold as earned; answers what was taken, never more than is held. */
  capture(
    tx: Tx,
    holdId: string,
    transferId: string,
    extensionId: string,
    amountMicroUsd: number,
    at: number,
  ): Promise<number>;
  /** Ends a hold: the rest goes back. `voided` when nothing was established. A resolved hold stays as it is. */
  resolve(tx: Tx, holdId: string, outcome: 'settled' | 'voided', at: number): Promise<void>;
  grant(
    tx: Tx,
    transferId: string,
    workspaceId: string,
    amountMicroUsd: number,
    at: number,
  ): Promise<boolean>;
}

function insufficient(available: number, needed: number, rate: bigint): SandboxerError {
  const affordable = rate > 0n ? Number((BigInt(available) * 1_000_000n) / rate) : 0;
  return new SandboxerError(
    'SBX_INSUFFICIENT_CREDITS',
    `This needs ${needed} µ$ and ${available} µ$ are available.`,
    {
      members: {
        scope: 'workspace',
        shortfall_micro_usd: needed - available,
        available_micro_usd: available,
        affordable_seconds: affordable,
      },
    },
  );
}

async function requireAvailable(tx: Tx, workspaceId: string, amount: number, rate: bigint): Promise<void> {
  const available = await tx.ledger.balance(accounts.credits(workspaceId));
  if (available < amount) throw insufficient(available, amount, rate);
}

async function openHold(tx: Tx, holdId: string): Promise<HoldRecord | null> {
  const hold = await tx.ledger.getHold(holdId);
  return hold?.state === 'open' ? hold : null;
}

export const ledger: Ledger = {
  async hold(tx, request) {
    const { holdId, workspaceId, sandboxUid, generation, amountMicroUsd, at } = request;
    if (amountMicroUsd > 0) await requireAvailable(tx, workspaceId, amountMicroUsd, request.rate);
    await tx.ledger.insertHold({
      id: holdId,
      workspaceId,
      sandboxUid,
      generation,
      state: 'open',
      createdAt: at,
      resolvedAt: null,
    });
    if (amountMicroUsd === 0) return;
    await tx.ledger.transfer([
      {
        id: `${holdId}:hold`,
        at,
        kind: 'hold',
        debit: accounts.credits(workspaceId),
        credit: accounts.held(workspaceId),
        amountMicroUsd,
        workspaceId,
        holdId,
        sandboxUid,
      },
    ]);
  },

  async raise(tx, holdId, transferId, amountMicroUsd, at, rate) {
    if (amountMicroUsd <= 0) return;
    const hold = await openHold(tx, holdId);
    if (!hold) throw new SandboxerError('SBX_CONFLICT', 'The hold of this sandbox is resolved already.');
    await requireAvailable(tx, hold.workspaceId, amountMicroUsd, rate);
    await tx.ledger.transfer([
      {
        id: transferId,
        at,
        kind: 'hold',
        debit: accounts.credits(hold.workspaceId),
        credit: accounts.held(hold.workspaceId),
        amountMicroUsd,
        workspaceId: hold.workspaceId,
        holdId,
        sandboxUid: hold.sandboxUid,
      },
    ]);
  },

  async capture(tx, holdId, transferId, extensionId, amountMicroUsd, at) {
    if (amountMicroUsd <= 0) return 0;
    const hold = await openHold(tx, holdId);
    if (!hold) return 0;
    const amount = Math.min(amountMicroUsd, await tx.ledger.held(holdId));
    if (amount <= 0) return 0;
    await tx.ledger.transfer([
      {
        id: transferId,
        at,
        kind: 'capture',
        debit: accounts.held(hold.workspaceId),
        credit: accounts.revenue(extensionId),
        amountMicroUsd: amount,
        workspaceId: hold.workspaceId,
        holdId,
        sandboxUid: hold.sandboxUid,
      },
    ]);
    return amount;
  },

  async resolve(tx, holdId, outcome, at) {
    const hold = await openHold(tx, holdId);
    if (!hold) return;
    const rest = await tx.ledger.held(holdId);
    if (rest > 0) {
      await tx.ledger.transfer([
        {
          id: `${holdId}:release`,
          at,
          kind: 'release',
          debit: accounts.held(hold.workspaceId),
          credit: accounts.credits(hold.workspaceId),
          amountMicroUsd: rest,
          workspaceId: hold.workspaceId,
          holdId,
          sandboxUid: hold.sandboxUid,
        },
      ]);
    }
    await tx.ledger.updateHold({ ...hold, state: outcome, resolvedAt: at });
  },

  async grant(tx, transferId, workspaceId, amountMicroUsd, at) {
    if (await tx.ledger.getTransfer(transferId)) return false;
    await tx.ledger.transfer([
      {
        id: transferId,
        at,
        kind: 'grant',
        debit: accounts.external,
        credit: accounts.credits(workspaceId),
        amountMicroUsd,
        workspaceId,
        holdId: null,
        sandboxUid: null,
      },
    ]);
    return true;
  },
};
