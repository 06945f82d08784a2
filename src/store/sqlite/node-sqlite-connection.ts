import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { SandboxerError } from '../../contract/errors.ts';
import { conflict } from '../rejections.ts';
import type { SqlConnection } from '../sql/sql-connection.ts';

/** `SQLITE_CONSTRAINT`, in the low byte of every constraint's own code. */
const CONSTRAINT = 19;

/** Node's own SQLite. Every statement is prepared once, and answers at once. */
export class NodeSqliteConnection implements SqlConnection {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  all(sql: string, parameters: readonly unknown[]): readonly unknown[] {
    try {
      return this.#prepare(sql).all(...(parameters as SQLInputValue[]));
    } catch (error) {
      throw failure(error);
    }
  }

  run(sql: string, parameters: readonly unknown[]): number {
    try {
      return Number(this.#prepare(sql).run(...(parameters as SQLInputValue[])).changes);
    } catch (error) {
      throw failure(error);
    }
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }
}

function failure(error: unknown): SandboxerError {
  const { errcode, message } = error as { errcode?: number; message?: string };
  if (errcode !== undefined && errcode % 256 === CONSTRAINT) {
    return conflict(`The database refused it: ${message}.`);
  }
  return databaseFailed(error);
}

/** The disk is full, the file is damaged, or the like: nothing that the caller could do differently. */
export function databaseFailed(cause: unknown): SandboxerError {
  const { message } = cause as { message?: string };
  return new SandboxerError('SBX_INTERNAL', `The database failed: ${message ?? String(cause)}.`, { cause });
}
