/* Declarations that the parts of the agent share. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "wire/conn.h"

#define MAX_CHANNELS 4096
#define MAX_PROCESSES 4096
#define MAX_GROUPS 64
#define TEMPORARY_PREFIX ".sandboxer-"
#define MARKER "SANDBOXER_PROCESS="

typedef struct {
  bool init;       /* --init: the duties of PID 1 */
  bool privileged; /* may become other users */
  uid_t uid;
  gid_t gid;
  const char *user;        /* the default user; NULL: itself */
  const char *cwd;         /* the default directory; NULL: the home of the user */
  rlim_t open_files;       /* for children; 0: what the agent was given */
  struct rlimit own_files; /* the limit that the agent itself started with */
  int oom_score;           /* for children */
  int null_fd;
  char run_id[9]; /* distinguishes this run of the agent from others */
} Agent;

extern Agent agent;

/* main.c */
void agent_stdio_gone(void);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* caller.c: the host listens, the agent calls */
bool caller_start(const char *path);
void caller_taken(void); /* the waiting connection was greeted */
void caller_lost(void);  /* a connection ended before it was greeted */

/* users.c */
typedef struct {
  uid_t uid;
  gid_t gid;
  int ngroups;
  gid_t groups[MAX_GROUPS];
} Cred;

typedef struct {
  Cred cred;
  char name[64], home[1024], shell[256];
} User;

/* Resolves NULL or "" (the default of the connection), a name, or uid[:gid]. Returns 0 or ENOENT, EPERM, EINVAL. */
int user_resolve(const Conn *c, const char *spec, User *user);
const char *user_spec(const Conn *c, const char *spec); /* the user that an empty spec stands for; may be NULL */
void user_refuse(Conn *c, uint32_t id, const char *spec, int error);
/* Returns the directory where relative paths of this connection start. */
const char *default_dir(const Conn *c, const User *user);

/* privileges.c */
void fs_enter(const Cred *cred); /* file operations of this process are now those of that user */
void fs_leave(void);
int become(const Cred *cred); /* for good; raw system calls only. 0 or errno */
bool cut_capabilities(void);

/* confine.c: paths that may be read and executed, and paths where everything may be done; all others are closed */
#define MAX_CONFINED 32
typedef struct {
  const char *read[MAX_CONFINED], *write[MAX_CONFINED];
  size_t read_len, write_len;
} Confinement;
const char *confine(const Confinement *confinement); /* NULL, or the rule that cannot be enforced: then start no program */
int confine_look(int base, const char *path); /* 0, or why it may not be described */

/* confine-calls.c: allows connected pairs as the only unix sockets; for good, also for every program started later */
bool confine_calls(void);

/* child.c: processes that are waited for */
typedef struct Child Child;
struct Child {
  Child *next;
  pid_t pid; /* 0 when it was reaped */
  void (*ended)(Child *child, int status);
};

bool children_start(void);
void child_watch(Child *child, pid_t pid, void (*ended)(Child *, int));
void child_forget(Child *child);

/* spawn.c */
typedef struct {
  const char **argv;
  const char **env; /* with a free place at the end */
  const char *cwd;  /* NULL: the default */
  const char *base; /* where a relative cwd starts */
  const User *user;
  int in, out, err; /* out < 0: `in` is a terminal */
} SpawnPlan;

typedef struct {
  enum { SPAWN_OK, SPAWN_CWD, SPAWN_USER, SPAWN_EXEC, SPAWN_FORK } stage;
  int error;
} SpawnFailure;

bool spawn_start(void);
pid_t spawn_program(const SpawnPlan *plan, SpawnFailure *failure);

/* pty.c */
int pty_open(int *slave, unsigned cols, unsigned rows, const Cred *owner); /* the master, or -1 */
void pty_resize(int master, unsigned cols, unsigned rows);

/* tree.c */
/* Signals every process that carries the mark, and the session and the descendants of `root` unless it is 0. */
size_t tree_signal(const char *id, pid_t root, int signo);
void tree_kill(const char *id, pid_t root); /* SIGKILL until no process is left */

/* process.c, process-list.c */
void request_spawn(Conn *c, uint32_t id, Cursor *request);
void request_attach(Conn *c, uint32_t id, Cursor *request);
void request_processes(Conn *c, uint32_t id, Cursor *request);
void processes_end(void);
size_t processes_running(void);

/* files.c */
#define FILES_AS_ROOT 1
#define FILES_LEAVE_OUT 16 /* packing: unreadable entries are left out and listed at the end */
typedef struct {
  User user;
  int base; /* AT_FDCWD, or where a relative path starts: close it by place_close() */
} Place;
/* Enters the file system. Answers the host itself and returns false when the user does not exist. */
bool place_open(Conn *c, uint32_t id, uint8_t flags, const char *path, Place *place);
void place_close(Place *place); /* leaves the file system */
int open_base(const Conn *c, const User *user, const char *path);
bool put_entry(Builder *b, int dir, const char *name, const char *shown);
int rename_keeping(int from_base, const char *from, int to_base, const char *to); /* refuses what exists */
int make_parents(int base, const char *path); /* missing parents of path; 0 or errno */
void request_stat(Conn *c, uint32_t id, Cursor *request);
void request_list(Conn *c, uint32_t id, Cursor *request);
void request_mkdir(Conn *c, uint32_t id, Cursor *request);
void request_move(Conn *c, uint32_t id, Cursor *request);
void request_remove(Conn *c, uint32_t id, Cursor *request);

/* file-read.c, file-write.c */
void request_read(Conn *c, uint32_t id, Cursor *request);
void request_write(Conn *c, uint32_t id, Cursor *request);

/* tree-job.c: whole trees, in a helper process that has become the user */
typedef struct {
  enum { TREE_UNPACK, TREE_PACK, TREE_REMOVE, TREE_MOVE } what;
  uint8_t flags;
  const char *path;
  const char *to; /* TREE_MOVE */
  bool overwrite;
  uint32_t window;
} TreeRequest;
void tree_job(Conn *c, uint32_t id, const TreeRequest *request);
void request_unpack(Conn *c, uint32_t id, Cursor *request);
void request_pack(Conn *c, uint32_t id, Cursor *request);

/* Called in the helper process. They return 0 or an errno, and name the cause in `why`. */
typedef struct {
  int base; /* where a relative path starts */
  int data; /* the archive */
  uint64_t files;
  char why[200];
  bool leaves_out;
  uint64_t left_out;
  char left[3000]; /* the first left-out names, each with its NUL */
  size_t left_len;
  void (*opened)(void);
} TreeWork;
int unpack_tree(TreeWork *work, const char *path);
int pack_tree(TreeWork *work, const char *path);
int remove_tree(TreeWork *work, const char *path);
int move_tree(TreeWork *work, const char *from, const char *to, bool overwrite); /* by copy, between file systems */

/* beneath.c */
int open_beneath(int base, const char *path, int flags); /* never outside of base; fd or -errno */
int open_parent_beneath(int base, const char *path, bool make, const char **last);

/* watch.c, dial.c, listen.c */
void request_watch(Conn *c, uint32_t id, Cursor *request);
void request_dial(Conn *c, uint32_t id, Cursor *request);
void request_listen(Conn *c, uint32_t id, Cursor *request);
void request_handout(Conn *c, uint32_t id, Cursor *request);
/* Accepted connections that the host has not taken. A backlog lives until its listener and all its connections are gone. */
typedef struct {
  int waiting;
  Channel *listener; /* NULL when it is gone */
} Backlog;
void relay_accepted(Conn *c, uint32_t id, int fd, Backlog *backlog);
void relay_drop_waiting(Conn *c, const Backlog *backlog);
void backlog_leave(Backlog *backlog); /* a connection was taken or is gone */
int listen_socket(const char *spec, char *shown, size_t size); /* "tcp:127.0.0.1:80"; fd or -errno */
int boot_listen(const char *spec);                               /* kept for request_handout() */
size_t boot_listeners(int *fds, size_t max);

/* init.c */
bool init_network(bool any_ip);
void init_begin(void);
void report_ready(int fd);

/* relay.c */
#define EXIT_IMPOSTOR 4
/* The process that must be the listener; pid 0: any. */
typedef struct {
  pid_t pid;
  unsigned long long since; /* 0: whenever it started */
} ListenerPeer;
bool parse_listener(const char *text, ListenerPeer *listener);
unsigned long long process_since(pid_t pid);
int relay_stdio(const char *path, const ListenerPeer *listener);
int relay_sockets(int a, int b);
bool forward_add(const char *text);
int forward_run(void);

#endif
