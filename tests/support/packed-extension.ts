/** Packages of third parties: packed by `npm pack`, installed by `npm install` from the file, with no network. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fencedBlocks } from '../docs/fenced-blocks.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/contributing/add-an-extension.md');

/** The package that docs/contributing/add-an-extension.md shows, file by file. */
export function packageOfTheGuide(): Record<string, string> {
  const blocks = fencedBlocks(readFileSync(PAGE, 'utf8'));
  const text = (language: string, attribute: string) => {
    const found = blocks.find((block) => block.language === language && attribute in block.attributes);
    if (found === undefined) throw new Error(`The guide has no block "${language} ${attribute}".`);
    return found.text;
  };
  return { 'package.json': text('json', 'is'), 'index.js': text('js', 'file') };
}

function npm(cwd: string, ...args: readonly string[]): void {
  const quiet = ['--offline', '--no-audit', '--no-fund', '--legacy-peer-deps', '--loglevel=error'];
  execFileSync('npm', [...args, ...quiet], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Packs the files and returns the path of the archive. */
export function pack(dir: string, files: Readonly<Record<string, string>>): string {
  const source = join(dir, 'source');
  mkdirSync(source);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(source, name), text);
  npm(source, 'pack', '--pack-destination', dir);
  const [archive] = readdirSync(dir).filter((name) => name.endsWith('.tgz'));
  if (archive === undefined) throw new Error('npm pack wrote no archive.');
  return join(dir, archive);
}

/** Installs the archive, with sand-boxer (the sources of this checkout) and zod beside it; returns the folder. */
export function install(dir: string, archive: string): string {
  const folder = join(dir, 'installation');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }');
  npm(folder, 'install', archive);
  const boxer = join(folder, 'node_modules', 'sand-boxer');
  mkdirSync(boxer);
  const exports = {
    './contract': './src/contract/index.ts',
    './extension': './src/core/extension.ts',
  };
  writeFileSync(join(boxer, 'package.json'), JSON.stringify({ name: 'sand-boxer', type: 'module', exports }));
  symlinkSync(join(ROOT, 'src'), join(boxer, 'src'));
  symlinkSync(join(ROOT, 'node_modules', 'zod'), join(folder, 'node_modules', 'zod'));
  return folder;
}
