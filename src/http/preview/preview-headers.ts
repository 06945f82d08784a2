import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { cookiesOfService, withoutOurs } from './preview-cookie.ts';
import { sameHost, takeToken } from './preview-target.ts';

export const TOKEN_HEADER = 'sandboxer-preview-token';

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** Headers that only we set or answer: a visitor's values of them are not passed on. */
const NOT_FORWARDED = [
  ...HOP_BY_HOP,
  TOKEN_HEADER,
  'cookie',
  'expect',
  'forwarded',
  'host',
  'http2-settings',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
];

/** Speaks for more than the one preview: all cookies of the domain, other ports of the host. */
const NOT_RETURNED = [...HOP_BY_HOP, 'alt-svc', 'clear-site-data', 'set-cookie2'];

/** Headers that only this server sends, such as `sandboxer-error`. Some servers read `_` in a name as `-`. */
const OURS = /^sandboxer[-_]/;

/** The headers of a message without ours, those that are for its connection alone, and the given ones. */
function passed({ headers }: IncomingMessage, left: readonly string[]): Map<string, string | string[]> {
  const dropped = new Set(left);
  for (const option of (headers.connection ?? '').split(',')) dropped.add(option.trim().toLowerCase());
  const kept = new Map<string, string | string[]>();
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !dropped.has(name) && !OURS.test(name)) kept.set(name, value);
  return kept;
}

export interface Inside {
  readonly port: number;
  /** The host name of the preview. */
  readonly host: string;
  /** Previews are reached over https. */
  readonly secure: boolean;
}

function hostNameOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).hostname : null;
}

/**
 * Returns the headers for the service inside: the visitor's, without our own key to it, as if the request went to its own host.
 */
export function forwardedHeaders(request: IncomingMessage, inside: Inside): OutgoingHttpHeaders {
  const { headers } = request;
  const forwarded: OutgoingHttpHeaders = Object.fromEntries(passed(request, NOT_FORWARDED));
  const self = `localhost:${inside.port}`;
  const cookies = withoutOurs(headers.cookie);
  if (cookies !== '') forwarded.cookie = cookies;
  if (typeof headers.referer === 'string') forwarded.referer = takeToken(headers.referer).path;
  // A service that compares the two must find its own page at home.
  if (hostNameOf(headers.origin ?? '') === inside.host) forwarded.origin = `http://${self}`;
  forwarded.host = self;
  forwarded['x-forwarded-host'] = headers.host ?? '';
  forwarded['x-forwarded-proto'] = inside.secure ? 'https' : 'http';
  const before = headers['x-forwarded-for'];
  const { remoteAddress } = request.socket;
  if (remoteAddress !== undefined)
    forwarded['x-forwarded-for'] = before === undefined ? remoteAddress : `${before}, ${remoteAddress}`;
  if (headers['transfer-encoding'] !== undefined) forwarded['transfer-encoding'] = 'chunked';
  return forwarded;
}

/** Maps a redirect: the service knows itself as `localhost`, which for the visitor is the visitor's own machine. */
function locationOutside(location: string, port: number): string {
  const inside = /^(?:https?:)?\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::(\d{1,5}))?([/?#].*)?$/i.exec(
    location,
  );
  if (!inside) return location;
  const named = inside[1] === undefined ? (/^https:/i.test(location) ? 443 : 80) : Number(inside[1]);
  if (named !== port) return location;
  const rest = inside[2] ?? '/';
  return sameHost(rest.startsWith('/') ? rest : `/${rest}`);
}

/** Returns the headers for the visitor: cookies stay on this origin, and nothing in them touches another. */
export function returnedHeaders(response: IncomingMessage, port: number): OutgoingHttpHeaders {
  const returned: OutgoingHttpHeaders = Object.fromEntries(passed(response, NOT_RETURNED));
  const { 'set-cookie': cookies, location } = response.headers;
  if (cookies) returned['set-cookie'] = cookiesOfService(cookies);
  if (location !== undefined) returned.location = locationOutside(location, port);
  returned['x-robots-tag'] ??= 'noindex';
  return returned;
}
