import type { AttemptClass } from './attempt.ts';
import { attempt } from './attempt.ts';

const KINDS = {
  user: 0x1000_0000,
  mount: 0x2_0000,
  net: 0x4000_0000,
  pid: 0x2000_0000,
  ipc: 0x0800_0000,
  uts: 0x0400_0000,
  cgroup: 0x0200_0000,
  time: 0x80,
};
const FILES = ['user', 'mnt', 'net', 'pid', 'pid_for_children', 'ipc', 'uts', 'cgroup', 'time'];
const SIGCHLD = 17;
const ALL = Object.values(KINDS).reduce((sum, flag) => sum + flag, 0);
/** The kernel reads the lower 32 bits. */
const HIDDEN = 0x1_0000_0000;

export const namespaces: AttemptClass = {
  title: 'New namespaces, and those of others',
  why: 'root in a new user namespace reaches parts of the kernel that are tested less',
  policy: 'open',
  attempts: [
    ...Object.entries(KINDS).map(([name, flag]) => attempt(`unshare: ${name}`, `call unshare ${flag}`)),
    attempt('unshare: all', `call unshare ${ALL}`),
    attempt('unshare: user and mount', `call unshare ${KINDS.user + KINDS.mount}`),
    ...Object.entries(KINDS)
      .filter(([name]) => name !== 'time')
      .map(([name, flag]) => attempt(`clone: ${name}`, `call clone ${flag + SIGCHLD}`)),
    attempt('clone: user, behind bits that the kernel drops', `call clone ${HIDDEN + KINDS.user + SIGCHLD}`),
    attempt('clone: user and net', `call clone ${KINDS.user + KINDS.net + SIGCHLD}`),
    ...Object.entries(KINDS).map(([name, flag]) => attempt(`clone3: ${name}`, `clone3 ${flag}`)),
    ...FILES.map((name) => attempt(`setns: ${name} of the first process`, `join ${name}`)),
    attempt('setns: by a descriptor of the first process', `join-by-pidfd ${KINDS.mount + KINDS.net}`),
    attempt('setns: without a descriptor', 'call setns -1 0'),
  ],
};
