#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "process.h"

#define SPAWN_STDIN 1
#define SPAWN_BACKGROUND 2
#define SPAWN_TERMINAL 4
#define MAX_ARGUMENTS 32768
#define OWN_VARIABLES 8
#define KEPT_COMMAND 4096

extern char **environ;

typedef struct {
  uint32_t flags, window, argc, envc;
  uint64_t timeout_ms;
  unsigned cols, rows;
  const char *user, *cwd, **argv, **env;
} SpawnRequest;

/* Takes a NULL-terminated list, with `spare` more places. */
static const char **take_list(Cursor *request, uint32_t *count, size_t spare) {
  *count = take_u32(request);
  if (request->bad || *count > MAX_ARGUMENTS) {
    request->bad = true;
    return NULL;
  }
  const char **list = calloc((size_t)*count + spare + 1, sizeof *list);
  for (uint32_t i = 0; list != NULL && i < *count; i++) list[i] = take_str(request);
  return list;
}

static bool take_spawn(Cursor *request, SpawnRequest *to) {
  to->flags = take_u32(request);
  to->timeout_ms = take_u64(request);
  to->cols = take_u16(request);
  to->rows = take_u16(request);
  to->window = take_u32(request);
  to->user = take_str(request);
  to->cwd = take_str(request);
  to->argv = take_list(request, &to->argc, 0);
  size_t inherited = 0;
  while (environ[inherited] != NULL) inherited++;
  to->env = take_list(request, &to->envc, inherited + OWN_VARIABLES);
  return take_end(request) && to->argc > 0;
}

static size_t name_length(const char *variable) { return strcspn(variable, "="); }

/* Sets a variable; the last value of a name replaces an earlier one, as in a shell. */
static void set_variable(const char **env, size_t *count, const char *variable) {
  size_t len = name_length(variable);
  for (size_t i = 0; i < *count; i++) {
    if (name_length(env[i]) == len && memcmp(env[i], variable, len) == 0) {
      env[i] = variable;
      return;
    }
  }
  env[(*count)++] = variable;
}

/* Builds the environment from the agent's own, the user's and the request's variables. No request can set the mark. */
static bool build_env(SpawnRequest *r, const User *user, const char *mark, char *own, size_t size) {
  size_t asked = r->envc, count = 0, inherited = 0;
  while (environ[inherited] != NULL) inherited++;
  const char **env = calloc(asked + inherited + OWN_VARIABLES + 1, sizeof *env);
  if (env == NULL) return false;
  env[count++] = mark;
  for (size_t i = 0; i < inherited; i++) {
    if (strncmp(environ[i], "SANDBOXER_", 10) != 0) set_variable(env, &count, environ[i]);
  }
  if (getenv("PATH") == NULL) set_variable(env, &count, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  const char *names[] = {"HOME=", "USER=", "LOGNAME=", "SHELL="};
  const char *values[] = {user->home, user->name, user->name, user->shell};
  for (size_t i = 0; i < 4; i++) {
    if (*values[i] == 0) continue;
    int len = snprintf(own, size, "%s%s", names[i], values[i]);
    set_variable(env, &count, own);
    own += len + 1;
    size -= (size_t)len + 1;
  }
  if ((r->flags & SPAWN_TERMINAL) != 0) set_variable(env, &count, "TERM=xterm-256color");
  for (size_t i = 0; i < asked; i++) {
    if (strncmp(r->env[i], MARKER, strlen(MARKER)) != 0 && name_length(r->env[i]) > 0)
      set_variable(env, &count, r->env[i]);
  }
  free(r->env);
  r->env = env;
  return true;
}

static bool keep_command(Process *p, const SpawnRequest *r) {
  size_t len = 0;
  uint32_t argc = 0;
  for (; argc < r->argc && len + strlen(r->argv[argc]) + 1 <= KEPT_COMMAND; argc++) len += strlen(r->argv[argc]) + 1;
  p->command = malloc(len + 1);
  if (p->command == NULL) return false;
  p->argc = argc;
  for (uint32_t i = 0; i < argc; i++) {
    size_t n = strlen(r->argv[i]) + 1;
    memcpy(p->command + p->command_len, r->argv[i], n);
    p->command_len += n;
  }
  p->started_at = process_time();
  return true;
}

static void close_pair(const int pair[2]) {
  if (pair[0] >= 0) close(pair[0]);
  if (pair[1] >= 0) close(pair[1]);
}

/* The agent's end is [0] of the outputs and [1] of the input. On failure all ends are closed. */
static bool open_pipes(Process *p, bool with_input, SpawnPlan *plan) {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  bool opened = pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 && (!with_input || pipe2(in, O_CLOEXEC) == 0);
  if (opened && io_open(&p->io[1], out[0], EPOLLIN, process_output_ready)) out[0] = -1;
  else opened = false;
  if (opened && io_open(&p->io[2], err[0], EPOLLIN, process_error_ready)) err[0] = -1;
  else opened = false;
  if (opened && with_input && io_open(&p->io[0], in[1], EPOLLOUT, process_input_ready)) in[1] = -1;
  else if (with_input) opened = false;
  if (!opened) {
    int error = errno;
    close_pair(in);
    close_pair(out);
    close_pair(err);
    errno = error;
    return false;
  }
  plan->in = with_input ? in[0] : agent.null_fd;
  plan->out = out[1];
  plan->err = err[1];
  return true;
}

static bool open_terminal(Process *p, const SpawnRequest *r, const User *user, SpawnPlan *plan) {
  int slave, master = pty_open(&slave, r->cols, r->rows, &user->cred);
  if (master < 0) return false;
  if (!io_open(&p->io[1], master, EPOLLIN | EPOLLOUT, process_terminal_ready)) {
    close(master);
    close(slave);
    return false;
  }
  p->terminal = true;
  plan->in = slave;
  plan->out = plan->err = -1;
  return true;
}

static void close_plan(const SpawnPlan *plan) {
  if (plan->in != agent.null_fd) close(plan->in);
  if (plan->out >= 0) close(plan->out);
  if (plan->err >= 0) close(plan->err);
}

/* Reports a failed exec as a shell does: a line on stderr and exit code 127 or 126. */
static void tell_exec_failure(Process *p, Conn *c, uint32_t id, const SpawnRequest *r, int error) {
  char line[512];
  bool missing = error == ENOENT || error == ENOTDIR;
  int len = snprintf(line, sizeof line, "%.400s: %s%s", r->argv[0],
                     error == ENOENT ? "not found" : strerror(error), p->terminal ? "\r\n" : "\n");
  for (int i = 0; i < 3; i++) io_close(&p->io[i]);
  p->exited = true;
  p->code = missing ? 127 : 126;
  if (p->background) {
    p->exited = false;
    ring_add(&p->ring, p->terminal ? 1 : 2, line, (size_t)len);
    process_add(p);
    process_ended(p, p->code, 0, false);
    (void)process_channel(p, c, id, 0, r->window);
    return;
  }
  process_add(p);
  if (!process_channel(p, c, id, 0, r->window)) {
    process_free(p);
    return;
  }
  size_t room;
  ProcessChannel *pc = p->channels;
  uint8_t *to = bulk_begin(&pc->ch, &room);
  if (to == NULL || room < (size_t)len) return;
  memcpy(to, line, (size_t)len);
  bulk_commit(&pc->ch, p->terminal ? T_TERMINAL : T_STDERR, (size_t)len);
}

static void start(Conn *c, uint32_t id, SpawnRequest *r, const User *user, const char *base) {
  Process *p = process_new();
  SpawnPlan plan = {.argv = r->argv, .user = user, .base = base, .cwd = *r->cwd == 0 ? NULL : r->cwd};
  char own[2048], mark[80];
  if (p == NULL || !keep_command(p, r)) {
    send_error(c, id, E_LIMIT, EAGAIN, "too many processes run");
    free(p);
    return;
  }
  snprintf(mark, sizeof mark, "%s%s", MARKER, p->id);
  p->background = (r->flags & SPAWN_BACKGROUND) != 0;
  bool terminal = (r->flags & SPAWN_TERMINAL) != 0, with_input = (r->flags & SPAWN_STDIN) != 0;
  bool built = build_env(r, user, mark, own, sizeof own);
  plan.env = r->env;
  if (!built || !(terminal ? open_terminal(p, r, user, &plan) : open_pipes(p, with_input, &plan))) {
    int error = errno;
    for (int i = 0; i < 3; i++) io_close(&p->io[i]);
    free(p->command);
    send_error(c, id, E_LIMIT, error, "its %s cannot be opened: %s", terminal ? "terminal" : "pipes", strerror(error));
    free_later(p);
    return;
  }
  SpawnFailure failure;
  p->pid = spawn_program(&plan, &failure);
  close_plan(&plan);
  if (failure.stage == SPAWN_EXEC) {
    p->pid = 0;
    tell_exec_failure(p, c, id, r, failure.error);
    return;
  }
  if (failure.stage != SPAWN_OK) {
    int kind = failure.stage == SPAWN_CWD ? E_CWD : failure.stage == SPAWN_USER ? E_USER : E_LIMIT;
    const char *about = failure.stage != SPAWN_CWD ? "" : plan.cwd == NULL ? base : plan.cwd;
    send_error(c, id, kind, failure.error, "%.300s%s%s", about, *about == 0 ? "" : ": ", strerror(failure.error));
    for (int i = 0; i < 3; i++) io_close(&p->io[i]);
    free(p->command);
    free_later(p);
    return;
  }
  process_add(p);
  if (terminal && !with_input) (void)fifo_push(&p->input, (const uint8_t *)"\004", 1);
  if (r->timeout_ms > 0) (void)timer_set(&p->deadline, r->timeout_ms < INT32_MAX ? r->timeout_ms : INT32_MAX);
  if (process_channel(p, c, id, 0, r->window)) {
    process_feed(p);
    return;
  }
  tree_kill(p->id, p->child.pid); /* no client could get its id */
  for (int i = 0; i < 3; i++) io_close(&p->io[i]);
}

void request_spawn(Conn *c, uint32_t id, Cursor *request) {
  SpawnRequest r = {0};
  User user, owner;
  if (!take_spawn(request, &r)) conn_fail(c);
  else {
    int error = user_resolve(c, r.user, &user);
    char base[1024] = "/";
    if (user_resolve(c, NULL, &owner) == 0) snprintf(base, sizeof base, "%s", default_dir(c, &owner));
    if (error != 0) user_refuse(c, id, r.user, error);
    else start(c, id, &r, &user, base);
  }
  free(r.argv);
  free(r.env);
}
