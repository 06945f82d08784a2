/*
 * sandboxer-spawner: starts, watches and ends the OCI runtime for every sandbox of one state directory, so that the Node process
 * never forks. See README.md for the protocol and for the content of each file.
 */
#ifndef SPAWNER_H
#define SPAWNER_H

#include "zygote/birth.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SPAWNER_PROTOCOL 1
#define ID_MAX 160
#define LINE_MAX_BYTES 32768
#define FIELDS_MAX 32
#define LAYERS_MAX 64
#define HOST_MAX 8
#define VOLUMES_MAX 16
#define VOLUME_NAME_MAX 64
#define RANGE_SIZE 65536u

struct settings {
  char base[PATH_MAX];    /* <state_dir>/local */
  char runtime[PATH_MAX]; /* crun */
  char group[64];         /* name of our cgroup below each controller */
  char unified[PATH_MAX]; /* version 2: the cgroup that holds the group; empty: version 1 */
  char agent[PATH_MAX];   /* the agent's binary, copied to a path that reveals nothing */
  char usermap[256];      /* rootless: "uid:first:count" of subordinate ids, empty as root */
  char build[80];
  bool no_cgroups;
  bool io_weight; /* the scheduler of the disk knows weights */
  bool early; /* the runtime is loaded ahead */
  int pool;
  int linger_ms;
  uint32_t storage; /* owner of files of a sandbox's root at rest, in the spawner's user namespace */
  bool idmap;       /* each sandbox sees stored files through an id-mapped mount of its own */
};
extern struct settings settings;

/* ---- main.c ---- */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t now_ms(void);
void *share(size_t size);
void watch_fd(int fd, uint32_t events, void (*handle)(void *, uint32_t), void *context);
void unwatch_fd(int fd);
void schedule_deadlines(void);
void consider_leaving(void);
extern bool leaving;

/* ---- control.c: requests are lines "seq\tverb\tkey=value…" ---- */
struct request {
  int client; /* index and generation: a client that has gone gets no answer */
  unsigned generation;
  char seq[24];
};
struct fields {
  int count;
  char *key[FIELDS_MAX];
  char *value[FIELDS_MAX];
};
const char *field(const struct fields *fields, const char *key);
long long number(const struct fields *fields, const char *key, long long otherwise);
void answer_ok(const struct request *request, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_error(const struct request *request, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tell_all(const char *format, ...) __attribute__((format(printf, 1, 2)));
void open_control(void);
void close_control(void);
int count_clients(void);

/* ---- cgroup.c, slot*.c: slots are cgroups, each for one sandbox at a time ---- */
struct limits {
  long long memory; /* bytes; -1: none */
  long long pids;
  long long cpu; /* thousandths of a processor */
};
/* Resources used in a slot; -1 where there is no counter. */
struct use {
  long long cpu_us;
  long long peak; /* bytes of memory at the most */
};
struct keeper {
  int socket; /* 0: there is no zygote */
  pid_t pid;  /* 0: the zygote has not sent it yet */
  unsigned born;
  bool loaded; /* the zygote is a loaded runtime and has only that one to give */
};
struct slot {
  int index;
  bool used;
  bool made;
  struct keeper keeper;
  struct limits limits;
  struct use before; /* the counters when it was taken: they may run on from sandbox to sandbox */
  long long oom_before;
  unsigned left, tidied; /* how many sandboxes have left it; the value of `left` when it was last emptied */
};
void cgroups_open(void);
void cgroups_close(void);
const char *cgroups_describe(void);
bool cgroups_usable(void);
bool cgroups_can_freeze(void);
struct slot *slot_take(void);
struct slot *slot_claim(int index, long long cpu_before);
void slot_give_back(struct slot *slot);
int slot_join(const struct slot *slot);
void slots_tidy(void);
int slot_limit(struct slot *slot, const struct limits *limits);
int slot_freeze(const struct slot *slot, bool frozen);
int slot_ask_freeze(const struct slot *slot, bool frozen);
int slot_froze(const struct slot *slot, bool frozen);
int slot_count(struct slot *slot);
void slot_kill(struct slot *slot);
void slot_stats(const struct slot *slot, char *text, size_t size);
void slot_places(const struct slot *slot, char *text, size_t size);
long long slot_oom_kills(const struct slot *slot);
struct use slot_use(const struct slot *slot);
void slots_sweep(void);

/* ---- keeper.c ---- */
pid_t slot_fork(struct slot *slot, const struct birth *birth, const int *fds, int count);
void keepers_begin(void);
bool keeper_reaped(pid_t pid);
bool slot_is_kept(const struct slot *slot);

/* ---- pass-fds.c ---- */
#define PASSED_MAX 8
int send_with(int socket, const void *bytes, size_t size, const int *fds, int count, int flags);
ssize_t receive_with(int socket, void *bytes, size_t size, int *fds, int most, int flags);
void keep_only(int *fds, int count);

/* ---- disk.c: disks of limited size ---- */
int disk_mount(const char *image, const char *target);
bool disk_is_image(const char *id, char *path, size_t size);

/* ---- subvolume.c: disks that are copied at once ---- */
int disk_directory(const char *path);
bool is_subvolume(const char *path);
bool on_subvolumes(void);
int subvolume_copy(const char *from, const char *to);
int subvolume_remove(const char *path);

/* ---- scatter.c ---- */
void scatter_below(const char *directory);

/* ---- launcher.c: a process that waits in its slot and mount namespace to become the runtime ---- */
struct launcher {
  pid_t pid;     /* that of the runtime which it becomes */
  char name[40]; /* of the container, and of its socket until there is a sandbox */
  int socket, boot, error; /* the spawner's ends */
  int config, say;         /* write ends: its configuration; errors in it */
  int pidfd;               /* for a mounter that has to end it */
  bool early;
  struct slot *slot;
};
struct launch {
  char id[ID_MAX];
  char host[HOST_MAX][16]; /* directories of the host's root that lie below the layers: "usr" … */
  int host_count;
  char volumes[VOLUMES_MAX][VOLUME_NAME_MAX];
  bool read_only[VOLUMES_MAX];
  int volume_count;
  bool fleeting; /* its disk is discarded with it: mounted volatile, never flushed */
  char runtime[512]; /* empty: the usual one */
  char flags[256];
  int layer_count;
  char layers[LAYERS_MAX][256]; /* below base, topmost first; last, so that only the used ones are sent */
};
enum { FD_USERNS, FD_HOST_USERNS, FD_COUNT };
void launchers_start(void);
void launchers_fill(void);
bool launcher_take(struct launcher *launcher, bool other);
int launcher_send(struct launcher *launcher, const struct launch *launch, const int fds[FD_COUNT]);
bool launcher_reaped(pid_t pid);
void launcher_worked(void);
void launchers_end(void);
void launcher_begin(const struct birth *birth, const int *fds) __attribute__((noreturn));
void launcher_hand_over(struct launcher *launcher);

/* ---- mounter.c ---- */
void mounters_start(void);
void mounters_end(void);
bool mounter_reaped(pid_t pid);
int mounter_ask(const struct launcher *launcher, const struct launch *launch, const int users[FD_COUNT]);
void mount_root(const struct launch *launch, const char *target, int runtime, int userns, int host_userns);
void give_up(int runtime, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* ---- overlay.c ---- */
int mount_overlay(const char *target, const char *options, const char *work, bool fleeting);

/* ---- runtime.c ---- */
bool runtime_is_crun(const char *path);
int runtime_open_place(const char *path, const char *id, char *bundle, size_t size);
int runtime_show_mounts(const char *path);
void runtime_exec(const char *path, char *more, const char *container, const char *bundle, bool early);
void runtime_exec_keeper(void);

/* ---- binds.c ---- */
int mount_binds(const char *id, char *failed, size_t size);

/* ---- targets.c ---- */
int check_targets(const char *id, const char *root_path, char *why, size_t size);

/* ---- idmap.c ---- */
int userns_for_range(uint32_t first);
int userns_take(uint32_t first);
void userns_refill(void);
int attach_idmapped(const char *source, const char *target, int userns);
int attach_from(int at, const char *source, const char *target, int userns, uint64_t attributes);
int attach_with(const char *source, const char *target, int userns, uint64_t attributes);
int attach_sealed(const char *file);
bool idmap_works(const char *directory);

/* ---- capabilities.c ---- */
int capabilities_keep(uint64_t kept);
int mount_as_nobody(const char *lower, const char *empty, const char *target);

/* ---- host-parts.c: directories of the host, written into a layer of the sandbox ---- */
bool read_host_parts(const struct fields *fields, struct launch *launch);
const char *mount_host_parts(const struct launch *launch, const char *disk, const char *root, int userns);

/* ---- volume.c ---- */
bool read_volumes(const struct fields *fields, struct launch *launch);
const char *mount_volumes(const struct launch *launch, int userns);
void do_volume(const struct request *request, const struct fields *fields);

/* ---- sandbox.c, sandbox-*.c ---- */
void sandboxes_adopt(void);
int sandboxes_count(void);
void sandbox_reaped(pid_t pid, int status);
void sandboxes_deadlines(int64_t now);
int64_t sandboxes_next_deadline(void);
void do_create(const struct request *request, const struct fields *fields);
void do_destroy(const struct request *request, const struct fields *fields);
void do_freeze(const struct request *request, const struct fields *fields, bool frozen);
void do_extend(const struct request *request, const struct fields *fields);
void do_status(const struct request *request, const struct fields *fields);
void do_claim(const struct request *request, const struct fields *fields);
void do_capture(const struct request *request, const struct fields *fields);
void do_flatten(const struct request *request, const struct fields *fields);
void do_list(const struct request *request);
void captures_forsaken(int client);
void captures_end(void);

/* ---- inspect.c ---- */
void do_inspect(const struct request *request, const struct fields *fields);

/* ---- tree.c: whole trees ---- */
int tree_remove(const char *path);
int tree_remove_at(int parent, const char *name);
int tree_own(const char *path, uint32_t owner);
extern void (*tree_meanwhile)(void);

/* ---- tree-walk.c: of any depth ---- */
struct tally {
  long long files;
  long long bytes;
};
int tree_copy(const char *from, const char *to, struct tally *tally);
int tree_apply(const char *from, const char *to, struct tally *tally);
bool tree_exceeds(const char *path, long long files, long long bytes, struct tally *tally);

/* ---- file-copy.c ---- */
struct stat;
void close_kept(int fd);
int file_copy(const char *from, const char *to);
int copy_regular(int from, int to, const char *name, const struct stat *info);
int copy_xattrs(int from, int to);
int settle(int fd, const struct stat *info);
void copier_begin(void);
int copier_end(void);

/* ---- pack.c ---- */
int pack_layer(const char *from, const char *to, long long most, struct tally *tally);
void do_pack(const struct request *request, const struct fields *fields);
/* ---- unpack.c ---- */
struct unpack_bounds {
  long long entries, bytes;
  bool marks; /* names that begin with ".wh." remove something of a layer below */
};
int unpack_layer(const char *from, const char *to, const struct unpack_bounds *bounds, struct tally *tally);
void do_unpack(const struct request *request, const struct fields *fields);
void do_measure(const struct request *request, const struct fields *fields);
void do_flush(const struct request *request);

/* ---- work.c: what takes long, in processes of their own ---- */
void janitor_start(void);
void janitor_discard(const char *path);
void janitor_release(int fd);
void janitor_tidy_slots(void);
void janitor_make_room(void);
bool janitor_reaped(pid_t pid);
bool janitor_works(void);
void janitor_end(void);
typedef void (*work_done)(void *context, bool ok, const struct tally *tally, const char *error);
struct job {
  const char *to;
  const char *subvolume;       /* a disk to be copied at once … */
  const char *pack;            /* … a layer for the socket `to`, at most so many bytes … */
  long long most;
  const char *measure;         /* … a layer whose bytes are counted … */
  struct counted *disks;       /* disks that are watched, in memory that is shared … */
  int disk_count;
  const char *flush;           /* … a file system that is written out … */
  const char *from;            /* a directory of ours … */
  const char *image;           /* … or what lies on this disk … */
  const struct launch *layers; /* … or all of these as one … */
  const char *archive;         /* … or what this tar has */
  struct unpack_bounds bounds;
};
void work_flush(const char *path);
/* Returns the work until it is done; NULL when it could not begin, and `done` was called already. */
struct work *work_start(const struct job *job, work_done done, void *context);
void work_give_up(const struct work *work);
/* Reports the reason in the working process, where errno alone is not enough. Returns -1. */
int work_refused(int error, const char *why);

/* ---- rootless.c ---- */
int enter_user_namespace(const char *usermap);

#endif
