/** Credits that were given or bought. Those that end first are spent first. */
export interface GrantRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly purse: string;
  readonly kind: 'grant' | 'top_up';
  readonly amountMicroUsd: number;
  /** The unspent part when the grants of the purse were last settled. */
  readonly remainingMicroUsd: number;
  readonly createdAt: number;
  /** `null` for ever. */
  readonly expiresAt: number | null;
  /** Expired, or spent. */
  readonly endedAt: number | null;
}

/** Orders grants as they are spent: those that end first before the others; of two alike, the older. */
function burnsBefore(a: GrantRecord, b: GrantRecord): number {
  const [ends, otherEnds] = [
    a.expiresAt ?? Number.POSITIVE_INFINITY,
    b.expiresAt ?? Number.POSITIVE_INFINITY,
  ];
  if (ends !== otherEnds) return ends - otherEnds;
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/**
 * Returns the grants with what is left of each when the purse, reservations included, has `leftMicroUsd`: the difference to their
 * former sum is taken from those that end first.
 */
export function burnDown(grants: readonly GrantRecord[], leftMicroUsd: number): GrantRecord[] {
  const had = grants.reduce((sum, { remainingMicroUsd }) => sum + remainingMicroUsd, 0);
  let spent = Math.max(0, had - leftMicroUsd);
  return [...grants].sort(burnsBefore).map((grant) => {
    const taken = Math.min(grant.remainingMicroUsd, spent);
    spent -= taken;
    return { ...grant, remainingMicroUsd: grant.remainingMicroUsd - taken };
  });
}
