/* Directories and files of the host that a sandbox is shown, in its file "mounts": for each of them "ro" or "rw", a blank,
 * its path and a NUL. They are attached here and not by the runtime: crun 1.8.1 leaves out what a plain bind is told
 * besides, and what comes into a lesser user namespace cannot be loosened there. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int make_target(const char *source, const char *name) {
  struct stat info;
  if (stat(source, &info) < 0) return -1;
  if (S_ISDIR(info.st_mode)) return mkdir(name, 0700) < 0 && errno != EEXIST ? -1 : 0;
  int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  close(fd);
  return 0;
}

/* Attached as m0, m1 … below the directory at hand, on a file system of their own. 0, or -1 with what failed in `failed`. */
int mount_binds(const char *id, char *failed, size_t size) {
  char path[PATH_MAX + ID_MAX + 32], line[PATH_MAX + 8], name[24];
  path_of(id, "mounts", path, sizeof path);
  FILE *file = fopen(path, "re");
  if (file == NULL) return errno == ENOENT ? 0 : -1;
  size_t length = 0;
  int count = 0, result = 0;
  for (int byte; result == 0 && (byte = getc(file)) != EOF;) {
    if (length == sizeof line) errno = ENAMETOOLONG, result = -1;
    else line[length++] = (char)byte;
    if (byte != 0 || result < 0) continue;
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (strncmp(line, "ro ", 3) == 0 ? MOUNT_ATTR_RDONLY : 0);
    snprintf(name, sizeof name, "b/m%d", count++);
    snprintf(failed, size, "%s", line + 3);
    if (length < 5 || make_target(line + 3, name) < 0 || attach_with(line + 3, name, -1, attributes) < 0) result = -1;
    length = 0;
  }
  fclose(file);
  return result;
}
