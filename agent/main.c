#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"

#define MAX_BOOT_SPECS 16
/* Exit code: another agent already listens there, and answers. */
#define EXIT_TAKEN 3
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

Agent agent;

typedef struct {
  Io io;
  bool check_peer;
} Door;

static Door door;
static int spare_fd = -1;
static bool stdio_only;

typedef struct {
  const char *listen_path, *call_path, *relay_path, *boot[MAX_BOOT_SPECS];
  size_t boot_len;
  int listen_fd, ready_fd;
  bool forward, stdio, daemon, loopback, any_ip, keep_capabilities, confined;
  ListenerPeer relay_to;
  Confinement confinement;
} Options;

static const char usage[] =
    "usage: sandboxer-agent [--init] [--listen-fd N | --listen PATH [--daemon] | --call PATH | --stdio]\n"
    "                       [--ready-fd N] [--user NAME|UID[:NAME|GID]] [--cwd DIR] [--nofile N] [--oom-score N]\n"
    "                       [--loopback] [--any-ip] [--boot-listen tcp|udp:ADDRESS:PORT]... [--keep-capabilities]\n"
    "                       [--confine-read PATH]... [--confine-write PATH]...\n"
    "       sandboxer-agent --can-confine\n"
    "       sandboxer-agent --relay PATH [--peer PID[:SINCE]]\n"
    "       sandboxer-agent --forward PORT=ADDRESS:PORT...\n"
    "       sandboxer-agent --version\n";

void say(const char *format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  dprintf(2, "sandboxer-agent: %s\n", line);
}

/* Background programs go on without a host; the agent then waits for them, so that their output has a reader. */
static void leave_when_idle(Timer *timer) {
  if (processes_running() == 0) loop_stop();
  else (void)timer_set(timer, 200);
}

static Timer leaving = {.fire = leave_when_idle};

void agent_stdio_gone(void) {
  if (!stdio_only || getpid() == 1) return;
  (void)timer_set(&leaving, 0);
}

static bool peer_may(int fd) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == 0 || peer.uid == agent.uid);
}

static void door_ready(Io *io, uint32_t events) {
  Door *d = OWNER(Door, io, io);
  (void)events;
  for (;;) {
    int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      int bytes = 1024 * 1024;
      (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
      if (!d->check_peer || peer_may(fd)) (void)conn_open(fd, fd);
      else close(fd);
      continue;
    }
    if (errno == EAGAIN) return;
    if (errno == EMFILE || errno == ENFILE) {
      /* Closes the surplus connection, so that its client does not wait for ever. */
      if (spare_fd < 0) return;
      close(spare_fd);
      fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC);
      if (fd >= 0) close(fd);
      spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (fd < 0) return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

static bool open_door(int fd, bool check_peer) {
  door.check_peer = check_peer;
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  return io_open(&door.io, fd, EPOLLIN, door_ready);
}

/* Listens under a temporary name first: a client that finds the path can connect. A socket without a listener is replaced. */
static int bind_and_show(const struct sockaddr_un *shown, const struct sockaddr_un *first) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int error = fd < 0 || probe < 0 ? errno : 0;
  if (error == 0 && connect(probe, (const struct sockaddr *)shown, sizeof *shown) == 0) error = EADDRINUSE;
  if (probe >= 0) close(probe);
  if (error == 0) {
    (void)unlink(first->sun_path);
    if (bind(fd, (const struct sockaddr *)first, sizeof *first) != 0) error = errno;
  }
  if (error == 0 && (listen(fd, 64) != 0 || rename(first->sun_path, shown->sun_path) != 0)) error = errno;
  if (error == 0) return fd;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

/*
 * Lets one of several agents that begin at the same time listen; the others get EADDRINUSE: a lock covers the check of the path
 * and the rename to it. Where no lock is possible, the last agent to begin is the one that clients find.
 */
static int listen_on(const char *path) {
  struct sockaddr_un shown = {.sun_family = AF_UNIX}, first = shown;
  char lock[sizeof shown.sun_path + 1];
  if (strlen(path) + 5 >= sizeof shown.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(shown.sun_path, path);
  snprintf(first.sun_path, sizeof first.sun_path, "%.100s.new", path);
  snprintf(lock, sizeof lock, "%.100s.lock", path);
  mode_t before = umask(0177);
  int held = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  while (held >= 0 && flock(held, LOCK_EX) != 0 && errno == EINTR);
  int fd = bind_and_show(&shown, &first), error = errno;
  if (held >= 0) close(held);
  umask(before);
  errno = error;
  return fd;
}

static bool number(const char *text, long *value) {
  char *end;
  *value = strtol(text, &end, 10);
  return *text != 0 && *end == 0;
}

static bool take_option(Options *o, const char *name, const char *value, bool *used) {
  long n = 0;
  *used = false;
  if (strcmp(name, "--init") == 0) return agent.init = true;
  if (strcmp(name, "--stdio") == 0) return o->stdio = true;
  if (strcmp(name, "--daemon") == 0) return o->daemon = true;
  if (strcmp(name, "--loopback") == 0) return o->loopback = true;
  if (strcmp(name, "--any-ip") == 0) return o->any_ip = o->loopback = true;
  if (strcmp(name, "--keep-capabilities") == 0) return o->keep_capabilities = true;
  *used = true;
  if (value == NULL) return false;
  if (strcmp(name, "--listen") == 0) return (o->listen_path = value) != NULL;
  if (strcmp(name, "--call") == 0) return (o->call_path = value) != NULL;
  if (strcmp(name, "--forward") == 0) return o->forward = forward_add(value);
  if (strcmp(name, "--relay") == 0) return (o->relay_path = value) != NULL;
  if (strcmp(name, "--peer") == 0) return parse_listener(value, &o->relay_to);
  if (strcmp(name, "--user") == 0) return (agent.user = value) != NULL;
  if (strcmp(name, "--cwd") == 0) return *(agent.cwd = value) == '/';
  if (strcmp(name, "--confine-read") == 0 && o->confinement.read_len < MAX_CONFINED)
    return o->confined = (o->confinement.read[o->confinement.read_len++] = value) != NULL;
  if (strcmp(name, "--confine-write") == 0 && o->confinement.write_len < MAX_CONFINED)
    return o->confined = (o->confinement.write[o->confinement.write_len++] = value) != NULL;
  if (strcmp(name, "--boot-listen") == 0 && o->boot_len < MAX_BOOT_SPECS) return (o->boot[o->boot_len++] = value) != NULL;
  if (!number(value, &n)) return false;
  if (strcmp(name, "--oom-score") == 0) return agent.oom_score = (int)n, n >= -1000 && n <= 1000;
  if (n < 0) return false;
  if (strcmp(name, "--listen-fd") == 0) return o->listen_fd = (int)n, true;
  if (strcmp(name, "--ready-fd") == 0) return o->ready_fd = (int)n, true;
  if (strcmp(name, "--nofile") == 0) return agent.open_files = (rlim_t)n, true;
  return false;
}

static bool take_options(int argc, char **argv, Options *o) {
  for (int i = 1; i < argc; i++) {
    bool used;
    if (!take_option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &used)) return false;
    if (used) i++;
  }
  return true;
}

/* Returns whether the user namespace maps this uid. A namespace with one user has no other user to become. */
static bool is_mapped(unsigned long uid) {
  unsigned long first, outside, count;
  bool mapped = false, read_any = false;
  FILE *map = fopen("/proc/self/uid_map", "re");
  if (map == NULL) return true;
  while (fscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3) {
    read_any = true;
    if (uid >= first && uid - first < count) mapped = true;
  }
  fclose(map);
  return mapped || !read_any;
}

/* Closes the descriptors that the starting process left open. */
static void close_others(int a, int b) {
  int low = a < b ? a : b, high = a < b ? b : a;
  unsigned from = 3;
  for (int i = 0; i < 2; i++) {
    int kept = i == 0 ? low : high;
    if (kept < (int)from) continue;
    if (kept > (int)from) (void)syscall(SYS_close_range, from, (unsigned)kept - 1, 0u);
    from = (unsigned)kept + 1;
  }
  (void)syscall(SYS_close_range, from, ~0u, 0u);
}

static bool prepare(const Options *o) {
  struct rlimit files;
  uint32_t random = 0;
  /* An inherited SIG_IGN would be passed on to programs; the starting process may have set other handlers. */
  for (int signo = 1; signo < 32; signo++) signal(signo, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  umask(0);
  agent.uid = geteuid();
  agent.gid = getegid();
  agent.privileged = agent.uid == 0;
  if (agent.user == NULL && agent.privileged && is_mapped(1000)) agent.user = "1000";
  if (getrlimit(RLIMIT_NOFILE, &agent.own_files) == 0) {
    files = agent.own_files;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
  }
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = (uint32_t)getpid() ^ (uint32_t)now_ms();
  snprintf(agent.run_id, sizeof agent.run_id, "%08x", random);
  if (getpid() != 1) (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (agent.init) init_begin();
  agent.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (agent.null_fd < 0 || chdir("/") != 0) return false;
  if (o->loopback || agent.init) {
    if (!init_network(o->any_ip) && o->loopback) say("the loopback interface could not be set up");
  }
  return loop_start() && children_start() && spawn_start();
}

static bool is_socket(int fd) {
  struct stat st;
  return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

static bool confined_by(const Confinement *confinement) {
  const char *lacking = confine(confinement);
  if (lacking != NULL) say("cannot confine: %s: %s", lacking, strerror(errno));
  return lacking == NULL;
}

/*
 * Forks away once the socket listens, so that the caller may connect as soon as this process ends. The process that stays listens
 * anew, so that the kernel names it as the listener; the one that leaves prints "agent PID SINCE" of the first.
 */
static bool detach_from_caller(int fd) {
  int ready[2];
  char listens = 0;
  if (pipe2(ready, O_CLOEXEC) != 0) return false;
  pid_t pid = fork();
  if (pid < 0) return false;
  if (pid > 0) {
    close(ready[1]);
    if (read(ready[0], &listens, 1) != 1) _exit(1);
    dprintf(1, "agent %d %llu\n", (int)pid, process_since(pid));
    _exit(0);
  }
  if (listen(fd, 64) != 0 || write(ready[1], "", 1) != 1) _exit(1);
  close(ready[0]);
  close(ready[1]);
  (void)setsid();
  init_begin();
  return true;
}

int main(int argc, char **argv) {
  Options o = {.listen_fd = 3, .ready_fd = -1};
  /* Before anything else: from here on no program of the same user can trace the agent, or take its descriptors. */
  (void)prctl(PR_SET_DUMPABLE, 0);
  agent.oom_score = 500;
  if (argc == 2 && strcmp(argv[1], "--version") == 0) {
    printf("sandboxer-agent protocol %d\n", PROTOCOL_VERSION);
    return 0;
  }
  /* Tests by confining itself: this process has nothing else to do. */
  if (argc == 2 && strcmp(argv[1], "--can-confine") == 0) return !confined_by(&o.confinement);
  if (!take_options(argc, argv, &o)) {
    dprintf(2, "%s", usage);
    return 2;
  }
  if (o.relay_path != NULL) {
    signal(SIGPIPE, SIG_IGN);
    return relay_stdio(o.relay_path, &o.relay_to);
  }
  if (o.forward) return forward_run();
  int fd = o.listen_fd;
  if (o.listen_path != NULL && (fd = listen_on(o.listen_path)) < 0) {
    int error = errno;
    say("cannot listen on %s: %s", o.listen_path, strerror(error));
    return error == EADDRINUSE ? EXIT_TAKEN : 1;
  }
  /* Before the socket answers: an agent that cannot be confined must not start. */
  if (o.confined && !confined_by(&o.confinement)) {
    if (o.listen_path != NULL) (void)unlink(o.listen_path);
    return 1;
  }
  if (o.daemon && !detach_from_caller(fd)) return 1;
  if (o.ready_fd < 0 && agent.init) o.ready_fd = 4;
  close_others(o.stdio || o.call_path != NULL ? -1 : fd, o.ready_fd);
  /* Checked now: a later file of the agent could take the same descriptor number. */
  bool ready = o.ready_fd >= 0 && is_socket(o.ready_fd);
  if (!ready) o.ready_fd = -1;
  if (!prepare(&o)) {
    say("cannot start: %s", strerror(errno));
    return 1;
  }
  for (size_t i = 0; i < o.boot_len; i++) {
    int error = boot_listen(o.boot[i]);
    if (error != 0) say("cannot listen on %s: %s", o.boot[i], strerror(error));
  }
  if (agent.init && !o.keep_capabilities && agent.privileged && !cut_capabilities())
    say("not all capabilities could be given up");
  stdio_only = o.stdio;
  bool opened = o.stdio       ? conn_open(0, 1)
                : o.call_path ? caller_start(o.call_path)
                              : is_socket(fd) && open_door(fd, o.listen_path != NULL);
  if (!opened) {
    if (o.call_path != NULL) say("cannot call %s: %s", o.call_path, strerror(errno));
    else say("there is nothing to listen on: give a listening socket as fd %d, --listen, --call or --stdio", fd);
    return 1;
  }
  if (ready) report_ready(o.ready_fd);
  loop_run();
  processes_end();
  return 0;
}
