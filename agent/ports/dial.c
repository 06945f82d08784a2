/* Passes bytes between a channel and a TCP connection: one made to a port inside, or one accepted there. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../agent.h"

typedef struct {
  Channel ch;
  Io io;
  uint16_t port;
  bool connecting, six, readable, read_end, write_end;
  Fifo output;
  Backlog *backlog; /* until the host has taken it */
} Link;

static void leave_backlog(Link *link) {
  if (link->backlog != NULL) backlog_leave(link->backlog);
  link->backlog = NULL;
}

static void link_gone(Channel *ch) {
  Link *link = (Link *)ch;
  io_close(&link->io);
  fifo_clear(&link->output);
  leave_backlog(link);
}

static void link_fail(Link *link, int error) {
  send_error(link->ch.conn, link->ch.id, E_CONNECT, error, "%s", strerror(error));
  link_gone(&link->ch);
  channel_end(&link->ch);
}

/* Returns true when both directions are at their end and the channel with them. */
static bool ended(Link *link) {
  if (!link->read_end || !link->write_end || link->output.len > 0) return false;
  conn_send(link->ch.conn, T_CLOSED, link->ch.id, NULL, 0);
  link_gone(&link->ch);
  channel_end(&link->ch);
  return true;
}

static void link_flush(Link *link) {
  bool broken = false;
  channel_consumed(&link->ch, fifo_flush(&link->output, link->io.fd, &broken));
  if (broken) {
    /* The peer takes no more input. What it wrote before may still be read. */
    channel_consumed(&link->ch, link->output.len);
    fifo_clear(&link->output);
    link->write_end = true;
  } else if (link->write_end && link->output.len == 0) {
    (void)shutdown(link->io.fd, SHUT_WR);
  }
}

static bool link_pull(Channel *ch) {
  Link *link = (Link *)ch;
  if (link->connecting) return false;
  if (ch->send_window > 0) leave_backlog(link);
  if (!link->readable || link->read_end) {
    (void)ended(link);
    return false;
  }
  size_t room;
  uint8_t *to = bulk_begin(ch, &room);
  if (to == NULL) return false;
  ssize_t n = read(link->io.fd, to, room);
  if (n > 0) bulk_commit(ch, T_DATA, (size_t)n);
  if (n > 0 || (n < 0 && errno == EINTR)) return true;
  if (n < 0 && errno == EAGAIN) {
    link->readable = false;
    return false;
  }
  if (n < 0) {
    link_fail(link, errno);
    return false;
  }
  link->read_end = true;
  conn_send(ch->conn, T_EOF, ch->id, NULL, 0);
  (void)ended(link);
  return false;
}

static bool begin_connect(Link *link, int *error);

static void connected(Link *link) {
  int error = 0;
  socklen_t size = sizeof error;
  (void)getsockopt(link->io.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    io_close(&link->io);
    if (!link->six) {
      link->six = true;
      int again;
      if (begin_connect(link, &again)) return;
    }
    link_fail(link, error);
    return;
  }
  link->connecting = false;
  conn_send(link->ch.conn, T_OPENED, link->ch.id, NULL, 0);
  link_flush(link);
  channel_wake(&link->ch);
}

static void link_ready(Io *io, uint32_t events) {
  Link *link = OWNER(Link, io, io);
  if (link->connecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) connected(link);
    if (link->io.fd < 0 || link->connecting) return;
  }
  if ((events & EPOLLOUT) != 0) link_flush(link);
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link->readable = true;
  channel_wake(&link->ch);
}

static bool adopt(Link *link, int fd) {
  int on = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return io_open(&link->io, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, link_ready);
}

static bool begin_connect(Link *link, int *error) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(link->port)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(link->port)};
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  six.sin6_addr.s6_addr[15] = 1;
  int fd = socket(link->six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  *error = errno;
  if (fd < 0) return false;
  const struct sockaddr *to = link->six ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
  link->connecting = true;
  if ((connect(fd, to, link->six ? sizeof six : sizeof four) != 0 && errno != EINPROGRESS) || !adopt(link, fd)) {
    *error = errno;
    close(fd);
    return false;
  }
  return true;
}

static void link_data(Channel *ch, const uint8_t *data, size_t len) {
  Link *link = (Link *)ch;
  if (link->write_end || !fifo_push(&link->output, data, len)) channel_consumed(ch, len);
  else if (!link->connecting) link_flush(link);
}

static void link_eof(Channel *ch) {
  Link *link = (Link *)ch;
  link->write_end = true;
  if (link->connecting) return;
  link_flush(link);
  channel_wake(ch);
}

static const ChannelOps ops = {.pull = link_pull, .data = link_data, .eof = link_eof, .gone = link_gone};

void request_dial(Conn *c, uint32_t id, Cursor *request) {
  uint16_t port = take_u16(request);
  uint32_t window = take_u32(request);
  int error;
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  Link *link = channel_open(c, id, sizeof *link, &ops, window);
  if (link == NULL) return;
  link->io.fd = -1;
  link->port = port;
  if (begin_connect(link, &error)) return;
  link->six = true;
  int again;
  if (!begin_connect(link, &again)) link_fail(link, error);
}

void relay_accepted(Conn *c, uint32_t id, int fd, Backlog *backlog) {
  Link *link = channel_open(c, id, sizeof *link, &ops, 0);
  if (link == NULL || !adopt(link, fd)) {
    close(fd);
    if (link == NULL) return;
    link->io.fd = -1;
    channel_end(&link->ch);
    return;
  }
  link->backlog = backlog;
  backlog->waiting++;
}

/* The host never saw these connections: it closed the listener before it took them. */
void relay_drop_waiting(Conn *c, const Backlog *backlog) {
  for (size_t i = 0; i < CHANNEL_BUCKETS; i++) {
    for (Channel *ch = c->buckets[i], *next; ch != NULL; ch = next) {
      next = ch->next_in_bucket;
      if (ch->ops != &ops || ((Link *)ch)->backlog != backlog || ch->send_window > 0) continue;
      link_gone(ch);
      channel_end(ch);
    }
  }
}
