/** Archives as the server and its extensions exchange file trees: contained ones alone, refused with `SBX_PATH_REFUSED`. */
import type { TarEntry } from '../../archive/tar/format.ts';
import { readContainedTar } from '../../archive/tar/read-tar.ts';
import { writeTar } from '../../archive/tar/write-tar.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';

const refuse = (detail: string) => new SandboxerError('SBX_PATH_REFUSED', detail);

/** Bytes that are not UTF-8 are replaced: answers and rows hold text alone. */
const nameOf = (bytes: Buffer) => bytes.toString('utf8');

export function readTreeArchive(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  return readContainedTar(source, { refuse, nameOf, keepSource: true });
}

export function writeTreeArchive(entries: AsyncIterable<TarEntry>): AsyncGenerator<Uint8Array> {
  return writeTar(entries, refuse);
}
