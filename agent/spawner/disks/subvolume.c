/* Makes each disk a subvolume where the state directory lies on btrfs: a copy takes the same time whatever its content, and
 * shares every block. Elsewhere, and where that is refused, a disk is a plain directory. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Inode of every subvolume's top directory. */
#define TOP_INODE 256

static bool on_btrfs(const char *path) {
  struct statfs info;
  return statfs(path, &info) == 0 && (unsigned long)info.f_type == BTRFS_SUPER_MAGIC;
}

bool on_subvolumes(void) { return on_btrfs(settings.base); }

/* Opens the directory that holds `path`, and returns its last part in `name`. */
static int open_holder(const char *path, char name[BTRFS_SUBVOL_NAME_MAX + 1]) {
  char copy[PATH_MAX * 2];
  snprintf(copy, sizeof copy, "%s", path);
  snprintf(name, BTRFS_SUBVOL_NAME_MAX + 1, "%s", basename(copy));
  snprintf(copy, sizeof copy, "%s", path);
  return open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int close_with(int fd, int result) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return result;
}

/* Makes the directory of a disk with mode 0755. */
int disk_directory(const char *path) {
  struct btrfs_ioctl_vol_args request = {0};
  struct stat info;
  if (stat(path, &info) == 0) return errno = EEXIST, -1;
  int holder = open_holder(path, request.name);
  if (holder >= 0 && on_btrfs(settings.base) && ioctl(holder, BTRFS_IOC_SUBVOL_CREATE, &request) == 0)
    return close_with(holder, chmod(path, 0755));
  return close_with(holder, mkdir(path, 0755));
}

bool is_subvolume(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && info.st_ino == TOP_INODE && on_btrfs(path);
}

/* Copies a subvolume; `to` must not exist. */
int subvolume_copy(const char *from, const char *to) {
  struct btrfs_ioctl_vol_args_v2 request = {0};
  int source = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0) return -1;
  int holder = open_holder(to, request.name);
  request.fd = source;
  int failed = holder < 0 ? -1 : ioctl(holder, BTRFS_IOC_SNAP_CREATE_V2, &request);
  close_with(holder, 0);
  return close_with(source, failed);
}

/* Removes a subvolume at once; the space is given back in the background. */
int subvolume_remove(const char *path) {
  struct btrfs_ioctl_vol_args request = {0};
  int holder = open_holder(path, request.name);
  return close_with(holder, holder < 0 ? -1 : ioctl(holder, BTRFS_IOC_SNAP_DESTROY, &request));
}
