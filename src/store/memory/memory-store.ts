import { Mutex } from '../../async/mutex.ts';
import type { CommitNotice, Store, Tx } from '../../core/ports/store/store.ts';
import { storeClosed } from '../rejections.ts';
import type { MemoryDatabase } from './memory-database.ts';

export interface MemoryStoreOptions {
  /** The value of `Store.exclusive`; true unless several views are alive at the same time. */
  readonly exclusive?: boolean;
  /** Awaited before the work of a transaction runs, while no other transaction is in the middle of its own. */
  beforeCommit?(label: string): Promise<void> | void;
  /** Awaited when the transaction is committed and its caller does not know yet. */
  afterCommit?(label: string): Promise<void> | void;
}

/**
 * Gives one process's view of a database in memory, for tests and the simulation. The store behaves as `sql/` does
 * (suite/store-equivalence.test.ts). Its transactions run one at a time, in the order of the calls, and never in the middle of
 * another view's.
 */
export class MemoryStore implements Store {
  readonly exclusive: boolean;
  readonly #database: MemoryDatabase;
  readonly #options: MemoryStoreOptions;
  readonly #mutex = new Mutex();
  readonly #unlisten = new Set<() => void>();
  #closed = false;
  #abandoned = false;

  constructor(database: MemoryDatabase, options: MemoryStoreOptions = {}) {
    this.#database = database;
    this.#options = options;
    this.exclusive = options.exclusive ?? true;
  }

  async transaction<T>(label: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    const turn = this.#mutex.lock();
    let result: T;
    try {
      if (turn) await turn;
      if (this.#abandoned) await never();
      if (this.#closed) throw storeClosed();
      const { beforeCommit } = this.#options;
      if (beforeCommit) await this.#unlessAbandoned(beforeCommit(label));
      result = await this.#atomically(work, true);
    } finally {
      this.#mutex.unlock();
    }
    const { afterCommit } = this.#options;
    if (afterCommit) await this.#unlessAbandoned(afterCommit(label));
    return result;
  }

  async read<T>(_label: string, work: (tx: Tx) => Promise<T>): Promise<T> {
    if (this.#closed && !this.#abandoned) throw storeClosed();
    return await this.#atomically(work, false);
  }

  onCommit(listener: (notice: CommitNotice) => void): () => void {
    const remove = this.#database.listeners.add(listener);
    this.#unlisten.add(remove);
    return () => {
      this.#unlisten.delete(remove);
      remove();
    };
  }

  async close(): Promise<void> {
    const turn = this.#mutex.lock();
    if (turn) await turn;
    this.#closed = true;
    this.#stopListening();
    this.#mutex.unlock();
  }

  /**
   * Plays the death of this view's process: its open transactions are never committed, none of its calls settles, and nothing of
   * it blocks other views, whatever its hooks do.
   */
  abandon(): void {
    this.#abandoned = true;
    this.#stopListening();
  }

  async #atomically<T>(work: (tx: Tx) => Promise<T>, writes: boolean): Promise<T> {
    const { mutex, journal, listeners, tx } = this.#database;
    const turn = mutex.lock();
    if (turn) await turn;
    let open = false;
    let result: T;
    try {
      if (this.#abandoned) return never();
      if (writes) {
        journal.begin();
        open = true;
      }
      result = await work(tx);
      if (open && !this.#abandoned) {
        open = false;
        listeners.tell(journal.commit());
      }
    } catch (error) {
      if (this.#abandoned) return never();
      throw error;
    } finally {
      if (open) journal.rollback();
      mutex.unlock();
    }
    return this.#abandoned ? never() : result;
  }

  async #unlessAbandoned(hook: Promise<void> | void): Promise<void> {
    try {
      await hook;
    } catch (error) {
      if (!this.#abandoned) throw error;
    }
    if (this.#abandoned) await never();
  }

  #stopListening(): void {
    for (const remove of this.#unlisten) remove();
    this.#unlisten.clear();
  }
}

function never(): Promise<never> {
  return new Promise(() => {});
}
