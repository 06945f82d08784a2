import type { ReapReport, ReapRequest, StaleReport } from '../../contract/sandboxes/stale.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf } from './schema-types.ts';

export class Stale {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Lists stale objects, with evidence. */
  inspect(options: CallOptions = {}): Promise<StaleReport> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/stale' });
  }

  /** Removes stale objects of ours; a dry run unless the request says otherwise. */
  reap(request: InputOf<typeof ReapRequest> = {}, options: CallOptions = {}): Promise<ReapReport> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/stale/reap', json: request });
  }
}
