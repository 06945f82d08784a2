/* The file system that a sandbox writes: layers, and one more on top. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

/* An earlier mount of the same disk that was not to be flushed has left its mark, and no other is let in after it. What it
 * wrote is all there as long as the machine has not been off, and then the sandbox is no more. */
static void remove_mark(const char *work) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/work/incompat", work);
  if (access(path, F_OK) == 0) tree_remove(path);
}

/*
 * `options` name the layers, `work` is the work directory among them. At the end of an overlay the kernel writes out the
 * whole file system below it, with what everybody else has written there: not for one whose disk is thrown away.
 */
int mount_overlay(const char *target, const char *options, const char *work, bool fleeting) {
  char all[4250];
  /* A kernel may index by default; it then refuses what an earlier mount, on its way out, still has. */
  int length = snprintf(all, sizeof all, "%s,index=off", options);
  if (fleeting) {
    remove_mark(work);
    snprintf(all + length, sizeof all - (size_t)length, ",volatile");
    if (mount("overlay", target, "overlay", MS_NODEV, all) == 0) return 0;
    /* Kernels before 5.10 do not know the word. */
    if (errno != EINVAL) return -1;
    all[length] = 0;
  }
  return mount("overlay", target, "overlay", MS_NODEV, all);
}
