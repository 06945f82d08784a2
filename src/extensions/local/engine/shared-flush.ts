/**
 * Waiting for the disk, once for all who wait at the same time: whoever comes while one flush is under way shares the next
 * with everybody else who did, because what he wrote may be too late for the one that runs.
 */
export class SharedFlush {
  readonly #flush: () => Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(flush: () => Promise<unknown>) {
    this.#flush = flush;
  }

  /** Resolves when what was written before this call is on the disk. */
  async wait(): Promise<void> {
    this.#next ??= this.#queue();
    await this.#next;
  }

  #queue(): Promise<void> {
    const queued = this.#last.then(async () => {
      this.#next = null;
      await this.#flush();
    });
    this.#last = queued.catch(() => {});
    return queued;
  }
}
