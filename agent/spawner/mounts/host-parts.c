/* Mounts directories of the host (its /usr) below the sandbox's writable layer: a second overlay, whose upper layer lies in that
 * of the first, so that a snapshot has both. The host's own directory is the lowest layer and never written. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Parses "usr:bin:lib": plain names of the host's root. */
bool read_host_parts(const struct fields *fields, struct launch *launch) {
  const char *list = field(fields, "host");
  while (list && *list) {
    size_t length = strcspn(list, ":");
    if (launch->host_count == HOST_MAX || length == 0 || length >= sizeof launch->host[0]) return false;
    if (strspn(list, "abcdefghijklmnopqrstuvwxyz0123456789") < length) return false;
    memcpy(launch->host[launch->host_count++], list, length);
    list += length + (list[length] == ':');
  }
  return true;
}

static bool is_directory(const char *path) {
  struct stat info;
  return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Makes a directory with the owner of stored files. */
static int make_stored(const char *path) {
  if (mkdir(path, 0755) < 0) return errno == EEXIST && is_directory(path) ? 0 : -1;
  return chown(path, settings.storage, settings.storage);
}

static int mount_part(const struct launch *launch, const char *name, const char *disk, const char *root, int userns) {
  char options[4096], path[PATH_MAX + 64], low[32], shown[32], work[32];
  size_t length;
  snprintf(path, sizeof path, "%s/upper/%s", disk, name);
  if (make_stored(path) < 0) return -1;
  snprintf(path, sizeof path, "%s/work-%s", disk, name);
  if (make_stored(path) < 0) return -1;
  snprintf(low, sizeof low, "h-%s", name);
  snprintf(path, sizeof path, "/%s", name);
  if ((mkdir(low, 0700) < 0 && errno != EEXIST) || attach_idmapped(path, low, userns) < 0) return -1;
  /* This id map shows the host's root as the root inside, which may replace its files. It must not read files that only the
   * host's root may. Without id-mapped mounts the host's ids are unknown inside, and shown as nobody's. */
  snprintf(shown, sizeof shown, "%s-%s", userns >= 0 ? "n" : "h", name);
  if (userns >= 0) {
    if (mkdir(shown, 0700) < 0 && errno != EEXIST) return -1;
    if (mkdir("empty", 0755) < 0 && errno != EEXIST) return -1;
    if (mount_as_nobody(low, "empty", shown) < 0) return -1;
  }
  length = (size_t)snprintf(options, sizeof options, "%slowerdir=", settings.usermap[0] ? "userxattr," : "redirect_dir=nofollow,");
  for (int i = 0; i < launch->layer_count; i++) {
    snprintf(path, sizeof path, "l%d/%s", i, name);
    /* A link in a layer must not lead out of it. */
    if (is_directory(path)) length += (size_t)snprintf(options + length, sizeof options - length, "%s:", path);
  }
  snprintf(options + length, sizeof options - length, "%s,upperdir=u/upper/%s,workdir=u/work-%s", shown, name, name);
  snprintf(path, sizeof path, "%s/%s", root, name);
  int target = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (target < 0) return -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", target);
  snprintf(work, sizeof work, "u/work-%s", name);
  int failed = mount_overlay(path, options, work, launch->fleeting);
  int error = errno;
  close(target);
  errno = error;
  return failed;
}

/* Mounts the host's directories where the layers are mounted as l0 … and the disk as u; `disk` is where the disk is stored.
 * Returns the name that failed, or NULL. */
const char *mount_host_parts(const struct launch *launch, const char *disk, const char *root, int userns) {
  for (int i = 0; i < launch->host_count; i++)
    if (mount_part(launch, launch->host[i], disk, root, userns) < 0) return launch->host[i];
  return NULL;
}
