import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, SocketAddress } from 'node:net';

/** The proxies that are trusted to name, in `X-Forwarded-For`, the client of a request. */
export type TrustedProxies = BlockList;

const NETWORK = /^([0-9a-f.:]{2,45})(?:\/(\d{1,3}))?$/i;

function readNetwork(text: string) {
  const [, address = '', prefix] = NETWORK.exec(text) ?? [];
  const family = isIP(address);
  const bits = family === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : Number(prefix);
  if (family === 0 || length > bits) return null;
  return { address, length, family: family === 4 ? 'ipv4' : 'ipv6' } as const;
}

/** Whether a text is an address or a network: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`. */
export function isNetwork(text: string): boolean {
  return readNetwork(text) !== null;
}

/** Reads the networks of the configuration, which has checked them. */
export function trustedProxies(networks: readonly string[]): TrustedProxies {
  const list = new BlockList();
  for (const text of networks) {
    const network = readNetwork(text);
    if (network) list.addSubnet(network.address, network.length, network.family);
  }
  return list;
}

const MAPPED = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/i;

function plain(address: string): string {
  return MAPPED.exec(address)?.[1] ?? address;
}

function isTrusted(address: string, proxies: TrustedProxies): boolean {
  return proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
}

/** The most addresses that are read, from the end: the nearest are the last. A real path of proxies is shorter. */
const MOST_PROXIES = 32;

/**
 * Returns the address that a request comes from; `null` on a unix socket. `X-Forwarded-For` counts only as far as trusted proxies
 * wrote it: everything left of the first other address may be invented.
 */
export function clientAddress(request: IncomingMessage, proxies: TrustedProxies): string | null {
  const { remoteAddress } = request.socket;
  if (remoteAddress === undefined) return null;
  let address = plain(remoteAddress);
  const forwarded = request.headers['x-forwarded-for'];
  if (forwarded === undefined) return address;
  const hops = [forwarded].flat().join(',').split(',').slice(-MOST_PROXIES);
  for (const hop of hops.reverse()) {
    if (!isTrusted(address, proxies)) break;
    const before = plain(hop.trim());
    if (isIP(before) === 0) break;
    address = before;
  }
  return address;
}

/** Returns the holder of an address: a host has one of IPv4, and a whole /64 of IPv6. */
export function holderOf(address: string): string {
  if (isIP(address) !== 6) return address;
  // The system's own spelling: groups without leading zeros, one run of zeros as "::".
  const { address: canonical } = new SocketAddress({ address, family: 'ipv6' });
  const [head = '', tail] = (canonical.split('%', 1)[0] as string).split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
