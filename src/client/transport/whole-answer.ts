import type { IncomingMessage } from 'node:http';
import { SandboxerConnectionError } from './connection-error.ts';

/**
 * The bytes of an answer that is worth something only as a whole. One that ends too soon is an error that says what it was
 * and how far it came.
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
