import { posix } from 'node:path';
import type { FileEntry } from '../../../contract/sandboxes/files.ts';
import type { PayloadReader } from './payload.ts';
import { ProtocolViolation } from './protocol-violation.ts';

const TYPE_MASK = 0o170000;
const REGULAR = 0o100000;
const DIRECTORY = 0o040000;
const SYMLINK = 0o120000;
const MAX_NAME = 1024;
const MAX_TARGET = 4096;
const MAX_TIME_MS = 8.64e15;

export interface WireEntry {
  readonly name: string;
  at(path: string): FileEntry;
}

/** Reads one entry; its directory is known on this side. */
export function readEntry(reader: PayloadReader): WireEntry {
  const mode = reader.u32();
  const size = reader.u64();
  const modifiedMs = signed(reader.u32(), reader.u32());
  const name = reader.string(MAX_NAME);
  const target = reader.string(MAX_TARGET);
  if (name.includes('/')) throw new ProtocolViolation('a name holds a slash');
  if (Math.abs(modifiedMs) > MAX_TIME_MS) throw new ProtocolViolation('a time cannot be');
  const kind = kindOf(mode & TYPE_MASK);
  return {
    name,
    at: (path) => ({
      name: posix.basename(path) || path,
      path,
      kind,
      size,
      mode: mode & 0o7777,
      modified_at: new Date(modifiedMs).toISOString(),
      link_target: kind === 'symlink' ? target : null,
    }),
  };
}

// Compared one by one: as keys of an object the formatter changes octal numbers (biome 2.5.15 reads them to base 7).
function kindOf(type: number): FileEntry['kind'] {
  if (type === REGULAR) return 'file';
  if (type === DIRECTORY) return 'directory';
  return type === SYMLINK ? 'symlink' : 'other';
}

function signed(low: number, high: number): number {
  return (high | 0) * 0x1_0000_0000 + low;
}

/** Returns the path for display: without `.`, doubled and trailing slashes. `..` stays, since a link may stand before it. */
export function shownPath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  const joined = parts.join('/');
  return path.startsWith('/') ? `/${joined}` : joined || '.';
}

export function below(path: string, name: string): string {
  if (path === '.') return name;
  return path.endsWith('/') ? `${path}${name}` : `${path}/${name}`;
}
