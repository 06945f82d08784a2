/* Attaches directories and files of the host that a sandbox is shown, from its file "mounts". Each entry has "ro" or "rw", the
 * device and inode that were judged, the field that asked for it, its path and a NUL, with blanks between. A mount is attached
 * only if its path has no link in it and still ends at the judged directory or file. The spawner attaches mounts, not the
 * runtime: crun 1.8.1 ignores further options of a plain bind, and flags of a mount that enters a lesser user namespace cannot be
 * loosened there. */
#define _GNU_SOURCE
#include "../sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct bind {
  bool read_only;
  unsigned long long device, inode;
  const char *field, *path;
};

/* Parses "ro 64769 1234 inputs.mounts[0].source /path". */
static bool read_bind(char *text, struct bind *bind) {
  char *end;
  bind->read_only = strncmp(text, "ro ", 3) == 0;
  if (!bind->read_only && strncmp(text, "rw ", 3) != 0) return false;
  bind->device = strtoull(text + 3, &end, 10);
  if (*end != ' ') return false;
  bind->inode = strtoull(end + 1, &end, 10);
  char *blank = *end == ' ' ? strchr(end + 1, ' ') : NULL;
  if (blank == NULL) return false;
  *blank = 0;
  bind->field = end + 1;
  bind->path = blank + 1;
  return bind->path[0] == '/';
}

/* Opens the judged path. ESTALE: another file is there now. */
static int open_judged(const struct bind *bind, struct stat *info) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW, .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  int fd = (int)syscall(SYS_openat2, AT_FDCWD, bind->path, &how, sizeof how);
  if (fd < 0) return -1;
  bool same = fstat(fd, info) == 0 && info->st_dev == bind->device && info->st_ino == bind->inode;
  if (same && (S_ISDIR(info->st_mode) || S_ISREG(info->st_mode))) return fd;
  close(fd);
  errno = ESTALE;
  return -1;
}

static int make_target(const struct stat *source, const char *name) {
  if (S_ISDIR(source->st_mode)) return mkdir(name, 0700) < 0 && errno != EEXIST ? -1 : 0;
  int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  close(fd);
  return 0;
}

static int attach_bind(const struct bind *bind, const char *name) {
  struct stat info;
  int source = open_judged(bind, &info);
  if (source < 0) return -1;
  uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (bind->read_only ? MOUNT_ATTR_RDONLY : 0);
  int failed = make_target(&info, name) < 0 ? -1 : attach_from(source, "", name, -1, attributes);
  int error = errno;
  close(source);
  errno = error;
  return failed;
}

/* Attaches the mounts as b/m0, b/m1 … below the current directory, on a file system that no other sandbox has: the same name is a
 * directory for one sandbox and a file for another, and a removal would affect all. Returns 0, or -1 with the field of the failed
 * mount. */
int mount_binds(const char *id, char *failed, size_t size) {
  char path[PATH_MAX + ID_MAX + 32], line[PATH_MAX + 128], name[24];
  struct bind bind;
  path_of(id, "mounts", path, sizeof path);
  snprintf(failed, size, "mounts");
  FILE *file = fopen(path, "re");
  if (file == NULL) return errno == ENOENT ? 0 : -1;
  size_t length = 0;
  int count = 0, result = mount("tmpfs", "b", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=0711");
  for (int byte; result == 0 && (byte = getc(file)) != EOF;) {
    if (length == sizeof line) errno = ENAMETOOLONG, result = -1;
    else line[length++] = (char)byte;
    if (byte != 0 || result < 0) continue;
    snprintf(name, sizeof name, "b/m%d", count++);
    if (!read_bind(line, &bind)) errno = EINVAL, result = -1;
    else if ((result = attach_bind(&bind, name)) < 0) snprintf(failed, size, "%s", bind.field);
    length = 0;
  }
  int error = errno;
  fclose(file);
  errno = error;
  return result;
}
