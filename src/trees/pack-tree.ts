import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { lstat, open, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { hostPath, nameOfBytes } from '../archive/file-name.ts';
import type { Look } from '../archive/link-judge.ts';
import { goesUpAgain, judgeLink, straightened } from '../archive/link-judge.ts';
import type { TarHeader } from '../archive/tar/format.ts';
import { tarPadding } from '../archive/tar/format.ts';
import { encodeTarHeader, TAR_END } from '../archive/tar/write-tar.ts';
import { diskLook } from './disk-look.ts';
import type { PackChoice } from './pack-rules.ts';
import { PackRules } from './pack-rules.ts';

export interface PackOptions extends PackChoice {
  readonly onEntry?: ((header: TarHeader) => void) | undefined;
  /** Paths that cannot be packed: sockets, devices, links that lead out of the tree, likely secrets. */
  readonly onSkipped?: ((path: string, reason: string) => void) | undefined;
  /** Leaves out names that are not UTF-8: a reader that lists them as text could not tell them apart. */
  readonly textOnly?: boolean | undefined;
}

export interface Found {
  readonly header: TarHeader;
  /** For `hostPath`. */
  readonly path: string;
}

const BATCH_BYTES = 65_536;
const READ_BYTES = 262_144;

async function headerOf(path: string, name: string, look: Look): Promise<TarHeader | string> {
  const stats = await lstat(hostPath(path));
  const base = { name, mode: stats.mode & 0o777, modifiedAtMs: stats.mtimeMs };
  if (stats.isDirectory()) return { ...base, kind: 'directory', size: 0, linkTarget: null };
  if (stats.isFile()) return { ...base, kind: 'file', size: stats.size, linkTarget: null };
  if (!stats.isSymbolicLink()) return 'it is neither a file nor a directory nor a link';
  const linkTarget = nameOfBytes(await readlink(hostPath(path), { encoding: 'buffer' }));
  const lead = judgeLink(look, name, linkTarget);
  if ('refused' in lead) return `it links to ${linkTarget}, ${lead.refused}`;
  return { ...base, kind: 'symlink', size: 0, linkTarget };
}

async function* walk(
  top: string,
  directory: string,
  rules: PackRules,
  options: PackOptions,
): AsyncGenerator<Found> {
  const look = diskLook(top);
  const place = hostPath(join(top, directory));
  const entries = (await readdir(place, { withFileTypes: true, encoding: 'buffer' })).map((entry) => ({
    name: nameOfBytes(entry.name),
    isDirectory: entry.isDirectory(),
  }));
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = directory === '' ? entry.name : `${directory}/${entry.name}`;
    const leftOut = await rules.leavesOut(name, entry.isDirectory);
    if (leftOut === 'secret') options.onSkipped?.(name, 'it may hold secrets');
    if (leftOut !== null) continue;
    if (options.textOnly && !entry.name.isWellFormed()) {
      options.onSkipped?.(name, 'its name is not UTF-8');
      continue;
    }
    const path = join(top, name);
    const header = await headerOf(path, name, look);
    if (typeof header === 'string') options.onSkipped?.(name, header);
    else {
      yield { header, path };
      if (header.kind === 'directory') yield* walk(top, name, rules, options);
    }
  }
}

/** Yields the paths of a directory that would be packed, in order. */
export function findTree(directory: string, options: PackOptions = {}): AsyncGenerator<Found> {
  return walk(directory, '', new PackRules(directory, options), options);
}

/** Yields exactly as many bytes as the header promised: a file that shrinks meanwhile is filled up, one that grows is cut. */
async function* contentOf(path: string, size: number): AsyncGenerator<Buffer> {
  let left = size;
  let file: FileHandle | null = null;
  try {
    // The path was no link in the listing, and is read only if it is none now.
    file = await open(hostPath(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
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

/** Directories that are left out of an archive must not be needed by its links. */
function asPacked(header: TarHeader): TarHeader {
  const { linkTarget } = header;
  if (linkTarget === null || !goesUpAgain(linkTarget)) return header;
  return { ...header, linkTarget: straightened(linkTarget) };
}

async function* pieces(found: AsyncIterable<Found>, options: PackOptions): AsyncGenerator<Buffer> {
  for await (const { header, path } of found) {
    options.onEntry?.(header);
    yield encodeTarHeader(asPacked(header));
    if (header.size === 0) continue;
    yield* contentOf(path, header.size);
    yield tarPadding(header.size);
  }
  yield TAR_END;
}

/** Joins bytes into pieces of a size worth sending. */
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

/** Packs a directory as a tar stream. */
export function packTree(directory: string, options: PackOptions = {}): AsyncGenerator<Buffer> {
  return batched(pieces(findTree(directory, options), options));
}

async function* oneFile(path: string): AsyncGenerator<Found> {
  const { mode, mtimeMs, size } = await stat(path);
  const name = basename(path);
  yield {
    // The user named this path, also if it is a link.
    path: await realpath(path),
    header: { name, kind: 'file', mode: mode & 0o777, size, modifiedAtMs: mtimeMs, linkTarget: null },
  };
}

/** Packs a directory, or one file by its name, as a tar stream for `POST /v1/uploads`, which lists its content. */
export async function* packPath(path: string, options: PackOptions = {}): AsyncGenerator<Buffer> {
  if ((await stat(path)).isDirectory()) yield* packTree(path, { ...options, textOnly: true });
  else yield* batched(pieces(oneFile(path), options));
}
