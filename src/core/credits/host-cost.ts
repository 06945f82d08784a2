/** The capacity of a machine of our own; `null` where none is configured. */
export interface HostCapacity {
  readonly millicpu: number | null;
  readonly memoryMb: number | null;
  readonly sandboxes: number | null;
}

/** The use of a host by one sandbox, from when it was begun until it was gone. Milliseconds since 1970. */
export interface HostUse {
  readonly from: number;
  readonly to: number;
  readonly millicpu: number;
  readonly memoryMb: number;
}

export interface HostCost {
  readonly totalMicroUsd: number;
  /** The cost of each use, in the order they were given. */
  readonly usesMicroUsd: readonly number[];
  readonly usedMicroUsd: number;
  readonly idleMicroUsd: number;
  /** The share of the machine that was in use, 0 to 1. */
  readonly utilisation: number;
}

const WHOLE = 1_000_000;
const HOUR_MS = 3_600_000n;

/** Returns the larger share of the processors and of the memory, in millionths; a place among many where neither is known. */
function shareOf(use: HostUse, { millicpu, memoryMb, sandboxes }: HostCapacity): number {
  const shares = [
    millicpu === null ? 0 : use.millicpu / millicpu,
    memoryMb === null ? 0 : use.memoryMb / memoryMb,
    sandboxes === null ? 0 : 1 / sandboxes,
  ];
  const share = Math.max(...shares);
  return Math.round((share > 0 ? Math.min(1, share) : 1) * WHOLE);
}

/**
 * Divides the cost of a host in a span among the sandboxes that ran on it and idle time. Where more was reserved than there is,
 * each gets its part of the whole. Used and idle add up to the cost, to the micro-dollar: what rounding leaves is idle.
 */
export function allocateHostCost(
  microUsdPerHour: number,
  capacity: HostCapacity,
  span: { readonly from: number; readonly to: number },
  uses: readonly HostUse[],
): HostCost {
  const spanMs = BigInt(Math.max(0, span.to - span.from));
  const total = (BigInt(microUsdPerHour) * spanMs) / HOUR_MS;
  const within = uses.map((use) => ({
    from: Math.max(use.from, span.from),
    to: Math.min(use.to, span.to),
    share: shareOf(use, capacity),
  }));
  const moments = [...new Set(within.flatMap(({ from, to }) => (from < to ? [from, to] : [])))].sort(
    (a, b) => a - b,
  );
  const units = uses.map(() => 0n);
  for (let i = 0; i + 1 < moments.length; i += 1) {
    const [from, to] = [moments[i] as number, moments[i + 1] as number];
    const present = within.flatMap((use, n) => (use.from <= from && use.to >= to ? [n] : []));
    const sum = present.reduce((shares, n) => shares + (within[n]?.share ?? 0), 0);
    const over = BigInt(Math.max(sum, WHOLE));
    for (const n of present)
      units[n] =
        (units[n] ?? 0n) + (BigInt(to - from) * BigInt(within[n]?.share ?? 0) * BigInt(WHOLE)) / over;
  }
  const all = spanMs * BigInt(WHOLE);
  const amounts = units.map((unit) => (all === 0n ? 0 : Number((total * unit) / all)));
  const used = amounts.reduce((sum, amount) => sum + amount, 0);
  const usedUnits = units.reduce((sum, unit) => sum + unit, 0n);
  return {
    totalMicroUsd: Number(total),
    usesMicroUsd: amounts,
    usedMicroUsd: used,
    idleMicroUsd: Number(total) - used,
    utilisation: all === 0n ? 0 : Number((usedUnits * 1_000_000n) / all) / 1_000_000,
  };
}

/**
 * Returns the share of use from which the machine is cheaper than buying the same elsewhere; `null` when nothing ran, or no
 * vendor sells the same. Above 1 the machine is never cheaper.
 */
export function breakEven(
  { totalMicroUsd, utilisation }: Pick<HostCost, 'totalMicroUsd' | 'utilisation'>,
  elsewhereMicroUsd: number | null,
): number | null {
  if (elsewhereMicroUsd === null || elsewhereMicroUsd === 0) return null;
  return (utilisation * totalMicroUsd) / elsewhereMicroUsd;
}
