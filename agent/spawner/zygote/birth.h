/* Messages between the spawner, a zygote and a launcher to start a launcher (`struct birth` is the request). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct birth {
  char name[40]; /* of the container */
  pid_t spawner;
  bool early;   /* the runtime is loaded before there is a sandbox to start */
  bool grouped; /* the last descriptor is the control group to start in (version 2) */
};

/* Descriptors that the runtime finds open, by number; then those of the launcher itself. */
enum { IN_INPUT, IN_OUTPUT, IN_ERROR, IN_LISTEN, IN_BOOT, IN_CONFIG, IN_COUNT };

/* Descriptors of a launcher: those that the runtime finds open, its end of the socket to the spawner, and the read end of the
 * configuration's pipe, where the runtime is loaded ahead. */
enum { GIVEN_SOCKET = IN_CONFIG, GIVEN_CONFIG, GIVEN_COUNT, GIVEN_GROUP = GIVEN_COUNT };

/* Descriptor of a zygote's socket, and of the library that a runtime loads to become a zygote. */
enum { KEEPER_SOCKET = 3, KEEPER_PRELOAD };
#define KEEPER_VARIABLE "SANDBOXER_KEEPER"
/* Placeholder for the name of each container, of the same length. */
#define KEEPER_NAME "keeper_________________________________"
_Static_assert(sizeof KEEPER_NAME == sizeof ((struct birth *)0)->name, "a name fits");

void birth_settle(const struct birth *birth, const int *fds);
void birth_tell_mounts(void);
void keeper_serve(struct birth *birth, int *fds);
