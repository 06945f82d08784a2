import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sha256: string;
  readonly sql: string;
}

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The .sql files lie beside the code in `src/` and in `dist/` alike. */
export const MIGRATIONS_DIRECTORY = new URL('./migrations/', import.meta.url);

/**
 * Reads the migrations in the order of their numbers. Each number is given once; a number that two branches left between them
 * stays free.
 */
export function migrationFiles(directory: URL = MIGRATIONS_DIRECTORY): readonly Migration[] {
  const files = readdirSync(directory).filter((file) => FILE_NAME.test(file));
  let last = 0;
  return files.sort().map((file) => {
    const [, digits, name] = FILE_NAME.exec(file) as unknown as [string, string, string];
    const number = Number(digits);
    if (number <= last) throw new Error(`migrations/: the number of ${file} was given before`);
    last = number;
    const sql = readFileSync(new URL(file, directory), 'utf8');
    return { number, name, sql, sha256: createHash('sha256').update(sql).digest('hex') };
  });
}
