import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const ACCEPTED = /^[A-Za-z0-9._:-]{1,64}$/;
const PREFIX = `req_${randomBytes(8).toString('hex')}`;
let last = 0;

/** The client's own id when it is harmless in a log and a header; otherwise one of ours. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  if (typeof given === 'string' && ACCEPTED.test(given)) return given;
  last += 1;
  return `${PREFIX}${last.toString(36)}`;
}
