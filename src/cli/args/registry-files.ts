import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { RegistryFile } from '../../client/resources/registry.ts';
import { readInputFile } from './input-file.ts';

/** Returns the files of a registry below a directory, in the order of their names; any other path is returned as it is. */
async function filesAt(path: string): Promise<string[]> {
  const isDirectory = await stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (!isDirectory) return [path];
  const names = (await readdir(path, { recursive: true })).sort();
  return names
    .filter((name) => /\.(?:md|yaml)$/.test(name) && basename(name) !== 'README.md')
    .map((name) => join(path, name));
}

/** Reads files, and all registry files below directories. */
export async function readRegistryFiles(paths: readonly string[]): Promise<RegistryFile[]> {
  const files = (await Promise.all(paths.map(filesAt))).flat();
  return Promise.all(files.map(async (file) => ({ file, text: await readInputFile(file) })));
}
