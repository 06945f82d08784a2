import type { CompiledQuery, Kysely } from 'kysely';
import type { CommitNotice } from '../../core/store.ts';
import { notWritable, storeClosed } from '../rejections.ts';
import type { Schema } from './schema.ts';
import type { Statement } from './statement.ts';

/** One transaction, or one read, on one connection: runs its statements and notes what it will tell. */
export class SqlSession implements CommitNotice {
  readonly sandboxUids = new Set<string>();
  lastSeq = 0;
  readonly #db: Kysely<Schema>;
  readonly #writes: boolean;
  #ended = false;

  /** `db` is bound to the connection that the transaction was begun on. */
  constructor(db: Kysely<Schema>, writes: boolean) {
    this.#db = db;
    this.#writes = writes;
  }

  async all<Args extends object, Row>(statement: Statement<Args, Row>, args: Args): Promise<Row[]> {
    return await this.query(statement.bind(args));
  }

  async first<Args extends object, Row>(statement: Statement<Args, Row>, args: Args): Promise<Row | null> {
    return (await this.query(statement.bind(args)))[0] ?? null;
  }

  async query<Row>(query: CompiledQuery<Row>): Promise<Row[]> {
    if (this.#ended) throw storeClosed();
    return (await this.#db.executeQuery(query)).rows;
  }

  /** Answers how many rows it changed. */
  async run<Args extends object>(statement: Statement<Args, unknown>, args: Args): Promise<number> {
    return await this.change(statement.bind(args));
  }

  async change(query: CompiledQuery<unknown>): Promise<number> {
    this.assertWritable();
    return Number((await this.#db.executeQuery(query)).numAffectedRows ?? 0n);
  }

  assertWritable(): void {
    if (!this.#writes || this.#ended) throw notWritable();
  }

  end(): void {
    this.#ended = true;
  }
}
