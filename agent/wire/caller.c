/*
 * Calls the host, which listens. One connection always waits to be greeted, so that the host has one at hand whenever it needs
 * another; a host that has gone away is called again until it is back.
 *
 * The directory of the socket is opened once, at the start, and every call goes through that descriptor: the host moves the
 * directory away from every path that programs inside can name before it answers the first call.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../agent.h"

#define FIRST_PAUSE_MS 10
#define LONGEST_PAUSE_MS 500

static struct sockaddr_un home = {.sun_family = AF_UNIX};
static bool calling, waiting;
static uint64_t pause_ms = FIRST_PAUSE_MS;

static void call(Timer *timer) {
  if (waiting) return;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&home, sizeof home) == 0) {
    int bytes = 1024 * 1024;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    waiting = conn_open(fd, fd);
  } else if (fd >= 0) {
    close(fd);
  }
  if (waiting) return;
  (void)timer_set(timer, pause_ms);
  pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
}

static Timer next_call = {.fire = call};

bool caller_start(const char *path) {
  char directory[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t len = slash == NULL ? 0 : (size_t)(slash - path);
  if (slash == NULL || slash[1] == 0 || strchr(path, '/') != path || len >= sizeof directory) return false;
  memcpy(directory, path, len);
  directory[len] = 0;
  int fd = open(len == 0 ? "/" : directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  int written = snprintf(home.sun_path, sizeof home.sun_path, "/proc/self/fd/%d/%s", fd, slash + 1);
  if (written < 0 || (size_t)written >= sizeof home.sun_path) return false;
  calling = true;
  call(&next_call);
  return true;
}

void caller_taken(void) {
  if (!calling) return;
  waiting = false;
  pause_ms = FIRST_PAUSE_MS;
  (void)timer_set(&next_call, 0);
}

void caller_lost(void) {
  if (!calling || !waiting) return;
  waiting = false;
  (void)timer_set(&next_call, pause_ms);
  pause_ms = pause_ms * 2 < LONGEST_PAUSE_MS ? pause_ms * 2 : LONGEST_PAUSE_MS;
}
