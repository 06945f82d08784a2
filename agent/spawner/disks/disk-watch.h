/* Limits on the machine's disk that sandboxes use: disk-watch.c decides, disk-count.c counts in a worker. */
#pragma once

#include "../sandbox/sandbox.h"

struct counted {
  char id[ID_MAX];
  const struct slot *slot;
  unsigned long long started; /* of its first process: the id may belong to another sandbox by the end of a count */
  long long most;             /* bytes: the count stops beyond this; -1: counts all */
  struct disk_use used;       /* as far as it was counted */
  bool restless;              /* directories moved during the count, each time */
};

/* ---- disk-count.c ---- */
long long disk_files(long long bytes);
int disks_count(struct counted *rows, int count);
