import type { Attempt, AttemptClass } from './attempt.ts';
import { attempt, BY_POLICY_FILTER, inContainers } from './attempt.ts';

const [STREAM, DGRAM, RAW, SEQPACKET, DCCP, PACKET] = [1, 2, 3, 5, 6, 10];
const FLAGS = 0o2004000;
const [INET, NETLINK, AF_PACKET] = [2, 16, 17];

const OVER_IP = [
  ['MPTCP', STREAM, 262],
  ['MPTCP, with flags', STREAM + FLAGS, 262],
  ['UDPLITE', DGRAM, 136],
  ['SCTP', STREAM, 132],
  ['SCTP by its type', SEQPACKET, 0],
  ['DCCP', DCCP, 33],
  ['DCCP by its type', DCCP, 0],
  ['L2TP', DGRAM, 115],
  ['SMC', STREAM, 256],
] as const;

const FAMILIES = {
  AX25: 3,
  IPX: 4,
  APPLETALK: 5,
  NETROM: 6,
  ATMPVC: 8,
  X25: 9,
  ROSE: 11,
  DECNET: 12,
  KEY: 15,
  ATMSVC: 20,
  RDS: 21,
  PPPOX: 24,
  LLC: 26,
  IB: 27,
  MPLS: 28,
  CAN: 29,
  TIPC: 30,
  BLUETOOTH: 31,
  IUCV: 32,
  RXRPC: 33,
  ISDN: 34,
  PHONET: 35,
  IEEE802154: 36,
  CAIF: 37,
  ALG: 38,
  NFC: 39,
  VSOCK: 40,
  KCM: 41,
  QIPCRTR: 42,
  SMC: 43,
  XDP: 44,
  MCTP: 45,
};

const NETLINKS = {
  USERSOCK: 2,
  SOCK_DIAG: 4,
  NFLOG: 5,
  XFRM: 6,
  SELINUX: 7,
  ISCSI: 8,
  AUDIT: 9,
  FIB_LOOKUP: 10,
  CONNECTOR: 11,
  NETFILTER: 12,
  KOBJECT_UEVENT: 15,
  GENERIC: 16,
  SCSITRANSPORT: 18,
  RDMA: 20,
  CRYPTO: 21,
};

/** Docker's own filter knows families, not protocols: they are made in a network namespace that has nothing but loopback. */
const docker = 'open';

function overIp([name, type, protocol]: (typeof OVER_IP)[number]): Attempt[] {
  return [4, 6].map((version) =>
    attempt(`${name} over IPv${version}`, `socket ${version === 4 ? INET : 10} ${type} ${protocol}`, {
      docker,
    }),
  );
}

export const sockets: AttemptClass = {
  title: 'Sockets of unusual kinds',
  why: 'the kernel loads the module of a family or a protocol for whoever asks, and few of them are tested',
  policy: 'open',
  // Their modules would be loaded.
  withoutWall: 'would do harm',
  attempts: [
    ...OVER_IP.flatMap(overIp),
    ...Object.entries(FAMILIES).map(([name, family]) =>
      attempt(
        `family ${name}`,
        `socket ${family} ${name === 'ALG' ? SEQPACKET : name === 'XDP' ? RAW : DGRAM} 0`,
        { docker, ...BY_POLICY_FILTER },
      ),
    ),
    ...Object.entries(NETLINKS).map(([name, protocol]) =>
      attempt(`netlink ${name}`, `socket ${NETLINK} ${RAW} ${protocol}`, { docker }),
    ),
    attempt('raw: ICMP', `socket ${INET} ${RAW} 1`),
    attempt('raw: any protocol', `socket ${INET} ${RAW} 255`),
    attempt('raw: ICMP over IPv6', `socket 10 ${RAW} 58`),
    attempt('packets: raw', `socket ${AF_PACKET} ${RAW} 768`, BY_POLICY_FILTER),
    attempt('packets: without headers', `socket ${AF_PACKET} ${DGRAM} 768`, BY_POLICY_FILTER),
    attempt('packets: the old type', `socket ${INET} ${PACKET} 768`),
    attempt('MPTCP behind bits that the kernel drops', 'wide-socket 262', { docker }),
    attempt('any unusual family, type and protocol', 'unusual-socket', { docker }),
    attempt('a pair of another family', `call socketpair ${INET} ${STREAM} 0 &`),
    attempt('a new interface: dummy', 'new-link dummy', { policy: 'held' }),
    attempt('a new interface: vxlan', 'new-link vxlan', { policy: 'held' }),
    attempt('a new interface: wireguard', 'new-link wireguard', { policy: 'held' }),
    attempt('loopback taken down', 'link-flags 0', { policy: 'held' }),
    attempt('loopback in promiscuous mode', 'link-flags 0x149', { policy: 'held' }),
    attempt('the usual sockets over IP', 'usual-sockets', 'works'),
    attempt('a unix socket', 'socket 1 1 0', inContainers('works')),
    attempt('a pair of unix sockets', 'call socketpair 1 1 0 &', 'works'),
  ],
};
