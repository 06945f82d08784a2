/* Limits of a slot. */
#define _GNU_SOURCE
#include "cgroup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int limit_memory_v1(const struct slot *slot, long long bytes) {
  char path[PATH_MAX + 32], probe[32];
  slot_dir(slot, MEMORY, path, sizeof path);
  bool swap = group_get(path, "memory.memsw.limit_in_bytes", probe, sizeof probe) >= 0;
  /* The memory limit may never be above memory.memsw's, not even between two writes. */
  if (swap) group_put_number(path, "memory.memsw.limit_in_bytes", -1);
  /* Memory that an earlier sandbox left may be above the new limit: it is reclaimed first. */
  if (group_put_number(path, "memory.limit_in_bytes", bytes) < 0 &&
      (group_put(path, "memory.force_empty", "0"), group_put_number(path, "memory.limit_in_bytes", bytes) < 0))
    return -1;
  if (bytes >= 0 && swap) group_put_number(path, "memory.memsw.limit_in_bytes", bytes);
  return 0;
}

static int limit_v2(const struct slot *slot, const struct limits *limits) {
  char path[PATH_MAX + 32], text[48];
  slot_dir(slot, UNIFIED, path, sizeof path);
  int failed = 0;
  if (groups.v2_memory) {
    snprintf(text, sizeof text, "%lld", limits->memory);
    failed |= group_put(path, "memory.max", limits->memory < 0 ? "max" : text);
    group_put(path, "memory.swap.max", limits->memory < 0 ? "max" : "0");
  } else if (limits->memory >= 0) failed = -1;
  if (groups.v2_pids) {
    snprintf(text, sizeof text, "%lld", limits->pids);
    failed |= group_put(path, "pids.max", limits->pids < 0 ? "max" : text);
  } else if (limits->pids >= 0) failed = -1;
  if (groups.v2_cpu) {
    snprintf(text, sizeof text, "%lld 100000", limits->cpu * 100);
    failed |= group_put(path, "cpu.max", limits->cpu < 0 ? "max 100000" : text);
  } else if (limits->cpu >= 0) failed = -1;
  return failed;
}

static int limit_pids_v1(struct slot *slot, long long pids) {
  char path[PATH_MAX + 32];
  slot_dir(slot, PIDS, path, sizeof path);
  /* The zygote counts as a process of the slot, too. */
  return pids < 0 ? group_put(path, "pids.max", "max") : group_put_number(path, "pids.max", pids + slot_is_kept(slot));
}

/* Sets the limit of processes again after the slot's zygote has started or ended. */
void slot_limit_again(struct slot *slot) {
  if (groups.have[PIDS] && slot->limits.pids >= 0) limit_pids_v1(slot, slot->limits.pids);
}

/* Returns 0 when every requested limit is in force. */
int slot_limit(struct slot *slot, const struct limits *limits) {
  if (slot == NULL) return limits->memory < 0 && limits->pids < 0 && limits->cpu < 0 ? 0 : -1;
  struct limits *now = &slot->limits;
  char path[PATH_MAX + 32];
  if (memcmp(now, limits, sizeof *now) == 0) return 0;
  int failed = 0;
  if (groups.have[UNIFIED]) failed = limit_v2(slot, limits);
  else {
    if (limits->memory != now->memory)
      failed |= groups.have[MEMORY] ? limit_memory_v1(slot, limits->memory) : (limits->memory >= 0 ? -1 : 0);
    if (limits->pids != now->pids)
      failed |= groups.have[PIDS] ? limit_pids_v1(slot, limits->pids) : (limits->pids >= 0 ? -1 : 0);
    if (limits->cpu != now->cpu) {
      slot_dir(slot, CPU, path, sizeof path);
      if (!groups.have[CPU]) failed |= limits->cpu >= 0 ? -1 : 0;
      else failed |= group_put_number(path, "cpu.cfs_quota_us", limits->cpu < 0 ? -1 : limits->cpu * 100);
    }
  }
  if (failed == 0) *now = *limits;
  else *now = (struct limits){-2, -2, -2};
  return failed;
}
