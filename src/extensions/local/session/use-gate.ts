/**
 * Who uses one sandbox through this process, so that its agent can be restarted without anybody noticing: only while
 * nothing is under way, and what is asked for meanwhile waits.
 */
export class UseGate {
  #inUse = 0;
  #shut: Promise<void> | null = null;

  /** Resolves when it may be used; the answer ends the use, once. */
  async enter(): Promise<() => void> {
    while (this.#shut !== null) await this.#shut;
    this.#inUse += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#inUse -= 1;
    };
  }

  /** Keeps everybody out until the answer is called; `null` while somebody is in. */
  shut(): (() => void) | null {
    if (this.#inUse > 0 || this.#shut !== null) return null;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#shut = promise;
    return () => {
      this.#shut = null;
      resolve();
    };
  }
}
