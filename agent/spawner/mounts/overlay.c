/* Mounts the file system that a sandbox writes: layers, and a writable one on top. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

/* Removes the mark of an earlier volatile mount of the same disk, which makes the kernel refuse any further one. All writes of
 * that mount are there as long as the machine has not been off; after that the sandbox no longer exists. */
static void remove_mark(const char *work) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/work/incompat", work);
  if (access(path, F_OK) == 0) tree_remove(path);
}

/*
 * Mounts an overlay. `options` name the layers, `work` is the work directory among them. When an overlay ends the kernel writes
 * out the whole file system below it, with the writes of every other process: a disk that is thrown away (`fleeting`) is mounted
 * volatile instead.
 */
int mount_overlay(const char *target, const char *options, const char *work, bool fleeting) {
  char all[4250];
  /* The kernel may index by default; it then refuses directories that an earlier mount, still on its way out, uses. */
  int length = snprintf(all, sizeof all, "%s,index=off", options);
  if (fleeting) {
    remove_mark(work);
    snprintf(all + length, sizeof all - (size_t)length, ",volatile");
    if (mount("overlay", target, "overlay", MS_NODEV, all) == 0) return 0;
    /* Kernels before 5.10 do not know `volatile`. */
    if (errno != EINVAL) return -1;
    all[length] = 0;
  }
  return mount("overlay", target, "overlay", MS_NODEV, all);
}
