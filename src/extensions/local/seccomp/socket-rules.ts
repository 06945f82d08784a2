/**
 * Sockets that a sandbox may make: unix, TCP, UDP and ping over IPv4 and IPv6, and the netlink family that lists routes. The
 * kernel creates the socket, or loads the module of its protocol, before any other check: so family, type and protocol are all
 * judged here. Rules never overlap: libseccomp does not define which of two applies.
 */
import type { Argument, SyscallRule } from './syscall-rules.ts';
import { ALL_BITS, above, allow, between, EPERM, is, masked, refuse } from './syscall-rules.ts';

const EINVAL = 22;
const EPROTONOSUPPORT = 93;
const ESOCKTNOSUPPORT = 94;
const EOPNOTSUPP = 95;
const EAFNOSUPPORT = 97;

const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
const NETLINK_AUDIT = 9;

const IPPROTO_ICMP = 1;
const IPPROTO_TCP = 6;
const IPPROTO_UDP = 17;
const IPPROTO_ICMPV6 = 58;

/** Mask without the flags SOCK_CLOEXEC and SOCK_NONBLOCK; the kernel refuses any other bit above the type itself. */
const TYPE_BITS = 0xfff7_f7ff;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_RAW = 3;
const TYPES = 16;

const ofType = (type: number): Argument => masked(1, TYPE_BITS, type);

/** Returns the rules of protocols; 0 stands for the usual protocol of the type. */
function protocolRules(family: number, type: number, protocols: readonly number[]): SyscallRule[] {
  const usable = [0, ...protocols].toSorted((a, b) => a - b);
  const refused = usable.flatMap((protocol, n) => {
    const next = usable[n + 1];
    return next === undefined ? [above(2, protocol)] : between(2, ALL_BITS, protocol + 1, next - 1);
  });
  return [
    ...usable.map((protocol) => allow(['socket'], [is(0, family), ofType(type), is(2, protocol)])),
    ...refused.map((protocol) =>
      refuse(['socket'], EPROTONOSUPPORT, [is(0, family), ofType(type), protocol]),
    ),
  ];
}

/**
 * Returns the rules of IP. MPTCP, UDPLITE, SCTP, DCCP, L2TP and SMC are protocols of these families; SCTP and DCCP answer to
 * other types with 0, too.
 */
function internetRules(family: number, ping: number): SyscallRule[] {
  const others = [ofType(0), ...between(1, TYPE_BITS, SOCK_RAW + 1, TYPES - 1)];
  return [
    ...protocolRules(family, SOCK_STREAM, [IPPROTO_TCP]),
    ...protocolRules(family, SOCK_DGRAM, [IPPROTO_UDP, ping]),
    // The kernel's error without CAP_NET_RAW.
    refuse(['socket'], EPERM, [is(0, family), ofType(SOCK_RAW)]),
    ...others.map((type) => refuse(['socket'], ESOCKTNOSUPPORT, [is(0, family), type])),
  ];
}

function netlinkRules(): SyscallRule[] {
  const kinds = Array.from({ length: NETLINK_AUDIT - 1 }, (_, n) => n + 1);
  return [
    allow(['socket'], [is(0, AF_NETLINK), is(2, NETLINK_ROUTE)]),
    // PAM takes any other error than EINVAL, EPROTONOSUPPORT or EAFNOSUPPORT from the audit socket for a broken system.
    refuse(['socket'], EINVAL, [is(0, AF_NETLINK), is(2, NETLINK_AUDIT)]),
    ...kinds.map((kind) => refuse(['socket'], EPROTONOSUPPORT, [is(0, AF_NETLINK), is(2, kind)])),
    refuse(['socket'], EPROTONOSUPPORT, [is(0, AF_NETLINK), above(2, NETLINK_AUDIT)]),
  ];
}

export function socketRules(): SyscallRule[] {
  const usable = [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK];
  const families = Array.from({ length: AF_NETLINK }, (_, family) => family);
  return [
    allow(['socket'], [is(0, AF_UNIX)]),
    ...internetRules(AF_INET, IPPROTO_ICMP),
    ...internetRules(AF_INET6, IPPROTO_ICMPV6),
    ...netlinkRules(),
    ...families
      .filter((family) => !usable.includes(family))
      .map((family) => refuse(['socket'], EAFNOSUPPORT, [is(0, family)])),
    refuse(['socket'], EAFNOSUPPORT, [above(0, AF_NETLINK)]),
    // The kernel makes both sockets before it finds that the family has no pairs.
    allow(['socketpair'], [is(0, AF_UNIX)]),
    refuse(['socketpair'], EOPNOTSUPP, [is(0, 0)]),
    refuse(['socketpair'], EOPNOTSUPP, [above(0, AF_UNIX)]),
  ];
}
