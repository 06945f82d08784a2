import type { AttemptClass } from './attempt.ts';
import { attempt, BY_POLICY_FILTER, everywhere, forRoot } from './attempt.ts';

const SESSION = -3;
/** ext.docker has the filter of its engine, which lets programs do this. */
const ENGINE = { docker: 'open' } as const;
const ASYNCHRONOUS = { ...ENGINE, ...BY_POLICY_FILTER };
const REFUSED = { withoutWall: 'is refused' } as const;
const HARM = { withoutWall: 'would do harm' } as const;

export const kernelCalls: AttemptClass = {
  title: 'Calls to the kernel that no program inside needs',
  why: 'each is a part of the kernel with faults of its own, or changes the machine',
  policy: 'open',
  attempts: [
    attempt('keyctl: the session keyring', `call keyctl 0 ${SESSION} 1`, BY_POLICY_FILTER),
    attempt('keyctl: a new session', 'call keyctl 1 0', BY_POLICY_FILTER),
    attempt('keyctl: the persistent keyring', 'call keyctl 22 -1 -2', BY_POLICY_FILTER),
    attempt('keyctl: describe', `call keyctl 6 ${SESSION} & 4096`, BY_POLICY_FILTER),
    attempt('keyctl: link', `call keyctl 8 -4 ${SESSION}`, BY_POLICY_FILTER),
    attempt('add_key', `call add_key @user @attempt @x 1 ${SESSION}`, BY_POLICY_FILTER),
    attempt('add_key: keyring', `call add_key @keyring @attempt 0 0 ${SESSION}`, BY_POLICY_FILTER),
    attempt('request_key', `call request_key @user @attempt 0 ${SESSION}`, BY_POLICY_FILTER),
    attempt('bpf: make a map', 'call bpf 0 & 72'),
    attempt('bpf: load a program', 'call bpf 5 & 72'),
    attempt('bpf: next program', 'call bpf 11 & 72'),
    attempt('perf_event_open', 'call perf_event_open & 0 -1 -1 0'),
    attempt('perf_event_open: the machine', 'call perf_event_open & -1 0 -1 0'),
    attempt('io_uring_setup', 'call io_uring_setup 1 &', ASYNCHRONOUS),
    attempt('io_uring_enter', 'call io_uring_enter -1 0 0 0 0 0', ASYNCHRONOUS),
    attempt('io_uring_register', 'call io_uring_register -1 0 0 0', ASYNCHRONOUS),
    attempt('userfaultfd', 'call userfaultfd 0'),
    attempt('userfaultfd: user mode', 'call userfaultfd 1'),
    attempt('fanotify_init', 'call fanotify_init 0 0'),
    attempt('fanotify_init: by file', 'call fanotify_init 0x200 0'),
    attempt('open_by_handle_at: /usr', 'open-handle /usr'),
    attempt('open_by_handle_at: the root of a file system', 'open-root-handle /'),
    attempt('lookup_dcookie', 'call lookup_dcookie 1 & 4096'),
    attempt('acct', 'call acct @/tmp/none'),
    attempt('kexec_load', 'call kexec_load 0 0 0 0xffff'),
    attempt('kexec_file_load', 'call kexec_file_load -1 -1 0 0 0xffff'),
    attempt('init_module', 'call init_module 0 0 @'),
    attempt('finit_module', 'call finit_module -1 @ 0'),
    attempt('delete_module', 'call delete_module @none 0'),
    attempt('create_module', 'call create_module @none 0'),
    attempt('reboot', 'call reboot 0 0 0 0'),
    attempt('settimeofday', 'set-clock', {}, HARM),
    attempt('clock_settime', 'set-realtime-clock', {}, HARM),
    attempt('adjtimex', 'clock-tick'),
    attempt('sethostname', 'call sethostname @probed 6'),
    attempt('setdomainname', 'call setdomainname @probed 6'),
    attempt('syslog: read', 'call syslog 3 & 16'),
    attempt('syslog: size', 'call syslog 10 0 0'),
    attempt('syslog: console off', 'call syslog 6 0 0', {}, HARM),
    attempt('iopl', 'call iopl 3'),
    attempt('ioperm', 'call ioperm 0x80 1 1'),
    attempt('modify_ldt: read', 'call modify_ldt 0 & 16', ENGINE),
    attempt('modify_ldt: write', 'call modify_ldt 1 & 16', ENGINE),
    attempt('vhangup', 'call vhangup', {}, HARM),
    attempt('uselib', 'call uselib @/tmp/none'),
    attempt('ustat', 'call ustat 1 &'),
    attempt('sysfs', 'call sysfs 3'),
    attempt('_sysctl', 'call _sysctl &'),
    attempt('nfsservctl', 'call nfsservctl 0 0 0'),
    attempt('personality: no random addresses', 'call personality 0x0040000'),
    attempt('personality: all that is read is executed', 'call personality 0x0400000'),
    attempt('personality: page zero', 'call personality 0x0100000'),
    attempt('memfd_secret', 'call memfd_secret 0', ENGINE),
    attempt('io_setup: queues of the whole machine', 'call io_setup 1 &', ENGINE),
    attempt('mbind', 'call mbind & 4096 0 0 0 0'),
    attempt('set_mempolicy', 'call set_mempolicy 0 0 0'),
    attempt('lsm_set_self_attr', 'call lsm_set_self_attr 100 & 32 0'),
    attempt('lsm_list_modules', 'call lsm_list_modules & & 0'),
    attempt('capability: SYS_ADMIN', 'capability 21'),
    attempt('capability: SYS_PTRACE', 'capability 19'),
    attempt('capability: SYS_MODULE', 'capability 16'),
    attempt('capability: SYS_RAWIO', 'capability 17'),
    attempt('capability: NET_ADMIN', 'capability 12'),
    attempt('capability: NET_RAW', 'capability 13'),
    attempt('capability: DAC_READ_SEARCH', 'capability 2'),
    attempt('capability: MKNOD', 'capability 27'),
    attempt('capability: BPF', 'capability 39'),
    attempt('capability: SYS_ADMIN, ambient', 'call prctl 47 2 21 0 0', {}, REFUSED),
    attempt('setuid: root', 'call setuid 0', { policy: 'held', ...forRoot('own'), oneId: 'own' }),
    attempt('setxattr: trusted', 'call setxattr @/tmp @trusted.overlay.opaque @y 1 0', { policy: 'held' }),
    attempt('prctl: the map of its own memory', 'call prctl 35 1 0x10000 0 0', { policy: 'held' }, REFUSED),
    attempt('landlock: rules of its own', 'call landlock_create_ruleset 0 0 1', 'works'),
    attempt('name_to_handle_at', 'call name_to_handle_at -100 @/usr & & 0', {
      ...everywhere('told'),
      docker: 'held',
    }),
  ],
};

const NUMBERS = { unshare: 310, mount: 21, ptrace: 26, keyctl: 288, getpid: 20, setns: 346 };
const NUMBERS_X32 = { unshare: 272, mount: 165, keyctl: 250, getpid: 39, setns: 308, bpf: 321 };

export const otherAbis: AttemptClass = {
  title: 'The same calls by the doors of other programs',
  why: 'a filter that looks at numbers of 64 bits alone does not know what they mean to a program of 32 bits',
  policy: 'open',
  attempts: [
    ...Object.entries(NUMBERS).map(([name, number]) =>
      attempt(`int 0x80: ${name}`, `int80 ${number}`, {
        ...BY_POLICY_FILTER,
        docker: name === 'getpid' ? 'own' : 'held',
      }),
    ),
    ...Object.entries(NUMBERS_X32).map(([name, number]) =>
      attempt(`x32: ${name}`, `x32 ${number}`, BY_POLICY_FILTER),
    ),
  ],
};
