/* Slots: the control groups of one sandbox. On version 1 a slot is used again and again: a new memory cgroup for every sandbox
 * would leave dying ones behind, and joining one on the request path waits for RCU. On version 2 counters cannot be reset (the
 * peak of memory: not at all before Linux 6.12, and since then for one open file alone), so there each sandbox gets a new slot;
 * the reaper process (`janitor_*`) empties the old one, so that no cgroup lingers in the kernel. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Bytes that may stay charged to a free slot. */
#define LEFT_MAX (4ll << 20)

/* Limits below which loading crun could fail or slow down. */
#define WIDE_MEMORY (64ll << 20)
#define WIDE_PIDS 16
#define WIDE_CPU 500

/* Slots in shared memory: the reaper process reads them, too. */
static struct slot *slots;
static int *slot_high;

void slots_begin(void) {
  slots = share(SLOTS_MAX * sizeof *slots + sizeof *slot_high);
  slot_high = (int *)(slots + SLOTS_MAX);
  for (int i = 0; i < SLOTS_MAX; i++) slots[i].index = i;
}

void slot_dir(const struct slot *slot, enum controller controller, char *path, size_t size) {
  snprintf(path, size, "%s/s%d", groups.dir[controller], slot->index);
}

/* Makes the slot's groups. Returns false where a group of that name is not gone yet: its counters are of another sandbox. */
static bool make_slot(struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot->made) return true;
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!groups.have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    if (mkdir(path, 0755) < 0 && (errno != EEXIST || c == UNIFIED)) return false;
  }
  slot->made = true;
  slot->limits = (struct limits){-2, -2, -2};
  return true;
}

static struct slot *slot_begins(struct slot *slot) {
  static const struct use NOTHING = {0, 0};
  slot->used = true;
  slot->before = groups.have[UNIFIED] ? NOTHING : slot_counters(slot);
  slot->oom_before = groups.have[UNIFIED] ? 0 : slot_oom_counter(slot);
  if (slot->index >= *slot_high) *slot_high = slot->index + 1;
  return slot;
}

static long long charged(const struct slot *slot) {
  char path[PATH_MAX + 32], text[64];
  if (!groups.have[MEMORY]) return 0;
  slot_dir(slot, MEMORY, path, sizeof path);
  return group_get(path, "memory.usage_in_bytes", text, sizeof text) < 0 ? 0 : atoll(text);
}

/* Returns whether memory of the last sandbox would still count for the next one, until the reaper process has emptied the slot.
 * */
static bool is_untidy(const struct slot *slot) {
  return slot->made && slot->left != slot->tidied && charged(slot) > LEFT_MAX;
}

struct slot *slot_take(void) {
  if (!cgroups_usable()) return NULL;
  for (int i = 0; i < SLOTS_MAX; i++) {
    if (slots[i].used || is_untidy(&slots[i])) continue;
    if (make_slot(&slots[i])) return slot_begins(&slots[i]);
    if (errno != EEXIST) return NULL;
  }
  return NULL;
}

/* Takes the slot of a sandbox that already runs in it, and that began when the counter was at `cpu_before`. Its peak is that of
 * no other sandbox: it was reset before. */
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

static void remove_slot(struct slot *slot) {
  char path[PATH_MAX + 32];
  keeper_end(slot, true);
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!groups.have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    rmdir(path);
  }
  slot->made = false;
}

static void nap_us(long us) {
  struct timespec wait = {0, us * 1000};
  nanosleep(&wait, NULL);
}

/* Removes the groups, on version 2, where a slot is not used again. The last process may not have left them completely. */
static void remove_for_good(const struct slot *slot) {
  char path[PATH_MAX + 32];
  slot_dir(slot, UNIFIED, path, sizeof path);
  group_put(path, "memory.reclaim", "1G");
  for (int tries = 0; rmdir(path) < 0 && errno == EBUSY && tries < 100; tries++) nap_us(1000);
}

/* Reclaims page cache and dentries that the last sandbox left charged, if they are more than `most`. */
static void empty(const struct slot *slot, long long most) {
  char path[PATH_MAX + 32];
  if (charged(slot) <= most) return;
  slot_dir(slot, MEMORY, path, sizeof path);
  group_put(path, "memory.force_empty", "0");
}

/* Empties slots that sandboxes have left; runs in the reaper process, because it takes milliseconds. A slot that is in use again
 * is skipped. */
void slots_tidy(void) {
  for (int i = 0; i < *slot_high; i++) {
    unsigned left = slots[i].left;
    if (left == slots[i].tidied || slots[i].used) continue;
    if (groups.have[UNIFIED]) remove_for_good(&slots[i]);
    else empty(&slots[i], LEFT_MAX);
    slots[i].tidied = left;
  }
}

/* Returns whether a runtime can be loaded below these limits: then they stay, for the next sandbox mostly has the same ones. */
static bool are_wide(const struct limits *limits) {
  return (limits->memory < 0 || limits->memory >= WIDE_MEMORY) && (limits->pids < 0 || limits->pids >= WIDE_PIDS) &&
         (limits->cpu < 0 || limits->cpu >= WIDE_CPU);
}

void slot_give_back(struct slot *slot) {
  static const struct limits NONE = {-1, -1, -1};
  if (slot == NULL) return;
  slot->left++;
  if (groups.have[UNIFIED]) {
    slot->used = slot->made = false;
    return janitor_tidy_slots();
  }
  if (!are_wide(&slot->limits)) slot_limit(slot, &NONE);
  if (groups.have[MEMORY]) {
    char path[PATH_MAX + 32];
    slot_dir(slot, MEMORY, path, sizeof path);
    group_put(path, "memory.max_usage_in_bytes", "0");
  }
  slot->used = false;
  janitor_tidy_slots();
  int spare = 0;
  for (int i = 0; i < *slot_high; i++) spare += slots[i].made && !slots[i].used;
  if (spare > settings.pool * 4 + 16) remove_slot(slot);
}

/* Called in the process that is to run in the slot. */
int slot_join(const struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot == NULL) return 0;
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!groups.have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    if (group_put(path, "cgroup.procs", "0") < 0) return -1;
  }
  return 0;
}

/* Returns 0 when all processes in the slot have stopped, or run again; 1: not yet; -1: unknown. */
int slot_froze(const struct slot *slot, bool frozen) {
  char path[PATH_MAX + 32], text[256];
  if (slot == NULL || !cgroups_can_freeze()) return -1;
  slot_dir(slot, groups.have[UNIFIED] ? UNIFIED : FREEZER, path, sizeof path);
  if (groups.have[UNIFIED]) {
    if (group_get(path, "cgroup.events", text, sizeof text) < 0) return -1;
    return (strstr(text, "frozen 1") != NULL) != frozen;
  }
  if (group_get(path, "freezer.state", text, sizeof text) < 0) return -1;
  return strncmp(text, frozen ? "FROZEN" : "THAWED", 6) != 0;
}

/* Requests a freeze or thaw. Repeat until it is complete: processes forked meanwhile have not got the request. */
int slot_ask_freeze(const struct slot *slot, bool frozen) {
  char path[PATH_MAX + 32];
  slot_dir(slot, groups.have[UNIFIED] ? UNIFIED : FREEZER, path, sizeof path);
  if (groups.have[UNIFIED]) return group_put(path, "cgroup.freeze", frozen ? "1" : "0");
  return group_put(path, "freezer.state", frozen ? "FROZEN" : "THAWED");
}

/* Waits up to some 20 ms and returns as slot_froze. On 1 ask again: a process inside cannot stop yet, say because it waits for a
 * disk. */
int slot_freeze(const struct slot *slot, bool frozen) {
  if (slot == NULL || !cgroups_can_freeze() || slot_ask_freeze(slot, frozen) < 0) return -1;
  for (int tries = 0; tries < 140; tries++) {
    int state = slot_froze(slot, frozen);
    if (state <= 0) return state;
    if (frozen && tries % 50 == 49) slot_ask_freeze(slot, true);
    nap_us(tries < 20 ? 20 : 100);
  }
  return 1;
}

FILE *slot_procs(const struct slot *slot) {
  char path[PATH_MAX + 64];
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!groups.have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    strcat(path, "/cgroup.procs");
    return fopen(path, "re");
  }
  return NULL;
}

/* Returns the processes inside without the zygote, or -1. */
int slot_count(struct slot *slot) {
  FILE *file = slot == NULL ? NULL : slot_procs(slot);
  if (file == NULL) return -1;
  int count = 0;
  long pid, keeper = keeper_pid(slot);
  while (fscanf(file, "%ld", &pid) == 1) count += pid != keeper;
  fclose(file);
  return count;
}

void slot_kill(struct slot *slot) {
  char path[PATH_MAX + 32];
  if (slot == NULL) return;
  slot_dir(slot, UNIFIED, path, sizeof path);
  /* Kills all at once, also processes that are being forked (Linux 5.14); the rest of this function then only waits. */
  if (groups.have[UNIFIED]) group_put(path, "cgroup.kill", "1");
  for (int round = 0; round < 50; round++) {
    FILE *file = slot_procs(slot);
    if (file == NULL) return;
    long pid, keeper = keeper_pid(slot);
    int count = 0;
    while (fscanf(file, "%ld", &pid) == 1)
      if (pid > 1 && pid != keeper) {
        kill((pid_t)pid, SIGKILL);
        count++;
      }
    fclose(file);
    if (count == 0) return;
    if (cgroups_can_freeze()) slot_freeze(slot, false);
    nap_us(2000);
  }
}

/* Ends processes in slots that belong to no sandbox, left by a spawner that was killed. */
void slots_sweep(void) {
  for (int c = 0; c < CONTROLLERS; c++) {
    if (!groups.have[c]) continue;
    DIR *directory = opendir(groups.dir[c]);
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

/* Removes free slots. */
void slots_end(void) {
  if (groups.have[UNIFIED]) slots_sweep();
  for (int i = 0; i < *slot_high; i++) {
    if (!slots[i].made || slots[i].used) continue;
    /* A memory cgroup that still has pages charged stays in the kernel, invisible, until they are reclaimed. */
    if (!groups.have[UNIFIED]) empty(&slots[i], 0);
    remove_slot(&slots[i]);
  }
}
