import type { CompiledQuery, Kysely } from 'kysely';
import type { Schema } from './schema.ts';

type Values = Readonly<Record<string, unknown>>;

/**
 * Inserts and updates whole rows of one table. Which columns there are is seen from the row; each set of columns is
 * compiled once. An insert that meets an existing key changes nothing: that, not an error, tells of the conflict,
 * because an error would end the transaction in some databases.
 */
export class RowWriter<Table extends keyof Schema> {
  readonly #db: Kysely<Schema>;
  readonly #table: Table;
  readonly #compiled = new Map<string, CompiledQuery<never>>();

  constructor(db: Kysely<Schema>, table: Table) {
    this.#db = db;
    this.#table = table;
  }

  insert(row: Schema[Table]): CompiledQuery<never> {
    const compiled = this.#once('insert', () =>
      this.#db
        .insertInto(this.#table)
        .values(row as never)
        .onConflict((conflict) => conflict.doNothing())
        .compile(),
    );
    return withParameters(compiled, Object.values(row));
  }

  /** Inserts, or replaces everything but the key. */
  upsert(row: Schema[Table], key: readonly (keyof Schema[Table] & string)[]): CompiledQuery<never> {
    const compiled = this.#once('upsert', () =>
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
    return withParameters(compiled, Object.values(row));
  }

  /** Sets the columns of `set` in the row that has exactly the values of `match`, none of which is null. */
  update(set: Partial<Schema[Table]>, match: Partial<Schema[Table]>): CompiledQuery<never> {
    const columns = `${Object.keys(set).join()} where ${Object.keys(match).join()}`;
    const compiled = this.#once(columns, () => {
      let update = this.#db.updateTable(this.#table as 'sandboxes').set(set as never);
      for (const [column, value] of Object.entries(match as Values)) {
        update = update.where(column as 'uid', '=', value as string);
      }
      return update.compile();
    });
    return withParameters(compiled, [...Object.values(set), ...Object.values(match)]);
  }

  #once(key: string, compile: () => CompiledQuery<unknown>): CompiledQuery<never> {
    let compiled = this.#compiled.get(key);
    if (compiled === undefined) {
      compiled = compile() as CompiledQuery<never>;
      this.#compiled.set(key, compiled);
    }
    return compiled;
  }
}

function withParameters({ sql, query, queryId }: CompiledQuery<never>, parameters: readonly unknown[]) {
  return { sql, query, queryId, parameters };
}
