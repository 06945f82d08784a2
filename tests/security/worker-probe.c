/*
 * Tries system calls as a worker of the spawner: each in a process of its own that is confined as the worker is, by the same
 * code. Prints a line for each: name or number, and what came of it. Arguments: the duty, and "all" for every number.
 */
#define _GNU_SOURCE
#include "../../agent/spawner/confine.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct settings settings = {.base = "/"};

#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)
#define TRY(name) {#name, __NR_##name, -1}
static const struct {
  const char *name;
  long number, first;
} CALLS[] = {
    {"clone of a process", __NR_clone, SIGCHLD},
    {"clone of a process with its memory", __NR_clone, CLONE_VM | CLONE_VFORK | SIGCHLD},
    {"clone of a thread with a network", __NR_clone, THREAD | CLONE_NEWNET},
    {"clone of a user namespace", __NR_clone, CLONE_NEWUSER | SIGCHLD},
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

static void __attribute__((noreturn)) act(enum duty duty, long number, long first) {
  if (confine(duty) < 0) _exit(99);
  long result = number < 0 ? old_call() : syscall(number, first, -1, -1, -1, -1, -1);
  _exit(result < 0 && errno == ENOSYS ? 2 : result < 0 && errno == EPERM ? 3 : 1);
}

static const char *outcome(enum duty duty, long number, long first) {
  int status;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(5);
    act(duty, number, first);
  }
  if (pid < 0 || waitpid(pid, &status, 0) < 0) return "not tried";
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSYS ? "killed" : "reached";
  if (WEXITSTATUS(status) == 99) return "not confined";
  return WEXITSTATUS(status) == 2 ? "absent" : WEXITSTATUS(status) == 3 ? "refused" : "reached";
}

int main(int count, char **words) {
  if (count < 2) return 2;
  enum duty duty = (enum duty)atoi(words[1]);
  for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) printf("%s\t%s\n", CALLS[i].name, outcome(duty, CALLS[i].number, CALLS[i].first));
  printf("int 0x80\t%s\n", outcome(duty, -1, -1));
  printf("x32\t%s\n", outcome(duty, __NR_getpid | 0x40000000, -1));
  for (long number = 0; count > 2 && number < 600; number++) printf("%ld\t%s\n", number, outcome(duty, number, -1));
  return 0;
}
