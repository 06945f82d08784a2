import type { Duplex } from 'node:stream';
import type { PortAccess, PortRequest } from '../../contract/sandboxes/port.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf, OutputOf } from './schema-types.ts';

export type PortInput = InputOf<typeof PortRequest>;
export type PortAddress = OutputOf<typeof PortAccess>;

/** Ports inside a sandbox. */
export class Ports {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns an address for an HTTP service inside, with the token it needs unless it is public. */
  open(sandboxId: string, request: PortInput, options: CallOptions = {}): Promise<PortAddress> {
    const path = pathOf('sandboxes', sandboxId, 'ports');
    return this.#transport.json({ ...options, method: 'POST', path, json: request });
  }

  /** Opens a byte stream to a TCP port inside. */
  async connect(sandboxId: string, port: number, options: CallOptions = {}): Promise<Duplex> {
    const { connectPort } = await import('../streams/port-connection.ts');
    return connectPort(this.#transport, sandboxId, port, options);
  }
}
