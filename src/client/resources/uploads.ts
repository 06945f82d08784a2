import type { Upload, UploadEntry } from '../../contract/assets/upload.ts';
import type { PackOptions } from '../../trees/pack-tree.ts';
import { PagedList } from '../transport/paged-list.ts';
import { pathOf } from '../transport/path-of.ts';
import type { Bytes, CallOptions, Transport } from '../transport/transport.ts';

const TRANSFER_MS = 24 * 3_600_000;

/** File trees that wait for their sandbox: `inputs: { repo: uploadRef(upload) }`. */
export class Uploads {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Uploads a tar archive. An equal archive is the same upload. */
  create(tar: Bytes, options: CallOptions = {}): Promise<Upload> {
    return this.#transport.json({
      timeoutMs: TRANSFER_MS,
      ...options,
      method: 'POST',
      path: '/v1/uploads',
      body: tar,
      contentType: 'application/x-tar',
    });
  }

  /** Uploads a directory or a file of this machine, without paths in its ignore files, `.git` and likely secrets. */
  async path(path: string, options: CallOptions & PackOptions = {}): Promise<Upload> {
    const { packPath } = await import('../../trees/pack-tree.ts');
    const { signal, timeoutMs = TRANSFER_MS } = options;
    return this.create(packPath(path, options), { signal, timeoutMs });
  }

  get(id: string, options: CallOptions = {}): Promise<Upload> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('uploads', id) });
  }

  list(filter: { readonly limit?: number } = {}, options: CallOptions = {}): PagedList<Upload> {
    return new PagedList(this.#transport, '/v1/uploads', { limit: filter.limit }, options);
  }

  async *entries(id: string, options: CallOptions = {}): AsyncGenerator<UploadEntry> {
    const path = pathOf('uploads', id, 'entries');
    const response = await this.#transport.open({
      ...options,
      method: 'GET',
      path,
      accept: 'application/x-ndjson',
    });
    let rest = '';
    const decoder = new TextDecoder();
    for await (const part of response) {
      const lines = (rest + decoder.decode(part as Buffer, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line) as UploadEntry;
    }
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ ...options, method: 'DELETE', path: pathOf('uploads', id) });
  }
}

/** Returns the reference of an upload in a request. */
export function uploadRef({ upload_id }: Pick<Upload, 'upload_id'>): string {
  return `upload:${upload_id}`;
}
