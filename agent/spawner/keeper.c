/*
 * Who is to live in a slot is born in it. To move a process into a control group, the kernel stops every fork, exec and exit
 * of the machine until all processors have passed a quiet moment: some ten milliseconds for whoever is being started just
 * then. A child is where its parent is. On version 2 it can be born elsewhere; on version 1 a keeper stays in each slot that
 * is used again and again, and has the children. It is left there by the first one, who had to move.
 */
#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each takes some memory, and there may be thousands of slots: those whose sandboxes live long do without. */
#define KEEPERS_MAX 32
/* It answers within a millisecond, unless its group has used up its processor or its memory. Everybody waits meanwhile. */
#define ANSWER_MS 500

static struct slot *kept[KEEPERS_MAX];
static unsigned births;

static void __attribute__((noreturn)) keeper_main(int socket, pid_t spawner) {
  struct birth birth;
  int fds[PASSED_MAX];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != spawner) _exit(0);
  prctl(PR_SET_NAME, "sbx-keeper");
  dup2(socket, 3);
  close_range(4, ~0u, 0);
  pid_t pid = getpid();
  while (send(3, &pid, sizeof pid, MSG_NOSIGNAL) == sizeof pid) {
    if (receive_with(3, &birth, sizeof birth, fds, PASSED_MAX, 0) != sizeof birth) break;
    pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) launcher_begin(&birth, fds);
    for (int i = 0; i < PASSED_MAX; i++)
      if (fds[i] >= 0) close(fds[i]);
  }
  _exit(0);
}

/* 0 when there is none; or it has not said yet who it is, and then `patient` decides. */
static pid_t pid_of(struct slot *slot, bool patient) {
  if (slot->keeper.socket <= 0) return 0;
  if (slot->keeper.pid == 0 && recv(slot->keeper.socket, &slot->keeper.pid, sizeof slot->keeper.pid, patient ? 0 : MSG_DONTWAIT) !=
                                   sizeof slot->keeper.pid)
    slot->keeper.pid = 0;
  return slot->keeper.pid;
}

/* Whether one of ours is in there, too. */
bool slot_is_kept(const struct slot *slot) { return slot != NULL && slot->keeper.socket > 0; }

pid_t keeper_pid(struct slot *slot) { return pid_of(slot, false); }

static void forget(struct slot *slot) {
  close(slot->keeper.socket);
  slot->keeper = (struct keeper){0, 0, 0};
  for (int i = 0; i < KEEPERS_MAX; i++)
    if (kept[i] == slot) kept[i] = NULL;
  slot_limit_again(slot);
}

/* It goes; `wait`: and is gone, so that the slot can be removed. */
void keeper_end(struct slot *slot, bool wait) {
  pid_t pid = pid_of(slot, wait);
  if (slot->keeper.socket <= 0) return;
  /* One that has not said who it is leaves when it finds nobody to say it to. */
  if (pid > 0) kill(pid, SIGKILL);
  if (pid > 0 && wait) waitpid(pid, NULL, 0);
  forget(slot);
}

/* Whoever lives in a slot lives on, and may stand still: its keeper cannot be waited for then, and ends when it goes on. */
void keepers_end(void) {
  for (int i = 0; i < KEEPERS_MAX; i++)
    if (kept[i]) keeper_end(kept[i], !kept[i]->used);
}

/* Ended unasked, or for want of memory in its slot. */
bool keeper_reaped(pid_t pid) {
  for (int i = 0; i < KEEPERS_MAX; i++)
    if (kept[i] && keeper_pid(kept[i]) == pid) return forget(kept[i]), true;
  return false;
}

/* A place for one more, if need be that of the one whose sandbox has lived longest. */
static struct slot **free_place(void) {
  int oldest = -1;
  for (int i = 0; i < KEEPERS_MAX; i++) {
    if (kept[i] == NULL) return &kept[i];
    if (kept[i]->used && (oldest < 0 || kept[i]->keeper.born < kept[oldest]->keeper.born)) oldest = i;
  }
  if (oldest < 0) return NULL;
  keeper_end(kept[oldest], false);
  return &kept[oldest];
}

static pid_t born_of_keeper(struct slot *slot, const struct birth *birth, const int *fds, int count) {
  pid_t pid = 0;
  if (pid_of(slot, true) <= 0) return 0;
  if (send_with(slot->keeper.socket, birth, sizeof *birth, fds, count, 0) < 0) return 0;
  return recv(slot->keeper.socket, &pid, sizeof pid, 0) == sizeof pid ? pid : 0;
}

/* On version 2; -1 where the kernel (before 5.7) or whoever gave us the group does not allow it. */
static pid_t born_into(const struct slot *slot) {
  char path[PATH_MAX + 32];
  slot_dir(slot, UNIFIED, path, sizeof path);
  int group = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (group < 0) return -1;
  struct clone_args arguments = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)group};
  pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid != 0) close(group);
  return pid;
}

static pid_t move_in(struct slot *slot, const struct birth *birth, const int *fds, int count) {
  int pair[2] = {-1, -1}, own[PASSED_MAX + 1];
  struct timeval patience = {.tv_usec = ANSWER_MS * 1000};
  struct slot **place = slot == NULL || groups.have[UNIFIED] ? NULL : free_place();
  if (place && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) place = NULL;
  if (place) setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  pid_t spawner = getpid(), pid = fork();
  if (pid == 0) {
    /* Before it moves, which takes long. */
    memcpy(own, fds, sizeof *own * (size_t)count);
    own[count] = pair[1];
    keep_only(own, count + 1);
    if (slot_join(slot) < 0) _exit(2);
    if (place && syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) keeper_main(own[count], spawner);
    launcher_begin(birth, own);
  }
  if (pair[1] >= 0) close(pair[1]);
  if (place && pid > 0) {
    slot->keeper = (struct keeper){.socket = pair[0], .born = ++births};
    *place = slot;
    slot_limit_again(slot);
  } else if (place) close(pair[0]);
  return pid;
}

/* A child of ours that begins in the slot, or in none. -1 also when a keeper did not say in time that it has one: that one is
 * gone, with its keeper, but may have used what it was given. */
pid_t slot_fork(struct slot *slot, const struct birth *birth, const int *fds, int count) {
  if (slot && groups.have[UNIFIED]) {
    pid_t pid = born_into(slot);
    if (pid == 0) launcher_begin(birth, fds);
    if (pid > 0) return pid;
  }
  if (slot_is_kept(slot)) {
    pid_t pid = born_of_keeper(slot, birth, fds, count);
    slot->keeper.born = ++births;
    if (pid > 0) return pid;
    keeper_end(slot, false);
    slot_kill(slot);
    return -1;
  }
  return move_in(slot, birth, fds, count);
}
