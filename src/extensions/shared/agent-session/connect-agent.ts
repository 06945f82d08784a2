import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { ConnectionOptions } from './agent-connection.ts';
import { AgentConnection } from './agent-connection.ts';
import { AgentSession } from './agent-session.ts';
import { SlabPool } from './slab-pool.ts';

export interface ConnectAgentOptions extends ConnectionOptions {
  readonly signal?: AbortSignal;
  /** Longest wait for the agent's greeting. */
  readonly greetMs?: number;
}

const GREET_MS = 10_000;

function openSocket(path: string, options: ConnectionOptions): AgentConnection {
  const slabs = new SlabPool();
  let connection: AgentConnection | null = null;
  const socket = connect({
    path,
    onread: {
      buffer: () => slabs.room(),
      callback: (count) => {
        connection?.receive(slabs.filled(count));
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
 * Opens the channel to an agent: over a unix socket, or over any stream of bytes that leads to one. The caller reconnects after a
 * loss.
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
