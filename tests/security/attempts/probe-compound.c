/* Attempts of the probe that take more than one call. */
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static long number(const char *word) { return strtol(word, NULL, 0); }

static long clone3(const char *flags) {
  uint64_t arguments[11] = {(uint64_t)number(flags), 0, 0, 0, SIGCHLD};
  return syscall(SYS_clone3, arguments, sizeof arguments);
}

/* Enters a namespace of the first process, by its file. */
static long join(const char *kind) {
  char path[64];
  snprintf(path, sizeof path, "/proc/1/ns/%s", kind);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -1 : syscall(SYS_setns, fd, 0);
}

static long join_by_pidfd(const char *flags) {
  int fd = (int)syscall(SYS_pidfd_open, 1, 0);
  return fd < 0 ? -1 : syscall(SYS_setns, fd, number(flags));
}

static long read_memory(const char *pid) {
  char byte;
  struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
  return process_vm_readv((pid_t)number(pid), &local, 1, &remote, 1, 0);
}

static long write_memory(const char *pid) {
  char byte = 0;
  struct iovec local = {&byte, 1}, remote = {(void *)0x400000, 1};
  return process_vm_writev((pid_t)number(pid), &local, 1, &remote, 1, 0);
}

/* A process of the same user, and a child of this one. */
static long trace_child(const char *unused) {
  (void)unused;
  pid_t child = fork();
  if (child == 0) return pause(), -1;
  long result = ptrace(PTRACE_SEIZE, child, 0, 0);
  int error = errno;
  kill(child, SIGKILL);
  errno = error;
  return result;
}

static long take_descriptor(const char *pid) {
  int pidfd = (int)syscall(SYS_pidfd_open, number(pid), 0);
  return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 1, 0);
}

static long open_handle(const char *path) {
  struct { struct file_handle head; char rest[128]; } handle = {.head = {.handle_bytes = 128}};
  int mount_id, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount_id, 0) < 0) handle.head.handle_bytes = 8;
  return syscall(SYS_open_by_handle_at, fd, &handle, O_RDONLY);
}

/* The directory that holds the root directory of everything, by the number that file systems give it. */
static long open_root_handle(const char *path) {
  struct { struct file_handle head; uint32_t inode, generation; } handle = {{.handle_bytes = 8, .handle_type = 1}, 2, 0};
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return syscall(SYS_open_by_handle_at, fd, &handle, O_RDONLY);
}

static long link_flags(const char *flags) {
  struct ifreq request = {.ifr_name = "lo"};
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  request.ifr_flags = (short)number(flags);
  return ioctl(fd, SIOCSIFFLAGS, &request);
}

/* Asks for a new interface: loads the module of its kind. */
static long new_link(const char *kind) {
  struct { struct nlmsghdr head; struct ifinfomsg info; char rest[64]; } ask = {
      .head = {.nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK}};
  struct rtattr *outer = (struct rtattr *)ask.rest, *inner = outer + 1;
  inner->rta_type = IFLA_INFO_KIND, inner->rta_len = (unsigned short)(sizeof *inner + strlen(kind));
  memcpy(inner + 1, kind, strlen(kind));
  outer->rta_type = IFLA_LINKINFO, outer->rta_len = (unsigned short)(sizeof *outer + ((inner->rta_len + 3u) & ~3u));
  ask.head.nlmsg_len = (unsigned)(NLMSG_LENGTH(sizeof ask.info) + outer->rta_len);
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  struct { struct nlmsghdr head; struct nlmsgerr error; char rest[512]; } answer;
  if (fd < 0 || send(fd, &ask, ask.head.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0) return -1;
  errno = -answer.error.error;
  return errno == 0 ? 0 : -1;
}

static int pseudo_terminal(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0) return -1;
  return open(ptsname(master), O_RDWR | O_NOCTTY);
}

/* The requests of every shell and editor. */
static long own_terminal(const char *unused) {
  (void)unused;
  struct winsize size = {24, 80, 0, 0};
  int fd = pseudo_terminal(), pending;
  return !isatty(fd) || ioctl(fd, TIOCSWINSZ, &size) < 0 || ioctl(fd, TIOCGWINSZ, &size) < 0 ? -1 : ioctl(fd, FIONREAD, &pending);
}

static long push_input(const char *unused) {
  (void)unused;
  char byte = 'x';
  return ioctl(pseudo_terminal(), TIOCSTI, &byte);
}

/* Asks for a line discipline: the kernel loads the module of one that it has not. */
static long line_discipline(const char *discipline) {
  int wanted = (int)number(discipline);
  return ioctl(pseudo_terminal(), TIOCSETD, &wanted);
}

/* The kernel reads 32 bits of the request, a filter sees 64. */
static long wide_line_discipline(const char *discipline) {
  int wanted = (int)number(discipline);
  return syscall(SYS_ioctl, pseudo_terminal(), (1L << 32) | TIOCSETD, &wanted);
}

static long own_clock(const char *unused) {
  (void)unused;
  struct timeval now;
  gettimeofday(&now, NULL);
  return settimeofday(&now, NULL);
}

static long own_realtime_clock(const char *unused) {
  (void)unused;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return clock_settime(CLOCK_REALTIME, &now);
}

/* Sets a tick that the kernel refuses also to a process that may set one. */
static long clock_tick(const char *unused) {
  (void)unused;
  struct timex wanted = {.modes = ADJ_TICK, .tick = 1};
  return adjtimex(&wanted);
}

/* Whether the kernel lists a socket of this name. */
static long sockets_named(const char *name) {
  FILE *file = fopen("/proc/net/unix", "re");
  char line[512];
  int found = 0;
  while (file && fgets(line, sizeof line, file)) found += strstr(line, name) != NULL;
  errno = ENODATA;
  return found ? 0 : -1;
}

static long inherited_descriptors(const char *unused) {
  (void)unused;
  int found = 0;
  /* All but 0 to 2 and the pipe on which the result goes back. */
  for (int fd = 3; fd < 4096; fd++) found += fcntl(fd, F_GETFD) >= 0;
  errno = ENODATA;
  return found > 2 ? 0 : -1;
}

static long core_limit(const char *unused) {
  (void)unused;
  struct { uint64_t soft, hard; } wanted = {1 << 20, 1 << 20};
  return syscall(SYS_prlimit64, 0, 4, &wanted, NULL);
}

/* Changes nothing: the limits are set as they are. */
static long limits(const char *pid) {
  struct { uint64_t soft, hard; } limit;
  if (syscall(SYS_prlimit64, number(pid), 7, NULL, &limit) < 0) return -1;
  return syscall(SYS_prlimit64, number(pid), 7, &limit, NULL);
}

/* Puts a file into the place of the agent; where that is mounted it stays. */
static long replace(const char *file) {
  if (rename(file, "/.init") == 0) return 0;
  if (errno == EBUSY) errno = EPERM;
  return -1;
}

static long realtime(const char *policy) {
  struct sched_param priority = {1};
  return sched_setscheduler(0, (int)number(policy), &priority);
}

static long capability(const char *bit) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{0}};
  long wanted = number(bit);
  data[wanted / 32].effective = data[wanted / 32].permitted = 1u << (wanted % 32);
  return syscall(SYS_capset, &head, data);
}

static long old_call(const char *numbered) {
#if defined __x86_64__
  long result = number(numbered), first = 0x10000000;
  __asm__ volatile("int $0x80" : "+a"(result) : "b"(first), "c"(0L), "d"(0L) : "memory");
  if (result >= 0 || result < -4095) return 0;
  errno = (int)-result;
#else
  (void)numbered;
  errno = ENOSYS;
#endif
  return -1;
}

static long x32_call(const char *numbered) {
#if defined __x86_64__
  return syscall(number(numbered) | 0x40000000, 0x10000000L, 0, 0, 0, 0, 0);
#else
  (void)numbered;
  return errno = ENOSYS, -1;
#endif
}

static bool is_usual(int family, int type, int protocol) {
  if (family == AF_UNIX || (family == AF_NETLINK && protocol == 0)) return true;
  if (family != AF_INET && family != AF_INET6) return false;
  int ping = family == AF_INET ? 1 : 58;
  return protocol == 0 ? type <= 2 : type == 1 ? protocol == 6 : type == 2 && (protocol == 17 || protocol == ping);
}

/* All families, types and protocols but those that programs use. */
static long unusual_socket(const char *unused) {
  (void)unused;
  int pair[2];
  for (int family = 0; family < 48; family++)
    for (int type = 0; type < 12; type++)
      for (int protocol = 0; protocol < 264; protocol++) {
        int fd = is_usual(family, type, protocol) ? -1 : socket(family, type, protocol);
        if (fd >= 0) return fprintf(stderr, "socket(%d, %d, %d)\n", family, type, protocol), fd;
        if (family != AF_UNIX && socketpair(family, type, protocol, pair) == 0) return 0;
      }
  errno = EPROTONOSUPPORT;
  return -1;
}

/* Programs need all of these; IPv6 may be off. */
static long usual_sockets(const char *unused) {
  (void)unused;
  static const struct { int family, type, protocol; } USED[] = {
      {AF_INET, SOCK_STREAM, 0},  {AF_INET, SOCK_STREAM, 6},  {AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0}, {AF_INET, SOCK_DGRAM, 17},
      {AF_INET6, SOCK_STREAM, 6}, {AF_INET6, SOCK_DGRAM, 17}, {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0}, {AF_NETLINK, SOCK_RAW, 0}};
  for (size_t i = 0; i < sizeof USED / sizeof *USED; i++)
    if (socket(USED[i].family, USED[i].type, USED[i].protocol) < 0 && errno != EAFNOSUPPORT) return -1;
  return 0;
}

/* The kernel reads 32 bits of each argument, a filter sees 64. */
static long wide_socket(const char *protocol) {
  return syscall(SYS_socket, (1L << 32) | AF_INET, (1L << 32) | SOCK_STREAM, (1L << 32) | number(protocol));
}


static const struct {
  const char *name;
  long (*perform)(const char *);
} COMPOUND[] = {
    {"clone3", clone3}, {"join", join}, {"join-by-pidfd", join_by_pidfd}, {"read-memory", read_memory},
    {"write-memory", write_memory}, {"trace-child", trace_child}, {"take-descriptor", take_descriptor},
    {"open-handle", open_handle}, {"open-root-handle", open_root_handle}, {"link-flags", link_flags}, {"new-link", new_link},
    {"push-input", push_input}, {"line-discipline", line_discipline}, {"wide-line-discipline", wide_line_discipline}, {"own-terminal", own_terminal}, {"set-clock", own_clock},
    {"set-realtime-clock", own_realtime_clock}, {"clock-tick", clock_tick}, {"sockets-named", sockets_named},
    {"inherited-descriptors", inherited_descriptors}, {"core-limit", core_limit}, {"limits", limits}, {"replace", replace}, {"realtime", realtime},
    {"capability", capability}, {"int80", old_call}, {"x32", x32_call}, {"unusual-socket", unusual_socket},
    {"usual-sockets", usual_sockets}, {"wide-socket", wide_socket},
};

long compound(const char *name, const char *argument) {
  for (size_t i = 0; i < sizeof COMPOUND / sizeof *COMPOUND; i++)
    if (strcmp(COMPOUND[i].name, name) == 0) return COMPOUND[i].perform(argument);
  return -2;
}
