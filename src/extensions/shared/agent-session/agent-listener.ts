import type { AgentChannel } from './agent-channel.ts';
import type { AgentConnection } from './agent-connection.ts';
import { PayloadReader } from './payload.ts';
import { AgentPortConnection } from './port-connection.ts';
import { T } from './wire.ts';

export interface SocketAddress {
  readonly host: string;
  readonly port: number;
}

export interface AcceptedConnection {
  readonly connection: AgentPortConnection;
  readonly peer: SocketAddress;
  /** The address that the program inside meant to reach. */
  readonly destination: SocketAddress;
}

const MAX_HOST = 64;

function addressOf(reader: PayloadReader): SocketAddress {
  return { host: reader.string(MAX_HOST), port: reader.u16() };
}

/** A socket that listens inside. At most 64 connections wait to be taken; further ones wait in the kernel. */
export class AgentListener implements AsyncIterable<AcceptedConnection> {
  /** `host:port`, with the chosen port. */
  readonly address: string;
  readonly #connection: AgentConnection;
  readonly #channel: AgentChannel;

  constructor(connection: AgentConnection, channel: AgentChannel, opened: Buffer) {
    this.#connection = connection;
    this.#channel = channel;
    this.address = channel.reading(() => new PayloadReader(opened).string(2 * MAX_HOST));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<AcceptedConnection> {
    try {
      for (;;) {
        const frame = await this.#channel.next();
        if (frame === null || frame.type === T.closed) return;
        if (frame.type === T.error) throw this.#channel.errorOf(frame);
        if (frame.type !== T.accepted)
          throw this.#channel.violation('something other than a connection came');
        yield this.#channel.reading(() => this.#accepted(frame.data));
      }
    } finally {
      this.close();
    }
  }

  /** Closes the listener; connections that were taken go on. */
  close(): void {
    this.#channel.close();
  }

  #accepted(payload: Buffer): AcceptedConnection {
    const reader = new PayloadReader(payload);
    const id = reader.u32();
    const peer = addressOf(reader);
    const destination = addressOf(reader);
    reader.end();
    const channel = this.#connection.take(id, `${destination.host}:${destination.port}`);
    return { connection: new AgentPortConnection(channel), peer, destination };
  }
}
