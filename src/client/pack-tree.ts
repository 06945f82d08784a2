import type { FileHandle } from 'node:fs/promises';
import { lstat, open, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { dockerRules } from './docker-ignore.ts';
import { IgnoreRules } from './ignore-rules.ts';
import { looksSecret } from './secret-names.ts';
import type { TarHeader } from './tar.ts';
import { encodeTarHeader, TAR_END, tarPadding } from './tar.ts';

export interface PackOptions {
  /**
   * Leaves out what `.gitignore`, `.dockerignore` (of the top) and `.sandboxerignore` say; each later one may take back
   * what an earlier one left out. Also `.git` and files that look like secrets, unless they are asked for. `false` packs
   * everything.
   */
  readonly ignore?: boolean | undefined;
  /** With `.git`. */
  readonly git?: boolean | undefined;
  /** With `.env` and what else looks like a secret. */
  readonly secrets?: boolean | undefined;
  readonly onEntry?: ((header: TarHeader) => void) | undefined;
  /** What has no place in an archive: sockets, devices, links that lead out of the tree, likely secrets. */
  readonly onSkipped?: ((path: string, reason: string) => void) | undefined;
}

interface Found {
  readonly header: TarHeader;
  readonly path: string;
}

const BATCH_BYTES = 65_536;
const READ_BYTES = 262_144;

/** Whether a link at `name` stays below the top. */
export function staysInside(name: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false;
  let depth = name.split('/').filter((part) => part !== '' && part !== '.').length - 1;
  for (const part of target.split('/')) {
    if (part === '' || part === '.') continue;
    depth += part === '..' ? -1 : 1;
    if (depth < 0) return false;
  }
  return true;
}

async function textOf(...path: string[]): Promise<string | null> {
  return readFile(join(...path), 'utf8').catch(() => null);
}

async function rulesBelow(rules: IgnoreRules, top: string, directory: string): Promise<IgnoreRules> {
  let below = rules;
  const git = await textOf(top, directory, '.gitignore');
  if (git !== null) below = below.with(directory, git);
  const docker = directory === '' ? await textOf(top, '.dockerignore') : null;
  if (docker !== null) below = below.with('', dockerRules(docker));
  const own = await textOf(top, directory, '.sandboxerignore');
  return own === null ? below : below.with(directory, own);
}

async function headerOf(path: string, name: string): Promise<TarHeader | string> {
  const stats = await lstat(path);
  const base = { name, mode: stats.mode & 0o777, modifiedAtMs: stats.mtimeMs };
  if (stats.isDirectory()) return { ...base, kind: 'directory', size: 0, linkTarget: null };
  if (stats.isFile()) return { ...base, kind: 'file', size: stats.size, linkTarget: null };
  if (!stats.isSymbolicLink()) return 'it is neither a file nor a directory nor a link';
  const linkTarget = await readlink(path);
  if (!staysInside(name, linkTarget)) return `it links to ${linkTarget}, outside of the tree`;
  return { ...base, kind: 'symlink', size: 0, linkTarget };
}

/** A rule that takes a likely secret back, such as `!.env` in `.sandboxerignore`, says that it is none. */
function isHeldBack(name: string, isDirectory: boolean, rules: IgnoreRules, options: PackOptions): boolean {
  return options.secrets !== true && looksSecret(name) && rules.verdict(name, isDirectory) !== 'taken back';
}

async function* walk(
  top: string,
  directory: string,
  rules: IgnoreRules,
  options: PackOptions,
): AsyncGenerator<Found> {
  const everything = options.ignore === false;
  const below = everything ? rules : await rulesBelow(rules, top, directory);
  const entries = await readdir(join(top, directory), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = directory === '' ? entry.name : `${directory}/${entry.name}`;
    if (!everything) {
      if (entry.name === '.git' && options.git !== true) continue;
      if (below.ignores(name, entry.isDirectory())) continue;
      if (isHeldBack(name, entry.isDirectory(), below, options)) {
        options.onSkipped?.(name, 'it may hold secrets');
        continue;
      }
    }
    const path = join(top, name);
    const header = await headerOf(path, name);
    if (typeof header === 'string') options.onSkipped?.(name, header);
    else {
      yield { header, path };
      if (header.kind === 'directory') yield* walk(top, name, below, options);
    }
  }
}

/** Exactly as many bytes as the header promised: a file that shrinks meanwhile is filled up, one that grows is cut. */
async function* contentOf(path: string, size: number): AsyncGenerator<Buffer> {
  let left = size;
  let file: FileHandle | null = null;
  try {
    file = await open(path, 'r');
    while (left > 0) {
      const buffer = Buffer.allocUnsafe(Math.min(left, READ_BYTES));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      const part = bytesRead === 0 ? buffer.fill(0) : buffer.subarray(0, bytesRead);
      left -= part.length;
      yield part;
    }
  } finally {
    await file?.close();
  }
}

async function* pieces(found: AsyncIterable<Found>, options: PackOptions): AsyncGenerator<Buffer> {
  for await (const { header, path } of found) {
    options.onEntry?.(header);
    yield encodeTarHeader(header);
    if (header.size === 0) continue;
    yield* contentOf(path, header.size);
    yield tarPadding(header.size);
  }
  yield TAR_END;
}

/** In pieces of a size that is worth sending. */
async function* batched(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let batch: Buffer[] = [];
  let bytes = 0;
  for await (const piece of source) {
    batch.push(piece);
    bytes += piece.length;
    if (bytes < BATCH_BYTES) continue;
    yield batch.length === 1 ? piece : Buffer.concat(batch, bytes);
    batch = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(batch, bytes);
}

/** A directory as a tar stream. */
export function packTree(directory: string, options: PackOptions = {}): AsyncGenerator<Buffer> {
  return batched(pieces(walk(directory, '', IgnoreRules.none, options), options));
}

async function* oneFile(path: string): AsyncGenerator<Found> {
  const { mode, mtimeMs, size } = await stat(path);
  const name = basename(path);
  yield {
    path,
    header: { name, kind: 'file', mode: mode & 0o777, size, modifiedAtMs: mtimeMs, linkTarget: null },
  };
}

/** A directory, or one file by its name, as a tar stream. */
export async function* packPath(path: string, options: PackOptions = {}): AsyncGenerator<Buffer> {
  if ((await stat(path)).isDirectory()) yield* packTree(path, options);
  else yield* batched(pieces(oneFile(path), options));
}
