/* Starts launchers as children of a zygote's parent, and sets up each launcher. Part of the spawner, and of a runtime that is
 * kept loaded. */
#define _GNU_SOURCE
#include "birth.h"

#include "../spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets up the new process, which is in its slot already: the given descriptors in their places, all others closed, and a mount
 * namespace of its own. */
void birth_settle(const struct birth *birth, const int *fds) {
  int given[GIVEN_COUNT], count = GIVEN_COUNT - !birth->early;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != birth->spawner) _exit(0);
  prctl(PR_SET_NAME, "sbx-launcher");
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  /* Moves descriptors above 16 first, then into place: the number of one may be the place of another. */
  for (int i = 0; i < count; i++) given[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < count; i++) dup2(given[i], i);
  close_range((unsigned)count, ~0u, 0);
  if (unshare(CLONE_NEWNS) < 0) _exit(2);
  /* Joins a session keyring that no other sandbox has. Where the kernel has no keys, or forbids them to the spawner, there is
   * none to share; without root the number is limited (kernel.keys.maxkeys), and all sandboxes are one user's. */
  bool joined = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0;
  if (!joined && errno != ENOSYS && errno != EPERM && errno != EDQUOT) _exit(2);
}

/* Sends the mount namespace to the mounter. From then on only the runtime's descriptors are open. */
void birth_tell_mounts(void) {
  int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (mounts < 0 || send_with(GIVEN_SOCKET, "m", 1, &mounts, 1, 0) < 0) _exit(2);
  dup2(GIVEN_CONFIG, IN_CONFIG);
  close_range(IN_COUNT, ~0u, 0);
}

/* Forks a child of the zygote's parent, which will wait for it. */
static pid_t have(const struct birth *birth, const int *fds) {
  if (!birth->grouped) return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  struct clone_args arguments = {.flags = CLONE_PARENT | CLONE_INTO_CGROUP, .cgroup = (uint64_t)fds[GIVEN_GROUP]};
  return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

/* Sends its own pid, then the pid of the child forked for each request. Returns in the child only. */
void keeper_serve(struct birth *birth, int *fds) {
  pid_t pid = getpid();
  prctl(PR_SET_NAME, "sbx-keeper");
  while (send(KEEPER_SOCKET, &pid, sizeof pid, MSG_NOSIGNAL) == sizeof pid) {
    if (receive_with(KEEPER_SOCKET, birth, sizeof *birth, fds, PASSED_MAX, 0) != sizeof *birth) break;
    if ((pid = have(birth, fds)) == 0) return;
    for (int i = 0; i < PASSED_MAX; i++)
      if (fds[i] >= 0) close(fds[i]);
  }
  _exit(0);
}
