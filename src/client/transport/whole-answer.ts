import type { IncomingMessage } from 'node:http';
import { SandboxerConnectionError } from './connection-error.ts';

/**
 * Reads the bytes of an answer that is useful only as a whole. An answer that ends too soon is an error that
 * names the answer and its received part.
 */
export async function* wholeAnswer(
  answer: IncomingMessage,
  what: string,
  reached: () => string,
): AsyncGenerator<Buffer, undefined> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
    const message = `${what} broke off ${reached()}: the server ended the connection.`;
    throw new SandboxerConnectionError('lost', message, true, error);
  }
  return undefined;
}
