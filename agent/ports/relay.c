/* Relays standard input and output to an agent that listens on a path: for `docker exec`, ssh and the like. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../agent.h"

#define RELAY_BYTES (128 * 1024)

typedef struct {
  int from, to;
  size_t head, len;
  bool ended, done;
  uint8_t data[RELAY_BYTES];
} Way;

static bool would_block(void) { return errno == EAGAIN || errno == EINTR; }

/* Returns false when the whole relay is over. */
static bool move(Way *way, bool is_socket) {
  if (!way->ended && way->len == 0) {
    ssize_t n = read(way->from, way->data, RELAY_BYTES);
    if (n > 0) way->len = (size_t)n;
    else if (n == 0 || !would_block()) way->ended = true;
    way->head = 0;
  }
  while (way->len > 0) {
    ssize_t n = write(way->to, way->data + way->head, way->len);
    if (n < 0 && would_block()) return true;
    if (n < 0) return false;
    way->head += (size_t)n;
    way->len -= (size_t)n;
  }
  if (way->ended && !way->done) {
    way->done = true;
    if (!is_socket) return false;
    (void)shutdown(way->to, SHUT_WR);
  }
  return true;
}

/* Returns when both directions are done, or when the end of one ends the relay. */
static int relay(Way *in, bool in_is_socket, Way *out, bool out_is_socket) {
  int fds[] = {in->from, in->to, out->from, out->to};
  for (int i = 0; i < 4; i++) (void)fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
  while (!in->done || !out->done) {
    struct pollfd polled[4] = {{.fd = in->len == 0 && !in->ended ? in->from : -1, .events = POLLIN},
                               {.fd = in->len > 0 ? in->to : -1, .events = POLLOUT},
                               {.fd = out->len == 0 && !out->ended ? out->from : -1, .events = POLLIN},
                               {.fd = out->len > 0 ? out->to : -1, .events = POLLOUT}};
    if (poll(polled, 4, -1) < 0 && errno != EINTR) return 1;
    if ((polled[0].revents || polled[1].revents) && !move(in, in_is_socket)) return 0;
    if ((polled[2].revents || polled[3].revents) && !move(out, out_is_socket)) return 0;
  }
  return 0;
}

/* Returns the clock ticks from the start of the machine to the start of a process; 0 when it is gone. */
unsigned long long process_since(pid_t pid) {
  char path[48], text[1024];
  unsigned long long since = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char *at = strrchr(text, ')'); /* a name may hold anything */
  for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
  return at != NULL && sscanf(at, " %llu", &since) == 1 ? since : 0;
}

/* Parses `PID`, or `PID:SINCE` where the number may belong to another process by now. */
bool parse_listener(const char *text, ListenerPeer *listener) {
  char *end;
  if (!isdigit((unsigned char)*text)) return false;
  long pid = strtol(text, &end, 10);
  listener->since = 0;
  listener->pid = (pid_t)pid;
  if (pid <= 0 || pid > INT_MAX) return false;
  if (*end == 0) return true;
  if (*end != ':' || !isdigit((unsigned char)end[1])) return false;
  listener->since = strtoull(end + 1, &end, 10);
  return *end == 0;
}

/* Compares the listener that the kernel recorded for the socket: a socket of another process at that path gets no data. */
static bool is_listener(int fd, const ListenerPeer *listener) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != listener->pid) return false;
  return listener->since == 0 || process_since(peer.pid) == listener->since;
}

int relay_stdio(const char *path, const ListenerPeer *listener) {
  static Way in, out;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (strlen(path) >= sizeof address.sun_path) return 2;
  strcpy(address.sun_path, path);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    say("cannot reach the agent at %s: %s", path, strerror(errno));
    return 1;
  }
  if (listener->pid != 0 && !is_listener(fd, listener)) {
    say("another process than the agent listens at %s", path);
    return EXIT_IMPOSTOR;
  }
  in.from = 0;
  in.to = out.from = fd;
  out.to = 1;
  return relay(&in, true, &out, false);
}

int relay_sockets(int a, int b) {
  static Way in, out;
  in.from = out.to = a;
  in.to = out.from = b;
  return relay(&in, true, &out, true);
}
