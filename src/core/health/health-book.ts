import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { AttemptJudgement, AttemptOutcome } from '../lifecycle/attempt.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import type { Breaker } from './breaker.ts';
import { attempted, breakerState, CLOSED, failed, released, succeeded } from './breaker.ts';
import { HedgeBudget } from './hedge-budget.ts';
import { LatencySamples } from './latency-samples.ts';
import type { LatencyPrior } from './peak-latency.ts';
import { PeakLatency } from './peak-latency.ts';
import { classPrior, PRIOR_SUCCESS } from './standing.ts';

/** Recipes that a backend takes about the same time for. */
export function recipeClass(recipe: Pick<Recipe, 'image' | 'isolation'>): string {
  return `${recipe.image === 'host' ? 'host' : 'image'}/${recipe.isolation}`;
}

export interface AttemptKey {
  readonly attemptId: string;
  readonly extensionId: string;
  /** The host of the attempt; `null` where the backend has no hosts of ours. */
  readonly hostId: string | null;
  readonly recipeClass: string;
}

const SUCCESS_HALF_LIFE_MS = 600_000;
const PRIOR_WEIGHT = 10;
/** An attempt without a reported end stops counting as load after this time. */
const FORGET_FLIGHT_MS = 900_000;
const KEY_REFUSED_MS = 60_000;
const STRAINED_MS = 60_000;
const HANG_MS = 5_000;
const MOST_SCOPES = 10_000;

interface Flight {
  readonly at: number;
  /** The number of attempts at once, this one included. */
  readonly load: number;
}

/** Successes and failures, fading with time; the prior weighs as much as ten attempts. */
interface TrackRecord {
  readonly latency: PeakLatency;
  readonly spread: LatencySamples;
  readonly ok: number;
  readonly bad: number;
  readonly at: number;
  readonly samples: number;
}

interface StandingQuery {
  readonly probe: ExtensionHealth['status'];
  readonly recipe: Pick<Recipe, 'image' | 'isolation'>;
  readonly now: number;
}

interface TriedPlace {
  readonly probe: ExtensionHealth['status'];
  readonly place: string;
  readonly record: TrackRecord | undefined;
  readonly now: number;
}

interface LearnedAttempt {
  readonly ok: boolean;
  readonly tookMs: number;
  readonly load: number;
  readonly at: number;
}

/**
 * Holds what our own attempts show of each backend, host and class of recipe: in memory, and learned again from the journalled
 * attempts after a start. The book has no clock of its own and no chance: the same reports give the same standing.
 */
export class HealthBook {
  readonly #records = new Map<string, TrackRecord>();
  readonly #breakers = new Map<string, Breaker>();
  /** The attempts under way, by backend, then by attempt, oldest first. */
  readonly #flights = new Map<string, Map<string, Flight>>();
  readonly #refusedKeys = new Map<string, number>();
  /** By backend, when it last had no room. */
  readonly #full = new Map<string, number>();
  readonly #priors = new Map<string, LatencyPrior>();
  readonly hedges = new HedgeBudget();
  #judgedAt = Number.NEGATIVE_INFINITY;

  /** Sets the registry's latency figures for a backend that was not measured yet. */
  setPrior(extensionId: string, prior: LatencyPrior): void {
    this.#priors.set(extensionId, prior);
  }

  started(key: AttemptKey, at: number): void {
    const flights = this.#flights.get(key.extensionId) ?? new Map<string, Flight>();
    this.#flights.set(key.extensionId, flights);
    if (flights.has(key.attemptId)) return;
    this.hedges.earn();
    flights.set(key.attemptId, { at, load: this.inFlight(key.extensionId, at) + 1 });
    for (const place of placesOf(key)) this.#breakers.set(place, attempted(this.#breaker(place), at));
  }

  /** Returns the judgement of an attempt that ends now: its time is later than that of every judgement before. */
  judge(attemptId: string, extensionId: string, outcome: AttemptOutcome, now: number): AttemptJudgement {
    const load = this.#flights.get(extensionId)?.get(attemptId)?.load ?? 1;
    return { at: this.nextJudgementAt(now), outcome, load, ownMs: 0 };
  }

  /** Returns `now`, or the first millisecond after the last judgement: two judgements never share a time. */
  nextJudgementAt(now: number): number {
    this.#judgedAt = Math.max(now, this.#judgedAt + 1);
    return this.#judgedAt;
  }

  /** Learns a judgement that is stored. Faults of callers, keys, capacity and this server change nothing that others get. */
  ended(key: AttemptKey, { at, outcome, load }: AttemptJudgement, tookMs: number): void {
    this.#judgedAt = Math.max(this.#judgedAt, at);
    this.#flights.get(key.extensionId)?.delete(key.attemptId);
    if (outcome === 'key') this.#refusedKeys.set(key.extensionId, at);
    if (outcome === 'capacity') this.#full.set(key.extensionId, at);
    if (outcome === 'outrun')
      for (const scope of scopesOf(key)) this.#record(scope, at)?.spread.observe(tookMs);
    const judged = outcome === 'ready' ? key : blamed(key, outcome);
    for (const place of placesOf(key)) {
      const breaker = this.#breaker(place);
      const counts = judged !== null && placesOf(judged).includes(place);
      this.#breakers.set(place, counts ? after(breaker, outcome === 'ready', at) : released(breaker));
    }
    if (judged === null) return;
    const ok = outcome === 'ready';
    if (ok) this.#refusedKeys.delete(key.extensionId);
    for (const scope of scopesOf(judged)) this.#learn(scope, { ok, tookMs, load, at });
  }

  /** Records that one create tries a half-open breaker: other creates wait for its outcome. */
  takeTrial(place: Pick<AttemptKey, 'extensionId' | 'hostId'>, at: number): void {
    for (const name of placesOf(place)) this.#breakers.set(name, attempted(this.#breaker(name), at));
  }

  /** Whether its breaker, or the one of the backend there, waits for a trial. */
  awaitsTrial(place: Pick<AttemptKey, 'extensionId' | 'hostId'>, now: number): boolean {
    return placesOf(place).some((name) => breakerState(this.#breaker(name), now) === 'half_open');
  }

  /** Learns from a canary: it shows whether the backend works, and nothing of the waits that customers meet. */
  probed(place: Pick<AttemptKey, 'extensionId' | 'hostId'>, ok: boolean, at: number): void {
    this.#judgedAt = Math.max(this.#judgedAt, at);
    for (const name of placesOf(place)) this.#breakers.set(name, after(this.#breaker(name), ok, at));
  }

  /** Whether a backend fails or has no room: callers should send it no more than is needed. */
  isStrained(extensionId: string, now: number): boolean {
    const full = this.#full.get(extensionId);
    const isFull = full !== undefined && now - full < STRAINED_MS;
    return isFull || breakerState(this.#breaker(extensionId), now) !== 'closed';
  }

  inFlight(extensionId: string, now: number): number {
    const flights = this.#flights.get(extensionId);
    if (!flights) return 0;
    for (const [attemptId, { at }] of flights) {
      if (now - at <= FORGET_FLIGHT_MS) break;
      flights.delete(attemptId);
    }
    return flights.size;
  }

  /** Returns the standing over all recipes, as a list of backends shows it. */
  overall(header: ExtensionHeader, probe: ExtensionHealth['status'], now: number): BackendStanding {
    return this.#standing(header, { probe, place: header.id, record: this.#records.get(header.id), now });
  }

  standing(
    header: ExtensionHeader,
    probe: ExtensionHealth['status'],
    recipe: Pick<Recipe, 'image' | 'isolation'>,
    now: number,
  ): BackendStanding {
    const record = this.#records.get(`${header.id}|${recipeClass(recipe)}`) ?? this.#records.get(header.id);
    return this.#standing(header, { probe, place: header.id, record, now });
  }

  /** Returns the standing of a backend on one of our hosts; `null` where it was not tried yet. */
  standingOn(
    hostId: string,
    header: ExtensionHeader,
    { probe, recipe, now }: StandingQuery,
  ): BackendStanding | null {
    const place = placeOn(header.id, hostId);
    const record = this.#records.get(`${place}|${recipeClass(recipe)}`) ?? this.#records.get(place);
    return record ? this.#standing(header, { probe, place, record, now }) : null;
  }

  #standing(header: ExtensionHeader, { probe, place, record, now }: TriedPlace): BackendStanding {
    const inFlight = this.inFlight(header.id, now);
    const prior = this.#priors.get(header.id) ?? classPrior(header.capabilities.latency_class);
    const wait = record
      ? record.latency.expected(inFlight + 1, prior)
      : new PeakLatency().expected(inFlight + 1, prior);
    const refusedAt = this.#refusedKeys.get(header.id);
    return {
      probe,
      breaker: breakerState(this.#breaker(place), now),
      key_refused: refusedAt !== undefined && now - refusedAt < KEY_REFUSED_MS,
      wait_ms: Math.round(wait.ms),
      measured: wait.measured,
      success: successOf(record, now),
      samples: record?.samples ?? 0,
      in_flight: inFlight,
      ...spreadOf(record),
    };
  }

  #breaker(place: string): Breaker {
    return this.#breakers.get(place) ?? CLOSED;
  }

  #record(scope: string, at: number): TrackRecord | null {
    const known = this.#records.get(scope);
    if (known) return known;
    if (this.#records.size >= MOST_SCOPES) return null;
    const fresh = {
      latency: new PeakLatency(),
      spread: new LatencySamples(),
      ok: 0,
      bad: 0,
      at,
      samples: 0,
    };
    this.#records.set(scope, fresh);
    return fresh;
  }

  #learn(scope: string, { ok, tookMs, load, at }: LearnedAttempt): void {
    const known = this.#record(scope, at);
    if (!known) return;
    if (ok) known.latency.observe(tookMs, load, at);
    // A failure after a long wait was a wait, too: hangs belong to the tail.
    if (ok || tookMs >= HANG_MS) known.spread.observe(tookMs);
    const fade = fading(known, at);
    this.#records.set(scope, {
      ...known,
      ok: known.ok * fade + (ok ? 1 : 0),
      bad: known.bad * fade + (ok ? 0 : 1),
      at: Math.max(at, known.at),
      samples: known.samples + 1,
    });
  }
}

/** A backend on one of our hosts, as its figures are kept. */
export function placeOn(extensionId: string, hostId: string): string {
  return `${extensionId}@${hostId}`;
}

type Place = Pick<AttemptKey, 'extensionId' | 'hostId'> & { readonly onHostOnly?: boolean };

function placesOf({ extensionId, hostId, onHostOnly = false }: Place): string[] {
  if (hostId === null) return [extensionId];
  const there = placeOn(extensionId, hostId);
  return onHostOnly ? [there] : [extensionId, there];
}

/** The places that a failure counts against; `null` when it counts against none. */
function blamed(key: AttemptKey, outcome: AttemptOutcome): (AttemptKey & Place) | null {
  if (outcome === 'backend') return key;
  return outcome === 'host' ? { ...key, onHostOnly: key.hostId !== null } : null;
}

function after(breaker: Breaker, ok: boolean, at: number): Breaker {
  return ok ? succeeded(breaker, at) : failed(breaker, at);
}

/** Returns the scopes that an attempt's outcome counts for, from the wide to the narrow. */
function scopesOf(key: AttemptKey & Place): string[] {
  return placesOf(key).flatMap((place) => [place, `${place}|${key.recipeClass}`]);
}

function fading(record: { readonly at: number }, now: number): number {
  return 0.5 ** (Math.max(0, now - record.at) / SUCCESS_HALF_LIFE_MS);
}

function spreadOf(record: TrackRecord | undefined): Partial<BackendStanding> {
  const shape = record?.spread.shape();
  return shape ? { p50_ms: shape.p50Ms, p95_ms: shape.p95Ms, tail_ms: shape.tailMs } : {};
}

/** Rounds to four digits: enough to rank by, and the same in every stored plan. */
function successOf(record: TrackRecord | undefined, now: number): number {
  const fade = record ? fading(record, now) : 0;
  const ok = (record?.ok ?? 0) * fade + PRIOR_WEIGHT * PRIOR_SUCCESS;
  const bad = (record?.bad ?? 0) * fade + PRIOR_WEIGHT * (1 - PRIOR_SUCCESS);
  return Math.round((ok / (ok + bad)) * 10_000) / 10_000;
}
