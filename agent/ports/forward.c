/* Forwards connections at local ports to fixed addresses: the only network access of a stack that has no network of its own. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_FORWARDS 128
#define MAX_CONNECTIONS 256

typedef struct {
  int fd;
  struct sockaddr_in to;
} Forward;

static Forward forwards[MAX_FORWARDS];
static size_t count;

static bool parse_port(const char *text, uint16_t *port) {
  char *end;
  long value = strtol(text, &end, 10);
  *port = (uint16_t)value;
  return *text != 0 && *end == 0 && value > 0 && value < 65536;
}

/* Parses `8080=10.0.0.2:80`. */
bool forward_add(const char *text) {
  char copy[64];
  uint16_t from, to;
  if (count == MAX_FORWARDS || strlen(text) >= sizeof copy) return false;
  strcpy(copy, text);
  char *address = strchr(copy, '='), *port = strrchr(copy, ':');
  if (address == NULL || port == NULL || port < address) return false;
  *address++ = 0;
  *port++ = 0;
  Forward *f = &forwards[count];
  f->to = (struct sockaddr_in){.sin_family = AF_INET};
  if (!parse_port(copy, &from) || !parse_port(port, &to) || inet_pton(AF_INET, address, &f->to.sin_addr) != 1) return false;
  f->to.sin_port = htons(to);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(from), .sin_addr = {htonl(INADDR_ANY)}};
  int one = 1;
  f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (f->fd < 0) return false;
  (void)setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(f->fd, (struct sockaddr *)&here, sizeof here) != 0 || listen(f->fd, 128) != 0) return false;
  count++;
  return true;
}

static void stop(int signal) {
  (void)signal;
  _exit(0);
}

static int serve(int fd, const struct sockaddr_in *to) {
  int target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* An address without an answer is given up earlier than after the kernel's two minutes. */
  alarm(15);
  if (target < 0 || connect(target, (const struct sockaddr *)to, sizeof *to) != 0) return 1;
  alarm(0);
  return relay_sockets(fd, target);
}

int forward_run(void) {
  size_t running = 0;
  struct pollfd polled[MAX_FORWARDS];
  signal(SIGTERM, stop);
  signal(SIGINT, stop);
  signal(SIGPIPE, SIG_IGN);
  for (;;) {
    while (running > 0 && waitpid(-1, NULL, WNOHANG) > 0) running--;
    bool full = running >= MAX_CONNECTIONS;
    for (size_t i = 0; i < count; i++) polled[i] = (struct pollfd){.fd = full ? -1 : forwards[i].fd, .events = POLLIN};
    if (poll(polled, count, full ? 50 : 1000) < 0 && errno != EINTR) return 1;
    for (size_t i = 0; i < count; i++) {
      if (!(polled[i].revents & POLLIN)) continue;
      int fd = accept4(forwards[i].fd, NULL, NULL, SOCK_CLOEXEC);
      if (fd < 0) continue;
      pid_t child = fork();
      if (child == 0) _exit(serve(fd, &forwards[i].to));
      if (child > 0) running++;
      close(fd);
    }
  }
}
