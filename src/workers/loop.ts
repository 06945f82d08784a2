import type { Clock } from '../core/ports/clock.ts';
import type { Log } from '../core/ports/log.ts';

/** Does one pass of a worker. Returns when the next is due at the latest; `null` leaves that to `wake`. */
export type Round = (signal: AbortSignal) => Promise<number | null>;

/** The abort reason that all naps share: making one for each would cost more than the nap. */
const WOKEN = new Error('woken');
const LONGEST_NAP_MS = 3_600_000;

interface LoopPorts {
  readonly clock: Clock;
  readonly log: Log;
}

/** Waits for an event or a time, whichever is first. A round that fails is logged and repeated, never fatal. */
export class Loop {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #round: Round;
  readonly #stopping = new AbortController();
  readonly #restAfterErrorMs: number;
  #nap: AbortController | null = null;
  /** When the nap ends: at the time that the round returned, or earlier if `wakeBy` asked for it. */
  #until = 0;
  #done: Promise<void> = Promise.resolve();

  constructor(name: string, { clock, log }: LoopPorts, round: Round, restAfterErrorMs = 1_000) {
    this.#name = name;
    this.#clock = clock;
    this.#log = log;
    this.#round = round;
    this.#restAfterErrorMs = restAfterErrorMs;
  }

  start(): void {
    this.#done = this.#run();
  }

  /** Starts the next round by `at`, or now. Several calls cause one round. */
  wakeBy(at = 0): void {
    if (at >= this.#until) return;
    this.#until = at;
    this.#nap?.abort(WOKEN);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('The server is stopping.'));
    this.#nap?.abort(WOKEN);
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#until = Number.POSITIVE_INFINITY;
      let next: number | null;
      try {
        next = await this.#round(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#log.warn({ err: error, worker: this.#name }, 'a worker round failed');
        next = this.#clock.now() + this.#restAfterErrorMs;
      }
      if (next !== null) this.#until = Math.min(this.#until, next);
      await this.#rest();
    }
  }

  async #rest(): Promise<void> {
    for (;;) {
      const ms = this.#until - this.#clock.now();
      if (ms <= 0 || this.#stopping.signal.aborted) return;
      const nap = new AbortController();
      this.#nap = nap;
      await this.#clock.sleep(Math.min(ms, LONGEST_NAP_MS), nap.signal).catch(() => {});
      this.#nap = null;
    }
  }
}
