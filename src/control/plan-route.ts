import { SandboxerError } from '../contract/errors.ts';
import type { RoutePlan } from '../contract/route.ts';
import { expectedUse } from '../core/expected-use.ts';
import type { Recipe } from '../core/recipe.ts';
import { decide, rankedCandidates } from '../core/routing.ts';
import type { ControlDeps } from './deps.ts';

export function planRoute(
  deps: ControlDeps,
  recipe: Recipe,
  seed: string,
  boundTo: string | null,
): RoutePlan {
  const extensions = deps.extensions.all().map((extension) => extension.header);
  const now = deps.clock.now();
  const standing = extensions.map(
    (header) =>
      [
        header.id,
        deps.health.standing(header, deps.extensions.health(header.id).status, recipe, now),
      ] as const,
  );
  return decide({
    recipe,
    extensions,
    catalogueVersion: deps.extensions.version,
    standing: Object.fromEntries(standing),
    healthAt: now,
    expected: expectedUse(recipe),
    allowed: null,
    boundTo,
    seed,
  });
}

/** Refuses with every candidate and what excludes it, when nobody is left. */
export function requireRoute(plan: RoutePlan): void {
  if (rankedCandidates(plan).length > 0) return;
  const why = plan.candidates.map(
    ({ extension, excluded_by }) => `${extension} (${excluded_by[0]?.detail ?? 'excluded'})`,
  );
  throw new SandboxerError('SBX_NO_ROUTE', [plan.reason, ...why].join(' '), {
    creation: 'not_created',
    members: { candidates: plan.candidates },
  });
}

/** The most that any backend of the plan could charge, and its rate. */
export function dearest(plan: RoutePlan): { maxChargeMicroUsd: number; rate: bigint } {
  let maxChargeMicroUsd = 0;
  let rate = 0n;
  for (const { quote } of rankedCandidates(plan)) {
    if (!quote) continue;
    maxChargeMicroUsd = Math.max(maxChargeMicroUsd, quote.max_charge_micro_usd);
    const candidateRate = BigInt(quote.pico_usd_per_second);
    if (candidateRate > rate) rate = candidateRate;
  }
  return { maxChargeMicroUsd, rate };
}
