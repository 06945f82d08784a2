/**
 * Runs compiled queries. Kysely builds and compiles them; running them is left to the database's own client, because the layers
 * between cost more than a point query does. A synchronous client may answer at once.
 */
export interface SqlConnection {
  all(sql: string, parameters: readonly unknown[]): readonly unknown[] | Promise<readonly unknown[]>;
  /** Runs a statement; returns the number of changed rows. */
  run(sql: string, parameters: readonly unknown[]): number | Promise<number>;
}
