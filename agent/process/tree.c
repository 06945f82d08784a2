/*
 * Finds the processes of a spawned program: those that carry its mark in the environment they were started with, share its
 * session, or descend from such a process. A daemon that left its parents and its session still carries the mark.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_SCANNED 65536
#define ROUNDS_AT_ONCE 2
#define ROUNDS 200
#define ROUND_MS 10

typedef struct {
  pid_t pid, parent, session;
  bool member;
} Seen;

static Seen *seen;
static size_t seen_cap;

static int open_proc(pid_t pid, const char *file) {
  char path[48];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
  return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads the stat file; returns false for a process that is gone, is a zombie, or cannot be read. */
static bool read_stat(pid_t pid, Seen *one) {
  char text[512], state;
  int parent, session, fd = open_proc(pid, "stat");
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = 0;
  const char *after = strrchr(text, ')'); /* a name may hold anything */
  if (after == NULL || sscanf(after + 1, " %c %d %*d %d", &state, &parent, &session) != 3) return false;
  *one = (Seen){.pid = pid, .parent = parent, .session = session};
  return state != 'Z' && state != 'X';
}

static bool holds(int fd, const char *mark, size_t len) {
  static char text[65536 + 128];
  size_t kept = 0;
  bool at_start = true; /* start of the whole environment */
  for (;;) {
    ssize_t n = read(fd, text + kept, 65536);
    if (n <= 0) return false;
    size_t all = kept + (size_t)n;
    for (char *at = text; (at = memmem(at, all - (size_t)(at - text), mark, len)) != NULL; at++) {
      if ((at == text && at_start) || (at > text && at[-1] == 0)) return true;
    }
    at_start = false;
    kept = all < len ? all : len; /* the tail that a mark may begin in, with the byte before it */
    memmove(text, text + all - kept, kept);
  }
}

/* Without CAP_SYS_PTRACE only its own user can read an environment: so this reads it as that user. */
static bool carries_mark(pid_t pid, const char *mark, size_t len) {
  char path[32];
  struct stat st;
  snprintf(path, sizeof path, "/proc/%d", (int)pid);
  if (stat(path, &st) != 0) return false;
  Cred as = {.uid = st.st_uid, .gid = st.st_gid, .ngroups = 1, .groups = {st.st_gid}};
  fs_enter(&as);
  int fd = open_proc(pid, "environ");
  fs_leave();
  if (fd < 0) return false;
  bool found = holds(fd, mark, len);
  close(fd);
  return found;
}

static size_t scan(void) {
  size_t count = 0;
  DIR *dir = opendir("/proc");
  if (dir == NULL) return 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL && count < MAX_SCANNED;) {
    long pid = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? strtol(e->d_name, NULL, 10) : 0;
    if (pid <= 0 || pid == getpid()) continue;
    if (count == seen_cap) {
      size_t cap = seen_cap == 0 ? 256 : seen_cap * 2;
      Seen *grown = realloc(seen, cap * sizeof *grown);
      if (grown == NULL) break;
      seen = grown;
      seen_cap = cap;
    }
    if (read_stat((pid_t)pid, &seen[count])) count++;
  }
  closedir(dir);
  return count;
}

static int by_pid(const void *a, const void *b) {
  pid_t x = ((const Seen *)a)->pid, y = ((const Seen *)b)->pid;
  return (x > y) - (x < y);
}

/* Adds descendants. A parent mostly has the lower pid, so one pass in order of pids mostly is enough. */
static void add_descendants(size_t count) {
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i = 0; i < count; i++) {
      Seen wanted = {.pid = seen[i].parent};
      if (seen[i].member) continue;
      const Seen *parent = bsearch(&wanted, seen, count, sizeof *seen, by_pid);
      if (parent != NULL && parent->member) seen[i].member = grown = true;
    }
  }
}

/* Opens the pidfd before it checks the process again: a pid that changed hands meanwhile is not signalled. */
static bool signal_one(const Seen *one, const char *mark, size_t len, int signo) {
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
  int fd = (int)syscall(SYS_pidfd_open, one->pid, 0);
  if (fd >= 0) {
    Seen again;
    bool same = read_stat(one->pid, &again) && ((again.session == one->session && again.parent == one->parent) ||
                                                 carries_mark(one->pid, mark, len));
    bool sent = same && syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0) == 0;
    close(fd);
    return sent;
  }
#else
  (void)mark;
  (void)len;
#endif
  return kill(one->pid, signo) == 0;
}

size_t tree_signal(const char *id, pid_t root, int signo) {
  char mark[128];
  size_t len = (size_t)snprintf(mark, sizeof mark, "%s%s", MARKER, id) + 1; /* with its NUL */
  size_t count = scan(), sent = 0;
  for (size_t i = 0; i < count; i++) {
    Seen *one = &seen[i];
    one->member = root > 0 && (one->pid == root || one->session == root);
    if (!one->member) one->member = carries_mark(one->pid, mark, len);
  }
  if (count > 0) qsort(seen, count, sizeof *seen, by_pid);
  add_descendants(count);
  for (size_t i = 0; i < count; i++) {
    if (seen[i].member && signal_one(&seen[i], mark, len, signo)) sent++;
  }
  return sent;
}

typedef struct {
  Timer timer;
  char id[40];
  unsigned rounds;
} Hunt;

static void hunt_again(Timer *timer) {
  Hunt *hunt = OWNER(Hunt, timer, timer);
  if (tree_signal(hunt->id, 0, SIGKILL) > 0 && ++hunt->rounds < ROUNDS && timer_set(timer, ROUND_MS)) return;
  free(hunt);
}

void tree_kill(const char *id, pid_t root) {
  size_t sent = 1;
  if (root > 0) (void)kill(root, SIGKILL); /* this child was not reaped: its pid is still its own */
  for (int round = 0; round < ROUNDS_AT_ONCE && sent > 0; round++) sent = tree_signal(id, root, SIGKILL);
  if (sent == 0) return;
  Hunt *hunt = calloc(1, sizeof *hunt);
  if (hunt == NULL) return;
  hunt->timer.fire = hunt_again;
  snprintf(hunt->id, sizeof hunt->id, "%s", id);
  if (!timer_set(&hunt->timer, ROUND_MS)) free(hunt);
}
