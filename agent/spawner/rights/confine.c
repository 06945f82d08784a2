/*
 * Restricts a worker of the spawner before it reads files that a sandbox wrote: to the capabilities of its duty, no more by exec,
 * no network (the spawner has none), and the system calls of its duty. A call that only an attacker would make ends the worker;
 * any other that is not listed fails as unknown, as in an older kernel.
 */
#define _GNU_SOURCE
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/btrfs.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "the filter of system calls knows x86-64 and arm64"
#endif

#define CAN(name) (1ull << CAP_##name)
#define FILES (CAN(CHOWN) | CAN(DAC_OVERRIDE) | CAN(FOWNER) | CAN(FSETID))
/* An overlay uses the capabilities of the process that mounts it: all that programs inside may do to their own files. */
#define OVERLAY (FILES | CAN(DAC_READ_SEARCH) | CAN(MKNOD) | CAN(SETFCAP))

/* Capabilities that neither the spawner nor a runtime ever needs. */
#define NEVER                                                                                                          \
  (CAN(SYS_MODULE) | CAN(SYS_RAWIO) | CAN(SYS_BOOT) | CAN(SYS_TIME) | CAN(SYSLOG) | CAN(PERFMON) | CAN(WAKE_ALARM) |   \
   CAN(BLOCK_SUSPEND) | CAN(AUDIT_CONTROL) | CAN(AUDIT_READ) | CAN(MAC_OVERRIDE) | CAN(SYS_TTY_CONFIG) |               \
   CAN(SYS_PACCT) | CAN(LEASE))

int confine_spawner(void) { return capabilities_keep(~NEVER); }

/* SYS_ADMIN is needed to read and write the marks of overlayfs outside of a user namespace. */
static uint64_t marks(void) { return settings.usermap[0] ? 0 : CAN(SYS_ADMIN); }

static uint64_t capabilities_of(enum duty duty) {
  switch (duty) {
    case DUTY_UNPACK: return FILES;
    case DUTY_UNPACK_MARKS: return FILES | CAN(MKNOD) | marks();
    case DUTY_PACK: return CAN(DAC_READ_SEARCH) | marks();
    case DUTY_READ: return CAN(DAC_READ_SEARCH);
    /* Copies make each file as its owner; SETPCAP sets the securebit that keeps the capabilities across that change. */
    case DUTY_COPY:
      return FILES | CAN(MKNOD) | CAN(SETUID) | CAN(SETGID) | CAN(SETPCAP) | CAN(SETFCAP) | marks();
    case DUTY_REMOVE: return CAN(DAC_OVERRIDE) | CAN(FOWNER) | (on_subvolumes() ? CAN(SYS_ADMIN) : 0);
    default: return OVERLAY | CAN(SYS_ADMIN) | CAN(SYS_CHROOT) | CAN(SETUID) | CAN(SETGID) | CAN(KILL);
  }
}

#define CALL(name) __NR_##name
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IF_NOT(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, value)
#define ABSENT (SECCOMP_RET_ERRNO | ENOSYS)

/* Files, memory and threads of the worker's own. None of these calls makes a process, a connection or a mount. */
static const int ALLOWED[] = {
    CALL(brk), CALL(chdir), CALL(clock_gettime), CALL(clock_nanosleep), CALL(close), CALL(close_range), CALL(copy_file_range),
    CALL(dup), CALL(dup3), CALL(exit), CALL(exit_group), CALL(faccessat), CALL(faccessat2), CALL(fadvise64), CALL(fallocate),
    CALL(fchdir), CALL(fchmod), CALL(fchmodat), CALL(fchown), CALL(fchownat), CALL(fdatasync), CALL(fgetxattr),
    CALL(flistxattr), CALL(fsetxattr), CALL(fstat), CALL(fstatfs), CALL(fsync), CALL(ftruncate), CALL(futex), CALL(getcwd),
    CALL(getdents64), CALL(getegid), CALL(geteuid), CALL(getgid), CALL(getpid), CALL(getppid), CALL(getpriority),
    CALL(getrandom), CALL(gettid), CALL(gettimeofday), CALL(getuid), CALL(linkat), CALL(lseek), CALL(madvise), CALL(mkdirat),
    CALL(mmap), CALL(mprotect), CALL(mremap), CALL(munmap), CALL(nanosleep), CALL(newfstatat), CALL(openat),
    CALL(ppoll), CALL(pread64), CALL(pwrite64), CALL(read), CALL(readlinkat), CALL(readv), CALL(recvmsg),
    CALL(renameat), CALL(renameat2), CALL(restart_syscall), CALL(rseq), CALL(rt_sigaction), CALL(rt_sigprocmask),
    CALL(rt_sigreturn), CALL(sched_getaffinity), CALL(sched_yield), CALL(sendfile), CALL(set_robust_list), CALL(setfsgid),
    CALL(setfsuid), CALL(shutdown), CALL(statfs), CALL(statx), CALL(symlinkat), CALL(syncfs), CALL(sysinfo), CALL(umask),
    CALL(uname), CALL(unlinkat), CALL(utimensat), CALL(write), CALL(writev),
#if defined __SANITIZE_ADDRESS__
    CALL(sigaltstack),
#endif
#if defined __x86_64__
    CALL(access), CALL(chmod), CALL(chown), CALL(dup2), CALL(getdents), CALL(lchown), CALL(link), CALL(lstat), CALL(mkdir),
    CALL(open), CALL(poll), CALL(readlink), CALL(rename), CALL(rmdir), CALL(stat), CALL(symlink), CALL(unlink),
#endif
};

/* Calls that no worker makes. */
static const int DEADLY[] = {
    CALL(accept), CALL(accept4), CALL(acct), CALL(add_key), CALL(adjtimex), CALL(bind), CALL(bpf), CALL(clock_adjtime),
    CALL(clock_settime), CALL(connect), CALL(delete_module), CALL(execve), CALL(execveat), CALL(fanotify_init),
    CALL(finit_module), CALL(init_module), CALL(io_uring_enter), CALL(io_uring_register), CALL(io_uring_setup), CALL(kcmp),
    CALL(kexec_file_load), CALL(kexec_load), CALL(keyctl), CALL(listen), CALL(open_by_handle_at),
    CALL(perf_event_open), CALL(personality), CALL(pidfd_getfd), CALL(pivot_root), CALL(process_vm_readv),
    CALL(process_vm_writev), CALL(ptrace), CALL(quotactl), CALL(reboot), CALL(request_key), CALL(sethostname),
    CALL(settimeofday), CALL(socket), CALL(socketpair), CALL(swapoff), CALL(swapon), CALL(syslog), CALL(userfaultfd),
    CALL(vhangup),
#if defined __x86_64__
    CALL(fork), CALL(ioperm), CALL(iopl), CALL(modify_ldt), CALL(vfork),
#endif
};

/* Calls that only a mounter makes. */
static const int MOUNTING[] = {
    CALL(chroot), CALL(fsconfig), CALL(fsmount), CALL(fsopen), CALL(fspick), CALL(mount), CALL(mount_setattr),
    CALL(move_mount), CALL(open_tree), CALL(setns), CALL(umount2), CALL(unshare),
};

/* Copies that share blocks; disks of btrfs. */
static const unsigned long IOCTLS[] = {FICLONE, BTRFS_IOC_SNAP_CREATE_V2, BTRFS_IOC_SNAP_DESTROY};

/* Descriptors and locks of the worker's own; other values make the kernel signal another process. */
static const unsigned long FCNTLS[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW};
/* Device 0, the mark of overlayfs, also the value for a pipe and a file; the process itself. */
static const unsigned long NONE[] = {0};

#define NAMESPACES                                                                                                     \
  (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE)

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define MOST (16 + 2 * (COUNT(ALLOWED) + COUNT(DEADLY) + COUNT(MOUNTING) + COUNT(IOCTLS) + COUNT(FCNTLS)) + 48)

static struct sock_filter program[MOST];
static unsigned short length;

static void add(struct sock_filter instruction) { program[length++] = instruction; }

static void answer_to(const int *calls, size_t count, unsigned answer) {
  for (size_t i = 0; i < count; i++) {
    add((struct sock_filter)IF_NOT((unsigned)calls[i], 1));
    add((struct sock_filter)ANSWER(answer));
  }
}

/* Allows a call with these values of an argument. The upper half is ignored: the kernel has the numbers of ioctl, fcntl and prctl
 * in 32 bits, a device and a pid. */
static void allow_with(int call, int argument, const unsigned long *values, size_t count, unsigned otherwise) {
  add((struct sock_filter)IF_NOT((unsigned)call, (unsigned char)(2 + 2 * count)));
  add((struct sock_filter)LOAD(args[argument]));
  for (size_t i = 0; i < count; i++) {
    add((struct sock_filter)IF_NOT((unsigned)values[i], 1));
    add((struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
  }
  add((struct sock_filter)ANSWER(otherwise));
}

static int filter_calls(enum duty duty) {
  static const unsigned long SECURITY_BITS[] = {PR_SET_SECUREBITS};
  const unsigned long self[] = {(unsigned long)getpid()};
  length = 0;
  add((struct sock_filter)LOAD(arch));
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
  add((struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
  add((struct sock_filter)LOAD(nr));
#if defined __x86_64__
  /* x32: the same calls by other numbers. */
  add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  add((struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
#endif
  answer_to(DEADLY, COUNT(DEADLY), SECCOMP_RET_KILL_PROCESS);
  /* Allows clone for a thread only, neither a process nor a namespace. */
  add((struct sock_filter)IF_NOT(CALL(clone), 5));
  add((struct sock_filter)LOAD(args[0]));
  add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, CLONE_THREAD | NAMESPACES));
  add((struct sock_filter)IF_NOT(CLONE_THREAD, 1));
  add((struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
  add((struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
  add((struct sock_filter)IF_NOT(CALL(clone3), 1));
  add((struct sock_filter)ANSWER(ABSENT));
  if (duty == DUTY_MOUNT) add((struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
  else {
    answer_to(MOUNTING, COUNT(MOUNTING), SECCOMP_RET_KILL_PROCESS);
    answer_to(ALLOWED, COUNT(ALLOWED), SECCOMP_RET_ALLOW);
    allow_with(CALL(ioctl), 1, IOCTLS, COUNT(IOCTLS), SECCOMP_RET_ERRNO | ENOTTY);
    allow_with(CALL(prctl), 0, SECURITY_BITS, COUNT(SECURITY_BITS), SECCOMP_RET_ERRNO | EPERM);
    allow_with(CALL(fcntl), 1, FCNTLS, COUNT(FCNTLS), SECCOMP_RET_KILL_PROCESS);
    allow_with(CALL(prlimit64), 0, NONE, COUNT(NONE), SECCOMP_RET_KILL_PROCESS);
    allow_with(CALL(mknodat), 3, NONE, COUNT(NONE), SECCOMP_RET_KILL_PROCESS);
#if defined __x86_64__
    allow_with(CALL(mknod), 2, NONE, COUNT(NONE), SECCOMP_RET_KILL_PROCESS);
#endif
    allow_with(CALL(tgkill), 0, self, 1, SECCOMP_RET_KILL_PROCESS);
    add((struct sock_filter)ANSWER(ABSENT));
  }
  struct sock_fprog filter = {length, program};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* Confines for good. On -1 do not begin the work. */
int confine(enum duty duty) {
  if (capabilities_keep(capabilities_of(duty)) < 0) return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
  return filter_calls(duty);
}

/* Confines as confine() does, with this directory as the root directory: files outside of it have no name any more. */
int confine_below(const char *directory, enum duty duty) {
  return chroot(directory) < 0 || chdir("/") < 0 ? -1 : confine(duty);
}
