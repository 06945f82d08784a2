/* Capabilities, and file access without any. */
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

/* An id of the host that owns no file: overflow id of kernel and distributions. */
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

/* Leaves this process, for good, with those of `kept` that it has, and with none to pass on. */
int capabilities_keep(uint64_t kept) {
  struct sets sets;
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  /* Without SETPCAP the bounding set stays: it counts for exec alone. */
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
 * Mounts `lower` at `target`, read-only, so that everybody sees owners and modes as they are and can open only what the
 * host's nobody may: overlayfs asks for whoever mounted it, too, and that one is nobody here. `empty` is an empty directory,
 * since it wants two layers.
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
  /* setfsuid tells no failure: the answer of a second call is what is in force. */
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
