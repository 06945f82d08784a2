/* How a launcher comes into being: what whoever asks for it, whoever has it and it itself have to agree on. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct birth {
  char name[40]; /* of the container */
  pid_t spawner;
  bool early;   /* the runtime is loaded before there is a sandbox to start */
  bool grouped; /* the last descriptor is the control group that it is born into (version 2) */
};

/* What the runtime finds open, by number; then what is for us alone. */
enum { IN_INPUT, IN_OUTPUT, IN_ERROR, IN_LISTEN, IN_BOOT, IN_CONFIG, IN_COUNT };

/* What a launcher is given: what the runtime finds open, its end of what it and the spawner have between them, and the end of
 * the pipe that the configuration comes out of, where it is loaded ahead. */
enum { GIVEN_SOCKET = IN_CONFIG, GIVEN_CONFIG, GIVEN_COUNT, GIVEN_GROUP = GIVEN_COUNT };

/* Where a keeper has its socket, and the runtime that becomes one what is loaded into it. */
enum { KEEPER_SOCKET = 3, KEEPER_PRELOAD };
#define KEEPER_VARIABLE "SANDBOXER_KEEPER"
/* Stands where the name of each container will, and has room for it. */
#define KEEPER_NAME "keeper_________________________________"
_Static_assert(sizeof KEEPER_NAME == sizeof ((struct birth *)0)->name, "a name fits");

void birth_settle(const struct birth *birth, const int *fds);
void birth_tell_mounts(void);
void keeper_serve(struct birth *birth, int *fds);
