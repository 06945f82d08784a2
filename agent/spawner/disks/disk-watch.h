/* How much of the machine's disk sandboxes have, and may have: disk-watch.c decides, disk-count.c counts in a worker. */
#pragma once

#include "../sandbox/sandbox.h"

struct counted {
  char id[ID_MAX];
  const struct slot *slot;
  unsigned long long started; /* of its first process: an id may be somebody else's by the end of a count */
  long long most;             /* bytes: what is beyond that need not be counted; -1: all of it */
  struct disk_use used;       /* as far as it was counted */
  bool restless;              /* directories were moved under the count each time */
};

/* ---- disk-count.c ---- */
long long disk_files(long long bytes);
int disks_count(struct counted *rows, int count);
