#include "runtime/base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint32_t tfc_parallel_cores(void) {
  cpu_set_t set;
  uint32_t cores = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) cores = (uint32_t)CPU_COUNT(&set);
  FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
  long long quota, period;
  if (f && fscanf(f, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0) {
    long long whole = (quota + period - 1) / period;
    if (whole < cores) cores = whole > 1 ? (uint32_t)whole : 1;
  }
  if (f) fclose(f);
  return cores;
}

struct shared_work {
  atomic_uint next;
  uint32_t count;
  void (*work)(void *user, uint32_t i);
  void *user;
};
static void *worker(void *argument) {
  struct shared_work *w = argument;
  for (uint32_t i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) w->work(w->user, i);
  return NULL;
}

void tfc_parallel(uint32_t count, uint32_t threads, void (*work)(void *user, uint32_t i), void *user) {
  struct shared_work w = {.count = count, .work = work, .user = user};
  pthread_t *made = threads > 1 && count > 1 ? calloc(threads, sizeof *made) : NULL;
  uint32_t running = 0;
  if (made)
    while (running + 1 < threads && running + 1 < count && pthread_create(&made[running], NULL, worker, &w) == 0)
      running++;
  worker(&w);
  for (uint32_t i = 0; i < running; i++) pthread_join(made[i], NULL);
  free(made);
}

struct watched_work {
  struct shared_work work;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  uint32_t running;
};
static void *watched_worker(void *argument) {
  struct watched_work *w = argument;
  worker(&w->work);
  pthread_mutex_lock(&w->lock);
  if (--w->running == 0) pthread_cond_signal(&w->ended);
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

void tfc_parallel_watched(uint32_t count, uint32_t threads, void (*work)(void *user, uint32_t i), void *user,
                          void (*tick)(void *user), void *tick_user) {
  struct watched_work w = {.work = {.count = count, .work = work, .user = user}};
  pthread_t *made = tick ? calloc(threads, sizeof *made) : NULL;
  uint32_t started = 0;
  if (!made) {
    tfc_parallel(count, threads, work, user);
    if (tick) tick(tick_user);
    return;
  }
  pthread_mutex_init(&w.lock, NULL);
  pthread_cond_init(&w.ended, NULL);
  pthread_mutex_lock(&w.lock);
  while (started < threads && started < count && pthread_create(&made[started], NULL, watched_worker, &w) == 0)
    started++;
  w.running = started;
  while (w.running) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&w.ended, &w.lock, &until);
    pthread_mutex_unlock(&w.lock);
    tick(tick_user);
    pthread_mutex_lock(&w.lock);
  }
  pthread_mutex_unlock(&w.lock);
  for (uint32_t i = 0; i < started; i++) pthread_join(made[i], NULL);
  if (!started) worker(&w.work);
  pthread_cond_destroy(&w.ended);
  pthread_mutex_destroy(&w.lock);
  free(made);
}
