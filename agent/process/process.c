#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>

#define GRACE_MS 200
#define KEPT_ENDED 128
#define ENDED_RING_MEMORY (32 * 1024 * 1024)

static Process *first, *last;
static size_t count, ended_background;
static uint64_t next_seq = 1;

Process *process_first(void) { return first; }

Process *process_find(const char *id) {
  for (Process *p = first; p != NULL; p = p->next) {
    if (strcmp(p->id, id) == 0) return p;
  }
  return NULL;
}

size_t processes_running(void) { return count - ended_background; }

void process_free(Process *p) {
  if (p->prev != NULL) p->prev->next = p->next;
  else first = p->next;
  if (p->next != NULL) p->next->prev = p->prev;
  else last = p->prev;
  count--;
  if (p->background && p->exited) ended_background--;
  for (int i = 0; i < 3; i++) io_close(&p->io[i]);
  timer_stop(&p->deadline);
  timer_stop(&p->grace);
  task_cancel(&p->fill);
  child_forget(&p->child);
  fifo_clear(&p->input);
  ring_free(&p->ring);
  free(p->command);
  free_later(p);
}

static void forget_oldest(void) {
  for (Process *p = first; p != NULL; p = p->next) {
    if (!p->background || p->channels != NULL || !process_over(p)) continue;
    process_free(p);
    return;
  }
}

static void out_of_time(Timer *timer) {
  Process *p = OWNER(Process, deadline, timer);
  if (p->exited) return;
  p->timed_out = true;
  tree_kill(p->id, p->child.pid);
}

/* Ends the wait for output that a child of the ended program holds open: the output present by now is the last. */
static void grace_over(Timer *timer) {
  Process *p = OWNER(Process, grace, timer);
  for (int i = 1; i < 3; i++) {
    int waiting = 0;
    if (p->io[i].fd < 0) continue;
    if (ioctl(p->io[i].fd, FIONREAD, &waiting) != 0 || waiting <= 0) process_close_stream(p, i);
    else p->quota[i] = waiting;
    p->readable[i] = true;
  }
  process_wake(p);
}

static void child_ended(Child *child, int status) {
  Process *p = OWNER(Process, child, child);
  if (WIFSIGNALED(status)) process_ended(p, 128 + WTERMSIG(status), WTERMSIG(status), WCOREDUMP(status));
  else process_ended(p, WEXITSTATUS(status), 0, false);
}

Process *process_new(void) {
  if (count >= MAX_PROCESSES) forget_oldest();
  if (count >= MAX_PROCESSES) return NULL;
  Process *p = calloc(1, sizeof *p);
  if (p == NULL) return NULL;
  p->seq = next_seq++;
  snprintf(p->id, sizeof p->id, "p%llu-%s", (unsigned long long)p->seq, agent.run_id);
  for (int i = 0; i < 3; i++) {
    p->io[i].fd = -1;
    p->quota[i] = -1;
  }
  p->turn = 1;
  p->fill.run = process_fill;
  p->deadline.fire = out_of_time;
  p->grace.fire = grace_over;
  return p;
}

void process_add(Process *p) {
  p->prev = last;
  if (last != NULL) last->next = p;
  else first = p;
  last = p;
  count++;
  if (p->pid > 0) child_watch(&p->child, p->pid, child_ended);
}

uint64_t process_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool process_input_open(const Process *p) {
  return !p->exited && !p->input_ended && p->io[p->terminal ? 1 : 0].fd >= 0;
}

bool process_over(const Process *p) { return p->exited && p->io[1].fd < 0 && p->io[2].fd < 0; }

void process_wake(Process *p) {
  if (p->background) {
    task_queue(&p->fill);
    if (!process_over(p)) return;
  } else if (p->channels == NULL && process_over(p)) {
    process_free(p);
    return;
  }
  for (ProcessChannel *pc = p->channels; pc != NULL; pc = pc->next) channel_wake(&pc->ch);
}

/* Forgets the oldest ended processes, to make room for one more. */
static void forget_surplus(void) {
  while (ended_background >= KEPT_ENDED || ring_memory() > ENDED_RING_MEMORY) {
    size_t before = count;
    forget_oldest();
    if (count == before) return;
  }
}

void process_ended(Process *p, int code, int signo, bool core) {
  if (p->background) {
    forget_surplus();
    ended_background++;
  }
  p->exited = true;
  p->ended_at = process_time();
  p->code = code;
  p->signo = signo;
  p->core = core;
  timer_stop(&p->deadline);
  if (p->terminal) io_close(&p->io[0]);
  p->readable[1] = p->readable[2] = true; /* the end may be there already, without another edge */
  if (!process_over(p) && !timer_set(&p->grace, GRACE_MS)) grace_over(&p->grace);
  process_wake(p);
}

static void channel_signal(Channel *ch, int signo) {
  Process *p = ((ProcessChannel *)ch)->process;
  if (signo == SIGKILL) tree_kill(p->id, p->child.pid);
  else tree_signal(p->id, p->child.pid, signo);
}

static void channel_resize(Channel *ch, unsigned cols, unsigned rows) {
  Process *p = ((ProcessChannel *)ch)->process;
  if (p->terminal && p->io[1].fd >= 0) pty_resize(p->io[1].fd, cols, rows);
}

static void channel_data(Channel *ch, const uint8_t *data, size_t len) {
  ProcessChannel *pc = (ProcessChannel *)ch;
  Process *p = pc->process;
  if (!process_input_open(p) || !fifo_push(&p->input, data, len)) {
    channel_consumed(ch, len); /* the program has closed its input: dropped, as in a shell */
    return;
  }
  pc->unacknowledged += (uint32_t)len;
  process_feed(p);
}

static void channel_eof(Channel *ch) {
  Process *p = ((ProcessChannel *)ch)->process;
  if (p->input_ended) return;
  if (p->terminal) (void)fifo_push(&p->input, (const uint8_t *)"\004", 1); /* end of file, as a person types it */
  else p->input_ended = true;
  process_feed(p);
}

static void channel_gone(Channel *ch) {
  ProcessChannel *pc = (ProcessChannel *)ch;
  Process *p = pc->process;
  for (ProcessChannel **at = &p->channels; *at != NULL; at = &(*at)->next) {
    if (*at != pc) continue;
    *at = pc->next;
    break;
  }
  if (p->background) {
    task_queue(&p->fill); /* the program may have waited for this reader */
    return;
  }
  if (!p->exited) tree_kill(p->id, p->child.pid);
  for (int i = 0; i < 3; i++) io_close(&p->io[i]);
  if (p->exited) process_free(p);
}

static const ChannelOps ops = {.pull = process_pull,
                               .data = channel_data,
                               .eof = channel_eof,
                               .signal = channel_signal,
                               .resize = channel_resize,
                               .gone = channel_gone};

bool process_channel(Process *p, Conn *c, uint32_t id, uint64_t offset, uint32_t window) {
  ProcessChannel *pc = channel_open(c, id, sizeof *pc, &ops, window);
  if (pc == NULL) return false;
  pc->process = p;
  pc->offset = offset;
  pc->next = p->channels;
  p->channels = pc;
  uint8_t payload[96];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_str(&b, p->id);
  put_u32(&b, (uint32_t)p->pid);
  conn_send(c, T_STARTED, id, payload, b.len);
  channel_wake(&pc->ch);
  return true;
}

void request_attach(Conn *c, uint32_t id, Cursor *request) {
  const char *name = take_str(request);
  uint64_t offset = take_u64(request);
  uint32_t window = take_u32(request);
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  Process *p = process_find(name);
  if (p == NULL || !p->background)
    send_error(c, id, E_NO_PROCESS, ESRCH, "there is no such process in the background");
  else if (offset > p->ring.end) send_error(c, id, E_INVALID, EINVAL, "it has not written that much");
  else (void)process_channel(p, c, id, offset, window);
}

void processes_end(void) {
  for (Process *p = first; p != NULL; p = p->next) {
    if (!p->exited) tree_kill(p->id, p->child.pid);
  }
}
