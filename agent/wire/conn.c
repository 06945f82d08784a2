#include "conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_CONNS 64
#define RX_BYTES (MAX_PAYLOAD + HEADER_BYTES)
#define TX_BYTES (384 * 1024)
#define TX_SOFT (96 * 1024)          /* bulk frames wait while more than this is unsent */
#define TX_STOP (1024 * 1024)        /* no request is read while more than this is unsent */
#define TX_LIMIT (16 * 1024 * 1024)  /* the connection fails: the host does not read at all */
#define BYTES_PER_TURN (4 * 1024 * 1024)

static Conn *conns;
static size_t conns_len;

size_t conn_count(void) { return conns_len; }

static int out_fd(const Conn *c) { return c->stdio ? c->out.fd : c->in.fd; }

static void conn_destroy(Conn *c) {
  for (size_t i = 0; i < CHANNEL_BUCKETS; i++) {
    while (c->buckets[i] != NULL) {
      Channel *ch = c->buckets[i];
      ch->ops->gone(ch);
      channel_end(ch);
    }
  }
  io_close(&c->in);
  io_close(&c->out);
  task_cancel(&c->pump);
  if (c->prev != NULL) c->prev->next = c->next;
  else conns = c->next;
  if (c->next != NULL) c->next->prev = c->prev;
  conns_len--;
  free(c->rx);
  free(c->tx);
  free(c->part);
  free(c->user);
  free(c->cwd);
  bool stdio = c->stdio, greeted = c->greeted;
  free_later(c);
  if (stdio) agent_stdio_gone();
  if (!greeted) caller_lost();
}

void conn_fail(Conn *c) {
  c->dead = true;
  task_queue(&c->pump);
}

/* Makes room for `len` more bytes at the end of the unsent ones. */
static bool tx_reserve(Conn *c, size_t len) {
  if (c->tx_cap - c->tx_tail >= len) return true;
  size_t unsent = c->tx_tail - c->tx_head;
  if (c->tx_head > 0) {
    memmove(c->tx, c->tx + c->tx_head, unsent);
    c->tx_head = 0;
    c->tx_tail = unsent;
  }
  if (c->tx_cap - unsent >= len) return true;
  size_t cap = c->tx_cap;
  while (cap - unsent < len) cap *= 2;
  uint8_t *grown = cap > TX_LIMIT ? NULL : realloc(c->tx, cap);
  if (grown == NULL) return false;
  c->tx = grown;
  c->tx_cap = cap;
  return true;
}

void conn_send(Conn *c, uint16_t type, uint32_t channel, const void *payload, size_t len) {
  if (c->dead) return;
  if (!tx_reserve(c, HEADER_BYTES + len)) {
    conn_fail(c);
    return;
  }
  write_header(c->tx + c->tx_tail, (uint32_t)len, type, channel);
  if (len > 0) memcpy(c->tx + c->tx_tail + HEADER_BYTES, payload, len);
  c->tx_tail += HEADER_BYTES + len;
  task_queue(&c->pump);
}

/* Waits for EPOLLOUT only while bytes are unsent: otherwise every read of the host would wake the agent. */
static void want_room(Conn *c, bool wanted) {
  if (c->wants_room == wanted || c->stdio) return;
  c->wants_room = wanted;
  io_change(&c->in, EPOLLIN | EPOLLRDHUP | (wanted ? EPOLLOUT : 0));
}

static void conn_flush(Conn *c) {
  while (c->tx_head < c->tx_tail && c->writable) {
    ssize_t n = write(out_fd(c), c->tx + c->tx_head, c->tx_tail - c->tx_head);
    if (n > 0) c->tx_head += (size_t)n;
    else if (n < 0 && errno == EAGAIN) {
      c->writable = false;
      want_room(c, true);
    } else if (n < 0 && errno != EINTR) {
      c->dead = true;
      return;
    }
  }
  if (c->tx_head < c->tx_tail) return;
  c->tx_head = c->tx_tail = 0;
  if (c->run_first == NULL) want_room(c, false);
  if (c->tx_cap > TX_BYTES) {
    uint8_t *smaller = realloc(c->tx, TX_BYTES);
    if (smaller == NULL) return;
    c->tx = smaller;
    c->tx_cap = TX_BYTES;
  }
}

bool conn_send_fd(Conn *c, uint16_t type, uint32_t channel, const void *payload, size_t len, int fd) {
  uint8_t frame[HEADER_BYTES + 64];
  conn_flush(c);
  if (c->dead || c->stdio || c->tx_head < c->tx_tail || len > 64) return false;
  write_header(frame, (uint32_t)len, type, channel);
  memcpy(frame + HEADER_BYTES, payload, len);
  struct iovec part = {.iov_base = frame, .iov_len = HEADER_BYTES + len};
  union {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  return sendmsg(c->in.fd, &message, MSG_NOSIGNAL) == (ssize_t)(HEADER_BYTES + len);
}

uint8_t *bulk_begin(Channel *ch, size_t *room) {
  if (ch->send_window < MIN_COST || ch->conn->dead) return NULL;
  size_t want = ch->send_window < MAX_BULK ? ch->send_window : MAX_BULK;
  if (!tx_reserve(ch->conn, HEADER_BYTES + want)) return NULL;
  *room = want;
  return ch->conn->tx + ch->conn->tx_tail + HEADER_BYTES;
}

void bulk_commit(Channel *ch, uint16_t type, size_t len) {
  Conn *c = ch->conn;
  write_header(c->tx + c->tx_tail, (uint32_t)len, type, ch->id);
  c->tx_tail += HEADER_BYTES + len;
  ch->send_window -= (uint32_t)(len < MIN_COST ? MIN_COST : len);
}

/* Returns false when the connection is at its end. */
static bool take_frames(Conn *c) {
  size_t at = 0;
  while (!c->dead && c->rx_len - at >= HEADER_BYTES) {
    uint32_t length, channel;
    uint16_t type;
    read_header(c->rx + at, &length, &type, &channel);
    if (length > MAX_PAYLOAD) return false;
    if (c->rx_len - at - HEADER_BYTES < length) break;
    const uint8_t *payload = c->rx + at + HEADER_BYTES;
    Cursor cursor = {.at = payload, .end = payload + length};
    request_dispatch(c, type, channel, &cursor);
    at += HEADER_BYTES + length;
  }
  c->rx_len -= at;
  if (at > 0 && c->rx_len > 0) memmove(c->rx, c->rx + at, c->rx_len);
  return !c->dead;
}

static bool conn_read(Conn *c, size_t *budget) {
  while (c->readable && *budget > 0 && c->tx_tail - c->tx_head < TX_STOP) {
    size_t space = RX_BYTES - c->rx_len;
    ssize_t n = read(c->in.fd, c->rx + c->rx_len, space);
    if (n > 0) {
      c->rx_len += (size_t)n;
      *budget -= (size_t)n < *budget ? (size_t)n : *budget;
      if (!take_frames(c)) return false;
      /* A short read of a socket means that it is empty: the next edge follows, unless the hangup was the last. */
      if ((size_t)n < space && !c->stdio && !c->hung_up) c->readable = false;
    } else if (n == 0) {
      return false;
    } else if (errno == EAGAIN) {
      c->readable = false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

static void run_channels(Conn *c) {
  while (c->run_first != NULL && c->tx_tail - c->tx_head < TX_SOFT && !c->dead) {
    Channel *ch = c->run_first;
    c->run_first = ch->next_runnable;
    if (c->run_first == NULL) c->run_last = NULL;
    ch->runnable = false;
    if (ch->ops->pull != NULL && ch->ops->pull(ch)) channel_wake(ch);
  }
}

static void pump(Task *task) {
  Conn *c = OWNER(Conn, pump, task);
  size_t budget = BYTES_PER_TURN, sent = 0;
  if (!c->dead && !conn_read(c, &budget)) c->dead = true;
  while (!c->dead) {
    run_channels(c);
    size_t unsent = c->tx_tail - c->tx_head;
    if (unsent == 0) break;
    conn_flush(c);
    sent += unsent;
    if (!c->writable || sent >= BYTES_PER_TURN) break;
  }
  if (c->dead) {
    conn_destroy(c);
    return;
  }
  bool may_send = c->writable && (c->run_first != NULL || c->tx_head < c->tx_tail);
  bool may_read = c->readable && c->tx_tail - c->tx_head < TX_STOP;
  if (may_send || may_read) task_queue(&c->pump);
}

static void conn_ready(Conn *c, uint32_t events) {
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) c->readable = true;
  if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) c->hung_up = true;
  if ((events & (EPOLLOUT | EPOLLERR)) != 0) c->writable = true;
  /* Runs at once rather than as a task: this saves a turn on every request. */
  task_cancel(&c->pump);
  pump(&c->pump);
}

static void in_ready(Io *io, uint32_t events) { conn_ready(OWNER(Conn, in, io), events); }
static void out_ready(Io *io, uint32_t events) {
  Conn *c = OWNER(Conn, out, io);
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) conn_fail(c);
  else conn_ready(c, events & EPOLLOUT);
}

bool conn_open(int in_fd, int out_fd_) {
  Conn *c = conns_len < MAX_CONNS ? calloc(1, sizeof *c) : NULL;
  bool stdio = in_fd != out_fd_;
  if (c != NULL) {
    *c = (Conn){.in = {.fd = -1}, .out = {.fd = -1}, .pump = {.run = pump}, .stdio = stdio, .tx_cap = TX_BYTES};
    c->rx = malloc(RX_BYTES);
    c->tx = malloc(TX_BYTES);
    c->writable = true;
    bool opened = c->rx != NULL && c->tx != NULL;
    if (opened && stdio) opened = io_open(&c->out, out_fd_, EPOLLOUT, out_ready);
    if (opened) opened = io_open(&c->in, in_fd, stdio ? EPOLLIN : EPOLLIN | EPOLLRDHUP, in_ready);
    if (opened) {
      c->next = conns;
      if (conns != NULL) conns->prev = c;
      conns = c;
      conns_len++;
      return true;
    }
    io_forget(&c->out);
    free(c->rx);
    free(c->tx);
    free(c);
  }
  close(in_fd);
  if (stdio) close(out_fd_);
  return false;
}

Channel *channel_find(Conn *c, uint32_t id) {
  for (Channel *ch = c->buckets[id % CHANNEL_BUCKETS]; ch != NULL; ch = ch->next_in_bucket) {
    if (ch->id == id) return ch;
  }
  return NULL;
}

void *channel_open(Conn *c, uint32_t id, size_t size, const ChannelOps *ops, uint32_t send_window) {
  Channel *ch = c->channels < MAX_CHANNELS ? calloc(1, size) : NULL;
  if (ch == NULL) {
    if ((id & AGENT_CHANNEL) == 0) send_error(c, id, E_LIMIT, ENOMEM, "too many things are open at once");
    return NULL;
  }
  ch->conn = c;
  ch->ops = ops;
  ch->id = id;
  ch->send_window = send_window < MAX_WINDOW ? send_window : MAX_WINDOW;
  ch->recv_window = INPUT_WINDOW;
  ch->next_in_bucket = c->buckets[id % CHANNEL_BUCKETS];
  c->buckets[id % CHANNEL_BUCKETS] = ch;
  c->channels++;
  return ch;
}

void channel_end(Channel *ch) {
  Conn *c = ch->conn;
  for (Channel **at = &c->buckets[ch->id % CHANNEL_BUCKETS]; *at != NULL; at = &(*at)->next_in_bucket) {
    if (*at != ch) continue;
    *at = ch->next_in_bucket;
    c->channels--;
    break;
  }
  if (ch->runnable) {
    Channel *before = NULL;
    for (Channel *at = c->run_first; at != ch; at = at->next_runnable) before = at;
    if (before == NULL) c->run_first = ch->next_runnable;
    else before->next_runnable = ch->next_runnable;
    if (c->run_last == ch) c->run_last = before;
  }
  free_later(ch);
}

void channel_wake(Channel *ch) {
  Conn *c = ch->conn;
  if (ch->runnable) return;
  ch->runnable = true;
  ch->next_runnable = NULL;
  if (c->run_last == NULL) c->run_first = ch;
  else c->run_last->next_runnable = ch;
  c->run_last = ch;
  if (c->writable) task_queue(&c->pump);
}

void channel_consumed(Channel *ch, size_t bytes) {
  ch->consumed += (uint32_t)bytes;
  if (ch->consumed < INPUT_WINDOW / 4) return;
  uint8_t payload[4];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_u32(&b, ch->consumed);
  ch->recv_window += ch->consumed;
  ch->consumed = 0;
  conn_send(ch->conn, T_WINDOW, ch->id, payload, sizeof payload);
}

void send_error(Conn *c, uint32_t channel, int kind, int err, const char *format, ...) {
  char text[256];
  uint8_t payload[300];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  Builder b = {.data = payload, .cap = sizeof payload};
  put_u16(&b, (uint16_t)kind);
  put_u32(&b, (uint32_t)err);
  put_str(&b, text);
  conn_send(c, T_ERROR, channel, payload, b.len);
}

void send_errno(Conn *c, uint32_t channel, int err) {
  int kind = err == ENOENT                                                          ? E_NOT_FOUND
             : err == EMFILE || err == ENFILE || err == ENOMEM || err == EAGAIN     ? E_LIMIT
                                                                                    : E_REFUSED;
  send_error(c, channel, kind, err, "%s", strerror(err));
}
