import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Two above this file, both in `src/cli` and in `dist/cli`. */
export function packageVersion(): string {
  const file = join(import.meta.dirname, '..', '..', 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
