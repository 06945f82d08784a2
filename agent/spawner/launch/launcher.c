/* Launchers wait, in a mount namespace of their own, for a sandbox to start. Their mounts end with them: the runtime takes the
 * root file system over, and no unmount is needed. crun is loaded ahead: it waits, in its cgroup slot, for its configuration from
 * a pipe. Loading it takes half as long as the rest of its work. A mounter, which is in no slot, makes the root file system when
 * there is a sandbox to start, and then sends the configuration. Any other runtime is started by the launcher itself once the
 * root file system is there. */
#define _GNU_SOURCE
#include "../sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL_MAX 64
/* After this many launchers in a row that ended while they waited, crun is no longer loaded ahead. */
#define EARLY_ENDS_MAX 16
#define REFILL_AFTER_MS 20

static struct launcher pool[POOL_MAX];
static int pooled, early_ends, doors = -1, refill_timer = -1;

static void __attribute__((noreturn)) load_early(const struct birth *birth) {
  char bundle[PATH_MAX + 32];
  birth_tell_mounts();
  snprintf(bundle, sizeof bundle, "%s/mnt", settings.base);
  runtime_exec(settings.runtime, NULL, birth->name, bundle, true);
  give_up(-1, "%s", settings.runtime);
}

static void __attribute__((noreturn)) load_late(const struct birth *birth) {
  char bundle[PATH_MAX + ID_MAX + 32], target[PATH_MAX + ID_MAX + 48];
  struct launch launch;
  int fds[FD_COUNT];
  /* The spawner has closed its end: no sandbox will come. */
  if (receive_with(GIVEN_SOCKET, &launch, sizeof launch, fds, FD_COUNT, 0) != sizeof launch) _exit(0);
  bool called = launch.runtime[0] != 0;
  const char *runtime = called ? launch.runtime : settings.runtime;
  if (runtime_open_place(runtime, launch.id, bundle, sizeof bundle) < 0) give_up(-1, "a place for %s", runtime);
  snprintf(target, sizeof target, "%s/rootfs", bundle);
  if (mkdir(target, 0755) < 0 && errno != EEXIST) give_up(-1, "mkdir %s", target);
  mount_root(&launch, target, -1, fds[FD_USERNS], fds[FD_HOST_USERNS]);
  if (runtime_show_mounts(runtime) < 0) give_up(-1, "a place for %s", runtime);
  close_range(called ? IN_LISTEN : IN_CONFIG, ~0u, 0);
  if (chdir("/") < 0) give_up(-1, "chdir /");
  runtime_exec(runtime, called ? launch.flags : NULL, birth->name, bundle, false);
  give_up(-1, "%s", runtime);
}

/* Runs in the new process, which is in its slot already. */
void launcher_begin(const struct birth *birth, const int *fds) {
  birth_settle(birth, fds);
  if (birth->early) load_early(birth);
  load_late(birth);
}

/* Opens the socket that the agent inherits. It is renamed into the sandbox's directory when there is a sandbox for it. */
static int open_door(const char *name) {
  char path[PATH_MAX + 32];
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(path, sizeof path, "%s/run/doors", settings.base);
  if (doors < 0) doors = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", doors, name);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  mode_t mask = umask(0177);
  if (fd >= 0 && (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 128) < 0)) close_fd(&fd, false);
  umask(mask);
  return fd;
}

/* Makes the pipes and sockets between launcher and spawner; the launcher's ends are returned in `given`. */
static bool connect_launcher(struct launcher *launcher, int given[GIVEN_COUNT]) {
  int input[2] = {-1, -1}, error[2] = {-1, -1}, boot[2] = {-1, -1}, pair[2] = {-1, -1}, config[2] = {-1, -1}, yes = 1;
  bool made = pipe2(input, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC | O_NONBLOCK) == 0 &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, boot) == 0 &&
              setsockopt(boot[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
              fcntl(boot[0], F_SETFL, O_NONBLOCK) == 0 &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
              (!launcher->early || pipe2(config, O_CLOEXEC) == 0);
  close_fd(&input[1], false);
  launcher->socket = pair[0];
  launcher->boot = boot[0];
  launcher->error = error[0];
  launcher->config = config[1];
  /* The host's /dev/null must never be one of 0 to 2: crun before 1.24 changes its owner to the root inside. */
  given[IN_INPUT] = input[0];
  given[IN_OUTPUT] = given[IN_ERROR] = launcher->say = error[1];
  given[IN_BOOT] = boot[1];
  given[IN_LISTEN] = made ? open_door(launcher->name) : -1;
  given[GIVEN_SOCKET] = pair[1];
  given[GIVEN_CONFIG] = config[0];
  return given[IN_LISTEN] >= 0;
}

/* Closes the channels to a launcher, which are not needed any more once it has a sandbox to start. */
void launcher_hand_over(struct launcher *launcher) {
  close_fd(&launcher->socket, false);
  close_fd(&launcher->config, false);
  close_fd(&launcher->say, false);
  close_fd(&launcher->pidfd, false);
}

/* Releases everything that belongs to a launcher that has ended. */
static void launcher_close(struct launcher *launcher) {
  launcher_hand_over(launcher);
  close_fd(&launcher->boot, false);
  close_fd(&launcher->error, false);
  unlinkat(doors, launcher->name, 0);
}

static bool begin_launcher(struct launcher *launcher, bool early) {
  static unsigned serial;
  static int64_t born;
  int given[GIVEN_COUNT];
  if (born == 0) born = now_ms();
  for (int i = 0; i < GIVEN_COUNT; i++) given[i] = -1;
  *launcher = (struct launcher){.pid = -1, .socket = -1, .boot = -1, .error = -1, .config = -1, .say = -1, .pidfd = -1, .early = early};
  snprintf(launcher->name, sizeof launcher->name, "c%llx-%x", (long long)born, serial++);
  launcher->slot = slot_take();
  if (launcher->slot == NULL && cgroups_usable()) return false;
  struct birth birth = {.spawner = getpid(), .early = early};
  snprintf(birth.name, sizeof birth.name, "%s", launcher->name);
  if (connect_launcher(launcher, given)) launcher->pid = slot_fork(launcher->slot, &birth, given, GIVEN_COUNT - !early);
  /* Output and error share one descriptor with `say`, which the spawner keeps to report errors of a mounter. */
  given[IN_OUTPUT] = given[IN_ERROR] = -1;
  for (int i = 0; i < GIVEN_COUNT; i++) close_fd(&given[i], false);
  if (launcher->pid > 0 && early) launcher->pidfd = (int)syscall(SYS_pidfd_open, launcher->pid, 0);
  if (launcher->pid > 0) return true;
  launcher_close(launcher);
  slot_give_back(launcher->slot);
  return false;
}

/* Tries once more after a zygote was abandoned: with new descriptors, and without a zygote. */
static bool start_launcher(struct launcher *launcher, bool early) {
  return begin_launcher(launcher, early) || begin_launcher(launcher, early);
}

static void fill(int wanted) {
  while (!leaving && pooled < wanted && pooled < POOL_MAX && start_launcher(&pool[pooled], settings.early)) pooled++;
  if (!leaving) userns_refill();
}

static void refill_due(void *context, uint32_t events) {
  uint64_t times;
  (void)context;
  (void)events;
  if (read(refill_timer, &times, sizeof times) == sizeof times) fill(settings.pool);
}

void launchers_start(void) {
  refill_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (refill_timer >= 0) watch_fd(refill_timer, EPOLLIN, refill_due, NULL);
  if (settings.early) keepers_begin();
  fill(settings.pool);
}

/* Replaces launchers that were taken. Loading a runtime takes as much processor time as a start does, so it waits until the
 * current start, and the first program in it, have had theirs. When few are left all are replaced at once: of sandboxes that
 * start one after the other, most then find the processors free. */
void launchers_fill(void) {
  struct itimerspec quiet = {.it_value = {.tv_nsec = REFILL_AFTER_MS * 1000000L}};
  if (pooled == settings.pool) return;
  if (pooled <= settings.pool / 4) return fill(settings.pool);
  if (refill_timer < 0 || timerfd_settime(refill_timer, 0, &quiet, NULL) < 0) fill(settings.pool);
}

/* Takes a launcher. `other`: for another runtime than the one that may be loaded already. */
bool launcher_take(struct launcher *launcher, bool other) {
  if (pooled == 0 || other) return start_launcher(launcher, settings.early && !other);
  *launcher = pool[0];
  memmove(pool, pool + 1, (size_t)--pooled * sizeof *pool);
  return true;
}

/* Lets the launcher start this sandbox, and moves its socket into the sandbox's directory. */
int launcher_send(struct launcher *launcher, const struct launch *launch, const int fds[FD_COUNT]) {
  char door[PATH_MAX + ID_MAX + 32];
  path_of(launch->id, "a.sock", door, sizeof door);
  if (renameat(doors, launcher->name, AT_FDCWD, door) < 0) return -1;
  if (launcher->early) return mounter_ask(launcher, launch, fds);
  return send_with(launcher->socket, launch, sizeof *launch, fds, fds[FD_USERNS] >= 0 ? FD_COUNT : 0, 0);
}

/* Removes a launcher that ended while it waited; the next fill replaces it. */
bool launcher_reaped(pid_t pid) {
  for (int i = 0; i < pooled; i++) {
    if (pool[i].pid != pid) continue;
    char said[400] = "";
    if (read(pool[i].error, said, sizeof said - 1) < 0) said[0] = 0;
    launcher_close(&pool[i]);
    slot_give_back(pool[i].slot);
    memmove(pool + i, pool + i + 1, (size_t)(--pooled - i) * sizeof *pool);
    if (settings.early && ++early_ends == EARLY_ENDS_MAX) {
      say("the runtime cannot be loaded ahead: %s", said);
      settings.early = false;
    }
    return true;
  }
  return false;
}

void launcher_worked(void) { early_ends = 0; }

void launchers_end(void) {
  for (int i = 0; i < pooled; i++) {
    kill(pool[i].pid, SIGKILL);
    waitpid(pool[i].pid, NULL, 0);
    launcher_close(&pool[i]);
    slot_give_back(pool[i].slot);
  }
  pooled = 0;
}
