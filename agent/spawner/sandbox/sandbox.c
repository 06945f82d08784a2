/* Life of each sandbox: launching, live, ending, dead. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const STATES[] = {"launching", "live", "ending", "dead"};

void keep_waiting(struct request waiters[WAITERS], const struct request *request) {
  for (int i = 0; i < WAITERS; i++)
    if (waiters[i].seq[0] == 0) {
      waiters[i] = *request;
      return;
    }
  answer_error(request, "busy", "too many callers wait for it");
}

void close_fd(int *fd, bool watched) {
  if (*fd < 0) return;
  if (watched) unwatch_fd(*fd);
  close(*fd);
  *fd = -1;
}

static void read_error(struct sandbox *sandbox) {
  size_t length = strlen(sandbox->error);
  if (sandbox->error_fd < 0 || length >= sizeof sandbox->error - 1) return;
  ssize_t got = read(sandbox->error_fd, sandbox->error + length, sizeof sandbox->error - 1 - length);
  if (got > 0) sandbox->error[length + (size_t)got] = 0;
}

void remove_runtime_state(const char *id) {
  char path[PATH_MAX + ID_MAX + 32];
  snprintf(path, sizeof path, "%s/run/runtime/%s", settings.base, id);
  tree_remove(path);
}

/* Stores the filter that crun compiled, for the next sandbox with the same one. Without it crun compiles again. */
static void learn_filter(struct sandbox *sandbox) {
  char from[PATH_MAX + ID_MAX + 64], to[PATH_MAX + 128], whole[PATH_MAX + 128];
  if (sandbox->learn[0] == 0) return;
  snprintf(from, sizeof from, "%s/run/runtime/%s/seccomp.bpf", settings.base, sandbox->container);
  snprintf(to, sizeof to, "%s/%s.new", settings.base, sandbox->learn);
  snprintf(whole, sizeof whole, "%s/%s", settings.base, sandbox->learn);
  unlink(to);
  if (file_copy(from, to) < 0 || rename(to, whole) < 0) say("no filter at %s: %s", from, strerror(errno));
}

/* Drops the runtime of a live sandbox. crun needs its state no more; a runtime of another kind may be queried again, so its state
 * stays. */
void runtime_left(struct sandbox *sandbox) {
  close_fd(&sandbox->error_fd, false);
  if (settings.early && !sandbox->called) remove_runtime_state(sandbox->container);
}

static void came_up(struct sandbox *sandbox, pid_t pid);

static void answer_all(struct request waiters[WAITERS], const char *error_code, const char *detail) {
  for (int i = 0; i < WAITERS; i++) {
    if (waiters[i].seq[0] == 0) continue;
    if (error_code) answer_error(&waiters[i], error_code, "%s", detail);
    else answer_ok(&waiters[i], "%s", detail);
    waiters[i].seq[0] = 0;
  }
}

static struct use use_of(const struct sandbox *sandbox) {
  struct use use = sandbox->used, here = slot_use(sandbox->slot);
  if (here.cpu_us >= 0) use.cpu_us = (use.cpu_us < 0 ? 0 : use.cpu_us) + here.cpu_us;
  if (here.peak > use.peak) use.peak = here.peak;
  return use;
}

/* Formats "\tcpu_us=…\tpeak=…", without values that are not counted. */
const char *use_text(const struct sandbox *sandbox) {
  static char text[64];
  struct use use = use_of(sandbox);
  int length = 0;
  text[0] = 0;
  if (use.cpu_us >= 0) length = snprintf(text, sizeof text, "\tcpu_us=%lld", use.cpu_us);
  if (use.peak >= 0) snprintf(text + length, sizeof text - (size_t)length, "\tpeak=%lld", use.peak);
  return text;
}

/* Formats "\tpid=…\tstarted=…\tslot=…": where the sandbox runs, for the answer to its request. */
const char *place_text(const struct sandbox *sandbox) {
  static char text[96];
  snprintf(text, sizeof text, "\tpid=%d\tstarted=%llu\tslot=%d", sandbox->pid, sandbox->started,
           sandbox->slot ? sandbox->slot->index : -1);
  return text;
}

/* Settles an ended sandbox, once both the agent and the runtime are gone: the runtime writes its state after the agent answers.
 * */
void sandbox_settle(struct sandbox *sandbox) {
  char path[PATH_MAX + ID_MAX + 32];
  if (sandbox->runtime > 0 || sandbox->pidfd >= 0) return;
  if (sandbox->state != LAUNCHING && sandbox->state != ENDING && sandbox->state != LIVE) return;
  bool launching = sandbox->state == LAUNCHING;
  read_error(sandbox);
  close_fd(&sandbox->error_fd, false);
  sandbox->state = ENDING;
  if (sandbox->boot >= 0) {
    /* From here on an agent cannot report, and leaves; a report sent before is in the socket. close() alone would not do: a
     * helper that was forked meanwhile holds the socket open. */
    shutdown(sandbox->boot, SHUT_RDWR);
    sandbox_booted(sandbox, 0);
  }
  close_fd(&sandbox->boot, true);
  if (sandbox->frozen || sandbox->copying || sandbox->freeze_look) slot_freeze(sandbox->slot, false);
  if (sandbox->freeze_look) freeze_over(sandbox, false);
  if (sandbox->slot && slot_count(sandbox->slot) > 0) slot_kill(sandbox->slot);
  sandbox->used = use_of(sandbox);
  /* Releases memory charged to the slot before the slot is given back. */
  janitor_release(sandbox->mounts);
  sandbox->mounts = -1;
  slot_give_back(sandbox->slot);
  sandbox->slot = NULL;
  remove_runtime_state(sandbox->container);
  sandbox->state = DEAD;
  sandbox->pid = 0;
  sandbox->frozen = false;
  if (sandbox->capturing) finish_capture(sandbox);
  path_of(sandbox->id, "a.sock", path, sizeof path);
  unlink(path);
  size_t refused = strlen(LAUNCH_REFUSED);
  if (launching && strncmp(sandbox->error, LAUNCH_REFUSED, refused) == 0)
    answer_all(sandbox->creates, "refused", sandbox->error + refused);
  else if (launching) answer_all(sandbox->creates, "launch", sandbox->error[0] ? sandbox->error : "the agent did not start");
  else answer_all(sandbox->creates, "ended", "it was ended");
  /* The directory goes before the event: a client that gets the event checks whether the directory is gone. */
  path_of(sandbox->id, "", path, sizeof path);
  if (sandbox->discard) janitor_discard(path);
  tell_all("gone\tid=%s", sandbox->id);
  if (sandbox->discard) {
    answer_all(sandbox->ends, NULL, use_text(sandbox));
    sandbox_forget(sandbox);
  } else {
    answer_all(sandbox->ends, NULL, "");
    char disk[sizeof path];
    path_of(sandbox->id, "disk", disk, sizeof disk);
    /* A sandbox ended for its disk use and not kept cannot be started again: its disk is removed to make room. */
    if (sandbox->disk.full && !sandbox->keep) janitor_discard(disk);
    else if (access(disk, F_OK) == 0) work_flush(disk);
    /* A sandbox whose directory was removed before it began leaves no state to save. */
    if (access(path, F_OK) < 0) sandbox_forget(sandbox);
    else sandbox_save(sandbox);
    consider_leaving();
  }
  schedule_deadlines();
}

void agent_ended(void *context, uint32_t events) {
  struct sandbox *sandbox = context;
  (void)events;
  close_fd(&sandbox->pidfd, true);
  sandbox_settle(sandbox);
}

/* Holds the mount namespace of an ending sandbox, for the reaper process to release. The kernel takes a namespace apart before it
 * reports the end of the last process in it, and waits for every processor meanwhile. Not for a disk that may be mounted again as
 * it is: only for one that is discarded, or becomes a layer and is not written again. */
static void hold_mounts(struct sandbox *sandbox) {
  char path[64];
  if (!(sandbox->discard || sandbox->capturing) || sandbox->pidfd < 0 || sandbox->mounts >= 0) return;
  snprintf(path, sizeof path, "/proc/%d/ns/mnt", sandbox->pid);
  sandbox->mounts = open(path, O_RDONLY | O_CLOEXEC);
}

void sandbox_end(struct sandbox *sandbox) {
  if (sandbox->state == DEAD) return;
  sandbox->state = ENDING;
  hold_mounts(sandbox);
  if (sandbox->runtime > 0) kill(sandbox->runtime, SIGKILL);
  if (sandbox->pidfd >= 0) syscall(SYS_pidfd_send_signal, sandbox->pidfd, SIGKILL, NULL, 0);
  else slot_kill(sandbox->slot);
  if (sandbox->slot) slot_freeze(sandbox->slot, false);
  sandbox_settle(sandbox);
}

void sandbox_booted(void *context, uint32_t events) {
  struct sandbox *sandbox = context;
  char text[256];
  struct iovec part = {text, sizeof text - 1};
  union {
    char bytes[256];
    struct cmsghdr align;
  } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  (void)events;
  ssize_t length = recvmsg(sandbox->boot, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0 && errno == EAGAIN) return;
  pid_t pid = 0;
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS)
      pid = ((struct ucred *)(void *)CMSG_DATA(header))->pid;
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      /* Closes descriptors that an agent sends unrequested. */
      int fds[32], sent = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      memcpy(fds, CMSG_DATA(header), (size_t)(sent < 32 ? sent : 32) * sizeof(int));
      for (int i = 0; i < sent && i < 32; i++) close(fds[i]);
    }
  }
  if (sandbox->state != LAUNCHING) {
    close_fd(&sandbox->boot, true);
    /* The sandbox was ended before its pid was known; without a slot no other code would find this process. */
    if (length > 0 && pid > 0) kill(pid, SIGKILL);
    return;
  }
  if (length > 0) text[length] = 0;
  bool ready = length > 0 && pid > 0 && strncasecmp(text, "ready", 5) == 0;
  if (!ready) {
    close_fd(&sandbox->boot, true);
    if (length > 0) snprintf(sandbox->error, sizeof sandbox->error, "the agent said: %.200s", text);
    if (pid > 0) kill(pid, SIGKILL);
    sandbox->launch_by = now_ms() + 1000;
    schedule_deadlines();
    sandbox_settle(sandbox);
    return;
  }
  came_up(sandbox, pid);
  launcher_worked();
}

/* Called when the runtime has started a sandbox whose agent calls the host: its first process is in a file. */
void sandbox_started(struct sandbox *sandbox) {
  char path[PATH_MAX + ID_MAX + 32], text[32] = "";
  path_of(sandbox->id, "pid", path, sizeof path);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 && read(fd, text, sizeof text - 1) < 0) text[0] = 0;
  close_fd(&fd, false);
  unlink(path);
  if (atoi(text) > 0) came_up(sandbox, atoi(text));
  else sandbox_settle(sandbox);
}

static void came_up(struct sandbox *sandbox, pid_t pid) {
  sandbox->pid = pid;
  sandbox->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  sandbox->started = start_time(pid);
  sandbox->launch_by = 0;
  if (sandbox->pidfd < 0) return sandbox_settle(sandbox);
  sandbox->state = LIVE;
  watch_fd(sandbox->pidfd, EPOLLIN, agent_ended, sandbox);
  sandbox_save(sandbox);
  /* The next spawner can find the agent from here on. Until the agent gets this message, it ends with this spawner. */
  if (sandbox->boot >= 0) send(sandbox->boot, "k", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  close_fd(&sandbox->boot, true);
  learn_filter(sandbox);
  answer_all(sandbox->creates, NULL, place_text(sandbox));
  if (sandbox->runtime == 0) runtime_left(sandbox);
  schedule_deadlines();
  launchers_fill();
}

/* Gives a sandbox that was started ahead its name, limits and end. Only once: a name that exists is refused. */
void do_claim(const struct request *request, const struct fields *fields) {
  char from[PATH_MAX + ID_MAX + 32], to[PATH_MAX + ID_MAX + 32];
  const char *id = id_of(fields);
  struct fields target = {1, {"id"}, {(char *)field(fields, "to")}};
  const char *name = target.value[0] ? id_of(&target) : NULL;
  struct sandbox *sandbox = id ? *place_of(id) : NULL;
  if (name == NULL) return answer_error(request, "invalid", "to");
  if (sandbox == NULL || sandbox->state != LIVE || sandbox->capturing)
    return answer_error(request, "gone", "it does not run");
  if (*place_of(name)) return answer_error(request, "taken", "the name is taken");
  struct limits limits = {number(fields, "memory", -1), number(fields, "pids", -1), number(fields, "cpu", -1)};
  if (slot_limit(sandbox->slot, &limits) < 0) return answer_error(request, "limits", "its limits cannot be set");
  path_of(id, "", from, sizeof from);
  path_of(name, "", to, sizeof to);
  sandbox->disk.limit = number(fields, "room", -1);
  if (rename(from, to) < 0) return answer_error(request, "claim", "%s", strerror(errno));
  struct sandbox **place = place_of(sandbox->id);
  *place = sandbox->next;
  sandbox->next = NULL;
  snprintf(sandbox->id, sizeof sandbox->id, "%s", name);
  *place_of(sandbox->id) = sandbox;
  sandbox->ends_at = number(fields, "ends_at", 0);
  sandbox->keep = number(fields, "keep", 0) != 0;
  sandbox_save(sandbox);
  schedule_deadlines();
  answer_ok(request, "%s", place_text(sandbox));
}

void do_destroy(const struct request *request, const struct fields *fields) {
  char path[PATH_MAX + ID_MAX + 32];
  const char *id = id_of(fields);
  if (id == NULL) return answer_error(request, "invalid", "id");
  bool discard = number(fields, "discard", 1) != 0;
  struct sandbox *sandbox = *place_of(id);
  if (sandbox == NULL || sandbox->state == DEAD) {
    remove_runtime_state(id);
    path_of(id, "", path, sizeof path);
    if (discard) janitor_discard(path);
    answer_ok(request, "%s", sandbox ? use_text(sandbox) : "");
    if (discard && sandbox) sandbox_forget(sandbox);
    return;
  }
  sandbox->discard |= discard;
  keep_waiting(sandbox->ends, request);
  if (sandbox->state != ENDING) sandbox_end(sandbox);
}
