import type { DatabaseSync } from 'node:sqlite';
import { migrationFiles } from '../migration-files.ts';
import type { AppliedMigration } from '../migration-plan.ts';
import { foreignDatabase, migrationPlan } from '../migration-plan.ts';

/** Brings the schema forward, one transaction per migration. A database that it refuses is left as it was. */
export function migrate(database: DatabaseSync, directory?: URL): void {
  for (const { number, name, sha256, sql } of migrationPlan(migrationFiles(directory), applied(database))) {
    database.exec('BEGIN IMMEDIATE');
    try {
      database.exec(RECORD_TABLE);
      database.exec(sql);
      database
        .prepare('INSERT INTO schema_migrations (number, name, sha256) VALUES (?, ?, ?)')
        .run(number, name, sha256);
      database.exec('COMMIT');
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }
}

const RECORD_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migrations (
    number BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL
  )`;

function applied(database: DatabaseSync): readonly AppliedMigration[] {
  const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all();
  if (tables.length === 0) return [];
  if (!tables.some(({ name }) => name === 'schema_migrations')) throw foreignDatabase();
  const rows = database.prepare('SELECT number, name, sha256 FROM schema_migrations ORDER BY number').all();
  return rows as unknown as readonly AppliedMigration[];
}
