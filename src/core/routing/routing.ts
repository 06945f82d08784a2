import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { Price } from '../../contract/money/money.ts';
import type { ExcludedHost, RouteCandidate, RoutePlan, RouteStrategy } from '../../contract/routing/route.ts';
import { priceOrFree, quoteFor } from '../credits/pricing.ts';
import { placeOn } from '../health/health-book.ts';
import { unmeasured } from '../health/standing.ts';
import type { HostLoads, HostRecord } from '../hosts/host.ts';
import { isoTime } from '../ports/clock.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { KeyChoice } from '../tenancy/provider-key.ts';
import type { ExpectedUse } from './expected-use.ts';
import { planHedge } from './hedge.ts';
import type { PlacementInput } from './placement.ts';
import { hostsWithPlace, place } from './placement.ts';
import { exclusionsOf, isPassing, PASSES_SECONDS } from './route-exclusions.ts';
import { matches } from './route-names.ts';
import type { RouteScore } from './route-score.ts';
import { rankByScore, scoreOf } from './route-score.ts';

/** The whole input of a decision. The same input gives the same plan, byte for byte. */
export interface RouteInput {
  readonly recipe: Recipe;
  readonly extensions: readonly ExtensionHeader[];
  readonly catalogueVersion: string;
  /** The standing of each backend, and of it on each host (`placeOn`); a missing one was never probed nor used. */
  readonly standing: Readonly<Record<string, BackendStanding>>;
  readonly healthAt: number;
  /** The account's ceiling; `null` allows every backend. */
  readonly allowed: readonly string[] | null;
  /** A snapshot or a source that lives on one backend leaves no choice. */
  readonly boundTo: string | null;
  /** The promise of a quote: only these backends, at these prices. `null`: all, at the prices of now. */
  readonly quoted: Readonly<Record<string, Price>> | null;
  /** How sandboxes of this profile are used. */
  readonly expected: ExpectedUse;
  readonly seed: string;
  /** Registered hosts, and what is reserved on them. */
  readonly hosts?: readonly HostRecord[];
  readonly loads?: HostLoads;
  /** The host that has its source. */
  readonly boundHost?: string | null;
  /** The vendor's key that each backend would be called with, where there is one. */
  readonly keys?: Readonly<Record<string, KeyChoice>>;
}

type Scored = RouteCandidate & { readonly score: RouteScore & Record<string, number> };

interface ChoiceOfHosts {
  readonly hosts: readonly HostRecord[];
  readonly excluded: readonly ExcludedHost[];
}

/** Hosts where the backend keeps failing are left out, unless it must be there or no other host can take the sandbox. */
function hostsFor(input: RouteInput, header: ExtensionHeader, situation: PlacementInput): ChoiceOfHosts {
  const { hosts, boundHost, recipe } = situation;
  const { standing } = input;
  const isAsked = boundHost !== null || recipe.route.host !== undefined;
  if (isAsked || header.runsOn !== 'hosts') return { hosts, excluded: [] };
  const isOpen = ({ id }: HostRecord) => standing[placeOn(header.id, id)]?.breaker === 'open';
  const sound = hosts.filter((host) => !isOpen(host));
  const isOneLeft = hostsWithPlace(header, { ...situation, hosts: sound }).length > 0;
  if (!isOneLeft || sound.length === hosts.length) return { hosts, excluded: [] };
  const excluded = hosts.filter(isOpen).map(({ id }) => ({ host: id, ...BREAKER_OPEN_THERE }));
  return { hosts: sound, excluded };
}

const BREAKER_OPEN_THERE = {
  code: 'breaker_open' as const,
  detail: 'it failed several times in a row there and is left alone for a while',
};

/**
 * Returns the standing on a host, if the backend was tried there, with the breaker of the backend as a whole; else the overall
 * standing.
 */
function standingOf(
  { standing }: RouteInput,
  header: ExtensionHeader,
  hostId: string | null,
): BackendStanding {
  const overall = standing[header.id] ?? unmeasured('unknown', header.capabilities.latency_class);
  const there = hostId === null ? undefined : standing[placeOn(header.id, hostId)];
  return there ? { ...there, breaker: overall.breaker } : overall;
}

function candidateFor(input: RouteInput, strategy: RouteStrategy, header: ExtensionHeader): Scored {
  const { recipe, expected } = input;
  const price = priceOrFree(input.quoted?.[header.id] ?? header.price);
  const quote = quoteFor({
    extension: header.id,
    price,
    resources: recipe.resources,
    seconds: recipe.ttlSeconds,
    region: recipe.requires.region ?? null,
    expected,
  });
  const { hosts: all = [], loads = {}, boundHost = null, seed } = input;
  const key = input.keys?.[header.id];
  const situation = { recipe, hosts: all, loads, seed, boundHost };
  const { hosts, excluded } = hostsFor(input, header, situation);
  const placement = place(header, { ...situation, hosts });
  const standing = standingOf(input, header, placement.hostId);
  const passes = placement.passes ? { retry_after_seconds: PASSES_SECONDS } : {};
  const unplaced = placement.refused
    ? [{ code: 'no_host' as const, detail: placement.reason, ...passes }]
    : [];
  return {
    extension: header.id,
    host: placement.hostId,
    placement: placement.reason,
    ...(placement.otherHosts.length > 0 && { other_hosts: [...placement.otherHosts] }),
    ...(excluded.length > 0 && { excluded_hosts: [...excluded] }),
    rank: null,
    excluded_by: [...exclusionsOf(input, header, { price, quote, standing }), ...unplaced],
    score: { ...scoreOf(input, strategy, { header, quote, standing }) },
    quote,
    ...(key && { provider_key: { provider_key_id: key.id, scope: key.scope } }),
    standing,
  };
}

/** Ignores open breakers where every backend that fits looks broken: the breakers are then wrong more often than right. */
function withoutPanic(candidates: readonly Scored[]): { candidates: readonly Scored[]; panic: boolean } {
  const someoneLeft = candidates.some(({ excluded_by }) => excluded_by.length === 0);
  if (someoneLeft) return { candidates, panic: false };
  const spared = candidates.map((candidate) =>
    candidate.excluded_by.every(isPassing) ? { ...candidate, excluded_by: [] } : candidate,
  );
  return { candidates: spared, panic: spared.some(({ excluded_by }) => excluded_by.length === 0) };
}

function reasonFor(
  ranked: readonly RouteCandidate[],
  candidates: readonly RouteCandidate[],
  pinned: string | null,
  by: string,
): string {
  const [first, ...others] = ranked;
  if (first) {
    const rest =
      others.length > 0 ? `, then ${others.map((candidate) => candidate.extension).join(', ')}` : '';
    return `${first.extension} comes first by ${by}${rest}.`;
  }
  const isThere = pinned === null || candidates.some((candidate) => matches([pinned], candidate.extension));
  if (!isThere) return `The profile needs ${pinned}, which is not enabled on this server.`;
  if (candidates.length === 0) return 'No backend is enabled on this server.';
  if (candidates.length === 1) return 'The only backend cannot give what was asked.';
  return `None of ${candidates.length} backends can give what was asked.`;
}

const FALLBACKS_OFF = {
  code: 'fallbacks_off' as const,
  detail: 'only the first choice is used: allow_fallbacks is false',
};

/** SPEC §8: pure, total, explained. */
export function decide(input: RouteInput): RoutePlan {
  const { recipe } = input;
  const { route } = recipe;
  const strategy = route.strategy ?? (recipe.pinnedExtension !== null ? 'explicit' : 'prefer-self-hosted');
  const { candidates, panic } = withoutPanic(
    input.extensions.map((header) => candidateFor(input, strategy, header)),
  );
  const eligible = rankByScore(
    candidates.filter(({ excluded_by }) => excluded_by.length === 0),
    route.affinity_key,
    input.seed,
  );
  const ranked = route.allow_fallbacks === false ? eligible.slice(0, 1) : eligible;
  const shutOut = eligible
    .slice(ranked.length)
    .map((candidate) => ({ ...candidate, excluded_by: [FALLBACKS_OFF] }));
  const excluded = [...shutOut, ...candidates.filter(({ excluded_by }) => excluded_by.length > 0)].sort(
    (a, b) => (a.extension < b.extension ? -1 : 1),
  );
  const listed = [...ranked.map((candidate, rank) => ({ ...candidate, rank })), ...excluded];
  const hedge = planHedge(recipe, ranked);
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
    ...(panic && { panic }),
    candidates: listed,
    ...(hedge && { hedge }),
    expected: {
      seconds: input.expected.seconds,
      cpu_utilisation: input.expected.cpuUtilisation,
      memory_utilisation: input.expected.memoryUtilisation,
      ...input.expected.evidence,
    },
    reason: reasonFor(ranked, candidates, recipe.pinnedExtension, route.sort ?? strategy),
  };
}

/** A backend, and where on it. */
export interface RouteTarget {
  readonly extension: string;
  readonly host: string | null;
  readonly providerKeyId: string | null;
}

/** Returns every place that will be tried, first to last: a backend's other hosts come before the next backend. */
export function routeTargets(plan: RoutePlan): readonly RouteTarget[] {
  return rankedCandidates(plan).flatMap(({ extension, host, other_hosts = [], provider_key }) =>
    [host, ...other_hosts].map((where) => ({
      extension,
      host: where,
      providerKeyId: provider_key?.provider_key_id ?? null,
    })),
  );
}

/** The candidates that will be tried, first to last. */
export function rankedCandidates(plan: RoutePlan): readonly RouteCandidate[] {
  return plan.candidates.filter((candidate) => candidate.rank !== null);
}
