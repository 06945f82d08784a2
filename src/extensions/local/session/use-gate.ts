/**
 * Gate of one sandbox's uses through this process, so that its agent can be restarted unnoticed: only while no call is under way,
 * and calls that come meanwhile wait.
 */
export class UseGate {
  #inUse = 0;
  #shut: Promise<void> | null = null;

  /** Resolves when the sandbox may be used; the returned function ends the use, once. */
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

  /** Blocks all uses until the returned function is called; `null` while a use is under way. */
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
