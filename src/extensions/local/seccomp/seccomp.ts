/**
 * System calls of programs inside, as an OCI seccomp profile. An allowlist: an unknown call gives ENOSYS, so that programs fall
 * back to an older one; a known and dangerous one gives EPERM, which is what they expect of it. The calls for asynchronous files
 * (io_setup) are unknown on purpose: the whole machine has one number of their queues.
 */
import { arch } from 'node:os';
import { socketRules } from './socket-rules.ts';
import { allow, EPERM, is, refuse } from './syscall-rules.ts';
import { terminalRules } from './terminal-rules.ts';

const ENOSYS = 38;

/** CLONE_NEWTIME … CLONE_NEWNET: a new namespace is a new way to the kernel's less tested parts. */
const NEW_NAMESPACES = 0x7e02_0080;

const words = (text: string) => text.trim().split(/\s+/);

const FILES = words(`
  access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fallocate
  fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat
  fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr lchown lgetxattr link linkat listxattr
  llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod mknodat name_to_handle_at newfstatat open openat openat2
  pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr rename
  renameat renameat2 rmdir sendfile setxattr splice stat statfs statx symlink symlinkat sync sync_file_range syncfs tee
  truncate umask unlink unlinkat utime utimensat utimes vmsplice write writev chroot
  inotify_add_watch inotify_init inotify_init1 inotify_rm_watch cachestat`);

const MEMORY = words(`
  brk madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync munlock munlockall munmap
  pkey_alloc pkey_free pkey_mprotect process_mrelease remap_file_pages get_mempolicy map_shadow_stack
  shmat shmctl shmdt shmget`);

const PROCESSES = words(`
  alarm arch_prctl capget capset execve execveat exit exit_group fork vfork futex futex_requeue futex_wait futex_waitv
  futex_wake get_robust_list get_thread_area getcpu getegid geteuid getgid getgroups getitimer getpgid getpgrp getpid getppid
  getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid ioprio_get ioprio_set kill landlock_add_rule
  landlock_create_ruleset landlock_restrict_self pause pidfd_open pidfd_send_signal prctl prlimit64 restart_syscall rseq
  rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
  sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp set_robust_list
  set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid
  setresuid setreuid setrlimit setsid setuid sigaltstack tgkill tkill wait4 waitid`);

const TIME_AND_REST = words(`
  adjtimex clock_adjtime clock_getres clock_gettime clock_nanosleep getrandom gettimeofday nanosleep sysinfo time
  timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times
  uname epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
  eventfd2 poll ppoll pselect6 select signalfd signalfd4
  mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd semctl semget semop
  semtimedop`);

const SOCKETS = words(`
  accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg sendto
  setsockopt shutdown`);

/** Known calls that are refused: with EPERM rather than ENOSYS, as an unprivileged caller would get. */
const REFUSED = words(`
  acct add_key bpf delete_module fanotify_init fanotify_mark finit_module fsconfig fsmount fsopen fspick init_module
  io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind
  migrate_pages modify_ldt mount mount_setattr move_mount move_pages nfsservctl open_by_handle_at open_tree perf_event_open
  pidfd_getfd pivot_root process_madvise process_vm_readv process_vm_writev ptrace quotactl quotactl_fd reboot request_key
  set_mempolicy setdomainname sethostname setns settimeofday clock_settime swapoff swapon syslog umount2 unshare userfaultfd
  ustat uselib vhangup`);

const PERSONALITIES = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff];

const ARCHITECTURES: Partial<Record<string, string[]>> = {
  x64: ['SCMP_ARCH_X86_64'],
  arm64: ['SCMP_ARCH_AARCH64'],
};

/** Returns the profile; `null` for a processor without one: then no sandbox starts. */
export function seccompProfile(architecture = arch()): object | null {
  const architectures = ARCHITECTURES[architecture];
  if (architectures === undefined) return null;
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: ENOSYS,
    architectures,
    syscalls: [
      allow([...FILES, ...MEMORY, ...PROCESSES, ...TIME_AND_REST, ...SOCKETS]),
      refuse(REFUSED, EPERM),
      // clone3 has its flags behind a pointer, which no filter can read: ENOSYS sends every libc back to clone.
      refuse(['clone3'], ENOSYS),
      allow(['clone'], [{ index: 0, value: NEW_NAMESPACES, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }]),
      ...PERSONALITIES.map((value) => allow(['personality'], [is(0, value)])),
      ...terminalRules(),
      ...socketRules(),
    ],
  };
}
