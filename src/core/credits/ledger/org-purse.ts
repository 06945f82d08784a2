import type { Tx } from '../../ports/store/store.ts';
import { accounts } from '../accounts.ts';
import type { MoneyPolicy } from '../policy.ts';

const PAGE = 1_000;
/** The kinds that bring money into a purse or take it out again. What is charged is spent by all together. */
const MOVING = ['grant', 'top_up', 'expiry', 'move', 'hold', 'release'] as const;

/** How much one workspace put into the purse that it shares, less what it took out again. */
export interface Contribution {
  readonly workspaceId: string;
  readonly microUsd: number;
}

/**
 * Divides what is left in a shared purse by what each workspace put in: whole micro-dollars, rounded down; those that remain go
 * one each to the largest fractions, of two alike to the id that comes first. Where no workspace put anything in, in equal parts.
 */
export function divide(leftMicroUsd: number, contributions: readonly Contribution[]): Map<string, number> {
  const paid = contributions.map(({ workspaceId, microUsd }) => ({
    workspaceId,
    weight: BigInt(Math.max(0, microUsd)),
  }));
  const isEqual = paid.every(({ weight }) => weight === 0n);
  const weights = isEqual ? paid.map(({ workspaceId }) => ({ workspaceId, weight: 1n })) : paid;
  const all = weights.reduce((sum, { weight }) => sum + weight, 0n);
  const left = BigInt(leftMicroUsd);
  const parts = weights.map(({ workspaceId, weight }) => ({
    workspaceId,
    share: Number((left * weight) / all),
    fraction: (left * weight) % all,
  }));
  parts.sort((a, b) =>
    a.fraction === b.fraction ? (a.workspaceId < b.workspaceId ? -1 : 1) : a.fraction > b.fraction ? -1 : 1,
  );
  const rest = leftMicroUsd - parts.reduce((sum, { share }) => sum + share, 0);
  return new Map(parts.map(({ workspaceId, share }, index) => [workspaceId, share + (index < rest ? 1 : 0)]));
}

/** Returns what a workspace put into the purse of its policy since it joined that purse. */
export async function contributionOf(tx: Tx, policy: MoneyPolicy): Promise<Contribution> {
  const { workspaceId, purse, joinedAt: from = 0 } = policy;
  const isIn = (account: string) => account === purse || account === accounts.held(purse);
  let microUsd = 0;
  for (let after = 0; ; ) {
    const page = await tx.ledger.transfers({ workspaceId, kinds: MOVING, from, after, limit: PAGE });
    for (const { debit, credit, amountMicroUsd } of page)
      microUsd += (Number(isIn(credit)) - Number(isIn(debit))) * amountMicroUsd;
    if (page.length < PAGE) return { workspaceId, microUsd };
    after = page.at(-1)?.seq ?? after;
  }
}
