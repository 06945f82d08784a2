/* Two of us for work that is mostly waiting for the kernel, one piece after another: whoever is free takes the next. */
#define _GNU_SOURCE
#include "spawner.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
  void (*work)(void *context, size_t index);
  void *context;
  size_t count;
  _Atomic size_t next;
  bool offered, taken, hired;
} job;

static void take_pieces(void) {
  for (size_t at; (at = atomic_fetch_add(&job.next, 1)) < job.count;) job.work(job.context, at);
}

static void *helper(void *unused) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!job.offered) pthread_cond_wait(&changed, &lock);
    job.offered = false;
    job.taken = true;
    pthread_mutex_unlock(&lock);
    take_pieces();
    pthread_mutex_lock(&lock);
    job.taken = false;
    pthread_cond_broadcast(&changed);
  }
  return unused;
}

/* Calls `work` for each of `count` pieces, in any order, two at a time; returns when all are done. Not from within `work`. */
void crew_share(void (*work)(void *context, size_t index), void *context, size_t count) {
  pthread_t thread;
  job.work = work;
  job.context = context;
  job.count = count;
  atomic_store(&job.next, 0);
  if (count > 1 && !job.hired) job.hired = pthread_create(&thread, NULL, helper, NULL) == 0;
  pthread_mutex_lock(&lock);
  job.offered = count > 1 && job.hired;
  if (job.offered) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  take_pieces();
  pthread_mutex_lock(&lock);
  /* What nobody has taken by now is done: the offer ends. */
  job.offered = false;
  while (job.taken) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}
