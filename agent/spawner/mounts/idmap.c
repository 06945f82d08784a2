/* Id-mapped mounts: files lie on disk in one range of ids, and each sandbox sees them through its own. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
#define CACHE 512
#define READY 64

/* User namespaces that map stored files. No process ever runs in one. */
static struct {
  uint32_t first;
  int fd;
} cache[CACHE];
static int cached;

/* User namespaces for sandboxes, made ahead: each is given away once. */
static struct {
  uint32_t first;
  int fd; /* -1: to be made */
} ready[READY];
static int ready_count;

static int wait_to_be_killed(void *unused) {
  (void)unused;
  for (;;) pause();
  return 0;
}

static int write_map(pid_t pid, const char *name, const char *text) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t wrote = write(fd, text, strlen(text));
  close(fd);
  return wrote < 0 ? -1 : 0;
}

/* Makes the user namespace as `owner`. The kernel counts some resources by user (watches of files, timers, pending signals) in
 * the namespace, and once more for its creator: with root as creator, all sandboxes and the machine itself would share root's
 * limits. */
static pid_t clone_as(uint32_t owner) {
  static char stack[16384] __attribute__((aligned(16)));
  int bits = prctl(PR_GET_SECUREBITS);
  bool changed = owner > 0 && bits >= 0 && prctl(PR_SET_SECUREBITS, bits | SECBIT_NO_SETUID_FIXUP) == 0;
  bool acting = changed && syscall(SYS_setresuid, -1, owner, -1) == 0;
  pid_t pid = clone(wait_to_be_killed, stack + sizeof stack, CLONE_NEWUSER | CLONE_VM | SIGCHLD, NULL);
  int error = errno;
  if (acting && syscall(SYS_setresuid, -1, 0, -1) < 0) abort();
  if (changed) prctl(PR_SET_SECUREBITS, bits);
  errno = error;
  return pid;
}

static int make_userns(uint32_t from, uint32_t first) {
  char text[96], path[64];
  pid_t pid = clone_as(from > 0 ? 0 : first);
  if (pid < 0) return -1;
  /* Maps 0 as well: overlayfs makes work/work as uid 0, and otherwise mounts read-only without an error. */
  if (from > 0) snprintf(text, sizeof text, "0 0 1\n%u %u %u\n", from, first, RANGE_SIZE);
  else snprintf(text, sizeof text, "0 %u %u\n", first, RANGE_SIZE);
  int fd = -1;
  if (write_map(pid, "uid_map", text) == 0 && write_map(pid, "gid_map", text) == 0) {
    snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
  }
  int error = errno;
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  errno = error;
  return fd;
}

/* Returns a user namespace that maps stored files to the sandbox's ids. It stays open: ranges are reused. */
int userns_for_range(uint32_t first) {
  for (int i = 0; i < cached; i++)
    if (cache[i].first == first) return cache[i].fd;
  int fd = make_userns(settings.storage, first);
  if (fd < 0) return -1;
  int at = cached < CACHE ? cached++ : (int)(first / RANGE_SIZE % CACHE);
  if (cache[at].fd > 0) close(cache[at].fd);
  cache[at].first = first;
  cache[at].fd = fd;
  return fd;
}

/* Returns a user namespace for one sandbox, with keys and counters of its own, which maps the host's root to the sandbox's root.
 * The caller closes it. The next sandbox probably has the same range: userns_refill makes a namespace for it. */
int userns_take(uint32_t first) {
  int at = 0, fd = -1;
  while (at < ready_count && ready[at].first != first) at++;
  if (at == READY) at = (int)(first / RANGE_SIZE % READY);
  else if (at < ready_count) fd = ready[at].fd, ready[at].fd = -1;
  else ready[ready_count++].fd = -1;
  if (ready[at].fd >= 0) close(ready[at].fd);
  ready[at].first = first;
  ready[at].fd = -1;
  return fd >= 0 ? fd : make_userns(0, first);
}

/* Makes namespaces ahead; called while no sandbox is being started. */
void userns_refill(void) {
  for (int i = 0; i < ready_count; i++)
    if (ready[i].fd < 0 && (ready[i].fd = make_userns(0, ready[i].first)) < 0) return;
}

/* Attaches a clone of `source`, relative to the directory `at` (or that directory itself when `source` is empty), at `target`
 * with these attributes, id-mapped unless `userns` is -1. */
int attach_from(int at, const char *source, const char *target, int userns, uint64_t wanted) {
  int tree = (int)syscall(SYS_open_tree, at, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
  if (tree < 0) return -1;
  struct mount_attr attributes = {.attr_set = wanted | (userns >= 0 ? MOUNT_ATTR_IDMAP : 0),
                                  .userns_fd = userns >= 0 ? (uint64_t)userns : 0};
  int failed = 0;
  if (attributes.attr_set) failed = (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes);
  if (failed == 0 && target)
    failed = (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
  int error = errno;
  close(tree);
  errno = error;
  return failed;
}

int attach_with(const char *source, const char *target, int userns, uint64_t wanted) {
  return attach_from(AT_FDCWD, source, target, userns, wanted);
}

int attach_idmapped(const char *source, const char *target, int userns) { return attach_with(source, target, userns, 0); }

/* Attaches a read-only view of a file over itself: in this mount namespace no process can write it. */
int attach_sealed(const char *file) { return attach_with(file, file, -1, MOUNT_ATTR_RDONLY); }

bool idmap_works(const char *directory) {
  if (!settings.idmap) return false;
  int userns = userns_for_range(settings.storage + RANGE_SIZE);
  return userns >= 0 && attach_idmapped(directory, NULL, userns) == 0;
}
