import type { MakeRequest, StampLabels } from '../wire/protocol.ts';
import type { StubEvent, StubEventListener } from './world-event.ts';
import type { LeftVolume, WorldObject, WorldSnapshot } from './world-object.ts';
import { billedMs, deadlineOf, nextChangeAt, startBilling, stopBilling } from './world-object.ts';

export interface PopulationOptions {
  readonly clock: { now(): number };
  /** Time until a new object runs. */
  readonly createMs?: number;
  readonly deleteMs?: number;
  readonly billsWhenPaused?: boolean;
  /** Whether a real machine follows each object: it runs, and is gone, when `bodyReady` and `bodyGone` say so. */
  readonly embodied?: boolean;
}

/** A create that takes effect later. */
interface LateMake {
  readonly at: number;
  readonly request: MakeRequest;
}

export interface PopulationState {
  readonly objects: readonly WorldObject[];
  readonly snapshots: readonly WorldSnapshot[];
  readonly volumes: readonly LeftVolume[];
  readonly ended: readonly (readonly [string, number])[];
  readonly late: readonly LateMake[];
  readonly webhooks: number;
}

/** Initial state of a new object. */
export interface Birth {
  readonly name: string;
  readonly labels: StampLabels;
  readonly endsAt: number;
  readonly neverRuns: boolean;
  readonly skewMs: number;
  readonly webhookTwice: boolean;
}

const MOST_ENDED = 10_000;

/** All objects of the stub, and their changes by time. */
export class Population {
  readonly #options: PopulationOptions;
  readonly objects = new Map<string, WorldObject>();
  readonly snapshots = new Map<string, WorldSnapshot>();
  readonly volumes = new Map<string, LeftVolume>();
  /** Costs of ended objects: usage is queried after the end as well. */
  readonly ended = new Map<string, number>();
  readonly #listeners = new Set<StubEventListener>();
  #late: LateMake[] = [];
  #webhooks = 0;
  /** No change by time is due before this. Kept low enough by `touch`, made exact by each pass. */
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(options: PopulationOptions, state?: PopulationState) {
    this.#options = options;
    if (state === undefined) return;
    for (const object of state.objects) this.objects.set(object.name, { ...object });
    for (const snapshot of state.snapshots) this.snapshots.set(snapshot.id, snapshot);
    for (const volume of state.volumes) this.volumes.set(volume.name, { ...volume });
    for (const [name, ms] of state.ended) this.ended.set(name, ms);
    this.#late = [...state.late];
    this.#webhooks = state.webhooks;
  }

  /** Returns a state that shares its objects with the population: save or copy it at once. */
  toState(): PopulationState {
    return {
      objects: [...this.objects.values()],
      snapshots: [...this.snapshots.values()],
      volumes: [...this.volumes.values()],
      ended: [...this.ended],
      // A boot holds secrets, and this state is saved: a late object appears without it.
      late: this.#late.map(({ at, request }) => ({
        at,
        request: { ...request, boot: { env: {}, files: [] } },
      })),
      webhooks: this.#webhooks,
    };
  }

  now(): number {
    return this.#options.clock.now();
  }

  listen(listener: StubEventListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(event: StubEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }

  nextChangeAt(): number {
    return this.#quietUntil;
  }

  /** Call when an object was changed in any way that affects its changes by time. */
  touch(object: WorldObject): void {
    this.#quietUntil = Math.min(this.#quietUntil, nextChangeAt(object));
  }

  /** Applies the due changes, and returns the creates that are due. */
  advance(): readonly MakeRequest[] {
    const now = this.now();
    if (now < this.#quietUntil) return [];
    this.#quietUntil = Number.POSITIVE_INFINITY;
    for (const object of [...this.objects.values()]) {
      for (let at = nextChangeAt(object); at <= now && object.state !== 'gone'; at = nextChangeAt(object)) {
        this.#pass(object, at);
      }
      if (object.state !== 'gone') this.touch(object);
    }
    const due = this.#late.filter(({ at }) => at <= now);
    if (due.length > 0) this.#late = this.#late.filter(({ at }) => at > now);
    for (const { at } of this.#late) this.#quietUntil = Math.min(this.#quietUntil, at);
    return due.map(({ request }) => request);
  }

  makeLater(request: MakeRequest, at: number): void {
    this.#late.push({ at, request });
    this.#quietUntil = Math.min(this.#quietUntil, at);
  }

  /** Returns the object of this name that its owner can see. */
  find(name: string, owner: string): WorldObject | null {
    const object = this.objects.get(name);
    return object === undefined || object.hidden || object.labels.owner !== owner ? null : object;
  }

  bear(birth: Birth): WorldObject {
    const now = this.now();
    const { neverRuns, ...rest } = birth;
    const object: WorldObject = {
      ...rest,
      createdAt: now,
      state: 'creating',
      runsAt: neverRuns ? null : now + (this.#options.createMs ?? 0),
      goneAt: null,
      vanishesAt: null,
      hidden: false,
      billedMs: 0,
      billedSince: null,
      bodyReady: this.#options.embodied !== true,
      bodyGone: false,
      volumeDeletes: 0,
    };
    this.objects.set(birth.name, object);
    this.touch(object);
    return object;
  }

  pause(object: WorldObject): void {
    if (object.state === 'paused') return;
    object.state = 'paused';
    if (this.#options.billsWhenPaused !== true) stopBilling(object, this.now());
    this.emit({ type: 'paused', name: object.name });
  }

  resume(object: WorldObject): void {
    if (object.state === 'running') return;
    object.state = 'running';
    startBilling(object, this.now());
    this.emit({ type: 'resumed', name: object.name });
  }

  /** Begins to remove the object; with `stuck` it stays in that state until the next call. */
  remove(object: WorldObject, stuck: boolean): void {
    const now = this.now();
    if (object.state !== 'deleting') this.#beginRemoval(object, now);
    object.goneAt = stuck ? null : (object.goneAt ?? now + (this.#options.deleteMs ?? 0));
    this.touch(object);
  }

  bodyReady(name: string): void {
    const object = this.objects.get(name);
    if (object === undefined) return;
    object.bodyReady = true;
    if (object.runsAt !== null) object.runsAt = Math.max(object.runsAt, this.now());
    this.touch(object);
  }

  bodyGone(name: string): void {
    const object = this.objects.get(name);
    if (object === undefined) return;
    object.bodyGone = true;
    this.touch(object);
  }

  usageOf(name: string, owner: string): number | undefined {
    const object = this.find(name, owner);
    return object === null ? this.ended.get(name) : billedMs(object, this.now());
  }

  /** Applies a change that is due at `at`. */
  #pass(object: WorldObject, at: number): void {
    if (object.state === 'deleting') {
      this.#finish(object, at);
    } else if (object.state === 'creating' && at === object.runsAt && at < deadlineOf(object)) {
      object.state = 'running';
      startBilling(object, at);
      this.emit({ type: 'running', name: object.name });
    } else {
      object.hidden = at === object.vanishesAt;
      this.#beginRemoval(object, at);
      object.goneAt = at + (this.#options.deleteMs ?? 0);
    }
  }

  #beginRemoval(object: WorldObject, at: number): void {
    stopBilling(object, at);
    object.state = 'deleting';
    object.bodyGone = this.#options.embodied !== true;
    this.emit({ type: 'deleting', name: object.name });
  }

  #finish(object: WorldObject, at: number): void {
    object.state = 'gone';
    const { name, labels, createdAt, billedMs, volumeDeletes } = object;
    this.objects.delete(name);
    if (volumeDeletes > 0) {
      this.volumes.set(name, { name, labels, createdAt, billedMs, deletesLeft: volumeDeletes });
    }
    const oldest = this.ended.keys().next();
    if (this.ended.size >= MOST_ENDED && !oldest.done) this.ended.delete(oldest.value);
    this.ended.set(name, billedMs);
    this.emit({ type: 'gone', name });
    if (object.hidden) return;
    this.#webhooks += 1;
    const id = `wh-${this.#webhooks}`;
    const body = { id, type: 'sandbox.ended', name, labels, billed_ms: billedMs, at: at + object.skewMs };
    for (let n = object.webhookTwice ? 2 : 1; n > 0; n -= 1) this.emit({ type: 'webhook', body });
  }
}
