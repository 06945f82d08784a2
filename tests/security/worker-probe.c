/*
 * Tries system calls as a worker of the spawner: each in a process of its own that is confined as the worker is, by the same
 * code. Prints a line for each: name or number, and what came of it. Arguments: the duty, and "all" for every number.
 */
#define _GNU_SOURCE
#include "../../agent/spawner/rights/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct settings settings = {.base = "/"};

#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define TRY(name) {#name, __NR_##name, {-1, -1, -1, -1}}
struct call {
  const char *name;
  long number, words[4];
};
static const struct call CALLS[] = {
    {"clone of a process", __NR_clone, {SIGCHLD}},
    {"clone of a process with its memory", __NR_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}},
    {"clone of a thread with a network", __NR_clone, {THREAD | CLONE_NEWNET}},
    {"clone of a user namespace", __NR_clone, {CLONE_NEWUSER | SIGCHLD}},
    TRY(socket), TRY(socketpair), TRY(connect), TRY(bind), TRY(listen), TRY(accept4), TRY(ptrace), TRY(process_vm_readv),
    TRY(process_vm_writev), TRY(bpf), TRY(perf_event_open), TRY(init_module), TRY(finit_module), TRY(delete_module),
    TRY(kexec_load), TRY(keyctl), TRY(add_key), TRY(request_key), TRY(execve), TRY(execveat), TRY(fork),
    TRY(vfork), TRY(io_uring_setup), TRY(userfaultfd), TRY(open_by_handle_at), TRY(quotactl), TRY(swapon), TRY(acct),
    TRY(pivot_root), TRY(iopl), TRY(ioperm), TRY(syslog), TRY(personality), TRY(pidfd_getfd), TRY(kcmp), TRY(mount),
    TRY(umount2), TRY(move_mount), TRY(open_tree), TRY(mount_setattr), TRY(fsopen), TRY(setns), TRY(unshare), TRY(chroot),
};

/* As a 32-bit program calls: another machine to the filter. */
static long old_call(void) {
  long result = 20;
#if defined __x86_64__
  __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
#endif
  return result;
}

/* Allowed calls with arguments that would reach a disk of the machine, or another process. */
static const struct call ARGUMENTS[] = {
    {"mknodat of a disk", __NR_mknodat, {AT_FDCWD, (long)"disk", S_IFBLK | 0600, 0xfe00}},
    {"mknodat of memory", __NR_mknodat, {AT_FDCWD, (long)"memory", S_IFCHR | 0600, 0x101}},
    {"mknod of a disk", __NR_mknod, {(long)"disk", S_IFBLK | 0600, 0xfe00}},
    {"prlimit64 of the first process", __NR_prlimit64, {1, 7, 0, 0}},
    {"fcntl: whom the kernel signals", __NR_fcntl, {0, F_SETOWN, 1}},
    {"fcntl: whom, in another way", __NR_fcntl, {0, F_SETOWN_EX, 0}},
    {"fcntl: with which signal", __NR_fcntl, {0, F_SETSIG, SIGKILL}},
    {"fcntl: leases", __NR_fcntl, {0, F_SETLEASE, F_RDLCK}},
    {"fcntl: changes of a directory", __NR_fcntl, {0, F_NOTIFY, 1}},
};

static const struct call OLD = {"int 0x80", -1, {0}}, X32 = {"x32", __NR_getpid | 0x40000000, {0}};

static void __attribute__((noreturn)) act(enum duty duty, const struct call *call) {
  if (confine(duty) < 0) _exit(99);
  const long *a = call->words;
  long result = call->number < 0 ? old_call() : syscall(call->number, a[0], a[1], a[2], a[3], -1, -1);
  _exit(result < 0 && errno == ENOSYS ? 2 : result < 0 && errno == EPERM ? 3 : 1);
}

static const char *outcome(enum duty duty, const struct call *call) {
  int status;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(5);
    act(duty, call);
  }
  if (pid < 0 || waitpid(pid, &status, 0) < 0) return "not tried";
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSYS ? "killed" : "reached";
  if (WEXITSTATUS(status) == 99) return "not confined";
  return WEXITSTATUS(status) == 2 ? "absent" : WEXITSTATUS(status) == 3 ? "refused" : "reached";
}

int main(int count, char **words) {
  if (count < 2) return 2;
  enum duty duty = (enum duty)atoi(words[1]);
  for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) printf("%s\t%s\n", CALLS[i].name, outcome(duty, &CALLS[i]));
  /* A mounter can reach all of this by its mounts. */
  for (size_t i = 0; duty != DUTY_MOUNT && i < sizeof ARGUMENTS / sizeof *ARGUMENTS; i++)
    printf("%s\t%s\n", ARGUMENTS[i].name, outcome(duty, &ARGUMENTS[i]));
  printf("int 0x80\t%s\n", outcome(duty, &OLD));
  printf("x32\t%s\n", outcome(duty, &X32));
  for (long number = 0; count > 2 && number < 600; number++)
    printf("%ld\t%s\n", number, outcome(duty, &(struct call){"", number, {-1, -1, -1, -1}}));
  return 0;
}
