import type { ExtensionHealth } from '../../contract/extension.ts';
import type { BackendStanding } from '../../contract/route.ts';
import type { ExtensionHeader } from '../extension.ts';
import type { Recipe } from '../recipe.ts';
import type { Breaker } from './breaker.ts';
import { attempted, breakerState, CLOSED, failed, succeeded } from './breaker.ts';
import { HedgeBudget } from './hedge-budget.ts';
import { LatencySamples } from './latency-samples.ts';
import type { LatencyPrior } from './peak-latency.ts';
import { PeakLatency } from './peak-latency.ts';
import { classPrior, PRIOR_SUCCESS } from './standing.ts';

/** How an attempt ended, for the standing of its backend. */
export type AttemptOutcome = 'ready' | 'failed' | 'capacity' | 'key_refused' | 'outrun' | 'not_its_fault';

const CAPACITY: readonly string[] = ['SBX_BACKEND_QUOTA', 'SBX_RATE_LIMITED', 'SBX_QUOTA_EXCEEDED'];
/** Refusals that say something of the request or of us, and nothing of the backend. */
const NOT_ITS_FAULT: readonly string[] = [
  'SBX_SECRET_UNRESOLVED',
  'SBX_SECRET_DELIVERY',
  'SBX_UNSUPPORTED',
  'SBX_INVALID_REQUEST',
  'SBX_PATH_REFUSED',
  'SBX_PROVISION_FAILED',
  'SBX_CANCELLED',
  'SBX_GONE',
];

export function outcomeOf(code: string): AttemptOutcome {
  if (CAPACITY.includes(code)) return 'capacity';
  if (code === 'SBX_BACKEND_AUTH') return 'key_refused';
  return NOT_ITS_FAULT.includes(code) ? 'not_its_fault' : 'failed';
}

/** Recipes that a backend takes about the same time for. */
export function recipeClass(recipe: Pick<Recipe, 'image' | 'isolation'>): string {
  return `${recipe.image === 'host' ? 'host' : 'image'}/${recipe.isolation}`;
}

export interface AttemptKey {
  readonly attemptId: string;
  readonly extensionId: string;
  /** Where it was placed; `null` where the backend has no hosts of ours. */
  readonly hostId: string | null;
  readonly recipeClass: string;
}

const SUCCESS_HALF_LIFE_MS = 600_000;
const PRIOR_WEIGHT = 10;
/** An attempt whose end nobody reported does not count as load for ever. */
const FORGET_FLIGHT_MS = 900_000;
const KEY_REFUSED_MS = 60_000;
const STRAINED_MS = 60_000;
const HANG_MS = 5_000;
const MOST_SCOPES = 10_000;

interface Flight {
  readonly at: number;
  /** How many there were at once, itself included. */
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

/**
 * What our own attempts say of each backend, host and class of recipe: in memory, and learned again from the journalled
 * attempts after a start. No clock of its own and no chance: the same reports give the same standing.
 */
export class HealthBook {
  readonly #records = new Map<string, TrackRecord>();
  readonly #breakers = new Map<string, Breaker>();
  /** By backend, then by attempt, oldest first. */
  readonly #flights = new Map<string, Map<string, Flight>>();
  readonly #refusedKeys = new Map<string, number>();
  /** When each last had no room. */
  readonly #full = new Map<string, number>();
  readonly #priors = new Map<string, LatencyPrior>();
  readonly hedges = new HedgeBudget();

  /** What the registry says of a backend that was not measured yet. */
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

  ended(key: AttemptKey, outcome: AttemptOutcome, tookMs: number, at: number): void {
    const flights = this.#flights.get(key.extensionId);
    const load = flights?.get(key.attemptId)?.load ?? 1;
    flights?.delete(key.attemptId);
    if (outcome === 'key_refused') this.#refusedKeys.set(key.extensionId, at);
    if (outcome === 'capacity') this.#full.set(key.extensionId, at);
    if (outcome === 'outrun')
      for (const scope of scopesOf(key)) this.#record(scope, at)?.spread.observe(tookMs);
    if (outcome !== 'ready' && outcome !== 'failed') return;
    const ok = outcome === 'ready';
    for (const place of placesOf(key)) {
      const breaker = this.#breaker(place);
      this.#breakers.set(place, ok ? succeeded(breaker, at) : failed(breaker, at));
    }
    if (ok) this.#refusedKeys.delete(key.extensionId);
    for (const scope of scopesOf(key)) this.#learn(scope, ok, tookMs, load, at);
  }

  /** One create will try again what was left alone: others wait for what comes of it. */
  takeTrial(place: Pick<AttemptKey, 'extensionId' | 'hostId'>, at: number): void {
    for (const name of placesOf(place)) this.#breakers.set(name, attempted(this.#breaker(name), at));
  }

  /** Whether its breaker, or the one of the backend there, waits for somebody to try it again. */
  awaitsTrial(place: Pick<AttemptKey, 'extensionId' | 'hostId'>, now: number): boolean {
    return placesOf(place).some((name) => breakerState(this.#breaker(name), now) === 'half_open');
  }

  /** A canary tried it: that says whether it works, and nothing of the waits that customers meet. */
  probed(place: Pick<AttemptKey, 'extensionId' | 'hostId'>, ok: boolean, at: number): void {
    for (const name of placesOf(place)) {
      const breaker = this.#breaker(name);
      this.#breakers.set(name, ok ? succeeded(breaker, at) : failed(breaker, at));
    }
  }

  /** It fails, or has no room: nobody should send it more than is needed. */
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

  /** Over all recipes: what a list of backends shows. */
  overall(header: ExtensionHeader, probe: ExtensionHealth['status'], now: number): BackendStanding {
    return this.#standing(header, probe, header.id, this.#records.get(header.id), now);
  }

  standing(
    header: ExtensionHeader,
    probe: ExtensionHealth['status'],
    recipe: Pick<Recipe, 'image' | 'isolation'>,
    now: number,
  ): BackendStanding {
    const record = this.#records.get(`${header.id}|${recipeClass(recipe)}`) ?? this.#records.get(header.id);
    return this.#standing(header, probe, header.id, record, now);
  }

  /** On one of our hosts; `null` where nothing was tried yet. */
  standingOn(
    hostId: string,
    header: ExtensionHeader,
    probe: ExtensionHealth['status'],
    recipe: Pick<Recipe, 'image' | 'isolation'>,
    now: number,
  ): BackendStanding | null {
    const place = placeOn(header.id, hostId);
    const record = this.#records.get(`${place}|${recipeClass(recipe)}`) ?? this.#records.get(place);
    return record ? this.#standing(header, probe, place, record, now) : null;
  }

  #standing(
    header: ExtensionHeader,
    probe: ExtensionHealth['status'],
    place: string,
    record: TrackRecord | undefined,
    now: number,
  ): BackendStanding {
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

  #learn(scope: string, ok: boolean, tookMs: number, load: number, at: number): void {
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

function placesOf({ extensionId, hostId }: Pick<AttemptKey, 'extensionId' | 'hostId'>): string[] {
  return hostId === null ? [extensionId] : [extensionId, placeOn(extensionId, hostId)];
}

/** What an attempt teaches about, from the wide to the narrow. */
function scopesOf(key: AttemptKey): string[] {
  return placesOf(key).flatMap((place) => [place, `${place}|${key.recipeClass}`]);
}

function fading(record: { readonly at: number }, now: number): number {
  return 0.5 ** (Math.max(0, now - record.at) / SUCCESS_HALF_LIFE_MS);
}

function spreadOf(record: TrackRecord | undefined): Partial<BackendStanding> {
  const shape = record?.spread.shape();
  return shape ? { p50_ms: shape.p50Ms, p95_ms: shape.p95Ms, tail_ms: shape.tailMs } : {};
}

/** Four digits: enough to rank by, and the same in every stored plan. */
function successOf(record: TrackRecord | undefined, now: number): number {
  const fade = record ? fading(record, now) : 0;
  const ok = (record?.ok ?? 0) * fade + PRIOR_WEIGHT * PRIOR_SUCCESS;
  const bad = (record?.bad ?? 0) * fade + PRIOR_WEIGHT * (1 - PRIOR_SUCCESS);
  return Math.round((ok / (ok + bad)) * 10_000) / 10_000;
}
