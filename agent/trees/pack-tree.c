/* Packs a tree as a tar stream: files, directories and links; sockets, pipes and devices are left out. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent.h"
#include "tar.h"

#define HELD_OPEN 32
#define BUFFER_BYTES (128 * 1024)
#define MAX_USTAR_SIZE 077777777777ull

typedef struct {
  TreeWork *work;
  int top;
  bool looks; /* first pass, without output: finds out whether all of it can be read */
  char name[PATH_MAX]; /* of the current entry, from the top */
  uint8_t buffer[BUFFER_BYTES];
} Pack;

static int fail(Pack *p, int error) {
  if (p->work->why[0] == 0 && p->name[0] != 0)
    snprintf(p->work->why, sizeof p->work->why, "%.120s: %s", p->name, strerror(error));
  return error;
}

static int put(Pack *p, const void *data, size_t len) {
  if (p->looks) return 0;
  for (const uint8_t *at = data; len > 0;) {
    ssize_t n = write(p->work->data, at, len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return EPIPE;
    at += n;
    len -= (size_t)n;
  }
  return 0;
}

static int put_padding(Pack *p, uint64_t size) {
  static const uint8_t zero[TAR_BLOCK];
  return put(p, zero, (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

static int put_block(Pack *p, char type, const char *name, const char *link, mode_t mode, uint64_t size, time_t mtime) {
  TarBlock block = {.type = type};
  memcpy(block.name, name, strnlen(name, sizeof block.name));
  memcpy(block.link, link, strnlen(link, sizeof block.link));
  tar_octal(block.mode, sizeof block.mode, mode & 0777);
  tar_octal(block.uid, sizeof block.uid, 0);
  tar_octal(block.gid, sizeof block.gid, 0);
  tar_octal(block.size, sizeof block.size, size);
  tar_octal(block.mtime, sizeof block.mtime, mtime > 0 ? (uint64_t)mtime : 0);
  memcpy(block.magic, "ustar", 6);
  memcpy(block.version, "00", 2);
  tar_octal(block.checksum, 7, tar_checksum(&block));
  block.checksum[7] = ' ';
  return put(p, &block, sizeof block);
}

/* Writes "<length> <key>=<value>\n", where the length counts itself. */
static size_t pax_record(char *to, size_t size, const char *key, const char *value) {
  size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
  char digits[24];
  for (int tries = 0; tries < 4; tries++) len = rest + (size_t)snprintf(digits, sizeof digits, "%zu", len);
  return len < size ? (size_t)snprintf(to, size, "%zu %s=%s\n", len, key, value) : 0;
}

static int put_header(Pack *p, char type, const char *name, const char *link, const struct stat *st) {
  static char records[3 * PATH_MAX];
  uint64_t size = type == '0' ? (uint64_t)st->st_size : 0;
  size_t len = 0;
  char number[24];
  snprintf(number, sizeof number, "%llu", (unsigned long long)size);
  if (strlen(name) > 100) len += pax_record(records + len, sizeof records - len, "path", name);
  if (strlen(link) > 100) len += pax_record(records + len, sizeof records - len, "linkpath", link);
  if (size > MAX_USTAR_SIZE) len += pax_record(records + len, sizeof records - len, "size", number);
  int error = 0;
  if (len > 0) {
    error = put_block(p, 'x', "PaxHeader", "", 0644, len, st->st_mtim.tv_sec);
    if (error == 0) error = put(p, records, len);
    if (error == 0) error = put_padding(p, len);
  }
  if (error == 0)
    error = put_block(p, type, name, link, st->st_mode, size > MAX_USTAR_SIZE ? 0 : size, st->st_mtim.tv_sec);
  return error;
}

/* Writes exactly as many bytes as the header says: bytes appended meanwhile are not part of it. */
static int put_file(Pack *p, int fd, const char *name, const struct stat *st) {
  uint64_t left = (uint64_t)st->st_size;
  int error = put_header(p, '0', name, "", st);
  while (error == 0 && left > 0) {
    ssize_t n = read(fd, p->buffer, left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(p, errno);
    if (n == 0) {
      snprintf(p->work->why, sizeof p->work->why, "%.120s: it shrank while it was read", name);
      return EIO;
    }
    error = put(p, p->buffer, (size_t)n);
    left -= (uint64_t)n;
  }
  if (error == 0) p->work->files++;
  return error == 0 ? put_padding(p, (uint64_t)st->st_size) : error;
}

/* Leaves out the current entry and goes on, where the request allows that; otherwise the whole pack fails with `error`. */
static int without(Pack *p, int error) {
  TreeWork *work = p->work;
  bool only_this = error == EACCES || error == EPERM || error == ENAMETOOLONG;
  if (!work->leaves_out || !only_this) return fail(p, error);
  size_t len = strlen(p->name) + 1;
  if (len <= sizeof work->left - work->left_len) {
    memcpy(work->left + work->left_len, p->name, len);
    work->left_len += len;
  }
  work->left_out++;
  return 0;
}

/* Packs an entry. A directory comes back open, its header written; `*child` is -1 for every other entry. */
static int pack_entry(Pack *p, int dir, const char *name, size_t end, int *child) {
  struct stat st;
  static char link[PATH_MAX];
  *child = -1;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : without(p, errno);
  if (S_ISLNK(st.st_mode)) {
    ssize_t n = readlinkat(dir, name, link, sizeof link - 1);
    if (n < 0) return errno == ENOENT ? 0 : without(p, errno);
    link[n] = 0;
    return put_header(p, '2', p->name, link, &st);
  }
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return 0;
  if (p->looks && S_ISREG(st.st_mode))
    return faccessat(dir, name, R_OK, 0) == 0 || errno == ENOENT ? 0 : fail(p, errno);
  int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error = 0;
  if (fd < 0) return errno == ENOENT ? 0 : without(p, errno);
  if (fstat(fd, &st) != 0) error = fail(p, errno);
  else if (S_ISREG(st.st_mode)) error = put_file(p, fd, p->name, &st);
  else if (S_ISDIR(st.st_mode)) {
    p->name[end] = '/';
    p->name[end + 1] = 0;
    error = put_header(p, '5', p->name, "", &st);
    if (error == 0) *child = fd;
  }
  if (*child < 0) close(fd);
  return error;
}

static bool is_entry(const char *name) { return strcmp(name, ".") != 0 && strcmp(name, "..") != 0; }

/* Appends the name to that of its directory. Returns 0 when that is too long. */
static size_t name_entry(Pack *p, size_t prefix, const char *name) {
  size_t len = strlen(name);
  if (prefix + len + 2 > sizeof p->name) return 0;
  memcpy(p->name + prefix, name, len + 1);
  return prefix + len;
}

static int too_long(Pack *p, size_t prefix) {
  p->name[prefix] = 0; /* its directory names it */
  return without(p, ENAMETOOLONG);
}

static int pack_dir(Pack *p, int fd, size_t prefix, int depth);

/* Returns the names, each with its NUL; NULL when there is no memory. */
static char *names_in(DIR *dir, size_t *total) {
  size_t len = 0, cap = 4096;
  char *names = malloc(cap);
  for (struct dirent *e; names != NULL && (e = readdir(dir)) != NULL;) {
    size_t more = strlen(e->d_name) + 1;
    if (!is_entry(e->d_name)) continue;
    if (len + more > cap) {
      char *wider = realloc(names, cap = 2 * cap + more);
      if (wider == NULL) free(names);
      names = wider;
    }
    if (names == NULL) break;
    memcpy(names + len, e->d_name, more);
    len += more;
  }
  *total = len;
  return names;
}

/* Packs a directory far down, which is closed while its content is packed: descriptors are few, levels are many. */
static int pack_deep(Pack *p, DIR *dir, size_t prefix, int depth) {
  size_t total;
  char *names = names_in(dir, &total);
  closedir(dir);
  if (names == NULL) return fail(p, ENOMEM);
  int error = 0;
  for (size_t at = 0; error == 0 && at < total; at += strlen(names + at) + 1) {
    p->name[prefix] = 0;
    int child, fd = open_beneath(p->top, p->name, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd == -ENOENT || fd == -ENOTDIR) break; /* gone meanwhile */
    size_t end = fd < 0 ? 0 : name_entry(p, prefix, names + at);
    if (fd < 0) error = without(p, -fd);
    else if (end == 0) error = too_long(p, prefix);
    else {
      error = pack_entry(p, fd, names + at, end, &child);
      close(fd);
      if (error == 0 && child >= 0) error = pack_dir(p, child, end + 1, depth + 1);
      continue;
    }
    if (fd >= 0) close(fd);
  }
  free(names);
  return error;
}

/* Packs a directory and takes over `fd`. */
static int pack_dir(Pack *p, int fd, size_t prefix, int depth) {
  DIR *dir = fdopendir(fd);
  if (dir == NULL) {
    close(fd);
    return fail(p, ENOMEM);
  }
  if (depth >= HELD_OPEN) return pack_deep(p, dir, prefix, depth);
  int error = 0, child;
  for (struct dirent *e; error == 0 && (e = readdir(dir)) != NULL;) {
    if (!is_entry(e->d_name)) continue;
    size_t end = name_entry(p, prefix, e->d_name);
    if (end == 0) {
      error = too_long(p, prefix);
      continue;
    }
    error = pack_entry(p, fd, e->d_name, end, &child);
    if (error == 0 && child >= 0) error = pack_dir(p, child, end + 1, depth + 1);
  }
  closedir(dir);
  p->name[prefix] = 0;
  return error;
}

int pack_tree(TreeWork *work, const char *path) {
  static Pack p;
  struct stat st;
  p.work = work;
  int fd = openat(work->base, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error = 0;
  if (fd < 0 || fstat(fd, &st) != 0) return errno;
  if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) return EINVAL;
  if (S_ISDIR(st.st_mode) && (p.top = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) return errno;
  if (S_ISDIR(st.st_mode) && !work->leaves_out) {
    int look = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    p.looks = true;
    error = look < 0 ? errno : pack_dir(&p, look, 0, 0);
    p.looks = false;
    if (error != 0) return error;
  }
  work->opened();
  if (S_ISDIR(st.st_mode)) {
    error = put_header(&p, '5', "./", "", &st);
    if (error == 0) error = pack_dir(&p, fd, 0, 0);
  } else {
    const char *slash = strrchr(path, '/');
    error = put_file(&p, fd, slash == NULL ? path : slash + 1, &st);
  }
  static const uint8_t end[2 * TAR_BLOCK];
  return error == 0 ? put(&p, end, sizeof end) : error;
}
