import type { AuditDraft } from '../core/audit.ts';
import type { Log } from '../core/log.ts';
import type { Store } from '../core/store.ts';

const FLUSH_MS = 200;
const MOST_AT_ONCE = 200;
const MOST_WAITING = 20_000;

/** Records of everyday calls, written together soon after. A crash loses the last moments of them. */
export class AuditBatch {
  readonly #store: Store;
  readonly #log: Log;
  #waiting: AuditDraft[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  add(draft: AuditDraft): void {
    this.#waiting.push(draft);
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting.shift();
      this.#log.error({ action: draft.action }, 'the audit log cannot be written; its oldest record is lost');
    }
    if (this.#waiting.length >= MOST_AT_ONCE) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Now, and durable when it resolves; rejects when it is not. */
  append(draft: AuditDraft): Promise<void> {
    return this.#store.transaction('audit', (tx) => tx.audit.append([draft]));
  }

  flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, MOST_AT_ONCE);
      try {
        await this.#store.transaction('audit', (tx) => tx.audit.append(batch));
      } catch (error) {
        this.#waiting.unshift(...batch);
        this.#log.error({ err: error }, 'the audit log could not be written; it is tried again');
        this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
        return;
      }
    }
  }
}
