/* Cgroup slots, version 1 (also hybrid) and version 2. On version 1 a slot is used again and again: a new memory cgroup for
 * every sandbox would leave dying ones behind, and joining one on the request path waits for RCU. On version 2 what was
 * counted cannot be set back (the peak of memory: not at all before Linux 6.12, and since then for one open file alone), so
 * there each sandbox has one that was nobody's before; the janitor empties the last one, so that none dies slowly. */
#define _GNU_SOURCE
#include "spawner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOTS_MAX 8192
/* All sandboxes together would otherwise weigh as much as one single process of the host, or as one of its services. */
#define GROUP_SHARES (8 * 1024)
#define GROUP_WEIGHT (8 * 100)

enum controller { MEMORY, PIDS, CPU, FREEZER, UNIFIED, CONTROLLERS };
static const char *const NAMES[] = {"memory", "pids", "cpu", "freezer", "unified"};

/* The directory of our group for each controller; on version 2 only UNIFIED is set. */
static char group_dir[CONTROLLERS][PATH_MAX];
static bool have[CONTROLLERS];
static bool v2_memory, v2_pids, v2_cpu;
static struct slot slots[SLOTS_MAX];
static int slot_high;

static int put(const char *directory, const char *file, const char *text) {
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

static int put_number(const char *directory, const char *file, long long value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", value);
  return put(directory, file, text);
}

static ssize_t get(const char *directory, const char *file, char *text, size_t size) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", directory, file);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t length = read(fd, text, size - 1);
  close(fd);
  if (length >= 0) text[length] = 0;
  return length;
}

static void slot_dir(const struct slot *slot, enum controller controller, char *path, size_t size) {
  snprintf(path, size, "%s/s%d", group_dir[controller], slot->index);
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

/* Our own cgroup in a hierarchy, as /proc/self/cgroup tells it; "/" when it is not told. */
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
  char *path = group_dir[controller];
  snprintf(path, PATH_MAX, "%s%s/%s", place, below, settings.group);
  if (mkdir(path, 0755) == 0 || (errno == EEXIST && access(path, W_OK) == 0)) return true;
  path[0] = 0;
  return false;
}

/* Makes our group at the top of the hierarchy, or below our own cgroup where only that is delegated to us. */
static bool make_group(enum controller controller, const char *mount_point) {
  char own[PATH_MAX / 2];
  if (make_group_at(controller, mount_point, "")) return true;
  own_cgroup(NAMES[controller], own, sizeof own);
  return make_group_at(controller, mount_point, own);
}

/* Below the cgroup that the caller found to be ours. What it does not hand on is not in force, and is not told to be. */
static void open_v2(void) {
  char text[1024];
  static const char *const WANTED[] = {"memory", "pids", "cpu"};
  bool *const got[] = {&v2_memory, &v2_pids, &v2_cpu};
  have[UNIFIED] = make_group_at(UNIFIED, settings.unified, "");
  if (!have[UNIFIED]) return say("no control group below %s: %s", settings.unified, strerror(errno));
  for (int i = 0; i < 3; i++) {
    snprintf(text, sizeof text, "+%s", WANTED[i]);
    if (put(settings.unified, "cgroup.subtree_control", text) < 0)
      say("%s does not hand on the %s controller: %s", settings.unified, WANTED[i], strerror(errno));
    put(group_dir[UNIFIED], "cgroup.subtree_control", text);
    if (get(group_dir[UNIFIED], "cgroup.subtree_control", text, sizeof text) >= 0)
      *got[i] = has_word(text, WANTED[i], ' ');
  }
  if (v2_cpu) put_number(group_dir[UNIFIED], "cpu.weight", GROUP_WEIGHT);
}

/* Field 5 is the mount point; after " - " come type, source and options. */
static void open_v1(void) {
  char line[PATH_MAX * 2];
  FILE *file = fopen("/proc/self/mountinfo", "re");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file)) {
    char point[PATH_MAX], *tail = strstr(line, " - "), *options = strrchr(line, ' ');
    if (tail == NULL || strncmp(tail + 3, "cgroup ", 7) != 0) continue;
    if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1) continue;
    for (int c = MEMORY; c <= FREEZER; c++)
      if (!have[c] && has_word(options + 1, NAMES[c], ',')) have[c] = make_group((enum controller)c, point);
  }
  fclose(file);
  if (have[CPU]) put_number(group_dir[CPU], "cpu.shares", GROUP_SHARES);
}

void cgroups_open(void) {
  for (int i = 0; i < SLOTS_MAX; i++) slots[i].index = i;
  if (settings.no_cgroups) return;
  if (settings.unified[0]) open_v2();
  else open_v1();
}

bool cgroups_usable(void) {
  return have[MEMORY] || have[PIDS] || have[CPU] || have[FREEZER] || have[UNIFIED];
}

bool cgroups_can_freeze(void) { return have[FREEZER] || have[UNIFIED]; }

const char *cgroups_describe(void) {
  static char text[160];
  if (have[UNIFIED])
    snprintf(text, sizeof text, "v2%s%s%s,freezer", v2_memory ? ",memory" : "", v2_pids ? ",pids" : "",
             v2_cpu ? ",cpu" : "");
  else if (cgroups_usable())
    snprintf(text, sizeof text, "v1%s%s%s%s", have[MEMORY] ? ",memory" : "", have[PIDS] ? ",pids" : "",
             have[CPU] ? ",cpu" : "", have[FREEZER] ? ",freezer" : "");
  else
    snprintf(text, sizeof text, "none");
  return text;
}

/* False where there is one that is not gone yet: it has counted for another. */
static bool make_slot(struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot->made) return true;
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    if (mkdir(path, 0755) < 0 && (errno != EEXIST || c == UNIFIED)) return false;
  }
  slot->made = true;
  slot->limits = (struct limits){-2, -2, -2};
  return true;
}

static struct use counters(const struct slot *slot);
static long long oom_kills(const struct slot *slot);

static struct slot *slot_begins(struct slot *slot) {
  static const struct use NOTHING = {0, 0};
  slot->used = true;
  slot->before = have[UNIFIED] ? NOTHING : counters(slot);
  slot->oom_before = have[UNIFIED] ? 0 : oom_kills(slot);
  if (slot->index >= slot_high) slot_high = slot->index + 1;
  return slot;
}

struct slot *slot_take(void) {
  if (!cgroups_usable()) return NULL;
  for (int i = 0; i < SLOTS_MAX; i++) {
    if (slots[i].used) continue;
    if (make_slot(&slots[i])) return slot_begins(&slots[i]);
    if (errno != EEXIST) return NULL;
  }
  return NULL;
}

/* Of a sandbox that lives in it already, and came when it had counted `cpu_before`. Its peak is that of nobody else: it was
 * set back before. */
struct slot *slot_claim(int index, long long cpu_before) {
  if (index < 0 || index >= SLOTS_MAX || !cgroups_usable() || slots[index].used) return NULL;
  if (!make_slot(&slots[index]) && errno != EEXIST) return NULL;
  slots[index].made = true;
  slots[index].limits = (struct limits){-2, -2, -2};
  slot_begins(&slots[index]);
  if (cpu_before >= 0) slots[index].before.cpu_us = cpu_before;
  slots[index].before.peak = 0;
  return &slots[index];
}

/* Page cache and dentries that the last sandbox left charged. Takes milliseconds: only where nobody waits. */
void slot_clean(const struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot == NULL || !slot->dirty || !have[MEMORY]) return;
  slot_dir(slot, MEMORY, path, sizeof path);
  put(path, "memory.force_empty", "0");
}

static void remove_slot(struct slot *slot) {
  char path[PATH_MAX + 32];
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    rmdir(path);
  }
  slot->made = slot->dirty = false;
}

static void nap_us(long us) {
  struct timespec wait = {0, us * 1000};
  nanosleep(&wait, NULL);
}

/* On version 2: nobody will use it again. The last process in it may not have left altogether. */
void slot_remove(int index) {
  const struct slot slot = {.index = index};
  char path[PATH_MAX + 32];
  slot_dir(&slot, UNIFIED, path, sizeof path);
  put(path, "memory.reclaim", "1G");
  for (int tries = 0; rmdir(path) < 0 && errno == EBUSY && tries < 100; tries++) nap_us(1000);
}

void slot_give_back(struct slot *slot) {
  static const struct limits NONE = {-1, -1, -1};
  if (slot == NULL) return;
  if (have[UNIFIED]) {
    slot->used = slot->made = false;
    return janitor_remove_slot(slot->index);
  }
  slot_limit(slot, &NONE);
  if (have[MEMORY]) {
    char path[PATH_MAX + 32];
    slot_dir(slot, MEMORY, path, sizeof path);
    put(path, "memory.max_usage_in_bytes", "0");
  }
  slot->used = false;
  slot->dirty = true;
  int spare = 0;
  for (int i = 0; i < slot_high; i++) spare += slots[i].made && !slots[i].used;
  if (spare > settings.pool * 4 + 16) remove_slot(slot);
}

/* Called in the process that is to live in the slot. */
int slot_join(const struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot == NULL) return 0;
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    if (put(path, "cgroup.procs", "0") < 0) return -1;
  }
  return 0;
}

/* Nothing of the host's flags is taken away: a user namespace that is not the first may add some, and no more. */
static bool bind_read_only(const char *source, const char *target) {
  static const unsigned long CLOSED = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (mount(source, target, NULL, MS_BIND, NULL) < 0) return false;
  if (mount(NULL, target, NULL, MS_REMOUNT | MS_BIND | CLOSED, NULL) == 0) return true;
  umount2(target, MNT_DETACH);
  return false;
}

static const enum controller SHOWN[] = {MEMORY, PIDS, CPU};

/* Makes the place where slots are shown: one file system for all of them, as each would cost every memory group something. */
void slots_place(const char *target) {
  char below[PATH_MAX + 32];
  if (mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=16k,mode=0755") < 0) return;
  for (int i = 0; i < 3 && !have[UNIFIED]; i++) {
    snprintf(below, sizeof below, "%s/%s", target, NAMES[SHOWN[i]]);
    mkdir(below, 0755);
  }
}

/* At `target`, in the mount namespace of who calls: a sandbox is shown the groups that it is in, and nothing above them, so
 * that programs inside know their limits. What cannot be shown read-only is an empty directory. */
void slot_show(const struct slot *slot, const char *target) {
  char source[PATH_MAX + 32], below[PATH_MAX + 32];
  if (slot == NULL) return;
  if (have[UNIFIED]) {
    slot_dir(slot, UNIFIED, source, sizeof source);
    bind_read_only(source, target);
    return;
  }
  for (int i = 0; i < 3; i++) {
    if (!have[SHOWN[i]]) continue;
    snprintf(below, sizeof below, "%s/%s", target, NAMES[SHOWN[i]]);
    slot_dir(slot, SHOWN[i], source, sizeof source);
    bind_read_only(source, below);
  }
}

static int limit_memory_v1(const struct slot *slot, long long bytes) {
  char path[PATH_MAX + 32], probe[32];
  slot_dir(slot, MEMORY, path, sizeof path);
  bool swap = get(path, "memory.memsw.limit_in_bytes", probe, sizeof probe) >= 0;
  if (bytes < 0 && swap) put_number(path, "memory.memsw.limit_in_bytes", -1);
  if (put_number(path, "memory.limit_in_bytes", bytes) < 0) return -1;
  if (bytes >= 0 && swap) put_number(path, "memory.memsw.limit_in_bytes", bytes);
  return 0;
}

static int limit_v2(const struct slot *slot, const struct limits *limits) {
  char path[PATH_MAX + 32], text[48];
  slot_dir(slot, UNIFIED, path, sizeof path);
  int failed = 0;
  if (v2_memory) {
    snprintf(text, sizeof text, "%lld", limits->memory);
    failed |= put(path, "memory.max", limits->memory < 0 ? "max" : text);
    put(path, "memory.swap.max", limits->memory < 0 ? "max" : "0");
  } else if (limits->memory >= 0) failed = -1;
  if (v2_pids) {
    snprintf(text, sizeof text, "%lld", limits->pids);
    failed |= put(path, "pids.max", limits->pids < 0 ? "max" : text);
  } else if (limits->pids >= 0) failed = -1;
  if (v2_cpu) {
    snprintf(text, sizeof text, "%lld 100000", limits->cpu * 100);
    failed |= put(path, "cpu.max", limits->cpu < 0 ? "max 100000" : text);
  } else if (limits->cpu >= 0) failed = -1;
  return failed;
}

/* 0 when every limit that was asked for is in force. */
int slot_limit(struct slot *slot, const struct limits *limits) {
  if (slot == NULL) return limits->memory < 0 && limits->pids < 0 && limits->cpu < 0 ? 0 : -1;
  struct limits *now = &slot->limits;
  char path[PATH_MAX + 32];
  if (memcmp(now, limits, sizeof *now) == 0) return 0;
  int failed = 0;
  if (have[UNIFIED]) failed = limit_v2(slot, limits);
  else {
    if (limits->memory != now->memory)
      failed |= have[MEMORY] ? limit_memory_v1(slot, limits->memory) : (limits->memory >= 0 ? -1 : 0);
    if (limits->pids != now->pids) {
      slot_dir(slot, PIDS, path, sizeof path);
      if (!have[PIDS]) failed |= limits->pids >= 0 ? -1 : 0;
      else failed |= limits->pids < 0 ? put(path, "pids.max", "max") : put_number(path, "pids.max", limits->pids);
    }
    if (limits->cpu != now->cpu) {
      slot_dir(slot, CPU, path, sizeof path);
      if (!have[CPU]) failed |= limits->cpu >= 0 ? -1 : 0;
      else failed |= put_number(path, "cpu.cfs_quota_us", limits->cpu < 0 ? -1 : limits->cpu * 100);
    }
  }
  if (failed == 0) *now = *limits;
  else *now = (struct limits){-2, -2, -2};
  return failed;
}

/* Returns once everything in the slot has stopped, or runs again. */
int slot_freeze(const struct slot *slot, bool frozen) {
  char path[PATH_MAX + 32], text[256];
  if (slot == NULL || !cgroups_can_freeze()) return -1;
  slot_dir(slot, have[UNIFIED] ? UNIFIED : FREEZER, path, sizeof path);
  if (have[UNIFIED]) {
    if (put(path, "cgroup.freeze", frozen ? "1" : "0") < 0) return -1;
  } else if (put(path, "freezer.state", frozen ? "FROZEN" : "THAWED") < 0) return -1;
  for (int tries = 0; tries < 20000; tries++) {
    if (have[UNIFIED]) {
      if (get(path, "cgroup.events", text, sizeof text) < 0) return -1;
      if ((strstr(text, "frozen 1") != NULL) == frozen) return 0;
    } else {
      if (get(path, "freezer.state", text, sizeof text) < 0) return -1;
      if (strncmp(text, frozen ? "FROZEN" : "THAWED", 6) == 0) return 0;
      if (frozen && tries % 50 == 49) put(path, "freezer.state", "FROZEN");
    }
    nap_us(tries < 20 ? 20 : 100);
  }
  if (frozen) slot_freeze(slot, false);
  return -1;
}

static FILE *slot_procs(const struct slot *slot) {
  char path[PATH_MAX + 64];
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    strcat(path, "/cgroup.procs");
    return fopen(path, "re");
  }
  return NULL;
}

/* Processes inside, or -1. */
int slot_count(const struct slot *slot) {
  FILE *file = slot == NULL ? NULL : slot_procs(slot);
  if (file == NULL) return -1;
  int count = 0;
  long pid;
  while (fscanf(file, "%ld", &pid) == 1) count++;
  fclose(file);
  return count;
}

void slot_kill(const struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot == NULL) return;
  slot_dir(slot, UNIFIED, path, sizeof path);
  /* All at once, also what is being forked (Linux 5.14); what is left to do is to wait. */
  if (have[UNIFIED]) put(path, "cgroup.kill", "1");
  for (int round = 0; round < 50; round++) {
    FILE *file = slot_procs(slot);
    if (file == NULL) return;
    long pid;
    int count = 0;
    while (fscanf(file, "%ld", &pid) == 1)
      if (pid > 1) {
        kill((pid_t)pid, SIGKILL);
        count++;
      }
    fclose(file);
    if (count == 0) return;
    if (cgroups_can_freeze()) slot_freeze(slot, false);
    nap_us(2000);
  }
}

static long long get_number(const struct slot *slot, enum controller controller, const char *file) {
  char path[PATH_MAX + 32], text[64];
  if (!have[controller]) return -1;
  slot_dir(slot, controller, path, sizeof path);
  return get(path, file, text, sizeof text) < 0 ? -1 : atoll(text);
}

/* Ever in this slot; 0 where nobody counts. */
static long long oom_kills(const struct slot *slot) {
  char path[PATH_MAX + 32], events[512] = "";
  bool unified = have[UNIFIED];
  if (!unified && !have[MEMORY]) return 0;
  slot_dir(slot, unified ? UNIFIED : MEMORY, path, sizeof path);
  if (get(path, unified ? "memory.events" : "memory.oom_control", events, sizeof events) < 0) return 0;
  char *oom = strstr(events, "oom_kill ");
  return oom ? atoll(oom + 9) : 0;
}

/* Processes that were killed for want of memory since it was taken. */
long long slot_oom_kills(const struct slot *slot) { return slot ? oom_kills(slot) - slot->oom_before : 0; }

static struct use counters(const struct slot *slot) {
  struct use use = {-1, -1};
  if (have[UNIFIED]) {
    char path[PATH_MAX + 32], text[512];
    slot_dir(slot, UNIFIED, path, sizeof path);
    char *cpu = get(path, "cpu.stat", text, sizeof text) < 0 ? NULL : strstr(text, "usage_usec ");
    if (cpu) use.cpu_us = atoll(cpu + 11);
    use.peak = get_number(slot, UNIFIED, "memory.peak");
  } else {
    long long ns = get_number(slot, CPU, "cpuacct.usage");
    if (ns >= 0) use.cpu_us = ns / 1000;
    use.peak = get_number(slot, MEMORY, "memory.max_usage_in_bytes");
  }
  return use;
}

/* Since it was taken. A peak that is not above the one before is of an earlier sandbox. */
struct use slot_use(const struct slot *slot) {
  struct use use = {-1, -1};
  if (slot == NULL) return use;
  struct use now = counters(slot);
  if (now.cpu_us >= 0 && slot->before.cpu_us >= 0) use.cpu_us = now.cpu_us - slot->before.cpu_us;
  if (now.peak > slot->before.peak) use.peak = now.peak;
  return use;
}

void slot_stats(const struct slot *slot, char *text, size_t size) {
  text[0] = 0;
  if (slot == NULL) return;
  bool unified = have[UNIFIED];
  snprintf(text, size, "\tmemory=%lld\tpids=%lld",
           get_number(slot, unified ? UNIFIED : MEMORY, unified ? "memory.current" : "memory.usage_in_bytes"),
           get_number(slot, unified ? UNIFIED : PIDS, "pids.current"));
}

/* Where its limits can be read back: "group_memory=/sys/fs/cgroup/memory/…". */
void slot_places(const struct slot *slot, char *text, size_t size) {
  char path[PATH_MAX + 32];
  size_t length = 0;
  text[0] = 0;
  for (int c = 0; slot && c < CONTROLLERS; c++) {
    if (!have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    int wrote = snprintf(text + length, size - length, "\tgroup_%s=%s", NAMES[c], path);
    if (wrote < 0 || (size_t)wrote >= size - length) return;
    length += (size_t)wrote;
  }
}

/* Ends what is left in slots that belong to nobody, from a spawner that was killed. */
void slots_sweep(void) {
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!have[c]) continue;
    DIR *directory = opendir(group_dir[c]);
    if (directory == NULL) continue;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
      int index;
      char rest;
      if (sscanf(entry->d_name, "s%d%c", &index, &rest) != 1 || index < 0 || index >= SLOTS_MAX) continue;
      if (slots[index].used) continue;
      slots[index].made = true;
      slot_freeze(&slots[index], false);
      slot_kill(&slots[index]);
      remove_slot(&slots[index]);
    }
    closedir(directory);
  }
}

void cgroups_close(void) {
  if (have[UNIFIED]) slots_sweep();
  for (int i = 0; i < slot_high; i++) {
    if (!slots[i].made || slots[i].used) continue;
    /* A memory cgroup that still has pages charged stays behind, unseen, until they are reclaimed. */
    slot_clean(&slots[i]);
    remove_slot(&slots[i]);
  }
  for (int c = 0; c < CONTROLLERS; c++)
    if (have[c]) rmdir(group_dir[c]);
}
