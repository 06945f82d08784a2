/* Starts a sandbox: its disk, its layers, and a launcher for it. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the writable directories, owned by the stored id of the root inside. */
static int make_disk(const char *id, const char *blank) {
  static const char *const PARTS[] = {"disk", "disk/upper", "disk/work"};
  char path[PATH_MAX + ID_MAX + 32];
  for (int i = 0; i < 3; i++) {
    path_of(id, PARTS[i], path, sizeof path);
    if ((i == 0 ? disk_directory(path) : mkdir(path, 0755)) < 0) {
      if (errno != EEXIST) return -1;
    } else if (i > 0 && chown(path, settings.storage, settings.storage) < 0) return -1;
  }
  if (blank == NULL || disk_is_image(id, path, sizeof path)) return 0;
  char from[PATH_MAX + 300];
  snprintf(from, sizeof from, "%s/%s", settings.base, blank);
  return file_copy(from, path);
}

bool read_layers(const struct fields *fields, struct launch *launch) {
  const char *list = field(fields, "layers");
  while (list && *list) {
    size_t length = strcspn(list, ":");
    if (launch->layer_count == LAYERS_MAX || length == 0 || length >= sizeof launch->layers[0]) return false;
    char *layer = launch->layers[launch->layer_count++];
    memcpy(layer, list, length);
    layer[length] = 0;
    if (layer[0] == '/' || strstr(layer, "..") || strpbrk(layer, ",\\")) return false;
    list += length + (list[length] == ':');
  }
  return launch->layer_count > 0;
}

static const char *launch_with(struct sandbox *sandbox, const struct launch *launch, const struct limits *limits,
                               const int fds[FD_COUNT]) {
  struct launcher launcher;
  const char *failure = NULL;
  if (!launcher_take(&launcher, launch->runtime[0] != 0)) return "no process can be started";
  snprintf(sandbox->container, sizeof sandbox->container, "%s", launcher.name);
  sandbox->slot = launcher.slot;
  sandbox->runtime = launcher.pid;
  sandbox->error_fd = launcher.error;
  sandbox->boot = launcher.boot;
  if (slot_limit(launcher.slot, limits) < 0) failure = "its limits cannot be set";
  else if (launcher_send(&launcher, launch, fds) < 0) failure = "its launcher is gone";
  /* Ends the launcher before it reads the end of its input: its error message would hide `failure`. */
  if (failure) kill(launcher.pid, SIGKILL);
  launcher_hand_over(&launcher);
  if (sandbox->called) close_fd(&sandbox->boot, false);
  else watch_fd(sandbox->boot, EPOLLIN, sandbox_booted, sandbox);
  return failure;
}

static const char *start(struct sandbox *sandbox, const struct launch *launch, const struct limits *limits,
                         uint32_t range, const char *blank) {
  int fds[FD_COUNT] = {-1, -1};
  if (make_disk(sandbox->id, blank) < 0) return "its directories cannot be made";
  if (settings.idmap && ((fds[FD_USERNS] = userns_for_range(range)) < 0 || (fds[FD_HOST_USERNS] = userns_take(range)) < 0))
    return "its ids cannot be mapped";
  const char *failure = launch_with(sandbox, launch, limits, fds);
  close_kept(fds[FD_HOST_USERNS]);
  return failure;
}

/* The use of a kept disk is unknown until the first count. */
static void begin_disk(struct sandbox *sandbox, long long limit) {
  char path[PATH_MAX + ID_MAX + 32];
  path_of(sandbox->id, "disk", path, sizeof path);
  bool empty = access(path, F_OK) < 0;
  sandbox->disk.limit = limit;
  sandbox->disk.used = empty ? (struct disk_use){0, 0} : (struct disk_use){-1, -1};
  sandbox->disk.restless = 0;
  sandbox->disk.before = 0;
  sandbox->disk.full = NOT_FULL;
}

void do_create(const struct request *request, const struct fields *fields) {
  struct launch launch = {0};
  const char *id = id_of(fields);
  const char *blank = field(fields, "disk"), *runtime = field(fields, "runtime");
  const char *flags = field(fields, "flags");
  if ((runtime && (runtime[0] != '/' || strlen(runtime) >= sizeof launch.runtime)) ||
      (flags && strlen(flags) >= sizeof launch.flags))
    return answer_error(request, "invalid", "runtime");
  if (id == NULL || !read_layers(fields, &launch) || !read_host_parts(fields, &launch) ||
      !read_volumes(fields, &launch))
    return answer_error(request, "invalid", "id, layers, host or volumes");
  if (blank && (strncmp(blank, "disks/", 6) != 0 || strstr(blank, "..") || strlen(blank) > 200))
    return answer_error(request, "invalid", "disk");
  const char *learn = field(fields, "learn");
  if (learn && (strchr(learn, '/') || learn[0] == '.' || strlen(learn) >= sizeof (struct sandbox){0}.learn))
    return answer_error(request, "invalid", "learn");
  struct sandbox *sandbox = *place_of(id);
  if (sandbox && sandbox->state == LAUNCHING) return keep_waiting(sandbox->creates, request);
  if (sandbox && sandbox->state == LIVE) return answer_ok(request, "%s", place_text(sandbox));
  if (sandbox && sandbox->state == ENDING) return answer_error(request, "ended", "it is being ended");
  if (sandbox == NULL && (sandbox = sandbox_add(id)) == NULL) return answer_error(request, "memory", "out of memory");
  snprintf(launch.id, sizeof launch.id, "%s", id);
  if (runtime) snprintf(launch.runtime, sizeof launch.runtime, "%s", runtime);
  if (flags) snprintf(launch.flags, sizeof launch.flags, "%s", flags);
  sandbox->called = runtime != NULL;
  struct limits limits = {number(fields, "memory", -1), number(fields, "pids", -1), number(fields, "cpu", -1)};
  sandbox->state = LAUNCHING;
  sandbox->discard = sandbox->frozen = false;
  sandbox->error[0] = 0;
  begin_disk(sandbox, number(fields, "room", -1));
  snprintf(sandbox->learn, sizeof sandbox->learn, "%s", learn ? learn : "");
  sandbox->ends_at = number(fields, "ends_at", 0);
  sandbox->keep = number(fields, "keep", 0) != 0;
  sandbox->launch_by = now_ms() + LAUNCH_MS;
  keep_waiting(sandbox->creates, request);
  launch.fleeting = !sandbox->keep;
  janitor_make_room();
  const char *failure = start(sandbox, &launch, &limits, (uint32_t)number(fields, "range", 0), blank);
  if (failure) {
    snprintf(sandbox->error, sizeof sandbox->error, "%s: %s", failure, strerror(errno));
    if (sandbox->runtime == 0) sandbox_settle(sandbox);
    return;
  }
  sandbox_save(sandbox);
  schedule_deadlines();
  /* The agent's socket is in place, and accepts once the agent runs. */
  if (!sandbox->called) tell_all("started\tid=%s", id);
}
