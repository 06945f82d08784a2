import type { DatabaseSync } from 'node:sqlite';
import { databaseFailed } from './node-sqlite-connection.ts';
import type { WalSync } from './wal-sync.ts';

const MAX_GROUP = 64;
const MAX_GROUP_MS = 5;

interface Outcome {
  readonly ok: boolean;
  /** The value that the job returned, or its error. */
  readonly value: unknown;
}

interface Job {
  readonly work: () => Promise<unknown>;
  /** The first answer counts. */
  readonly answer: (outcome: Outcome) => void;
  readonly tellDurable: () => void;
  readonly answersEarly: ((value: unknown) => boolean) | undefined;
  outcome: Outcome | null;
  early: boolean;
}

export interface SubmitOptions<T> {
  /** Called when the commit is on the disk; before the promise resolves, unless that answered early. */
  readonly whenDurable: () => void;
  /**
   * Whether the answer may be given once it is committed, before it is on the disk: no effect of it is shown before a later
   * commit.
   */
  readonly answersEarly?: ((value: T) => boolean) | undefined;
}

/**
 * Runs the jobs that wait at the same time in one durable commit, each in its own savepoint: waiting for the disk is what a
 * transaction costs, and it costs the same for one as for many. While the disk writes, the next group runs. No outcome is given,
 * not even a failure, before all earlier commits are on the disk: it may rest on what another job wrote. A job that answers early
 * is the exception: its caller goes on sooner, and shows the outcome to no other caller.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #wal: WalSync;
  readonly #queue: Job[] = [];
  readonly #begin;
  readonly #commit;
  readonly #savepoint;
  readonly #release;
  /** Grows whenever something is written. */
  readonly #written: () => number;
  #writtenBefore = 0;
  #idle: Promise<void> | null = null;

  constructor(database: DatabaseSync, wal: WalSync, written: () => number) {
    this.#database = database;
    this.#wal = wal;
    this.#written = written;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#savepoint = database.prepare('SAVEPOINT one');
    this.#release = database.prepare('RELEASE one');
  }

  submit<T>(work: () => Promise<T>, { whenDurable, answersEarly }: SubmitOptions<T>): Promise<T> {
    if (this.#wal.failure !== null) return Promise.reject(databaseFailed(this.#wal.failure));
    return new Promise<T>((resolve, reject) => {
      const answer = (outcome: Outcome) => {
        if (outcome.ok) resolve(outcome.value as T);
        else reject(outcome.value);
      };
      this.#queue.push({
        work,
        answer,
        tellDurable: whenDurable,
        answersEarly: answersEarly as ((value: unknown) => boolean) | undefined,
        outcome: null,
        early: false,
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
    try {
      while (this.#queue.length > 0) {
        await turnOfTheEventLoop();
        await this.#runGroup();
      }
    } finally {
      this.#idle = null;
    }
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
      const failed = { ok: false, value: databaseFailed(error) };
      const jobs = group.length > 0 ? group : this.#queue.splice(0, MAX_GROUP);
      for (const job of jobs) job.answer(failed);
      return;
    }
    this.#settleWhenDurable(group);
  }

  #settleWhenDurable(group: readonly Job[]): void {
    let early = 0;
    for (const job of group) {
      if (!job.early) continue;
      early += 1;
      // The caller goes on at the next turn of the queue at the earliest, whatever the disk reports.
      job.answer(job.outcome as Outcome);
    }
    const durable = this.#durable(early === group.length);
    if (durable === null) settle(group);
    else
      durable.then(
        () => settle(group),
        (error: unknown) => {
          const failed = { ok: false, value: databaseFailed(error) };
          for (const job of group) job.answer(failed);
        },
      );
  }

  #durable(nobodyWaits: boolean): Promise<void> | null {
    if (!this.#hasWritten()) return this.#wal.pending();
    return nobodyWaits ? this.#wal.soon() : this.#wal.sync();
  }

  /** Whether the database was written since the last group. A write that was rolled back counts, too. */
  #hasWritten(): boolean {
    const now = this.#written();
    const hasWritten = now !== this.#writtenBefore;
    this.#writtenBefore = now;
    return hasWritten;
  }

  async #runAlone(group: Job[]): Promise<void> {
    const job = this.#take(group);
    if (!(await this.#run(job)).ok) this.#database.exec('ROLLBACK');
  }

  async #runTogether(group: Job[]): Promise<void> {
    const start = performance.now();
    while (this.#queue.length > 0 && group.length < MAX_GROUP && performance.now() - start < MAX_GROUP_MS) {
      const job = this.#take(group);
      this.#savepoint.run();
      if (!(await this.#run(job)).ok) this.#database.exec('ROLLBACK TO one');
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
      const value = await job.work();
      // Called inside the job's own `try`: if `answersEarly` throws on a value that it cannot read, this job fails alone.
      job.early = job.answersEarly?.(value) === true;
      job.outcome = { ok: true, value };
    } catch (error) {
      job.outcome = { ok: false, value: error };
    }
    // Some failures, such as a full disk, make SQLite give up the transaction with all that is in it.
    if (!this.#database.isTransaction)
      throw new Error('SQLite ended the transaction', { cause: job.outcome });
    return job.outcome;
  }
}

/** A job that answered early has its answer already; the first answer counts. */
function settle(group: readonly Job[]): void {
  for (const { outcome, tellDurable, answer } of group) {
    const done = outcome as Outcome;
    if (done.ok) tellDurable();
    answer(done);
  }
}

/** Requests that arrived together have all been read by then. */
function turnOfTheEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
