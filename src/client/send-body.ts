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

/** Sends a body as fast as it is taken. Ends early when the server has answered: it needs no more. */
export async function sendBody(request: ClientRequest, body: AsyncIterable<Uint8Array>): Promise<void> {
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
