/* Handles events of sandboxes that no request causes: processes end, deadlines pass, a new spawner adopts them. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <dirent.h>
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
  disk_watch_passed(now);
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
  int64_t least = disk_watch_next();
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) {
      if (one->launch_by && one->launch_by < least) least = one->launch_by;
      if (one->freeze_look && one->freeze_look < least) least = one->freeze_look;
      if (one->ends_at && one->state != ENDING && one->ends_at < least) least = one->ends_at;
    }
  return least;
}

/* Counts the sandboxes that need a spawner: a dead one without an end of its own waits for its owner. */
int sandboxes_count(void) {
  int living = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) living += one->state != DEAD;
  return living;
}

static void adopt(const char *id) {
  struct run run;
  struct sandbox *sandbox = *place_of(id) || !run_read(id, &run) ? NULL : sandbox_add(id);
  if (sandbox == NULL) return;
  sandbox->state = DEAD;
  sandbox->ends_at = run.ends_at;
  sandbox->keep = run.keep;
  sandbox->disk.limit = run.disk_limit;
  sandbox->disk.full = run.full;
  snprintf(sandbox->container, sizeof sandbox->container, "%s", run.container);
  if (run.pid <= 0 || start_time(run.pid) != run.started) return remove_runtime_state(run.container);
  sandbox->pidfd = (int)syscall(SYS_pidfd_open, run.pid, 0);
  if (sandbox->pidfd < 0 || start_time(run.pid) != run.started) return close_fd(&sandbox->pidfd, false);
  sandbox->state = LIVE;
  sandbox->pid = run.pid;
  sandbox->started = run.started;
  sandbox->frozen = run.frozen;
  sandbox->slot = slot_claim(run.slot, run.cpu_before);
  /* A copy that was under way when the last spawner was killed has left the sandbox frozen. */
  if (!sandbox->frozen) slot_freeze(sandbox->slot, false);
  watch_fd(sandbox->pidfd, EPOLLIN, agent_ended, sandbox);
}

static bool is_container(const char *name) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next)
      if (one->state == LIVE && strcmp(one->container, name) == 0) return true;
  return false;
}

/* Removes files of an earlier spawner's launchers, and the runtime's notes of containers that have ended. */
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
  runs_begin();
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
