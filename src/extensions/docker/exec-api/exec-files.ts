import { randomBytes } from 'node:crypto';
import { posix } from 'node:path';
import type { TarEntry } from '../../../archive/tar/format.ts';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { FileEntry } from '../../../contract/sandboxes/files.ts';
import { readTreeArchive, writeTreeArchive } from '../../../core/assets/tree-archive.ts';
import type {
  AbortableOptions,
  FileReadOptions,
  FileWriteOptions,
  SandboxFiles,
  SandboxProcess,
} from '../../../core/ports/session.ts';
import { below, shownPath } from '../../shared/agent-session/file-entry.ts';
import { BACKEND } from '../engine/engine-error.ts';
import {
  LIST,
  MKDIR,
  MOVE,
  PACK,
  READ,
  RECEIVE,
  REMOVE,
  SCRIPT_CODE,
  SETTLE,
  STAT,
  UNPACK,
} from './exec-scripts.ts';
import { parseEntries } from './parse-entries.ts';

const DEFAULT_LIMIT = 10_000;
const MAX_LIMIT = 1_000_000;
const MOST_BYTES = 64 * 1_048_576;
const MOST_SAID = 4096;
const NEWLINE = 10;

type Shell = (script: string, args: readonly string[], stdin: boolean) => Promise<SandboxProcess>;

/** Returns the path as an argument that no program takes for an option. */
function checked(path: string): string {
  if (path === '' || path.includes('\0') || path.length > 4096) {
    throw new SandboxerError('SBX_PATH_REFUSED', 'The path is empty, too long or holds a NUL byte.');
  }
  return path.startsWith('/') ? path : `./${path}`;
}

function shown(text: string): string {
  return text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD').slice(0, 300);
}

function refusal(code: number, path: string, said: string): SandboxerError {
  const detail = `${shown(path)}: ${shown(said.trim().split('\n').at(-1) ?? '') || `code ${code}`}`;
  const kind = code === SCRIPT_CODE.missing ? 'SBX_PATH_NOT_FOUND' : 'SBX_PATH_REFUSED';
  return new SandboxerError(code === 127 ? 'SBX_UNSUPPORTED' : kind, detail, { backend: BACKEND });
}

async function* countFiles(
  tar: AsyncIterable<Uint8Array>,
  counted: { files: number },
): AsyncGenerator<TarEntry> {
  for await (const entry of readTreeArchive(tar)) {
    if (entry.kind !== 'directory') counted.files += 1;
    yield entry;
  }
}

interface FedFile {
  readonly path: string;
  readonly source: AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal | undefined;
}

/** Files of a sandbox, by scripts that run inside as its user: every path is resolved there. */
export class ExecFiles implements SandboxFiles {
  readonly #shell: Shell;

  constructor(shell: Shell) {
    this.#shell = shell;
  }

  async stat(path: string, options?: AbortableOptions): Promise<FileEntry> {
    return this.#one(path, await this.#run(STAT, [checked(path)], path, options?.signal));
  }

  async list(path: string, options?: AbortableOptions & { readonly limit?: number }) {
    const limit = Math.min(options?.limit ?? DEFAULT_LIMIT, MAX_LIMIT);
    const text = await this.#run(LIST, [checked(path), String(limit)], path, options?.signal);
    const all = parseEntries(text, (name) => below(shownPath(path), name));
    return { entries: all.slice(0, limit), truncated: all.length > limit };
  }

  async read(path: string, { offset = 0, length, signal }: FileReadOptions = {}) {
    const args = [checked(path), String(offset), length === undefined ? '' : String(length)];
    const { line, body } = await this.#stream(READ, args, path, signal);
    return { size: Number(line), body };
  }

  async write(
    path: string,
    body: AsyncIterable<Uint8Array>,
    { mode, exclusive, signal }: FileWriteOptions = {},
  ): Promise<FileEntry> {
    const place = checked(path);
    const directory = posix.dirname(place);
    const temporary = `${directory}/.sandboxer-${randomBytes(8).toString('hex')}`;
    let size = 0;
    const counted = (async function* () {
      for await (const part of body) {
        size += part.length;
        yield part;
      }
    })();
    try {
      await this.#feed(RECEIVE, [directory, temporary], { path, source: counted, signal });
      const octal = mode === undefined ? '' : mode.toString(8);
      const args = [temporary, place, String(size), octal, exclusive === true ? 'yes' : ''];
      return this.#one(path, await this.#run(SETTLE, args, path, signal));
    } catch (error) {
      await this.#run(REMOVE, [temporary, ''], path).catch(() => {});
      throw error;
    }
  }

  async mkdir(
    path: string,
    { parents, mode, signal }: AbortableOptions & { readonly parents: boolean; readonly mode: number },
  ): Promise<void> {
    await this.#run(MKDIR, [checked(path), parents ? 'yes' : '', mode.toString(8)], path, signal);
  }

  async move(
    from: string,
    to: string,
    { overwrite, signal }: AbortableOptions & { readonly overwrite: boolean },
  ): Promise<void> {
    await this.#run(MOVE, [checked(from), checked(to), overwrite ? 'yes' : ''], `${from} → ${to}`, signal);
  }

  async remove(
    path: string,
    { recursive, signal }: AbortableOptions & { readonly recursive: boolean },
  ): Promise<void> {
    await this.#run(REMOVE, [checked(path), recursive ? 'yes' : ''], path, signal);
  }

  /**
   * Uploads an archive. Every entry is read and written anew on the way: only files, directories and links below `path` arrive.
   */
  async upload(path: string, tar: AsyncIterable<Uint8Array>, options?: AbortableOptions) {
    const counted = { files: 0 };
    await this.#feed(UNPACK, [checked(path)], {
      path,
      source: writeTreeArchive(countFiles(tar, counted)),
      signal: options?.signal,
    });
    return counted;
  }

  async download(path: string, options?: AbortableOptions): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#stream(PACK, [checked(path)], path, options?.signal)).body;
  }

  #one(path: string, text: Buffer): FileEntry {
    const [entry] = parseEntries(text, () => shownPath(path));
    if (entry !== undefined) return entry;
    throw new SandboxerError('SBX_PATH_REFUSED', `${shown(path)}: it cannot be looked at.`, {
      backend: BACKEND,
    });
  }

  async #run(script: string, args: readonly string[], path: string, signal?: AbortSignal): Promise<Buffer> {
    signal?.throwIfAborted();
    const process = await this.#shell(script, args, false);
    return await this.#finish(process, path, signal);
  }

  async #finish(process: SandboxProcess, path: string, signal?: AbortSignal): Promise<Buffer> {
    const stop = () => void process.detach();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      const parts: Uint8Array[] = [];
      let size = 0;
      let said = '';
      for await (const chunk of process.output) {
        if (!('data' in chunk)) continue;
        if (chunk.stream === 'stderr') said = (said + Buffer.from(chunk.data)).slice(0, MOST_SAID);
        else if (size <= MOST_BYTES) parts.push(chunk.data);
        size += chunk.data.length;
      }
      const { code } = await process.exit;
      if (code !== 0) throw refusal(code, path, said);
      return Buffer.concat(parts);
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  /** Sends the source to a script; a source that breaks off ends the program. */
  async #feed(script: string, args: readonly string[], { path, source, signal }: FedFile): Promise<void> {
    signal?.throwIfAborted();
    const process = await this.#shell(script, args, true);
    const finished = this.#finish(process, path, signal);
    finished.catch(() => {});
    let over = false;
    void finished
      .catch(() => {})
      .then(() => {
        over = true;
      });
    try {
      for await (const part of source) {
        if (over) break;
        await process.write(part);
      }
    } catch (error) {
      await process.detach();
      throw error;
    }
    await process.endInput();
    await finished;
  }

  /** Runs a script that prints a line when the file exists, then its bytes. */
  async #stream(script: string, args: readonly string[], path: string, signal?: AbortSignal) {
    signal?.throwIfAborted();
    const process = await this.#shell(script, args, false);
    const pieces = bytesOf(process, path, signal);
    let line = Buffer.alloc(0);
    for (;;) {
      const { value, done } = await pieces.next();
      if (done === true) throw refusal(SCRIPT_CODE.refused, path, 'it ended early');
      line = Buffer.concat([line, value]);
      const end = line.indexOf(NEWLINE);
      if (end < 0) continue;
      const first = line.subarray(end + 1);
      const body = (async function* () {
        if (first.length > 0) yield first;
        yield* pieces;
      })();
      return { line: line.toString('latin1', 0, end), body };
    }
  }
}

/** Yields standard output up to its end; a reader that stops ends the program. */
async function* bytesOf(
  process: SandboxProcess,
  path: string,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const stop = () => void process.detach();
  signal?.addEventListener('abort', stop, { once: true });
  let said = '';
  let over = false;
  try {
    for await (const chunk of process.output) {
      if (!('data' in chunk)) continue;
      if (chunk.stream === 'stderr') said = (said + Buffer.from(chunk.data)).slice(0, MOST_SAID);
      else yield chunk.data;
    }
    over = true;
    signal?.throwIfAborted();
    const { code } = await process.exit;
    if (code !== 0) throw refusal(code, path, said);
  } finally {
    signal?.removeEventListener('abort', stop);
    if (!over) void process.detach();
  }
}
