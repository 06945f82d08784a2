/* Standard input and output as one connection to an agent that listens on a path: for `docker exec`, ssh and the like. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"

#define RELAY_BYTES (128 * 1024)

typedef struct {
  int from, to;
  size_t head, len;
  bool ended, done;
  uint8_t data[RELAY_BYTES];
} Way;

static bool would_block(void) { return errno == EAGAIN || errno == EINTR; }

/* False when the whole is over. */
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

/* Returns when both ways are done, or one that ends the whole is. */
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

int relay_stdio(const char *path) {
  static Way in, out;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (strlen(path) >= sizeof address.sun_path) return 2;
  strcpy(address.sun_path, path);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    say("cannot reach the agent at %s: %s", path, strerror(errno));
    return 1;
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
