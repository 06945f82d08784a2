/* Builds the command line that makes an OCI runtime run a bundle. The name of the runtime's file says which one it is. */
#define _GNU_SOURCE
#include "../sandbox/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directory that every user may enter, and where no runtime needs a file. It is mounted over only in a launcher's mount
 * namespace. */
#define OPEN_PLACE "/dev/shm"

#define MOST_FLAGS 20

static bool is(const char *path, const char *name) {
  const char *last = strrchr(path, '/');
  return strncmp(last ? last + 1 : path, name, strlen(name)) == 0;
}

bool runtime_is_crun(const char *path) { return is(path, "crun"); }

/* Sets the bundle's directory. crun starts from it; other runtimes reach it from the top, as the user who is root inside. */
int runtime_open_place(const char *path, const char *id, char *bundle, size_t size) {
  char source[PATH_MAX + ID_MAX + 32];
  path_of(id, "", source, sizeof source);
  if (runtime_is_crun(path)) return snprintf(bundle, size, "%s", source), 0;
  snprintf(bundle, size, OPEN_PLACE "/bundle");
  if (mount("tmpfs", OPEN_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755") < 0 || mkdir(bundle, 0755) < 0) return -1;
  return attach_with(source, bundle, -1, 0);
}

/* Shows the runtime the directories below the base that are mounted inside: the agent, the volumes, the directories of the host.
 * */
int runtime_show_mounts(const char *path) {
  static const char *const NAMES[] = {"bin", "mnt"};
  char source[PATH_MAX + 32], target[64];
  if (runtime_is_crun(path)) return 0;
  for (int i = 0; i < 2; i++) {
    snprintf(source, sizeof source, "%s/%s", settings.base, NAMES[i]);
    snprintf(target, sizeof target, OPEN_PLACE "/%s", NAMES[i]);
    if (mkdir(target, 0755) < 0 || mount(source, target, NULL, MS_BIND | MS_REC, NULL) < 0) return -1;
  }
  return 0;
}

/* Makes the cgroup mounts read-only. runc makes a cgroup for every container, unless it cannot and need not: then it stays in the
 * slot. */
static void close_cgroups(void) {
  char line[PATH_MAX * 2], point[PATH_MAX];
  FILE *file = fopen("/proc/self/mountinfo", "re");
  while (file && fgets(line, sizeof line, file))
    if (strstr(line, " - cgroup") && sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1)
      mount(NULL, point, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
  if (file) fclose(file);
}

#define PATHS "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Returns only on failure. `early`: the configuration comes out of a pipe. `more`: further arguments, separated by blanks, of a
 * runtime whose sandbox has a kernel of its own; that kernel inherits no socket, and its agent calls the host instead. */
static void execute(const char *path, char *more, const char *container, const char *bundle, bool early, char *const *environment) {
  char root[PATH_MAX + ID_MAX + 32], place[PATH_MAX + 32], pid_file[PATH_MAX + 32];
  char *arguments[MOST_FLAGS + 10];
  int count = 0;
  bool called = more != NULL;
  /* State of the runtime for this sandbox: removed with this directory. */
  snprintf(root, sizeof root, "--root=%s/run/runtime%s%s", settings.base, called ? "/" : "", called ? container : "");
  snprintf(place, sizeof place, "--bundle=%s", bundle);
  snprintf(pid_file, sizeof pid_file, "--pid-file=%s/pid", bundle);
  arguments[count++] = (char *)path;
  arguments[count++] = root;
  if (is(path, "crun")) arguments[count++] = "--cgroup-manager=disabled";
  if (is(path, "runc")) {
    close_cgroups();
    arguments[count++] = "--rootless=true";
  }
  for (char *flag = more ? strtok(more, " ") : NULL; flag && count < MOST_FLAGS; flag = strtok(NULL, " ")) arguments[count++] = flag;
  arguments[count++] = "run";
  arguments[count++] = "--detach";
  if (called) arguments[count++] = pid_file;
  else {
    arguments[count++] = "--preserve-fds=2";
    arguments[count++] = "--no-new-keyring";
  }
  arguments[count++] = place;
  if (early) arguments[count++] = "--config=/proc/self/fd/5";
  arguments[count++] = (char *)container;
  arguments[count] = NULL;
  execve(path, arguments, environment);
}

void runtime_exec(const char *path, char *more, const char *container, const char *bundle, bool early) {
  char *const environment[] = {PATHS, NULL};
  execute(path, more, container, bundle, early, environment);
}

/* Becomes a zygote that has the runtime loaded. The last argument, a placeholder, becomes the name of each container. The library
 * is named by descriptor number, because the linker splits paths at blanks and colons. */
void runtime_exec_keeper(void) {
  char bundle[PATH_MAX + 32], preload[64];
  char *const environment[] = {PATHS, preload, KEEPER_VARIABLE "=1", NULL};
  snprintf(preload, sizeof preload, "LD_PRELOAD=/proc/self/fd/%d", KEEPER_PRELOAD);
  snprintf(bundle, sizeof bundle, "%s/mnt", settings.base);
  execute(settings.runtime, NULL, KEEPER_NAME, bundle, true, environment);
}
