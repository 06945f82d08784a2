/* Reaps every process that ends below the agent: its children, and orphans as PID 1 or as their subreaper. */
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../agent.h"

#define BUCKETS 256

static Child *buckets[BUCKETS];
static Io signals;

void child_watch(Child *child, pid_t pid, void (*ended)(Child *, int)) {
  child->pid = pid;
  child->ended = ended;
  child->next = buckets[pid % BUCKETS];
  buckets[pid % BUCKETS] = child;
}

void child_forget(Child *child) {
  if (child->pid == 0) return;
  for (Child **at = &buckets[child->pid % BUCKETS]; *at != NULL; at = &(*at)->next) {
    if (*at != child) continue;
    *at = child->next;
    break;
  }
  child->pid = 0;
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
    for (Child *child = buckets[pid % BUCKETS]; child != NULL; child = child->next) {
      if (child->pid != pid) continue;
      child_forget(child);
      child->ended(child, status);
      break;
    }
  }
}

/* PID 1 obeys only senders outside of its namespace: the kernel shows such a sender as pid 0, and SI_USER cannot be forged from
 * inside. */
static bool obeys(const struct signalfd_siginfo *info) {
  return getpid() != 1 || (info->ssi_pid == 0 && info->ssi_code == SI_USER);
}

static void signals_ready(Io *io, uint32_t events) {
  (void)events;
  struct signalfd_siginfo info[8];
  for (;;) {
    ssize_t n = read(io->fd, info, sizeof info);
    if (n <= 0) break;
    for (size_t i = 0; i < (size_t)n / sizeof info[0]; i++) {
      if (info[i].ssi_signo == SIGCHLD) reap();
      else if (obeys(&info[i])) loop_stop();
    }
  }
}

bool children_start(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) return false;
  signals.fd = -1;
  int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0 || !io_open(&signals, fd, EPOLLIN, signals_ready)) return false;
  reap(); /* a shell that exec'd the agent may have left children */
  return true;
}
