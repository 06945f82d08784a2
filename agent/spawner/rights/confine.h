/* Duties of workers, and how a worker confines itself. */
#pragma once

#include "../spawner.h"

enum duty {
  DUTY_UNPACK,       /* files below the root directory of the process */
  DUTY_UNPACK_MARKS, /* and removals of files of a layer below */
  DUTY_PACK,         /* reads a layer */
  DUTY_READ,         /* measures, writes out */
  DUTY_COPY,         /* trees, with their owners */
  DUTY_REMOVE,       /* of the reaper process */
  DUTY_MOUNT,        /* root file systems */
};
int confine(enum duty duty);
int confine_below(const char *directory, enum duty duty);
int confine_spawner(void);
