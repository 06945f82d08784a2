/* Writes a file beside its place and moves it there when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

#define WRITE_EXCLUSIVE 2
#define WRITE_SYNC 4
#define WRITE_TO_MEMORY 8
#define TMPFS 0x01021994
#define NO_MODE UINT32_MAX

typedef struct {
  Channel ch;
  Cred cred;
  int fd, dir;
  uint8_t flags;
  mode_t mode;
  char beside[48], name[NAME_MAX + 1];
} Writing;

static void writing_gone(Channel *ch) {
  Writing *w = (Writing *)ch;
  fs_enter(&w->cred);
  if (w->beside[0] != 0) (void)unlinkat(w->dir, w->beside, 0);
  fs_leave();
  if (w->fd >= 0) close(w->fd);
  close(w->dir);
}

static void writing_fail(Writing *w, int error) {
  send_errno(w->ch.conn, w->ch.id, error);
  writing_gone(&w->ch);
  channel_end(&w->ch);
}

static void writing_data(Channel *ch, const uint8_t *data, size_t len) {
  Writing *w = (Writing *)ch;
  for (size_t done = 0; done < len;) {
    ssize_t n = write(w->fd, data + done, len - done);
    if (n > 0) done += (size_t)n;
    else if (n == 0 || errno != EINTR) {
      writing_fail(w, n == 0 ? EIO : errno);
      return;
    }
  }
  channel_consumed(ch, len);
}

static int put_in_place(Writing *w) {
  if ((w->flags & WRITE_EXCLUSIVE) == 0) return renameat(w->dir, w->beside, w->dir, w->name) == 0 ? 0 : errno;
  /* linkat refuses an existing target on every file system that has links. */
  if (linkat(w->dir, w->beside, w->dir, w->name, 0) == 0) return unlinkat(w->dir, w->beside, 0) == 0 ? 0 : errno;
  if (errno == EEXIST) return errno;
#ifdef SYS_renameat2
  return syscall(SYS_renameat2, w->dir, w->beside, w->dir, w->name, 1) == 0 ? 0 : errno;
#else
  return errno;
#endif
}

static void writing_eof(Channel *ch) {
  Writing *w = (Writing *)ch;
  uint8_t payload[2 * PATH_MAX];
  Builder b = {.data = payload, .cap = sizeof payload};
  int error = fchmod(w->fd, w->mode) == 0 ? 0 : errno;
  if (error == 0 && (w->flags & WRITE_SYNC) != 0 && fsync(w->fd) != 0) error = errno;
  if (close(w->fd) != 0 && error == 0) error = errno;
  w->fd = -1;
  fs_enter(&w->cred);
  if (error == 0) error = put_in_place(w);
  if (error == 0) {
    w->beside[0] = 0;
    if (!put_entry(&b, w->dir, w->name, w->name)) error = errno;
  }
  fs_leave();
  if (error != 0) {
    writing_fail(w, error);
    return;
  }
  conn_send(ch->conn, T_RESULT, ch->id, payload, b.len);
  writing_gone(ch);
  channel_end(ch);
}

static const ChannelOps ops = {.data = writing_data, .eof = writing_eof, .gone = writing_gone};

/* Finds the place to write: a link stands for the file that it leads to, if that file exists. */
static void follow_link(int base, const char *path, char *real) {
  char proc[48];
  struct stat st;
  if (fstatat(base, path, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISLNK(st.st_mode)) return;
  int fd = openat(base, path, O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(proc, real, PATH_MAX - 1);
  if (n > 0 && real[0] == '/') real[n] = 0;
  else real[0] = 0;
  struct stat there, opened;
  if (real[0] != 0 && (fstat(fd, &opened) != 0 || lstat(real, &there) != 0 || there.st_ino != opened.st_ino ||
                       there.st_dev != opened.st_dev))
    real[0] = 0;
  close(fd);
}

/* Returns true for a pipe, a socket or a device: these are neither replaced nor opened. */
static bool is_special(mode_t mode) { return !S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode); }

/* Opens the directory and classifies the entry of that name. Returns 0 or errno. */
static int open_dir_of(int base, const char *path, Writing *w) {
  const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
  char dir[PATH_MAX];
  size_t len = slash == NULL ? 0 : (size_t)(slash - path);
  if (*name == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return EISDIR;
  if (strlen(name) > NAME_MAX || len >= sizeof dir) return ENAMETOOLONG;
  strcpy(w->name, name);
  int error = make_parents(base, path);
  if (error != 0) return error;
  memcpy(dir, path, len);
  dir[len] = 0;
  w->dir = openat(base, slash == NULL ? "." : len == 0 ? "/" : dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  return w->dir < 0 ? errno : 0;
}

/* Refuses WRITE_TO_MEMORY outside of tmpfs, wherever the path of the directory leads by now. */
static int require_memory(const Writing *w) {
  struct statfs info;
  if ((w->flags & WRITE_TO_MEMORY) == 0) return 0;
  if (fstatfs(w->dir, &info) != 0) return errno;
  return (unsigned long)info.f_type == TMPFS ? 0 : EPERM;
}

static int open_beside(Writing *w, uint32_t mode) {
  static unsigned counter;
  struct stat st;
  bool exists = fstatat(w->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && S_ISDIR(st.st_mode)) return EISDIR;
  if (exists && (w->flags & WRITE_EXCLUSIVE) != 0) return EEXIST;
  if (exists && is_special(st.st_mode)) return EINVAL;
  w->mode = mode != NO_MODE ? mode & 07777 : exists && S_ISREG(st.st_mode) ? st.st_mode & 0777 : 0644;
  for (int tries = 0; tries < 16; tries++) {
    snprintf(w->beside, sizeof w->beside, "%s%s-%x", TEMPORARY_PREFIX, agent.run_id, counter++);
    w->fd = openat(w->dir, w->beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (w->fd >= 0) return 0;
    if (errno != EEXIST) break;
  }
  w->beside[0] = 0;
  return errno;
}

void request_write(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request);
  uint32_t mode = take_u32(request);
  const char *path = take_str(request);
  char real[PATH_MAX] = "";
  Place place;
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  if (!place_open(c, id, flags & FILES_AS_ROOT, path, &place)) return;
  Writing *w = channel_open(c, id, sizeof *w, &ops, 0);
  if (w == NULL) {
    place_close(&place);
    return;
  }
  w->fd = w->dir = -1;
  w->flags = flags;
  w->cred = place.user.cred;
  if ((flags & WRITE_EXCLUSIVE) == 0) follow_link(place.base, path, real);
  int error = open_dir_of(place.base, real[0] != 0 ? real : path, w);
  if (error == 0) error = require_memory(w);
  if (error == 0) error = open_beside(w, mode);
  place_close(&place);
  if (error == 0) return;
  if (error == EINVAL) send_error(c, id, E_REFUSED, error, "it is not a regular file");
  else send_errno(c, id, error);
  if (w->dir >= 0) close(w->dir);
  channel_end(&w->ch);
}
