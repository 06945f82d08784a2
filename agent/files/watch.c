/* Watches changes below a directory, by inotify. Changes that cannot be followed are reported as an overflow. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_DIRS 8192
#define MAX_ALL_DIRS 32768
#define MAX_DEPTH 128
#define CHANGES (IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

enum { CREATED = 1, MODIFIED, REMOVED, RENAMED, OVERFLOW };

typedef struct {
  int wd;
  char *path; /* from the top; "" is the top */
} Dir;

typedef struct {
  Channel ch;
  Io io;
  Place place;
  char *root;
  bool recursive, readable, directory, cut, ended;
  Dir *dirs; /* by wd, ascending: the kernel counts up */
  size_t len, cap;
  Fifo changes; /* sent when there is credit; bounded by MAX_LIST_FRAME */
  uint32_t temporary; /* cookie of our own temporary file that was moved to its place */
} Watch;

static size_t all_dirs;

static void put_change(Watch *w, uint8_t kind, const char *dir, const char *name) {
  uint8_t record[PATH_MAX + NAME_MAX + 16];
  char path[PATH_MAX + NAME_MAX + 2];
  snprintf(path, sizeof path, "%s%s%s", dir, *dir != 0 && *name != 0 ? "/" : "", name);
  Builder b = {.data = record, .cap = sizeof record};
  put_u8(&b, kind);
  put_str(&b, path);
  if (!b.bad) (void)fifo_push(&w->changes, record, b.len);
}

static Dir *dir_of(Watch *w, int wd) {
  size_t low = 0, high = w->len;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (w->dirs[middle].wd < wd) low = middle + 1;
    else high = middle;
  }
  return low < w->len && w->dirs[low].wd == wd ? &w->dirs[low] : NULL;
}

static void forget_dir(Watch *w, Dir *dir) {
  free(dir->path);
  memmove(dir, dir + 1, (size_t)(w->dirs + w->len - dir - 1) * sizeof *dir);
  w->len--;
  all_dirs--;
}

static void cannot_follow(Watch *w) {
  if (!w->cut) put_change(w, OVERFLOW, "", "");
  w->cut = true;
}

/* Returns false when the directory is already watched, is gone, or exceeds the limit. */
static bool add_dir(Watch *w, const char *full, const char *path) {
  if (w->len >= MAX_DIRS || all_dirs >= MAX_ALL_DIRS) {
    cannot_follow(w);
    return false;
  }
  uint32_t how = IN_EXCL_UNLINK | (*path != 0 ? IN_ONLYDIR | IN_DONT_FOLLOW : 0);
  int wd = inotify_add_watch(w->io.fd, full, CHANGES | how);
  if (wd < 0) {
    if (errno == ENOSPC || errno == ENOMEM) cannot_follow(w);
    return false;
  }
  Dir *known = dir_of(w, wd);
  char *copy = strdup(path);
  if (copy == NULL) return false;
  if (known != NULL) { /* moved, or already watched */
    bool same = strcmp(known->path, path) == 0;
    free(known->path);
    known->path = copy;
    return !same;
  }
  if (w->len == w->cap) {
    size_t cap = w->cap == 0 ? 16 : w->cap * 2;
    Dir *grown = realloc(w->dirs, cap * sizeof *grown);
    if (grown == NULL) {
      free(copy);
      cannot_follow(w);
      return false;
    }
    w->dirs = grown;
    w->cap = cap;
  }
  size_t at = w->len;
  while (at > 0 && w->dirs[at - 1].wd > wd) at--; /* inotify may use descriptors again */
  memmove(w->dirs + at + 1, w->dirs + at, (w->len - at) * sizeof *w->dirs);
  w->dirs[at] = (Dir){.wd = wd, .path = copy};
  w->len++;
  all_dirs++;
  return true;
}

/* Adds a directory and its subdirectories. `tell`: the directory is new, and events of its content may have been missed. */
static void add_tree(Watch *w, const char *path, bool tell, int depth) {
  char full[PATH_MAX];
  if (depth > MAX_DEPTH || snprintf(full, sizeof full, "%s%s%s", w->root, *path != 0 ? "/" : "", path) >= PATH_MAX) {
    cannot_follow(w);
    return;
  }
  add_dir(w, full, path);
  if (!w->recursive && !tell) return;
  DIR *dir = opendir(full);
  if (dir == NULL) return;
  for (struct dirent *e; (e = readdir(dir)) != NULL && !w->cut;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    bool inner = e->d_type == DT_DIR;
    if (e->d_type == DT_UNKNOWN) {
      struct stat st;
      inner = fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    }
    if (tell && w->changes.len < MAX_LIST_FRAME) put_change(w, CREATED, path, e->d_name);
    else if (tell) cannot_follow(w);
    if (!inner || !w->recursive) continue;
    char below[PATH_MAX];
    if (snprintf(below, sizeof below, "%s%s%s", path, *path != 0 ? "/" : "", e->d_name) < PATH_MAX)
      add_tree(w, below, tell, depth + 1);
  }
  closedir(dir);
}

static void forget_below(Watch *w, const char *dir, const char *name) {
  char path[PATH_MAX];
  size_t len = (size_t)snprintf(path, sizeof path, "%s%s%s", dir, *dir != 0 ? "/" : "", name);
  for (size_t i = w->len; i > 0; i--) {
    Dir *one = &w->dirs[i - 1];
    if (strncmp(one->path, path, len) != 0 || (one->path[len] != '/' && one->path[len] != 0)) continue;
    (void)inotify_rm_watch(w->io.fd, one->wd);
    forget_dir(w, one);
  }
}

static void handle(Watch *w, const struct inotify_event *event) {
  if ((event->mask & IN_Q_OVERFLOW) != 0) {
    put_change(w, OVERFLOW, "", "");
    if (w->recursive) add_tree(w, "", false, 0); /* directories may have appeared without an event */
    return;
  }
  Dir *dir = dir_of(w, event->wd);
  if (dir == NULL) return;
  bool top = dir->path[0] == 0;
  if ((event->mask & IN_IGNORED) != 0) {
    forget_dir(w, dir);
    if (top) w->ended = true;
    return;
  }
  if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
    if (top) put_change(w, REMOVED, "", "");
    return;
  }
  const char *name = event->len > 0 ? event->name : "";
  bool ours = strncmp(name, TEMPORARY_PREFIX, strlen(TEMPORARY_PREFIX)) == 0;
  if (ours) {
    if ((event->mask & IN_MOVED_FROM) != 0) w->temporary = event->cookie;
    return;
  }
  bool placed = (event->mask & IN_MOVED_TO) != 0 && event->cookie != 0 && event->cookie == w->temporary;
  uint8_t kind = placed                                            ? MODIFIED
                 : (event->mask & IN_CREATE) != 0                  ? CREATED
                 : (event->mask & IN_MOVED_TO) != 0                ? RENAMED
                 : (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0 ? REMOVED
                                                                   : MODIFIED;
  put_change(w, kind, dir->path, name);
  if ((event->mask & IN_ISDIR) == 0 || !w->recursive) return;
  if (kind == REMOVED) forget_below(w, dir->path, name);
  else if (kind == CREATED || kind == RENAMED) {
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s%s%s", dir->path, *dir->path != 0 ? "/" : "", name);
    if (len < (int)sizeof path) add_tree(w, path, true, 1);
  }
}

static void watch_gone(Channel *ch) {
  Watch *w = (Watch *)ch;
  io_close(&w->io);
  all_dirs -= w->len;
  for (size_t i = 0; i < w->len; i++) free(w->dirs[i].path);
  free(w->dirs);
  free(w->root);
  fifo_clear(&w->changes);
}

static void read_events(Watch *w) {
  _Alignas(struct inotify_event) char events[16384];
  fs_enter(&w->place.user.cred);
  while (w->readable && w->changes.len < MAX_LIST_FRAME / 2) {
    ssize_t n = read(w->io.fd, events, w->changes.len == 0 ? sizeof events : sizeof events / 4);
    if (n <= 0) w->readable = false;
    for (char *at = events; n > 0 && at < events + n;) {
      const struct inotify_event *event = (const struct inotify_event *)(void *)at;
      handle(w, event);
      at += sizeof *event + event->len;
    }
  }
  fs_leave();
}

/* Returns the size of the whole records that fit into `room`. */
static size_t whole_records(const Fifo *f, size_t room) {
  size_t at = 0;
  while (at < f->len) {
    Cursor c = {.at = f->data + f->head + at, .end = f->data + f->head + f->len};
    const uint8_t *start = c.at;
    (void)take_u8(&c);
    (void)take_str(&c);
    if (c.bad || at + (size_t)(c.at - start) > room) break;
    at += (size_t)(c.at - start);
  }
  return at;
}

static bool watch_pull(Channel *ch) {
  Watch *w = (Watch *)ch;
  size_t room;
  uint8_t *to = bulk_begin(ch, &room);
  if (to == NULL) return false; /* later events wait in the kernel, which reports an overflow */
  read_events(w);
  size_t len = whole_records(&w->changes, room < MAX_LIST_FRAME ? room : MAX_LIST_FRAME);
  if (len > 0) {
    memcpy(to, w->changes.data + w->changes.head, len);
    w->changes.head += len;
    w->changes.len -= len;
    if (w->changes.len == 0) fifo_clear(&w->changes);
    bulk_commit(ch, T_CHANGES, len);
    return true;
  }
  if (w->ended && w->changes.len == 0) {
    conn_send(ch->conn, T_RESULT, ch->id, NULL, 0);
    watch_gone(ch);
    channel_end(ch);
  }
  return false;
}

static void events_ready(Io *io, uint32_t events) {
  Watch *w = OWNER(Watch, io, io);
  (void)events;
  w->readable = true;
  channel_wake(&w->ch);
}

static const ChannelOps ops = {.pull = watch_pull, .gone = watch_gone};

static char *full_root(const Conn *c, const User *user, const char *path) {
  char *root = NULL;
  const char *base = default_dir(c, user);
  size_t size = strlen(base) + strlen(path) + 2;
  if (path[0] == '/') return strdup(path);
  root = malloc(size);
  if (root != NULL) snprintf(root, size, "%s/%s", base, path);
  return root;
}

void request_watch(Conn *c, uint32_t id, Cursor *request) {
  uint8_t flags = take_u8(request), recursive = take_u8(request);
  uint32_t window = take_u32(request);
  const char *path = take_str(request);
  Place place;
  if (!take_end(request)) {
    conn_fail(c);
    return;
  }
  if (!place_open(c, id, flags, path, &place)) return;
  struct stat st;
  int error = fstatat(place.base, path, &st, 0) == 0 ? 0 : errno;
  place_close(&place);
  int fd = error == 0 ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
  if (error == 0 && fd < 0) error = errno;
  Watch *w = error == 0 ? channel_open(c, id, sizeof *w, &ops, window) : NULL;
  if (w == NULL) {
    if (error != 0) send_errno(c, id, error);
    if (fd >= 0) close(fd);
    return;
  }
  w->io.fd = -1;
  w->place = place;
  w->directory = S_ISDIR(st.st_mode);
  w->recursive = recursive != 0 && w->directory;
  w->root = full_root(c, &place.user, path);
  if (w->root == NULL || !io_open(&w->io, fd, EPOLLIN, events_ready)) {
    close(fd);
    error = ENOMEM;
  } else {
    fs_enter(&w->place.user.cred);
    add_tree(w, "", false, 0);
    fs_leave();
    if (w->len == 0 && !w->cut) error = EACCES;
  }
  if (error != 0) {
    send_errno(c, id, error);
    watch_gone(&w->ch);
    channel_end(&w->ch);
    return;
  }
  conn_send(c, T_OPENED, id, NULL, 0);
  channel_wake(&w->ch);
}
