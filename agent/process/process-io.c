/* Moves the input and output of programs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "process.h"

#define WIDE_PIPE (256 * 1024)
#define FILL_PER_TURN (512 * 1024)

static Process *of_stream(Io *io, int stream) {
  return (Process *)(void *)((char *)(io - stream) - offsetof(Process, io));
}

static void readable(Process *p, int stream) {
  p->readable[stream] = true;
  if (p->background) task_queue(&p->fill);
  else if (p->channels != NULL) channel_wake(&p->channels->ch);
}

void process_input_ready(Io *io, uint32_t events) {
  Process *p = of_stream(io, 0);
  if ((events & EPOLLERR) != 0 && p->input.len == 0 && !p->terminal) io_close(&p->io[0]);
  process_feed(p);
}

void process_output_ready(Io *io, uint32_t events) {
  (void)events;
  readable(of_stream(io, 1), 1);
}

void process_error_ready(Io *io, uint32_t events) {
  (void)events;
  readable(of_stream(io, 2), 2);
}

void process_terminal_ready(Io *io, uint32_t events) {
  Process *p = of_stream(io, 1);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) readable(p, 1);
  if ((events & EPOLLOUT) != 0) process_feed(p);
}

void process_close_stream(Process *p, int stream) {
  io_close(&p->io[stream]);
  if (process_over(p)) timer_stop(&p->grace);
}

static void acknowledge(Process *p, size_t written) {
  for (ProcessChannel *pc = p->channels; pc != NULL && written > 0; pc = pc->next) {
    size_t share = pc->unacknowledged < written ? pc->unacknowledged : written;
    pc->unacknowledged -= (uint32_t)share;
    written -= share;
    channel_consumed(&pc->ch, share);
  }
}

void process_feed(Process *p) {
  int fd = p->terminal ? p->io[1].fd : p->io[0].fd;
  bool broken = fd < 0;
  if (!broken) acknowledge(p, fifo_flush(&p->input, fd, &broken));
  if (broken) {
    acknowledge(p, p->input.len);
    fifo_clear(&p->input);
  }
  if (!p->terminal && (broken || (p->input_ended && p->input.len == 0))) io_close(&p->io[0]);
}

static void widen(Process *p, int stream, size_t got) {
  if (p->wide || got < 65536 || p->terminal) return;
  p->wide = true;
  (void)fcntl(p->io[stream].fd, F_SETPIPE_SZ, WIDE_PIPE);
}

/* Handles the result of a read(2) of a stream. Returns false when there is nothing more to read for now. */
static bool took(Process *p, int stream, ssize_t n) {
  if (n > 0) {
    if (p->quota[stream] >= 0) p->quota[stream] -= n;
    widen(p, stream, (size_t)n);
    return true;
  }
  if (n < 0 && errno == EINTR) return true;
  p->readable[stream] = false;
  /* A terminal that no process has open answers EIO. It stays open while the program lives: closing it would send a hangup. */
  if (p->terminal && !p->exited) return false;
  if (n == 0 || errno != EAGAIN || p->quota[stream] >= 0) process_close_stream(p, stream);
  return false;
}

static size_t within_quota(Process *p, int stream, size_t max) {
  return p->quota[stream] >= 0 && (size_t)p->quota[stream] < max ? (size_t)p->quota[stream] : max;
}

static uint8_t frame_of(const Process *p, int stream) {
  return p->terminal ? T_TERMINAL : stream == 1 ? T_STDOUT : T_STDERR;
}

static void tell_exit(ProcessChannel *pc) {
  Process *p = pc->process;
  uint8_t payload[8];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_u32(&b, (uint32_t)p->code);
  put_u8(&b, (uint8_t)p->signo);
  put_u8(&b, (uint8_t)((p->core ? 1 : 0) | (p->timed_out ? 2 : 0)));
  conn_send(pc->ch.conn, T_EXIT, pc->ch.id, payload, b.len);
  for (ProcessChannel **at = &p->channels; *at != NULL; at = &(*at)->next) {
    if (*at != pc) continue;
    *at = pc->next;
    break;
  }
  channel_end(&pc->ch);
  if (!p->background) process_free(p);
}

/* Reads straight from the pipe into the frame: while there is no credit the pipe fills and the program waits. */
static bool pull_foreground(ProcessChannel *pc) {
  Process *p = pc->process;
  for (int tries = 0; tries < 2; tries++) {
    int stream = p->turn;
    p->turn = 3 - stream;
    if (p->io[stream].fd < 0 || !p->readable[stream]) continue;
    size_t room;
    uint8_t *to = bulk_begin(&pc->ch, &room);
    if (to == NULL) return false;
    room = within_quota(p, stream, room);
    ssize_t n = room == 0 ? 0 : read(p->io[stream].fd, to, room);
    if (n > 0) bulk_commit(&pc->ch, frame_of(p, stream), (size_t)n);
    if (took(p, stream, n)) return true;
  }
  if (process_over(p)) tell_exit(pc);
  return false;
}

static bool pull_background(ProcessChannel *pc) {
  Process *p = pc->process;
  Ring *ring = &p->ring;
  if (pc->offset < ring->start) {
    uint8_t payload[8];
    Builder b = {.data = payload, .cap = sizeof payload};
    put_u64(&b, ring->start - pc->offset);
    conn_send(pc->ch.conn, T_GAP, pc->ch.id, payload, b.len);
    pc->offset = ring->start;
  }
  if (pc->offset < ring->end) {
    size_t room;
    uint8_t stream, *to = bulk_begin(&pc->ch, &room);
    if (to == NULL) return false;
    size_t n = ring_copy(ring, pc->offset, to, room, &stream);
    bulk_commit(&pc->ch, frame_of(p, stream), n);
    pc->offset += n;
    task_queue(&p->fill);
    return true;
  }
  if (process_over(p)) tell_exit(pc);
  return false;
}

bool process_pull(Channel *ch) {
  ProcessChannel *pc = (ProcessChannel *)ch;
  return pc->process->background ? pull_background(pc) : pull_foreground(pc);
}

/* Returns the first offset that an attached reader still needs. It is not overwritten: the program waits for the reader. */
static uint64_t kept_from(const Process *p) {
  uint64_t from = p->ring.end;
  for (const ProcessChannel *pc = p->channels; pc != NULL; pc = pc->next) {
    if (pc->offset < from) from = pc->offset;
  }
  return from;
}

/* Without memory for a ring the output is counted and discarded, and the program goes on. */
static ssize_t discard(Process *p, int stream, size_t max) {
  static uint8_t scratch[16384];
  ssize_t n = read(p->io[stream].fd, scratch, max < sizeof scratch ? max : sizeof scratch);
  if (n > 0) p->ring.start = p->ring.end += (uint64_t)n;
  return n;
}

void process_fill(Task *task) {
  Process *p = OWNER(Process, fill, task);
  size_t budget = FILL_PER_TURN;
  for (int stream = 1; stream < 3; stream++) {
    while (p->io[stream].fd >= 0 && p->readable[stream] && budget > 0) {
      size_t room = ring_room(&p->ring, kept_from(p));
      bool lost = p->ring.cap == 0;
      if (room == 0 && !lost) break;
      /* Fills at most half of the ring at a time, so that the previous output is still there. */
      room = within_quota(p, stream, lost ? MAX_BULK : room < p->ring.cap / 2 ? room : p->ring.cap / 2);
      ssize_t n = room == 0 ? 0
                  : lost    ? discard(p, stream, room)
                            : ring_read(&p->ring, p->io[stream].fd, (uint8_t)stream, room);
      if (n > 0) budget -= (size_t)n < budget ? (size_t)n : budget;
      if (!took(p, stream, n)) break;
    }
  }
  if (budget == 0) task_queue(&p->fill);
  for (ProcessChannel *pc = p->channels; pc != NULL; pc = pc->next) channel_wake(&pc->ch);
}
