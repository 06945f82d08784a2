import type { BuildImageRequest, Image } from '../../contract/assets/image.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { Bytes, CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf } from './schema-types.ts';

export interface ImportOptions extends CallOptions {
  readonly extension?: string | undefined;
  /** Shares the image with all workspaces. */
  readonly shared?: boolean | undefined;
  /** Time after which the server deletes the image. */
  readonly retain?: string | number | undefined;
}

export type BuildImageInput = InputOf<typeof BuildImageRequest>;

const TRANSFER_MS = 24 * 3_600_000;

export class Images {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly Image[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/images' });
  }

  /** Returns an image by id, name or `name@digest`. */
  get(image: string, options: CallOptions = {}): Promise<Image> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('images', image) });
  }

  /** Imports a tar of a root file system, an OCI layout, or a `docker save` archive; gzip and zstd are understood. */
  import(name: string, archive: Bytes, options: ImportOptions = {}): Promise<Image> {
    const { extension, shared, retain, ...rest } = options;
    const path = `/v1/images${queryOf({ name, extension, shared, retain })}`;
    const patience = { ...rest, timeoutMs: rest.timeoutMs ?? TRANSFER_MS };
    return this.#transport.json({ ...patience, method: 'POST', path, body: archive });
  }

  /** Builds an image on the server, from its package sources. */
  build(request: BuildImageInput, options: CallOptions = {}): Promise<Image> {
    const patience = { ...options, timeoutMs: options.timeoutMs ?? TRANSFER_MS };
    return this.#transport.json({ ...patience, method: 'POST', path: '/v1/images/build', json: request });
  }

  async delete(image: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ ...options, method: 'DELETE', path: pathOf('images', image) });
  }
}
