import type { IncomingMessage } from 'node:http';
import type { FileChange, FileEntry, FileListing } from '../../contract/sandboxes/files.ts';
import type { PackOptions } from '../../trees/pack-tree.ts';
import type { UnpackOptions } from '../../trees/unpack-tree.ts';
import { ServerSentEventDecoder } from '../streams/server-sent-events.ts';
import type { Query } from '../transport/path-of.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { Bytes, CallOptions, RequestSpec, Transport } from '../transport/transport.ts';
import type { OutputOf } from './schema-types.ts';

export type Listing = OutputOf<typeof FileListing>;

export interface ReadOptions extends CallOptions {
  readonly offset?: number | undefined;
  readonly length?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Permission bits. */
  readonly mode?: number | undefined;
  /** Refuses instead of replacing. */
  readonly exclusive?: boolean | undefined;
}

const TAR_MEDIA_TYPE = 'application/x-tar';
const TRANSFER_MS = 24 * 3_600_000;

function rangeOf({ offset, length }: ReadOptions): Record<string, string> {
  if (offset === undefined && length === undefined) return {};
  const start = offset ?? 0;
  return { range: `bytes=${start}-${length === undefined ? '' : start + length - 1}` };
}

async function* changesIn(response: IncomingMessage): AsyncGenerator<FileChange> {
  const decoder = new ServerSentEventDecoder();
  for await (const bytes of response) {
    for (const { data } of decoder.decode(bytes as Buffer)) yield JSON.parse(data) as FileChange;
  }
}

interface FileCall {
  readonly method: RequestSpec['method'];
  readonly below: readonly string[];
  readonly query: Query;
}

/** Files of a sandbox. A relative path starts at the working directory of its default user. */
export class Files {
  readonly #transport: Transport;
  readonly #service: string | undefined;

  constructor(transport: Transport, service?: string) {
    this.#transport = transport;
    this.#service = service;
  }

  /** Returns the files of one service, where a sandbox is made of services. */
  ofService(service: string | undefined): Files {
    return new Files(this.#transport, service);
  }

  /** Streams the content. */
  download(id: string, path: string, options: ReadOptions = {}): Promise<IncomingMessage> {
    return this.#transport.open({
      ...this.#spec(id, { method: 'GET', below: [], query: { path } }, options),
      accept: '*/*',
      headers: rangeOf(options),
    });
  }

  async read(id: string, path: string, options: ReadOptions = {}): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of await this.download(id, path, options)) parts.push(part as Buffer);
    return Buffer.concat(parts);
  }

  async readText(id: string, path: string, options: ReadOptions = {}): Promise<string> {
    return (await this.read(id, path, options)).toString('utf8');
  }

  /** Replaces the file as a whole and makes missing parents. */
  write(id: string, path: string, content: string | Bytes, options: WriteOptions = {}): Promise<FileEntry> {
    const { mode, exclusive } = options;
    const query = { path, mode: mode?.toString(8).padStart(3, '0'), exclusive };
    const body = typeof content === 'string' ? Buffer.from(content) : content;
    const patience = { ...options, timeoutMs: options.timeoutMs ?? TRANSFER_MS };
    return this.#transport.json({ ...this.#spec(id, { method: 'PUT', below: [], query }, patience), body });
  }

  stat(id: string, path: string, options: CallOptions = {}): Promise<FileEntry> {
    return this.#transport.json(this.#spec(id, { method: 'GET', below: ['stat'], query: { path } }, options));
  }

  list(id: string, path: string, options: CallOptions & { readonly limit?: number } = {}): Promise<Listing> {
    return this.#transport.json(
      this.#spec(id, { method: 'GET', below: ['list'], query: { path, limit: options.limit } }, options),
    );
  }

  async mkdir(
    id: string,
    path: string,
    options: CallOptions & { readonly parents?: boolean; readonly mode?: number } = {},
  ): Promise<void> {
    const { parents, mode } = options;
    await this.#transport.json({
      ...this.#spec(id, { method: 'POST', below: ['mkdir'], query: {} }, options),
      json: { path, parents, mode },
    });
  }

  async move(
    id: string,
    from: string,
    to: string,
    options: CallOptions & { readonly overwrite?: boolean } = {},
  ): Promise<void> {
    const { overwrite } = options;
    await this.#transport.json({
      ...this.#spec(id, { method: 'POST', below: ['move'], query: {} }, options),
      json: { from, to, overwrite },
    });
  }

  /** Removes a path; a missing path is a success. */
  async remove(
    id: string,
    path: string,
    options: CallOptions & { readonly recursive?: boolean } = {},
  ): Promise<void> {
    await this.#transport.json(
      this.#spec(id, { method: 'DELETE', below: [], query: { path, recursive: options.recursive } }, options),
    );
  }

  /** Follows changes at or below a path, until the caller stops. Resolves once the watch is set: no later change is missed. */
  async watch(
    id: string,
    path: string,
    options: CallOptions & { readonly recursive?: boolean } = {},
  ): Promise<AsyncGenerator<FileChange>> {
    const { recursive } = options;
    const response = await this.#transport.open({
      ...this.#spec(id, { method: 'GET', below: ['watch'], query: { path, recursive } }, options),
      accept: 'text/event-stream',
    });
    return changesIn(response);
  }

  /** Unpacks a tar stream below a path. */
  uploadTree(id: string, path: string, tar: Bytes, options: CallOptions = {}): Promise<{ files: number }> {
    return this.#transport.json({
      ...this.#spec(
        id,
        { method: 'PUT', below: ['tree'], query: { path } },
        { timeoutMs: TRANSFER_MS, ...options },
      ),
      body: tar,
      contentType: TAR_MEDIA_TYPE,
    });
  }

  /** Returns the tree at a path as a tar stream. */
  downloadTree(id: string, path: string, options: CallOptions = {}): Promise<IncomingMessage> {
    return this.#transport.open({
      ...this.#spec(id, { method: 'GET', below: ['tree'], query: { path } }, options),
      accept: TAR_MEDIA_TYPE,
    });
  }

  /** Copies a directory of this machine into the sandbox, without paths in its ignore files. */
  async uploadDirectory(
    id: string,
    directory: string,
    path: string,
    options: CallOptions & PackOptions = {},
  ): Promise<{ files: number }> {
    const { packTree } = await import('../../trees/pack-tree.ts');
    return this.uploadTree(id, path, packTree(directory, options), options);
  }

  /** Copies a directory of the sandbox to this machine. The archive is not trusted. */
  async downloadDirectory(
    id: string,
    path: string,
    directory: string,
    options: CallOptions & UnpackOptions = {},
  ): Promise<{ files: number }> {
    const [{ unpackTree }, { wholeAnswer }] = await Promise.all([
      import('../../trees/unpack-tree.ts'),
      import('../transport/whole-answer.ts'),
    ]);
    let last: string | null = null;
    const onEntry: UnpackOptions['onEntry'] = (header) => {
      last = header.name;
      options.onEntry?.(header);
    };
    const tree = await this.downloadTree(id, path, options);
    const reached = () => (last === null ? 'before its first entry' : `at ${last}`);
    const whole = wholeAnswer(tree, `The copy of ${path}`, reached);
    return unpackTree(whole, directory, { ...options, onEntry });
  }

  #spec(id: string, { method, below, query }: FileCall, options: CallOptions): RequestSpec {
    const path = pathOf('sandboxes', id, 'files', ...below) + queryOf({ ...query, service: this.#service });
    return { signal: options.signal, timeoutMs: options.timeoutMs, method, path };
  }
}
