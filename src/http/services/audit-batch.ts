import type { Log } from '../../core/ports/log.ts';
import type { Store } from '../../core/ports/store/store.ts';
import type { AuditDraft } from '../../core/tenancy/audit.ts';

const FLUSH_MS = 200;
const MOST_AT_ONCE = 200;
const MOST_WAITING = 20_000;

/**
 * Batches audit records of requests that were refused, that changed nothing, or that were given up. A crash loses the last
 * moments of them; a change is recorded with the change, or before it is answered.
 */
export class AuditBatch {
  readonly #store: Store;
  readonly #log: Log;
  #waiting: AuditDraft[] = [];
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #isWriting = false;

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

  /** Writes a record now. Resolves when it outlasts this process, and with `isDurable` the machine; rejects when it does not. */
  append(draft: AuditDraft, isDurable: boolean): Promise<void> {
    this.writeWaiting();
    const options = isDurable ? {} : { answersEarly: () => true };
    return this.#store.transaction('audit', (tx) => tx.audit.append([draft]), options);
  }

  /** Writes the waiting records before the next record. */
  writeWaiting(): void {
    if (this.#waiting.length > 0) void this.flush();
  }

  flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    // The write is asked for in this very turn, so that the next record comes behind it.
    this.#writing = this.#isWriting ? this.#writing.then(() => this.#write()) : this.#write();
    return this.#writing;
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    await this.#writeAll();
    this.#isWriting = false;
  }

  async #writeAll(): Promise<void> {
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
