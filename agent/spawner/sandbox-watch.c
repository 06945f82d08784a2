/* What happens to sandboxes without being asked for: their processes end, their time comes, their spawner is another. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

void sandbox_reaped(pid_t pid, int status) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) {
      if (one->runtime != pid) continue;
      one->runtime = 0;
      bool failed = one->state == LAUNCHING && status != 0;
      if (failed) {
        close_fd(&one->boot, true);
        slot_kill(one->slot);
      }
      if (one->called && one->state == LAUNCHING && !failed) return sandbox_started(one);
      if (one->state == LIVE) runtime_left(one);
      if (failed || one->state == ENDING || (one->state == LAUNCHING && one->boot < 0)) sandbox_settle(one);
      return;
    }
}

void sandboxes_deadlines(int64_t now) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i], *next; one; one = next) {
      next = one->next;
      if (one->freeze_look && now >= one->freeze_look) freeze_looked(one, now);
      else if (one->state == LAUNCHING && one->launch_by && now >= one->launch_by) {
        if (one->error[0] == 0) snprintf(one->error, sizeof one->error, "it took longer than %d s", LAUNCH_MS / 1000);
        close_fd(&one->boot, true);
        if (one->runtime > 0) kill(one->runtime, SIGKILL);
        slot_kill(one->slot);
        one->launch_by = 0;
        sandbox_settle(one);
      } else if (one->ends_at && now >= one->ends_at && one->state != ENDING && one->state != LAUNCHING) {
        say("%s has come to its end", one->id);
        one->ends_at = 0;
        one->discard = !one->keep;
        if (one->state == LIVE) sandbox_end(one);
        else if (one->discard) {
          char path[PATH_MAX + ID_MAX + 32];
          path_of(one->id, "", path, sizeof path);
          janitor_discard(path);
          tell_all("gone\tid=%s", one->id);
          sandbox_forget(one);
        }
      }
    }
}

int64_t sandboxes_next_deadline(void) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) {
      if (one->launch_by && one->launch_by < least) least = one->launch_by;
      if (one->freeze_look && one->freeze_look < least) least = one->freeze_look;
      if (one->ends_at && one->state != ENDING && one->ends_at < least) least = one->ends_at;
    }
  return least;
}

/* Those that must be watched: what is dead and has no end of its own waits for its owner. */
int sandboxes_count(void) {
  int living = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) living += one->state != DEAD;
  return living;
}

static void adopt(const char *id) {
  char path[PATH_MAX + ID_MAX + 32], text[512] = "", boot[40], state[16], container[ID_MAX];
  int pid, slot, keep, frozen;
  unsigned long long started;
  long long ends_at, cpu_before = -1;
  path_of(id, "run", path, sizeof path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0 || sscanf(text, "1 %39s %15s %d %llu %d %lld %d %d %159s %lld", boot, state, &pid, &started, &slot,
                            &ends_at, &keep, &frozen, container, &cpu_before) < 9)
    return;
  struct sandbox *sandbox = *place_of(id) ? NULL : sandbox_add(id);
  if (sandbox == NULL) return;
  sandbox->state = DEAD;
  sandbox->ends_at = ends_at;
  sandbox->keep = keep != 0;
  snprintf(sandbox->container, sizeof sandbox->container, "%s", container);
  bool same_boot = strcmp(boot, boot_id) == 0;
  if (!same_boot || pid <= 0 || start_time(pid) != started) return remove_runtime_state(container);
  sandbox->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (sandbox->pidfd < 0 || start_time(pid) != started) return close_fd(&sandbox->pidfd, false);
  sandbox->state = LIVE;
  sandbox->pid = pid;
  sandbox->started = started;
  sandbox->frozen = frozen != 0;
  sandbox->slot = slot_claim(slot, cpu_before);
  /* Whoever was copied when the last spawner was killed still stands still. */
  if (!sandbox->frozen) slot_freeze(sandbox->slot, false);
  watch_fd(sandbox->pidfd, EPOLLIN, agent_ended, sandbox);
}

static bool is_container(const char *name) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next)
      if (one->state == LIVE && strcmp(one->container, name) == 0) return true;
  return false;
}

/* What launchers of an earlier spawner left, and the runtime knew of containers that are no more. */
static void sweep(const char *directory) {
  char path[PATH_MAX + 512];
  snprintf(path, sizeof path, "%s/run/%s", settings.base, directory);
  DIR *entries = opendir(path);
  if (entries == NULL) return;
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (entry->d_name[0] == '.' || is_container(entry->d_name)) continue;
    snprintf(path, sizeof path, "%s/run/%s/%s", settings.base, directory, entry->d_name);
    tree_remove(path);
  }
  closedir(entries);
}

void sandboxes_adopt(void) {
  char path[PATH_MAX + 32];
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, boot_id, sizeof boot_id - 1);
  if (fd >= 0) close(fd);
  boot_id[length > 0 ? length : 0] = 0;
  boot_id[strcspn(boot_id, "\n")] = 0;
  if (boot_id[0] == 0) strcpy(boot_id, "unknown");
  snprintf(path, sizeof path, "%s/sandboxes", settings.base);
  DIR *directory = opendir(path);
  if (directory == NULL) return;
  for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
    if (entry->d_name[0] != '.' && strlen(entry->d_name) < ID_MAX) adopt(entry->d_name);
  closedir(directory);
  sweep("doors");
  sweep("runtime");
  slots_sweep();
}
