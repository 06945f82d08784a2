import type { ExtensionHealth } from '../contract/extension.ts';
import type { Exclusion, RouteCandidate, RoutePlan } from '../contract/route.ts';
import { isoTime } from './clock.ts';
import type { ExtensionHeader } from './extension.ts';
import { misfits } from './fit.ts';
import { place } from './placement.ts';
import { priceOrFree, quoteFor } from './pricing.ts';
import type { Recipe } from './recipe.ts';

/** Everything a decision depends on. The same input gives the same plan, byte for byte. */
export interface RouteInput {
  readonly recipe: Recipe;
  readonly extensions: readonly ExtensionHeader[];
  readonly catalogueVersion: string;
  readonly health: Readonly<Record<string, ExtensionHealth['status']>>;
  readonly healthAt: number;
  /** The account's ceiling; `null` allows every backend. */
  readonly allowed: readonly string[] | null;
  /** A snapshot or a source that lives on one backend leaves no choice. */
  readonly boundTo: string | null;
  readonly seed: string;
}

const LATENCY_RANK = { instant: 0, fast: 1, standard: 2, slow: 3 } as const;

/** `ext.e2b#eu` is an instance of `ext.e2b`: the base name matches all of its instances. */
function matches(list: readonly string[], id: string): boolean {
  return list.includes(id) || list.includes(id.split('#')[0] as string);
}

function positionIn(list: readonly string[], id: string): number {
  const exact = list.indexOf(id);
  return exact >= 0 ? exact : list.indexOf(id.split('#')[0] as string);
}

function policyExclusions(input: RouteInput, id: string): Exclusion[] {
  const { recipe, boundTo } = input;
  const { only, ignore, fallback = [] } = recipe.route;
  const excluded: Exclusion[] = [];
  if (boundTo !== null && id !== boundTo) {
    excluded.push({ code: 'not_pinned', detail: `the source lives on ${boundTo}` });
  }
  const pinned = recipe.pinnedExtension;
  if (pinned !== null && !matches([pinned], id) && !matches(fallback, id)) {
    excluded.push({ code: 'not_pinned', detail: `the profile pins ${pinned}` });
  }
  const explicit = recipe.route.strategy === 'explicit' && pinned === null;
  if (explicit && !matches([...(recipe.route.order ?? []), ...fallback], id)) {
    excluded.push({
      code: 'not_pinned',
      detail: 'an explicit route names its backends in order and fallback',
    });
  }
  if (input.allowed !== null && !matches(input.allowed, id)) {
    excluded.push({ code: 'policy', detail: 'the workspace does not allow it' });
  }
  if (only && !matches(only, id)) excluded.push({ code: 'not_in_only', detail: 'not in route.only' });
  if (ignore && matches(ignore, id)) excluded.push({ code: 'ignored', detail: 'in route.ignore' });
  return excluded;
}

function healthExclusions(input: RouteInput, id: string): Exclusion[] {
  const status = input.health[id] ?? 'unknown';
  if (status === 'undetected')
    return [{ code: 'unavailable', detail: 'what it needs is not installed here' }];
  if (status === 'unhealthy') return [{ code: 'unhealthy', detail: 'its last probe failed' }];
  return [];
}

/** Smaller comes first. Written out, so that `route explain` can show why. */
function scoreOf(
  input: RouteInput,
  header: ExtensionHeader,
  microUsdPerHour: number,
): Record<string, number> {
  const { order = [], fallback = [], strategy = 'prefer-self-hosted' } = input.recipe.route;
  const pinned = input.recipe.pinnedExtension;
  const inOrder = positionIn(order, header.id);
  const inFallback = positionIn(fallback, header.id);
  const tail = inFallback >= 0 && inOrder < 0 && !(pinned !== null && matches([pinned], header.id));
  const cost = microUsdPerHour;
  const latency = LATENCY_RANK[header.capabilities.latency_class];
  const saas = header.capabilities.hosting === 'saas' ? 1 : 0;
  const base: Record<string, number> = {
    tail: tail ? 1 : 0,
    fallback: tail ? inFallback : 0,
    order: inOrder >= 0 ? inOrder : order.length,
  };
  if (strategy === 'lowest-cost') return { ...base, cost, latency };
  if (strategy === 'lowest-latency') return { ...base, latency, saas, cost };
  return { ...base, saas, cost, latency };
}

function compareScores(left: RouteCandidate, right: RouteCandidate): number {
  const rightTerms = Object.values(right.score);
  for (const [index, term] of Object.values(left.score).entries()) {
    const difference = term - (rightTerms[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return left.extension < right.extension ? -1 : 1;
}

function candidateFor(input: RouteInput, header: ExtensionHeader): RouteCandidate {
  const { recipe } = input;
  const quote = quoteFor(header.id, priceOrFree(header.price), recipe.resources, recipe.ttlSeconds);
  const ceiling = recipe.route.constraints?.max_cost_per_hour ?? null;
  const excluded = [
    ...policyExclusions(input, header.id),
    ...healthExclusions(input, header.id),
    ...misfits(recipe, header.capabilities),
  ];
  if (ceiling !== null && quote.micro_usd_per_hour > ceiling * 1_000_000) {
    excluded.push({
      code: 'max_cost_per_hour',
      detail: `costs $${(quote.micro_usd_per_hour / 1_000_000).toFixed(4)} an hour, at most $${ceiling} is allowed`,
    });
  }
  return {
    extension: header.id,
    host: place(recipe, header).hostId,
    rank: null,
    excluded_by: excluded,
    score: scoreOf(input, header, quote.micro_usd_per_hour),
    quote,
  };
}

function reasonFor(
  ranked: readonly RouteCandidate[],
  candidates: readonly RouteCandidate[],
  pinned: string | null,
  strategy: string,
): string {
  const [first, ...others] = ranked;
  if (first) {
    const rest =
      others.length > 0 ? `, then ${others.map((candidate) => candidate.extension).join(', ')}` : '';
    return `${first.extension} comes first by ${strategy}${rest}.`;
  }
  const isThere = pinned === null || candidates.some((candidate) => matches([pinned], candidate.extension));
  if (!isThere) return `The profile needs ${pinned}, which is not enabled on this server.`;
  if (candidates.length === 0) return 'No backend is enabled on this server.';
  return `None of ${candidates.length} backends can give what was asked.`;
}

/** SPEC §8: pure, total, explained. */
export function decide(input: RouteInput): RoutePlan {
  const { recipe } = input;
  const strategy =
    recipe.route.strategy ?? (recipe.pinnedExtension !== null ? 'explicit' : 'prefer-self-hosted');
  const candidates = input.extensions.map((header) => candidateFor(input, header));
  const eligible = candidates.filter((candidate) => candidate.excluded_by.length === 0).sort(compareScores);
  const fallbacksOff = recipe.route.allow_fallbacks === false;
  const ranked = fallbacksOff ? eligible.slice(0, 1) : eligible;
  const ranks = new Map(ranked.map((candidate, rank) => [candidate.extension, rank]));
  const listed = candidates.map((candidate) => {
    const rank = ranks.get(candidate.extension) ?? null;
    const shutOut = rank === null && candidate.excluded_by.length === 0;
    return {
      ...candidate,
      rank,
      excluded_by: shutOut
        ? [
            {
              code: 'fallbacks_off' as const,
              detail: 'only the first choice is used: allow_fallbacks is false',
            },
          ]
        : candidate.excluded_by,
    };
  });
  listed.sort(
    (a, b) => (a.rank ?? listed.length) - (b.rank ?? listed.length) || (a.extension < b.extension ? -1 : 1),
  );
  return {
    version: 1,
    strategy,
    catalogue_version: input.catalogueVersion,
    price_version: [...new Set(listed.map((candidate) => candidate.quote?.price_version ?? 'free'))]
      .sort()
      .join(','),
    health_at: isoTime(input.healthAt),
    seed: input.seed,
    pinned: input.boundTo ?? recipe.pinnedExtension,
    candidates: listed,
    reason: reasonFor(ranked, candidates, recipe.pinnedExtension, strategy),
  };
}

/** The candidates that will be tried, first to last. */
export function rankedCandidates(plan: RoutePlan): readonly RouteCandidate[] {
  return plan.candidates.filter((candidate) => candidate.rank !== null);
}
