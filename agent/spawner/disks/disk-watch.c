/*
 * Bounds the bytes that sandboxes write to the disk of the machine where no file system bounds them. Every tick reads the free
 * space, which costs microseconds: no sandbox can have written more than the free space has shrunk. Only when that is as much as
 * a sandbox has left of its limit, or the disk is nearly full, a worker counts the files of each. A sandbox with more than its
 * limit is ended; while the disk is nearly full, the sandbox that wrote most since there was room is ended. Writing goes on until
 * then: a limit is exceeded by the writes of a tick and a count.
 */
#define _GNU_SOURCE
#include "disk-watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#define TICK_MS 250
/* Changes below this size do not trigger a count. */
#define STEP (16ll << 20)
#define STEP_FILES 4096
#define RESTLESS_MOST 3
/* Space that one sandbox frees hides the writes of another: after this time all are counted again, if anything changed. */
#define AGAIN_MS 300000
/* A count may take a fifth of the time at the most, as long as there is room. */
#define REST 4
/* Space reserved for the server and the rest of the machine. */
#define RESERVE_MOST (1ll << 30)
#define RESERVE_PART 20
/* Fraction of the reserve: a sandbox that wrote less than that while the disk was nearly full is not ended. */
#define FAULT_PART 4
/* Space of an inode, and its part of a directory. */
#define FILE_BYTES 4096

struct space {
  long long bytes, files; /* free */
  long long reserve, least_bytes, least_files;
};

static int64_t next_tick, rest_until, counted_at, began_at;
static struct space at_count;
static struct counted *counted;
static size_t counted_room;
static int counted_count;

static bool is_watched(const struct sandbox *one) { return one->disk.limit >= 0 && one->state == LIVE; }

static int count_watched(void) {
  int count = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) count += is_watched(one);
  return count;
}

static long long lesser(long long a, long long b) { return a < b ? a : b; }

static bool look(struct space *space) {
  struct statfs info;
  if (statfs(settings.base, &info) < 0) return false;
  long long size = (long long)info.f_bsize, total = (long long)info.f_blocks * size;
  *space = (struct space){.bytes = (long long)info.f_bfree * size,
                          .files = (long long)info.f_ffree,
                          .least_bytes = lesser(total / RESERVE_PART, RESERVE_MOST),
                          .least_files = (long long)info.f_files / RESERVE_PART};
  /* Subtracts blocks reserved for root, which sandboxes cannot use. */
  space->reserve = space->least_bytes;
  space->least_bytes += ((long long)info.f_bfree - (long long)info.f_bavail) * size;
  return true;
}

static bool is_scarce(const struct space *space) {
  return space->bytes < space->least_bytes || space->files < space->least_files;
}

/* Returns the least that any sandbox has left; 0 for a sandbox that was never counted. */
static struct disk_use least_left(void) {
  struct disk_use left = {INT64_MAX, INT64_MAX};
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) {
      if (!is_watched(one)) continue;
      left.bytes = lesser(left.bytes, one->disk.used.bytes < 0 ? 0 : one->disk.limit - one->disk.used.bytes);
      left.files = lesser(left.files, one->disk.used.bytes < 0 ? 0 : disk_files(one->disk.limit) - one->disk.used.files);
    }
  return left;
}

static bool is_due(const struct space *now, int64_t time) {
  long long bytes = at_count.bytes - now->bytes, files = at_count.files - now->files;
  if (is_scarce(now)) return bytes >= STEP || files >= STEP_FILES || (!is_scarce(&at_count) && (bytes > 0 || files > 0));
  /* A clock that was set back must end no wait late. */
  bool rests = time < rest_until && rest_until - time < AGAIN_MS;
  bool old = time >= counted_at + AGAIN_MS || time < counted_at;
  if (rests) return false;
  if (old && (bytes != 0 || files != 0)) return true;
  struct disk_use left = least_left();
  return (bytes >= STEP && bytes >= left.bytes) || (files >= STEP_FILES && files >= left.files);
}

static void end_full(struct sandbox *one, int why) {
  static const char *const WHY[] = {"", "it has written more than it may", "the disk of the machine is nearly full, and it grew most",
                                    "what it writes cannot be counted"};
  say("%s is ended: %s (%lld bytes, %lld files; it may have %lld bytes)", one->id, WHY[why], one->disk.used.bytes,
      one->disk.used.files, one->disk.limit);
  one->disk.full = why;
  sandbox_end(one);
}

static long long taken(const struct disk_use *used) { return used->bytes + used->files * FILE_BYTES; }

/* Stores a count. A sandbox that begins above its limit (its disk was kept, or the spawner was replaced) may have a sixteenth
 * more. */
static void note(struct sandbox *one, const struct disk_use *used) {
  bool first = one->disk.used.bytes < 0;
  if (first && used->bytes > one->disk.limit) one->disk.limit = used->bytes + used->bytes / 16;
  if (first || !is_scarce(&at_count)) one->disk.before = taken(used);
  one->disk.used = *used;
}

static long long wrote(const struct sandbox *one) { return taken(&one->disk.used) - one->disk.before; }

static void end_greatest(struct sandbox *most) {
  struct space now;
  if (most == NULL || !look(&now) || !is_scarce(&now)) return;
  if (wrote(most) >= now.reserve / FAULT_PART) end_full(most, GREW_MOST);
}

static void count_done(void *context, bool ok, const struct tally *tally, const char *error) {
  struct sandbox *most = NULL;
  (void)context;
  (void)tally;
  if (!ok) say("disks cannot be counted: %s", error);
  rest_until = now_ms() + (now_ms() - began_at) * REST;
  for (int i = 0; ok && i < counted_count; i++) {
    struct sandbox *one = *place_of(counted[i].id);
    if (one == NULL || !is_watched(one) || one->started != counted[i].started) continue;
    note(one, &counted[i].used);
    one->disk.restless = counted[i].restless ? one->disk.restless + 1 : 0;
    if (one->disk.restless >= RESTLESS_MOST) end_full(one, RESTLESS);
    else if (one->disk.used.bytes > one->disk.limit || one->disk.used.files > disk_files(one->disk.limit))
      end_full(one, OVER_LIMIT);
    else if (most == NULL || wrote(one) > wrote(most)) most = one;
  }
  munmap(counted, counted_room);
  counted = NULL;
  end_greatest(most);
  schedule_deadlines();
}

static void begin_count(const struct space *now, int64_t time) {
  int watched = count_watched();
  counted_room = (size_t)watched * sizeof *counted;
  counted = mmap(NULL, counted_room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (counted == MAP_FAILED) {
    counted = NULL;
    return;
  }
  counted_count = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one && counted_count < watched; one = one->next) {
      if (!is_watched(one)) continue;
      struct counted *row = &counted[counted_count++];
      *row = (struct counted){.slot = one->slot, .started = one->started,
                              .most = one->disk.used.bytes < 0 ? -1 : one->disk.limit};
      snprintf(row->id, sizeof row->id, "%s", one->id);
    }
  at_count = *now;
  counted_at = began_at = time;
  work_start(&(struct job){.disks = counted, .disk_count = counted_count}, count_done, NULL);
}

void disk_watch_passed(int64_t time) {
  struct space now;
  if (next_tick == 0 || time < next_tick) return;
  next_tick = 0;
  if (counted == NULL && look(&now)) {
    /* Space that was freed since the count can be written again. */
    if (now.bytes > at_count.bytes) at_count.bytes = now.bytes;
    if (now.files > at_count.files) at_count.files = now.files;
    if (is_due(&now, time)) begin_count(&now, time);
  }
}

/* Returns when disk_watch_passed is to be called again; INT64_MAX while no sandbox is watched. */
int64_t disk_watch_next(void) {
  if (count_watched() == 0) return next_tick = 0, INT64_MAX;
  int64_t now = now_ms();
  /* The clock may have been set back. */
  if (next_tick == 0 || next_tick > now + TICK_MS) next_tick = now + TICK_MS;
  return next_tick;
}
