#define _GNU_SOURCE
#include "rights/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SPAWNER_BUILD
#define SPAWNER_BUILD "unknown"
#endif
#define WATCHED_MAX 65536

struct settings settings = {.pool = 8, .linger_ms = 60000, .build = SPAWNER_BUILD};
bool leaving;

static struct watched {
  void (*handle)(void *, uint32_t);
  void *context;
  uint32_t generation; /* counts owners of the descriptor: queued events of an earlier owner are dropped */
} watched[WATCHED_MAX];
static int loop, deadline_timer, linger_timer;

void say(const char *format, ...) {
  char text[1024], time_text[32];
  time_t now = time(NULL);
  struct tm parts;
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  strftime(time_text, sizeof time_text, "%FT%TZ", gmtime_r(&now, &parts));
  dprintf(2, "%s %s\n", time_text, text);
}

int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000ll + now.tv_nsec / 1000000;
}

static void __attribute__((noreturn)) refuse(const char *what) {
  say("%s: %s", what, strerror(errno));
  exit(1);
}

/* Allocates memory shared with forked processes. */
void *share(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse("memory");
  return memory;
}

void watch_fd(int fd, uint32_t events, void (*handle)(void *, uint32_t), void *context) {
  if (fd >= WATCHED_MAX) return;
  struct watched *one = &watched[fd];
  *one = (struct watched){handle, context, one->generation + 1};
  struct epoll_event event = {.events = events, .data.u64 = (uint64_t)one->generation << 32 | (uint32_t)fd};
  epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

void unwatch_fd(int fd) {
  if (fd < 0 || fd >= WATCHED_MAX) return;
  watched[fd].handle = NULL;
  epoll_ctl(loop, EPOLL_CTL_DEL, fd, NULL);
}

static void set_timer(int timer, int64_t at_ms) {
  struct itimerspec when = {0};
  if (at_ms != INT64_MAX) {
    when.it_value.tv_sec = at_ms / 1000;
    when.it_value.tv_nsec = at_ms % 1000 * 1000000 + 1;
  }
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Sets the timer by wall-clock time: an end is a date, also across a suspended machine. */
void schedule_deadlines(void) { set_timer(deadline_timer, sandboxes_next_deadline()); }

void consider_leaving(void) {
  bool idle = sandboxes_count() == 0 && count_clients() == 0;
  set_timer(linger_timer, idle ? now_ms() + settings.linger_ms : INT64_MAX);
}

static void deadline_passed(void *context, uint32_t events) {
  uint64_t times;
  (void)context;
  (void)events;
  if (read(deadline_timer, &times, sizeof times) < 0 && errno != EAGAIN) return;
  sandboxes_deadlines(now_ms());
  schedule_deadlines();
}

static void linger_passed(void *context, uint32_t events) {
  uint64_t times;
  (void)context;
  (void)events;
  if (read(linger_timer, &times, sizeof times) < 0) return;
  if (sandboxes_count() != 0 || count_clients() != 0) return;
  /* Removed files take room until the reaper process has deleted them. */
  if (janitor_works()) consider_leaving();
  else leaving = true;
}

static void signalled(void *context, uint32_t events) {
  struct signalfd_siginfo info;
  int fd = (int)(intptr_t)context, status;
  (void)events;
  while (read(fd, &info, sizeof info) == sizeof info)
    if (info.ssi_signo != SIGCHLD) leaving = true;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    if (!launcher_reaped(pid) && !janitor_reaped(pid) && !mounter_reaped(pid) && !keeper_reaped(pid)) sandbox_reaped(pid, status);
  if (!leaving) launchers_fill();
}

/* Returns the part after "--name=", or NULL when it is another option. */
static const char *value_of(const char *option, const char *name) {
  size_t length = strlen(name);
  return strncmp(option, name, length) == 0 && option[length] == '=' ? option + length + 1 : NULL;
}

static void read_option(const char *option) {
  const char *value;
  if ((value = value_of(option, "--base"))) snprintf(settings.base, sizeof settings.base, "%s", value);
  else if ((value = value_of(option, "--runtime"))) snprintf(settings.runtime, sizeof settings.runtime, "%s", value);
  else if ((value = value_of(option, "--agent"))) snprintf(settings.agent, sizeof settings.agent, "%s", value);
  else if ((value = value_of(option, "--unified"))) snprintf(settings.unified, sizeof settings.unified, "%s", value);
  else if ((value = value_of(option, "--group"))) snprintf(settings.group, sizeof settings.group, "%s", value);
  else if ((value = value_of(option, "--usermap"))) snprintf(settings.usermap, sizeof settings.usermap, "%s", value);
  else if ((value = value_of(option, "--storage"))) settings.storage = (uint32_t)strtoul(value, NULL, 10);
  else if ((value = value_of(option, "--pool"))) settings.pool = atoi(value);
  else if ((value = value_of(option, "--linger-ms"))) settings.linger_ms = atoi(value);
  else if (strcmp(option, "--idmap") == 0) settings.idmap = true;
  else if (strcmp(option, "--no-cgroups") == 0) settings.no_cgroups = true;
  else if (strcmp(option, "--io-weight") == 0) settings.io_weight = true;
  else {
    fprintf(stderr, "sandboxer-spawner: unknown option %s\n", option);
    exit(2);
  }
}

static void make_directories(void) {
  static const char *const NAMES[] = {"", "/sandboxes", "/layers", "/trash", "/mnt", "/mnt/b", "/mnt/u", "/mnt/d", "/mnt/rootfs",
                                      "/disks", "/run", "/run/runtime", "/run/doors", "/bin"};
  char path[PATH_MAX + 32];
  for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
    snprintf(path, sizeof path, "%s%s", settings.base, NAMES[i]);
    if (mkdir(path, 0700) < 0 && errno != EEXIST) refuse(path);
  }
  static const char *const TOPS[] = {"/sandboxes", "/layers"};
  for (size_t i = 0; i < sizeof TOPS / sizeof *TOPS; i++) {
    snprintf(path, sizeof path, "%s%s", settings.base, TOPS[i]);
    scatter_below(path);
  }
  /* Root inside starts from here, and knows the names that it needs; no other user inside gets past the base. */
  snprintf(path, sizeof path, "%s/mnt", settings.base);
  if (chmod(path, 0711) < 0) refuse(path);
  snprintf(path, sizeof path, "%s/mnt/users", settings.base);
  int users = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (users < 0) refuse(path);
  close(users);
}

/* Prepares crun. crun loads itself a second time, from a copy that cannot be written, unless its file is not writable. Only crun
 * itself reads its notes of a container, soon after: they are kept in memory, and end with the spawner. */
static void prepare_crun(void) {
  char path[PATH_MAX + 32], *real = realpath(settings.runtime, NULL);
  if (real == NULL) refuse(settings.runtime);
  settings.early = runtime_is_crun(real);
  snprintf(settings.runtime, sizeof settings.runtime, "%s", real);
  free(real);
  if (!settings.early) return;
  if (attach_sealed(settings.runtime) < 0) say("%s stays writable: %s", settings.runtime, strerror(errno));
  snprintf(path, sizeof path, "%s/run/runtime", settings.base);
  if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64m,mode=0700") < 0) refuse(path);
}

/* Ends this process if another spawner holds the lock of the state directory. */
static void be_the_only_one(void) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/spawner.lock", settings.base);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) refuse(path);
  if (flock(fd, LOCK_EX | LOCK_NB) < 0) exit(0);
}

/* Makes mounts private from here on. crun refuses a hybrid layout as long as it sees the unified mount. */
static void leave_host_mounts(void) {
  if (settings.usermap[0] && enter_user_namespace(settings.usermap) < 0) refuse("user namespace");
  if (unshare(CLONE_NEWNS) < 0) refuse("mount namespace");
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) refuse("private mounts");
  /* The spawner needs no network; each sandbox has one of its own. */
  if (unshare(CLONE_NEWNET) < 0) refuse("network namespace");
  if (confine_spawner() < 0) refuse("capabilities");
  cgroups_open();
  struct stat info;
  if (stat("/sys/fs/cgroup/unified", &info) == 0 && umount2("/sys/fs/cgroup/unified", MNT_DETACH) < 0)
    mount("none", "/sys/fs/cgroup/unified", "tmpfs", MS_RDONLY, "size=4k");
}

static void copy_agent(const char *name, mode_t mode) {
  char path[PATH_MAX + 32], bytes[65536];
  snprintf(path, sizeof path, "%s/bin/%s", settings.base, name);
  int from = open(settings.agent, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
  if (from < 0 || to < 0) refuse(settings.agent);
  for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;)
    if (write(to, bytes, (size_t)got) != got) refuse(path);
  fchmod(to, mode);
  close(from);
  close(to);
}

/* Mounts a file system of its own for the agent: inside, the mount table shows where a file comes from. */
static void place_agent(void) {
  char path[PATH_MAX + 32];
  if (settings.agent[0] == 0) return;
  snprintf(path, sizeof path, "%s/bin", settings.base);
  if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=32m,mode=0711") < 0) refuse(path);
  /* Executable and unreadable: the kernel then protects its memory from every process inside, whatever else fails. */
  copy_agent("init", 0711);
  /* A sandbox with a kernel of its own reads it as the host's user `nobody`. */
  copy_agent("open", 0755);
}

/* Tests in temporary directories whether this kernel allows all that a sandbox needs. Returns "ok", or the step that failed. */
static int check(void) {
  static const char *const NAMES[] = {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged"};
  const char *options = settings.usermap[0] ? "userxattr,lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"
                                            : "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work";
  if (settings.usermap[0] && enter_user_namespace(settings.usermap) < 0) return printf("user namespace: %m\n"), 1;
  if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
    return printf("namespaces: %m\n"), 1;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return printf("private mounts: %m\n"), 1;
  if (mount("tmpfs", "/tmp", "tmpfs", 0, "size=1m") < 0) return printf("tmpfs: %m\n"), 1;
  for (int i = 0; i < 4; i++)
    if (mkdir(NAMES[i], 0755) < 0) return printf("%s: %m\n", NAMES[i]), 1;
  if (mount("overlay", "/tmp/merged", "overlay", 0, options) < 0) return printf("overlayfs: %m\n"), 1;
  return puts("ok") < 0;
}

int main(int count, char **arguments) {
  if (count == 2 && strcmp(arguments[1], "--version") == 0) return printf("%s\n", SPAWNER_BUILD) < 0;
  bool checking = count > 1 && strcmp(arguments[1], "--check") == 0;
  for (int i = checking ? 2 : 1; i < count; i++) read_option(arguments[i]);
  if (checking) return check();
  if (settings.base[0] != '/' || settings.runtime[0] != '/' || settings.group[0] == 0) {
    fprintf(stderr, "usage: sandboxer-spawner --base=/DIR --runtime=/PATH --group=NAME [--unified=/DIR] [--agent=/PATH] [--storage=ID] [--idmap] …\n");
    return 2;
  }
  setsid();
  umask(022);
  make_directories();
  be_the_only_one();
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  leave_host_mounts();
  place_agent();
  prepare_crun();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (settings.idmap && !idmap_works(settings.base)) {
    say("files cannot be shown under other ids here: %s", strerror(errno));
    settings.idmap = false;
  }
  loop = epoll_create1(EPOLL_CLOEXEC);
  deadline_timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  linger_timer = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (loop < 0 || deadline_timer < 0 || linger_timer < 0 || signal_fd < 0) refuse("event loop");
  watch_fd(deadline_timer, EPOLLIN, deadline_passed, NULL);
  watch_fd(linger_timer, EPOLLIN, linger_passed, NULL);
  watch_fd(signal_fd, EPOLLIN, signalled, (void *)(intptr_t)signal_fd);
  janitor_start();
  sandboxes_adopt();
  schedule_deadlines();
  mounters_start();
  launchers_start();
  open_control();
  consider_leaving();
  say("ready: build %s, cgroups %s, idmap %d", settings.build, cgroups_describe(), settings.idmap);
  while (!leaving) {
    struct epoll_event events[64];
    int ready = epoll_wait(loop, events, 64, -1);
    for (int i = 0; i < ready && !leaving; i++) {
      struct watched *one = &watched[(uint32_t)events[i].data.u64];
      if (one->handle && one->generation == events[i].data.u64 >> 32) one->handle(one->context, events[i].events);
    }
  }
  close_control();
  captures_end();
  launchers_end();
  mounters_end();
  janitor_end();
  cgroups_close();
  /* Last step: once the socket is gone, everything else is gone, too. */
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/spawner.sock", settings.base);
  unlink(path);
  say("gone");
  return 0;
}
