#include <errno.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

/* chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service sys_chroot audit_write setfcap */
#define KEPT_CAPABILITIES 0xa00405fbull

static bool entered;

/*
 * Sets the file-system ids, which decide over access to files alone: they let no process signal or trace this one. With another
 * uid than 0 the kernel also takes away the capabilities that override file permissions. Order: groups and gid first, while the
 * capability to set them is there; uid last, and back the other way round.
 */
void fs_enter(const Cred *cred) {
  if (!agent.privileged || entered) return;
  entered = true;
  (void)syscall(SYS_setgroups, cred->ngroups, cred->groups);
  setfsgid(cred->gid);
  setfsuid(cred->uid);
}

void fs_leave(void) {
  if (!entered) return;
  entered = false;
  setfsuid(agent.uid);
  setfsgid(agent.gid);
  (void)syscall(SYS_setgroups, 0, NULL);
}

int become(const Cred *cred) {
  if (!agent.privileged) return 0;
  bool same = cred->uid == agent.uid && cred->gid == agent.gid;
  /* A user namespace with one user forbids setgroups. */
  if (syscall(SYS_setgroups, cred->ngroups, cred->groups) != 0 && !same) return errno;
  if (syscall(SYS_setresgid, cred->gid, cred->gid, cred->gid) != 0) return errno;
  if (syscall(SYS_setresuid, cred->uid, cred->uid, cred->uid) != 0) return errno;
  return 0;
}

/* Drops capabilities from the bounding set, permitted and effective; leaves none inheritable or ambient. Returns false when that
 * is forbidden. */
bool cut_capabilities(void) {
  struct {
    uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  struct {
    uint32_t effective, permitted, inheritable;
  } data[2];
  (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  bool all = true;
  for (int cap = 0; cap < 64; cap++) {
    if ((KEPT_CAPABILITIES >> cap & 1) != 0 || prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 1) continue;
    if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0) all = false;
  }
  if (syscall(SYS_capget, &header, data) != 0) return false;
  for (int i = 0; i < 2; i++) {
    uint32_t kept = (uint32_t)(KEPT_CAPABILITIES >> (32 * i));
    data[i].permitted &= kept;
    data[i].effective = data[i].permitted;
    data[i].inheritable = 0;
  }
  return syscall(SYS_capset, &header, data) == 0 && all;
}
