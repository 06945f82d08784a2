/* Capabilities, and file access without them. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Host id that owns no file: the overflow id of kernel and distributions. */
#define NOBODY 65534u

struct sets {
  struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
};

static int get(struct sets *sets) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  return (int)syscall(SYS_capget, &header, sets->data);
}

static int set(const struct sets *sets) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  return (int)syscall(SYS_capset, &header, sets->data);
}

/* Keeps, for good, only those of `kept` that this process has, and none to pass on. */
int capabilities_keep(uint64_t kept) {
  struct sets sets;
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  /* Without SETPCAP the bounding set stays: it matters only for exec. */
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
    if ((kept >> capability & 1) == 0) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  if (get(&sets) < 0) return -1;
  for (int i = 0; i < 2; i++) {
    sets.data[i].permitted &= (uint32_t)(kept >> (32 * i));
    sets.data[i].effective = sets.data[i].permitted;
    sets.data[i].inheritable = 0;
  }
  return set(&sets);
}

/*
 * Mounts `lower` at `target`, read-only, so that every user sees owners and modes as they are and can open only files that the
 * host's nobody may: overlayfs also checks the rights of the process that mounted it, which is nobody here. `empty` is an empty
 * directory, since overlayfs needs two layers.
 */
int mount_as_nobody(const char *lower, const char *empty, const char *target) {
  char options[512];
  struct sets sets, lesser;
  snprintf(options, sizeof options, "lowerdir=%s:%s,index=off,redirect_dir=nofollow", lower, empty);
  if (get(&sets) < 0 || setgroups(0, NULL) < 0) return -1;
  lesser = sets;
  for (int i = 0; i < 2; i++) lesser.data[i].effective &= i == 0 ? 1u << CAP_SYS_ADMIN : 0;
  uid_t user = (uid_t)setfsuid(NOBODY);
  gid_t group = (gid_t)setfsgid(NOBODY);
  int failed = -1, error = EPERM;
  /* setfsuid reports no failure: the result of a second call is the id in force. */
  if (setfsuid(NOBODY) == (int)NOBODY && setfsgid(NOBODY) == (int)NOBODY && set(&lesser) == 0) {
    failed = mount("overlay", target, "overlay", MS_NODEV | MS_RDONLY, options);
    error = errno;
  }
  setfsuid(user);
  setfsgid(group);
  if (set(&sets) < 0) return -1;
  errno = error;
  return failed;
}
