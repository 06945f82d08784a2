#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent.h"

/* Limit for files that report no size: some of /proc never end. */
#define MAX_UNKNOWN (64ull * 1024 * 1024)

typedef struct {
  Channel ch;
  int fd;
  uint64_t offset, left;
  bool cut; /* `left` is our bound, not the reader's */
} Reading;

static void reading_gone(Channel *ch) { close(((Reading *)ch)->fd); }

static bool reading_end(Reading *r, int error) {
  Channel *ch = &r->ch;
  if (error == EFBIG) send_error(ch->conn, ch->id, E_REFUSED, error, "it has no size, and no end after 64 MiB");
  else if (error != 0) send_errno(ch->conn, ch->id, error);
  else conn_send(ch->conn, T_RESULT, ch->id, NULL, 0);
  reading_gone(ch);
  channel_end(ch);
  return false;
}

static bool reading_pull(Channel *ch) {
  Reading *r = (Reading *)ch;
  size_t room;
  uint8_t *to = bulk_begin(ch, &room);
  if (to == NULL) return false;
  if (r->left < room) room = (size_t)r->left;
  uint8_t more;
  if (room == 0 && r->cut) {
    if (pread(r->fd, &more, 1, (off_t)r->offset) > 0) return reading_end(r, EFBIG);
  }
  ssize_t n = room == 0 ? 0 : pread(r->fd, to, room, (off_t)r->offset);
  /* Some files of /proc and /sys can be read in sequence but not at an offset. */
  if (n < 0 && errno == ESPIPE) n = read(r->fd, to, room);
  if (n < 0 && errno == EINTR) return true;
  if (n > 0) {
    bulk_commit(ch, T_DATA, (size_t)n);
    r->offset += (uint64_t)n;
    r->left -= (uint64_t)n;
    return true;
  }
  return reading_end(r, n < 0 ? errno : 0);
}

static const ChannelOps ops = {.pull = reading_pull, .gone = reading_gone};

void request_read(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request);
  uint64_t offset = take_u64(request), length = take_u64(request);
  uint32_t window = take_u32(request);
  const char *path = take_str(request);
  Place place;
  if (!take_end(request) || offset > INT64_MAX) {
    conn_fail(c);
    return;
  }
  if (!place_open(c, id, flags, path, &place)) return;
  struct stat st;
  int fd = openat(place.base, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = errno;
  place_close(&place);
  if (fd >= 0) {
    error = fstat(fd, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : S_ISREG(st.st_mode) ? 0 : EINVAL;
    if (error != 0) close(fd);
  }
  if (fd < 0 || error != 0) {
    if (error == EINVAL) send_error(c, id, E_REFUSED, error, "it is not a regular file");
    else send_errno(c, id, error);
    return;
  }
  Reading *r = channel_open(c, id, sizeof *r, &ops, window);
  if (r == NULL) {
    close(fd);
    return;
  }
  uint64_t size = (uint64_t)st.st_size, rest = size > offset ? size - offset : 0;
  r->fd = fd;
  r->offset = offset;
  /* A file of size 0 may lie in /proc: it is read until its end. */
  r->left = size > 0 && rest < length ? rest : length;
  r->cut = size == 0 && length > MAX_UNKNOWN;
  if (r->cut) r->left = MAX_UNKNOWN;
  uint8_t payload[8];
  Builder b = {.data = payload, .cap = sizeof payload};
  put_u64(&b, size);
  conn_send(c, T_OPENED, id, payload, b.len);
  channel_wake(&r->ch);
}
