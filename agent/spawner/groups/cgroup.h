/* Declarations that only the files about control groups share. */
#pragma once

#include "../spawner.h"

#include <stdio.h>
#include <sys/types.h>

#define SLOTS_MAX 8192

enum controller { MEMORY, PIDS, CPU, FREEZER, BLKIO, UNIFIED, CONTROLLERS };

/* ---- cgroup.c: our group for each controller ---- */
struct groups {
  /* The group's directory; on version 2 only UNIFIED is set. */
  char dir[CONTROLLERS][PATH_MAX];
  bool have[CONTROLLERS];
  bool v2_memory, v2_pids, v2_cpu;
  bool io_weight; /* disk time is shared by weight */
};
extern struct groups groups;
extern const char *const CONTROLLER_NAMES[CONTROLLERS];

int group_put(const char *directory, const char *file, const char *text);
int group_put_number(const char *directory, const char *file, long long value);
ssize_t group_get(const char *directory, const char *file, char *text, size_t size);

/* ---- slot.c ---- */
void slots_begin(void);
void slots_end(void);
void slot_dir(const struct slot *slot, enum controller controller, char *path, size_t size);

FILE *slot_procs(const struct slot *slot);

/* ---- slot-limits.c ---- */
void slot_limit_again(struct slot *slot);

/* ---- keeper.c ---- */
pid_t keeper_pid(struct slot *slot);
void keeper_end(struct slot *slot, bool wait);
void keepers_end(void);

/* ---- slot-use.c ---- */
struct use slot_counters(const struct slot *slot);
long long slot_oom_counter(const struct slot *slot);
