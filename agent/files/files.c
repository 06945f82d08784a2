/* Operations on single paths, done as the user whose files they are,
 * and what file-read, file-write, watch and the files of trees/ share of them: make_parents and rename_keeping also run in
 * the helper process of tree-job.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../agent.h"

#define RENAME_KEEP 1 /* RENAME_NOREPLACE */
#define MAX_ENTRY (2 * PATH_MAX + 64)

int open_base(const Conn *c, const User *user, const char *path) {
  if (path[0] == '/') return AT_FDCWD;
  return open(default_dir(c, user), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool place_open(Conn *c, uint32_t id, uint8_t flags, const char *path, Place *place) {
  int error = user_resolve(c, NULL, &place->user);
  if (error != 0) {
    user_refuse(c, id, NULL, error);
    return false;
  }
  if ((flags & FILES_AS_ROOT) != 0) {
    if (!agent.privileged) {
      send_error(c, id, E_UNSUPPORTED, EPERM, "the agent is not root here");
      return false;
    }
    char home[sizeof place->user.home];
    snprintf(home, sizeof home, "%s", place->user.home);
    (void)user_resolve(c, "0", &place->user);
    snprintf(place->user.home, sizeof place->user.home, "%s", home);
  }
  fs_enter(&place->user.cred);
  place->base = *path == 0 ? -1 : open_base(c, &place->user, path);
  if (place->base == -1) {
    error = *path == 0 ? ENOENT : errno;
    fs_leave();
    send_errno(c, id, error);
    return false;
  }
  return true;
}

void place_close(Place *place) {
  fs_leave();
  if (place->base >= 0) close(place->base);
  place->base = AT_FDCWD;
}

/* Adds mode with type, size, time of change, name, and link target. Returns false, with errno, when the entry does not exist. */
bool put_entry(Builder *b, int dir, const char *name, const char *shown) {
  struct stat st;
  char target[PATH_MAX] = "";
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (S_ISLNK(st.st_mode)) {
    ssize_t n = readlinkat(dir, name, target, sizeof target - 1);
    if (n < 0) return false;
    target[n] = 0;
  }
  put_u32(b, st.st_mode);
  put_u64(b, (uint64_t)st.st_size);
  put_u64(b, (uint64_t)((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000));
  put_str(b, shown);
  put_str(b, target);
  return true;
}

static void answer(Conn *c, uint32_t id, int error) {
  if (error == 0) conn_send(c, T_RESULT, id, NULL, 0);
  else send_errno(c, id, error);
}

void request_stat(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request);
  const char *path = take_str(request);
  Place place;
  if (!take_end(request)) conn_fail(c);
  else if (place_open(c, id, flags, path, &place)) {
    uint8_t payload[MAX_ENTRY];
    Builder b = {.data = payload, .cap = sizeof payload};
    int error = confine_look(place.base, path);
    if (error == 0 && !put_entry(&b, place.base, path, "")) error = errno;
    place_close(&place);
    if (error == 0) conn_send(c, T_RESULT, id, payload, b.len);
    else send_errno(c, id, error);
  }
}

/* Makes all directories before the last part, as mkdir -p. `path` is cut and restored in place, so it is a copy. */
int make_parents(int base, const char *path) {
  char part[PATH_MAX];
  struct stat st;
  if (strlen(path) >= sizeof part) return ENAMETOOLONG;
  strcpy(part, path);
  char *end = strrchr(part, '/');
  while (end != NULL && end > part && end[-1] == '/') end--;
  if (end == NULL || end == part) return 0;
  *end = 0;
  if (fstatat(base, part, &st, 0) == 0) return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
  for (char *at = part + 1;; at++) {
    char kept = *at;
    if (kept != '/' && kept != 0) continue;
    *at = 0;
    if (at[-1] != '/' && mkdirat(base, part, 0755) != 0 && errno != EEXIST) {
      int error = errno;
      /* mkdir also fails for an existing directory whose parent is not writable. */
      if (fstatat(base, part, &st, 0) != 0 || !S_ISDIR(st.st_mode)) return error;
    }
    if (kept == 0) break;
    *at = kept;
  }
  if (fstatat(base, part, &st, 0) != 0) return errno;
  return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

/* Trims trailing slashes: "a/b///" names the same as "a/b", and then the link itself, not its target. */
static bool trimmed(const char *path, char *to) {
  size_t len = strlen(path);
  if (len >= PATH_MAX) return false;
  while (len > 1 && path[len - 1] == '/') len--;
  memcpy(to, path, len);
  to[len] = 0;
  return true;
}

void request_mkdir(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request), parents = take_u8(request);
  uint32_t mode = take_u32(request);
  const char *path = take_str(request);
  char plain[PATH_MAX];
  Place place;
  if (!take_end(request)) conn_fail(c);
  else if (!trimmed(path, plain)) send_errno(c, id, ENAMETOOLONG);
  else if (place_open(c, id, flags, path, &place)) {
    struct stat st;
    int error = parents ? make_parents(place.base, plain) : 0;
    if (error == 0 && mkdirat(place.base, plain, mode & 07777) != 0) {
      error = errno;
      if (error == EEXIST && parents && fstatat(place.base, plain, &st, 0) == 0 && S_ISDIR(st.st_mode)) error = 0;
    }
    place_close(&place);
    answer(c, id, error);
  }
}

int rename_keeping(int from_base, const char *from, int to_base, const char *to) {
  struct stat st;
#ifdef SYS_renameat2
  if (syscall(SYS_renameat2, from_base, from, to_base, to, RENAME_KEEP) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
#endif
  /* Without RENAME_NOREPLACE the check and the rename are two steps. */
  if (fstatat(to_base, to, &st, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  return renameat(from_base, from, to_base, to) == 0 ? 0 : errno;
}

void request_move(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request), overwrite = take_u8(request);
  const char *from = take_str(request), *to = take_str(request);
  char source[PATH_MAX], target[PATH_MAX];
  struct stat st;
  Place place;
  if (!take_end(request)) conn_fail(c);
  else if (!trimmed(from, source) || !trimmed(to, target)) send_errno(c, id, ENAMETOOLONG);
  else if (place_open(c, id, flags, from, &place)) {
    int to_base = open_base(c, &place.user, to), error = 0;
    if (to_base == -1 || fstatat(place.base, source, &st, AT_SYMLINK_NOFOLLOW) != 0) error = errno;
    if (error == 0) error = make_parents(to_base, target);
    if (error == 0 && overwrite) error = renameat(place.base, source, to_base, target) == 0 ? 0 : errno;
    else if (error == 0) error = rename_keeping(place.base, source, to_base, target);
    if (to_base >= 0) close(to_base);
    place_close(&place);
    /* Rename cannot cross file systems, nor move a directory of a lower layer of an overlay. */
    TreeRequest copy = {.what = TREE_MOVE, .flags = flags, .path = source, .to = target, .overwrite = overwrite != 0};
    if (error == EXDEV) tree_job(c, id, &copy);
    else answer(c, id, error);
  }
}

void request_remove(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request), recursive = take_u8(request);
  const char *path = take_str(request);
  char plain[PATH_MAX];
  Place place;
  if (!take_end(request)) conn_fail(c);
  else if (!trimmed(path, plain)) send_errno(c, id, ENAMETOOLONG);
  else if (place_open(c, id, flags, path, &place)) {
    struct stat st;
    int error = 0;
    bool directory = false;
    if (fstatat(place.base, plain, &st, AT_SYMLINK_NOFOLLOW) != 0) error = errno;
    else {
      directory = S_ISDIR(st.st_mode);
      if (unlinkat(place.base, plain, directory ? AT_REMOVEDIR : 0) != 0) error = errno;
    }
    place_close(&place);
    if (error == ENOENT || error == ENOTDIR) error = 0;
    TreeRequest tree = {.what = TREE_REMOVE, .flags = flags, .path = plain};
    if (error != 0 && directory && recursive && error != EBUSY) tree_job(c, id, &tree);
    else answer(c, id, error);
  }
}

typedef struct {
  Channel ch;
  Place place;
  DIR *dir;
  uint32_t left;
  uint8_t held[MAX_ENTRY]; /* an entry for which there was no room */
  size_t held_len;
} Listing;

static void listing_gone(Channel *ch) { closedir(((Listing *)ch)->dir); }

static void listing_end(Listing *list, bool truncated) {
  uint8_t cut = truncated;
  conn_send(list->ch.conn, T_RESULT, list->ch.id, &cut, 1);
  listing_gone(&list->ch);
  channel_end(&list->ch);
}

/* Puts the next entry into `held`; returns false at the end. */
static bool next_entry(Listing *list) {
  for (struct dirent *e; (e = readdir(list->dir)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    Builder b = {.data = list->held, .cap = sizeof list->held};
    if (!put_entry(&b, dirfd(list->dir), e->d_name, e->d_name) || b.bad) continue; /* entry is gone */
    list->held_len = b.len;
    return true;
  }
  return false;
}

static bool listing_pull(Channel *ch) {
  Listing *list = (Listing *)ch;
  size_t room, used = 0;
  uint8_t *to = bulk_begin(ch, &room);
  if (to == NULL) return false;
  if (room > MAX_LIST_FRAME) room = MAX_LIST_FRAME;
  bool more = true;
  fs_enter(&list->place.user.cred);
  while ((list->held_len > 0 || (more = next_entry(list))) && list->left > 0) {
    if (list->held_len > room - used) break;
    memcpy(to + used, list->held, list->held_len);
    used += list->held_len;
    list->held_len = 0;
    list->left--;
  }
  fs_leave();
  if (used > 0) bulk_commit(ch, T_ENTRIES, used);
  if (more && list->left > 0) return used > 0;
  listing_end(list, more);
  return false;
}

static const ChannelOps listing_ops = {.pull = listing_pull, .gone = listing_gone};

void request_list(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request);
  uint32_t limit = take_u32(request), window = take_u32(request);
  const char *path = take_str(request);
  Place place;
  if (!take_end(request)) conn_fail(c);
  else if (place_open(c, id, flags, path, &place)) {
    int fd = openat(place.base, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK), error = errno;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    place_close(&place);
    if (dir == NULL) {
      send_errno(c, id, fd < 0 ? error : ENOMEM);
      if (fd >= 0) close(fd);
      return;
    }
    Listing *list = channel_open(c, id, sizeof *list, &listing_ops, window);
    if (list == NULL) {
      closedir(dir);
      return;
    }
    list->dir = dir;
    list->place = place;
    list->left = limit;
    channel_wake(&list->ch);
  }
}
