import type { DatabaseSync } from 'node:sqlite';
import { databaseFailed } from './node-sqlite-connection.ts';
import type { WalSync } from './wal-sync.ts';

const MAX_GROUP = 64;
const MAX_GROUP_MS = 5;

type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface Job {
  readonly work: () => Promise<unknown>;
  /** The first answer counts. */
  readonly answer: (outcome: Outcome) => void;
  readonly tellDurable: () => void;
  readonly answersEarly: (value: unknown) => boolean;
  outcome: Outcome | null;
}

export interface SubmitOptions<T> {
  /** Called when the commit is on the disk; before the promise resolves, unless that answered early. */
  readonly whenDurable: () => void;
  /** Whether the answer may be given as soon as it is committed: what comes of it is told to nobody before a later commit. */
  readonly answersEarly?: ((value: T) => boolean) | undefined;
}

/**
 * Runs what is asked for at the same time in one durable commit, each in its own savepoint: waiting for the disk is
 * what a transaction costs, and it costs the same for one as for many. While the disk is at it, the next group runs.
 * Nobody learns an outcome, not even a failure, before all that was committed so far is on the disk: it may rest on what
 * another one wrote. Who said that it answers early goes on before, and tells nobody.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #wal: WalSync;
  readonly #queue: Job[] = [];
  readonly #begin;
  readonly #commit;
  readonly #savepoint;
  readonly #release;
  readonly #changes;
  #changesBefore = 0;
  #idle: Promise<void> | null = null;

  constructor(database: DatabaseSync, wal: WalSync) {
    this.#database = database;
    this.#wal = wal;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#savepoint = database.prepare('SAVEPOINT one');
    this.#release = database.prepare('RELEASE one');
    this.#changes = database.prepare('SELECT total_changes() AS n');
  }

  submit<T>(work: () => Promise<T>, { whenDurable, answersEarly }: SubmitOptions<T>): Promise<T> {
    if (this.#wal.failure !== null) return Promise.reject(databaseFailed(this.#wal.failure));
    return new Promise<T>((resolve, reject) => {
      const answer = (outcome: Outcome) => {
        if ('error' in outcome) reject(outcome.error);
        else resolve(outcome.value as T);
      };
      this.#queue.push({
        work,
        answer,
        tellDurable: whenDurable,
        answersEarly: (value) => answersEarly?.(value as T) ?? false,
        outcome: null,
      });
      this.#idle ??= this.#drain();
    });
  }

  /** Resolves when nothing is queued, running or on its way to the disk. */
  async settled(): Promise<void> {
    while (this.#idle) await this.#idle;
    await this.#wal.pending()?.catch(() => {});
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      await turnOfTheEventLoop();
      await this.#runGroup();
    }
    this.#idle = null;
  }

  async #runGroup(): Promise<void> {
    const group: Job[] = [];
    try {
      const alone = this.#queue.length === 1;
      this.#begin.run();
      if (alone) await this.#runAlone(group);
      else await this.#runTogether(group);
      if (this.#database.isTransaction) this.#commit.run();
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      const failed = { error: databaseFailed(error) };
      const jobs = group.length > 0 ? group : this.#queue.splice(0, MAX_GROUP);
      for (const job of jobs) job.answer(failed);
      return;
    }
    this.#settleWhenDurable(group);
  }

  #settleWhenDurable(group: readonly Job[]): void {
    const settle = () => {
      for (const { outcome, tellDurable, answer } of group) {
        if ('value' in (outcome as Outcome)) tellDurable();
        answer(outcome as Outcome);
      }
    };
    const early = group.filter(({ outcome, answersEarly }) => {
      const done = outcome as Outcome;
      return 'value' in done && answersEarly(done.value);
    });
    const durable = this.#durable(early.length === group.length);
    if (durable === null) {
      settle();
      return;
    }
    for (const { outcome, answer } of early) answer(outcome as Outcome);
    durable.then(settle, (error: unknown) => {
      const failed = { error: databaseFailed(error) };
      for (const job of group) job.answer(failed);
    });
  }

  #durable(nobodyWaits: boolean): Promise<void> | null {
    if (!this.#hasWritten()) return this.#wal.pending();
    return nobodyWaits ? this.#wal.soon() : this.#wal.sync();
  }

  /** Since the last group. What was rolled back counts, too. */
  #hasWritten(): boolean {
    const { n } = this.#changes.get() as { n: number };
    const written = n !== this.#changesBefore;
    this.#changesBefore = n;
    return written;
  }

  async #runAlone(group: Job[]): Promise<void> {
    const job = this.#take(group);
    if ('error' in (await this.#run(job))) this.#database.exec('ROLLBACK');
  }

  async #runTogether(group: Job[]): Promise<void> {
    const start = performance.now();
    while (this.#queue.length > 0 && group.length < MAX_GROUP && performance.now() - start < MAX_GROUP_MS) {
      const job = this.#take(group);
      this.#savepoint.run();
      if ('error' in (await this.#run(job))) this.#database.exec('ROLLBACK TO one');
      this.#release.run();
    }
  }

  #take(group: Job[]): Job {
    const job = this.#queue.shift() as Job;
    group.push(job);
    return job;
  }

  async #run(job: Job): Promise<Outcome> {
    try {
      job.outcome = { value: await job.work() };
    } catch (error) {
      job.outcome = { error };
    }
    // Some failures, such as a full disk, make SQLite give up the transaction with all that is in it.
    if (!this.#database.isTransaction)
      throw new Error('SQLite ended the transaction', { cause: job.outcome });
    return job.outcome;
  }
}

/** Requests that arrived together have all been read by then. */
function turnOfTheEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
