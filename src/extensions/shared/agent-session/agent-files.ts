import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { FileChange, FileEntry } from '../../../contract/sandboxes/files.ts';
import type {
  AbortableOptions,
  FileReadOptions,
  FileWriteOptions,
  LeftOut,
  SandboxFiles,
  TreeReadOptions,
} from '../../../core/ports/session.ts';
import type { AgentChannel } from './agent-channel.ts';
import type { AgentConnection } from './agent-connection.ts';
import { below, readEntry, shownPath } from './file-entry.ts';
import { PayloadReader, PayloadWriter } from './payload.ts';
import { readEntries } from './read-entries.ts';
import { whileOpen } from './while-open.ts';
import { T } from './wire.ts';

const AS_ROOT = 1;
const EXCLUSIVE = 2;
const TO_MEMORY = 8;
const LEAVE_OUT = 16;
const NO_MODE = 0xffff_ffff;
const NO_LENGTH = Number.MAX_SAFE_INTEGER;
const DEFAULT_LIMIT = 10_000;
const MAX_LIMIT = 1_000_000;
const MAX_PATH = 8192;
const CHANGE_KINDS: Readonly<Record<number, FileChange['kind']>> = {
  1: 'created',
  2: 'modified',
  3: 'removed',
  4: 'renamed',
  5: 'overflow',
};

/** Files of a sandbox, by its agent: every path is resolved inside. */
export class AgentFiles implements SandboxFiles {
  readonly #connection: AgentConnection;
  readonly #flags: number;

  constructor(connection: AgentConnection, asRoot: boolean) {
    this.#connection = connection;
    this.#flags = asRoot ? AS_ROOT : 0;
  }

  async stat(path: string, options?: AbortableOptions): Promise<FileEntry> {
    const channel = this.#open(T.stat, this.#request().string(checked(path)), path, options?.signal);
    const payload = await this.#result(channel, options?.signal);
    return entryAt(channel, payload, shownPath(path));
  }

  async list(path: string, options?: AbortableOptions & { readonly limit?: number }) {
    const limit = Math.min(options?.limit ?? DEFAULT_LIMIT, MAX_LIMIT);
    const request = this.#request().u32(limit).u32(this.#connection.windowBytes).string(checked(path));
    const channel = this.#open(T.list, request, path, options?.signal);
    const shown = shownPath(path);
    return await whileOpen(channel, options?.signal, async () => {
      const { items, rest } = await readEntries(channel, limit, (reader) => {
        const entry = readEntry(reader);
        return entry.at(below(shown, entry.name));
      });
      return { entries: items, truncated: channel.reading(() => rest.u8()) !== 0 };
    });
  }

  async read(path: string, options: FileReadOptions = {}) {
    const { offset = 0, length = NO_LENGTH, signal } = options;
    const request = this.#request()
      .u64(offset)
      .u64(length)
      .u32(this.#connection.windowBytes)
      .string(checked(path));
    const channel = this.#open(T.read, request, path, signal);
    const size = await whileOpen(
      channel,
      signal,
      async () => {
        const opened = await channel.expect(T.opened);
        return channel.reading(() => new PayloadReader(opened).u64());
      },
      true,
    );
    return { size, body: bytesOf(channel, signal) };
  }

  async write(
    path: string,
    body: AsyncIterable<Uint8Array>,
    options: FileWriteOptions = {},
  ): Promise<FileEntry> {
    const exclusive = options.exclusive === true ? EXCLUSIVE : 0;
    const flags = this.#flags | exclusive | (options.toMemory === true ? TO_MEMORY : 0);
    const request = new PayloadWriter()
      .u8(flags)
      .u32(options.mode ?? NO_MODE)
      .string(checked(path));
    const channel = this.#open(T.write, request, path, options.signal);
    const payload = await this.#feed(channel, body, options.signal);
    return entryAt(channel, payload, shownPath(path));
  }

  async mkdir(
    path: string,
    options: AbortableOptions & { readonly parents: boolean; readonly mode: number },
  ) {
    const request = this.#request()
      .u8(options.parents ? 1 : 0)
      .u32(options.mode)
      .string(checked(path));
    await this.#result(this.#open(T.mkdir, request, path, options.signal), options.signal);
  }

  async move(from: string, to: string, options: AbortableOptions & { readonly overwrite: boolean }) {
    const request = this.#request()
      .u8(options.overwrite ? 1 : 0)
      .string(checked(from))
      .string(checked(to));
    await this.#result(this.#open(T.move, request, `${from} → ${to}`, options.signal), options.signal);
  }

  async remove(path: string, options: AbortableOptions & { readonly recursive: boolean }) {
    const request = this.#request()
      .u8(options.recursive ? 1 : 0)
      .string(checked(path));
    await this.#result(this.#open(T.remove, request, path, options.signal), options.signal);
  }

  async watch(path: string, options: AbortableOptions & { readonly recursive: boolean }) {
    const { signal } = options;
    const request = this.#request()
      .u8(options.recursive ? 1 : 0)
      .u32(this.#connection.windowBytes)
      .string(checked(path));
    const channel = this.#open(T.watch, request, path, signal);
    await whileOpen(channel, signal, () => channel.expect(T.opened), true);
    return changesOf(channel, shownPath(path), signal);
  }

  async upload(path: string, tar: AsyncIterable<Uint8Array>, options?: AbortableOptions) {
    const channel = this.#open(T.unpack, this.#request().string(checked(path)), path, options?.signal);
    const payload = await this.#feed(channel, tar, options?.signal);
    return { files: channel.reading(() => new PayloadReader(payload).u64()) };
  }

  async download(path: string, options?: TreeReadOptions) {
    const leaves = options?.onLeftOut === undefined ? 0 : LEAVE_OUT;
    const request = new PayloadWriter()
      .u8(this.#flags | leaves)
      .u32(this.#connection.windowBytes)
      .string(checked(path));
    const channel = this.#open(T.pack, request, path, options?.signal);
    await whileOpen(channel, options?.signal, () => channel.expect(T.opened), true);
    return bytesOf(channel, options?.signal, options?.onLeftOut);
  }

  #request(): PayloadWriter {
    return new PayloadWriter().u8(this.#flags);
  }

  #open(
    type: number,
    request: PayloadWriter,
    subject: string,
    signal: AbortSignal | undefined,
  ): AgentChannel {
    signal?.throwIfAborted();
    return this.#connection.open(type, request, subject);
  }

  async #result(channel: AgentChannel, signal: AbortSignal | undefined): Promise<Buffer> {
    return await whileOpen(channel, signal, () => channel.expect(T.result));
  }

  /** Sends data. The agent may refuse in the middle: its answer is awaited from the start, and ends the sending. */
  async #feed(
    channel: AgentChannel,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<Buffer> {
    const source = body[Symbol.asyncIterator]();
    let drained = false;
    const feed = async () => {
      for (;;) {
        const { value, done } = await source.next();
        drained = done === true;
        if (drained || channel.over) break;
        if (value.length > 0 && !(await channel.write(value))) break;
      }
      channel.send(T.eof);
    };
    try {
      return await whileOpen(channel, signal, async () => {
        const answer = resultAfterOpened(channel);
        return await Promise.race([feed().then(() => answer), answer]);
      });
    } finally {
      if (!drained) void source.return?.().catch(() => {});
    }
  }
}

async function resultAfterOpened(channel: AgentChannel): Promise<Buffer> {
  for (;;) {
    const frame = await channel.next();
    if (frame?.type === T.opened) continue;
    if (frame?.type === T.result) return frame.data;
    if (frame?.type === T.error) throw channel.errorOf(frame);
    if (frame === null) throw new SandboxerError('SBX_EXTENSION_FAILED', 'The channel was closed.');
    throw channel.violation(`frame ${frame.type} came instead of a result`);
  }
}

function checked(path: string): string {
  if (path === '' || path.includes('\0') || path.length > 4096) {
    throw new SandboxerError('SBX_PATH_REFUSED', 'The path is empty, too long or holds a NUL byte.');
  }
  return path;
}

function entryAt(channel: AgentChannel, payload: Buffer, path: string): FileEntry {
  return channel.reading(() => readEntry(new PayloadReader(payload)).at(path));
}

function readChanges(payload: Buffer, path: string): FileChange[] {
  const changes: FileChange[] = [];
  for (const reader = new PayloadReader(payload); !reader.ended; ) {
    const kind = CHANGE_KINDS[reader.u8()] ?? 'overflow';
    const inner = reader.string(MAX_PATH);
    changes.push({ kind, path: inner === '' ? path : below(path, inner) });
  }
  return changes;
}

/** Closes the channel on an abort, until the returned function is called. */
function closedBy(signal: AbortSignal | undefined, channel: AgentChannel): () => void {
  const stop = () => channel.close();
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  return () => signal?.removeEventListener('abort', stop);
}

/** Yields changes until the path is gone or the signal aborts. */
async function* changesOf(
  channel: AgentChannel,
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<FileChange> {
  const letGo = closedBy(signal, channel);
  try {
    for (;;) {
      const frame = await channel.next();
      if (frame === null || frame.type === T.result) return;
      if (frame.type === T.error) throw channel.errorOf(frame);
      if (frame.type !== T.changes) throw channel.violation('something other than changes came');
      yield* channel.reading(() => readChanges(frame.data, path));
    }
  } catch (error) {
    if (signal?.aborted !== true) throw error;
  } finally {
    letGo();
    channel.close();
  }
}

/** Returns the left-out entries that the result of an archive lists; `null` without a list. */
function leftOutOf(payload: Buffer): LeftOut | null {
  const reader = new PayloadReader(payload);
  reader.u64(); // files
  if (reader.ended) return null;
  const count = reader.u64();
  const paths: string[] = [];
  while (!reader.ended) paths.push(reader.string(MAX_PATH));
  return { count, paths };
}

/** Yields the bytes up to the result. A reader that stops closes the channel. */
async function* bytesOf(
  channel: AgentChannel,
  signal: AbortSignal | undefined,
  onLeftOut?: (left: LeftOut) => void,
): AsyncGenerator<Uint8Array> {
  const letGo = closedBy(signal, channel);
  try {
    for (;;) {
      const frame = await channel.next();
      signal?.throwIfAborted();
      if (frame === null) throw new SandboxerError('SBX_EXTENSION_FAILED', 'The channel was closed.');
      if (frame.type === T.data) yield frame.data;
      else if (frame.type === T.result) {
        const left = onLeftOut && channel.reading(() => leftOutOf(frame.data));
        if (left) onLeftOut(left);
        return;
      } else if (frame.type === T.error) throw channel.errorOf(frame);
      else throw channel.violation(`frame ${frame.type} came instead of bytes`);
    }
  } finally {
    letGo();
    channel.close();
  }
}
