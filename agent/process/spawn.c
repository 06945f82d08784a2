/*
 * Starts a program on the memory of the agent, which meanwhile only waits (as vfork does, on a stack of its own): no memory is
 * copied. Between clone and exec only raw system calls are made, and only `failure` is written. The agent is not dumpable, so no
 * process can look into that memory once the child has become another user.
 *
 * The agent waits by itself and not in the kernel: once the child has become another user, that user may stop it before exec, and
 * the kernel would keep the agent in its call for ever. A child that was stopped so is started again behind a shield: a second
 * thread of the child becomes the user and the program, while the credentials of the first thread, still the agent's, decide
 * which processes may signal the child.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../agent.h"

#define STACK_BYTES (64 * 1024)
/* The wait is counted in short intervals and not by the clock, which also runs while the whole sandbox is frozen. */
#define WAIT_MS 20
#define MAX_WAITS 500
#define STARTING_FD 3
/* Clone flags of the shield. The first thread waits in the kernel, on the stack that both threads use, and never returns: it ends
 * when the second thread has become a program, or has failed. */
#define SHIELD (CLONE_VFORK | CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM | CLONE_THREAD)
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

typedef struct {
  const SpawnPlan *plan;
  SpawnFailure *failure;
  sigset_t mask;
  int starting; /* the kernel closes it at exec or at the end of the child */
  bool shielded;
} Start;

typedef enum { STARTED, STOPPED, TOO_LATE } Waited;

static uint8_t *stack;
static SpawnFailure *shared; /* shared memory: also seen when the child has a copy of the agent's memory */

bool spawn_start(void) {
  int prot = PROT_READ | PROT_WRITE;
  stack = mmap(NULL, STACK_BYTES, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  shared = mmap(NULL, sizeof *shared, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return stack != MAP_FAILED && shared != MAP_FAILED;
}

static void fail(const Start *start, int stage, int error) {
  start->failure->stage = stage;
  start->failure->error = error;
  _exit(127);
}

static bool put_fd(int from, int to) {
  if (from == to) return fcntl(from, F_SETFD, 0) == 0;
  return dup2(from, to) == to;
}

static int enter_dir(const SpawnPlan *plan) {
  if (plan->cwd == NULL || plan->cwd[0] != '/') {
    /* Without a requested directory, a default directory that is missing or not accessible is no error. */
    if (chdir(plan->base) != 0 && (plan->cwd != NULL || chdir("/") != 0)) return errno;
  }
  return plan->cwd != NULL && chdir(plan->cwd) != 0 ? errno : 0;
}

static void set_limits(void) {
  struct rlimit none = {0, 0}, files = agent.own_files;
  (void)setrlimit(RLIMIT_CORE, &none);
  if (agent.open_files > 0) files = (struct rlimit){agent.open_files, agent.open_files};
  if (agent.open_files > 0 && agent.own_files.rlim_max < agent.open_files)
    files.rlim_cur = files.rlim_max = agent.own_files.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &files);
}

static const char *variable(const char **env, const char *name) {
  size_t len = strlen(name);
  for (; *env != NULL; env++) {
    if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') return *env + len + 1;
  }
  return NULL;
}

static int exec_search(const char **argv, const char **env) {
  const char *program = argv[0];
  char **args = (char **)(uintptr_t)argv, **vars = (char **)(uintptr_t)env;
  if (strchr(program, '/') != NULL) {
    execve(program, args, vars);
    return errno;
  }
  const char *path = variable(env, "PATH");
  if (path == NULL || *path == 0) path = "/usr/local/bin:/usr/bin:/bin";
  size_t name = strlen(program);
  int result = ENOENT;
  char full[PATH_MAX];
  struct stat st;
  if (name == 0) return ENOENT;
  for (const char *at = path;; at++) {
    size_t len = strcspn(at, ":");
    if (len + name + 3 <= sizeof full) {
      size_t put = len;
      memcpy(full, at, len);
      if (len == 0) full[put++] = '.';
      full[put++] = '/';
      memcpy(full + put, program, name + 1);
      execve(full, args, vars);
      /* A directory of PATH that may not be searched counts as empty, as in a shell. */
      if (errno == EACCES) result = stat(full, &st) == 0 ? EACCES : result;
      else if (errno != ENOENT && errno != ENOTDIR) return errno;
    }
    at += len;
    if (*at == 0) return result;
  }
}

static int child_main(void *argument) {
  const Start *start = argument;
  const SpawnPlan *plan = start->plan;
  /* Moves the descriptors above 2, so that none overwrites another on the way to its place. */
  int in = fcntl(plan->in, F_DUPFD_CLOEXEC, 3), out = plan->out, err = plan->err;
  (void)setsid();
  if (out < 0) {
    if (ioctl(in, TIOCSCTTY, 0) != 0) fail(start, SPAWN_FORK, errno);
    out = err = in;
  } else {
    out = fcntl(out, F_DUPFD_CLOEXEC, 3);
    err = fcntl(err, F_DUPFD_CLOEXEC, 3);
  }
  if (in < 0 || out < 0 || err < 0 || !put_fd(in, 0) || !put_fd(out, 1) || !put_fd(err, 2))
    fail(start, SPAWN_FORK, errno);
  if (start->starting != STARTING_FD && dup3(start->starting, STARTING_FD, O_CLOEXEC) < 0)
    fail(start, SPAWN_FORK, errno);
  (void)syscall(SYS_close_range, STARTING_FD + 1u, ~0u, 0u); /* all of the agent's close on exec anyway */
  set_limits();
  (void)umask(022);
  if (start->shielded && syscall(SYS_clone, SHIELD, 0, 0, 0, 0) < 0) fail(start, SPAWN_FORK, errno);
  int error = become(&plan->user->cred);
  if (error != 0) fail(start, SPAWN_USER, error);
  error = enter_dir(plan);
  if (error != 0) fail(start, SPAWN_CWD, error);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &start->mask, NULL);
  fail(start, SPAWN_EXEC, exec_search(plan->argv, plan->env));
  return 127;
}

static void raise_oom_score(pid_t pid) {
  char path[48], text[16];
  snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  int len = snprintf(text, sizeof text, "%d", agent.oom_score);
  if (write(fd, text, (size_t)len) < 0) errno = 0; /* the child may have ended, or have a higher score */
  close(fd);
}

static bool is_stopped(pid_t pid) {
  siginfo_t info = {.si_pid = 0};
  return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* Waits until the child has exec'd or has ended: a child that is held up is killed before this returns. */
static Waited wait_for_start(const Start *start, int ended, pid_t pid) {
  struct pollfd end = {.fd = ended};
  Waited waited = STARTED;
  for (unsigned waits = 0; poll(&end, 1, WAIT_MS) == 0; waits++) {
    if (!start->shielded && is_stopped(pid)) waited = STOPPED;
    else if (waits >= MAX_WAITS) waited = TOO_LATE;
    (void)kill(pid, waited == STARTED ? SIGCONT : SIGKILL);
    /* The child is not reaped, but has done all work of its end: the next child gets its terminal. */
    siginfo_t info;
    if (waited == STOPPED) return (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), STOPPED;
  }
  return waited;
}

static pid_t start_child(Start *start, SpawnFailure *failure, Waited *waited) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) {
    *failure = (SpawnFailure){.stage = SPAWN_FORK, .error = errno};
    return -1;
  }
  start->starting = pair[1];
  *shared = (SpawnFailure){.stage = SPAWN_OK};
#ifdef AGENT_PLAIN_FORK /* sanitizers do not allow a child on their memory */
  pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) child_main(start);
#else
  pid_t pid = clone(child_main, stack + STACK_BYTES, CLONE_VM | SIGCHLD, start);
#endif
  int error = errno;
  close(pair[1]);
  if (pid > 0) *waited = wait_for_start(start, pair[0], pid);
  close(pair[0]);
  *failure = pid > 0 ? *shared : (SpawnFailure){.stage = SPAWN_FORK, .error = error};
  return pid;
}

pid_t spawn_program(const SpawnPlan *plan, SpawnFailure *failure) {
  Start start = {.plan = plan, .failure = shared};
  Waited waited = STARTED;
  sigset_t all, before;
  sigemptyset(&start.mask);
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_t pid = start_child(&start, failure, &waited);
  if (waited == STOPPED) {
    start.shielded = true;
    pid = start_child(&start, failure, &waited);
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  if (pid < 0) return -1;
  if (waited != STARTED) *failure = (SpawnFailure){.stage = SPAWN_FORK, .error = ETIMEDOUT};
  else if (failure->stage == SPAWN_OK && agent.oom_score != 0) raise_oom_score(pid);
  return failure->stage != SPAWN_OK ? -1 : pid; /* a child that failed is reaped like any other */
}
