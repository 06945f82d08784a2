/*
 * Copies the content and attributes of files. Of many files the next one is created while the content of the last is copied: on a
 * file system that shares blocks both take about as long, and the rest takes next to no time.
 */
#define _GNU_SOURCE
#include "../spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define WAITING_MAX 64
/* Waking the copying thread takes as long as a file does: it sleeps until this many files wait. */
#define WORTH_WAKING 16
/* Extended attributes of a file take 128 KiB of stack, which is all that some libraries give a thread. */
#define COPIER_STACK (1 << 20)

void close_kept(int fd) {
  int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
}

int copy_xattrs(int from, int to) {
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

int settle(int fd, const struct stat *info) {
  struct timespec times[2] = {info->st_atim, info->st_mtim};
  if (fchown(fd, info->st_uid, info->st_gid) < 0) return -1;
  if (fchmod(fd, info->st_mode & 07777) < 0) return -1;
  return futimens(fd, times);
}

/* Copies a file; `to` must not exist. */
int file_copy(const char *from, const char *to) {
  struct stat info;
  int source = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  int target = source < 0 ? -1 : open(to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int failed = target < 0 || fstat(source, &info) < 0 || copy_data(source, target, info.st_size) < 0;
  close_kept(source);
  close_kept(target);
  int error = errno;
  if (failed && target >= 0) unlink(to);
  errno = error;
  return failed ? -1 : 0;
}

/* Sets the file-system ids so that a file is created with its owner: a later chown takes longer than all other attributes.
 * Returns false where that is impossible; then the file is chowned. */
static bool born_owned;
static bool act_as(const struct stat *info) {
  static uid_t user;
  static gid_t group;
  if (!born_owned) return false;
  if (user == info->st_uid && group == info->st_gid) return true;
  setfsuid(info->st_uid);
  setfsgid(info->st_gid);
  user = (uid_t)setfsuid((uid_t)-1);
  group = (gid_t)setfsgid((gid_t)-1);
  return user == info->st_uid && group == info->st_gid;
}

struct pending {
  int source, target;
  bool owned;
  struct stat info;
};

/* Copies content and attributes, and closes both files. */
static int finish(const struct pending *file) {
  const struct stat *info = &file->info;
  const struct timespec times[2] = {info->st_atim, info->st_mtim};
  int failed = copy_data(file->source, file->target, info->st_size);
  if (!failed) failed = file->owned && !(info->st_mode & 07000) ? futimens(file->target, times) : settle(file->target, info);
  if (!failed) failed = copy_xattrs(file->source, file->target);
  close_kept(file->source);
  close_kept(file->target);
  return failed;
}

static struct {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct pending files[WAITING_MAX];
  unsigned put, taken;
  bool running, ending;
  int error; /* of the first that failed */
} copier = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *copier_main(void *unused) {
  (void)unused;
  pthread_mutex_lock(&copier.lock);
  for (;;) {
    while (copier.taken == copier.put && !copier.ending) pthread_cond_wait(&copier.changed, &copier.lock);
    if (copier.taken == copier.put) break;
    struct pending file = copier.files[copier.taken % WAITING_MAX];
    pthread_mutex_unlock(&copier.lock);
    int error = finish(&file) < 0 ? errno : 0;
    pthread_mutex_lock(&copier.lock);
    if (error && !copier.error) copier.error = error;
    copier.taken++;
    /* A producer that waits for room is woken when half of the queue is free. */
    if (copier.put - copier.taken == WAITING_MAX / 2) pthread_cond_signal(&copier.changed);
  }
  pthread_mutex_unlock(&copier.lock);
  return NULL;
}

/* Begins copying in a process that does only this until copier_end. */
void copier_begin(void) {
  umask(0);
  born_owned = prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) == 0;
  copier.put = copier.taken = 0;
  copier.ending = false;
  copier.error = 0;
  pthread_attr_t large;
  copier.running = sysconf(_SC_NPROCESSORS_ONLN) > 1 && pthread_attr_init(&large) == 0 &&
                   pthread_attr_setstacksize(&large, COPIER_STACK) == 0 &&
                   pthread_create(&copier.thread, &large, copier_main, NULL) == 0;
}

static int hand_over(const struct pending *file) {
  pthread_mutex_lock(&copier.lock);
  if (copier.put - copier.taken == WAITING_MAX)
    while (copier.put - copier.taken > WAITING_MAX / 2) pthread_cond_wait(&copier.changed, &copier.lock);
  copier.files[copier.put++ % WAITING_MAX] = *file;
  if (copier.put - copier.taken == WORTH_WAKING) pthread_cond_signal(&copier.changed);
  int error = copier.error;
  pthread_mutex_unlock(&copier.lock);
  return error ? (errno = error, -1) : 0;
}

/* Waits for the last file. */
int copier_end(void) {
  if (!copier.running) return 0;
  pthread_mutex_lock(&copier.lock);
  copier.ending = true;
  pthread_cond_signal(&copier.changed);
  pthread_mutex_unlock(&copier.lock);
  pthread_join(copier.thread, NULL);
  copier.running = false;
  return copier.error ? (errno = copier.error, -1) : 0;
}

/* Copies a file between directories; its name must be free in `to`. */
int copy_regular(int from, int to, const char *name, const struct stat *info) {
  struct pending file = {.owned = act_as(info), .info = *info};
  file.source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (file.source < 0) return -1;
  mode_t mode = file.owned ? info->st_mode & 0777 : 0600;
  file.target = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (file.target < 0) return close_kept(file.source), -1;
  return copier.running ? hand_over(&file) : finish(&file);
}
