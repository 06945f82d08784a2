import type { EventSinkEntry } from '../../contract/events/webhook.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';

export interface SinkList {
  readonly items: readonly EventSinkEntry[];
}

/** All receivers of events. Only for administrators of the server. */
export class Sinks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<SinkList> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/sinks' });
  }

  /** Sends all stored events again to a receiver named in the configuration, from a number on. */
  replay(id: string, from: number, options: CallOptions = {}): Promise<{ readonly from: number }> {
    const path = pathOf('sinks', id, 'replay') + queryOf({ from });
    return this.#transport.json({ ...options, method: 'POST', path });
  }
}
