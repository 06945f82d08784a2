import type { LookupAddress } from 'node:dns';
import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isIP } from 'node:net';
import { SandboxerError } from '../contract/errors/errors.ts';
import { isLoopbackHost, isPrivateAddress } from './private-address.ts';

export interface TargetPolicy {
  /** Addresses in private networks, on this machine and of clouds' own services may be called. */
  readonly allowPrivate: boolean;
  /** Whether to allow addresses without encryption, also beyond this machine. */
  readonly allowHttp: boolean;
}

/** Says nothing about what a name means inside: the caller is a stranger there. */
const PRIVATE = 'The host does not resolve to a public address.';

/** The host of a URL as sockets know it: without the brackets of IPv6. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** Checks all that can be checked before any name is resolved. */
export function checkTarget(text: string, policy: TargetPolicy): URL {
  const refuse = (detail: string, remedy: string) =>
    new SandboxerError('SBX_INVALID_REQUEST', detail, { field: 'url', remedy });
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw refuse('The URL is not one of http or https.', 'Write it as "https://example.com/hook".');
  }
  const host = hostOf(url);
  if (url.username !== '' || url.password !== '' || url.hash !== '') {
    throw refuse('The URL has credentials or a fragment.', 'Leave them out: every delivery is signed.');
  }
  const isPrivate = isLoopbackHost(host) || (isIP(host) !== 0 && isPrivateAddress(host));
  if (isPrivate && !policy.allowPrivate) {
    throw refuse(PRIVATE, 'Name a public host, or allow private ones with webhooks.allow_private.');
  }
  if (url.protocol === 'http:' && !policy.allowHttp && !isLoopbackHost(host)) {
    throw refuse('The URL is not encrypted.', 'Use https, or allow http with webhooks.allow_http.');
  }
  return url;
}

/**
 * Resolves a name once and returns its addresses only if all of them may be called: the address that was checked is the address
 * that is dialled.
 */
export function guardedLookup(
  policy: TargetPolicy,
  resolve: typeof systemLookup = systemLookup,
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      // A name that does not exist and a private name get the same error: a difference would reveal the names inside.
      if (error) return callback(policy.allowPrivate ? error : new Error(PRIVATE, { cause: error }), '', 0);
      const addresses = found as LookupAddress[];
      const [first] = addresses;
      const refused = !policy.allowPrivate && addresses.some(({ address }) => isPrivateAddress(address));
      if (refused || !first) return callback(new Error(PRIVATE), '', 0);
      if (options.all) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
}
