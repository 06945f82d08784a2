/* Programs that the agent started. They belong to the agent, not to a connection: another connection may attach to them. */
#ifndef PROCESS_H
#define PROCESS_H

#include "../agent.h"
#include "ring.h"

typedef struct Process Process;
typedef struct ProcessChannel ProcessChannel;

/* A channel that reads the output of a process. */
struct ProcessChannel {
  Channel ch;
  Process *process;
  ProcessChannel *next;
  uint64_t offset;
  uint32_t unacknowledged; /* input of this host that the program has not taken */
};

struct Process {
  Child child;
  Process *next, *prev;
  uint64_t seq;
  char id[40];
  char *command; /* argv, each with its NUL, cut */
  uint32_t argc;
  size_t command_len;
  uint64_t started_at, ended_at; /* ms since 1970; 0 while it runs */
  bool background, terminal, exited, timed_out, core, input_ended;
  int code, signo;
  pid_t pid;
  Io io[3]; /* input, output or terminal, errors */
  bool readable[3];
  int64_t quota[3]; /* bytes still accepted after the program has ended; -1: all */
  bool wide;        /* the pipe was made larger */
  int turn;         /* the stream to read next */
  Fifo input;
  Ring ring; /* background only */
  Task fill;
  Timer deadline, grace;
  ProcessChannel *channels;
};

Process *process_first(void); /* oldest first */
Process *process_find(const char *id);
Process *process_new(void); /* NULL when there are too many processes */
void process_add(Process *p);
void process_free(Process *p);
void process_ended(Process *p, int code, int signo, bool core);
uint64_t process_time(void); /* ms since 1970 */
bool process_input_open(const Process *p); /* the program may still get input */
bool process_over(const Process *p); /* ended, and all its output was taken */
void process_wake(Process *p);
bool process_channel(Process *p, Conn *c, uint32_t id, uint64_t offset, uint32_t window);

/* process-io.c */
void process_input_ready(Io *io, uint32_t events);
void process_output_ready(Io *io, uint32_t events);
void process_error_ready(Io *io, uint32_t events);
void process_terminal_ready(Io *io, uint32_t events);
void process_fill(Task *task);
void process_close_stream(Process *p, int stream);
bool process_pull(Channel *ch);
void process_feed(Process *p);

#endif
