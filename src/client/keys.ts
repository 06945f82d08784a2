import type { z } from 'zod';
import type { ApiKey, CreatedKey, CreateKeyRequest } from '../contract/tenancy.ts';
import { pathOf } from './path-of.ts';
import type { CallOptions, Transport } from './transport.ts';

export type NewKey = z.infer<typeof CreatedKey>;
export type CreateKeyInput = z.input<typeof CreateKeyRequest> | CreateKeyRequest;

export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The secret is in this answer and nowhere else, ever. */
  create(request: CreateKeyInput, options: CallOptions = {}): Promise<NewKey> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/keys', json: request });
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly ApiKey[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/keys' });
  }

  /** Repeating it is harmless. */
  revoke(id: string, options: CallOptions = {}): Promise<ApiKey> {
    return this.#transport.json({ ...options, method: 'DELETE', path: pathOf('keys', id) });
  }
}
