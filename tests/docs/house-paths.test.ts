/** The pages about the tree name files and folders that exist. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './run-document.ts';
import { pathsIn } from './source-paths.ts';

const PAGES = [
  'docs/architecture.md',
  'docs/glossary.md',
  ...['resource', 'verb', 'extension', 'command', 'event', 'error'].map(
    (name) => `docs/contributing/checklist-${name}.md`,
  ),
];

/** `src/http/v1/<noun>.ts`: a name that the reader chooses stands for any that is there. */
function exists(file: string): boolean {
  const pattern = file.replaceAll(/<[^>]+>/g, '*');
  if (pattern === file && !file.includes('*')) return existsSync(path.join(ROOT, file));
  return globSync(pattern, { cwd: ROOT }).length > 0;
}

describe.each(PAGES)('%s', (page) => {
  const paths = pathsIn(readFileSync(path.join(ROOT, page), 'utf8'));

  it('paths: the page names some', () => {
    expect(paths.length).toBeGreaterThan(4);
  });

  it('paths: each file and folder that the page names exists', () => {
    expect(paths.filter((file) => !exists(file))).toEqual([]);
  });

  it('page: the list of documents links to it', () => {
    expect(readFileSync(path.join(ROOT, 'docs/README.md'), 'utf8')).toContain(
      `(${page.replace('docs/', '')})`,
    );
  });
});

it('paths: a file that does not exist is found', () => {
  expect(pathsIn('`src/core/nowhere.ts` and `POST /v1/sandboxes`')).toEqual(['src/core/nowhere.ts']);
  expect(exists('src/core/nowhere.ts')).toBe(false);
  expect(exists('src/http/v1/<noun>.ts')).toBe(true);
  expect(exists('src/nowhere/<noun>.ts')).toBe(false);
});
