#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_PER_TURN 64

static int epoll_fd = -1;
static bool stopping;
static Timer **heap;
static size_t heap_len, heap_cap;
static Task *tasks, **tasks_end = &tasks;
static void **graves;
static size_t graves_len, graves_cap;

bool loop_start(void) {
  epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  return epoll_fd >= 0;
}

void loop_stop(void) { stopping = true; }

bool io_open(Io *io, int fd, uint32_t events, void (*ready)(Io *, uint32_t)) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || ((flags & O_NONBLOCK) == 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)) return false;
  struct epoll_event event = {.events = events | EPOLLET, .data = {.ptr = io}};
  if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) return false;
  io->fd = fd;
  io->ready = ready;
  return true;
}

void io_change(Io *io, uint32_t events) {
  struct epoll_event event = {.events = events | EPOLLET, .data = {.ptr = io}};
  (void)epoll_ctl(epoll_fd, EPOLL_CTL_MOD, io->fd, &event);
}

void io_forget(Io *io) {
  if (io->fd < 0) return;
  struct epoll_event unused = {0};
  (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, io->fd, &unused);
  io->fd = -1;
  io->ready = NULL;
}

void io_close(Io *io) {
  int fd = io->fd;
  if (fd < 0) return;
  io_forget(io);
  (void)close(fd);
}

uint64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void heap_put(size_t i, Timer *t) {
  heap[i] = t;
  t->slot = i + 1;
}

static void heap_up(size_t i, Timer *t) {
  while (i > 0 && heap[(i - 1) / 2]->at > t->at) {
    heap_put(i, heap[(i - 1) / 2]);
    i = (i - 1) / 2;
  }
  heap_put(i, t);
}

static void heap_down(size_t i, Timer *t) {
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= heap_len) break;
    if (child + 1 < heap_len && heap[child + 1]->at < heap[child]->at) child++;
    if (heap[child]->at >= t->at) break;
    heap_put(i, heap[child]);
    i = child;
  }
  heap_put(i, t);
}

void timer_stop(Timer *timer) {
  if (timer->slot == 0) return;
  size_t i = timer->slot - 1;
  timer->slot = 0;
  Timer *last = heap[--heap_len];
  if (last == timer) return;
  if (i > 0 && heap[(i - 1) / 2]->at > last->at) heap_up(i, last);
  else heap_down(i, last);
}

bool timer_set(Timer *timer, uint64_t delay_ms) {
  timer_stop(timer);
  if (heap_len == heap_cap) {
    size_t cap = heap_cap == 0 ? 64 : heap_cap * 2;
    Timer **grown = realloc(heap, cap * sizeof *grown);
    if (grown == NULL) return false;
    heap = grown;
    heap_cap = cap;
  }
  timer->at = now_ms() + delay_ms;
  heap_up(heap_len++, timer);
  return true;
}

static void fire_timers(void) {
  if (heap_len == 0) return;
  for (uint64_t now = now_ms(); heap_len > 0 && heap[0]->at <= now;) {
    Timer *timer = heap[0];
    timer_stop(timer);
    timer->fire(timer);
  }
}

void task_queue(Task *task) {
  if (task->queued) return;
  task->queued = true;
  task->next = NULL;
  *tasks_end = task;
  tasks_end = &task->next;
}

void task_cancel(Task *task) {
  if (!task->queued) return;
  task->queued = false;
  for (Task **at = &tasks; *at != NULL; at = &(*at)->next) {
    if (*at != task) continue;
    *at = task->next;
    if (tasks_end == &task->next) tasks_end = at;
    return;
  }
}

/* Runs tasks. Each leaves the common list only when it runs, so that task_cancel() finds it there until then. */
static void run_tasks(void) {
  size_t left = 0;
  for (Task *task = tasks; task != NULL; task = task->next) left++;
  for (; left > 0 && tasks != NULL; left--) {
    Task *task = tasks;
    task_cancel(task);
    task->run(task);
  }
}

void free_later(void *memory) {
  if (graves_len == graves_cap) {
    size_t cap = graves_cap == 0 ? 64 : graves_cap * 2;
    void **grown = realloc(graves, cap * sizeof *grown);
    if (grown == NULL) return; /* leaked rather than freed too early */
    graves = grown;
    graves_cap = cap;
  }
  graves[graves_len++] = memory;
}

void loop_run(void) {
  struct epoll_event events[EVENTS_PER_TURN];
  while (!stopping) {
    int timeout = -1;
    if (tasks != NULL) timeout = 0;
    else if (heap_len > 0) {
      uint64_t now = now_ms(), at = heap[0]->at;
      timeout = at <= now ? 0 : at - now > 60000 ? 60000 : (int)(at - now);
    }
    int n = epoll_wait(epoll_fd, events, EVENTS_PER_TURN, timeout);
    for (int i = 0; i < n; i++) {
      Io *io = events[i].data.ptr;
      if (io->ready != NULL) io->ready(io, events[i].events);
    }
    fire_timers();
    run_tasks();
    while (graves_len > 0) free(graves[--graves_len]);
  }
}
