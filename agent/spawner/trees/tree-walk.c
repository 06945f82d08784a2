/* Copies and counts trees of any depth. A program in the sandbox can nest as deep as there is room, so neither the stack nor the
 * number of descriptors follows the depth: only the levels next to the current one are open. Levels above are opened again by
 * "..", and must have the same device and inode. Programs in the sandbox chose every name and link: no link is followed, every
 * file is opened below the current directory. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPEN_LEVELS 32
#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

enum { FROM, TO, SIDES };

/* A directory between the top and the current one; or a directory already left that is the way to a file with further names. */
struct level {
  struct level *above;
  size_t holders; /* the walk, levels below it, and files whose first name is in it */
  int fd[SIDES]; /* -1: closed for now, or there is none */
  dev_t dev[SIDES];
  ino_t ino[SIDES];
  struct stat info;
  bool merges;     /* it is laid on an existing directory */
  char **inner;    /* subdirectories that are not entered yet */
  size_t inner_count, inner_room;
  char name[];
};
struct link_seen {
  dev_t dev;
  ino_t ino;
  struct level *level;
  struct link_seen *next;
  char name[];
};
#define BUCKETS 4096
struct walk {
  struct level **levels;
  size_t depth, room;
  int top; /* top of the copy */
  bool counts;
  long long most_files, most_bytes;
  struct link_seen **seen;
  struct tally *tally;
};

static bool is_dot(const char *name) {
  return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

/* Opens a directory of the copy that may be closed by now: from the top, in parts as long as a path may be. */
static int open_made(const struct walk *walk, const struct level *level) {
  size_t depth = 0;
  for (const struct level *one = level; one->above; one = one->above) depth++;
  const struct level **way = malloc((depth + 1) * sizeof *way);
  int fd = way == NULL ? -1 : fcntl(walk->top, F_DUPFD_CLOEXEC, 0);
  for (size_t i = depth; way && i > 0; level = level->above) way[--i] = level;
  char part[PATH_MAX] = "";
  size_t length = 0;
  for (size_t i = 0; fd >= 0 && i < depth; i++) {
    length += (size_t)snprintf(part + length, sizeof part - length, "%s%s", length ? "/" : "", way[i]->name);
    if (i + 1 < depth && length + NAME_MAX + 2 < sizeof part) continue;
    int next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close_kept(fd);
    fd = next;
    length = 0;
  }
  free(way);
  return fd;
}

/* Links a further name of a file that was copied already. Returns 1: linked; 0: it is new and remembered. */
static int copy_link(struct walk *walk, struct level *here, const char *name, const struct stat *info) {
  if (info->st_nlink < 2) return 0;
  struct link_seen **bucket = &walk->seen[(info->st_ino ^ info->st_dev) % BUCKETS];
  for (struct link_seen *one = *bucket; one; one = one->next) {
    if (one->dev != info->st_dev || one->ino != info->st_ino) continue;
    int holder = one->level == here ? here->fd[TO] : open_made(walk, one->level);
    int failed = holder < 0 || linkat(holder, one->name, here->fd[TO], name, 0) < 0;
    if (one->level != here) close_kept(holder);
    return failed ? -1 : 1;
  }
  struct link_seen *one = malloc(sizeof *one + strlen(name) + 1);
  if (one == NULL) return -1;
  *one = (struct link_seen){info->st_dev, info->st_ino, here, *bucket};
  strcpy(one->name, name);
  here->holders++;
  *bucket = one;
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
    /* Device 0:0 is how overlayfs marks a removal; other devices cannot be made inside and are not copied. */
    bool device = S_ISCHR(info->st_mode) || S_ISBLK(info->st_mode);
    if (device && (S_ISBLK(info->st_mode) || info->st_rdev != makedev(0, 0))) return 0;
    if (mknodat(to, name, info->st_mode, device ? info->st_rdev : 0) < 0) return -1;
    if (!device && fchmodat(to, name, info->st_mode & 07777, 0) < 0) return -1;
  }
  if (fchownat(to, name, info->st_uid, info->st_gid, AT_SYMLINK_NOFOLLOW) < 0) return -1;
  return utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

/* Copies an entry that is not a directory. */
static int copy_entry(struct walk *walk, struct level *here, const char *name, const struct stat *info) {
  const int *fd = here->fd;
  if (here->merges && tree_remove_at(fd[TO], name) < 0) return -1;
  int linked = copy_link(walk, here, name, info);
  if (linked != 0) return linked < 0 ? -1 : 0;
  if (!S_ISREG(info->st_mode)) return copy_special(fd[FROM], fd[TO], name, info);
  walk->tally->bytes += (long long)info->st_blocks * 512;
  return copy_regular(fd[FROM], fd[TO], name, info);
}

static int remember_inner(struct level *here, const char *name) {
  if (here->inner_count == here->inner_room) {
    size_t room = here->inner_room ? here->inner_room * 2 : 8;
    char **more = realloc(here->inner, room * sizeof *more);
    if (more == NULL) return -1;
    here->inner = more;
    here->inner_room = room;
  }
  if ((here->inner[here->inner_count] = strdup(name)) == NULL) return -1;
  here->inner_count++;
  return 0;
}

/* Takes one entry; returns 1 when the limits of the count are exceeded. */
static int take_entry(struct walk *walk, struct level *here, const char *name) {
  struct stat info;
  struct tally *tally = walk->tally;
  if (fstatat(here->fd[FROM], name, &info, AT_SYMLINK_NOFOLLOW) < 0) return walk->counts ? 0 : -1;
  tally->files++;
  /* A file with several names is one file: each name counts its part. */
  if (walk->counts) tally->bytes += (long long)info.st_blocks * 512 / (S_ISDIR(info.st_mode) || info.st_nlink == 0 ? 1 : (long long)info.st_nlink);
  if (walk->counts && (tally->files > walk->most_files || tally->bytes > walk->most_bytes)) return 1;
  if (S_ISDIR(info.st_mode)) return remember_inner(here, name);
  return walk->counts ? 0 : copy_entry(walk, here, name, &info);
}

/* Takes all entries of a directory but its subdirectories, which come later: one stream is open at a time. */
static int take_entries(struct walk *walk, struct level *here) {
  int fd = fcntl(here->fd[FROM], F_DUPFD_CLOEXEC, 0);
  DIR *directory = fd < 0 ? NULL : fdopendir(fd);
  if (directory == NULL) return close_kept(fd), -1;
  int result = 0;
  for (struct dirent *entry; result == 0 && (errno = 0, entry = readdir(directory)) != NULL;)
    if (!is_dot(entry->d_name)) result = take_entry(walk, here, entry->d_name);
  if (result == 0 && errno != 0) result = -1;
  int error = errno;
  closedir(directory);
  errno = error;
  return result;
}

static void close_level(struct level *level) {
  for (int side = 0; side < SIDES; side++) {
    close_kept(level->fd[side]);
    level->fd[side] = -1;
  }
}

/* Enters a level and takes over the descriptors. */
static struct level *go_down(struct walk *walk, const char *name, int from, int to) {
  struct stat info;
  struct level *level = calloc(1, sizeof *level + strlen(name) + 1);
  if (level && walk->depth == walk->room) {
    size_t room = walk->room ? walk->room * 2 : 64;
    struct level **more = realloc(walk->levels, room * sizeof *more);
    if (more) walk->levels = more, walk->room = room;
    else free(level), level = NULL;
  }
  if (level == NULL) return close_kept(from), close_kept(to), NULL;
  strcpy(level->name, name);
  level->holders = 1;
  level->above = walk->depth ? walk->levels[walk->depth - 1] : NULL;
  if (level->above) level->above->holders++;
  level->fd[FROM] = from;
  level->fd[TO] = to;
  walk->levels[walk->depth++] = level;
  if (walk->depth > OPEN_LEVELS) close_level(walk->levels[walk->depth - 1 - OPEN_LEVELS]);
  for (int side = TO; side >= FROM; side--) {
    if (level->fd[side] < 0) continue;
    if (fstat(level->fd[side], &info) < 0) return NULL;
    level->dev[side] = info.st_dev;
    level->ino[side] = info.st_ino;
  }
  level->info = info;
  return level;
}

static bool is_opaque(int fd) {
  char value[2];
  return fgetxattr(fd, "trusted.overlay.opaque", value, sizeof value) > 0 ||
         fgetxattr(fd, "user.overlay.opaque", value, sizeof value) > 0;
}

static int enter(struct walk *walk, const struct level *here, const char *name) {
  int from = openat(here->fd[FROM], name, DIRECTORY), to = -1;
  /* A directory that cannot be opened is not counted. */
  if (from < 0) return walk->counts ? 0 : -1;
  bool merges = here->merges && !is_opaque(from) && (to = openat(here->fd[TO], name, DIRECTORY)) >= 0;
  if (!walk->counts && !merges) {
    bool room = !here->merges || tree_remove_at(here->fd[TO], name) == 0;
    if (room && mkdirat(here->fd[TO], name, 0700) == 0) to = openat(here->fd[TO], name, DIRECTORY);
    if (to < 0) return close_kept(from), -1;
  }
  struct level *level = go_down(walk, name, from, to);
  if (level == NULL) return -1;
  level->merges = merges;
  return take_entries(walk, level);
}

/* Opens again a level that was closed on the way down. A directory that was moved meanwhile is an error, not another path. */
static int find_again(const struct level *level, struct level *above, int side) {
  struct stat info;
  if (level->fd[side] < 0 || above->fd[side] >= 0) return 0;
  above->fd[side] = openat(level->fd[side], "..", DIRECTORY);
  if (above->fd[side] < 0 || fstat(above->fd[side], &info) < 0) return -1;
  return info.st_dev == above->dev[side] && info.st_ino == above->ino[side] ? 0 : (errno = ESTALE, -1);
}

/* Sets the attributes of a copied directory: after its content, which changes its times. */
static int finish(const struct level *level) {
  if (level->fd[TO] < 0) return 0;
  if (settle(level->fd[TO], &level->info) < 0) return -1;
  /* The top of a layer does not replace the attributes of the directory that it is laid on. */
  if (level->merges && level->above == NULL) return 0;
  if (copy_xattrs(level->fd[FROM], level->fd[TO]) < 0) return -1;
  return futimens(level->fd[TO], (struct timespec[2]){level->info.st_atim, level->info.st_mtim});
}

static void let_go(struct level *level) {
  for (struct level *above; level && --level->holders == 0; level = above) {
    above = level->above;
    close_level(level);
    while (level->inner_count > 0) free(level->inner[--level->inner_count]);
    free(level->inner);
    free(level);
  }
}

static int leave(struct walk *walk, struct level *level) {
  int failed = finish(level);
  for (int side = 0; !failed && level->above && side < SIDES; side++) failed = find_again(level, level->above, side);
  close_level(level);
  walk->depth--;
  let_go(level);
  return failed;
}

/* Walks the tree and takes over the descriptors. Returns 0: all of it; 1: it exceeds the limits. */
static int walk_tree(struct walk *walk, int from, int to, bool merges) {
  struct level *top = go_down(walk, "", from, to);
  walk->top = to < 0 ? -1 : fcntl(to, F_DUPFD_CLOEXEC, 0);
  walk->seen = walk->counts ? NULL : calloc(BUCKETS, sizeof *walk->seen);
  int result = top == NULL || (!walk->counts && (walk->top < 0 || walk->seen == NULL)) ? -1 : 0;
  if (result == 0) {
    top->merges = merges;
    result = take_entries(walk, top);
  }
  while (result == 0 && walk->depth > 0) {
    struct level *here = walk->levels[walk->depth - 1];
    if (here->inner_count > 0) {
      char *name = here->inner[--here->inner_count];
      result = enter(walk, here, name);
      free(name);
    } else result = leave(walk, here);
  }
  int error = errno;
  while (walk->depth > 0) let_go(walk->levels[--walk->depth]);
  free(walk->levels);
  for (int i = 0; walk->seen && i < BUCKETS; i++)
    for (struct link_seen *one = walk->seen[i], *next; one; one = next) {
      next = one->next;
      let_go(one->level);
      free(one);
    }
  free(walk->seen);
  close_kept(walk->top);
  errno = error;
  return result;
}

static int copy_all(struct walk *walk, int from, int to, bool merges) {
  copier_begin();
  int failed = walk_tree(walk, from, to, merges), error = errno;
  int late = copier_end();
  if (failed) errno = error;
  return failed ? failed : late;
}

/* Copies a tree; `to` must not exist. Owners, modes, times, extended attributes, hard links and holes are kept. */
int tree_copy(const char *from, const char *to, struct tally *tally) {
  struct walk walk = {.tally = tally};
  int source = open(from, DIRECTORY);
  if (source < 0 || mkdir(to, 0700) < 0) return close_kept(source), -1;
  int target = open(to, DIRECTORY);
  if (target < 0) return close_kept(source), -1;
  return copy_all(&walk, source, target, false);
}

/* Lays one layer on another as overlayfs shows them, with its marks of removed files. `to` exists. */
int tree_apply(const char *from, const char *to, struct tally *tally) {
  struct walk walk = {.tally = tally};
  int source = open(from, DIRECTORY);
  if (source < 0) return -1;
  int target = open(to, DIRECTORY);
  if (target < 0) return close_kept(source), -1;
  return copy_all(&walk, source, target, true);
}

/* Returns whether a tree has more files or bytes; stops counting once it is known. */
bool tree_exceeds(const char *path, long long files, long long bytes, struct tally *tally) {
  struct walk walk = {.tally = tally, .counts = true, .most_files = files, .most_bytes = bytes};
  int fd = open(path, DIRECTORY);
  return fd >= 0 && walk_tree(&walk, fd, -1, false) != 0;
}
