import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { request as httpRequest } from 'node:http';
import type { Duplex } from 'node:stream';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { endAnswer } from '../exchange/discard-rest.ts';
import { askForBody } from '../exchange/expected-continue.ts';
import type { Inside } from './preview-headers.ts';
import { forwardedHeaders, returnedHeaders } from './preview-headers.ts';
import { refuse } from './preview-refusal.ts';

/** An admitted request of a visitor, and the connection to the service inside. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly inside: Inside;
  readonly stream: Duplex;
}

/** The most `1xx` answers that the service inside may send before the final one. */
const MOST_INTERIM = 64;
const HEADER_BYTES = 64 * 1024;
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;

export function unanswered(detail: string, cause?: unknown): SandboxerError {
  return new SandboxerError('SBX_PREVIEW_FAILED', detail, { cause });
}

/** Called once the service inside agrees to an upgrade. `head` holds the bytes that it sent right behind. */
type Switched = (incoming: IncomingMessage, head: Buffer) => void;

/**
 * Sends the request to the service inside. The service may answer anything: an invalid answer becomes a refusal for the visitor,
 * or, once the answer has begun, a cut connection.
 */
function ask(visit: Visit, more: OutgoingHttpHeaders, switched?: Switched): ClientRequest {
  const { request, response, path, inside, stream } = visit;
  const outgoing = httpRequest({
    createConnection: () => stream,
    method: request.method ?? 'GET',
    path,
    headers: { ...forwardedHeaders(request, inside), ...more },
    setHost: false,
    insecureHTTPParser: false,
    maxHeaderSize: HEADER_BYTES,
  });
  let answered = false;
  let interim = 0;
  outgoing.on('information', () => {
    interim += 1;
    if (interim > MOST_INTERIM) outgoing.destroy(new Error('too many interim answers'));
  });
  outgoing.on('response', (incoming) => {
    answered = true;
    answer(visit, incoming);
  });
  const failed = (cause?: unknown) => {
    // Once an answer has begun, its own stream reports whether it came to an end.
    if (!answered) refuse(request, response, unanswered('What listens inside gave no HTTP answer.', cause));
  };
  outgoing.on('upgrade', (incoming, _stream, head) => {
    answered = switched !== undefined;
    if (switched) switched(incoming, head);
    else outgoing.destroy();
  });
  outgoing.on('error', failed).on('close', failed);
  return outgoing;
}

function answer({ request, response, inside, stream }: Visit, incoming: IncomingMessage): void {
  try {
    begin(response, incoming, inside.port);
  } catch (cause) {
    incoming.on('error', () => {});
    stream.destroy();
    const detail = `What listens inside gave no valid answer: ${(cause as Error).message}.`;
    refuse(request, response, unanswered(detail, cause));
    return;
  }
  incoming.on('error', () => response.destroy());
  incoming.once('end', () => endAnswer(request, response));
  incoming.pipe(response, { end: false });
}

function begin(response: ServerResponse, incoming: IncomingMessage, port: number): void {
  const { statusCode: status = 0, statusMessage: reason = '' } = incoming;
  if (status < 200 || status > 999) throw new Error(`its status is ${status}`);
  const encoding = incoming.headers['transfer-encoding']?.toLowerCase() ?? 'chunked';
  if (encoding !== 'chunked') throw new Error('its transfer coding is unknown');
  response.writeHead(status, REASON.test(reason) ? reason : '', returnedHeaders(incoming, port));
  // The first bytes of the body may be long in coming.
  response.flushHeaders();
}

/** Relays one request and its answer, both as streams. */
export function relayRequest(visit: Visit): void {
  const { request } = visit;
  const encoding = request.headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked')
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The only transfer coding that is taken is "chunked".');
  askForBody(request);
  request.pipe(ask(visit, {}));
}

/** The most bytes of a visitor before the answer: they are read, so that a hang-up is seen. */
const EARLY_BYTES = 64 * 1024;

/** Relays a connection that becomes something else once the service inside agrees. Until then it is a request like any other. */
export function relayUpgrade(visit: Visit, socket: Duplex, head: Buffer): void {
  const { request, response, inside, stream } = visit;
  const early: Buffer[] = [head];
  let bytes = head.length;
  const collect = (chunk: Buffer) => {
    early.push(chunk);
    bytes += chunk.length;
    if (bytes > EARLY_BYTES) socket.pause();
  };
  const left = () => socket.destroy();
  socket.on('data', collect).once('end', left);
  const switched = (incoming: IncomingMessage, late: Buffer) => {
    socket.off('data', collect).off('end', left);
    response.detachSocket(socket as Parameters<typeof response.detachSocket>[0]);
    socket.write(switching(incoming, inside.port), 'latin1');
    stream.once('error', left).once('close', left);
    if (late.length > 0) socket.write(late);
    for (const chunk of early) if (chunk.length > 0) stream.write(chunk);
    socket.pipe(stream).pipe(socket);
  };
  ask(visit, { connection: 'Upgrade', upgrade: request.headers.upgrade ?? '' }, switched).end();
}

function switching(incoming: IncomingMessage, port: number): string {
  const headers = {
    ...returnedHeaders(incoming, port),
    connection: 'Upgrade',
    upgrade: incoming.headers.upgrade ?? '',
  };
  const lines = Object.entries(headers).flatMap(([name, value]) =>
    [value ?? []].flat().map((line) => `${name}: ${line}`),
  );
  return `${['HTTP/1.1 101 Switching Protocols', ...lines].join('\r\n')}\r\n\r\n`;
}
