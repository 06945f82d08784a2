#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../agent.h"

#define MAX_DEPTH 1024

static int empty(TreeWork *work, int parent, const char *name, int depth);

static int remove_entry(TreeWork *work, int dir, const char *name, int depth) {
  if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
  int error = errno;
  if (error != EISDIR && error != EPERM && error != EACCES) return error;
  struct stat st;
  if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  if (!S_ISDIR(st.st_mode)) return error;
  error = empty(work, dir, name, depth + 1);
  if (error != 0) return error;
  return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : errno;
}

/* Empties a directory. A link in the place of a directory is not followed, whenever it was put there. */
static int empty(TreeWork *work, int parent, const char *name, int depth) {
  if (depth > MAX_DEPTH) return ELOOP;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : errno;
  DIR *dir = fdopendir(fd);
  if (dir == NULL) {
    close(fd);
    return ENOMEM;
  }
  int error = 0;
  bool unlocked = false;
  for (struct dirent *e; error == 0 && (e = readdir(dir)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    error = remove_entry(work, fd, e->d_name, depth);
    if (error == EACCES && !unlocked && fchmod(fd, 0700) == 0) {
      unlocked = true;
      error = remove_entry(work, fd, e->d_name, depth);
    }
    if (error == 0) work->files++;
    else if (work->why[0] == 0) snprintf(work->why, sizeof work->why, "%.120s: %s", e->d_name, strerror(error));
  }
  closedir(dir);
  return error;
}

int remove_tree(TreeWork *work, const char *path) {
  int error = remove_entry(work, work->base, path, 0);
  return error == ENOTEMPTY ? EBUSY : error;
}
