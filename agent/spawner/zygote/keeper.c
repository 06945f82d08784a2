/*
 * Starts processes inside their slot. To move a process into a control group, the kernel stops every fork, exec and exit of the
 * machine until all processors have passed a quiet moment: some ten milliseconds for any sandbox that is being started just then.
 * A child starts in its parent's group. On version 2 it can start in another; on version 1 a zygote (`struct keeper`) stays in
 * each slot that is used again and again, and forks the launchers. The first launcher of the slot, which had to move, leaves it
 * there.
 *
 * A zygote is the runtime itself where possible (preload.c): it is then loaded once and not for every sandbox. Where slots need
 * no zygotes there is one for all, `nurse`.
 */
#define _GNU_SOURCE
#include "../groups/cgroup.h"

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

/* Most zygotes. Each takes some memory, and there may be thousands of slots: those whose sandboxes live long have none. */
#define KEEPERS_MAX 24
/* Time for an answer. A zygote answers within a millisecond, unless its group has used up its processor or its memory. The whole
 * spawner waits meanwhile. */
#define ANSWER_MS 500
/* After this many zygotes that ended before they sent their pid, the runtime is loaded for each sandbox. */
#define SPEECHLESS_MAX 4
#define PRELOAD "sandboxer-preload.so"

static struct slot *kept[KEEPERS_MAX];
static struct keeper nurse;
static unsigned births;
static int preload = -1, speechless;

static void __attribute__((noreturn)) keeper_begin(int socket, int library, pid_t spawner) {
  struct birth birth;
  int fds[PASSED_MAX], own[] = {socket, library};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != spawner) _exit(0);
  keep_only(own, 2);
  if (library >= 0) runtime_exec_keeper();
  keeper_serve(&birth, fds);
  launcher_begin(&birth, fds);
}

/* Returns the zygote's pid; 0 if there is none, or if it has not sent its pid yet and `patient` is false. */
static pid_t pid_of(struct keeper *keeper, bool patient) {
  if (keeper->socket <= 0 || keeper->pid > 0) return keeper->socket <= 0 ? 0 : keeper->pid;
  ssize_t got = recv(keeper->socket, &keeper->pid, sizeof keeper->pid, patient ? 0 : MSG_DONTWAIT);
  if (got != sizeof keeper->pid) keeper->pid = 0;
  if (got == 0 && keeper->loaded && preload >= 0 && ++speechless == SPEECHLESS_MAX) {
    say("%s cannot be kept loaded", settings.runtime);
    close(preload);
    preload = -1;
  }
  return keeper->pid;
}

/* Returns whether a zygote runs in the slot. */
bool slot_is_kept(const struct slot *slot) { return slot != NULL && slot->keeper.socket > 0; }

pid_t keeper_pid(struct slot *slot) { return pid_of(&slot->keeper, false); }

static void forget(struct slot *slot) {
  close(slot->keeper.socket);
  slot->keeper = (struct keeper){0};
  for (int i = 0; i < KEEPERS_MAX; i++)
    if (kept[i] == slot) kept[i] = NULL;
  slot_limit_again(slot);
}

/* Ends the slot's zygote; `wait`: until it is gone, so that the slot can be removed. */
void keeper_end(struct slot *slot, bool wait) {
  pid_t pid = pid_of(&slot->keeper, wait);
  if (slot->keeper.socket <= 0) return;
  /* A zygote that has not sent its pid leaves when its socket is closed. */
  if (pid > 0) kill(pid, SIGKILL);
  if (pid > 0 && wait) waitpid(pid, NULL, 0);
  forget(slot);
}

static void nurse_forget(void) {
  if (nurse.socket > 0) close(nurse.socket);
  nurse = (struct keeper){0};
}

static void nurse_end(void) {
  pid_t pid = pid_of(&nurse, false);
  if (pid > 0) kill(pid, SIGKILL);
  nurse_forget();
}

/* Ends all zygotes. A sandbox in a slot goes on and may be frozen: its zygote then ends only after a thaw, and is not waited for.
 * */
void keepers_end(void) {
  for (int i = 0; i < KEEPERS_MAX; i++)
    if (kept[i]) keeper_end(kept[i], !kept[i]->used);
  nurse_end();
}

/* Forgets a zygote that ended by itself, or for want of memory in its slot. */
bool keeper_reaped(pid_t pid) {
  if (pid_of(&nurse, false) == pid) return nurse_forget(), true;
  for (int i = 0; i < KEEPERS_MAX; i++)
    if (kept[i] && keeper_pid(kept[i]) == pid) return forget(kept[i]), true;
  return false;
}

/* Returns a free place, if need be after ending the zygote whose sandbox has lived longest. */
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

static pid_t born_of(struct keeper *keeper, const struct birth *birth, const int *fds, int count) {
  pid_t pid = 0;
  if (pid_of(keeper, true) <= 0) return 0;
  if (send_with(keeper->socket, birth, sizeof *birth, fds, count, 0) < 0) return 0;
  return recv(keeper->socket, &pid, sizeof pid, 0) == sizeof pid ? pid : 0;
}

/* Makes the socket between the spawner and a zygote. */
static bool connect_keeper(int pair[2]) {
  struct timeval patience = {.tv_usec = ANSWER_MS * 1000};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return false;
  return setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), true;
}

void keepers_begin(void) {
  char path[PATH_MAX];
  int pair[2];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof PRELOAD - 1);
  while (length > 0 && path[length - 1] != '/') length--;
  if (length <= 0) return;
  strcpy(path + length, PRELOAD);
  preload = open(path, O_RDONLY | O_CLOEXEC);
  bool slots_have_keepers = cgroups_usable() && !groups.have[UNIFIED];
  if (preload < 0 || slots_have_keepers || !connect_keeper(pair)) return;
  pid_t spawner = getpid(), pid = fork();
  if (pid == 0) keeper_begin(pair[1], preload, spawner);
  close(pair[1]);
  if (pid > 0) nurse = (struct keeper){.socket = pair[0], .loaded = true};
  else close(pair[0]);
}

/* Returns the new process's pid, 0 if the shared zygote does not run, -1 if it did not answer (it is then ended). */
static pid_t born_of_nurse(const struct slot *slot, const struct birth *birth, const int *fds, int count) {
  char path[PATH_MAX + 32];
  struct birth told = *birth;
  int given[PASSED_MAX];
  if (nurse.socket <= 0 || !birth->early) return 0;
  memcpy(given, fds, sizeof *given * (size_t)count);
  if ((told.grouped = slot != NULL)) {
    slot_dir(slot, UNIFIED, path, sizeof path);
    if ((given[count] = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) return 0;
  }
  pid_t pid = born_of(&nurse, &told, given, count + told.grouped);
  if (told.grouped) close(given[count]);
  if (pid > 0) return pid;
  nurse_end();
  return -1;
}

/* Forks into the slot, on version 2. Returns -1 where the kernel (before 5.7) or the owner of the group forbids it. */
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
  int pair[2] = {-1, -1}, own[PASSED_MAX + 2];
  struct slot **place = slot == NULL || groups.have[UNIFIED] || slot_is_kept(slot) ? NULL : free_place();
  if (place && !connect_keeper(pair)) place = NULL;
  pid_t spawner = getpid(), pid = fork();
  if (pid == 0) {
    /* Closes all other descriptors before the move, which takes long. */
    memcpy(own, fds, sizeof *own * (size_t)count);
    own[count] = pair[1];
    own[count + 1] = preload;
    keep_only(own, count + 2);
    if (slot_join(slot) < 0) _exit(2);
    if (place && syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) keeper_begin(own[count], own[count + 1], spawner);
    launcher_begin(birth, own);
  }
  if (pair[1] >= 0) close(pair[1]);
  if (place && pid > 0) {
    slot->keeper = (struct keeper){.socket = pair[0], .born = ++births, .loaded = preload >= 0};
    *place = slot;
    slot_limit_again(slot);
  } else if (place) close(pair[0]);
  return pid;
}

/* Forks a child of the spawner that begins in the slot, or in none. Returns -1 also when a zygote did not answer in time: its
 * child and the zygote are ended, but the child may have used its descriptors. */
pid_t slot_fork(struct slot *slot, const struct birth *birth, const int *fds, int count) {
  pid_t pid = born_of_nurse(slot, birth, fds, count);
  if (pid != 0) {
    if (pid < 0) slot_kill(slot);
    return pid;
  }
  if (slot && groups.have[UNIFIED]) {
    pid = born_into(slot);
    if (pid == 0) launcher_begin(birth, fds);
    if (pid > 0) return pid;
  }
  if (slot_is_kept(slot) && (birth->early || !slot->keeper.loaded)) {
    pid = born_of(&slot->keeper, birth, fds, count);
    slot->keeper.born = ++births;
    if (pid > 0) return pid;
    keeper_end(slot, false);
    slot_kill(slot);
    return -1;
  }
  return move_in(slot, birth, fds, count);
}
