import type { Desk } from './desk.ts';
import type { Mirror } from './mirror.ts';
import type { Knowledge } from './operation-targets.ts';
import type { Operation } from './operations.ts';
import { drawOperation } from './operations.ts';
import { Prng } from './prng.ts';
import type { SimProcess } from './sim-process.ts';
import type { RequestInfo } from './sim-store.ts';

interface Pending {
  readonly operation: Operation;
  readonly process: SimProcess;
}

const GONE = new Error('The client went away.');

/** The consumers: they ask concurrently, repeat what they got no answer to, and give up waiting. */
export class Client {
  readonly #desk: Desk;
  readonly #prng: Prng;
  readonly knowledge: Knowledge;
  readonly #pending = new Map<number, Pending>();
  readonly #again: Operation[] = [];
  readonly #controllers = new Set<AbortController>();
  started = 0;

  constructor(desk: Desk, mirror: Mirror) {
    this.#desk = desk;
    this.knowledge = { mirror, sandboxes: [], snapshots: [], creates: [], last: null };
    this.#prng = new Prng(desk.scenario.seed, 'client');
  }

  get waiting(): number {
    return this.#pending.size;
  }

  /** Begins one more operation at this process. */
  next(process: SimProcess): void {
    const repeated = this.#prng.chance(0.5) ? this.#again.shift() : undefined;
    this.run(process, repeated ?? drawOperation(this.#prng, this.knowledge));
  }

  run(process: SimProcess, operation: Operation): void {
    const { scheduler, auditor } = this.#desk;
    this.started += 1;
    const request: RequestInfo = {
      id: this.started,
      kind: operation.kind,
      workspaceId: operation.caller.workspaceId,
      ...(operation.idempotencyKey !== undefined && { idempotencyKey: operation.idempotencyKey }),
    };
    auditor.trace?.(`    client #${request.id} ${operation.describe()}`);
    const controller = operation.cancelAfterMs === null ? null : new AbortController();
    if (controller !== null) {
      this.#controllers.add(controller);
      const what = { owner: null, victim: null, label: 'client:cancel' };
      scheduler.after(operation.cancelAfterMs as number, what, () => controller.abort(GONE));
    }
    this.#pending.set(request.id, { operation, process });
    const context = {
      control: process.controlFor(request),
      knowledge: this.knowledge,
      signal: controller?.signal,
      sleep: (ms: number) =>
        new Promise<void>((resolve) => {
          scheduler.after(ms, { owner: process, victim: process, label: 'client:busy' }, resolve);
        }),
    };
    operation.perform(context).then(
      () => this.#ended(request, null),
      (error: unknown) => this.#ended(request, error === GONE ? null : error),
    );
  }

  dispose(): void {
    for (const controller of this.#controllers) controller.abort(GONE);
  }

  /** The process died: whoever waited for it has no answer, and some will ask again. */
  lost(process: SimProcess): void {
    for (const [id, pending] of this.#pending) {
      if (pending.process !== process) continue;
      this.#pending.delete(id);
      if (this.#prng.chance(0.6)) this.#again.push(pending.operation);
    }
  }

  #ended(request: RequestInfo, error: unknown): void {
    this.#pending.delete(request.id);
    this.#desk.auditor.requestEnded(request, error);
  }
}
