import type { IncomingMessage } from 'node:http';

/** The target of a request, whatever form the request line has. */
export interface PreviewTarget {
  /** Host name without port, in lower case. */
  readonly host: string;
  /** Path and query as they were sent, without our token: the service inside sees them so. */
  readonly path: string;
  readonly token: string | null;
}

const TOKEN_PARAMETER = 'sandboxer_token';

const ORIGIN_FORM = /^\/[\x21-\xff]*$/;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#\\@]+)([\x21-\xff]*)$/i;

function hostName(authority: string): string {
  return authority.toLowerCase().replace(/:\d*$/, '');
}

/** Reads the target; `null` for one that is no address of a resource: `*`, an empty one, one with control characters. */
export function readTarget(request: IncomingMessage): PreviewTarget | null {
  const url = request.url ?? '';
  if (ORIGIN_FORM.test(url)) return { host: hostName(request.headers.host ?? ''), ...takeToken(url) };
  // The host in the address is the one that counts (RFC 9112, 3.2.2).
  const absolute = ABSOLUTE_FORM.exec(url);
  if (!absolute) return null;
  const rest = absolute[2] as string;
  return {
    host: hostName(absolute[1] as string),
    ...takeToken(rest.startsWith('/') ? rest : `/${rest}`),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isToken(parameter: string): boolean {
  return decoded(parameter.split('=', 1)[0] as string) === TOKEN_PARAMETER;
}

/** Takes our token out of an address, however it is spelled, and leaves every other byte as it is. */
export function takeToken(address: string): { path: string; token: string | null } {
  const at = address.indexOf('?');
  if (at < 0) return { path: address, token: null };
  const hash = address.indexOf('#', at);
  const query = address.slice(at + 1, hash < 0 ? undefined : hash);
  const parameters = query.split('&');
  const [token] = parameters.filter(isToken);
  if (token === undefined) return { path: address, token: null };
  const kept = parameters.filter((parameter) => !isToken(parameter)).join('&');
  const path = `${address.slice(0, at)}${kept === '' ? '' : `?${kept}`}${hash < 0 ? '' : address.slice(hash)}`;
  return { path, token: decoded(token.slice(token.indexOf('=') + 1)) };
}

/** Returns a reference to this path on the same host, also where a browser would take its beginning for another host. */
export function sameHost(path: string): string {
  return /^\/[/\\]/.test(path) ? `/.${path}` : path;
}
