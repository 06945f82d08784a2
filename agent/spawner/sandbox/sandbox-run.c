/* State of a sandbox that outlives the spawner: its file "run", with the start time that identifies its first process. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_LINE 512

static char boot_id[40];

/* Writes one line of always the same length. State that a reboot ends is overwritten in place; state that outlasts a power cut is
 * written to a new file that is then renamed. */
void sandbox_save(const struct sandbox *sandbox) {
  char path[PATH_MAX + ID_MAX + 32], final[PATH_MAX + ID_MAX + 32], text[RUN_LINE + 1];
  path_of(sandbox->id, sandbox->keep ? "run.new" : "run", path, sizeof path);
  int fd = open(path, O_WRONLY | O_CREAT | (sandbox->keep ? O_TRUNC : 0) | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  int length = snprintf(text, sizeof text, "1 %s %s %d %llu %d %lld %d %d %s %lld %lld %d", boot_id, STATES[sandbox->state],
                        sandbox->pid, sandbox->started, sandbox->slot ? sandbox->slot->index : -1,
                        (long long)sandbox->ends_at, sandbox->keep, sandbox->frozen, sandbox->container,
                        sandbox->slot ? sandbox->slot->before.cpu_us : -1, sandbox->disk.limit, sandbox->disk.full);
  if (length < RUN_LINE - 1) memset(text + length, ' ', (size_t)(RUN_LINE - 1 - length));
  text[RUN_LINE - 1] = '\n';
  bool whole = write(fd, text, RUN_LINE) == RUN_LINE;
  close(fd);
  path_of(sandbox->id, "run", final, sizeof final);
  if (!whole || (sandbox->keep && rename(path, final) < 0)) say("cannot write %s: %s", final, strerror(errno));
}

/* Returns the 22nd field of /proc/PID/stat; the second may hold any character, also brackets. */
unsigned long long start_time(pid_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return 0;
  text[length] = 0;
  char *at = strrchr(text, ')');
  for (int i = 2; at && i < 22; i++) at = strchr(at + 1, ' ');
  return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* Reads the state that an earlier spawner saved; returns false when there is none. */
bool run_read(const char *id, struct run *run) {
  char path[PATH_MAX + ID_MAX + 32], text[RUN_LINE + 1] = "", boot[40], state[16];
  int keep, frozen;
  *run = (struct run){.cpu_before = -1, .disk_limit = -1};
  path_of(id, "run", path, sizeof path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0 || sscanf(text, "1 %39s %15s %d %llu %d %lld %d %d %159s %lld %lld %d", boot, state, &run->pid, &run->started,
                            &run->slot, &run->ends_at, &keep, &frozen, run->container, &run->cpu_before, &run->disk_limit, &run->full) < 9)
    return false;
  run->keep = keep != 0;
  run->frozen = frozen != 0;
  if (strcmp(boot, boot_id) != 0) run->pid = 0;
  return true;
}

/* Called before the first state is saved or read. */
void runs_begin(void) {
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, boot_id, sizeof boot_id - 1);
  if (fd >= 0) close(fd);
  boot_id[length > 0 ? length : 0] = 0;
  boot_id[strcspn(boot_id, "\n")] = 0;
  if (boot_id[0] == 0) strcpy(boot_id, "unknown");
}
