import type { CreateVolumeRequest, Volume } from '../../contract/assets/volume.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf } from './schema-types.ts';

export type CreateVolumeInput = InputOf<typeof CreateVolumeRequest>;

export class Volumes {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  create(request: CreateVolumeInput, options: CallOptions = {}): Promise<Volume> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/volumes', json: request });
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly Volume[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/volumes' });
  }

  /** Returns a volume by id or name. */
  get(volume: string, options: CallOptions = {}): Promise<Volume> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('volumes', volume) });
  }

  /** Deletes a volume; refused while a sandbox has it. */
  async delete(volume: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.json({ ...options, method: 'DELETE', path: pathOf('volumes', volume) });
  }
}
