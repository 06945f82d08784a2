import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { SandboxerError } from '../../../contract/errors.ts';
import type { ConnectionOptions } from './agent-connection.ts';
import { AgentConnection } from './agent-connection.ts';
import { AgentSession } from './agent-session.ts';

export interface ConnectAgentOptions extends ConnectionOptions {
  readonly signal?: AbortSignal;
  /** How long the agent may take to greet. */
  readonly greetMs?: number;
}

const GREET_MS = 10_000;
const SLAB_BYTES = 262_144;
const SLAB_LEAST = 65_536;

/** Memory that the socket reads into, large pieces of which become chunks of output without a copy. */
class Slab {
  #bytes: Buffer = Buffer.alloc(0);
  #used = 0;

  room(): Buffer {
    if (this.#bytes.length - this.#used < SLAB_LEAST) {
      this.#bytes = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#used = 0;
    }
    return this.#bytes.subarray(this.#used);
  }

  filled(count: number): Buffer {
    const bytes = this.#bytes.subarray(this.#used, this.#used + count);
    this.#used += count;
    return bytes;
  }
}

function openSocket(path: string, options: ConnectionOptions): AgentConnection {
  const slab = new Slab();
  let connection: AgentConnection | null = null;
  const socket = connect({
    path,
    onread: {
      buffer: () => slab.room(),
      callback: (count) => {
        connection?.receive(slab.filled(count));
        return true;
      },
    },
  });
  connection = new AgentConnection(socket, options);
  return connection;
}

function wrapStream(stream: Duplex, options: ConnectionOptions): AgentConnection {
  const connection = new AgentConnection(stream, options);
  stream.on('data', (chunk: Buffer) => connection.receive(chunk));
  return connection;
}

/**
 * Opens the channel to an agent: over a unix socket, or over any stream of bytes that leads to one. Finding it again
 * when it is lost is the caller's business.
 */
export async function connectAgent(
  to: Duplex | string,
  options: ConnectAgentOptions = {},
): Promise<AgentSession> {
  const { signal, greetMs = GREET_MS } = options;
  signal?.throwIfAborted();
  const connection = typeof to === 'string' ? openSocket(to, options) : wrapStream(to, options);
  const abort = () => connection.lose(signal?.reason);
  const timer = setTimeout(() => {
    const backend = options.backend === undefined ? {} : { backend: options.backend };
    connection.lose(new SandboxerError('SBX_TIMEOUT', 'The agent did not greet in time.', backend));
  }, greetMs);
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return new AgentSession(connection, await connection.greet());
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
}
