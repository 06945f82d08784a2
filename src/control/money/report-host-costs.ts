import type { HostCostReport, OwnMachines } from '../../contract/money/credits.ts';
import type { Price } from '../../contract/money/money.ts';
import { allocateHostCost, breakEven } from '../../core/credits/host-cost.ts';
import { quoteFor } from '../../core/credits/pricing.ts';
import type { HostRecord } from '../../core/hosts/host.ts';
import type { AttemptRecord } from '../../core/lifecycle/attempt.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { Span } from './credit-reports.ts';

/** Attempts that a report looks at: the newest. */
const MOST_ATTEMPTS = 100_000;

interface Seller {
  readonly extension: string;
  readonly price: Price;
}

/** Returns the lowest price of the same sizes for the same times among the enabled vendors. */
function elsewhere(
  sellers: readonly Seller[],
  attempts: readonly AttemptRecord[],
  now: number,
): { readonly extension: string; readonly amountMicroUsd: number } | null {
  const sums = sellers.map(({ extension, price }) => {
    const amounts = attempts.map(({ reserved, startedAt, endedAt }) => {
      const seconds = Math.ceil(((endedAt ?? now) - startedAt) / 1000);
      const resources = {
        cpu: reserved.millicpu > 0 ? reserved.millicpu / 1000 : null,
        memory_mb: reserved.memoryMb > 0 ? reserved.memoryMb : null,
        disk_mb: null,
        pids: null,
        open_files: null,
        gpu: null,
      };
      const expected = { seconds, cpuUtilisation: 1, memoryUtilisation: 1 };
      return quoteFor({ extension, price, resources, seconds, region: null, expected }).max_charge_micro_usd;
    });
    return { extension, amountMicroUsd: amounts.reduce((sum, amount) => sum + amount, 0) };
  });
  return sums.sort((a, b) => a.amountMicroUsd - b.amountMicroUsd)[0] ?? null;
}

function costOf(
  { id, spec, createdAt }: HostRecord,
  all: readonly AttemptRecord[],
  sellers: readonly Seller[],
  { from, to }: Span,
): HostCostReport['items'][number] {
  const perHour = spec.cost_micro_usd_per_hour ?? 0;
  const span = { from: Math.max(from, createdAt), to };
  const attempts = all.filter(
    ({ hostId, startedAt, endedAt }) => hostId === id && startedAt < to && (endedAt ?? to) > span.from,
  );
  const { cpu, memory_mb: memoryMb, sandboxes } = spec.capacity;
  const capacity = { millicpu: cpu === null ? null : cpu * 1000, memoryMb, sandboxes };
  const uses = attempts.map(({ startedAt, endedAt, reserved }) => ({
    from: startedAt,
    to: endedAt ?? to,
    ...reserved,
  }));
  const cost = allocateHostCost(perHour, capacity, span, uses);
  const cheapest = attempts.length === 0 ? null : elsewhere(sellers, attempts, to);
  const share = breakEven(cost, cheapest?.amountMicroUsd ?? null);
  return {
    host: id,
    cost_micro_usd_per_hour: perHour,
    sandboxes: attempts.length,
    total_micro_usd: cost.totalMicroUsd,
    used_micro_usd: cost.usedMicroUsd,
    idle_micro_usd: cost.idleMicroUsd,
    utilisation: cost.utilisation,
    cheapest_elsewhere: cheapest?.extension ?? null,
    elsewhere_micro_usd: cheapest?.amountMicroUsd ?? null,
    saved_micro_usd: cheapest === null ? null : cheapest.amountMicroUsd - cost.totalMicroUsd,
    break_even_utilisation: share === null ? null : rounded(share),
  };
}

/**
 * Sums up all hosts, for a caller with the scope `server`; `null` without it, where nothing ran, or where no vendor sells the
 * same.
 */
export async function ownMachines(
  deps: ControlPorts,
  caller: Caller,
  span: Span,
): Promise<OwnMachines | null> {
  if (!caller.scopes.has('server')) return null;
  const { items } = await reportHostCosts(deps, caller, span);
  const sum = (of: (item: HostCostReport['items'][number]) => number) =>
    items.reduce((total, item) => total + of(item), 0);
  const total = sum((item) => item.total_micro_usd);
  const elsewhere = sum((item) => item.elsewhere_micro_usd ?? 0);
  if (elsewhere === 0) return null;
  const utilisation = total === 0 ? 0 : sum((item) => item.used_micro_usd) / total;
  const share = breakEven({ totalMicroUsd: total, utilisation }, elsewhere);
  return {
    sandboxes: sum((item) => item.sandboxes),
    total_micro_usd: total,
    elsewhere_micro_usd: elsewhere,
    saved_micro_usd: elsewhere - total,
    utilisation: rounded(utilisation),
    break_even_utilisation: share === null ? null : rounded(share),
  };
}

/** Rounds to a hundredth of a percent. */
function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}

/**
 * Reports the cost of own machines, the part that each sandbox used, and the price of the same at the cheapest vendor. A
 * backend for demos sells nothing and is no vendor.
 */
export async function reportHostCosts(
  deps: ControlPorts,
  caller: Caller,
  span: Span,
): Promise<HostCostReport> {
  requireScope(caller, 'server');
  const sellers = deps.extensions
    .all()
    .flatMap(({ header }) =>
      header.capabilities.hosting === 'saas' && !header.capabilities.demo && header.price !== null
        ? [{ extension: header.id, price: header.price }]
        : [],
    );
  const to = Math.min(span.to, deps.clock.now());
  return deps.store.read('host-costs', async (tx) => {
    const attempts = await tx.attempts.recent(MOST_ATTEMPTS);
    const hosts = (await tx.hosts.list()).filter(({ spec }) => spec.class === 'sandbox');
    return {
      from: isoTime(span.from),
      to: isoTime(to),
      items: hosts.map((host) => costOf(host, attempts, sellers, { from: span.from, to })),
    };
  });
}
