/* Reports the restrictions in force for a sandbox, read from the kernel: only the spawner may inspect a process that is not
 * dumpable. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t add_namespaces(pid_t pid, char *text, size_t size) {
  static const char *const KINDS[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"};
  size_t length = 0;
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, KINDS[i]);
    ssize_t got = readlink(path, target, sizeof target - 1);
    if (got < 0) continue;
    target[got] = 0;
    char *number = strchr(target, '[');
    if (number == NULL) continue;
    number[strcspn(number, "]")] = 0;
    length += (size_t)snprintf(text + length, size - length, "\tns_%s=%s", KINDS[i], number + 1);
  }
  return length;
}

void do_inspect(const struct request *request, const struct fields *fields) {
  char text[8192];
  const char *id = id_of(fields);
  struct sandbox *sandbox = id ? *place_of(id) : NULL;
  if (sandbox == NULL || sandbox->state != LIVE) return answer_error(request, "gone", "it does not run");
  size_t length = (size_t)snprintf(text, sizeof text, "\tpid=%d\tfrozen=%d\tkept=%d", sandbox->pid, sandbox->frozen,
                                   slot_is_kept(sandbox->slot));
  length += add_namespaces(sandbox->pid, text + length, sizeof text - length);
  slot_places(sandbox->slot, text + length, sizeof text - length);
  answer_ok(request, "%s", text);
}
