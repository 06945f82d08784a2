import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SandboxerError } from '../../contract/errors/errors.ts';
import { ERRORS, toProblem } from '../../contract/errors/errors.ts';
import { closeIfUnasked, endAnswer } from '../exchange/discard-rest.ts';
import { PROBLEM_MEDIA_TYPE } from '../exchange/exchange.ts';

/** The header that distinguishes our own answers from those of the service inside. */
const ERROR_HEADER = 'sandboxer-error';

/** Answers in place of the service inside where it gives no answer: sentences for people, a problem document for programs. */
export function refuse(request: IncomingMessage, response: ServerResponse, error: SandboxerError): void {
  if (response.writableEnded) return;
  if (response.headersSent || response.destroyed) return void response.destroy();
  const people = /\btext\/html\b/.test(request.headers.accept ?? '');
  const { status, code, detail, remedy, extras } = error;
  const body = people
    ? `${ERRORS[code].title}\n\n${detail}\n${remedy}\n\n${code}\n`
    : JSON.stringify(toProblem(error));
  closeIfUnasked(request, response);
  response.writeHead(status, {
    'content-type': people ? 'text/plain; charset=utf-8' : PROBLEM_MEDIA_TYPE,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    [ERROR_HEADER]: code,
    ...(extras.retryAfterSeconds === undefined ? {} : { 'retry-after': String(extras.retryAfterSeconds) }),
  });
  endAnswer(request, response, request.method === 'HEAD' ? undefined : body);
}
