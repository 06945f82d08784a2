import type { ClientRequest } from 'node:http';

function drained(request: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      request.off('drain', done);
      request.off('close', done);
      resolve();
    };
    request.on('drain', done);
    request.on('close', done);
  });
}

/** Resolves when the request is connected or closed. Never rejects: the request's own error reports a failure. */
function connected(request: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    request.once('close', resolve);
    request.once('socket', (socket) => {
      if (socket.connecting) socket.once('connect', () => resolve());
      else resolve();
    });
  });
}

/**
 * Sends a body as fast as the server takes it. Reading begins once the server is reached, so that the same body can be sent with
 * the next try. Ends early when the server has answered: it needs no more.
 */
export async function sendBody(request: ClientRequest, body: AsyncIterable<Uint8Array>): Promise<void> {
  await connected(request);
  if (request.destroyed) return;
  let answered = false;
  request.once('response', () => {
    answered = true;
  });
  for await (const part of body) {
    if (answered || request.destroyed) return;
    if (part.length > 0 && !request.write(part)) await drained(request);
  }
  if (!request.destroyed) request.end();
}
