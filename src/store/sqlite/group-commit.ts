import type { DatabaseSync } from 'node:sqlite';
import { databaseFailed } from './node-sqlite-connection.ts';

const MAX_GROUP = 64;
const MAX_GROUP_MS = 5;

type Outcome = { readonly value: unknown } | { readonly error: unknown };

interface Job {
  readonly work: () => Promise<unknown>;
  readonly settle: (outcome: Outcome) => void;
  outcome: Outcome | null;
}

/**
 * Runs what is asked for at the same time in one durable commit, each in its own savepoint: waiting for the disk is
 * what a transaction costs, and it costs the same for one as for many. Nobody learns an outcome, not even a failure,
 * before the commit: it may rest on what another one of the group wrote.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #queue: Job[] = [];
  readonly #begin;
  readonly #commit;
  readonly #savepoint;
  readonly #release;
  #idle: Promise<void> | null = null;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#savepoint = database.prepare('SAVEPOINT one');
    this.#release = database.prepare('RELEASE one');
  }

  /** `whenDurable` is called after the commit, before the promise resolves. */
  submit<T>(work: () => Promise<T>, whenDurable: () => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const settle = (outcome: Outcome) => {
        if ('error' in outcome) return reject(outcome.error);
        whenDurable();
        resolve(outcome.value as T);
      };
      this.#queue.push({ work, settle, outcome: null });
      this.#idle ??= this.#drain();
    });
  }

  /** Resolves when nothing is queued or running. */
  async settled(): Promise<void> {
    while (this.#idle) await this.#idle;
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
      for (const job of jobs) job.settle(failed);
      return;
    }
    for (const job of group) job.settle(job.outcome as Outcome);
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
