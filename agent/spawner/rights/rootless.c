/* Runs without root: one user namespace for the spawner and its children, with the caller's subordinate ids. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run(char *const arguments[]) {
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    execvp(arguments[0], arguments);
    _exit(127);
  }
  if (pid < 0 || waitpid(pid, &status, 0) < 0) return -1;
  return status == 0 ? 0 : -1;
}

static int put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t wrote = write(fd, text, strlen(text));
  close(fd);
  return wrote < 0 ? -1 : 0;
}

static int map_subordinate(const char *tool, pid_t pid, unsigned self, unsigned first, unsigned size) {
  char target[16], own[16], begin[16], length[16];
  snprintf(target, sizeof target, "%d", pid);
  snprintf(own, sizeof own, "%u", self);
  snprintf(begin, sizeof begin, "%u", first);
  snprintf(length, sizeof length, "%u", size);
  char *const arguments[] = {(char *)tool, target, "0", own, "1", "1", begin, length, NULL};
  return run(arguments);
}

/* Enters it. `usermap` is "first_uid:count:first_gid:count", or "self" when there are no subordinate ids. */
int enter_user_namespace(const char *usermap) {
  unsigned first_uid, uids, first_gid, gids, self = getuid(), group = getgid();
  char text[64], byte;
  int go[2], done[2];
  if (strcmp(usermap, "self") == 0) {
    if (unshare(CLONE_NEWUSER) < 0) return -1;
    snprintf(text, sizeof text, "0 %u 1", self);
    if (put("/proc/self/setgroups", "deny") < 0 || put("/proc/self/uid_map", text) < 0) return -1;
    snprintf(text, sizeof text, "0 %u 1", group);
    return put("/proc/self/gid_map", text);
  }
  if (sscanf(usermap, "%u:%u:%u:%u", &first_uid, &uids, &first_gid, &gids) != 4) return errno = EINVAL, -1;
  if (pipe2(go, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0) return -1;
  pid_t parent = getpid(), helper = fork();
  if (helper == 0) {
    close(go[1]);
    if (read(go[0], &byte, 1) != 1) _exit(1);
    int failed = map_subordinate("newuidmap", parent, self, first_uid, uids) |
                 map_subordinate("newgidmap", parent, group, first_gid, gids);
    _exit(failed ? 1 : 0);
  }
  close(go[0]);
  if (helper < 0 || unshare(CLONE_NEWUSER) < 0) return -1;
  int status = -1;
  if (write(go[1], "x", 1) != 1 || waitpid(helper, &status, 0) < 0 || status != 0) return errno = EPERM, -1;
  return setgid(0) < 0 || setuid(0) < 0 ? -1 : 0;
}
