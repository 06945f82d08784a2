/**
 * The stub backend as rules: which objects exist, their owners, their costs and their failures. No IO and no timers: time comes
 * from the clock, and the caller (an HTTP server, a simulated network) decides whether a request arrives and whether its reply
 * does.
 */

import type { FaultOp, FaultRule, MakeRequest, StubRequest, StubRequestOf } from '../wire/protocol.ts';
import type { FaultBookState } from './fault-book.ts';
import { FaultBook } from './fault-book.ts';
import type { StubOutcome } from './outcome.ts';
import { droppedOf, errorReply, reply, statedError } from './outcome.ts';
import type { PopulationOptions, PopulationState } from './population.ts';
import { Population } from './population.ts';
import type { StubEventListener } from './world-event.ts';
import type { LeftVolume, WorldObject, WorldSnapshot } from './world-object.ts';
import { nextChangeAt, viewOf, viewOfVolume } from './world-object.ts';

export interface StubWorldOptions extends PopulationOptions {
  /** Most objects at once; more is refused for want of capacity. */
  readonly capacity?: number;
  readonly faults?: readonly FaultRule[];
  readonly state?: StubWorldState;
}

/** The whole state, as JSON. */
export interface StubWorldState extends PopulationState {
  readonly faults: FaultBookState;
}

function isMake(request: StubRequest): request is MakeRequest {
  return request.op === 'create' || request.op === 'restore' || request.op === 'fork';
}

function faultOpOf(op: StubRequest['op']): FaultOp {
  return op === 'wait_running' || op === 'wait_gone' ? 'get' : op;
}

const notThere = (name: string) => errorReply(404, 'not_found', `There is no "${name}".`);

export class StubWorld {
  readonly #capacity: number;
  readonly #population: Population;
  readonly faults: FaultBook;

  constructor(options: StubWorldOptions) {
    const { state } = options;
    this.#capacity = options.capacity ?? Number.POSITIVE_INFINITY;
    this.#population = new Population(options, state);
    this.faults = state === undefined ? new FaultBook() : FaultBook.fromState(state.faults);
    for (const rule of options.faults ?? []) this.faults.add(rule);
  }

  /** Applies a request now. Whatever the outcome of the reply, the effect is done. */
  handle(request: StubRequest): StubOutcome {
    this.advance();
    const name = 'name' in request ? request.name : null;
    if (isMake(request)) this.faults.adopt(request.name, request.labels.sandbox_uid, request.faults);
    const { outcome: fault, modifiers } = this.faults.take(faultOpOf(request.op), name);
    const outcome = this.#handleWith(fault, modifiers, request);
    if (name !== null) this.#modify(name, modifiers);
    this.advance();
    const slowMs = modifiers.reduce(
      (sum, { kind, params }) => sum + (kind === 'slow' ? (params.ms ?? 0) : 0),
      0,
    );
    return slowMs > 0 ? { ...outcome, delayMs: slowMs } : outcome;
  }

  /** Checks again a request whose outcome was `wait`, without faults. */
  check(request: StubRequest): StubOutcome {
    this.advance();
    return this.#apply(request, []);
  }

  /** Applies changes by time: objects start, end, vanish, appear late. */
  advance(): void {
    let due = this.#population.advance();
    while (due.length > 0) {
      for (const request of due) this.#make(request, []);
      due = this.#population.advance();
    }
  }

  /** Returns the next change by time; infinite when there is none. */
  nextChangeAt(): number {
    return this.#population.nextChangeAt();
  }

  /** Returns the next change by time of this object. */
  nextChangeOf(name: string): number {
    const object = this.#population.objects.get(name);
    return object === undefined ? Number.POSITIVE_INFINITY : nextChangeAt(object);
  }

  /** Adds a listener that is called at once for every event, until the returned function is called. */
  listen(listener: StubEventListener): () => void {
    return this.#population.listen(listener);
  }

  /** Returns all objects, also hidden ones, for tests and invariants. */
  objects(): readonly Readonly<WorldObject>[] {
    this.advance();
    return [...this.#population.objects.values()];
  }

  objectOf(name: string): Readonly<WorldObject> | null {
    return this.#population.objects.get(name) ?? null;
  }

  /** Returns the final bill of an object that is gone. */
  finalBillOf(name: string): number | undefined {
    return this.#population.ended.get(name);
  }

  snapshots(): readonly WorldSnapshot[] {
    return [...this.#population.snapshots.values()];
  }

  volumes(): readonly Readonly<LeftVolume>[] {
    return [...this.#population.volumes.values()];
  }

  bodyReady(name: string): void {
    this.#population.bodyReady(name);
    this.advance();
  }

  bodyGone(name: string): void {
    this.#population.bodyGone(name);
    this.advance();
  }

  /** Returns the whole state; save or copy it at once, since it changes. */
  toState(): StubWorldState {
    return { ...this.#population.toState(), faults: this.faults.toState() };
  }

  #handleWith(fault: FaultRule | null, modifiers: readonly FaultRule[], request: StubRequest): StubOutcome {
    switch (fault?.kind) {
      case 'error_before':
        return statedError(fault, false);
      case 'rate_limited': {
        const retryAfterSeconds = fault.params.retry_after_seconds ?? 1;
        return errorReply(429, 'rate_limited', 'Too many requests.', { created: false, retryAfterSeconds });
      }
      case 'quota':
        return errorReply(503, 'capacity', 'Out of capacity.', { created: false });
      case 'auth':
        return errorReply(401, 'unauthorized', 'The key is not valid.', { created: false });
      case 'late_create':
        if (!isMake(request)) return this.#apply(request, modifiers);
        this.#population.makeLater(request, this.#population.now() + (fault.params.ms ?? 1000));
        return droppedOf(fault);
      case 'error_after':
        this.#apply(request, modifiers);
        return statedError(fault, true);
      case 'lost_reply':
        this.#apply(request, modifiers);
        return droppedOf(fault);
      case 'stuck_teardown':
      case 'partial_teardown':
        return this.#apply(request, [...modifiers, fault]);
      default:
        return this.#apply(request, modifiers);
    }
  }

  #apply(request: StubRequest, rules: readonly FaultRule[]): StubOutcome {
    switch (request.op) {
      case 'health':
        return reply(200, { now: this.#population.now(), objects: this.#population.objects.size });
      case 'create':
      case 'restore':
      case 'fork':
        return this.#make(request, rules);
      case 'list':
        return this.#list(request);
      case 'delete':
        return this.#delete(request, rules);
      case 'wait_gone':
        return this.#waitGone(request);
      case 'usage': {
        const billed = this.#population.usageOf(request.name, request.owner);
        return billed === undefined ? notThere(request.name) : reply(200, { billed_ms: billed });
      }
      case 'delete_snapshot':
        return this.#deleteSnapshot(request);
      default:
        return this.#applyToObject(request);
    }
  }

  #applyToObject(
    request: StubRequestOf<'get' | 'wait_running' | 'pause' | 'resume' | 'extend' | 'exec' | 'snapshot'>,
  ): StubOutcome {
    const object = this.#population.find(request.name, request.owner);
    if (object === null) return notThere(request.name);
    const now = this.#population.now();
    if (request.op === 'wait_running' && object.state === 'creating' && request.timeout_ms > 0) {
      return { kind: 'wait', until: now + request.timeout_ms };
    }
    if (request.op !== 'get' && request.op !== 'wait_running') {
      const usable = object.state === 'running' || (object.state === 'paused' && request.op !== 'exec');
      if (!usable) return errorReply(409, 'wrong_state', `"${request.name}" is ${object.state}.`);
    }
    if (request.op === 'snapshot') return this.#snapshot(object, request);
    if (request.op === 'pause') this.#population.pause(object);
    if (request.op === 'resume') this.#population.resume(object);
    if (request.op === 'extend') object.endsAt = request.ends_at;
    this.#population.touch(object);
    return reply(200, { object: viewOf(object, now) });
  }

  #make(request: MakeRequest, rules: readonly FaultRule[]): StubOutcome {
    const { name, labels } = request;
    const population = this.#population;
    const existing = population.objects.get(name);
    if (existing !== undefined) {
      const ours =
        existing.labels.owner === labels.owner && existing.labels.sandbox_uid === labels.sandbox_uid;
      if (!ours) return errorReply(409, 'name_taken', 'The name is taken.', { created: false });
      if (existing.state !== 'deleting') return reply(200, { object: viewOf(existing, population.now()) });
      return errorReply(409, 'wrong_state', `"${name}" is being deleted.`, { created: true });
    }
    if (population.objects.size >= this.#capacity) {
      return errorReply(503, 'capacity', 'Out of capacity.', { created: false });
    }
    const missing = this.#missingOrigin(request);
    if (missing !== null) return errorReply(404, 'not_found', missing, { created: false });
    const ruled = (kind: FaultRule['kind']) => rules.find((rule) => rule.kind === kind);
    const object = population.bear({
      name,
      labels,
      endsAt: request.ends_at,
      neverRuns: ruled('stuck_provisioning') !== undefined,
      skewMs: ruled('skewed_clock')?.params.ms ?? 0,
      webhookTwice: ruled('duplicate_webhook') !== undefined,
    });
    const from =
      request.op === 'restore'
        ? { snapshotId: request.snapshot_id }
        : request.op === 'fork'
          ? { name: request.source }
          : null;
    population.emit({ type: 'created', name, boot: request.boot, from });
    this.advance();
    return reply(201, { object: viewOf(object, population.now()) });
  }

  #missingOrigin(request: MakeRequest): string | null {
    const { owner } = request.labels;
    if (request.op === 'restore') {
      const found = this.#population.snapshots.get(request.snapshot_id)?.owner === owner;
      return found ? null : `There is no snapshot "${request.snapshot_id}".`;
    }
    if (request.op !== 'fork') return null;
    const state = this.#population.find(request.source, owner)?.state;
    return state === 'running' || state === 'paused' ? null : `There is no running "${request.source}".`;
  }

  #delete({ name, owner }: StubRequestOf<'delete'>, rules: readonly FaultRule[]): StubOutcome {
    const object = this.#population.find(name, owner);
    if (object !== null) {
      const partial = rules.find((rule) => rule.kind === 'partial_teardown');
      if (partial !== undefined) object.volumeDeletes = partial.params.deletes ?? 1;
      if (rules.some((rule) => rule.kind === 'duplicate_webhook')) object.webhookTwice = true;
      const stuck = rules.some((rule) => rule.kind === 'stuck_teardown');
      this.#population.remove(object, stuck);
    } else {
      const volume = this.#population.volumes.get(name);
      if (volume?.labels.owner === owner) {
        volume.deletesLeft -= 1;
        if (volume.deletesLeft <= 0) this.#population.volumes.delete(name);
      }
    }
    this.advance();
    return this.#goneReply(name, owner, object !== null);
  }

  #waitGone(request: StubRequestOf<'wait_gone'>): StubOutcome {
    const object = this.#population.find(request.name, request.owner);
    if (object?.state === 'deleting' && request.timeout_ms > 0) {
      return { kind: 'wait', until: this.#population.now() + request.timeout_ms };
    }
    return this.#goneReply(request.name, request.owner, false);
  }

  #goneReply(name: string, owner: string, removed: boolean): StubOutcome {
    const remaining: { what: string; reason: string }[] = [];
    const object = this.#population.find(name, owner);
    const volumeLeft = this.#population.volumes.get(name)?.labels.owner === owner;
    if (object !== null) remaining.push({ what: `sandbox ${name}`, reason: `It is ${object.state}.` });
    else if (volumeLeft) remaining.push({ what: `volume of ${name}`, reason: 'It is still there.' });
    return reply(200, { gone: remaining.length === 0, removed, remaining });
  }

  #list({ owner, cursor, limit }: StubRequestOf<'list'>): StubOutcome {
    const now = this.#population.now();
    const shown = [...this.#population.objects.values()].filter((object) => !object.hidden);
    const volumes = [...this.#population.volumes.values()].filter(
      ({ name }) => this.#population.find(name, owner) === null,
    );
    const all = [...shown.map((object) => viewOf(object, now)), ...volumes.map(viewOfVolume)]
      .filter(({ labels, name }) => labels.owner === owner && (cursor === null || name > cursor))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const items = all.slice(0, limit);
    return reply(200, { items, next_cursor: all.length > limit ? (items.at(-1)?.name ?? null) : null });
  }

  #snapshot(object: WorldObject, request: StubRequestOf<'snapshot'>): StubOutcome {
    const { snapshot_id: id, owner, title } = request;
    const { snapshots } = this.#population;
    const existing = snapshots.get(id);
    if (existing === undefined) {
      const source = object.name;
      snapshots.set(id, { id, owner, source, title, takenAt: this.#population.now() });
      this.#population.emit({ type: 'snapshot_taken', snapshotId: id, source });
    } else if (existing.owner !== owner) {
      return errorReply(409, 'name_taken', 'The snapshot id is taken.');
    }
    return reply(200, { snapshot_id: id, taken_at: existing?.takenAt ?? this.#population.now() });
  }

  #deleteSnapshot({ snapshot_id: id, owner }: StubRequestOf<'delete_snapshot'>): StubOutcome {
    if (this.#population.snapshots.get(id)?.owner === owner) {
      this.#population.snapshots.delete(id);
      this.#population.emit({ type: 'snapshot_deleted', snapshotId: id });
    }
    return reply(200, {});
  }

  /** Applies rules about the object rather than the reply. */
  #modify(name: string, modifiers: readonly FaultRule[]): void {
    const object = this.#population.objects.get(name);
    if (object === undefined) return;
    for (const { kind, params, op } of modifiers) {
      if (kind === 'disappears') object.vanishesAt ??= this.#population.now() + (params.ms ?? 0);
      if (kind === 'skewed_clock' && op !== 'create') object.skewMs = params.ms ?? 0;
      if (kind === 'duplicate_webhook') object.webhookTwice = true;
    }
    this.#population.touch(object);
  }
}
