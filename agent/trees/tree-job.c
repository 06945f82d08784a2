/*
 * Runs work on whole trees, which takes long and meets arbitrary files, in a helper process that has become the user for good.
 * The helper gets or gives the archive over a socket; over a pipe it reports that it has begun ("+") and how it ended (u32 errno,
 * u64 files, what it was about, u64 left out and the first of them).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define MAX_JOBS 64
#define REPORT_BYTES 4096 /* written to the pipe in one piece */

typedef struct {
  Channel ch;
  Child child;
  Io data, report;
  Fifo input;
  bool input_ended, readable, told_open, reported_end;
  int what;
  uint8_t text[REPORT_BYTES + 1];
  size_t text_len;
} Job;

static size_t jobs;
static int report_fd;

static void tell_opened(void) {
  if (write(report_fd, "+", 1) != 1) _exit(1);
}

static int do_work(TreeWork *work, const TreeRequest *request) {
  switch (request->what) {
    case TREE_UNPACK: return unpack_tree(work, request->path);
    case TREE_PACK: return pack_tree(work, request->path);
    case TREE_REMOVE: return remove_tree(work, request->path);
    default: return move_tree(work, request->path, request->to, request->overwrite);
  }
}

static void helper_main(const Cred *cred, int data, int report, const TreeRequest *request, const char *base) {
  TreeWork work = {.data = 3, .base = AT_FDCWD, .opened = tell_opened};
  work.leaves_out = (request->flags & FILES_LEAVE_OUT) != 0;
  sigset_t none;
  sigemptyset(&none);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  data = fcntl(data, F_DUPFD, 10);
  report = fcntl(report, F_DUPFD, 10);
  if (data < 0 || report < 0 || dup2(data, 3) < 0 || dup2(report, 4) < 0) _exit(1);
  for (int fd = 0; fd < 3; fd++) dup2(agent.null_fd, fd);
  report_fd = 4;
  if (syscall(SYS_close_range, 5u, ~0u, 0u) != 0) {
    for (int fd = 5; fd < 65536; fd++) close(fd);
  }
  int error = become(cred);
  (void)prctl(PR_SET_DUMPABLE, 0); /* this memory is a copy of the agent's */
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (error == 0 && (request->path[0] != '/' || (request->to != NULL && request->to[0] != '/'))) {
    work.base = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (work.base < 0) error = errno;
  }
  if (error == 0) error = do_work(&work, request);
  uint8_t text[REPORT_BYTES];
  Builder b = {.data = text, .cap = sizeof text};
  put_u32(&b, (uint32_t)error);
  put_u64(&b, work.files);
  put_str(&b, work.why);
  put_u64(&b, work.left_out);
  for (size_t at = 0; at < work.left_len; at += strlen(work.left + at) + 1) put_str(&b, work.left + at);
  _exit(write(4, text, b.len) == (ssize_t)b.len ? 0 : 1);
}

static void job_gone(Channel *ch) {
  Job *job = (Job *)ch;
  if (job->child.pid > 0) (void)kill(job->child.pid, SIGKILL);
  child_forget(&job->child);
  io_close(&job->data);
  io_close(&job->report);
  fifo_clear(&job->input);
  jobs--;
}

static void job_end(Job *job) {
  Cursor c = {.at = job->text, .end = job->text + job->text_len};
  if (job->told_open) c.at++;
  int error = (int)take_u32(&c);
  uint8_t payload[REPORT_BYTES];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_u64(&b, take_u64(&c));
  const char *why = take_str(&c);
  uint64_t left_out = take_u64(&c);
  if (!c.bad && left_out > 0) {
    put_u64(&b, left_out);
    put_bytes(&b, c.at, (size_t)(c.end - c.at));
  }
  Conn *conn = job->ch.conn;
  uint32_t id = job->ch.id;
  if (c.bad) send_error(conn, id, E_FAILED, 0, "the helper ended early");
  else if (error == 0) conn_send(conn, T_RESULT, id, payload, b.len);
  else if (*why == 0) send_errno(conn, id, error);
  else send_error(conn, id, error == ENOENT ? E_NOT_FOUND : E_REFUSED, error, "%s", why);
  job_gone(&job->ch);
  channel_end(&job->ch);
}

static bool job_pull(Channel *ch) {
  Job *job = (Job *)ch;
  if (job->what == TREE_PACK && job->data.fd >= 0 && job->readable) {
    size_t room;
    uint8_t *to = bulk_begin(ch, &room);
    if (to == NULL) return false;
    ssize_t n = read(job->data.fd, to, room);
    if (n > 0) {
      bulk_commit(ch, T_DATA, (size_t)n);
      return true;
    }
    if (n < 0 && errno == EINTR) return true;
    if (n < 0 && errno == EAGAIN) job->readable = false;
    else io_close(&job->data);
  }
  if (job->reported_end && (job->what != TREE_PACK || job->data.fd < 0)) job_end(job);
  return false;
}

static void feed(Job *job) {
  bool broken = job->data.fd < 0;
  if (!broken) channel_consumed(&job->ch, fifo_flush(&job->input, job->data.fd, &broken));
  if (broken) {
    /* The helper has reported an error: the rest of the input is discarded. */
    channel_consumed(&job->ch, job->input.len);
    fifo_clear(&job->input);
  }
  if (job->input_ended && job->input.len == 0 && job->data.fd >= 0) (void)shutdown(job->data.fd, SHUT_WR);
}

static void data_ready(Io *io, uint32_t events) {
  Job *job = OWNER(Job, data, io);
  if (job->what == TREE_UNPACK && (events & EPOLLOUT) != 0) feed(job);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) job->readable = true;
  channel_wake(&job->ch);
}

static void report_ready_(Io *io, uint32_t events) {
  Job *job = OWNER(Job, report, io);
  (void)events;
  for (;;) {
    ssize_t n = read(io->fd, job->text + job->text_len, sizeof job->text - job->text_len);
    if (n > 0) job->text_len += (size_t)n;
    else if (n == 0 || errno != EAGAIN) job->reported_end = true;
    if (n <= 0) break;
  }
  if (!job->told_open && job->text_len > 0 && job->text[0] == '+') {
    job->told_open = true;
    conn_send(job->ch.conn, T_OPENED, job->ch.id, NULL, 0);
  }
  if (job->reported_end) io_close(&job->report);
  channel_wake(&job->ch);
}

static void job_data(Channel *ch, const uint8_t *data, size_t len) {
  Job *job = (Job *)ch;
  if (job->data.fd < 0 || job->input_ended || !fifo_push(&job->input, data, len)) channel_consumed(ch, len);
  else feed(job);
}

static void job_eof(Channel *ch) {
  Job *job = (Job *)ch;
  job->input_ended = true;
  feed(job);
}

static void helper_ended(Child *child, int status) {
  (void)child;
  (void)status;
}

static const ChannelOps ops = {.pull = job_pull, .data = job_data, .eof = job_eof, .gone = job_gone};

void tree_job(Conn *c, uint32_t id, const TreeRequest *request) {
  Place place;
  if (!place_open(c, id, request->flags & FILES_AS_ROOT, request->path, &place)) return;
  place_close(&place);
  int pair[2] = {-1, -1}, report[2] = {-1, -1};
  Job *job = jobs >= MAX_JOBS ? NULL : channel_open(c, id, sizeof *job, &ops, request->window);
  if (job == NULL) {
    if (jobs >= MAX_JOBS) send_error(c, id, E_LIMIT, EAGAIN, "too many trees are under way");
    return;
  }
  jobs++;
  job->what = request->what;
  job->data.fd = job->report.fd = -1;
  bool opened = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 && pipe2(report, O_CLOEXEC) == 0;
  pid_t pid = -1;
  if (opened) {
    pid = fork();
    if (pid == 0) helper_main(&place.user.cred, pair[1], report[1], request, default_dir(c, &place.user));
  }
  int error = errno;
  if (pid > 0) {
    child_watch(&job->child, pid, helper_ended);
    opened = io_open(&job->data, pair[0], EPOLLIN | EPOLLOUT | EPOLLRDHUP, data_ready);
    if (opened) pair[0] = -1;
    if (opened && io_open(&job->report, report[0], EPOLLIN, report_ready_)) report[0] = -1;
    else opened = false;
    if (!opened) error = errno;
  }
  for (int i = 0; i < 2; i++) {
    if (pair[i] >= 0) close(pair[i]);
    if (report[i] >= 0) close(report[i]);
  }
  if (pid > 0 && opened) return;
  send_errno(c, id, error);
  job_gone(&job->ch);
  channel_end(&job->ch);
}

void request_unpack(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request);
  TreeRequest tree = {.what = TREE_UNPACK, .flags = flags, .path = take_str(request)};
  if (!take_end(request)) conn_fail(c);
  else tree_job(c, id, &tree);
}

void request_pack(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request);
  uint32_t window = take_u32(request);
  TreeRequest tree = {.what = TREE_PACK, .flags = flags, .path = take_str(request), .window = window};
  if (!take_end(request)) conn_fail(c);
  else tree_job(c, id, &tree);
}
