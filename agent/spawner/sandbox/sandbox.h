/* Declarations shared by sandbox.c and sandbox-*.c. */
#ifndef SANDBOX_H
#define SANDBOX_H

#include "../spawner.h"

#define WAITERS 4
#define LAUNCH_MS 30000
/* Prefix of a launcher's message that refuses a request. */
#define LAUNCH_REFUSED "refused: "
#define BUCKETS 1024

enum state { LAUNCHING, LIVE, ENDING, DEAD };
extern const char *const STATES[];

struct disk_use {
  long long bytes, files;
};

struct sandbox {
  char id[ID_MAX];
  char container[ID_MAX]; /* its name at the runtime: differs from the id when it was started ahead of its claim */
  enum state state;
  pid_t runtime; /* crun, until it has ended */
  pid_t pid;     /* the agent, as the host knows it */
  unsigned long long started;
  int pidfd, boot, error_fd;
  int mounts; /* mount namespace of an ending sandbox: kept until its release delays no request */
  struct slot *slot;
  struct use used;      /* use of its earlier runs */
  int64_t launch_by, ends_at;
  bool keep;    /* its disk outlives its end */
  bool discard; /* its directory goes with it */
  bool frozen, capturing;
  struct request freezing; /* the request that waits until it has stopped, or goes on; empty when that is for a copy */
  bool freeze_to, seal;
  int64_t freeze_look, freeze_by; /* time of the next check, and of the last; 0: no freeze is under way */
  struct {
    long long limit;      /* bytes of the machine's disk; -1: not watched */
    struct disk_use used; /* at the last count; -1: never counted */
    long long before;     /* its use when there was room: the difference is its growth since then */
    int restless;         /* counts in a row during which directories moved */
    enum { NOT_FULL, OVER_LIMIT, GREW_MOST, RESTLESS } full; /* why it was ended */
  } disk;
  struct copying *copying; /* the copy under way of this sandbox */
  bool called; /* its agent calls the host; it is live when its runtime has started it */
  char capture_to[256];
  char learn[64]; /* file to store the filter in that the runtime compiles */
  char error[1024];
  struct request creates[WAITERS], ends[WAITERS], capture;
  struct sandbox *next;
};

/* ---- sandbox-table.c ---- */
extern struct sandbox *table[BUCKETS];
struct sandbox **place_of(const char *id);
struct sandbox *sandbox_add(const char *id);
void sandbox_forget(struct sandbox *sandbox);
const char *id_of(const struct fields *fields);
void path_of(const char *id, const char *name, char *path, size_t size);

/* ---- sandbox-run.c ---- */
struct run {
  pid_t pid; /* 0: no process of this boot */
  unsigned long long started;
  int slot;
  long long ends_at, cpu_before;
  bool keep, frozen;
  int full;
  long long disk_limit;
  char container[ID_MAX];
};
void runs_begin(void);
bool run_read(const char *id, struct run *run);
void sandbox_save(const struct sandbox *sandbox);
unsigned long long start_time(pid_t pid);

/* ---- sandbox-start.c ---- */
bool read_layers(const struct fields *fields, struct launch *launch);

/* ---- sandbox.c ---- */
void keep_waiting(struct request waiters[WAITERS], const struct request *request);
const char *place_text(const struct sandbox *sandbox);
void close_fd(int *fd, bool watched);
void remove_runtime_state(const char *id);
void runtime_left(struct sandbox *sandbox);
void sandbox_settle(struct sandbox *sandbox);
void sandbox_end(struct sandbox *sandbox);
void sandbox_started(struct sandbox *sandbox);
void sandbox_booted(void *context, uint32_t events);
void agent_ended(void *context, uint32_t events);
const char *use_text(const struct sandbox *sandbox);

/* ---- sandbox-verbs.c ---- */
void finish_capture(struct sandbox *sandbox);
void freeze_over(struct sandbox *sandbox, bool done);
void freeze_looked(struct sandbox *sandbox, int64_t now);

/* ---- disk-watch.c ---- */
void disk_watch_passed(int64_t now);
int64_t disk_watch_next(void);

#endif
