/*
 * Spreads directories over the groups of an ext4. Without a journal ext4 gives no inode away that was free for less than a
 * minute, and searches from the beginning of the directory's group: where sandboxes come and go, each new file costs a walk over
 * all recently removed ones. Directories below one that is marked as the top of a hierarchy begin in groups of their own.
 */
#define _GNU_SOURCE
#include "../spawner.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef FS_TOPDIR_FL
#define FS_TOPDIR_FL 0x00020000
#endif

/* Journals are named for their device: "sda1-8". A journal on a device of its own is not found, which does no harm. */
static bool has_journal(dev_t device) {
  char path[64], link[PATH_MAX];
  snprintf(path, sizeof path, "/sys/dev/block/%u:%u", major(device), minor(device));
  ssize_t length = readlink(path, link, sizeof link - 1);
  DIR *journals = opendir("/proc/fs/jbd2");
  if (length <= 0 || journals == NULL) {
    if (journals) closedir(journals);
    return true;
  }
  link[length] = 0;
  const char *name = strrchr(link, '/') ? strrchr(link, '/') + 1 : link;
  size_t size = strlen(name);
  bool found = false;
  for (struct dirent *entry; (entry = readdir(journals)) != NULL;)
    found |= strncmp(entry->d_name, name, size) == 0 && entry->d_name[size] == '-';
  closedir(journals);
  return found;
}

/* Affects only speed: errors are ignored. */
void scatter_below(const char *directory) {
  struct statfs kind;
  struct stat info;
  int flags, fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  if (fstatfs(fd, &kind) == 0 && kind.f_type == EXT4_SUPER_MAGIC && fstat(fd, &info) == 0 && !has_journal(info.st_dev) &&
      ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && !(flags & FS_TOPDIR_FL)) {
    flags |= FS_TOPDIR_FL;
    ioctl(fd, FS_IOC_SETFLAGS, &flags);
  }
  close(fd);
}
