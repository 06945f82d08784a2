/* Event loop of one thread, one epoll: edge-triggered readiness, timers, tasks, and memory that lives until the turn is over. */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Io Io;
struct Io {
  int fd; /* -1 when closed */
  void (*ready)(Io *io, uint32_t events);
};

typedef struct Timer Timer;
struct Timer {
  uint64_t at;
  size_t slot; /* place in the heap + 1; 0 when not set */
  void (*fire)(Timer *timer);
};

typedef struct Task Task;
struct Task {
  Task *next;
  bool queued;
  void (*run)(Task *task);
};

#define OWNER(type, member, pointer) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

bool loop_start(void);
void loop_run(void); /* until loop_stop() */
void loop_stop(void);

/* Makes `fd` non-blocking. On failure it stays open and errno has the reason. */
bool io_open(Io *io, int fd, uint32_t events, void (*ready)(Io *, uint32_t));
void io_change(Io *io, uint32_t events); /* the events to wait for from now on */
void io_close(Io *io); /* closes the fd; harmless when it is closed */
void io_forget(Io *io); /* leaves the fd open */

uint64_t now_ms(void); /* monotonic */
bool timer_set(Timer *timer, uint64_t delay_ms);
void timer_stop(Timer *timer);

void task_queue(Task *task);
void task_cancel(Task *task);

void free_later(void *memory); /* at the end of this turn: events of the turn may still point to it */

#endif
