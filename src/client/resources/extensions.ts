import type { ExtensionEntry } from '../../contract/extensions/extension.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { OutputOf } from './schema-types.ts';

export type Backend = OutputOf<typeof ExtensionEntry>;

export class Extensions {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly Backend[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/extensions' });
  }

  get(id: string, options: CallOptions = {}): Promise<Backend> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('extensions', id) });
  }
}
