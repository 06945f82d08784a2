/*
 * The baseline: "crun run" of the bundle of a sandbox, with /bin/true instead of the agent, as plainly as it can be done.
 * Prints one line of milliseconds for each run. Mounts only in a mount namespace of its own.
 *
 *   bare-crun RUNTIME BASE BUNDLE LAYER RUNS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

int main(int count, char **arguments) {
  char options[8192], root[4096], target[4096], id[64];
  if (count != 6) return 2;
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) return perror("mounts"), 1;
  umount2("/sys/fs/cgroup/unified", MNT_DETACH);
  snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", arguments[4], arguments[3], arguments[3]);
  snprintf(target, sizeof target, "%s/rootfs", arguments[3]);
  if (mount("overlay", target, "overlay", 0, options) < 0) return perror("overlay"), 1;
  snprintf(root, sizeof root, "--root=%s/bare-runtime", arguments[2]);
  snprintf(target, sizeof target, "--bundle=%s", arguments[3]);
  for (int run = 0; run < atoi(arguments[5]); run++) {
    int ends[2], status;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    snprintf(id, sizeof id, "bare%d", run);
    char *const argv[] = {"crun", root, "--cgroup-manager=disabled", "run", "--no-new-keyring", target, id, NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    double begun = now();
    if (pipe(ends) < 0) return 1;
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++) posix_spawn_file_actions_adddup2(&actions, ends[fd > 0], fd);
    for (int i = 0; i < 2; i++) posix_spawn_file_actions_addclose(&actions, ends[i]);
    if (posix_spawn(&pid, arguments[1], &actions, NULL, argv, environment) != 0) return perror(arguments[1]), 1;
    close(ends[1]);
    waitpid(pid, &status, 0);
    printf("%.3f\n", now() - begun);
    if (status != 0) {
      char text[2000];
      ssize_t length = read(ends[0], text, sizeof text);
      fprintf(stderr, "%.*s\n", (int)length, text);
      return 1;
    }
    close(ends[0]);
    posix_spawn_file_actions_destroy(&actions);
  }
  return 0;
}
