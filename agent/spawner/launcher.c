/* Launchers wait, already in their cgroup slot and in a mount namespace of their own, for a sandbox to start. What they
 * mount is gone with them: the runtime takes the root file system over, and nothing is left to unmount. */
#define _GNU_SOURCE
#include "spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL_MAX 64

static struct launcher pool[POOL_MAX];
static int pooled;

static void __attribute__((noreturn, format(printf, 1, 2))) give_up(const char *format, ...) {
  va_list list;
  int error = errno;
  va_start(list, format);
  vdprintf(2, format, list);
  va_end(list);
  dprintf(2, ": %s\n", strerror(error));
  _exit(1);
}

static void mount_root(const struct launch *launch, int userns, int host_userns) {
  char source[PATH_MAX], target[PATH_MAX], options[4096], name[16];
  int length = 0;
  snprintf(source, sizeof source, "%s/mnt", settings.base);
  if (chdir(source) < 0) give_up("chdir %s", source);
  /* Relative names: the mount table inside shows the options, and must not tell where we keep things. */
  length = snprintf(options, sizeof options, "%slowerdir=", settings.usermap[0] ? "userxattr," : "");
  for (int i = 0; i < launch->layer_count; i++) {
    snprintf(source, sizeof source, "%s/%s", settings.base, launch->layers[i]);
    snprintf(name, sizeof name, "l%d", i);
    if (mkdir(name, 0700) < 0 && errno != EEXIST) give_up("mkdir %s", name);
    if (attach_idmapped(source, name, userns) < 0) give_up("layer %s", launch->layers[i]);
    length += snprintf(options + length, sizeof options - (size_t)length, "%s%s", i ? ":" : "", name);
  }
  snprintf(source, sizeof source, "%s/sandboxes/%s/disk", settings.base, launch->id);
  if (disk_is_image(launch->id, target, sizeof target)) {
    if (disk_mount(target, "d") < 0) give_up("disk image of %s", launch->id);
    for (int i = 0; i < 2; i++) {
      const char *part = i ? "d/work" : "d/upper";
      if (mkdir(part, 0755) < 0 && errno != EEXIST) give_up("%s", part);
      if (chown(part, settings.storage, settings.storage) < 0) give_up("%s", part);
    }
    snprintf(source, sizeof source, "d");
  }
  if (attach_idmapped(source, "u", userns) < 0) give_up("disk of %s", launch->id);
  snprintf(options + length, sizeof options - (size_t)length, ",upperdir=u/upper,workdir=u/work");
  snprintf(target, sizeof target, "%s/sandboxes/%s/rootfs", settings.base, launch->id);
  if (mount("overlay", target, "overlay", MS_NODEV, options) < 0) give_up("overlay (%s)", options);
  /* Without a usable work directory overlayfs mounts read-only and says nothing. */
  if (access(target, W_OK) < 0) give_up("the root file system is read-only");
  const char *failed = mount_host_parts(launch, source, target, host_userns);
  if (failed) give_up("/%s of the host", failed);
  failed = mount_volumes(launch, userns);
  if (failed) give_up("volume %s", failed);
}

static void __attribute__((noreturn)) become_runtime(const struct launch *launch, const int fds[FD_COUNT]) {
  char root[PATH_MAX + 32], bundle[PATH_MAX + ID_MAX + 32];
  /* Up and out of the way first, then into place: a received number may be one of those wanted. */
  int high[4];
  for (int i = 0; i < 4; i++) high[i] = fcntl(fds[i], F_DUPFD, 16);
  /* Never the host's /dev/null: crun before 1.24 gives fds 0-2 to the root inside. */
  dup2(high[FD_STDIN], 0);
  dup2(high[FD_ERROR], 1);
  dup2(high[FD_ERROR], 2);
  int userns = fds[FD_USERNS] >= 0 ? fcntl(fds[FD_USERNS], F_DUPFD_CLOEXEC, 32) : -1;
  int host_userns = fds[FD_HOST_USERNS] >= 0 ? fcntl(fds[FD_HOST_USERNS], F_DUPFD_CLOEXEC, 32) : -1;
  mount_root(launch, userns, host_userns);
  dup2(high[FD_LISTEN], 3);
  dup2(high[FD_BOOT], 4);
  close_range(5, ~0u, 0);
  snprintf(root, sizeof root, "--root=%s/run/runtime", settings.base);
  snprintf(bundle, sizeof bundle, "--bundle=%s/sandboxes/%s", settings.base, launch->id);
  char *const crun[] = {"crun", root, "--cgroup-manager=disabled", "run", "--detach", "--preserve-fds=2",
                        "--no-new-keyring", bundle, (char *)launch->id, NULL};
  char *const environment[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  if (chdir("/") < 0) give_up("chdir /");
  execve(settings.runtime, crun, environment);
  give_up("%s", settings.runtime);
}

static void __attribute__((noreturn)) launcher_main(int socket, const struct slot *slot, pid_t parent, bool ahead) {
  struct launch launch;
  int fds[FD_COUNT];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  prctl(PR_SET_NAME, "sbx-launcher");
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  dup2(socket, 3);
  close_range(4, ~0u, 0);
  if (ahead) slot_clean(slot);
  if (slot_join(slot) < 0 || unshare(CLONE_NEWNS) < 0) _exit(2);
  struct iovec part = {&launch, sizeof launch};
  union {
    char bytes[CMSG_SPACE(sizeof fds)];
    struct cmsghdr align;
  } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (recvmsg(3, &message, MSG_CMSG_CLOEXEC) != sizeof launch) _exit(0);
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header == NULL) _exit(3);
  int count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  for (int i = 0; i < FD_COUNT; i++) fds[i] = -1;
  memcpy(fds, CMSG_DATA(header), (size_t)count * sizeof(int));
  become_runtime(&launch, fds);
}

static bool start_launcher(struct launcher *launcher, bool ahead) {
  int pair[2];
  launcher->slot = slot_take();
  if (launcher->slot == NULL && cgroups_usable()) return false;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return slot_give_back(launcher->slot), false;
  pid_t self = getpid();
  launcher->pid = fork();
  if (launcher->pid == 0) launcher_main(pair[1], launcher->slot, self, ahead);
  close(pair[1]);
  launcher->socket = pair[0];
  if (launcher->pid > 0) return true;
  close(pair[0]);
  slot_give_back(launcher->slot);
  return false;
}

void launchers_fill(void) {
  while (!leaving && pooled < settings.pool && pooled < POOL_MAX && start_launcher(&pool[pooled], true)) pooled++;
}

bool launcher_take(struct launcher *launcher) {
  if (pooled == 0) return start_launcher(launcher, false);
  *launcher = pool[0];
  memmove(pool, pool + 1, (size_t)--pooled * sizeof *pool);
  return true;
}

int launcher_send(const struct launcher *launcher, const struct launch *launch, const int fds[FD_COUNT]) {
  int count = fds[FD_USERNS] >= 0 ? FD_COUNT : FD_USERNS;
  size_t size = (size_t)count * sizeof(int);
  struct iovec part = {(void *)launch, sizeof *launch};
  union {
    char bytes[CMSG_SPACE(sizeof(int) * FD_COUNT)];
    struct cmsghdr align;
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(size)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(size);
  memcpy(CMSG_DATA(header), fds, size);
  return sendmsg(launcher->socket, &message, MSG_NOSIGNAL) == sizeof *launch ? 0 : -1;
}

/* A launcher that ended while it waited: replaced by the next fill. */
bool launcher_reaped(pid_t pid) {
  for (int i = 0; i < pooled; i++) {
    if (pool[i].pid != pid) continue;
    close(pool[i].socket);
    slot_give_back(pool[i].slot);
    memmove(pool + i, pool + i + 1, (size_t)(--pooled - i) * sizeof *pool);
    return true;
  }
  return false;
}

void launchers_end(void) {
  for (int i = 0; i < pooled; i++) {
    kill(pool[i].pid, SIGKILL);
    waitpid(pool[i].pid, NULL, 0);
    slot_give_back(pool[i].slot);
  }
  pooled = 0;
}
