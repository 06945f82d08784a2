/* Packs a layer as one tar archive, always the same bytes for the same files: its hash identifies the content. Names are in
 * order, a directory comes after its content, owners are those inside, times are whole seconds; removals are marked as in the
 * layers of images (.wh.…). Programs in the sandbox chose every name and link: no link is followed. */
#define _GNU_SOURCE
#include "../rights/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 512
#define DEPTH_MAX 250 /* unpacking refuses more */
#define TOO_DEEP "a directory in it lies deeper than 250 levels"
#define ATTRIBUTES_MAX (1 << 19)
#define LINKS 8192

struct first_name {
  dev_t dev;
  ino_t ino;
  char *path;
  struct first_name *next;
};

static struct first_name *links[LINKS];
static char buffer[1 << 18];
static size_t filled;
static int output;
static long long left;
static char path[PATH_MAX];

static int flush(void) {
  for (size_t at = 0; at < filled;) {
    ssize_t wrote = write(output, buffer + at, filled - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return -1;
    at += (size_t)wrote;
  }
  filled = 0;
  return 0;
}

static int put(const void *data, size_t size) {
  const char *from = data;
  if ((left -= (long long)size) < 0) return work_refused(EFBIG, "it is larger than what may be packed");
  while (size > 0) {
    size_t part = sizeof buffer - filled < size ? sizeof buffer - filled : size;
    memcpy(buffer + filled, from, part);
    filled += part;
    from += part;
    size -= part;
    if (filled == sizeof buffer && flush() < 0) return -1;
  }
  return 0;
}

static int pad(long long size) {
  static const char zeros[BLOCK];
  size_t rest = (size_t)(size % BLOCK);
  return rest ? put(zeros, BLOCK - rest) : 0;
}

static int put_block(const char *name, char type, const struct stat *info, long long size, const char *target) {
  char block[BLOCK] = {0};
  unsigned sum = 0;
  bool ours = info && info->st_uid >= settings.storage && info->st_gid >= settings.storage;
  strncpy(block, name, 100);
  snprintf(block + 100, 8, "%07o", info ? info->st_mode & 07777 : 0);
  snprintf(block + 108, 8, "%07o", ours ? (info->st_uid - settings.storage) & 07777777 : 0);
  snprintf(block + 116, 8, "%07o", ours ? (info->st_gid - settings.storage) & 07777777 : 0);
  /* Sizes of 8 GiB and more are in an extended header. */
  snprintf(block + 124, 12, "%011llo", size > 077777777777ll ? 0ull : (unsigned long long)size);
  long long time = info && info->st_mtime > 0 ? info->st_mtime : 0;
  snprintf(block + 136, 12, "%011llo", time > 077777777777ll ? 0ull : (unsigned long long)time);
  block[156] = type;
  strncpy(block + 157, target, 100);
  memcpy(block + 257, "ustar\00000", 8);
  memset(block + 148, ' ', 8);
  for (int i = 0; i < BLOCK; i++) sum += (unsigned char)block[i];
  snprintf(block + 148, 8, "%06o", sum);
  return put(block, BLOCK);
}

struct extended {
  char *text;
  size_t length;
};

/* Adds "LENGTH KEY=VALUE\n", where the length counts itself. */
static int extend(struct extended *extended, const char *key, const void *value, size_t size) {
  size_t body = strlen(key) + size + 3, length = body + 1;
  char digits[24];
  while ((size_t)snprintf(digits, sizeof digits, "%zu", length) + body > length) length++;
  if (extended->length + length > ATTRIBUTES_MAX) return work_refused(E2BIG, "a file in it has too many attributes");
  char *more = realloc(extended->text, extended->length + length + 1);
  if (more == NULL) return -1;
  extended->text = more;
  char *at = more + extended->length + sprintf(more + extended->length, "%zu %s=", length, key);
  memcpy(at, value, size);
  at[size] = '\n';
  extended->length += length;
  return 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Adds attributes that a user may set; those of overlayfs itself become marks, or are left out. */
static int extend_attributes(struct extended *extended, int fd) {
  static char names[65536], value[65536];
  char *sorted[1024], key[300];
  int count = 0, failed = 0;
  ssize_t length = flistxattr(fd, names, sizeof names);
  for (char *name = names; length > 0 && name < names + length; name += strlen(name) + 1)
    if (strncmp(name, "user.", 5) == 0 && strncmp(name, "user.overlay.", 13) != 0 && count < 1024) sorted[count++] = name;
  qsort(sorted, (size_t)count, sizeof *sorted, by_name);
  for (int i = 0; i < count && !failed; i++) {
    ssize_t size = fgetxattr(fd, sorted[i], value, sizeof value);
    snprintf(key, sizeof key, "SCHILY.xattr.%s", sorted[i]);
    if (size >= 0) failed = extend(extended, key, value, (size_t)size);
  }
  return failed;
}

static int put_entry(const char *name, char type, const struct stat *info, long long size, const char *target, int fd) {
  struct extended extended = {NULL, 0};
  char digits[24];
  int failed = 0;
  if (strlen(name) > 100) failed = extend(&extended, "path", name, strlen(name));
  if (!failed && strlen(target) > 100) failed = extend(&extended, "linkpath", target, strlen(target));
  if (!failed && size > 077777777777ll)
    failed = extend(&extended, "size", digits, (size_t)snprintf(digits, sizeof digits, "%lld", size));
  if (!failed && fd >= 0) failed = extend_attributes(&extended, fd);
  if (!failed && extended.length > 0)
    failed = put_block("pax", 'x', NULL, (long long)extended.length, "") < 0 || put(extended.text, extended.length) < 0 ||
             pad((long long)extended.length) < 0;
  free(extended.text);
  return failed || put_block(name, type, info, size, target) < 0 ? -1 : 0;
}

/* Writes exactly `size` bytes. A layer does not change: a file that got shorter is an error. */
static int put_content(int fd, long long size) {
  static char part[1 << 18];
  for (long long at = 0; at < size;) {
    size_t want = size - at < (long long)sizeof part ? (size_t)(size - at) : sizeof part;
    ssize_t got = read(fd, part, want);
    if (got < 0) return -1;
    if (got == 0) return errno = EIO, -1;
    if (put(part, (size_t)got) < 0) return -1;
    at += got;
  }
  return pad(size);
}

/* Returns an earlier name of the same file, or NULL and remembers this name. */
static const char *earlier_name(const struct stat *info) {
  struct first_name **bucket = &links[(info->st_ino ^ info->st_dev) % LINKS];
  for (struct first_name *one = *bucket; one; one = one->next)
    if (one->ino == info->st_ino && one->dev == info->st_dev) return one->path;
  struct first_name *one = malloc(sizeof *one);
  if (one == NULL) return NULL;
  *one = (struct first_name){info->st_dev, info->st_ino, strdup(path), *bucket};
  *bucket = one;
  return NULL;
}

static bool is_opaque(int fd) {
  char value[8];
  const char *name = settings.usermap[0] ? "user.overlay.opaque" : "trusted.overlay.opaque";
  return fgetxattr(fd, name, value, sizeof value) == 1 && value[0] == 'y';
}

static int put_mark(size_t parent, const char *name) {
  static const struct stat nobody;
  char mark[PATH_MAX + 8];
  snprintf(mark, sizeof mark, "%.*s%s.wh.%s", (int)parent, path, parent ? "/" : "", name);
  struct stat info = nobody;
  info.st_uid = info.st_gid = settings.storage;
  return put_entry(mark, '0', &info, 0, "", -1);
}

static int pack_directory(int fd, size_t length, int depth, struct tally *tally);

static int pack_entry(int parent, size_t length, const char *name, int depth, struct tally *tally) {
  struct stat info;
  size_t size = strlen(name), inner = length + (length > 0) + size;
  if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  tally->files++;
  if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(0, 0)) return put_mark(length, name);
  /* The name would be read as a mark. */
  if (strncmp(name, ".wh.", 4) == 0) return work_refused(EBADMSG, "a name in it begins with \".wh.\"");
  if (inner >= sizeof path) return work_refused(ENAMETOOLONG, "a path in it is longer than 4095 bytes");
  sprintf(path + length, "%s%s", length ? "/" : "", name);
  const char *earlier = !S_ISDIR(info.st_mode) && info.st_nlink > 1 ? earlier_name(&info) : NULL;
  int failed = 0;
  if (earlier) failed = put_entry(path, '1', &info, 0, earlier, -1);
  else if (S_ISLNK(info.st_mode)) {
    char target[PATH_MAX];
    ssize_t got = readlinkat(parent, name, target, sizeof target - 1);
    if (got >= 0) target[got] = 0;
    failed = got < 0 || put_entry(path, '2', &info, 0, target, -1) < 0;
  } else if (S_ISFIFO(info.st_mode)) failed = put_entry(path, '6', &info, 0, "", -1);
  else if (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode)) {
    int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    failed = fd < 0;
    if (!failed && S_ISREG(info.st_mode)) {
      tally->bytes += info.st_size;
      failed = put_entry(path, '0', &info, info.st_size, "", fd) < 0 || put_content(fd, info.st_size) < 0;
    } else if (!failed) {
      if (is_opaque(fd)) failed = put_mark(inner, ".wh..opq");
      failed = failed || pack_directory(fd, inner, depth + 1, tally) < 0;
      path[inner] = 0;
      failed = failed || put_entry(path, '5', &info, 0, "", fd) < 0;
    }
    int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
  }
  path[length] = 0;
  return failed ? -1 : 0;
}

static int pack_directory(int fd, size_t length, int depth, struct tally *tally) {
  if (depth > DEPTH_MAX) return work_refused(ELOOP, TOO_DEEP);
  DIR *directory = fdopendir(dup(fd));
  if (directory == NULL) return -1;
  char **names = NULL;
  size_t count = 0, room = 0;
  int failed = 0;
  for (struct dirent *entry; !failed && (errno = 0, entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (count == room) {
      room = room ? room * 2 : 64;
      char **more = realloc(names, room * sizeof *names);
      if (more == NULL) failed = -1;
      else names = more;
    }
    if (!failed && (names[count] = strdup(entry->d_name)) != NULL) count++;
    else failed = -1;
  }
  closedir(directory);
  qsort(names, count, sizeof *names, by_name);
  for (size_t i = 0; i < count; i++) {
    if (!failed) failed = pack_entry(fd, length, names[i], depth, tally);
    free(names[i]);
  }
  int error = errno;
  free(names);
  errno = error;
  return failed;
}

/* Connects to a socket below the base on which Node waits for the bytes. */
static int call_back(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int base = open(settings.base, O_PATH | O_DIRECTORY | O_CLOEXEC);
  int fd = base < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int length = snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", base, name);
  if (fd < 0 || length >= (int)sizeof address.sun_path) return errno = ENAMETOOLONG, -1;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) return -1;
  close(base);
  return fd;
}

/* Runs in a process of its own. */
int pack_layer(const char *from, const char *to, long long most, struct tally *tally) {
  static const char end[2 * BLOCK];
  struct stat info;
  int top = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0 || fstat(top, &info) < 0 || (output = call_back(to)) < 0) return -1;
  if (confine_below(from, DUTY_PACK) < 0) return -1;
  left = most;
  if (pack_directory(top, 0, 0, tally) < 0 || put_entry("./", '5', &info, 0, "", top) < 0) return -1;
  if (put(end, sizeof end) < 0 || flush() < 0) return -1;
  return shutdown(output, SHUT_WR);
}

static void packed(void *context, bool ok, const struct tally *tally, const char *error) {
  struct request *request = context;
  if (ok) answer_ok(request, "\tfiles=%lld\tbytes=%lld", tally->files, tally->bytes);
  else answer_error(request, "pack", "%s", error);
  free(request);
}

static bool is_below_base(const char *name) {
  return name && name[0] && name[0] != '/' && strstr(name, "..") == NULL && strlen(name) <= 200;
}

void do_pack(const struct request *request, const struct fields *fields) {
  char source[PATH_MAX + 300];
  const char *layer = field(fields, "layer"), *to = field(fields, "to");
  struct request *copy = malloc(sizeof *copy);
  if (copy == NULL || !is_below_base(layer) || !is_below_base(to)) {
    free(copy);
    return answer_error(request, "invalid", "layer or to");
  }
  *copy = *request;
  snprintf(source, sizeof source, "%s/%s", settings.base, layer);
  struct job job = {.pack = source, .to = to, .most = number(fields, "most", INT64_MAX)};
  work_start(&job, packed, copy);
}
