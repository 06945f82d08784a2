import type {
  ProviderKey,
  ResealReport,
  SetProviderKeyRequest,
} from '../../contract/tenancy/provider-key.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf, OutputOf } from './schema-types.ts';

export type SetProviderKeyInput = InputOf<typeof SetProviderKeyRequest>;

export class ProviderKeys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly ProviderKey[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/provider-keys' });
  }

  /** Stores a key after a trial at the vendor. The key is never shown again. */
  set(request: SetProviderKeyInput, options: CallOptions = {}): Promise<ProviderKey> {
    return this.#transport.json({ ...options, method: 'PUT', path: '/v1/provider-keys', json: request });
  }

  test(id: string, options: CallOptions = {}): Promise<ProviderKey> {
    return this.#act(id, 'test', options);
  }

  disable(id: string, options: CallOptions = {}): Promise<ProviderKey> {
    return this.#act(id, 'disable', options);
  }

  delete(id: string, options: CallOptions = {}): Promise<void> {
    return this.#transport.json({ ...options, method: 'DELETE', path: pathOf('provider-keys', id) });
  }

  /** Seals the keys anew after the master key of the server was changed. */
  reseal(options: CallOptions = {}): Promise<OutputOf<typeof ResealReport>> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/provider-keys/reseal' });
  }

  #act(id: string, verb: string, options: CallOptions): Promise<ProviderKey> {
    return this.#transport.json({ ...options, method: 'POST', path: pathOf('provider-keys', id, verb) });
  }
}
