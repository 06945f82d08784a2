import type { CompiledQuery, Kysely } from 'kysely';
import type { Schema } from './schema.ts';
import type { BoundQuery } from './sql-session.ts';

/** A row that the database numbers. */
type NewRow<Row> = Row extends { seq: number } ? Omit<Row, 'seq'> : Row;
type Values = Readonly<Record<string, unknown>>;

/**
 * Inserts and updates whole rows of one table. The columns are read from the row; each set of columns is compiled once. An insert
 * that meets an existing key changes nothing: that, not an error, shows the conflict, because an error would end the transaction
 * in some databases.
 */
export class RowWriter<Table extends keyof Schema> {
  readonly #db: Kysely<Schema>;
  readonly #table: Table;
  readonly #compiled = new Map<string, string>();

  constructor(db: Kysely<Schema>, table: Table) {
    this.#db = db;
    this.#table = table;
  }

  insert(row: Schema[Table] | NewRow<Schema[Table]>): BoundQuery {
    const sql = this.#once('insert', () =>
      this.#db
        .insertInto(this.#table)
        .values(row as never)
        .onConflict((conflict) => conflict.doNothing())
        .compile(),
    );
    return { sql, parameters: Object.values(row) };
  }

  /** Inserts, or replaces everything but the key. */
  upsert(row: Schema[Table], key: readonly (keyof Schema[Table] & string)[]): BoundQuery {
    const sql = this.#once('upsert', () =>
      this.#db
        .insertInto(this.#table)
        .values(row as never)
        .onConflict((conflict) =>
          conflict.columns(key as never).doUpdateSet((update) => {
            const others = Object.keys(row as object).filter((column) => !key.includes(column as never));
            return Object.fromEntries(
              others.map((column) => [column, update.ref(`excluded.${column}` as never)]),
            ) as never;
          }),
        )
        .compile(),
    );
    return { sql, parameters: Object.values(row) };
  }

  /** Sets the columns of `set` in the row that has exactly the values of `match`, none of which is null. */
  update(set: Partial<Schema[Table]>, match: Partial<Schema[Table]>): BoundQuery {
    const columns = `${Object.keys(set).join()} where ${Object.keys(match).join()}`;
    const sql = this.#once(columns, () => {
      let update = this.#db.updateTable(this.#table as 'sandboxes').set(set as never);
      for (const [column, value] of Object.entries(match as Values)) {
        update = update.where(column as 'uid', '=', value as string);
      }
      return update.compile();
    });
    return { sql, parameters: [...Object.values(set), ...Object.values(match)] };
  }

  #once(key: string, compile: () => CompiledQuery<unknown>): string {
    let sql = this.#compiled.get(key);
    if (sql === undefined) {
      sql = compile().sql;
      this.#compiled.set(key, sql);
    }
    return sql;
  }
}
