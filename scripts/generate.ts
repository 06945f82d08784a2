/** Writes every generated file; with `--check` writes nothing and fails when one is out of date. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { allGenerators } from './generators/all-generators.ts';

const root = path.resolve(import.meta.dirname, '..');
const isCheck = process.argv.includes('--check');

function current(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

let outdated = 0;
for (const { file, render } of allGenerators) {
  const target = path.join(root, file);
  const text = render();
  if (current(target) === text) continue;
  outdated += 1;
  if (isCheck) {
    console.error(`${file} is out of date`);
    continue;
  }
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, text);
  console.log(`wrote ${file}`);
}
if (isCheck && outdated > 0) {
  console.error('Run: npm run generate');
  process.exitCode = 1;
}
console.log(`generate: ${allGenerators.length} files, ${outdated} ${isCheck ? 'out of date' : 'written'}`);
