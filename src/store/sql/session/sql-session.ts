import type { CompiledQuery } from 'kysely';
import type { CommitNotice } from '../../../core/ports/store/store.ts';
import type { KeyRecord, WorkspaceRecord } from '../../../core/tenancy/tenancy.ts';
import { notWritable, storeClosed } from '../../rejections.ts';
import type { SqlConnection } from './sql-connection.ts';
import type { Statement } from './statement.ts';

const NONE: readonly never[] = [];

/**
 * Runs the statements of one transaction, or of one read, on one connection, and notes what its commit will announce. The answer
 * of a synchronous client is not awaited: each wait is a turn of the queue, and a request has dozens.
 */
export class SqlSession implements CommitNotice {
  readonly sandboxUids = new Set<string>();
  lastSeq = 0;
  keys: readonly KeyRecord[] = NONE;
  deletedWorkspaces: readonly string[] = NONE;
  fundAt: number | null = null;
  readonly writable: boolean;
  readonly #connection: SqlConnection;
  #ended = false;

  constructor(connection: SqlConnection, writable: boolean) {
    this.#connection = connection;
    this.writable = writable;
  }

  async all<Args extends object, Row>(statement: Statement<Args, Row>, args: Args): Promise<Row[]> {
    this.#assertOpen();
    const rows = this.#connection.all(statement.sql, statement.parameters(args));
    return (rows instanceof Promise ? await rows : rows) as Row[];
  }

  async first<Args extends object, Row>(statement: Statement<Args, Row>, args: Args): Promise<Row | null> {
    this.#assertOpen();
    const rows = this.#connection.all(statement.sql, statement.parameters(args));
    const [row] = rows instanceof Promise ? await rows : rows;
    return (row as Row | undefined) ?? null;
  }

  async query<Row>({ sql, parameters }: CompiledQuery<Row>): Promise<Row[]> {
    this.#assertOpen();
    const rows = this.#connection.all(sql, parameters);
    return (rows instanceof Promise ? await rows : rows) as Row[];
  }

  /** Runs a statement; returns the number of changed rows. */
  async run<Args extends object>(statement: Statement<Args, unknown>, args: Args): Promise<number> {
    this.assertWritable();
    const changed = this.#connection.run(statement.sql, statement.parameters(args));
    return changed instanceof Promise ? await changed : changed;
  }

  /** Like `run`, for a query whose parameters are bound. */
  async change({ sql, parameters }: BoundQuery): Promise<number> {
    this.assertWritable();
    const changed = this.#connection.run(sql, parameters);
    return changed instanceof Promise ? await changed : changed;
  }

  changedKey(key: KeyRecord): void {
    this.keys = [...this.keys, key];
  }

  changedWorkspace({ id, deletedAt }: WorkspaceRecord): void {
    if (deletedAt !== undefined) this.deletedWorkspaces = [...this.deletedWorkspaces, id];
  }

  funds(at: number | null): void {
    if (at !== null) this.fundAt = Math.min(this.fundAt ?? at, at);
  }

  assertWritable(): void {
    if (!this.writable || this.#ended) throw notWritable();
  }

  end(): void {
    this.#ended = true;
  }

  #assertOpen(): void {
    if (this.#ended) throw storeClosed();
  }
}

export interface BoundQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
}
