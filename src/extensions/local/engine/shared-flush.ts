/**
 * Flushes the disk once for all callers that wait at the same time. Callers that come while a flush is under way share the next
 * one, because their writes may be too late for the running one.
 */
export class SharedFlush {
  readonly #flush: () => Promise<unknown>;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(flush: () => Promise<unknown>) {
    this.#flush = flush;
  }

  /** Resolves when all writes before this call are on the disk. */
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
