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

/** In the order of their numbers, which begin at 1 and have no gaps. */
export function migrationFiles(directory: URL = MIGRATIONS_DIRECTORY): readonly Migration[] {
  const files = readdirSync(directory).filter((file) => FILE_NAME.test(file));
  return files.sort().map((file, i) => {
    const [, number, name] = FILE_NAME.exec(file) as unknown as [string, string, string];
    if (Number(number) !== i + 1) throw new Error(`migrations/: ${file} should have the number ${i + 1}`);
    const sql = readFileSync(new URL(file, directory), 'utf8');
    return { number: i + 1, name, sql, sha256: createHash('sha256').update(sql).digest('hex') };
  });
}
