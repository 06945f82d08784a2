/* Opening below a directory so that neither `..` nor a link leads out of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_BENEATH 0x08

/* Opens part by part and follows no link: for kernels, and system call filters, without openat2. */
static int open_by_parts(int base, const char *path, int flags) {
  int dir = dup(base);
  char part[NAME_MAX + 1];
  for (const char *at = path; dir >= 0;) {
    size_t len = strcspn(at, "/");
    const char *rest = at + len;
    while (*rest == '/') rest++;
    if (len > NAME_MAX || (len == 2 && at[0] == '.' && at[1] == '.')) {
      close(dir);
      return len > NAME_MAX ? -ENAMETOOLONG : -EXDEV;
    }
    memcpy(part, at, len);
    part[len] = 0;
    int how = *rest == 0 ? flags : O_PATH | O_DIRECTORY;
    int next = openat(dir, len == 0 ? "." : part, how | O_NOFOLLOW | O_CLOEXEC);
    int error = errno;
    close(dir);
    if (next < 0) return error == ENOTDIR ? -ELOOP : -error;
    if (*rest == 0) return next;
    dir = next;
    at = rest;
  }
  return -errno;
}

int open_beneath(int base, const char *path, int flags) {
  static bool by_parts;
  struct {
    uint64_t flags, mode, resolve;
  } how = {(uint64_t)(flags | O_CLOEXEC), 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  if (path[0] == '/') return -EXDEV;
  for (int tries = 0; !by_parts && tries < 32; tries++) {
    long fd = syscall(SYS_openat2, base, path, &how, sizeof how);
    if (fd >= 0) return (int)fd;
    if (errno == ENOSYS || errno == EPERM || errno == E2BIG) by_parts = true;
    else if (errno != EAGAIN) return -errno; /* EAGAIN: a directory on the path was moved meanwhile */
  }
  return open_by_parts(base, path, flags);
}

/* Makes the missing directories, each by its own name in a parent below the base. */
static int make_beneath(int base, char *dir) {
  for (char *at = dir;; at++) {
    char kept = *at;
    if (kept != '/' && kept != 0) continue;
    *at = 0;
    int fd = open_beneath(base, dir, O_PATH | O_DIRECTORY);
    if (fd == -ENOENT) {
      char *slash = strrchr(dir, '/');
      if (slash != NULL) *slash = 0;
      int parent = open_beneath(base, slash == NULL ? "." : dir, O_PATH | O_DIRECTORY);
      if (slash != NULL) *slash = '/';
      if (parent < 0) return parent;
      int made = mkdirat(parent, slash == NULL ? dir : slash + 1, 0755), error = errno;
      close(parent);
      if (made != 0 && error != EEXIST) return -error;
      fd = open_beneath(base, dir, O_PATH | O_DIRECTORY);
    }
    if (fd < 0 || kept == 0) return fd;
    close(fd);
    *at = kept;
  }
}

int open_parent_beneath(int base, const char *path, bool make, const char **last) {
  char dir[PATH_MAX];
  const char *slash = strrchr(path, '/');
  *last = slash == NULL ? path : slash + 1;
  if (slash == NULL) return dup(base);
  size_t len = (size_t)(slash - path);
  if (len >= sizeof dir) return -ENAMETOOLONG;
  memcpy(dir, path, len);
  dir[len] = 0;
  int fd = open_beneath(base, dir, O_PATH | O_DIRECTORY);
  return fd == -ENOENT && make ? make_beneath(base, dir) : fd;
}
