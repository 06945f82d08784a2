/* Unpacks a layer from an untrusted tar archive. The process that unpacks has the layer as its root directory: no name and no
 * link in the archive leads out of it. Owners are shifted into the stored range; entries with a meaning for overlayfs are made
 * only from the marks of an image layer (.wh.…), never taken from the archive. */
#define _GNU_SOURCE
#include "../rights/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 512
#define EXTENDED_MAX (1 << 20)
#define XATTRS_MAX 32
#define DEPTH_MAX 256
#define SIZE_MAX_TOLD (1LL << 50)

struct attribute {
  const char *name, *value;
  size_t size;
};
struct entry {
  char type;
  char path[PATH_MAX], link[PATH_MAX];
  long long size, mtime, uid, gid;
  mode_t mode;
  struct attribute attributes[XATTRS_MAX];
  int attribute_count;
};
struct archive {
  FILE *file;
  off_t size;
  struct unpack_bounds left;
  char *extended; /* of the current entry: its strings live here */
  struct tally *tally;
};

static bool bad(const char *why) {
  (void)why;
  errno = EBADMSG;
  return false;
}

/* Reads octal digits, or the base-256 form of large numbers. */
static bool read_number(const unsigned char *text, size_t size, long long *value) {
  long long number = 0;
  if (text[0] & 0x80) {
    number = text[0] & 0x3f;
    if (text[0] & 0x40) return false;
    for (size_t i = 1; i < size; i++) {
      if (number > (INT64_MAX >> 8)) return false;
      number = number << 8 | text[i];
    }
  } else {
    size_t i = 0;
    while (i < size && (text[i] == ' ' || text[i] == 0)) i++;
    for (; i < size && text[i] >= '0' && text[i] <= '7'; i++) {
      if (number > (INT64_MAX >> 3)) return false;
      number = number << 3 | (text[i] - '0');
    }
  }
  *value = number;
  return true;
}

static bool copy_text(char *to, size_t size, const char *from, size_t length) {
  length = strnlen(from, length);
  if (length >= size) return errno = ENAMETOOLONG, false;
  memcpy(to, from, length);
  to[length] = 0;
  return true;
}

/* Skips bytes by reading them: a seek beyond the end of a file would succeed. */
static bool skip(struct archive *archive, long long bytes) {
  off_t at = ftello(archive->file);
  if (at < 0) return false;
  if (bytes < 0 || bytes > archive->size - at) return bad("cut off");
  return fseeko(archive->file, bytes, SEEK_CUR) == 0;
}

static long long padded(long long size) { return (size + BLOCK - 1) / BLOCK * BLOCK; }

static bool read_extended(struct archive *archive, long long size, char **text) {
  if (size < 0 || size > EXTENDED_MAX) return bad("extended header");
  free(*text);
  *text = malloc((size_t)size + 1);
  if (*text == NULL || fread(*text, 1, (size_t)size, archive->file) != (size_t)size) return bad("cut off");
  (*text)[size] = 0;
  return skip(archive, padded(size) - size);
}

/* Reads a decimal number without any other character, as every other reader of archives does. */
static bool read_decimal(const char *text, long long *value) {
  char *end;
  if (text[0] < '0' || text[0] > '9') return bad("pax");
  *value = strtoll(text, &end, 10);
  return *end == 0 || bad("pax");
}

/* Reads records "LENGTH KEY=VALUE\n". */
static bool apply_pax(char *text, size_t size, struct entry *entry) {
  for (size_t at = 0; at < size;) {
    char *end;
    unsigned long length = strtoul(text + at, &end, 10);
    if (text[at] < '0' || text[at] > '9' || *end != ' ' || length > size - at || length < (size_t)(end + 1 - (text + at)) + 2) return bad("pax");
    char *record = text + at, *key = end + 1, *last = record + length - 1, *equals = memchr(key, '=', (size_t)(last - key));
    if (equals == NULL || *last != '\n') return bad("pax");
    *equals = *last = 0;
    const char *value = equals + 1;
    size_t value_size = (size_t)(last - value);
    if (strcmp(key, "path") == 0 && !copy_text(entry->path, sizeof entry->path, value, value_size)) return false;
    if (strcmp(key, "linkpath") == 0 && !copy_text(entry->link, sizeof entry->link, value, value_size)) return false;
    if (strcmp(key, "size") == 0 && !read_decimal(value, &entry->size)) return false;
    if (strcmp(key, "mtime") == 0) entry->mtime = atoll(value);
    if (strcmp(key, "uid") == 0) entry->uid = atoll(value);
    if (strcmp(key, "gid") == 0) entry->gid = atoll(value);
    if (strncmp(key, "GNU.sparse.", 11) == 0) return bad("sparse");
    /* Takes only attributes that a user may set: capabilities, labels and the marks of overlayfs are ignored. */
    bool plain = strncmp(key, "SCHILY.xattr.user.", 18) == 0 && strncmp(key + 13, "user.overlay.", 13) != 0;
    if (plain && entry->attribute_count < XATTRS_MAX)
      entry->attributes[entry->attribute_count++] = (struct attribute){key + 13, value, value_size};
    at += length;
  }
  return true;
}

static bool is_end(const unsigned char *block) {
  for (int i = 0; i < BLOCK; i++)
    if (block[i]) return false;
  return true;
}

static bool sum_is_right(const unsigned char *block) {
  long long told;
  long sum = 0;
  for (int i = 0; i < BLOCK; i++) sum += i >= 148 && i < 156 ? ' ' : block[i];
  return read_number(block + 148, 8, &told) && told == sum;
}

/* Returns 1: an entry; 0: the end; -1: the archive is broken. */
static int next_entry(struct archive *archive, struct entry *entry) {
  char *pax = NULL, *name = NULL, *link = NULL;
  size_t pax_size = 0;
  int result = -1;
  for (;;) {
    unsigned char block[BLOCK];
    long long size, mode, uid, gid, mtime;
    size_t got = fread(block, 1, BLOCK, archive->file);
    /* The end of an archive is a block of zeros (POSIX pax): without it the archive was cut off. */
    if (got == BLOCK && is_end(block)) {
      result = pax || name || link ? (errno = EBADMSG, -1) : 0;
      break;
    }
    if (got != BLOCK || !sum_is_right(block) || !read_number(block + 124, 12, &size) || !read_number(block + 100, 8, &mode) ||
        !read_number(block + 108, 8, &uid) || !read_number(block + 116, 8, &gid) || !read_number(block + 136, 12, &mtime) ||
        size > SIZE_MAX_TOLD) {
      errno = EBADMSG;
      break;
    }
    char type = (char)block[156];
    if (type == 'x') {
      pax_size = (size_t)size;
      if (!read_extended(archive, size, &pax)) break;
      continue;
    }
    if (type == 'g') {
      if (!skip(archive, padded(size))) break;
      continue;
    }
    if (type == 'L' || type == 'K') {
      if (!read_extended(archive, size, type == 'L' ? &name : &link)) break;
      continue;
    }
    *entry = (struct entry){.type = type, .size = size, .mtime = mtime, .uid = uid, .gid = gid, .mode = (mode_t)(mode & 07777)};
    char prefix[160] = "";
    bool posix = memcmp(block + 257, "ustar\0", 6) == 0;
    if (posix && block[345]) snprintf(prefix, sizeof prefix, "%.155s/", (const char *)block + 345);
    snprintf(entry->path, sizeof entry->path, "%s%.100s", prefix, (const char *)block);
    snprintf(entry->link, sizeof entry->link, "%.100s", (const char *)block + 157);
    if (name && !copy_text(entry->path, sizeof entry->path, name, strlen(name))) break;
    if (link && !copy_text(entry->link, sizeof entry->link, link, strlen(link))) break;
    if (pax && !apply_pax(pax, pax_size, entry)) break;
    if (entry->size < 0 || entry->size > SIZE_MAX_TOLD) {
      errno = EBADMSG;
      break;
    }
    result = 1;
    break;
  }
  int error = errno;
  free(archive->extended);
  archive->extended = pax; /* the attributes point into it */
  free(name);
  free(link);
  errno = error;
  return result;
}

/* Removes "/", "." and empty parts; ".." is refused, not resolved. */
static bool normalise(char *path) {
  char clean[PATH_MAX];
  size_t length = 0;
  int depth = 0;
  for (char *part = path, *end; *part; part = end) {
    while (*part == '/') part++;
    end = part + strcspn(part, "/");
    size_t size = (size_t)(end - part);
    if (size == 0 || (size == 1 && part[0] == '.')) continue;
    if (size == 2 && part[0] == '.' && part[1] == '.') return bad("way up");
    if (++depth > DEPTH_MAX || size > NAME_MAX) return errno = ENAMETOOLONG, false;
    if (length) clean[length++] = '/';
    memcpy(clean + length, part, size);
    length += size;
  }
  clean[length] = 0;
  memcpy(path, clean, length + 1);
  return true;
}

static uint32_t shifted(long long id) {
  bool fits = id >= 0 && id < (settings.storage > 1 ? RANGE_SIZE : RANGE_SIZE - 1);
  if (settings.storage == 0) return 0;
  return settings.storage + (fits ? (uint32_t)id : 65534u % (RANGE_SIZE - 1));
}

static bool counted(struct archive *archive) {
  if (++archive->tally->files <= archive->left.entries) return true;
  errno = EFBIG;
  return false;
}

/* Opens the directory of an entry, made where it is missing, and returns the last part of its name. A link on the way is followed
 * below the root, as a program inside would; a dangling link is replaced. Directories made here count as if the archive had named
 * them. */
static int open_parent(struct archive *archive, char *path, char **name) {
  int at = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  char *rest = path, *part = path;
  while (at >= 0 && (part = strsep(&rest, "/")) != NULL && rest != NULL) {
    int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && errno != ENOENT) next = openat(at, part, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (next < 0) {
      unlinkat(at, part, 0);
      if (counted(archive) && mkdirat(at, part, 0755) == 0 &&
          fchownat(at, part, settings.storage, settings.storage, AT_SYMLINK_NOFOLLOW) == 0)
        next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    int error = errno;
    close(at);
    errno = error;
    at = next;
  }
  *name = part;
  return at;
}

static int settle_entry(int directory, const char *name, const struct entry *entry) {
  struct timespec times[2] = {{.tv_sec = entry->mtime}, {.tv_sec = entry->mtime}};
  if (fchownat(directory, name, shifted(entry->uid), shifted(entry->gid), AT_SYMLINK_NOFOLLOW) < 0) return -1;
  /* Set after the owner: chown clears the set-uid bit. */
  if (entry->type != '2' && fchmodat(directory, name, entry->mode, 0) < 0) return -1;
  utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
  return 0;
}

static int write_file(struct archive *archive, int directory, const char *name, const struct entry *entry) {
  static char buffer[1 << 18];
  int fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  long long left = entry->size;
  int failed = 0;
  while (!failed && left > 0) {
    size_t part = left < (long long)sizeof buffer ? (size_t)left : sizeof buffer;
    if (fread(buffer, 1, part, archive->file) != part) failed = (errno = EBADMSG, -1);
    else if (write(fd, buffer, part) != (ssize_t)part) failed = -1;
    left -= (long long)part;
  }
  for (int i = 0; !failed && i < entry->attribute_count; i++)
    if (fsetxattr(fd, entry->attributes[i].name, entry->attributes[i].value, entry->attributes[i].size, 0) < 0 &&
        errno != ENOTSUP && errno != EPERM)
      failed = -1;
  int error = errno;
  close(fd);
  errno = error;
  return failed || !skip(archive, padded(entry->size) - entry->size) ? -1 : 0;
}

static int mark_opaque(int directory) {
  int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  int failed = fsetxattr(fd, settings.usermap[0] ? "user.overlay.opaque" : "trusted.overlay.opaque", "y", 1, 0);
  close(fd);
  return failed;
}

/* Applies a mark: ".wh.NAME" removes NAME of the layers below, ".wh..wh..opq" all that they have in this directory. */
static int apply_mark(int directory, const char *name) {
  if (strcmp(name, ".wh..wh..opq") == 0) return mark_opaque(directory);
  if (strncmp(name, ".wh..wh.", 8) == 0) return 0;
  name += 4;
  if (name[0] == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return errno = EBADMSG, -1;
  unlinkat(directory, name, 0);
  if (mknodat(directory, name, S_IFCHR, makedev(0, 0)) < 0) return errno == EEXIST ? 0 : -1;
  return 0;
}

static int remove_old(int directory, const char *name) {
  if (unlinkat(directory, name, 0) == 0 || errno == ENOENT) return 0;
  return unlinkat(directory, name, AT_REMOVEDIR);
}

static int place(struct archive *archive, struct entry *entry, bool marks) {
  char path[PATH_MAX], target[PATH_MAX], *name, *target_name;
  bool carries = entry->type == '0' || entry->type == 0 || entry->type == '7';
  if (!normalise(entry->path)) return -1;
  if (entry->path[0] == 0) return entry->type == '5' ? settle_entry(AT_FDCWD, ".", entry) : 0;
  strcpy(path, entry->path);
  int directory = open_parent(archive, path, &name), failed = 0;
  if (directory < 0) return -1;
  if (marks && strncmp(name, ".wh.", 4) == 0) failed = apply_mark(directory, name);
  else switch (entry->type) {
    case '5':
      if (mkdirat(directory, name, 0700) < 0) {
        struct stat info;
        if (errno != EEXIST || fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) < 0) failed = -1;
        else if (!S_ISDIR(info.st_mode)) failed = unlinkat(directory, name, 0) < 0 || mkdirat(directory, name, 0700) < 0;
      }
      failed = failed || settle_entry(directory, name, entry) < 0;
      break;
    case '2':
      failed = remove_old(directory, name) < 0 || symlinkat(entry->link, directory, name) < 0 ||
               settle_entry(directory, name, entry) < 0;
      break;
    case '1': {
      if (!normalise(entry->link)) { failed = -1; break; }
      strcpy(target, entry->link);
      int from = open_parent(archive, target, &target_name);
      /* A link to a file that is not there yet, or lies in a layer below, cannot be made: an error, not a guess. */
      failed = from < 0 || remove_old(directory, name) < 0 || linkat(from, target_name, directory, name, 0) < 0;
      int error = errno;
      if (from >= 0) close(from);
      errno = error;
      break;
    }
    case '6':
      failed = remove_old(directory, name) < 0 || mkfifoat(directory, name, 0600) < 0 || settle_entry(directory, name, entry) < 0;
      break;
    case '3':
    case '4':
      break; /* devices come from the runtime alone */
    case 'S':
      failed = !bad("sparse"); /* holes have an encoding of their own: refused rather than left out */
      break;
    default:
      if (!carries) break;
      failed = remove_old(directory, name) < 0 || write_file(archive, directory, name, entry) < 0 ||
               settle_entry(directory, name, entry) < 0;
      carries = false; /* its content was read */
  }
  int error = errno;
  close(directory);
  errno = error;
  if (failed) return -1;
  bool read_already = !carries && (entry->type == '0' || entry->type == 0 || entry->type == '7');
  return read_already || skip(archive, padded(entry->size)) ? 0 : -1;
}

/* Runs in a process of its own. Makes `to`, which must not exist. */
int unpack_layer(const char *from, const char *to, const struct unpack_bounds *bounds, struct tally *tally) {
  struct archive archive = {.file = fopen(from, "re"), .left = *bounds, .tally = tally};
  static struct entry entry;
  struct stat info;
  if (archive.file == NULL || fstat(fileno(archive.file), &info) < 0) return -1;
  archive.size = info.st_size;
  if (mkdir(to, 0755) < 0 || chown(to, settings.storage, settings.storage) < 0) return -1;
  if (confine_below(to, bounds->marks ? DUTY_UNPACK_MARKS : DUTY_UNPACK) < 0) return -1;
  umask(0);
  int got;
  while ((got = next_entry(&archive, &entry)) > 0) {
    if (!counted(&archive)) return -1;
    if (entry.type == '0' || entry.type == 0 || entry.type == '7') tally->bytes += entry.size;
    if (tally->bytes > archive.left.bytes) return errno = EFBIG, -1;
    if (place(&archive, &entry, bounds->marks) < 0) return -1;
  }
  return got;
}
