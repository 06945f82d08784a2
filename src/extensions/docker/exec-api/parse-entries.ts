import { posix } from 'node:path';
import type { FileEntry } from '../../../contract/sandboxes/files.ts';

const TYPE_MASK = 0o170000;
const KIND_OF: Readonly<Record<number, FileEntry['kind']>> = {
  32768: 'file',
  16384: 'directory',
  40960: 'symlink',
};
const MAX_SECONDS = 8.64e12;

/** Parses entries as the scripts print them: `mode size seconds`, a name and a link's target, each ended by NUL. */
export function parseEntries(text: Buffer, pathOf: (name: string) => string): FileEntry[] {
  const fields = text.toString('utf8').split('\0');
  const entries: FileEntry[] = [];
  for (let at = 0; at + 3 <= fields.length; at += 3) {
    const [facts = '', name = '', target = ''] = fields.slice(at, at + 3);
    const [mode = Number.NaN, size = 0, seconds = 0] = facts
      .split(' ')
      .map((field, index) => (index === 0 ? Number.parseInt(field, 16) : Number(field)));
    if (Number.isNaN(mode) || !Number.isSafeInteger(size) || Math.abs(seconds) > MAX_SECONDS) continue;
    const path = pathOf(name);
    const kind = KIND_OF[mode & TYPE_MASK] ?? 'other';
    entries.push({
      name: posix.basename(path) || path,
      path,
      kind,
      size,
      mode: mode & 0o7777,
      modified_at: new Date(seconds * 1000).toISOString(),
      link_target: kind === 'symlink' ? target : null,
    });
  }
  return entries;
}
