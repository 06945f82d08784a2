import type { Socket } from 'node:net';
import { SandboxerError, toProblem } from '../../contract/errors/errors.ts';
import { API_VERSION_HEADER } from '../../contract/values/version.ts';
import { API_VERSION_TEXT, PROBLEM_MEDIA_TYPE } from '../exchange/exchange.ts';

/** A whole response on a bare socket, which ends with it. */
export function answerOnSocket(socket: Socket, error: SandboxerError, requestId?: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(toProblem(error, requestId));
  socket.end(
    [
      `HTTP/1.1 ${error.status} ${error.status < 500 ? 'Refused' : 'Failed'}`,
      `content-type: ${PROBLEM_MEDIA_TYPE}`,
      `content-length: ${Buffer.byteLength(body)}`,
      `${API_VERSION_HEADER}: ${API_VERSION_TEXT}`,
      ...(requestId === undefined ? [] : [`x-request-id: ${requestId}`]),
      'connection: close',
      '',
      body,
    ].join('\r\n'),
  );
  // A peer that neither reads nor closes is not waited for.
  setTimeout(() => socket.destroy(), 1000).unref();
}

/** Bytes that are no HTTP request: there is no route and no exchange for them. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    const late = new SandboxerError('SBX_REQUEST_TIMEOUT', 'The header did not arrive in time.');
    answerOnSocket(socket, late);
    return;
  }
  const tooLarge = error.code === 'HPE_HEADER_OVERFLOW';
  const detail = tooLarge ? 'The header is too large.' : 'The bytes are not an HTTP request.';
  answerOnSocket(socket, new SandboxerError('SBX_INVALID_REQUEST', detail));
}
