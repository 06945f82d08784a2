import type { RawBuilder } from 'kysely';
import { sql } from 'kysely';

/** A limit whose value SQLite ignores when it plans: it would plan anew for every call. */
export function atMost(limit: number): RawBuilder<number> {
  return sql<number>`cast(${limit} as bigint)`;
}
