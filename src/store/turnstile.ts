/** Lets one through at a time, in the order of arrival. */
export class Turnstile {
  #taken = false;
  readonly #waiting: (() => void)[] = [];

  /** Resolves when it is the caller's turn; each turn is ended by `leave`. `null` when it is at once. */
  enter(): Promise<void> | null {
    if (!this.#taken) {
      this.#taken = true;
      return null;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#taken = false;
    else next();
  }
}
