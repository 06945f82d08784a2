import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** Requests whose client holds the body back until it is asked for. */
const waiting = new WeakMap<IncomingMessage, ServerResponse>();

/** Leaves `Expect: 100-continue` to the reader of the body: a request refused before that gets no `100 Continue`. */
export function holdContinue(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waiting.set(request, response);
    server.emit('request', request, response);
  });
}

/** Answers `100 Continue` where the client waits for it. Comes before every reading of a body. */
export function askForBody(request: IncomingMessage): void {
  const response = waiting.get(request);
  if (!response) return;
  waiting.delete(request);
  if (!response.headersSent) response.writeContinue();
}

/** Whether the client was never asked for the body: it may send it or not, so the connection cannot be used again. */
export function isBodyUnasked(request: IncomingMessage): boolean {
  return waiting.has(request);
}
