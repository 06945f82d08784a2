/* Removes the files of a sandbox. Programs inside chose every name and every link: no link is followed, every file is opened
 * below the current directory. */
#define _GNU_SOURCE
#include "../spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOVE_DEPTH 64
#define MEANWHILE_EVERY 64

/* Called now and then during a removal, for a process that has other duties, too. */
void (*tree_meanwhile)(void);

static void removes_one(void) {
  static unsigned entries;
  if (tree_meanwhile && ++entries % MEANWHILE_EVERY == 0) tree_meanwhile();
}

static bool is_dot(const char *name) {
  return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

static int remove_below(int top, int parent, int depth, unsigned *serial);

int tree_remove_at(int parent, const char *name) {
  unsigned serial = 0;
  if (unlinkat(parent, name, 0) == 0 || unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  int top = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0) return -1;
  for (int round = 0; round < 4096 && unlinkat(parent, name, AT_REMOVEDIR) < 0; round++) remove_below(top, dup(top), 0, &serial);
  close(top);
  return 0;
}

static int remove_below(int top, int parent, int depth, unsigned *serial) {
  DIR *directory = fdopendir(parent);
  if (directory == NULL) return close(parent), -1;
  /* The stream may have been read before: directories that were moved up since then appear only after a rewind. */
  rewinddir(directory);
  int failed = 0;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
    if (is_dot(entry->d_name)) continue;
    removes_one();
    if (entry->d_type != DT_DIR && unlinkat(parent, entry->d_name, 0) == 0) continue;
    if (unlinkat(parent, entry->d_name, AT_REMOVEDIR) == 0) continue;
    if (depth >= REMOVE_DEPTH) {
      /* Too deep to hold a descriptor for every level: the directory is moved up and found again there. */
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

/* Gives a tree that the spawner or the server wrote to the root inside, or to another of its users. */
int tree_own(const char *path, uint32_t owner) {
  int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (top < 0) return -1;
  int failed = fchown(top, owner, owner) < 0 || own_below(top, owner, 0) < 0;
  close(top);
  return failed ? -1 : 0;
}
