/* Counts the bytes that sandboxes have on the machine's disk, in a worker: their trees, and open files without a name. */
#define _GNU_SOURCE
#include "../groups/cgroup.h"
#include "../rights/confine.h"
#include "disk-watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TRIES 3
/* Limit of open nameless files that are told apart; any more are counted each time they are met. */
#define KNOWN 65536
#define LOOKS_MOST 1000000
#define FILES_LEAST 10000

struct known {
  dev_t dev;
  ino_t ino;
};

/* Limit of files for a number of bytes. Empty files take room, too: a file system has about one inode for 16 KiB. */
long long disk_files(long long bytes) { return bytes / 4096 > FILES_LEAST ? bytes / 4096 : FILES_LEAST; }

static bool is_new(struct known *known, const struct statx *info) {
  struct known one = {((dev_t)info->stx_dev_major << 32) | info->stx_dev_minor, info->stx_ino};
  size_t at = (one.ino * 2654435761u ^ one.dev) % KNOWN;
  for (int tries = 0; tries < 64; tries++, at = (at + 1) % KNOWN) {
    if (known[at].ino == one.ino && known[at].dev == one.dev) return false;
    if (known[at].ino != 0) continue;
    known[at] = one;
    return true;
  }
  return true;
}

/* Counts nameless files. `list`: descriptors or mapped files of a process. No file is opened: a link of the kernel leads to it.
 * */
static void count_nameless_in(const char *list, struct counted *row, struct known *known, long *looks) {
  DIR *directory = opendir(list);
  if (directory == NULL) return;
  for (struct dirent *entry; *looks < LOOKS_MOST && (entry = readdir(directory)) != NULL; ++*looks) {
    struct statx info;
    struct statfs where;
    char path[384];
    if (statx(dirfd(directory), entry->d_name, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &info) < 0) continue;
    if (!S_ISREG(info.stx_mode) || info.stx_nlink > 0) continue;
    snprintf(path, sizeof path, "%s/%s", list, entry->d_name);
    /* Skips files of tmpfs and memfd, which count as memory. */
    if (statfs(path, &where) < 0 || where.f_type != OVERLAYFS_SUPER_MAGIC || !is_new(known, &info)) continue;
    row->used.bytes += (long long)info.stx_blocks * 512;
    row->used.files++;
  }
  closedir(directory);
}

static void count_nameless(struct counted *row, struct known *known) {
  static const char *const LISTS[] = {"fd", "map_files"};
  char path[64];
  long pid, looks = 0;
  FILE *processes = row->slot ? slot_procs(row->slot) : NULL;
  if (processes == NULL) return;
  memset(known, 0, KNOWN * sizeof *known);
  while (fscanf(processes, "%ld", &pid) == 1)
    for (int i = 0; i < 2; i++) {
      snprintf(path, sizeof path, "/proc/%ld/%s", pid, LISTS[i]);
      count_nameless_in(path, row, known, &looks);
    }
  fclose(processes);
}

static void count_tree(struct counted *row) {
  char path[PATH_MAX + ID_MAX + 32];
  struct tally most = {0, 0};
  path_of(row->id, "disk", path, sizeof path);
  row->restless = true;
  for (int tries = 0; row->restless && tries < TRIES; tries++) {
    struct tally tally = {0, 0};
    bool over = tree_exceeds(path, row->most < 0 ? INT64_MAX : disk_files(row->most), row->most < 0 ? INT64_MAX : row->most, &tally);
    if (tally.bytes > most.bytes) most.bytes = tally.bytes;
    if (tally.files > most.files) most.files = tally.files;
    bool known = row->most >= 0 && (most.bytes > row->most || most.files > disk_files(row->most));
    row->restless = over && !known;
  }
  row->used.bytes += most.bytes;
  row->used.files += most.files;
}

/* Counts descriptors first: the rest then needs only the right to read files. */
int disks_count(struct counted *rows, int count) {
  struct known *known = calloc(KNOWN, sizeof *known);
  if (known == NULL) return -1;
  setpriority(PRIO_PROCESS, 0, 5);
  for (int i = 0; i < count; i++) count_nameless(&rows[i], known);
  free(known);
  if (confine(DUTY_READ) < 0) return -1;
  for (int i = 0; i < count; i++) count_tree(&rows[i]);
  return 0;
}
