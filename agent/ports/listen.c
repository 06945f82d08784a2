/* Listens inside: connections are relayed out as channels, or the listening socket itself is handed out. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_WAITING 64
#define MAX_BOOT 16
#define BACKLOG 128

typedef struct {
  Channel ch;
  Io io;
  bool ready;
  Backlog *backlog;
} Listener;

static int boot_fds[MAX_BOOT];
static size_t boot_len;

/* Parses "tcp:127.0.0.1:80", "udp:127.0.0.1:53", "tcp:[::]:443". */
static int parse(const char *spec, int *type, struct sockaddr_storage *to, socklen_t *size) {
  char text[128];
  if (strlen(spec) >= sizeof text) return EINVAL;
  strcpy(text, spec);
  char *host = strchr(text, ':'), *port = strrchr(text, ':');
  if (host == NULL || host == port) return EINVAL;
  *host++ = 0;
  *port++ = 0;
  if (strcmp(text, "tcp") == 0) *type = SOCK_STREAM;
  else if (strcmp(text, "udp") == 0) *type = SOCK_DGRAM;
  else return EINVAL;
  char *end;
  long number = strtol(port, &end, 10);
  if (*port == 0 || *end != 0 || number < 0 || number > 65535) return EINVAL;
  memset(to, 0, sizeof *to);
  size_t len = strlen(host);
  if (host[0] == '[' && host[len - 1] == ']') {
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
    host[len - 1] = 0;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)number);
    *size = sizeof *six;
    return inet_pton(AF_INET6, host + 1, &six->sin6_addr) == 1 ? 0 : EINVAL;
  }
  struct sockaddr_in *four = (struct sockaddr_in *)to;
  four->sin_family = AF_INET;
  four->sin_port = htons((uint16_t)number);
  *size = sizeof *four;
  return inet_pton(AF_INET, host, &four->sin_addr) == 1 ? 0 : EINVAL;
}

static void show(const struct sockaddr_storage *from, char *host, size_t size, uint16_t *port) {
  host[0] = 0;
  *port = 0;
  if (from->ss_family == AF_INET) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)from;
    inet_ntop(AF_INET, &four->sin_addr, host, (socklen_t)size);
    *port = ntohs(four->sin_port);
  } else if (from->ss_family == AF_INET6) {
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
    inet_ntop(AF_INET6, &six->sin6_addr, host, (socklen_t)size);
    *port = ntohs(six->sin6_port);
  }
}

int listen_socket(const char *spec, char *shown, size_t size) {
  struct sockaddr_storage address;
  socklen_t len;
  int type, on = 1, error = parse(spec, &type, &address, &len);
  if (error != 0) return -error;
  int fd = socket(address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  if (type == SOCK_STREAM) (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ss_family == AF_INET6) (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&address, len) != 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) != 0)) {
    error = errno;
    close(fd);
    return -error;
  }
  if (shown != NULL) {
    uint16_t port = 0;
    char host[INET6_ADDRSTRLEN];
    len = sizeof address;
    (void)getsockname(fd, (struct sockaddr *)&address, &len);
    show(&address, host, sizeof host, &port);
    snprintf(shown, size, "%s:%u", host, port);
  }
  return fd;
}

static void put_address(Builder *b, const struct sockaddr_storage *from) {
  char host[INET6_ADDRSTRLEN];
  uint16_t port;
  show(from, host, sizeof host, &port);
  put_str(b, host);
  put_u16(b, port);
}

static void accept_one(Listener *l, int fd, const struct sockaddr_storage *peer) {
  Conn *c = l->ch.conn;
  struct sockaddr_storage own;
  socklen_t len = sizeof own;
  memset(&own, 0, sizeof own);
  (void)getsockname(fd, (struct sockaddr *)&own, &len);
  uint32_t id = AGENT_CHANNEL | (++c->next_agent_channel & ~AGENT_CHANNEL);
  uint8_t payload[160];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_u32(&b, id);
  put_address(&b, peer);
  put_address(&b, &own); /* the address that the program meant to reach */
  if (channel_find(c, id) != NULL) {
    close(fd);
    return;
  }
  relay_accepted(c, id, fd, l->backlog);
  if (channel_find(c, id) != NULL) conn_send(c, T_ACCEPTED, l->ch.id, payload, b.len);
}

static void accept_more(Listener *l) {
  while (l->ready && l->backlog->waiting < MAX_WAITING) {
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    memset(&peer, 0, sizeof peer);
    int fd = accept4(l->io.fd, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) accept_one(l, fd, &peer);
    else if (errno != EINTR && errno != ECONNABORTED) {
      l->ready = false;
      break;
    }
  }
}

static bool listener_pull(Channel *ch) {
  accept_more((Listener *)ch);
  return false;
}

static void listener_ready(Io *io, uint32_t events) {
  Listener *l = OWNER(Listener, io, io);
  (void)events;
  l->ready = true;
  accept_more(l);
}

static void listener_gone(Channel *ch) {
  Listener *l = (Listener *)ch;
  io_close(&l->io);
  relay_drop_waiting(ch->conn, l->backlog);
  l->backlog->listener = NULL;
  if (l->backlog->waiting == 0) free(l->backlog);
}

void backlog_leave(Backlog *backlog) {
  backlog->waiting--;
  if (backlog->listener != NULL) channel_wake(backlog->listener); /* there is room for another connection */
  else if (backlog->waiting == 0) free(backlog);
}

static const ChannelOps ops = {.pull = listener_pull, .gone = listener_gone};

void request_listen(Conn *c, uint32_t id, Cursor *request) {
  const char *spec = take_str(request);
  char shown[80];
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  int fd = strncmp(spec, "tcp:", 4) == 0 ? listen_socket(spec, shown, sizeof shown) : -EINVAL;
  if (fd < 0) {
    send_error(c, id, fd == -EINVAL ? E_INVALID : E_CONNECT, -fd, "%s", strerror(-fd));
    return;
  }
  Listener *l = channel_open(c, id, sizeof *l, &ops, 0);
  Backlog *backlog = calloc(1, sizeof *backlog);
  if (l == NULL || backlog == NULL || !io_open(&l->io, fd, EPOLLIN, listener_ready)) {
    if (l != NULL) {
      send_errno(c, id, ENOMEM);
      channel_end(&l->ch);
    }
    free(backlog);
    close(fd);
    return;
  }
  backlog->listener = &l->ch;
  l->backlog = backlog;
  uint8_t payload[96];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_str(&b, shown);
  conn_send(c, T_OPENED, id, payload, b.len);
}

int boot_listen(const char *spec) {
  if (boot_len == MAX_BOOT) return E_LIMIT;
  int fd = listen_socket(spec, NULL, 0);
  if (fd < 0) return -fd;
  boot_fds[boot_len++] = fd;
  return 0;
}

size_t boot_listeners(int *fds, size_t max) {
  size_t n = boot_len < max ? boot_len : max;
  memcpy(fds, boot_fds, n * sizeof *fds);
  return n;
}

/* Sends the n-th listener of the command line with the answer. The agent keeps its own descriptor of it. */
void request_handout(Conn *c, uint32_t id, Cursor *request) {
  uint32_t which = take_u32(request);
  uint8_t payload[4];
  Builder b = {.data = payload, .cap = sizeof payload};
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  put_u32(&b, (uint32_t)boot_len);
  if (c->stdio) send_error(c, id, E_UNSUPPORTED, ENOTSOCK, "only a unix socket can carry it");
  else if (which >= boot_len) send_error(c, id, E_NOT_FOUND, ENOENT, "there is no such listener");
  else if (!conn_send_fd(c, T_RESULT, id, payload, b.len, boot_fds[which]))
    send_error(c, id, E_LIMIT, EAGAIN, "the connection is busy");
}
