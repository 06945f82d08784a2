import { ArchiveLinks } from '../archive-links.ts';
import { nameRefusal } from '../entry-name.ts';
import { partsOf } from '../link-judge.ts';
import { ByteReader } from './byte-reader.ts';
import type { TarEntry, TarHeader } from './format.ts';
import { BLOCK, LONGEST_EXTENSION, TarError, tarPadding } from './format.ts';
import type { HeaderOptions } from './header-reader.ts';
import { HeaderReader } from './header-reader.ts';

export interface ReadTarOptions extends HeaderOptions {
  /** Leaves the source as it is when reading ends early: an upload is then answered on its own connection. */
  readonly keepSource?: boolean | undefined;
}

const KIND_OF: Readonly<Record<string, TarHeader['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '5': 'directory',
  '2': 'symlink',
};

async function* bodyOf(bytes: ByteReader, remaining: { bytes: number }): AsyncGenerator<Buffer> {
  while (remaining.bytes > 0) {
    const part = await bytes.some(remaining.bytes);
    remaining.bytes -= part.length;
    yield part;
  }
}

function withoutLastSlashes(name: string): string {
  let end = name.length;
  while (name[end - 1] === '/') end -= 1;
  return name.slice(0, end);
}

/** Yields files, directories and links; refuses other kinds. Names and links are those of the archive: not to be trusted. */
export async function* readTar(
  source: AsyncIterable<Uint8Array>,
  options: ReadTarOptions = {},
): AsyncGenerator<TarEntry> {
  const { refuse = (detail) => new TarError(detail) } = options;
  const bytes = new ByteReader(source, () => refuse('The archive is cut off.'));
  const headers = new HeaderReader(options);
  try {
    for (;;) {
      const header = headers.take(await bytes.exactly(BLOCK));
      if (header.is === 'end') break;
      const { type, size } = header;
      if (header.is === 'extension') {
        if (size > LONGEST_EXTENSION) throw refuse('The archive holds a header that is too large.');
        const body = await bytes.exactly(size);
        await bytes.skip(tarPadding(size).length);
        headers.extend(type, body);
        continue;
      }
      const kind = KIND_OF[type];
      if (kind === undefined)
        throw refuse('The archive holds something other than files, directories and links.');
      const { mode, modifiedAt } = header;
      if (Number.isNaN(mode) || Number.isNaN(modifiedAt)) throw refuse('The archive is damaged.');
      const length = kind === 'file' ? size : 0;
      const remaining = { bytes: length };
      yield {
        name: withoutLastSlashes(header.name) || '.',
        kind,
        mode: mode & 0o7777,
        size: length,
        modifiedAtMs: modifiedAt * 1000,
        linkTarget: kind === 'symlink' ? header.linkTarget : null,
        body: bodyOf(bytes, remaining),
      };
      await bytes.skip(remaining.bytes + (size - length) + tarPadding(size).length);
    }
    await bytes.drain();
  } finally {
    if (!options.keepSource) await bytes.close();
  }
}

/**
 * Yields the entries of an archive that stays in its place: names are relative, without `..` and without empty parts, no special
 * bit survives, and no link leads out. A link that only the rest of the archive could make right is refused after the last entry.
 * The unpacker checks the files that a name meets on the disk.
 */
export async function* readContainedTar(
  source: AsyncIterable<Uint8Array>,
  options: ReadTarOptions = {},
): AsyncGenerator<TarEntry> {
  const { refuse = (detail) => new TarError(detail) } = options;
  const links = new ArchiveLinks();
  for await (const entry of readTar(source, options)) {
    const hostile = nameRefusal(entry.name);
    if (hostile !== null) throw refuse(hostile);
    const name = partsOf(entry.name).join('/') || '.';
    const leading = links.take(name, entry.kind, entry.linkTarget);
    if (leading !== null) throw refuse(linkRefusal(leading));
    yield { ...entry, name, mode: entry.mode & 0o777 };
  }
  const leading = links.finish();
  if (leading !== null) throw refuse(linkRefusal(leading));
}

export function linkRefusal(reason: string): string {
  return `A link of the archive would leave its place: ${reason}.`;
}
