/* Counters of a slot, and the files that they are read from. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long long get_number(const struct slot *slot, enum controller controller, const char *file) {
  char path[PATH_MAX + 32], text[64];
  if (!groups.have[controller]) return -1;
  slot_dir(slot, controller, path, sizeof path);
  return group_get(path, file, text, sizeof text) < 0 ? -1 : atoll(text);
}

/* Returns all OOM kills ever counted in this slot; 0 without a counter. */
long long slot_oom_counter(const struct slot *slot) {
  char path[PATH_MAX + 32], events[512] = "";
  bool unified = groups.have[UNIFIED];
  if (!unified && !groups.have[MEMORY]) return 0;
  slot_dir(slot, unified ? UNIFIED : MEMORY, path, sizeof path);
  if (group_get(path, unified ? "memory.events" : "memory.oom_control", events, sizeof events) < 0) return 0;
  char *oom = strstr(events, "oom_kill ");
  return oom ? atoll(oom + 9) : 0;
}

/* Returns the processes that were killed for want of memory since the slot was taken. */
long long slot_oom_kills(const struct slot *slot) { return slot ? slot_oom_counter(slot) - slot->oom_before : 0; }

struct use slot_counters(const struct slot *slot) {
  struct use use = {-1, -1};
  if (groups.have[UNIFIED]) {
    char path[PATH_MAX + 32], text[512];
    slot_dir(slot, UNIFIED, path, sizeof path);
    char *cpu = group_get(path, "cpu.stat", text, sizeof text) < 0 ? NULL : strstr(text, "usage_usec ");
    if (cpu) use.cpu_us = atoll(cpu + 11);
    use.peak = get_number(slot, UNIFIED, "memory.peak");
  } else {
    long long ns = get_number(slot, CPU, "cpuacct.usage");
    if (ns >= 0) use.cpu_us = ns / 1000;
    use.peak = get_number(slot, MEMORY, "memory.max_usage_in_bytes");
  }
  return use;
}

/* Returns the use since the slot was taken. A peak that is not above the one before is of an earlier sandbox. */
struct use slot_use(const struct slot *slot) {
  struct use use = {-1, -1};
  if (slot == NULL) return use;
  struct use now = slot_counters(slot);
  if (now.cpu_us >= 0 && slot->before.cpu_us >= 0) use.cpu_us = now.cpu_us - slot->before.cpu_us;
  if (now.peak > slot->before.peak) use.peak = now.peak;
  return use;
}

void slot_stats(const struct slot *slot, char *text, size_t size) {
  text[0] = 0;
  if (slot == NULL) return;
  bool unified = groups.have[UNIFIED];
  long long pids = get_number(slot, unified ? UNIFIED : PIDS, "pids.current");
  snprintf(text, size, "\tmemory=%lld\tpids=%lld",
           get_number(slot, unified ? UNIFIED : MEMORY, unified ? "memory.current" : "memory.usage_in_bytes"),
           pids > 0 ? pids - slot_is_kept(slot) : pids);
}

/* Lists where the slot's limits can be read back: "group_memory=/sys/fs/cgroup/memory/…". */
void slot_places(const struct slot *slot, char *text, size_t size) {
  char path[PATH_MAX + 32];
  size_t length = 0;
  text[0] = 0;
  for (int c = 0; slot && c < CONTROLLERS; c++) {
    if (!groups.have[c]) continue;
    slot_dir(slot, (enum controller)c, path, sizeof path);
    int wrote = snprintf(text + length, size - length, "\tgroup_%s=%s", CONTROLLER_NAMES[c], path);
    if (wrote < 0 || (size_t)wrote >= size - length) return;
    length += (size_t)wrote;
  }
}
