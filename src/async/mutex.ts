/** Lock that one holder has at a time, given in the order of the calls. */
export class Mutex {
  #isHeld = false;
  readonly #waiting: (() => void)[] = [];

  /** Resolves when the caller holds the lock; `null` when it does at once. Each call is ended by one `unlock`. */
  lock(): Promise<void> | null {
    if (!this.#isHeld) {
      this.#isHeld = true;
      return null;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Passes the lock to the next caller in line: a call that comes now does not get in between. */
  unlock(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isHeld = false;
    else next();
  }

  /** Runs `work` while holding the lock. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.lock();
    if (turn) await turn;
    try {
      return await work();
    } finally {
      this.unlock();
    }
  }
}
