import type {
  ApiKey,
  CreatedKey,
  CreateKeyRequest,
  RotateKeyRequest,
  WhoAmI,
} from '../../contract/tenancy/tenancy.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf, OutputOf } from './schema-types.ts';

export type NewKey = OutputOf<typeof CreatedKey>;
export type CreateKeyInput = InputOf<typeof CreateKeyRequest> | CreateKeyRequest;

export class Keys {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Makes a key. Its secret is in this answer and nowhere else, ever. */
  create(request: CreateKeyInput, options: CallOptions = {}): Promise<NewKey> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/keys', json: request });
  }

  list(options: CallOptions = {}): Promise<{ readonly items: readonly ApiKey[] }> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/keys' });
  }

  /** Ends the key, and the keys it made unless `keepMade` is set. A repetition is harmless. */
  revoke(
    id: string,
    { keepMade = false, ...options }: CallOptions & { readonly keepMade?: boolean } = {},
  ): Promise<ApiKey> {
    const path = `${pathOf('keys', id)}${keepMade ? '?keep_made=true' : ''}`;
    return this.#transport.json({ ...options, method: 'DELETE', path });
  }

  /** Makes a successor with the same rights. The old key ends now, or after the overlap. */
  rotate(
    id: string,
    request: InputOf<typeof RotateKeyRequest> = {},
    options: CallOptions = {},
  ): Promise<NewKey> {
    const path = pathOf('keys', id, 'rotate');
    return this.#transport.json({ ...options, method: 'POST', path, json: request });
  }

  /** Returns the caller that the server sees in this client. */
  whoAmI(options: CallOptions = {}): Promise<WhoAmI> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/whoami' });
  }
}
