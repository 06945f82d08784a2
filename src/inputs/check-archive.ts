import { createHash } from 'node:crypto';
import { PathTable, TOP } from '../archive/path-table.ts';
import type { TarEntry } from '../archive/tar/format.ts';
import type { UploadEntry } from '../contract/assets/upload.ts';
import { SandboxerError } from '../contract/errors/errors.ts';
import { readTreeArchive } from '../core/assets/tree-archive.ts';

function refuse(detail: string): SandboxerError {
  return new SandboxerError('SBX_PATH_REFUSED', detail, {
    creation: 'not_created',
    remedy: 'Send a tar archive of files, directories and links that stay inside it.',
  });
}

async function contentDigest(entry: TarEntry): Promise<string> {
  const hash = createHash('sha256');
  for await (const part of entry.body) hash.update(part);
  return `sha256:${hash.digest('hex')}`;
}

/** Notes an entry's path. Only a directory may occur twice. */
function place(paths: PathTable, name: string, kind: TarEntry['kind']): void {
  const parts = name.split('/');
  const last = parts.pop() as string;
  let directory = TOP;
  for (const part of parts) {
    const known = paths.find(directory, part);
    const below = known === undefined ? 'open' : paths.kind(known);
    if (below !== 'open' && below !== 'directory')
      throw refuse(`The archive puts something below what is no directory: ${name}`);
    directory = known ?? paths.set(directory, part, 'open');
  }
  const known = paths.find(directory, last);
  const before = known === undefined ? null : paths.kind(known);
  const again = kind === 'directory' && (before === 'open' || before === 'directory');
  if (before !== null && !again) throw refuse(`The archive holds a name twice: ${name}`);
  paths.set(directory, last, kind);
}

/**
 * Reads an archive to its end and yields its entries. Beyond what the reader refuses (names and links that leave their place,
 * devices, hard links), no name comes twice and nothing lies below what is not a directory: an archive means the same to every
 * program that unpacks it.
 */
export async function* checkArchive(
  archive: AsyncIterable<Uint8Array>,
  mostEntries: number,
): AsyncGenerator<UploadEntry> {
  const paths = new PathTable();
  for await (const entry of readTreeArchive(archive)) {
    const { name, kind, mode, size, linkTarget } = entry;
    if (name === '.') {
      if (kind !== 'directory') throw refuse('The archive is not a directory.');
      continue;
    }
    if (paths.size > mostEntries) {
      throw new SandboxerError('SBX_PAYLOAD_TOO_LARGE', `An archive has at most ${mostEntries} entries.`);
    }
    place(paths, name, kind);
    const digest = kind === 'file' ? await contentDigest(entry) : null;
    yield { path: name, kind, mode, size, digest, link_target: linkTarget };
  }
  if (paths.size === 1) throw refuse('The archive is empty, or it is not a tar archive.');
}
