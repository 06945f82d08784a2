/* A keeper has the launchers of others; a launcher takes its places. In the spawner, and in a runtime that is kept loaded. */
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

/* In the new process, which is in its slot already: what it was given is in its place, nothing else is open, and its mounts
 * are its own. */
void birth_settle(const struct birth *birth, const int *fds) {
  int given[GIVEN_COUNT], count = GIVEN_COUNT - !birth->early;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != birth->spawner) _exit(0);
  prctl(PR_SET_NAME, "sbx-launcher");
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  /* Up and out of the way first, then into place: one may have a number that another is to have. */
  for (int i = 0; i < count; i++) given[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 16);
  for (int i = 0; i < count; i++) dup2(given[i], i);
  close_range((unsigned)count, ~0u, 0);
  if (unshare(CLONE_NEWNS) < 0) _exit(2);
  /* A session keyring that no other sandbox has. Where the kernel has no keys, or forbids them to all of us, there is none to
   * share; without root the number is limited (kernel.keys.maxkeys), and all sandboxes are one user's. */
  bool joined = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0;
  if (!joined && errno != ENOSYS && errno != EPERM && errno != EDQUOT) _exit(2);
}

/* Whoever makes the root file system goes where these mounts are. From then on only what the runtime is to find is open. */
void birth_tell_mounts(void) {
  int mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (mounts < 0 || send_with(GIVEN_SOCKET, "m", 1, &mounts, 1, 0) < 0) _exit(2);
  dup2(GIVEN_CONFIG, IN_CONFIG);
  close_range(IN_COUNT, ~0u, 0);
}

/* A child of our parent's, who will wait for it. */
static pid_t have(const struct birth *birth, const int *fds) {
  if (!birth->grouped) return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
  struct clone_args arguments = {.flags = CLONE_PARENT | CLONE_INTO_CGROUP, .cgroup = (uint64_t)fds[GIVEN_GROUP]};
  return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

/* Says who it is, then for each birth that it is told of whom it had. Comes back in the child alone. */
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
