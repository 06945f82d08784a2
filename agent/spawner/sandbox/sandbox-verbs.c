/* Requests for a sandbox that exists. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A disk with less than this is copied faster than an agent is started again. */
#define SMALL_FILES 400
#define SMALL_BYTES (8ll << 20)
#define LITTLE_KB (32 << 10)
/* Time that processes inside may take to stop. */
#define FREEZE_MS 2000
#define FREEZE_LOOK_MS 10

static struct sandbox *live(const struct request *request, const struct fields *fields) {
  const char *id = id_of(fields);
  struct sandbox *sandbox = id ? *place_of(id) : NULL;
  if (sandbox && sandbox->state == LIVE) return sandbox;
  answer_error(request, "gone", "it does not run");
  return NULL;
}

static void capture_still(struct sandbox *sandbox);

static void thaw_after(struct sandbox *sandbox) {
  if (sandbox->state == LIVE && !sandbox->frozen) slot_freeze(sandbox->slot, false);
}

/* Ends a freeze or thaw. `done`: all processes have stopped, or run again; otherwise the sandbox is put back as it was. */
void freeze_over(struct sandbox *sandbox, bool done) {
  bool copies = sandbox->capturing;
  const struct request *request = copies ? &sandbox->capture : &sandbox->freezing;
  sandbox->freeze_look = 0;
  if (done && copies) return capture_still(sandbox);
  if (done) {
    sandbox->frozen = sandbox->freeze_to;
    sandbox_save(sandbox);
    return answer_ok(request, "%s", "");
  }
  sandbox->capturing = false;
  thaw_after(sandbox);
  answer_error(request, "freeze", "the kernel did not %s it", sandbox->freeze_to ? "freeze" : "thaw");
}

static void freeze(struct sandbox *sandbox, bool frozen) {
  sandbox->freeze_to = frozen;
  int state = slot_freeze(sandbox->slot, frozen);
  if (state <= 0) return freeze_over(sandbox, state == 0);
  sandbox->freeze_by = now_ms() + FREEZE_MS;
  sandbox->freeze_look = now_ms() + FREEZE_LOOK_MS;
  schedule_deadlines();
}

void freeze_looked(struct sandbox *sandbox, int64_t now) {
  int state = sandbox->state == LIVE ? slot_froze(sandbox->slot, sandbox->freeze_to) : -1;
  if (state <= 0 || now >= sandbox->freeze_by) return freeze_over(sandbox, state == 0);
  slot_ask_freeze(sandbox->slot, sandbox->freeze_to);
  sandbox->freeze_look = now + FREEZE_LOOK_MS;
}

void do_freeze(const struct request *request, const struct fields *fields, bool frozen) {
  struct sandbox *sandbox = live(request, fields);
  if (sandbox == NULL) return;
  if (sandbox->capturing) return answer_error(request, "busy", "it is being copied");
  if (sandbox->freeze_look) freeze_over(sandbox, false);
  sandbox->freezing = *request;
  freeze(sandbox, frozen);
}

void do_extend(const struct request *request, const struct fields *fields) {
  const char *id = id_of(fields);
  struct sandbox *sandbox = id ? *place_of(id) : NULL;
  if (sandbox == NULL) return answer_error(request, "gone", "there is no such sandbox");
  sandbox->ends_at = number(fields, "ends_at", sandbox->ends_at);
  sandbox_save(sandbox);
  schedule_deadlines();
  answer_ok(request, "%s", "");
}

void do_status(const struct request *request, const struct fields *fields) {
  char stats[256];
  const char *id = id_of(fields);
  struct sandbox *sandbox = id ? *place_of(id) : NULL;
  if (sandbox == NULL) return answer_ok(request, "\tstate=none");
  slot_stats(sandbox->slot, stats, sizeof stats);
  answer_ok(request, "\tstate=%s\tpid=%d\tstarted=%llu\tslot=%d\tfrozen=%d\tends_at=%lld\toom_kills=%lld\tfull=%d%s%s",
            STATES[sandbox->state],
            sandbox->pid, sandbox->started, sandbox->slot ? sandbox->slot->index : -1, sandbox->frozen,
            (long long)sandbox->ends_at, slot_oom_kills(sandbox->slot), sandbox->disk.full, stats, use_text(sandbox));
}

void do_list(const struct request *request) {
  char text[LINE_MAX_BYTES - 64];
  size_t length = 0;
  text[0] = 0;
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next)
      if (length < sizeof text - ID_MAX - 16)
        length += (size_t)snprintf(text + length, sizeof text - length, "\t%s=%s", one->id, STATES[one->state]);
  answer_ok(request, "%s", text);
}

/* Returns the path of a layer below `to`: the layer itself, or its place in a disk that was taken as a whole. */
static const char *layer_below(bool whole) { return whole ? "/disk/upper" : "/fs"; }

static void answer_captured(struct sandbox *sandbox, const char *how, bool whole, const struct tally *tally) {
  char sizes[64] = "";
  if (tally) snprintf(sizes, sizeof sizes, "\tfiles=%lld\tbytes=%lld", tally->files, tally->bytes);
  answer_ok(&sandbox->capture, "\thow=%s\tlayer=%s%s%s", how, sandbox->capture_to, layer_below(whole), sizes);
}

/* Context of a copy under way: when it ends the sandbox may be gone, or be copied anew. */
struct copying {
  char id[ID_MAX];
  bool whole;
  struct work *work;
};

static void copied(void *context, bool ok, const struct tally *tally, const char *error) {
  struct copying *copying = context;
  struct sandbox *sandbox = *place_of(copying->id);
  bool whole = copying->whole, ours = sandbox && sandbox->copying == copying;
  free(copying);
  if (!ours) return;
  sandbox->copying = NULL;
  sandbox->capturing = false;
  thaw_after(sandbox);
  if (ok) answer_captured(sandbox, "copied", whole, whole ? NULL : tally);
  else answer_error(&sandbox->capture, "copy", "%s", error);
  sandbox->capture.seq[0] = 0;
}

static void copy(struct sandbox *sandbox, const struct job *job) {
  struct copying *copying = calloc(1, sizeof *copying);
  if (copying == NULL) {
    sandbox->capturing = false;
    thaw_after(sandbox);
    return answer_error(&sandbox->capture, "copy", "out of memory");
  }
  strcpy(copying->id, sandbox->id);
  copying->whole = job->subvolume != NULL;
  sandbox->copying = copying;
  struct work *work = work_start(job, copied, copying);
  if (work) copying->work = work;
}

/* Gives up the copies of a client that has gone; sandboxes that were stopped for them go on. */
void captures_forsaken(int client) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) {
      if (!one->capturing || one->capture.client != client) continue;
      if (one->copying) work_give_up(one->copying->work);
      else if (one->freeze_look) freeze_over(one, false);
    }
}

/* Gives up all copies when the spawner leaves; sandboxes that were stopped for them go on. */
void captures_end(void) {
  for (int i = 0; i < BUCKETS; i++)
    for (struct sandbox *one = table[i]; one; one = one->next) {
      if (one->freeze_look) freeze_over(one, false);
      if (one->copying == NULL) continue;
      work_give_up(one->copying->work);
      thaw_after(one);
    }
}

/* Notes beside the disk which layer it becomes, before it does: the client may be dead before it has stored the answer. */
static void note_sealed(const struct sandbox *sandbox, bool whole) {
  char note[PATH_MAX + ID_MAX + 32], layer[300];
  path_of(sandbox->id, "sealed", note, sizeof note);
  snprintf(layer, sizeof layer, "%s%s", sandbox->capture_to, layer_below(whole));
  unlink(note);
  if (symlink(layer, note) < 0) say("cannot write %s: %s", note, strerror(errno));
}

/* Turns the disk into the layer as it is, after the agent has ended. */
void finish_capture(struct sandbox *sandbox) {
  char disk[PATH_MAX + ID_MAX + 32], upper[PATH_MAX + ID_MAX + 32], target[PATH_MAX + 300];
  sandbox->capturing = false;
  if (sandbox->copying) {
    /* The sandbox ended during the copy: its disk is no longer the requested state. */
    work_give_up(sandbox->copying->work);
    sandbox->copying = NULL;
    answer_error(&sandbox->capture, "copy", "it ended while it was copied");
    sandbox->capture.seq[0] = 0;
    return;
  }
  path_of(sandbox->id, "disk", disk, sizeof disk);
  path_of(sandbox->id, "disk/upper", upper, sizeof upper);
  /* A rename cannot cross the border of a subvolume, so a subvolume moves as a whole. */
  bool whole = is_subvolume(disk);
  snprintf(target, sizeof target, "%s/%s%s", settings.base, sandbox->capture_to, whole ? "/disk" : "/fs");
  note_sealed(sandbox, whole);
  if (rename(whole ? disk : upper, target) < 0) answer_error(&sandbox->capture, "seal", "%s", strerror(errno));
  else {
    if (!whole) janitor_discard(disk);
    answer_captured(sandbox, "sealed", whole, NULL);
  }
  sandbox->capture.seq[0] = 0;
}

/*
 * Makes a layer of the files written so far. Small: copied while all processes are stopped. Large, and only the agent runs: the
 * agent is ended and the disk itself becomes the layer, at no cost; the caller starts the agent anew on top. Large and busy:
 * copied while all processes are stopped.
 */
void do_capture(const struct request *request, const struct fields *fields) {
  const char *to = field(fields, "to"), *id = id_of(fields);
  struct sandbox *sandbox = id ? *place_of(id) : NULL;
  if (to == NULL || to[0] == '/' || strstr(to, "..") || strlen(to) >= sizeof sandbox->capture_to)
    return answer_error(request, "invalid", "to");
  if (sandbox == NULL || (sandbox->state != LIVE && sandbox->state != DEAD))
    return answer_error(request, "gone", "it does not run");
  if (sandbox->capturing || sandbox->freeze_look) return answer_error(request, "busy", "it is being copied");
  sandbox->capturing = true;
  sandbox->capture = *request;
  janitor_make_room();
  sandbox->seal = number(fields, "seal", 1) != 0;
  snprintf(sandbox->capture_to, sizeof sandbox->capture_to, "%s", to);
  if (sandbox->state == LIVE && cgroups_can_freeze()) freeze(sandbox, true);
  else capture_still(sandbox);
}

/* Returns whether few bytes wait to be written out. A copy of a subvolume then takes less time than a new start of the agent: a
 * move makes the disk slow for all. */
static bool little_is_unwritten(void) {
  char line[128];
  long kb, unwritten = 0;
  FILE *file = fopen("/proc/meminfo", "re");
  if (file == NULL) return false;
  while (fgets(line, sizeof line, file))
    if (sscanf(line, "Dirty: %ld", &kb) == 1 || sscanf(line, "Writeback: %ld", &kb) == 1) unwritten += kb;
  fclose(file);
  return unwritten < LITTLE_KB;
}

/* Captures a sandbox whose processes are stopped, if they can be stopped at all. */
static void capture_still(struct sandbox *sandbox) {
  char disk[PATH_MAX + ID_MAX + 32], upper[PATH_MAX + ID_MAX + 32], image[PATH_MAX + ID_MAX + 32], target[PATH_MAX + 300];
  struct tally tally = {0, 0};
  path_of(sandbox->id, "disk", disk, sizeof disk);
  path_of(sandbox->id, "disk/upper", upper, sizeof upper);
  bool is_image = disk_is_image(sandbox->id, image, sizeof image), whole = !is_image && is_subvolume(disk);
  bool seal = !is_image && sandbox->seal && sandbox->state == LIVE && !sandbox->frozen && slot_count(sandbox->slot) == 1 &&
              !(whole && little_is_unwritten()) && tree_exceeds(upper, SMALL_FILES, SMALL_BYTES, &tally);
  snprintf(target, sizeof target, "%s/%s%s", settings.base, sandbox->capture_to, whole ? "/disk" : "/fs");
  struct job job = {.to = target, .from = upper, .image = is_image ? image : NULL, .subvolume = whole ? disk : NULL};
  if (!seal) return copy(sandbox, &job);
  sandbox->discard = false;
  sandbox_end(sandbox);
}

static void worked(void *context, bool ok, const struct tally *tally, const char *error) {
  struct request *request = context;
  if (ok) answer_ok(request, "\tfiles=%lld\tbytes=%lld", tally->files, tally->bytes);
  else answer_error(request, "copy", "%s", error);
  free(request);
}

/* Makes one layer with the content that a chain of layers shows. */
void do_flatten(const struct request *request, const struct fields *fields) {
  struct launch layers = {0};
  char target[PATH_MAX + 300];
  const char *to = field(fields, "to");
  struct request *copy = malloc(sizeof *copy);
  if (copy == NULL || to == NULL || to[0] == '/' || strstr(to, "..") || strlen(to) > 200 ||
      !read_layers(fields, &layers) || !read_host_parts(fields, &layers) || layers.layer_count < 2) {
    free(copy);
    return answer_error(request, "invalid", "to or layers");
  }
  *copy = *request;
  snprintf(target, sizeof target, "%s/%s", settings.base, to);
  struct job job = {.to = target, .layers = &layers};
  work_start(&job, worked, copy);
}

static bool below_base(const char *name) {
  return name && name[0] && name[0] != '/' && strstr(name, "..") == NULL && strlen(name) <= 200;
}

/* Measures the bytes of a layer that was made without a count: a disk that became one. */
void do_measure(const struct request *request, const struct fields *fields) {
  char path[PATH_MAX + 300];
  const char *layer = field(fields, "layer");
  struct request *copy = malloc(sizeof *copy);
  if (copy == NULL || !below_base(layer)) {
    free(copy);
    return answer_error(request, "invalid", "layer");
  }
  *copy = *request;
  snprintf(path, sizeof path, "%s/%s", settings.base, layer);
  struct job job = {.measure = path, .to = path};
  work_start(&job, worked, copy);
}

/* Answers when all writes so far to the file system of the base are on the disk. */
void do_flush(const struct request *request) {
  struct request *copy = malloc(sizeof *copy);
  if (copy == NULL) return answer_error(request, "flush", "%s", strerror(errno));
  *copy = *request;
  struct job job = {.flush = settings.base, .to = settings.base};
  work_start(&job, worked, copy);
}

/* Unpacks a layer from a tar archive that lies below the base. */
void do_unpack(const struct request *request, const struct fields *fields) {
  char source[PATH_MAX + 300], target[PATH_MAX + 300];
  const char *from = field(fields, "from"), *to = field(fields, "to");
  struct request *copy = malloc(sizeof *copy);
  if (copy == NULL || !below_base(from) || !below_base(to)) {
    free(copy);
    return answer_error(request, "invalid", "from or to");
  }
  *copy = *request;
  snprintf(source, sizeof source, "%s/%s", settings.base, from);
  snprintf(target, sizeof target, "%s/%s", settings.base, to);
  struct job job = {.to = target, .archive = source,
                    .bounds = {number(fields, "entries", 0), number(fields, "bytes", 0), number(fields, "marks", 0) != 0}};
  work_start(&job, worked, copy);
}
