import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { Quote } from '../../contract/money/money.ts';
import type { RouteCandidate, RoutePolicy, RouteStrategy } from '../../contract/routing/route.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { matches, positionIn } from './route-names.ts';
import type { RouteInput } from './routing.ts';

/** The value of an hour of waiting where the request gives none, in US dollars. */
const USUAL_VALUE_OF_TIME = 10;
/** Within this share of the best, an affinity key decides. */
const AFFINITY_BAND = 0.2;
const LEAST_SUCCESS = 0.01;

/**
 * The terms of a candidate's rank, in the order they count; smaller comes first. `outcome` is what a sandbox that works
 * is expected to cost: money and waiting, divided by the chance of success.
 */
export interface RouteScore {
  /** 0: where the route wants it. 1: only a fallback. */
  readonly fallback: number;
  /** The position in `fallback` or `order`. */
  readonly order: number;
  /** 1 behind every self-hosted backend, where those are preferred. */
  readonly hosted_elsewhere: number;
  /** 1 when it is slower than was wished. */
  readonly over_preferred_tti: number;
  readonly outcome: number;
  readonly expected_cost_micro_usd: number;
  readonly wait_ms: number;
}

/** The weights of a micro-dollar and a second: the strategies are presets of one score. */
interface Weights {
  readonly money: number;
  readonly microUsdPerSecond: number;
}

function weightsOf(route: RoutePolicy, strategy: RouteStrategy): Weights {
  const wanted =
    route.sort ?? (strategy === 'lowest-cost' ? 'price' : strategy === 'lowest-latency' ? 'latency' : null);
  if (wanted === 'price') return { money: 1, microUsdPerSecond: 0 };
  if (wanted === 'latency') return { money: 0, microUsdPerSecond: 1_000_000 };
  return { money: 1, microUsdPerSecond: valueOfSecond(route) };
}

/** Returns the value of a second in micro-USD. */
export function valueOfSecond({ value_of_time: perHour = USUAL_VALUE_OF_TIME }: RoutePolicy): number {
  return (perHour * 1_000_000) / 3600;
}

interface PricedOffer {
  readonly header: ExtensionHeader;
  readonly quote: Quote;
  readonly standing: BackendStanding;
}

export function scoreOf(
  input: RouteInput,
  strategy: RouteStrategy,
  { header, quote, standing }: PricedOffer,
): RouteScore {
  const { route, pinnedExtension: pinned } = input.recipe;
  const { order = [], fallback = [] } = route;
  const inOrder = positionIn(order, header.id);
  const inFallback = positionIn(fallback, header.id);
  const isPinned = pinned !== null && matches([pinned], header.id);
  const isTail = inFallback >= 0 && inOrder < 0 && !isPinned;
  const prefersOurs = strategy === 'prefer-self-hosted' && route.sort === undefined;
  const wish = route.preferred_max_tti;
  const { money, microUsdPerSecond } = weightsOf(route, strategy);
  const spent = money * quote.expected_charge_micro_usd + (microUsdPerSecond * standing.wait_ms) / 1000;
  return {
    fallback: isTail ? 1 : 0,
    order: isTail ? inFallback : inOrder >= 0 ? inOrder : order.length,
    hosted_elsewhere: prefersOurs && header.capabilities.hosting === 'saas' ? 1 : 0,
    over_preferred_tti: wish !== undefined && standing.wait_ms > wish * 1000 ? 1 : 0,
    outcome: spent / Math.max(LEAST_SUCCESS, standing.success),
    expected_cost_micro_usd: quote.expected_charge_micro_usd,
    wait_ms: standing.wait_ms,
  };
}

const BEFORE_OUTCOME = ['fallback', 'order', 'hosted_elsewhere', 'over_preferred_tti'] as const;
const AFTER_OUTCOME = ['expected_cost_micro_usd', 'wait_ms'] as const;

type Scored = RouteCandidate & { readonly score: RouteScore };

/**
 * First to last. Candidates of one standing that are about as good as the best of them follow the affinity key, when
 * there is one; what is equal in everything is shuffled by the seed, so that equals share the load.
 */
export function rankByScore(
  candidates: readonly Scored[],
  affinityKey: string | undefined,
  seed: string,
): Scored[] {
  if (affinityKey === undefined) return [...candidates].sort(byTerms(seed));
  const best = new Map<string, number>();
  const groupOf = ({ score }: Scored) => BEFORE_OUTCOME.map((term) => score[term]).join();
  for (const candidate of candidates) {
    const group = groupOf(candidate);
    best.set(group, Math.min(best.get(group) ?? Number.POSITIVE_INFINITY, candidate.score.outcome));
  }
  const isNearBest = (candidate: Scored) =>
    candidate.score.outcome <= (best.get(groupOf(candidate)) as number) * (1 + AFFINITY_BAND);
  const otherwise = byTerms(seed);
  return [...candidates].sort((left, right) => {
    const before = byStanding(left, right);
    if (before !== 0) return before;
    const nearLeft = isNearBest(left);
    if (nearLeft !== isNearBest(right)) return nearLeft ? -1 : 1;
    return nearLeft ? byHash(affinityKey, left.extension, right.extension) : otherwise(left, right);
  });
}

function byStanding({ score: left }: Scored, { score: right }: Scored): number {
  for (const term of BEFORE_OUTCOME) if (left[term] !== right[term]) return left[term] - right[term];
  return 0;
}

function byTerms(seed: string): (left: Scored, right: Scored) => number {
  return (left, right) => {
    const before = byStanding(left, right);
    if (before !== 0) return before;
    if (left.score.outcome !== right.score.outcome) return left.score.outcome - right.score.outcome;
    for (const term of AFTER_OUTCOME)
      if (left.score[term] !== right.score[term]) return left.score[term] - right.score[term];
    return byHash(seed, left.extension, right.extension);
  };
}

/** Rendezvous hashing: the same key prefers the same backends, whichever others come and go. */
function byHash(key: string, left: string, right: string): number {
  return hash(`${key}\n${left}`) - hash(`${key}\n${right}`) || (left < right ? -1 : 1);
}

/** FNV-1a with a final mix: spreads, and is the same everywhere. No secret depends on it. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}
