/* Finds the spawner's control group for each controller, of version 1 (also hybrid) and of version 2, and accesses its files. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Weight of all sandboxes together: half of one process of the host, or of one of its services. The server and the spawner are
 * one or the other, in whatever group they are, and answer while programs inside take all that they may. The group of all
 * sandboxes is always beside theirs, or below it. Sandboxes may use idle processors in full. */
#define GROUP_SHARES (1024 / 2)
#define GROUP_WEIGHT (100 / 2)

struct groups groups;
const char *const CONTROLLER_NAMES[CONTROLLERS] = {"memory", "pids", "cpu", "freezer", "blkio", "unified"};

int group_put(const char *directory, const char *file, const char *text) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t wrote = write(fd, text, strlen(text));
  int error = errno;
  close(fd);
  errno = error;
  return wrote < 0 ? -1 : 0;
}

int group_put_number(const char *directory, const char *file, long long value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", value);
  return group_put(directory, file, text);
}

ssize_t group_get(const char *directory, const char *file, char *text, size_t size) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = read(fd, text, size - 1);
  close(fd);
  if (length >= 0) text[length] = 0;
  return length;
}

static bool has_word(const char *list, const char *word, char separator) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
    bool begins = at == list || at[-1] == separator || at[-1] == ' ';
    char after = at[length];
    if (begins && (after == 0 || after == separator || after == ' ' || after == '\n')) return true;
  }
  return false;
}

/* Returns the spawner's own cgroup in a hierarchy, from /proc/self/cgroup; "/" when it has no line there. */
static void own_cgroup(const char *controller, char *path, size_t size) {
  char line[PATH_MAX];
  FILE *file = fopen("/proc/self/cgroup", "re");
  snprintf(path, size, "/");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file)) {
    char *names = strchr(line, ':');
    char *where = names ? strchr(names + 1, ':') : NULL;
    if (where == NULL) continue;
    *where++ = 0;
    where[strcspn(where, "\n")] = 0;
    bool match = controller[0] == 0 ? names[1] == 0 : has_word(names + 1, controller, ',');
    if (match) snprintf(path, size, "%s", where);
  }
  fclose(file);
}

static bool make_group_at(enum controller controller, const char *place, const char *below) {
  char *path = groups.dir[controller];
  snprintf(path, PATH_MAX, "%s%s/%s", place, below, settings.group);
  if (mkdir(path, 0755) == 0 || (errno == EEXIST && access(path, W_OK) == 0)) return true;
  path[0] = 0;
  return false;
}

/* Makes the group at the top of the hierarchy, or below the spawner's own cgroup where only that is delegated. */
static bool make_group(enum controller controller, const char *mount_point) {
  char own[PATH_MAX / 2];
  if (make_group_at(controller, mount_point, "")) return true;
  own_cgroup(CONTROLLER_NAMES[controller], own, sizeof own);
  return make_group_at(controller, mount_point, own);
}

/* Returns whether the kernel has taken the weight. */
static bool weigh_io(const char *directory, const char *of_bfq, const char *plain) {
  return group_put_number(directory, of_bfq, GROUP_WEIGHT) == 0 || group_put_number(directory, plain, GROUP_WEIGHT) == 0;
}

/* Opens the cgroup that the caller found delegated. A controller that it does not pass on is not in force, nor reported so. */
static void open_v2(void) {
  char text[1024];
  static const char *const WANTED[] = {"memory", "pids", "cpu", "io"};
  bool *const got[] = {&groups.v2_memory, &groups.v2_pids, &groups.v2_cpu, &groups.io_weight};
  groups.have[UNIFIED] = make_group_at(UNIFIED, settings.unified, "");
  if (!groups.have[UNIFIED]) return say("no control group below %s: %s", settings.unified, strerror(errno));
  for (int i = 0; i < (settings.io_weight ? 4 : 3); i++) {
    snprintf(text, sizeof text, "+%s", WANTED[i]);
    if (group_put(settings.unified, "cgroup.subtree_control", text) < 0)
      say("%s does not hand on the %s controller: %s", settings.unified, WANTED[i], strerror(errno));
    group_put(groups.dir[UNIFIED], "cgroup.subtree_control", text);
    if (group_get(groups.dir[UNIFIED], "cgroup.subtree_control", text, sizeof text) >= 0)
      *got[i] = has_word(text, WANTED[i], ' ');
  }
  if (groups.v2_cpu) group_put_number(groups.dir[UNIFIED], "cpu.weight", GROUP_WEIGHT);
  groups.io_weight = groups.io_weight && weigh_io(groups.dir[UNIFIED], "io.bfq.weight", "io.weight");
}

/* Parses mountinfo. Field 5 is the mount point; after " - " come type, source and options. */
static void open_v1(void) {
  char line[PATH_MAX * 2];
  FILE *file = fopen("/proc/self/mountinfo", "re");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file)) {
    char point[PATH_MAX], *tail = strstr(line, " - "), *options = strrchr(line, ' ');
    if (tail == NULL || strncmp(tail + 3, "cgroup ", 7) != 0) continue;
    if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1) continue;
    for (int c = MEMORY; c <= (settings.io_weight ? BLKIO : FREEZER); c++)
      if (!groups.have[c] && has_word(options + 1, CONTROLLER_NAMES[c], ',')) groups.have[c] = make_group((enum controller)c, point);
  }
  fclose(file);
  if (groups.have[CPU]) group_put_number(groups.dir[CPU], "cpu.shares", GROUP_SHARES);
  groups.io_weight = groups.have[BLKIO] && weigh_io(groups.dir[BLKIO], "blkio.bfq.weight", "blkio.weight");
  if (groups.have[BLKIO] && !groups.io_weight) {
    rmdir(groups.dir[BLKIO]);
    groups.have[BLKIO] = false;
  }
}

void cgroups_open(void) {
  slots_begin();
  if (settings.no_cgroups) return;
  if (settings.unified[0]) open_v2();
  else open_v1();
}

bool cgroups_usable(void) {
  return groups.have[MEMORY] || groups.have[PIDS] || groups.have[CPU] || groups.have[FREEZER] || groups.have[UNIFIED];
}

bool cgroups_can_freeze(void) { return groups.have[FREEZER] || groups.have[UNIFIED]; }

const char *cgroups_describe(void) {
  static char text[160];
  if (groups.have[UNIFIED])
    snprintf(text, sizeof text, "v2%s%s%s,freezer%s", groups.v2_memory ? ",memory" : "", groups.v2_pids ? ",pids" : "",
             groups.v2_cpu ? ",cpu" : "", groups.io_weight ? ",io" : "");
  else if (cgroups_usable())
    snprintf(text, sizeof text, "v1%s%s%s%s%s", groups.have[MEMORY] ? ",memory" : "", groups.have[PIDS] ? ",pids" : "",
             groups.have[CPU] ? ",cpu" : "", groups.have[FREEZER] ? ",freezer" : "", groups.io_weight ? ",io" : "");
  else
    snprintf(text, sizeof text, "none");
  return text;
}

void cgroups_close(void) {
  keepers_end();
  slots_end();
  for (int c = 0; c < CONTROLLERS; c++)
    if (groups.have[c]) rmdir(groups.dir[c]);
}
