import { createHash } from 'node:crypto';
import { SandboxerError } from '../contract/errors.ts';
import type { UploadEntry } from '../contract/upload.ts';
import type { TarEntry } from '../extensions/shared/tar.ts';
import { readTar } from '../extensions/shared/tar.ts';

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

function parentsOf(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/**
 * Reads an archive to its end and tells what is in it. Beyond what the reader refuses (names and links that leave their
 * place, devices, hard links), no name comes twice and nothing lies below what is not a directory: an archive means
 * the same to every program that unpacks it.
 */
export async function* checkArchive(
  archive: AsyncIterable<Uint8Array>,
  mostEntries: number,
): AsyncGenerator<UploadEntry> {
  const kinds = new Map<string, TarEntry['kind']>();
  for await (const entry of readTar(archive)) {
    const { name, kind, mode, size, linkTarget } = entry;
    if (name === '.') {
      if (kind !== 'directory') throw refuse('The archive is not a directory.');
      continue;
    }
    if (kinds.size >= mostEntries) {
      throw new SandboxerError('SBX_PAYLOAD_TOO_LARGE', `An archive has at most ${mostEntries} entries.`);
    }
    const known = kinds.get(name);
    if (known !== undefined && !(known === 'directory' && kind === 'directory')) {
      throw refuse(`The archive holds a name twice: ${name}`);
    }
    for (const parent of parentsOf(name)) {
      if ((kinds.get(parent) ?? 'directory') !== 'directory') {
        throw refuse(`The archive puts something below what is no directory: ${name}`);
      }
      kinds.set(parent, 'directory');
    }
    kinds.set(name, kind);
    const digest = kind === 'file' ? await contentDigest(entry) : null;
    yield { path: name, kind, mode, size, digest, link_target: linkTarget };
  }
  if (kinds.size === 0) throw refuse('The archive is empty, or it is not a tar archive.');
}
