import type { FileHandle } from 'node:fs/promises';
import { lstat, open, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { IgnoreRules } from './ignore-rules.ts';
import type { TarHeader } from './tar.ts';
import { encodeTarHeader, TAR_END, tarPadding } from './tar.ts';

export interface PackOptions {
  /** Leaves out what `.gitignore` and `.sandboxerignore` say; the latter comes last and may take back. */
  readonly ignore?: boolean | undefined;
  readonly onEntry?: ((header: TarHeader) => void) | undefined;
  /** What has no place in an archive: sockets, devices, links that lead out of the tree. */
  readonly onSkipped?: ((path: string, reason: string) => void) | undefined;
}

interface Found {
  readonly header: TarHeader;
  readonly path: string;
}

const IGNORE_FILES = ['.gitignore', '.sandboxerignore'];
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

async function rulesBelow(rules: IgnoreRules, top: string, directory: string): Promise<IgnoreRules> {
  let below = rules;
  for (const name of IGNORE_FILES) {
    const text = await readFile(join(top, directory, name), 'utf8').catch(() => null);
    if (text !== null) below = below.with(directory, text);
  }
  return below;
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

async function* walk(
  top: string,
  directory: string,
  rules: IgnoreRules,
  options: PackOptions,
): AsyncGenerator<Found> {
  const below = options.ignore === false ? rules : await rulesBelow(rules, top, directory);
  const entries = await readdir(join(top, directory), { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = directory === '' ? entry.name : `${directory}/${entry.name}`;
    if (below.ignores(name, entry.isDirectory())) continue;
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

async function* pieces(directory: string, options: PackOptions): AsyncGenerator<Buffer> {
  for await (const { header, path } of walk(directory, '', IgnoreRules.none, options)) {
    options.onEntry?.(header);
    yield encodeTarHeader(header);
    if (header.size === 0) continue;
    yield* contentOf(path, header.size);
    yield tarPadding(header.size);
  }
  yield TAR_END;
}

/** A directory as a tar stream, in pieces of a size that is worth sending. */
export async function* packTree(directory: string, options: PackOptions = {}): AsyncGenerator<Buffer> {
  let batch: Buffer[] = [];
  let bytes = 0;
  for await (const piece of pieces(directory, options)) {
    batch.push(piece);
    bytes += piece.length;
    if (bytes < BATCH_BYTES) continue;
    yield batch.length === 1 ? piece : Buffer.concat(batch, bytes);
    batch = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(batch, bytes);
}
