import type { CommitNotice, Store, Tx } from '../../src/core/ports/store/store.ts';
import { MemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Desk } from './desk.ts';
import type { Owner } from './scheduler.ts';

/** The client request on whose behalf a transaction runs. */
export interface RequestInfo {
  readonly id: number;
  readonly kind: string;
  readonly workspaceId: string;
  readonly idempotencyKey?: string;
}

class Redo extends Error {}

/** What comes up with every event need not be delayed every time. */
const FREQUENT: ReadonlySet<string> = new Set(['delivered', 'redelivered']);

/** One process's way to the shared database: every call can be delayed, and the process can die on either side of it. */
export class SimStore {
  readonly #desk: Desk;
  readonly #process: Owner;
  readonly #inner: MemoryStore;
  readonly exclusive: boolean;

  constructor(desk: Desk, process: Owner, exclusive: boolean) {
    this.#desk = desk;
    this.#process = process;
    this.exclusive = exclusive;
    this.#inner = new MemoryStore(desk.database, { exclusive });
  }

  /** The same store, with writes put down to this request. */
  viewFor(request: RequestInfo | null): Store {
    return {
      exclusive: this.exclusive,
      transaction: (label, work) => this.#transaction(label, work, request),
      read: (label, work) => this.#read(label, work),
      onCommit: (listener: (notice: CommitNotice) => void) => this.#inner.onCommit(listener),
      close: () => this.#inner.close(),
    };
  }

  abandon(): void {
    this.#inner.abandon();
  }

  async #transaction<T>(
    label: string,
    work: (tx: Tx) => Promise<T>,
    request: RequestInfo | null,
  ): Promise<T> {
    const { recorder, prng, auditor } = this.#desk;
    await this.#suspend(`tx:${label}:before`, () => this.#peek(work));
    // A database may ask for a transaction to be run again from its start.
    if (prng.chance(0.02)) await this.#dryRun(work);
    recorder.begin();
    let result: T;
    try {
      result = await this.#inner.transaction(label, () => work(recorder.tx));
    } catch (error) {
      auditor.refused(label, error, request);
      throw error;
    }
    const { touched } = recorder;
    auditor.committed({ label, writes: recorder.writes, process: this.#process.name, request });
    if (prng.chance(FREQUENT.has(label) ? 0.2 : 0.8)) await this.#suspend(`tx:${label}:after`, () => touched);
    return result;
  }

  async #read<T>(label: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    const result = await this.#inner.read(label, work);
    if (this.#desk.prng.chance(0.25)) await this.#suspend(`read:${label}`);
    return result;
  }

  #suspend(
    label: string,
    concerns?: () => Promise<ReadonlySet<string>> | ReadonlySet<string>,
  ): Promise<void> {
    const { scheduler } = this.#desk;
    const what = { owner: this.#process, victim: this.#process, label, ...(concerns && { concerns }) };
    return new Promise((resolve) => scheduler.after(this.#latencyMs(), what, resolve));
  }

  #latencyMs(): number {
    const float = this.#desk.prng.float();
    if (float < 0.97) return Math.floor(float * 4);
    return float < 0.999 ? 30 : 400;
  }

  /** What the work would touch if it came to it. */
  async #peek(work: (tx: Tx) => Promise<unknown>): Promise<ReadonlySet<string>> {
    const { recorder } = this.#desk;
    await this.#dryRun(work);
    return recorder.touched;
  }

  async #dryRun(work: (tx: Tx) => Promise<unknown>): Promise<void> {
    const { recorder } = this.#desk;
    recorder.begin();
    await this.#inner
      .transaction('dry-run', async () => {
        await work(recorder.tx);
        throw new Redo();
      })
      .catch(() => {});
  }
}
