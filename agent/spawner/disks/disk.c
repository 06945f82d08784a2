/* Disk of limited size: a file with a file system of its own, attached by a loop device that is gone with its last mount. Only
 * this kernel wrote the file: no program inside can reach the raw image. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef LOOP_CONFIGURE
#define LOOP_CONFIGURE 0x4C0A
struct loop_config {
  __u32 fd;
  __u32 block_size;
  struct loop_info64 info;
  __u64 __reserved[8];
};
#endif

/* Returns the device that has the file attached already. A second device would have a second cache of the same file. */
static int attached_device(const struct stat *image, char *device, size_t size) {
  DIR *directory = opendir("/sys/block");
  int found = -1;
  for (struct dirent *entry; directory && found < 0 && (entry = readdir(directory)) != NULL;) {
    char path[PATH_MAX];
    struct loop_info64 info;
    if (strncmp(entry->d_name, "loop", 4) != 0) continue;
    snprintf(path, sizeof path, "/sys/block/%s/loop", entry->d_name);
    if (access(path, F_OK) < 0) continue;
    snprintf(device, size, "/dev/%s", entry->d_name);
    int fd = open(device, O_RDWR | O_CLOEXEC);
    if (fd < 0) continue;
    if (ioctl(fd, LOOP_GET_STATUS64, &info) == 0 && info.lo_inode == image->st_ino && info.lo_device == image->st_dev)
      found = fd;
    else close(fd);
  }
  if (directory) closedir(directory);
  return found;
}

static int attach_device(int image, char *device, size_t size) {
  int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) return -1;
  int result = -1;
  /* Another process may take the free device between the query and the attach. */
  for (int tries = 0; tries < 64 && result < 0; tries++) {
    int number = ioctl(control, LOOP_CTL_GET_FREE);
    if (number < 0) break;
    snprintf(device, size, "/dev/loop%d", number);
    int fd = open(device, O_RDWR | O_CLOEXEC);
    if (fd < 0) break;
    struct loop_config config = {.fd = (__u32)image, .info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
    if (ioctl(fd, LOOP_CONFIGURE, &config) == 0) result = fd;
    else {
      close(fd);
      if (errno != EBUSY) break;
    }
  }
  int error = errno;
  close(control);
  errno = error;
  return result;
}

int disk_mount(const char *path, const char *target) {
  char device[64];
  struct stat info;
  int image = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (image < 0 || fstat(image, &info) < 0) return -1;
  int fd = attached_device(&info, device, sizeof device);
  if (fd < 0) fd = attach_device(image, device, sizeof device);
  close(image);
  if (fd < 0) return -1;
  int failed = mount(device, target, "ext4", MS_NODEV | MS_NOATIME, "noinit_itable");
  int error = errno;
  close(fd);
  errno = error;
  return failed;
}

bool disk_is_image(const char *id, char *path, size_t size) {
  snprintf(path, size, "%s/sandboxes/%s/disk/image", settings.base, id);
  return access(path, F_OK) == 0;
}
