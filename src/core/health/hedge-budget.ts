const MOST_AT_ONCE = 5;

/**
 * Limits second attempts, which cost money that no customer pays: every attempt earns a share of one, and few can be saved up.
 */
export class HedgeBudget {
  #attempts = 0;

  earn(): void {
    this.#attempts += 1;
  }

  /** Takes one, if there is one. */
  take(share: number): boolean {
    if (share <= 0) return false;
    const price = Math.ceil(1 / share);
    this.#attempts = Math.min(this.#attempts, MOST_AT_ONCE * price);
    if (this.#attempts < price) return false;
    this.#attempts -= price;
    return true;
  }
}
