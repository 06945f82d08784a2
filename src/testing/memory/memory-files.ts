import { posix } from 'node:path';
import type {
  AbortableOptions,
  FileReadOptions,
  FileWriteOptions,
  SandboxFiles,
} from '../../core/ports/session.ts';
import { bytesFrom, bytesOf } from '../conformance/bytes.ts';
import { archiveOf, entriesOf } from '../conformance/tar-archive.ts';
import type { FileTree } from './file-tree.ts';
import { refusedPath } from './file-tree.ts';

function readArchive(archive: Buffer) {
  try {
    return entriesOf(archive);
  } catch {
    throw refusedPath('archive', 'it is damaged');
  }
}

export class MemoryFiles implements SandboxFiles {
  readonly #tree: () => FileTree;

  /** `tree` throws when the sandbox cannot be used. */
  constructor(tree: () => FileTree) {
    this.#tree = tree;
  }

  async stat(path: string) {
    return this.#tree().stat(path);
  }

  async list(path: string, options?: AbortableOptions & { readonly limit?: number }) {
    const entries = this.#tree().list(path);
    const limit = options?.limit ?? entries.length;
    return { entries: entries.slice(0, limit), truncated: entries.length > limit };
  }

  async read(path: string, options?: FileReadOptions) {
    const content = this.#tree().read(path);
    const offset = options?.offset ?? 0;
    const end = options?.length === undefined ? content.length : offset + options.length;
    return { size: content.length, body: bytesFrom(content.subarray(offset, end)) };
  }

  async write(path: string, body: AsyncIterable<Uint8Array>, options?: FileWriteOptions) {
    const content = await bytesOf(body);
    options?.signal?.throwIfAborted();
    return this.#tree().write(path, content, options?.mode ?? null, options?.exclusive ?? false);
  }

  async mkdir(path: string, options: { readonly parents: boolean; readonly mode: number }) {
    this.#tree().mkdir(path, options.parents, options.mode);
  }

  async move(from: string, to: string, options: { readonly overwrite: boolean }) {
    this.#tree().move(from, to, options.overwrite);
  }

  async remove(path: string, options: { readonly recursive: boolean }) {
    this.#tree().remove(path, options.recursive);
  }

  async upload(path: string, tar: AsyncIterable<Uint8Array>) {
    const entries = readArchive(await bytesOf(tar));
    for (const { name, type } of entries) {
      const parts = name.split('/');
      if (name.startsWith('/') || parts.includes('..')) throw refusedPath(name, 'it would leave its place');
      if (type !== 'file' && type !== 'directory')
        throw refusedPath(name, 'only files and directories are known');
    }
    const tree = this.#tree();
    tree.mkdir(path, true, 0o755);
    for (const { name, type, content, mode } of entries) {
      const at = posix.join(path, name);
      if (type === 'directory') tree.mkdir(at, true, mode);
      else tree.write(at, content, mode, false);
    }
    return { files: entries.filter(({ type }) => type === 'file').length };
  }

  async download(path: string) {
    const entries = [...this.#tree().walk(path)];
    return bytesFrom(archiveOf(entries.map(({ kind, ...entry }) => ({ ...entry, type: kind }))));
  }
}
