/*
 * Calls a door as an impostor does.
 *
 *   door-caller PATH COUNT        connects that often, and prints how many were taken and how many bytes they were sent
 *   door-caller --through DIRECTORY NAME COUNT   opens the directory, says "open", waits for a line, and connects through it
 *   door-caller --stand-in PATH   listens at a path that it takes for itself, and prints each number of bytes that it is sent
 *   door-caller --first-process   prints how many descriptors and directories of process 1 can be had, and 0 for none
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST_KEPT 64

static int calls(const char *path, long count) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  int kept[MOST_KEPT];
  long taken = 0, bytes = 0;
  if (strlen(path) >= sizeof to.sun_path) return 2;
  strcpy(to.sun_path, path);
  for (int i = 0; i < MOST_KEPT; i++) kept[i] = -1;
  for (long i = 0; i < count; i++) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
      close(fd);
      continue;
    }
    close(kept[taken % MOST_KEPT]);
    kept[taken++ % MOST_KEPT] = fd;
  }
  usleep(taken > 0 ? 500000 : 0);
  for (int i = 0; i < MOST_KEPT; i++) {
    char got[4096];
    ssize_t n = kept[i] < 0 ? 0 : read(kept[i], got, sizeof got);
    if (n > 0) bytes += n;
  }
  printf("%ld %ld\n", taken, bytes);
  return 0;
}

static int first_process(void) {
  int had = 0, pidfd = (int)syscall(434, 1, 0);
  for (int fd = 0; fd < 64; fd++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/1/fd/%d", fd);
    if (open(path, O_PATH) >= 0) had++;
    if (pidfd >= 0 && syscall(438, pidfd, fd, 0) >= 0) had++;
  }
  if (open("/proc/1/fd", O_RDONLY) >= 0) had++;
  if (open("/proc/1/cwd", O_PATH) >= 0) had++;
  if (open("/proc/1/mem", O_RDONLY) >= 0) had++;
  if (ptrace(PTRACE_SEIZE, 1, 0, 0) == 0) had++;
  printf("%d\n", had);
  return 0;
}

static int stand_in(const char *path) {
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof at.sun_path) return 2;
  strcpy(at.sun_path, path);
  unlink(path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 64) != 0) return 1;
  puts("listens");
  for (;;) {
    char got[4096];
    fflush(stdout);
    int caller = accept(fd, NULL, NULL);
    struct pollfd polled = {.fd = caller, .events = POLLIN};
    if (caller < 0) return 1;
    printf("%ld\n", poll(&polled, 1, 2000) > 0 ? (long)read(caller, got, sizeof got) : 0);
    close(caller);
  }
}

int main(int argc, char **argv) {
  char line[8], path[64];
  if (argc == 2 && strcmp(argv[1], "--first-process") == 0) return first_process();
  if (argc == 3 && strcmp(argv[1], "--stand-in") == 0) return stand_in(argv[2]);
  if (argc == 3) return calls(argv[1], atol(argv[2]));
  if (argc != 5) return 2;
  int fd = open(argv[2], O_PATH | O_DIRECTORY);
  if (fd < 0) return 1;
  puts("open");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  snprintf(path, sizeof path, "/proc/self/fd/%d/%s", fd, argv[3]);
  return calls(path, atol(argv[4]));
}
