import type { IncomingMessage } from 'node:http';
import { SandboxerError } from '../../contract/errors/errors.ts';

/** Programs on the way differ on which of two values counts, so there must not be two. */
const SENT_ONCE: ReadonlySet<string> = new Set([
  'authorization',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'idempotency-key',
  'sandboxer-api-version',
  'sandboxer-preview-token',
  'sandboxer-workspace',
  'transfer-encoding',
  'upgrade',
]);

function refuse(detail: string, field?: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, field === undefined ? {} : { field });
}

/**
 * Refuses a request whose head means different things to different programs: one without a version (HTTP/0.9), and one
 * with a header twice of which one value decides (RFC 9112, 3.2; RFC 9110, 5.3).
 */
export function requireClearHead({ httpVersionMajor, rawHeaders }: IncomingMessage): void {
  if (httpVersionMajor < 1) throw refuse('The request line names no version of HTTP.');
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (!SENT_ONCE.has(name)) continue;
    if (seen.has(name)) throw refuse(`The header "${name}" was sent twice.`, name);
    seen.add(name);
  }
}
