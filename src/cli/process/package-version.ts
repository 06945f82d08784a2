import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Reads the nearest `package.json` above this file: sources, `dist` and a bundle lie at different depths below it. */
export function packageVersion(): string {
  let directory = import.meta.dirname;
  while (!existsSync(join(directory, 'package.json')) && directory !== dirname(directory)) {
    directory = dirname(directory);
  }
  return (JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { version: string }).version;
}
