import type { Balance, GrantRequest, Transfer } from '../contract/money.ts';
import { PagedList } from './paged-list.ts';
import type { InputOf, OutputOf } from './schema-types.ts';
import type { CallOptions, Transport } from './transport.ts';

export type CreditBalance = OutputOf<typeof Balance>;
export type CreditTransfer = OutputOf<typeof Transfer>;

export class Credits {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  balance(options: CallOptions = {}): Promise<CreditBalance> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/credits' });
  }

  /** A repeated `reference` is the same grant. */
  grant(request: InputOf<typeof GrantRequest>, options: CallOptions = {}): Promise<CreditBalance> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/credits/grants', json: request });
  }

  transfers(query: { readonly limit?: number } = {}, options: CallOptions = {}): PagedList<CreditTransfer> {
    return new PagedList(this.#transport, '/v1/credits/transfers', { ...query }, options);
  }
}
