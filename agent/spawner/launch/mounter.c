/* Makes root file systems. crun is loaded and waits for its configuration in a mount namespace of its own: a mounter enters that
 * namespace, mounts, sends the configuration and comes back. A few mounters serve all sandboxes; a job that may wait for
 * something outside of this machine, or for a disk, has a process of its own. */
#define _GNU_SOURCE
#include "../rights/confine.h"
#include "../sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOUNTERS 2

static pid_t mounters[MOUNTERS];
/* Queue of jobs: all mounters listen at one end. The spawner holds that end open, too, so that a job of a mounter that ended goes
 * to the next. */
static int jobs[2] = {-1, -1};

/* Kills the runtime by its pidfd: it may have ended, and its pid may belong to another process. */
static void __attribute__((noreturn)) end_runtime(int runtime) {
  if (runtime >= 0) syscall(SYS_pidfd_send_signal, runtime, SIGKILL, NULL, 0);
  _exit(1);
}

/* Writes the reason to the error pipe of the runtime, and ends the runtime and this process. */
void give_up(int runtime, const char *format, ...) {
  va_list list;
  int error = errno;
  va_start(list, format);
  vdprintf(2, format, list);
  va_end(list);
  dprintf(2, ": %s\n", strerror(error));
  end_runtime(runtime);
}

/* Gives up as give_up does, with a refusal for the caller: `why` begins with the name of the refused field. */
static void __attribute__((noreturn)) refuse(int runtime, const char *why) {
  dprintf(2, LAUNCH_REFUSED "%s\n", why);
  end_runtime(runtime);
}

static void mount_inputs(const struct launch *launch, const char *root, int runtime, int userns) {
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

/* Binds the sandbox's user namespace to the file where the runtime looks for it. */
static void show_userns(int runtime, int userns) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", userns);
  if (userns >= 0 && mount(path, "users", NULL, MS_BIND, NULL) < 0) give_up(runtime, "its user namespace");
}

/* Mounts the root file system at `target`, relative to the directory of the spawner's mounts. On failure `runtime` is ended. */
void mount_root(const struct launch *launch, const char *target, int runtime, int userns, int host_userns) {
  char source[PATH_MAX], image[PATH_MAX], options[4096], name[16];
  int length = 0;
  snprintf(source, sizeof source, "%s/mnt", settings.base);
  if (chdir(source) < 0) give_up(runtime, "chdir %s", source);
  /* Relative names: the mount table inside shows the options, and must not reveal paths of the host. */
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
  /* Without a usable work directory overlayfs mounts read-only and reports no error. */
  if (access(target, W_OK) < 0) give_up(runtime, "the root file system is read-only");
  const char *failed = mount_host_parts(launch, source, target, host_userns);
  if (failed) give_up(runtime, "/%s of the host", failed);
  mount_inputs(launch, target, runtime, userns);
  show_userns(runtime, host_userns);
}

static void send_config(const char *id, int runtime, int pipe) {
  char path[PATH_MAX + ID_MAX + 32];
  path_of(id, "config.json", path, sizeof path);
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) give_up(runtime, "config.json");
  for (ssize_t sent; (sent = sendfile(pipe, file, NULL, 1 << 20)) != 0;)
    if (sent < 0) give_up(runtime, "config.json");
}

/* Descriptors that a mounter gets with the launch. Of the launch only the used layers are sent. */
enum { JOB_LAUNCHER, JOB_CONFIG, JOB_ERROR, JOB_RUNTIME, JOB_USERNS, JOB_HOST_USERNS, JOB_FDS };

/* Enters the mount namespace of the loaded runtime, which sends it as soon as it has one. */
static int enter_mounts(int launcher) {
  char word;
  int mounts;
  if (receive_with(launcher, &word, sizeof word, &mounts, 1, 0) != sizeof word || mounts < 0) return -1;
  int failed = setns(mounts, CLONE_NEWNS);
  close(mounts);
  return failed;
}

/* Does one job; on failure it writes the reason to the error pipe of the runtime and ends this process. */
static void perform(const struct launch *launch, const int fds[JOB_FDS]) {
  dup2(fds[JOB_ERROR], 2);
  if (enter_mounts(fds[JOB_LAUNCHER]) < 0) give_up(fds[JOB_RUNTIME], "the mounts of %s", launch->id);
  mount_root(launch, "rootfs", fds[JOB_RUNTIME], fds[JOB_USERNS], fds[JOB_HOST_USERNS]);
  send_config(launch->id, fds[JOB_RUNTIME], fds[JOB_CONFIG]);
}

static void begin(pid_t spawner) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != spawner) _exit(0);
  prctl(PR_SET_NAME, "sbx-mounter");
  if (confine(DUTY_MOUNT) < 0) _exit(2);
}

static void __attribute__((noreturn)) mounter_main(pid_t spawner) {
  struct launch launch = {0};
  int fds[JOB_FDS];
  begin(spawner);
  dup2(jobs[1], 3);
  close_range(4, ~0u, 0);
  int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (home < 0 || quiet < 0) _exit(2);
  while (receive_with(3, &launch, sizeof launch, fds, JOB_FDS, 0) > 0) {
    perform(&launch, fds);
    /* Releases every descriptor of the job. */
    dup2(quiet, 2);
    for (int i = 0; i < JOB_FDS; i++)
      if (fds[i] >= 0) close(fds[i]);
    if (setns(home, CLONE_NEWNS) < 0) _exit(2);
  }
  _exit(0);
}

static pid_t start_mounter(void) {
  pid_t spawner = getpid(), pid = fork();
  if (pid == 0) mounter_main(spawner);
  return pid;
}

void mounters_start(void) {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, jobs) < 0) return say("no mounters: %s", strerror(errno));
  for (int i = 0; i < MOUNTERS; i++) mounters[i] = start_mounter();
}

/* Replaces a mounter that has ended because its job failed. */
bool mounter_reaped(pid_t pid) {
  for (int i = 0; i < MOUNTERS; i++) {
    if (pid <= 0 || mounters[i] != pid) continue;
    mounters[i] = leaving ? 0 : start_mounter();
    return true;
  }
  return false;
}

/* Ends the mounters when the spawner leaves. */
void mounters_end(void) {
  for (int i = 0; i < MOUNTERS; i++) {
    if (mounters[i] <= 0) continue;
    kill(mounters[i], SIGKILL);
    waitpid(mounters[i], NULL, 0);
    mounters[i] = 0;
  }
}

static int mount_alone(const struct launch *launch, const int given[JOB_FDS]) {
  int fds[JOB_FDS];
  pid_t spawner = getpid(), pid = fork();
  if (pid != 0) return pid < 0 ? -1 : 0;
  begin(spawner);
  memcpy(fds, given, sizeof fds);
  keep_only(fds, JOB_FDS);
  perform(launch, fds);
  _exit(0);
}

/* Returns whether the sandbox needs only layers and a plain directory. */
static bool is_plain(const struct launch *launch) {
  char path[PATH_MAX + ID_MAX + 32];
  if (launch->volume_count > 0 || disk_is_image(launch->id, path, sizeof path)) return false;
  path_of(launch->id, "targets", path, sizeof path);
  return access(path, F_OK) < 0;
}

/* Gives a mounter the job to mount for the runtime that this launcher has loaded. */
int mounter_ask(const struct launcher *launcher, const struct launch *launch, const int users[FD_COUNT]) {
  const int fds[JOB_FDS] = {launcher->socket, launcher->config,  launcher->say,
                            launcher->pidfd,  users[FD_USERNS], users[FD_HOST_USERNS]};
  size_t size = offsetof(struct launch, layers) + (size_t)launch->layer_count * sizeof launch->layers[0];
  int count = users[FD_USERNS] >= 0 ? JOB_FDS : JOB_USERNS;
  if (jobs[0] >= 0 && is_plain(launch) && send_with(jobs[0], launch, size, fds, count, MSG_DONTWAIT) == 0) return 0;
  return mount_alone(launch, fds);
}
