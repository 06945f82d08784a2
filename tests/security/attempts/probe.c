/*
 * Performs attempts, each in a process of its own, and prints a line for each: its number, what came of it, and why.
 *
 *   probe MOUNT_NS UTS_NS < attempts     one attempt a line: number, verb, arguments
 *   probe --serve NAME KEY               offers what another sandbox must not reach; ends with its input
 *
 * The first two arguments are the host's own namespaces, in which no attempt is performed.
 */
#define _GNU_SOURCE
#include "probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 12

/* Opening alone is the attempt: nothing is written. */
static long open_to_write(const char *path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  /* Of a program that runs the kernel tells this first, and only then whether it may be written. */
  if (fd < 0 && errno == ETXTBSY && access(path, W_OK) < 0) return -1;
  return fd;
}

/* A file or a directory without content tells nothing. */
static long read_some(const char *path) {
  char bytes[4096];
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return -1;
  ssize_t got = read(fd, bytes, sizeof bytes);
  if (got < 0 && errno == EISDIR) {
    DIR *directory = fdopendir(fd);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
      if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return 0;
    return errno = ENODATA, -1;
  }
  if (got < 0) return errno == EAGAIN || errno == EINVAL || errno == EIO ? fd : -1;
  return got == 0 ? (errno = ENODATA, -1) : fd;
}

static long put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  return fd < 0 ? -1 : write(fd, text, strlen(text));
}

static long argument(const char *word) {
  static char zeros[8][4096];
  static int used;
  if (word == NULL) return 0;
  if (*word == '@') return (long)(word + 1);
  return strcmp(word, "&") == 0 ? (long)zeros[used++ % 8] : strtol(word, NULL, 0);
}

static long call(char **words) {
  long number = call_number(words[1]), a[6];
  if (number < 0) return errno = ENOSYS, -1;
  for (int i = 0; i < 6; i++) a[i] = argument(words[2 + i]);
  return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long perform(char **words) {
  const char *verb = words[0], *first = words[1] ? words[1] : "", *second = words[2] ? words[2] : "";
  if (!strcmp(verb, "read")) return read_some(first);
  if (!strcmp(verb, "open")) return open(first, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (!strcmp(verb, "write")) return open_to_write(first);
  if (!strcmp(verb, "put")) return put(first, second);
  if (!strcmp(verb, "call")) return call(words);
  if (!strcmp(verb, "socket")) return try_socket(atoi(first), atoi(second), words[3] ? atoi(words[3]) : 0);
  if (!strcmp(verb, "connect")) return try_connect_path(first);
  if (!strcmp(verb, "abstract")) return try_connect_abstract(first);
  if (!strcmp(verb, "tcp")) return try_connect_tcp(atoi(first));
  if (!strcmp(verb, "shm")) return shmget((key_t)atoi(first), 0, 0);
  if (!strcmp(verb, "msg")) return msgget((key_t)atoi(first), 0);
  if (!strcmp(verb, "sem")) return semget((key_t)atoi(first), 0, 0);
  if (!strcmp(verb, "mq")) return (long)mq_open(first, O_RDONLY);
  return compound(verb, first);
}

/* Errors that say: not for you. */
static int is_refusal(int error) { return error == EPERM || error == EACCES || error == ENOSYS || error == EROFS; }

/* Errors that say: there is nothing of that name or kind here. */
static int is_absence(int error) {
  static const int ABSENT[] = {ENOENT,          ENODEV,       ENXIO,       ENODATA,      ENOTDIR,     ESRCH,      ECONNREFUSED, ENETUNREACH,
                               EAFNOSUPPORT,    EHOSTUNREACH, EOPNOTSUPP,  ENOPROTOOPT,  EPROTOTYPE,  ETIMEDOUT,  EADDRNOTAVAIL,
                               EPROTONOSUPPORT, ESOCKTNOSUPPORT};
  for (size_t i = 0; i < sizeof ABSENT / sizeof *ABSENT; i++)
    if (ABSENT[i] == error) return 1;
  return 0;
}

static void report(const char *number, const char *what, const char *why) {
  printf("%s\t%s\t%s\n", number, what, why);
  fflush(stdout);
}

static void attempt(char **words) {
  struct { long result; int error; } told = {-1, 0};
  int ends[2], status = 0;
  fflush(stdout);
  if (pipe2(ends, O_CLOEXEC) < 0) return report(words[0], "not tried", strerrorname_np(errno));
  pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    errno = 0;
    told.result = perform(words + 1);
    told.error = errno;
    _exit(write(ends[1], &told, sizeof told) != sizeof told);
  }
  close(ends[1]);
  int heard = pid > 0 && read(ends[0], &told, sizeof told) == sizeof told;
  close(ends[0]);
  if (pid < 0 || waitpid(pid, &status, 0) < 0) return report(words[0], "not tried", "fork");
  if (!heard && WIFSIGNALED(status)) {
    const char *name = sigabbrev_np(WTERMSIG(status));
    int seccomp = WTERMSIG(status) == SIGSYS;
    return report(words[0], seccomp ? "killed" : "reached", name ? name : "?");
  }
  if (!heard) return report(words[0], "reached", "ended");
  if (told.result == -2) return report(words[0], "not tried", "no such attempt");
  if (told.result >= 0) return report(words[0], "open", "-");
  const char *name = strerrorname_np(told.error);
  report(words[0], is_refusal(told.error) ? "refused" : is_absence(told.error) ? "absent" : "reached", name ? name : "?");
}

/* Prints its process id and port when everything is there, which is until the input ends. */
static int serve(const char *name, int key) {
  umask(0);
  char path[128];
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof loopback;
  int tcp = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(tcp, (struct sockaddr *)&loopback, sizeof loopback) < 0 || listen(tcp, 8) < 0 ||
      getsockname(tcp, (struct sockaddr *)&loopback, &size) < 0)
    return perror("tcp"), 1;
  int abstract = socket(AF_UNIX, SOCK_STREAM, 0), named = socket(AF_UNIX, SOCK_STREAM, 0);
  snprintf(local.sun_path + 1, sizeof local.sun_path - 1, "%s", name);
  if (bind(abstract, (struct sockaddr *)&local, (socklen_t)(sizeof(sa_family_t) + 1 + strlen(name))) < 0 || listen(abstract, 8) < 0)
    return perror("abstract"), 1;
  snprintf(local.sun_path, sizeof local.sun_path, "/tmp/%s.sock", name);
  if (bind(named, (struct sockaddr *)&local, sizeof local) < 0 || listen(named, 8) < 0) return perror(local.sun_path), 1;
  static const char *const PLACES[] = {"/tmp", "/dev/shm"};
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
    snprintf(path, sizeof path, "%s/%s", PLACES[i], name);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd >= 0) dprintf(fd, "%s", name), close(fd);
  }
  int shm = shmget(key, 4096, IPC_CREAT | 0666), msg = msgget(key, IPC_CREAT | 0666), sem = semget(key, 1, IPC_CREAT | 0666);
  snprintf(path, sizeof path, "/%s", name);
  mq_open(path, O_RDWR | O_CREAT, 0666, NULL);
  printf("%d %d\n", getpid(), ntohs(loopback.sin_port));
  fflush(stdout);
  while (read(0, path, 1) > 0) continue;
  shmctl(shm, IPC_RMID, NULL), msgctl(msg, IPC_RMID, NULL), semctl(sem, 0, IPC_RMID);
  unlink(local.sun_path);
  snprintf(path, sizeof path, "/%s", name), mq_unlink(path);
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) snprintf(path, sizeof path, "%s/%s", PLACES[i], name), unlink(path);
  return 0;
}

static int is_host(const char *kind, const char *hosts) {
  char path[32], own[64] = "";
  snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
  return readlink(path, own, sizeof own - 1) < 0 || strcmp(own, hosts) == 0;
}

int main(int count, char **arguments) {
  if (count == 4 && strcmp(arguments[1], "--serve") == 0) return serve(arguments[2], atoi(arguments[3]));
  if (count != 3) return 2;
  if (is_host("mnt", arguments[1]) || is_host("uts", arguments[2])) return fputs("this is the host itself\n", stderr), 3;
  char *line = NULL;
  size_t size = 0;
  /* What was left open by those who started the probe is an attempt of its own. */
  while (getline(&line, &size, stdin) > 0) {
    char *words[WORDS] = {NULL};
    int found = 0;
    for (char *word = strtok(line, " \n"); word && found < WORDS - 1; word = strtok(NULL, " \n")) words[found++] = word;
    if (found >= 2) attempt(words);
  }
  return 0;
}
