import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { conflict } from '../rejections.ts';
import type { SqlConnection } from '../sql/session/sql-connection.ts';

type RowOf = (values: readonly unknown[]) => Record<string, unknown>;

interface Prepared {
  readonly statement: StatementSync;
  /** Whether it may change something and answer with rows all the same. */
  readonly writes: boolean;
  readonly rowOf: RowOf;
}

/** `SQLITE_CONSTRAINT`, in the low byte of every constraint's own code. */
const CONSTRAINT = 19;

/** Node's own SQLite. Every statement is prepared once, and answers at once. */
export class NodeSqliteConnection implements SqlConnection {
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, Prepared>();
  #written = 0;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** Grows whenever something was written, be it rolled back afterwards. */
  get written(): number {
    return this.#written;
  }

  all(sql: string, parameters: readonly unknown[]): readonly unknown[] {
    try {
      const { statement, rowOf, writes } = this.#prepare(sql);
      if (writes) this.#written += 1;
      const rows = statement.all(...(parameters as SQLInputValue[])) as unknown as readonly unknown[][];
      return rows.map(rowOf);
    } catch (error) {
      throw failure(error);
    }
  }

  run(sql: string, parameters: readonly unknown[]): number {
    try {
      const changes = Number(this.#prepare(sql).statement.run(...(parameters as SQLInputValue[])).changes);
      this.#written += changes;
      return changes;
    } catch (error) {
      throw failure(error);
    }
  }

  #prepare(sql: string): Prepared {
    let prepared = this.#prepared.get(sql);
    if (prepared === undefined) {
      const statement = this.#database.prepare(sql);
      // Rows are read as arrays. As objects, the binding's rows are dictionaries: reading a wide row takes longer than fetching
      // it.
      statement.setReturnArrays(true);
      const rowOf = rowMaker(statement.columns().map(({ name }) => name));
      prepared = { statement, rowOf, writes: !/^\s*select\b/i.test(sql) };
      this.#prepared.set(sql, prepared);
    }
    return prepared;
  }
}

/**
 * Makes an object of a row, by a function generated for its statement: built up one name after another, an object of forty
 * columns took longer to make than the row to fetch.
 */
function rowMaker(columns: readonly string[]): RowOf {
  const members = columns.map((name, i) => `${JSON.stringify(name)}: values[${i}]`);
  return new Function('values', `return { ${members.join(', ')} };`) as RowOf;
}

function failure(error: unknown): SandboxerError {
  const { errcode, message } = error as { errcode?: number; message?: string };
  if (errcode !== undefined && errcode % 256 === CONSTRAINT) {
    return conflict(`The database refused it: ${message}.`);
  }
  return databaseFailed(error);
}

/** The disk is full, the file is damaged, or the like: the caller can do nothing differently. */
export function databaseFailed(cause: unknown): SandboxerError {
  const { message } = cause as { message?: string };
  return new SandboxerError('SBX_INTERNAL', `The database failed: ${message ?? String(cause)}.`, { cause });
}
