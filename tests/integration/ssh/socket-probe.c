/*
 * Tries every way to a unix socket from a program, one after another: `socket-probe PATH PID`, where PATH is a listening
 * socket outside and PID a process of the same user outside. Prints "name<TAB>result" for each: 0, an errno, or `signal N`.
 * `socket-probe --no-filters PROGRAM ARGUMENT...` runs a program for which the kernel takes no further filter of calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_un outside = {.sun_family = AF_UNIX}, hidden = {.sun_family = AF_UNIX};
static long other;

static long connected(int type, const struct sockaddr_un *to) {
  int fd = socket(AF_UNIX, type, 0);
  return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)to, sizeof *to);
}

static long by_path(void) { return connected(SOCK_STREAM, &outside); }
static long by_datagram(void) { return connected(SOCK_DGRAM, &outside); }
static long by_abstract_name(void) { return connected(SOCK_STREAM, &hidden); }

static long pair(int type, int fds[2]) { return socketpair(AF_UNIX, type, 0, fds); }
static long pair_of_datagrams(void) {
  int fds[2];
  if (pair(SOCK_DGRAM | SOCK_CLOEXEC, fds) != 0) return -1;
  return sendto(fds[0], "x", 1, 0, (struct sockaddr *)&outside, sizeof outside) < 0 ? -1 : 0;
}
static long raw_pair(void) {
  int fds[2];
  return pair(SOCK_RAW, fds);
}
static long stream_connected_anew(void) {
  int fds[2];
  if (pair(SOCK_STREAM, fds) != 0) return -1;
  close(fds[1]);
  return connect(fds[0], (struct sockaddr *)&outside, sizeof outside);
}
static long pair_that_listens(void) {
  int fds[2];
  if (pair(SOCK_STREAM, fds) != 0) return -1;
  return listen(fds[0], 1);
}

static long stream_pair(void) {
  int fds[2];
  char byte;
  if (pair(SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, fds) != 0 || write(fds[0], "x", 1) != 1) return -1;
  return read(fds[1], &byte, 1) == 1 ? 0 : -1;
}
static long packet_pair(void) {
  int fds[2];
  return pair(SOCK_SEQPACKET | SOCK_CLOEXEC, fds);
}
static long tcp(void) { return socket(AF_INET, SOCK_STREAM, 0) < 0 ? -1 : 0; }
static long interfaces(void) { return socket(AF_NETLINK, SOCK_RAW, 0) < 0 ? -1 : 0; }
static long virtual_machines(void) { return socket(40, SOCK_STREAM, 0) < 0 ? -1 : 0; }
static long ciphers(void) { return socket(38, SOCK_SEQPACKET, 0) < 0 ? -1 : 0; }

static long io_uring(void) {
  static char parameters[120];
  return syscall(425, 8, parameters) < 0 ? -1 : 0;
}
static long keyring(void) { return syscall(SYS_keyctl, 0, -3, 0) < 0 ? -1 : 0; }
static long traced(void) { return ptrace(PTRACE_SEIZE, (pid_t)other, 0, 0); }
static long taken_descriptor(void) {
  int fd = (int)syscall(434, (int)other, 0);
  return fd < 0 ? -1 : syscall(438, fd, 0, 0) < 0 ? -1 : 0;
}

/* Those that this one was started with. */
static long inherited(void) {
  for (int fd = 0; fd < 1024; fd++) {
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX) return 0;
  }
  errno = ENOENT;
  return -1;
}

#if defined __x86_64__
static long by_x32(void) { return syscall(0x40000000 | SYS_socket, AF_UNIX, SOCK_STREAM, 0) < 0 ? -1 : 0; }
static long by_i386(void) {
  long result;
  /* socket is 359 there. */
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(359), "b"(AF_UNIX), "c"(SOCK_STREAM), "d"(0) : "memory", "r8", "r9", "r10", "r11");
  errno = (int)-result;
  return result < 0 ? -1 : 0;
}
#endif

static void attempt(const char *name, long (*call)(void)) {
  int status;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(call() == 0 ? 0 : errno);
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("%s\tsignal %d\n", name, WTERMSIG(status));
  else printf("%s\t%d\n", name, WEXITSTATUS(status));
}

static int without_filters(char **program) {
  struct sock_filter refusing[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {sizeof refusing / sizeof *refusing, refusing};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 1;
  execv(*program, program);
  return 1;
}

#define TRY(call) attempt(#call, call)

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "--no-filters") == 0) return without_filters(argv + 2);
  if (argc != 3 || strlen(argv[1]) >= sizeof outside.sun_path) return 2;
  strcpy(outside.sun_path, argv[1]);
  strcpy(hidden.sun_path + 1, "sandboxer-socket-probe");
  other = atol(argv[2]);
  TRY(by_path), TRY(by_datagram), TRY(by_abstract_name), TRY(pair_of_datagrams), TRY(raw_pair);
  TRY(stream_connected_anew), TRY(pair_that_listens);
  TRY(stream_pair), TRY(packet_pair), TRY(tcp), TRY(interfaces), TRY(virtual_machines), TRY(ciphers);
  TRY(io_uring), TRY(keyring), TRY(traced), TRY(taken_descriptor), TRY(inherited);
#if defined __x86_64__
  TRY(by_x32), TRY(by_i386);
#endif
  return 0;
}
