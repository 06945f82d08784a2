import { SandboxerError } from '../../contract/errors/errors.ts';

/** Counts the open visits of each preview and limits them: no preview can take all of the server's connections. */
export class PreviewSlots {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Takes a slot. Returns a function to call, once, when the visit is over. */
  take(preview: string): () => void {
    const count = this.#open.get(preview) ?? 0;
    if (count >= this.#most) {
      throw new SandboxerError(
        'SBX_RATE_LIMITED',
        `This preview has its ${this.#most} connections open already.`,
        {
          retryAfterSeconds: 1,
        },
      );
    }
    this.#open.set(preview, count + 1);
    return () => {
      const left = (this.#open.get(preview) ?? 1) - 1;
      if (left > 0) this.#open.set(preview, left);
      else this.#open.delete(preview);
    };
  }
}
