/* Unpacks a tar stream below a directory. No file is written outside of it, whatever the archive or the disk holds. */
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

#define MAX_EXTENSION (1024 * 1024)
#define MAX_LATE_MODES 65536
#define BUFFER_BYTES (128 * 1024)

typedef struct LateMode LateMode;
struct LateMode {
  LateMode *next;
  mode_t mode;
  char path[];
};

typedef struct {
  TreeWork *work;
  int base;
  char name[PATH_MAX], link[PATH_MAX];
  bool has_name, has_link, has_size, sparse;
  uint64_t size;
  LateMode *late; /* of directories that would refuse their own content */
  size_t late_count;
  char parent[PATH_MAX]; /* the directory of the entry before */
  int parent_fd;
  uint8_t buffer[BUFFER_BYTES];
  size_t at, have;
} Unpack;

static int refuse(Unpack *u, int error, const char *what) {
  if (u->work->why[0] == 0) {
    if (u->name[0] == 0) snprintf(u->work->why, sizeof u->work->why, "%s", what);
    else snprintf(u->work->why, sizeof u->work->why, "%.120s: %s", u->name, what);
  }
  return error;
}

static int fail(Unpack *u, int error) {
  bool outside = error == EXDEV || error == ELOOP; /* EXDEV and ELOOP come from open_beneath() */
  return refuse(u, error, outside ? "it would leave its place" : strerror(error));
}

/* Returns the next bytes of the stream, at least one; 0 at its end. */
static size_t some(Unpack *u, const uint8_t **data, size_t most) {
  while (u->at == u->have) {
    ssize_t n = read(u->work->data, u->buffer, sizeof u->buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    u->at = 0;
    u->have = (size_t)n;
  }
  size_t n = u->have - u->at < most ? u->have - u->at : most;
  *data = u->buffer + u->at;
  u->at += n;
  return n;
}

static bool exactly(Unpack *u, void *to, uint64_t len) {
  for (uint8_t *put = to; len > 0;) {
    const uint8_t *data;
    size_t n = some(u, &data, len < BUFFER_BYTES ? (size_t)len : BUFFER_BYTES);
    if (n == 0) return false;
    if (put != NULL) {
      memcpy(put, data, n);
      put += n;
    }
    len -= n;
  }
  return true;
}

static bool skip(Unpack *u, uint64_t len) { return exactly(u, NULL, len); }

static uint64_t padding(uint64_t size) { return (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK; }

/* Removes "./", doubled and trailing slashes; "" is the top. Returns false for a name that leads out. */
static bool clean_name(const char *name, char *to) {
  size_t put = 0;
  if (name[0] == '/') return false;
  while (*name != 0) {
    size_t len = strcspn(name, "/");
    if (len == 2 && name[0] == '.' && name[1] == '.') return false;
    if (len > 0 && !(len == 1 && name[0] == '.')) {
      if (put + len + 2 > PATH_MAX) return false;
      if (put > 0) to[put++] = '/';
      memcpy(to + put, name, len);
      put += len;
    }
    name += len;
    while (*name == '/') name++;
  }
  to[put] = 0;
  return true;
}

static bool set_text(char *to, const char *from, size_t len) {
  len = strnlen(from, len);
  if (len >= PATH_MAX) return false;
  memcpy(to, from, len);
  to[len] = 0;
  return true;
}

static bool pax_record(Unpack *u, const char *key, size_t key_len, const char *value, size_t len) {
  if (memchr(value, 0, len) != NULL) return false;
  if (key_len == 4 && memcmp(key, "path", 4) == 0) return u->has_name = set_text(u->name, value, len);
  if (key_len == 8 && memcmp(key, "linkpath", 8) == 0) return u->has_link = set_text(u->link, value, len);
  if (key_len >= 10 && memcmp(key, "GNU.sparse", 10) == 0) u->sparse = true;
  if (key_len != 4 || memcmp(key, "size", 4) != 0) return true;
  u->size = 0;
  u->has_size = len > 0;
  for (size_t i = 0; i < len; i++) {
    if (value[i] < '0' || value[i] > '9' || u->size > INT64_MAX / 10 - 10) return false;
    u->size = u->size * 10 + (uint64_t)(value[i] - '0');
  }
  return u->has_size;
}

static bool pax(Unpack *u, const char *text, size_t len) {
  for (size_t at = 0; at < len;) {
    size_t record = 0, i = at;
    for (; i < len && text[i] >= '0' && text[i] <= '9' && record <= MAX_EXTENSION; i++)
      record = record * 10 + (size_t)(text[i] - '0');
    if (i == len || text[i] != ' ' || record > len - at || at + record <= i + 1 || text[at + record - 1] != '\n')
      return false;
    const char *key = text + i + 1, *end = text + at + record - 1;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (equals == NULL || !pax_record(u, key, (size_t)(equals - key), equals + 1, (size_t)(end - equals - 1)))
      return false;
    at += record;
  }
  return true;
}

static int extension(Unpack *u, char type, uint64_t size) {
  if (size > MAX_EXTENSION) return refuse(u, EFBIG, "the archive holds a header that is too large");
  char *text = malloc((size_t)size + 1);
  if (text == NULL) return fail(u, ENOMEM);
  bool sound = exactly(u, text, size) && skip(u, padding(size));
  if (sound && type == 'x') sound = pax(u, text, (size_t)size);
  if (sound && type == 'L') sound = u->has_name = set_text(u->name, text, (size_t)size);
  if (sound && type == 'K') sound = u->has_link = set_text(u->link, text, (size_t)size);
  free(text);
  return sound ? 0 : refuse(u, EINVAL, "the archive is damaged");
}

/* Returns the directory of the entry; archives list entries of one directory together. */
static int parent_of(Unpack *u, const char *path, const char **last) {
  const char *slash = strrchr(path, '/');
  size_t len = slash == NULL ? 0 : (size_t)(slash - path);
  *last = slash == NULL ? path : slash + 1;
  if (u->parent_fd >= 0 && strlen(u->parent) == len && memcmp(u->parent, path, len) == 0) return u->parent_fd;
  if (u->parent_fd >= 0) close(u->parent_fd);
  u->parent_fd = open_parent_beneath(u->base, path, true, last);
  if (u->parent_fd < 0) return u->parent_fd;
  memcpy(u->parent, path, len);
  u->parent[len] = 0;
  return u->parent_fd;
}

static void forget_parent(Unpack *u) {
  if (u->parent_fd >= 0) close(u->parent_fd);
  u->parent_fd = -1;
}

/* Removes a file, link or pipe of that name; a directory is an error. */
static int clear_place(int dir, const char *name) {
  struct stat st;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  if (S_ISDIR(st.st_mode)) return EISDIR;
  return unlinkat(dir, name, 0) == 0 ? 0 : errno;
}

static int put_file(Unpack *u, int dir, const char *name, mode_t mode, uint64_t size, uint64_t mtime) {
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), error = 0;
  if (fd < 0) return fail(u, errno);
  while (size > 0 && error == 0) {
    const uint8_t *data;
    size_t n = some(u, &data, size < BUFFER_BYTES ? (size_t)size : BUFFER_BYTES);
    if (n == 0) error = refuse(u, EINVAL, "the archive is cut off");
    size -= n;
    while (n > 0 && error == 0) {
      ssize_t written = write(fd, data, n);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) error = fail(u, written == 0 ? EIO : errno);
      else {
        data += written;
        n -= (size_t)written;
      }
    }
  }
  struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = (time_t)mtime}};
  if (error == 0 && fchmod(fd, mode) != 0) error = fail(u, errno);
  if (error == 0) (void)futimens(fd, times);
  if (close(fd) != 0 && error == 0) error = fail(u, errno);
  return error;
}

static int put_directory(Unpack *u, const char *path, mode_t mode) {
  const char *last;
  if (*path == 0) return 0;
  int dir = parent_of(u, path, &last);
  if (dir < 0) return fail(u, -dir);
  if (mkdirat(dir, last, mode | 0700) != 0 && errno != EEXIST) return fail(u, errno);
  int fd = open_beneath(u->base, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (fd < 0) return fail(u, -fd);
  (void)fchmod(fd, mode | 0700);
  close(fd);
  if ((mode | 0700) == mode || u->late_count >= MAX_LATE_MODES) return 0;
  LateMode *late = malloc(sizeof *late + strlen(path) + 1);
  if (late == NULL) return fail(u, ENOMEM);
  late->mode = mode;
  late->next = u->late;
  strcpy(late->path, path);
  u->late = late;
  u->late_count++;
  return 0;
}

static int put_hard_link(Unpack *u, int dir, const char *name) {
  char target[PATH_MAX];
  const char *last;
  struct stat st;
  if (!clean_name(u->link, target) || *target == 0) return refuse(u, EXDEV, "a link of the archive would leave its place");
  int from = open_parent_beneath(u->base, target, false, &last);
  if (from < 0) return fail(u, -from);
  int error = 0;
  if (fstatat(from, last, &st, AT_SYMLINK_NOFOLLOW) != 0) error = fail(u, errno);
  else if (!S_ISREG(st.st_mode)) error = refuse(u, EINVAL, "a hard link to something that is no file");
  else if (linkat(from, last, dir, name, 0) != 0) error = fail(u, errno);
  close(from);
  return error;
}

static int put_entry_of(Unpack *u, const TarBlock *block, char type, uint64_t size) {
  char path[PATH_MAX];
  const char *last;
  uint64_t mode, mtime;
  if (!tar_number(block->mode, sizeof block->mode, &mode) || !tar_number(block->mtime, sizeof block->mtime, &mtime))
    return refuse(u, EINVAL, "the archive is damaged");
  if (!clean_name(u->name, path)) return refuse(u, EXDEV, "the archive would leave its place");
  size_t len = strlen(u->name);
  bool old_directory = type == '0' && size == 0 && len > 0 && u->name[len - 1] == '/';
  if (type == '5' || old_directory) return put_directory(u, path, (mode_t)mode & 0777);
  if (*path == 0) return refuse(u, EINVAL, "it has no name");
  int dir = parent_of(u, path, &last);
  if (dir < 0) return fail(u, -dir);
  int error = clear_place(dir, last);
  if (error != 0) return fail(u, error);
  if (type == '1') return put_hard_link(u, dir, last);
  if (type == '2') {
    if (u->link[0] == 0) return refuse(u, EINVAL, "a link to nothing");
    if (strcmp(u->parent, path) == 0) forget_parent(u);
    return symlinkat(u->link, dir, last) == 0 ? 0 : fail(u, errno);
  }
  u->work->files++;
  return put_file(u, dir, last, (mode_t)mode & 0777, size, mtime);
}

/* Reads one header and its content. Returns 0, an errno, or -1 at the end. */
static int step(Unpack *u) {
  TarBlock block;
  static const TarBlock zero;
  uint64_t size, sum;
  /* The end of an archive is a block of zeros (POSIX pax): without it the archive was cut off. */
  if (!exactly(u, &block, TAR_BLOCK)) return refuse(u, EINVAL, "the archive is cut off");
  if (memcmp(&block, &zero, TAR_BLOCK) == 0) {
    bool open = u->has_name || u->has_link || u->has_size || u->sparse;
    return open ? refuse(u, EINVAL, "the archive is cut off") : -1;
  }
  if (!tar_number(block.checksum, sizeof block.checksum, &sum) || sum != tar_checksum(&block) ||
      !tar_number(block.size, sizeof block.size, &size))
    return refuse(u, EINVAL, "the archive is damaged");
  char type = block.type == 0 || block.type == '7' ? '0' : block.type;
  if (type == 'x' || type == 'L' || type == 'K') return extension(u, type, size);
  if (type == 'g') return skip(u, size + padding(size)) ? 0 : refuse(u, EINVAL, "the archive is cut off");
  if (u->has_size) size = u->size;
  if (!u->has_name) {
    bool prefixed = memcmp(block.magic, "ustar", 6) == 0 && block.prefix[0] != 0;
    snprintf(u->name, sizeof u->name, "%.*s%s%.*s", prefixed ? 155 : 0, block.prefix, prefixed ? "/" : "", 100, block.name);
  }
  if (!u->has_link) set_text(u->link, block.link, sizeof block.link);
  if ((type != '0' && type != '1' && type != '2' && type != '5') || u->sparse)
    return refuse(u, EINVAL, "the archive holds something other than files, directories and links");
  int error = put_entry_of(u, &block, type, size);
  if (error == 0 && !skip(u, type == '0' ? padding(size) : type == '1' ? 0 : size + padding(size)))
    error = refuse(u, EINVAL, "the archive is cut off");
  u->has_name = u->has_link = u->has_size = u->sparse = false;
  u->name[0] = u->link[0] = 0;
  return error;
}

static void set_late_modes(Unpack *u) {
  for (LateMode *late = u->late; late != NULL; late = late->next) {
    int fd = open_beneath(u->base, late->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (fd < 0) continue;
    (void)fchmod(fd, late->mode);
    close(fd);
  }
}

int unpack_tree(TreeWork *work, const char *path) {
  static Unpack u;
  char top[PATH_MAX];
  u.work = work;
  u.parent_fd = -1;
  if (snprintf(top, sizeof top, "%s/.", path) >= (int)sizeof top) return ENAMETOOLONG;
  int error = make_parents(work->base, top);
  if (error != 0) return error;
  u.base = openat(work->base, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (u.base < 0) return errno;
  work->opened();
  do error = step(&u);
  while (error == 0);
  forget_parent(&u);
  if (error > 0) return error;
  set_late_modes(&u);
  for (const uint8_t *rest; some(&u, &rest, BUFFER_BYTES) > 0;) continue;
  return 0;
}
