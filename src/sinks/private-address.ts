import { BlockList, isIP } from 'node:net';

/** The ranges of RFC 6890 and those that clouds reserve: addresses that lead into a private network, not to the internet. */
const IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];
/** Within 2000::/3, which is all that is in use. */
const IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const refused = new BlockList();
for (const [net, prefix] of IPV4) refused.addSubnet(net, prefix, 'ipv4');
for (const [net, prefix] of IPV6) refused.addSubnet(net, prefix, 'ipv6');
const internet = new BlockList();
internet.addSubnet('2000::', 3, 'ipv6');

/** Whether an address is anything but one on the public internet. What is no address at all counts as private. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return refused.check(address, 'ipv4');
  // Addresses that carry an IPv4 one (mapped, NAT64) lie outside 2000::/3, or are listed.
  return family !== 6 || !internet.check(address, 'ipv6') || refused.check(address, 'ipv6');
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** A name or address that can only mean this machine. */
export function isLoopbackHost(host: string): boolean {
  const family = isIP(host);
  if (family !== 0) return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
  return /^(?:.+\.)?localhost\.?$/i.test(host);
}
