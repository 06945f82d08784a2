/* Launchers wait, in a mount namespace of their own, for a sandbox to start. What they mount is gone with them: the
 * runtime takes the root file system over, and nothing is left to unmount.
 *
 * crun is loaded ahead: it waits, in its cgroup slot, for its configuration to come out of a pipe. Loading it takes as long
 * as half of what it does afterwards. A helper in the same mount namespace, who is in no slot, makes the root file system
 * when there is a sandbox to start, and then sends the configuration. Any other runtime is started by the launcher itself
 * once the root file system is there. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL_MAX 64
/* So many that ended while they waited, one after another, and crun is no longer loaded ahead. */
#define EARLY_ENDS_MAX 16
#define REFILL_AFTER_MS 12

static struct launcher pool[POOL_MAX];
static int pooled, early_ends, doors = -1, refill_timer = -1;

/* What the runtime finds open, by number; then what is for us alone. */
enum { IN_INPUT, IN_OUTPUT, IN_ERROR, IN_LISTEN, IN_BOOT, IN_CONFIG, IN_COUNT };

static void __attribute__((noreturn, format(printf, 2, 3))) give_up(pid_t runtime, const char *format, ...) {
  va_list list;
  int error = errno;
  va_start(list, format);
  vdprintf(2, format, list);
  va_end(list);
  dprintf(2, ": %s\n", strerror(error));
  if (runtime > 0) kill(runtime, SIGKILL);
  _exit(1);
}

/* As give_up; whoever asked for the sandbox is told which field of his was refused: `why` begins with its name. */
static void __attribute__((noreturn)) refuse(pid_t runtime, const char *why) {
  dprintf(2, LAUNCH_REFUSED "%s\n", why);
  if (runtime > 0) kill(runtime, SIGKILL);
  _exit(1);
}

static void mount_inputs(const struct launch *launch, const char *root, pid_t runtime, int userns) {
  char why[1024], field[128];
  int refused = check_targets(launch->id, root, why, sizeof why);
  if (refused > 0) refuse(runtime, why);
  if (refused < 0) give_up(runtime, "targets of %s", launch->id);
  const char *failed = mount_volumes(launch, userns);
  if (failed) give_up(runtime, "volume %s", failed);
  if (mount_binds(launch->id, field, sizeof field) == 0) return;
  if (errno != ESTALE && errno != ELOOP && errno != ENOENT && errno != ENOTDIR) give_up(runtime, "%s", field);
  snprintf(why, sizeof why, "%s It is not what it was when it was looked at, or was mounted here since we began.", field);
  refuse(runtime, why);
}

/* At `target`, seen from the directory of our mounts. `runtime` ends when it fails. */
static void mount_root(const struct launch *launch, const char *target, pid_t runtime, int userns, int host_userns) {
  char source[PATH_MAX], image[PATH_MAX], options[4096], name[16];
  int length = 0;
  snprintf(source, sizeof source, "%s/mnt", settings.base);
  if (chdir(source) < 0) give_up(runtime, "chdir %s", source);
  /* Relative names: the mount table inside shows the options, and must not tell where we keep things. */
  length = snprintf(options, sizeof options, "%slowerdir=", settings.usermap[0] ? "userxattr," : "");
  for (int i = 0; i < launch->layer_count; i++) {
    snprintf(source, sizeof source, "%s/%s", settings.base, launch->layers[i]);
    snprintf(name, sizeof name, "l%d", i);
    if (mkdir(name, 0700) < 0 && errno != EEXIST) give_up(runtime, "mkdir %s", name);
    if (attach_idmapped(source, name, userns) < 0) give_up(runtime, "layer %s", launch->layers[i]);
    length += snprintf(options + length, sizeof options - (size_t)length, "%s%s", i ? ":" : "", name);
  }
  snprintf(source, sizeof source, "%s/sandboxes/%s/disk", settings.base, launch->id);
  if (disk_is_image(launch->id, image, sizeof image)) {
    if (disk_mount(image, "d") < 0) give_up(runtime, "disk image of %s", launch->id);
    for (int i = 0; i < 2; i++) {
      const char *part = i ? "d/work" : "d/upper";
      if (mkdir(part, 0755) < 0 && errno != EEXIST) give_up(runtime, "%s", part);
      if (chown(part, settings.storage, settings.storage) < 0) give_up(runtime, "%s", part);
    }
    snprintf(source, sizeof source, "d");
  }
  if (attach_idmapped(source, "u", userns) < 0) give_up(runtime, "disk of %s", launch->id);
  snprintf(options + length, sizeof options - (size_t)length, ",upperdir=u/upper,workdir=u/work");
  if (mount_overlay(target, options, "u/work", launch->fleeting) < 0) give_up(runtime, "overlay (%s)", options);
  /* Without a usable work directory overlayfs mounts read-only and says nothing. */
  if (access(target, W_OK) < 0) give_up(runtime, "the root file system is read-only");
  const char *failed = mount_host_parts(launch, source, target, host_userns);
  if (failed) give_up(runtime, "/%s of the host", failed);
  mount_inputs(launch, target, runtime, userns);
}

static void send_config(const char *id, pid_t runtime, int pipe) {
  char path[PATH_MAX + ID_MAX + 32];
  path_of(id, "config.json", path, sizeof path);
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) give_up(runtime, "config.json");
  for (ssize_t sent; (sent = sendfile(pipe, file, NULL, 1 << 20)) != 0;)
    if (sent < 0) give_up(runtime, "config.json");
}

/* Waits for a sandbox to start. Nobody asks any more when whoever asked is gone. */
static void receive(int socket, struct launch *launch, int fds[FD_COUNT]) {
  struct iovec part = {launch, sizeof *launch};
  union {
    char bytes[CMSG_SPACE(sizeof(int) * FD_COUNT)];
    struct cmsghdr align;
  } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof *launch) _exit(0);
  for (int i = 0; i < FD_COUNT; i++) fds[i] = -1;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header) memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

/* The other one of a launcher whose runtime is loaded already. */
static void __attribute__((noreturn)) helper_main(int socket, int config, pid_t runtime, pid_t spawner) {
  struct launch launch;
  int fds[FD_COUNT];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != spawner) _exit(0);
  prctl(PR_SET_NAME, "sbx-mounter");
  dup2(socket, 3);
  dup2(config, 4);
  close_range(5, ~0u, 0);
  receive(3, &launch, fds);
  mount_root(&launch, "rootfs", runtime, fds[FD_USERNS], fds[FD_HOST_USERNS]);
  send_config(launch.id, runtime, 4);
  _exit(0);
}

static void __attribute__((noreturn)) load_early(const struct launcher *launcher, int socket, pid_t spawner) {
  char bundle[PATH_MAX + 32];
  int config[2];
  if (pipe2(config, O_CLOEXEC) < 0) _exit(2);
  /* Above everything that has its number already. */
  for (int i = 0; i < 2; i++) config[i] = fcntl(config[i], F_DUPFD_CLOEXEC, 16);
  pid_t self = getpid(), helper = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  if (helper == 0) helper_main(socket, config[1], self, spawner);
  if (helper < 0) _exit(2);
  dup2(config[0], IN_CONFIG);
  close_range(IN_COUNT, ~0u, 0);
  if (slot_join(launcher->slot) < 0) _exit(2);
  snprintf(bundle, sizeof bundle, "%s/mnt", settings.base);
  runtime_exec(settings.runtime, NULL, launcher->name, bundle, true);
  give_up(0, "%s", settings.runtime);
}

static void __attribute__((noreturn)) load_late(const struct launcher *launcher, int socket) {
  char bundle[PATH_MAX + ID_MAX + 32], target[PATH_MAX + ID_MAX + 48];
  struct launch launch;
  int fds[FD_COUNT];
  dup2(socket, IN_CONFIG);
  close_range(IN_COUNT, ~0u, 0);
  if (slot_join(launcher->slot) < 0) _exit(2);
  receive(IN_CONFIG, &launch, fds);
  bool called = launch.runtime[0] != 0;
  const char *runtime = called ? launch.runtime : settings.runtime;
  if (runtime_open_place(runtime, launch.id, bundle, sizeof bundle) < 0) give_up(0, "a place for %s", runtime);
  snprintf(target, sizeof target, "%s/rootfs", bundle);
  mount_root(&launch, target, 0, fds[FD_USERNS], fds[FD_HOST_USERNS]);
  if (runtime_show_mounts(runtime) < 0) give_up(0, "a place for %s", runtime);
  close_range(called ? IN_LISTEN : IN_CONFIG, ~0u, 0);
  if (chdir("/") < 0) give_up(0, "chdir /");
  runtime_exec(runtime, called ? launch.flags : NULL, launcher->name, bundle, false);
  give_up(0, "%s", runtime);
}

static void __attribute__((noreturn)) launcher_main(const struct launcher *launcher, const int ends[IN_CONFIG], int socket,
                                                    pid_t spawner, bool ahead) {
  int high[IN_CONFIG];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != spawner) _exit(0);
  prctl(PR_SET_NAME, "sbx-launcher");
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  /* Up and out of the way first, then into place: one may have a number that another is to have. */
  for (int i = 0; i < IN_CONFIG; i++) high[i] = fcntl(ends[i], F_DUPFD_CLOEXEC, 16);
  socket = fcntl(socket, F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < IN_CONFIG; i++) dup2(high[i], i);
  if (ahead) slot_clean(launcher->slot);
  if (unshare(CLONE_NEWNS) < 0) _exit(2);
  if (launcher->early) load_early(launcher, socket, spawner);
  load_late(launcher, socket);
}

/* The socket that the agent inherits. It moves to where it is looked for when there is a sandbox for it. */
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

/* Makes what it and the spawner have between them; `ends` and `socket` are its own. */
static bool connect_launcher(struct launcher *launcher, int ends[IN_CONFIG], int *socket) {
  int input[2] = {-1, -1}, error[2] = {-1, -1}, boot[2] = {-1, -1}, pair[2] = {-1, -1}, yes = 1;
  bool made = pipe2(input, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC | O_NONBLOCK) == 0 &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, boot) == 0 &&
              setsockopt(boot[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
              fcntl(boot[0], F_SETFL, O_NONBLOCK) == 0 &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;
  close_fd(&input[1], false);
  launcher->socket = pair[0];
  launcher->boot = boot[0];
  launcher->error = error[0];
  *socket = pair[1];
  /* Never the host's /dev/null for 0 to 2: crun before 1.24 gives them to the root inside. */
  ends[IN_INPUT] = input[0];
  ends[IN_OUTPUT] = ends[IN_ERROR] = error[1];
  ends[IN_BOOT] = boot[1];
  ends[IN_LISTEN] = made ? open_door(launcher->name) : -1;
  return ends[IN_LISTEN] >= 0;
}

/* It is over, or has become a sandbox's: what is left of it here. */
static void launcher_close(struct launcher *launcher) {
  close_fd(&launcher->socket, false);
  close_fd(&launcher->boot, false);
  close_fd(&launcher->error, false);
  unlinkat(doors, launcher->name, 0);
}

static bool start_launcher(struct launcher *launcher, bool ahead, bool early) {
  static unsigned serial;
  static int64_t born;
  int ends[IN_CONFIG] = {-1, -1, -1, -1, -1}, socket = -1;
  if (born == 0) born = now_ms();
  *launcher = (struct launcher){.pid = -1, .socket = -1, .boot = -1, .error = -1, .early = early};
  snprintf(launcher->name, sizeof launcher->name, "c%llx-%x", (long long)born, serial++);
  launcher->slot = slot_take();
  if (launcher->slot == NULL && cgroups_usable()) return false;
  pid_t self = getpid();
  if (connect_launcher(launcher, ends, &socket)) launcher->pid = fork();
  if (launcher->pid == 0) launcher_main(launcher, ends, socket, self, ahead);
  ends[IN_OUTPUT] = -1;
  for (int i = 0; i < IN_CONFIG; i++) close_fd(&ends[i], false);
  close_fd(&socket, false);
  if (launcher->pid > 0) return true;
  launcher_close(launcher);
  slot_give_back(launcher->slot);
  return false;
}

static void fill(int wanted) {
  while (!leaving && pooled < wanted && pooled < POOL_MAX && start_launcher(&pool[pooled], true, settings.early)) pooled++;
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
  fill(settings.pool);
}

/* Replaces those that were taken: loading a runtime takes a processor as long as a start does, so that it waits until
 * whoever is being started, and the first program in it, have had theirs; unless there are few left. */
void launchers_fill(void) {
  struct itimerspec quiet = {.it_value = {.tv_nsec = REFILL_AFTER_MS * 1000000L}};
  fill((settings.pool + 1) / 2);
  if (pooled == settings.pool) return;
  if (refill_timer < 0 || timerfd_settime(refill_timer, 0, &quiet, NULL) < 0) fill(settings.pool);
}

/* `other`: for another runtime than the one that may be loaded already. */
bool launcher_take(struct launcher *launcher, bool other) {
  if (pooled == 0 || other) return start_launcher(launcher, false, settings.early && !other);
  *launcher = pool[0];
  memmove(pool, pool + 1, (size_t)--pooled * sizeof *pool);
  return true;
}

/* Lets it start this sandbox, in whose directory its door now is. Its ends go to the caller when this succeeds. */
int launcher_send(struct launcher *launcher, const struct launch *launch, const int fds[FD_COUNT]) {
  char door[PATH_MAX + ID_MAX + 32];
  path_of(launch->id, "a.sock", door, sizeof door);
  if (renameat(doors, launcher->name, AT_FDCWD, door) < 0) return -1;
  size_t size = fds[FD_USERNS] >= 0 ? sizeof(int) * FD_COUNT : 0;
  struct iovec part = {(void *)launch, sizeof *launch};
  union {
    char bytes[CMSG_SPACE(sizeof(int) * FD_COUNT)];
    struct cmsghdr align;
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (size > 0) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(size);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(header), fds, size);
  }
  return sendmsg(launcher->socket, &message, MSG_NOSIGNAL) == sizeof *launch ? 0 : -1;
}

/* A launcher that ended while it waited: replaced by the next fill. */
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
