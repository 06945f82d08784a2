import type { Kysely } from 'kysely';
import type { Schema, SequenceRow } from './schema.ts';
import type { SqlSession } from './sql-session.ts';
import { prepare } from './statement.ts';

/** Hands out numbers in commit order: the transaction that takes a number locks the row until it ends. */
export class Sequence {
  readonly #name: string;
  readonly #take;
  readonly #last;

  constructor(db: Kysely<Schema>, name: 'events') {
    this.#name = name;
    this.#take = prepare<{ name: string; count: number }, Pick<SequenceRow, 'value'>>(({ name, count }) =>
      db
        .updateTable('sequences')
        .set((row) => ({ value: row('value', '+', count) }))
        .where('name', '=', name)
        .returning('value'),
    );
    this.#last = prepare<{ name: string }, Pick<SequenceRow, 'value'>>(({ name }) =>
      db.selectFrom('sequences').select('value').where('name', '=', name),
    );
  }

  /** The first of `count` numbers that follow one another. */
  async take(session: SqlSession, count: number): Promise<number> {
    session.assertWritable();
    const row = await session.first(this.#take, { name: this.#name, count });
    return (row?.value ?? Number.NaN) - count + 1;
  }

  async last(session: SqlSession): Promise<number> {
    return (await session.first(this.#last, { name: this.#name }))?.value ?? 0;
  }
}
