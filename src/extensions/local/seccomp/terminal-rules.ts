/**
 * Requests (ioctl) that a program may make of a terminal or another device: all but those that type into a terminal, that set
 * another line discipline (the kernel loads its module at any request, and attaches it to any pseudo-terminal), and those of the
 * console. The kernel reads 32 bits of the request; rules never overlap.
 */
import type { SyscallRule } from './syscall-rules.ts';
import { ALL_BITS, allow, between, EPERM, masked, refuse } from './syscall-rules.ts';

const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
const TIOCSETD = 0x5423;
const REFUSED = [TIOCSTI, TIOCLINUX, TIOCSETD];

export function terminalRules(): SyscallRule[] {
  const starts = [0, ...REFUSED.map((request) => request + 1)];
  const ends = [...REFUSED.map((request) => request - 1), ALL_BITS];
  return [
    ...starts.flatMap((start, n) =>
      between(1, ALL_BITS, start, ends[n] ?? ALL_BITS).map((requests) => allow(['ioctl'], [requests])),
    ),
    ...REFUSED.map((request) => refuse(['ioctl'], EPERM, [masked(1, ALL_BITS, request)])),
  ];
}
