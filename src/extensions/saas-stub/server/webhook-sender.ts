import { Mutex } from '../../../async/mutex.ts';
import type { WebhookBody } from '../world/world-event.ts';

const TRIES = 5;
const TIMEOUT_MS = 5_000;

/** Posts ended objects to a configured address, in order, and repeats posts that fail. */
export class WebhookSender {
  readonly #url: string | null;
  readonly #order = new Mutex();

  constructor(url: string | null) {
    this.#url = url;
  }

  send(body: WebhookBody): void {
    const url = this.#url;
    if (url === null) return;
    void this.#order.run(() => this.#deliver(url, body));
  }

  async #deliver(url: string, body: WebhookBody): Promise<void> {
    for (let n = 0; n < TRIES; n += 1) {
      try {
        const response = await fetch(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
          signal: AbortSignal.timeout(TIMEOUT_MS),
        });
        await response.arrayBuffer();
        if (response.ok) return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** n));
      }
    }
  }
}
