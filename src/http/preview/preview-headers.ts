import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'proxy-authorization',
]);

function withoutCookie(header: string, cookie: string): string {
  return header
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '' && !part.startsWith(`${cookie}=`))
    .join('; ');
}

/** What the service inside gets: the visitor's headers without our own key to it. */
export function forwardedHeaders(
  request: IncomingMessage,
  port: number,
  cookie: string,
  tokenHeader: string,
): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    if (
      value === undefined ||
      HOP_BY_HOP.has(name) ||
      name === tokenHeader ||
      name === 'cookie' ||
      name === 'host'
    )
      continue;
    headers[name] = value;
  }
  const cookies = withoutCookie(request.headers.cookie ?? '', cookie);
  if (cookies !== '') headers.cookie = cookies;
  headers.host = `localhost:${port}`;
  headers['x-forwarded-host'] = request.headers.host ?? '';
  if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
  return headers;
}

/** What the visitor gets: cookies stay on this origin, and the browser keeps it apart from every other. */
export function returnedHeaders(response: IncomingMessage): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (value === undefined || HOP_BY_HOP.has(name)) continue;
    headers[name] = name === 'set-cookie' ? (value as string[]).map(withoutDomain) : value;
  }
  headers['x-robots-tag'] ??= 'noindex';
  return headers;
}

/** A cookie for a whole domain would reach the previews of other sandboxes. */
function withoutDomain(cookie: string): string {
  return cookie
    .split(';')
    .filter((part) => !/^\s*domain\s*=/i.test(part))
    .join(';');
}
