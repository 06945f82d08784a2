import type { StubReply, StubRequest } from '../../src/extensions/saas-stub/wire/protocol.ts';
import type { StubTransport } from '../../src/extensions/saas-stub/wire/transport.ts';
import { StubConnectionError } from '../../src/extensions/saas-stub/wire/transport.ts';
import { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import type { NetworkFault } from './fault-plan.ts';
import { drawFault } from './fault-plan.ts';
import type { Prng } from './prng.ts';
import type { Scenario } from './scenario.ts';
import type { Owner, Scheduler } from './scheduler.ts';

/** Who is told of what really happens at the backends. */
export interface BackendWitness {
  born(extensionId: string, name: string): void;
  sent(request: StubRequest): void;
  /** The backend answered this, whether or not the answer arrives. */
  answered(extensionId: string, request: StubRequest, reply: StubReply): void;
  fault(request: StubRequest, fault: string): void;
  /** The sandbox that a request is about; `null` for a listing. */
  sandboxOf(request: StubRequest): string | null;
}

/** Requests that come up seldom meet faults more often. */
const RARE: ReadonlySet<string> = new Set([
  'pause',
  'resume',
  'extend',
  'snapshot',
  'restore',
  'fork',
  'delete_snapshot',
  'get',
]);

const NOBODY: ReadonlySet<string> = new Set();

/** The stub's worlds, and a network to them that delays, loses, repeats and reorders. */
export class SimNetwork {
  readonly worlds = new Map<string, StubWorld>();
  readonly #scheduler: Scheduler;
  readonly #prng: Prng;
  readonly #witness: BackendWitness;
  readonly #scenario: Scenario;
  /** Backends in a bad hour, and until when. */
  readonly #storms = new Map<string, number>();
  #quiet = false;

  constructor(scheduler: Scheduler, prng: Prng, witness: BackendWitness, scenario: Scenario) {
    this.#scheduler = scheduler;
    this.#prng = prng;
    this.#witness = witness;
    this.#scenario = scenario;
    for (const { id, createMs, deleteMs, capacity } of scenario.backends) {
      const world = new StubWorld({
        clock: { now: () => scheduler.now },
        createMs,
        deleteMs,
        billsWhenPaused: id.endsWith('#c'),
        ...(capacity === null ? {} : { capacity }),
      });
      world.listen((event) => {
        if (event.type === 'created') witness.born(id, event.name);
      });
      this.worlds.set(id, world);
    }
  }

  storm(extensionId: string, ms: number): void {
    this.#storms.set(extensionId, this.#scheduler.now + ms);
  }

  /** Something that runs somewhere is lost, without anybody having asked for anything. */
  vanish(prng: Prng): void {
    const world = prng.pick([...this.worlds.values()]);
    const running = world.objects().filter(({ state, hidden }) => state === 'running' && !hidden);
    const object = prng.pickOrNull(running);
    if (object === null) return;
    const request = { op: 'get', name: object.name, owner: object.labels.owner } as const;
    this.#witness.fault(request, 'disappears');
    world.faults.set([{ op: 'get', kind: 'disappears', times: 1, params: { ms: 0 } }]);
    world.handle(request);
    world.faults.set([]);
  }

  /** From now on nothing goes wrong that has not gone wrong yet. */
  calm(): void {
    this.#quiet = true;
    this.#storms.clear();
  }

  transportFor(extensionId: string, process: Owner): StubTransport {
    return { call: (request, signal) => this.#call(extensionId, process, request, signal) };
  }

  #latencyMs(): number {
    const float = this.#prng.float();
    if (float < 0.9) return Math.floor(float * 12);
    return this.#quiet ? 20 : Math.floor((float - 0.9) * 4_000);
  }

  #networkFault(): NetworkFault | null {
    if (this.#quiet || !this.#prng.chance(this.#scenario.lossRate)) return null;
    return this.#prng.pick(['request_lost', 'reply_lost', 'duplicated', 'delayed'] as const);
  }

  #call(id: string, process: Owner, request: StubRequest, signal: AbortSignal): Promise<StubReply> {
    return new Promise((resolve, reject) => {
      const { op } = request;
      this.#witness.sent(request);
      const fault = this.#networkFault();
      if (fault !== null) this.#witness.fault(request, fault);
      const uid = this.#witness.sandboxOf(request);
      const concerned = uid === null ? NOBODY : new Set([uid]);
      const concerns = () => concerned;
      let settled = false;
      const settle = (finish: () => void) => {
        if (settled) return;
        settled = true;
        signal.removeEventListener('abort', onAbort);
        finish();
      };
      const onAbort = () => settle(() => reject(signal.reason));
      signal.addEventListener('abort', onAbort);
      const answer = (reply: StubReply | 'dropped') => {
        const what = { owner: process, victim: process, label: `backend:${op}:effected`, concerns };
        this.#scheduler.after(this.#latencyMs(), what, () =>
          settle(() => {
            if (reply === 'dropped') reject(new StubConnectionError('The connection was cut.', true));
            else resolve(reply);
          }),
        );
      };
      if (fault === 'request_lost') {
        const sent = this.#prng.chance(0.5);
        const what = { owner: process, victim: process, label: `backend:${op}:lost`, concerns };
        this.#scheduler.after(this.#latencyMs(), what, () =>
          settle(() => reject(new StubConnectionError('Nobody is there.', sent))),
        );
        return;
      }
      const delayMs = fault === 'delayed' ? this.#prng.pick([500, 4_000, 15_000]) : this.#latencyMs();
      const sent = { owner: null, victim: process, label: `backend:${op}:sent`, concerns };
      const lost = fault === 'reply_lost';
      this.#scheduler.after(delayMs, sent, () =>
        this.#arrive(id, request, lost ? () => answer('dropped') : answer),
      );
      if (fault !== 'duplicated') return;
      const again = { owner: null, victim: process, label: `backend:${op}:sent`, concerns };
      this.#scheduler.after(this.#prng.pick([0, 50, 2_000, 10_000]), again, () =>
        this.#arrive(id, request, answer),
      );
    });
  }

  #drawFault(id: string, op: StubRequest['op']) {
    if (this.#quiet) return null;
    const { faultRate, stormRate } = this.#scenario;
    const rate = (this.#storms.get(id) ?? 0) > this.#scheduler.now ? stormRate : faultRate;
    return this.#prng.chance(RARE.has(op) ? rate * 3 : rate) ? drawFault(op, this.#prng) : null;
  }

  #arrive(id: string, request: StubRequest, answer: (reply: StubReply | 'dropped') => void): void {
    const world = this.worlds.get(id) as StubWorld;
    const fault = this.#drawFault(id, request.op);
    if (fault !== null) {
      this.#witness.fault(request, fault.kind);
      world.faults.set([fault]);
    }
    const outcome = world.handle(request);
    if (fault !== null) world.faults.set([]);
    const delayMs = outcome.delayMs ?? 0;
    if (outcome.kind === 'wait') {
      this.#wait(world, id, request, outcome.until, delayMs, answer);
      return;
    }
    this.#reply(id, request, outcome.kind === 'reply' ? outcome.reply : outcome.kind, delayMs, answer);
  }

  #wait(
    world: StubWorld,
    id: string,
    request: StubRequest,
    until: number,
    delayMs: number,
    answer: (reply: StubReply | 'dropped') => void,
  ): void {
    const at = Math.min(until, world.nextChangeAt());
    const what = { owner: null, victim: null, label: `backend:${request.op}:waits` };
    this.#scheduler.after(at - this.#scheduler.now, what, () => {
      const over = this.#scheduler.now >= until;
      const outcome = world.check(over ? ({ ...request, timeout_ms: 0 } as StubRequest) : request);
      if (outcome.kind === 'wait') this.#wait(world, id, request, until, delayMs, answer);
      else this.#reply(id, request, outcome.kind === 'reply' ? outcome.reply : outcome.kind, delayMs, answer);
    });
  }

  #reply(
    id: string,
    request: StubRequest,
    result: StubReply | 'dropped' | 'hung',
    delayMs: number,
    answer: (reply: StubReply | 'dropped') => void,
  ): void {
    if (result === 'hung') return;
    if (result !== 'dropped') this.#witness.answered(id, request, result);
    if (delayMs === 0) answer(result);
    else
      this.#scheduler.after(delayMs, { owner: null, victim: null, label: `backend:${request.op}:slow` }, () =>
        answer(result),
      );
  }
}
