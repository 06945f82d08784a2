/* Copying, removing and measuring the files of a sandbox. Its owner chose every name and every link in there: nothing
 * is followed, everything is opened below the directory at hand. */
#define _GNU_SOURCE
#include "spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEPTH_MAX 900
#define REMOVE_DEPTH 64

struct link_seen {
  dev_t dev;
  ino_t ino;
  char *path;
  struct link_seen *next;
};
#define BUCKETS 4096
static struct link_seen *seen[BUCKETS];

static bool is_dot(const char *name) {
  return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static int copy_xattrs(int from, int to) {
  char names[65536], value[65536];
  ssize_t length = flistxattr(from, names, sizeof names);
  if (length <= 0) return length < 0 && errno != ENOTSUP ? -1 : 0;
  for (char *name = names; name < names + length; name += strlen(name) + 1) {
    ssize_t size = fgetxattr(from, name, value, sizeof value);
    if (size >= 0 && fsetxattr(to, name, value, (size_t)size, 0) < 0 && errno != EPERM && errno != ENOTSUP) return -1;
  }
  return 0;
}

static int copy_range(int from, int to, off_t at, off_t end) {
  static char buffer[1 << 20];
  if (lseek(to, at, SEEK_SET) < 0) return -1;
  while (at < end) {
    off_t begin = at;
    ssize_t done = copy_file_range(from, &at, to, NULL, (size_t)(end - at), 0);
    if (done == 0) return 0;
    if (done > 0) continue;
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOSYS) return -1;
    ssize_t got = pread(from, buffer, sizeof buffer, begin);
    if (got <= 0) return (int)got;
    for (ssize_t wrote = 0, part; wrote < got; wrote += part)
      if ((part = write(to, buffer + wrote, (size_t)(got - wrote))) < 0) return -1;
    at = begin + got;
  }
  return 0;
}

/* Shares the blocks where the file system can; otherwise copies the data and leaves the holes. */
static int copy_data(int from, int to, off_t size) {
  if (size == 0 || ioctl(to, FICLONE, from) == 0) return 0;
  if (ftruncate(to, size) < 0) return -1;
  for (off_t at = 0; at < size;) {
    off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? 0 : -1;
    off_t hole = lseek(from, data, SEEK_HOLE);
    if (hole < 0) hole = size;
    if (copy_range(from, to, data, hole) < 0) return -1;
    at = hole;
  }
  return 0;
}

static int settle(int fd, const struct stat *info) {
  struct timespec times[2] = {info->st_atim, info->st_mtim};
  if (fchown(fd, info->st_uid, info->st_gid) < 0) return -1;
  if (fchmod(fd, info->st_mode & 07777) < 0) return -1;
  return futimens(fd, times);
}

static struct link_seen **bucket_of(const struct stat *info) {
  return &seen[(info->st_ino ^ info->st_dev) % BUCKETS];
}

/* A further name of a file that was copied already. 1: linked; 0: it is new and remembered. */
static int copy_link(const struct stat *info, const char *path, int root, int to, const char *name) {
  if (info->st_nlink < 2) return 0;
  for (struct link_seen *one = *bucket_of(info); one; one = one->next)
    if (one->dev == info->st_dev && one->ino == info->st_ino)
      return linkat(root, one->path, to, name, 0) < 0 ? -1 : 1;
  struct link_seen *one = malloc(sizeof *one);
  if (one == NULL) return -1;
  *one = (struct link_seen){info->st_dev, info->st_ino, strdup(path), *bucket_of(info)};
  *bucket_of(info) = one;
  return 0;
}

static int copy_special(int from, int to, const char *name, const struct stat *info) {
  struct timespec times[2] = {info->st_atim, info->st_mtim};
  if (S_ISLNK(info->st_mode)) {
    char target[PATH_MAX];
    ssize_t length = readlinkat(from, name, target, sizeof target - 1);
    if (length < 0) return -1;
    target[length] = 0;
    if (symlinkat(target, to, name) < 0) return -1;
  } else {
    /* A device 0:0 is how overlayfs says "removed"; no other device was made in there, and none is carried on. */
    bool device = S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode);
    if (device && (S_ISBLK(info->st_mode) || info->st_rdev != makedev(0, 0))) return 0;
    if (mknodat(to, name, info->st_mode, device ? info->st_rdev : 0) < 0) return -1;
    if (!device && fchmodat(to, name, info->st_mode & 07777, 0) < 0) return -1;
  }
  if (fchownat(to, name, info->st_uid, info->st_gid, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_directory(int root, int from, int to, const char *path, int depth, struct tally *tally);

static int copy_entry(int root, int from, int to, const char *name, const char *path, int depth, struct tally *tally) {
  struct stat info;
  if (fstatat(from, name, &info, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  tally->files++;
  if (!S_ISDIR(info.st_mode)) {
    int linked = copy_link(&info, path, root, to, name);
    if (linked != 0) return linked < 0 ? -1 : 0;
  }
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return copy_special(from, to, name, &info);
  int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (source < 0) return -1;
  int target = -1, failed = 0;
  if (S_ISREG(info.st_mode)) {
    target = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    failed = target < 0 || copy_data(source, target, info.st_size) < 0;
    tally->bytes += (long long)info.st_blocks * 512;
  } else {
    failed = mkdirat(to, name, 0700) < 0;
    if (!failed) target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    failed = target < 0 || copy_directory(root, source, target, path, depth + 1, tally) < 0;
  }
  failed = failed || settle(target, &info) < 0 || copy_xattrs(source, target) < 0;
  if (!failed && S_ISDIR(info.st_mode)) futimens(target, (struct timespec[2]){info.st_atim, info.st_mtim});
  int error = errno;
  close(source);
  if (target >= 0) close(target);
  errno = error;
  return failed ? -1 : 0;
}

static int copy_directory(int root, int from, int to, const char *path, int depth, struct tally *tally) {
  if (depth > DEPTH_MAX) return errno = ELOOP, -1;
  DIR *directory = fdopendir(dup(from));
  if (directory == NULL) return -1;
  int failed = 0;
  for (struct dirent *entry; !failed && (errno = 0, entry = readdir(directory)) != NULL;) {
    if (is_dot(entry->d_name)) continue;
    char *inner = NULL;
    if (asprintf(&inner, "%s%s%s", path, path[0] ? "/" : "", entry->d_name) < 0) failed = -1;
    else failed = copy_entry(root, from, to, entry->d_name, inner, depth, tally);
    free(inner);
  }
  int error = errno;
  closedir(directory);
  errno = error;
  return failed;
}

/* `to` must not exist. */
int file_copy(const char *from, const char *to) {
  struct stat info;
  int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  int target = source < 0 ? -1 : open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int failed = target < 0 || fstat(source, &info) < 0 || copy_data(source, target, info.st_size) < 0;
  int error = errno;
  if (source >= 0) close(source);
  if (target >= 0) close(target);
  if (failed && target >= 0) unlink(to);
  errno = error;
  return failed ? -1 : 0;
}

/* `to` must not exist. Owners, modes, times, extended attributes, hard links and holes are kept. */
int tree_copy(const char *from, const char *to, struct tally *tally) {
  struct stat info;
  int source = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0 || fstat(source, &info) < 0 || mkdir(to, 0700) < 0) return -1;
  int target = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (target < 0 || copy_directory(target, source, target, "", 0, tally) < 0) return -1;
  return settle(target, &info) < 0 || copy_xattrs(source, target) < 0 ? -1 : 0;
}

static bool is_opaque(int fd) {
  char value[2];
  return fgetxattr(fd, "trusted.overlay.opaque", value, sizeof value) > 0 ||
         fgetxattr(fd, "user.overlay.opaque", value, sizeof value) > 0;
}

static int remove_below(int top, int parent, int depth, unsigned *serial);

static int remove_at(int parent, const char *name) {
  unsigned serial = 0;
  if (unlinkat(parent, name, 0) == 0 || unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  int top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0) return -1;
  for (int round = 0; round < 4096 && unlinkat(parent, name, AT_REMOVEDIR) < 0; round++) remove_below(top, dup(top), 0, &serial);
  close(top);
  return 0;
}

static int apply_directory(int root, int from, int to, const char *path, int depth, struct tally *tally) {
  if (depth > DEPTH_MAX) return errno = ELOOP, -1;
  DIR *directory = fdopendir(dup(from));
  if (directory == NULL) return -1;
  int failed = 0;
  for (struct dirent *entry; !failed && (errno = 0, entry = readdir(directory)) != NULL;) {
    const char *name = entry->d_name;
    struct stat above;
    char *inner = NULL;
    if (is_dot(name)) continue;
    if (fstatat(from, name, &above, AT_SYMLINK_NOFOLLOW) < 0 ||
        asprintf(&inner, "%s%s%s", path, path[0] ? "/" : "", name) < 0) {
      failed = -1;
      break;
    }
    int source = S_ISDIR(above.st_mode) ? openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    int target = source >= 0 && !is_opaque(source) ? openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (target >= 0) {
      failed = apply_directory(root, source, target, inner, depth + 1, tally);
      failed = failed || settle(target, &above) < 0 || copy_xattrs(source, target) < 0;
    } else failed = remove_at(to, name) < 0 || copy_entry(root, from, to, name, inner, depth, tally) < 0;
    int error = errno;
    if (source >= 0) close(source);
    if (target >= 0) close(target);
    free(inner);
    errno = error;
  }
  int error = errno;
  closedir(directory);
  errno = error;
  return failed ? -1 : 0;
}

/* Lays one layer on another as overlayfs shows them, with its marks of what was removed. `to` exists. */
int tree_apply(const char *from, const char *to, struct tally *tally) {
  struct stat info;
  int source = open(from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (source < 0) return -1;
  int target = open(to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int failed = target < 0 || fstat(source, &info) < 0 || apply_directory(target, source, target, "", 0, tally) < 0 ||
               settle(target, &info) < 0;
  int error = errno;
  close(source);
  if (target >= 0) close(target);
  errno = error;
  return failed ? -1 : 0;
}

static int remove_below(int top, int parent, int depth, unsigned *serial) {
  DIR *directory = fdopendir(parent);
  if (directory == NULL) return close(parent), -1;
  int failed = 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (is_dot(entry->d_name)) continue;
    if (entry->d_type != DT_DIR && unlinkat(parent, entry->d_name, 0) == 0) continue;
    if (unlinkat(parent, entry->d_name, AT_REMOVEDIR) == 0) continue;
    if (depth >= REMOVE_DEPTH) {
      /* Too deep to hold a descriptor for every level: it is moved up and met again there. */
      char name[32];
      snprintf(name, sizeof name, ".deep-%u", (*serial)++);
      failed |= renameat(parent, entry->d_name, top, name);
      continue;
    }
    int inner = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0 && errno == EACCES && fchmodat(parent, entry->d_name, 0700, 0) == 0)
      inner = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) {
      failed = -1;
      continue;
    }
    failed |= remove_below(top, inner, depth + 1, serial);
    unlinkat(parent, entry->d_name, AT_REMOVEDIR);
  }
  closedir(directory);
  return failed;
}

int tree_remove(const char *path) {
  unsigned serial = 0;
  if (unlink(path) == 0 || errno == ENOENT) return 0;
  for (int round = 0; round < 4096; round++) {
    if (rmdir(path) == 0 || errno == ENOENT) return 0;
    int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0) return -1;
    remove_below(top, dup(top), 0, &serial);
    close(top);
  }
  return -1;
}

static bool exceeds_below(int fd, long long files, long long bytes, struct tally *tally, int depth) {
  DIR *directory = fdopendir(fd);
  bool over = directory == NULL || depth > DEPTH_MAX;
  for (struct dirent *entry; !over && (entry = readdir(directory)) != NULL;) {
    struct stat info;
    if (is_dot(entry->d_name) || fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0) continue;
    tally->files++;
    tally->bytes += (long long)info.st_blocks * 512;
    over = tally->files > files || tally->bytes > bytes;
    if (over || !S_ISDIR(info.st_mode)) continue;
    int inner = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    over = inner >= 0 && exceeds_below(inner, files, bytes, tally, depth + 1);
  }
  if (directory) closedir(directory);
  else close(fd);
  return over;
}

/* Looks no further once it is known to be more than that. */
bool tree_exceeds(const char *path, long long files, long long bytes, struct tally *tally) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  return fd >= 0 && exceeds_below(fd, files, bytes, tally, 0);
}

static int own_below(int parent, uint32_t owner, int depth) {
  DIR *directory = fdopendir(dup(parent));
  if (directory == NULL || depth > 64) return -1;
  int failed = 0;
  for (struct dirent *entry; !failed && (entry = readdir(directory)) != NULL;) {
    struct stat info;
    if (is_dot(entry->d_name)) continue;
    failed = fstatat(parent, entry->d_name, &info, AT_SYMLINK_NOFOLLOW);
    failed = failed || fchownat(parent, entry->d_name, owner, owner, AT_SYMLINK_NOFOLLOW);
    if (failed || !S_ISDIR(info.st_mode)) continue;
    int inner = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    failed = inner < 0 || own_below(inner, owner, depth + 1);
    if (inner >= 0) close(inner);
  }
  closedir(directory);
  return failed ? -1 : 0;
}

/* Gives a tree that we wrote ourselves to the one who is root inside, or to another of its users. */
int tree_own(const char *path, uint32_t owner) {
  int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0) return -1;
  int failed = fchown(top, owner, owner) < 0 || own_below(top, owner, 0) < 0;
  close(top);
  return failed ? -1 : 0;
}
