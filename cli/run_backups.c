#include "cli/run_backups.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef enum replica_state { IDLE, COMPUTES, HAS_COMPUTED, ENDS } replica_state;
struct replica {
  struct run_backups *all;
  pthread_t thread;
  replica_state state;
  int64_t step;  // of which it computes, or has computed, gradients
  int64_t place; // among all that have computed, by time
  tfc_status status;
  bool chosen;
};
struct run_backups {
  struct run_backups_calls calls;
  pthread_mutex_t lock;
  pthread_cond_t begins, ends; // a replica begins; a replica has computed
  struct replica *replicas;
  uint32_t count, wanted, threads;
  int64_t step, computed;
  struct run_backups_counts counts;
  _Atomic bool cancel; // for the replicas
};

static void *serve(void *arg) {
  struct replica *r = arg;
  struct run_backups *b = r->all;
  pthread_mutex_lock(&b->lock);
  while (r->state != ENDS) {
    if (r->state != COMPUTES) {
      pthread_cond_wait(&b->begins, &b->lock);
      continue;
    }
    pthread_mutex_unlock(&b->lock);
    tfc_status s = b->calls.compute(b->calls.arg, (uint32_t)(r - b->replicas), &b->cancel);
    pthread_mutex_lock(&b->lock);
    r->status = s;
    r->place = b->computed++;
    if (r->state == COMPUTES) r->state = HAS_COMPUTED;
    pthread_cond_signal(&b->ends);
  }
  pthread_mutex_unlock(&b->lock);
  return NULL;
}

tfc_status run_backups_start(const struct run_backups_calls *calls, uint32_t replicas, uint32_t backups,
                             struct run_backups **out) {
  struct run_backups *b = calloc(1, sizeof *b);
  if (b) b->replicas = calloc(replicas, sizeof *b->replicas);
  if (!b || !b->replicas) {
    free(b);
    return tfc_status_no_memory("replicas");
  }
  b->calls = *calls;
  b->count = replicas, b->wanted = replicas - backups;
  pthread_mutex_init(&b->lock, NULL);
  pthread_cond_init(&b->begins, NULL);
  pthread_cond_init(&b->ends, NULL);
  for (uint32_t i = 0; i < replicas; i++) {
    b->replicas[i].all = b;
    if (pthread_create(&b->replicas[i].thread, NULL, serve, &b->replicas[i])) {
      run_backups_end(b);
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "a thread for a replica cannot be started");
    }
    b->threads++;
  }
  *out = b;
  return NULL;
}

static void begin(struct run_backups *b, struct replica *r) {
  r->state = COMPUTES;
  r->step = b->step;
  pthread_cond_broadcast(&b->begins);
}

// Waits until a replica has computed something, with the lock held. A signal to the program sets only a flag, so that
// is looked for now and then.
static void await(struct run_backups *b) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 50000000;
  if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
  pthread_cond_timedwait(&b->ends, &b->lock, &until);
  if (b->calls.cancel && atomic_load(b->calls.cancel)) atomic_store(&b->cancel, true);
}

// Calls accept or drop without the lock; the replica is idle then.
static tfc_status leave(struct run_backups *b, struct replica *r, bool accept) {
  const uint32_t number = (uint32_t)(r - b->replicas);
  tfc_status s = r->status;
  r->status = NULL;
  r->chosen = false;
  pthread_mutex_unlock(&b->lock);
  if (s)
    s = tfc_status_annotate(s, "replica %u", number);
  else
    s = (accept ? b->calls.accept : b->calls.drop)(b->calls.arg, number);
  pthread_mutex_lock(&b->lock);
  r->state = IDLE;
  if (!s) ++*(accept ? &b->counts.applied : &b->counts.dropped);
  return s;
}

// Drops what came late, with the lock held. `again`: these replicas begin with the current step.
static tfc_status drop_late(struct run_backups *b, bool again) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < b->count && !s; i++) {
    struct replica *r = &b->replicas[i];
    if (r->state != HAS_COMPUTED || (again && r->step == b->step && !r->status)) continue;
    s = leave(b, r, false);
    if (!s && again) begin(b, r);
  }
  return s;
}

// Marks the replicas that were first in this step. False: there are not enough of them yet.
static bool choose(struct run_backups *b) {
  for (uint32_t chosen = 0; chosen < b->wanted; chosen++) {
    struct replica *first = NULL;
    for (uint32_t i = 0; i < b->count; i++) {
      struct replica *r = &b->replicas[i];
      if (r->state == HAS_COMPUTED && r->step == b->step && !r->chosen && (!first || r->place < first->place))
        first = r;
    }
    if (!first) {
      for (uint32_t i = 0; i < b->count; i++) b->replicas[i].chosen = false;
      return false;
    }
    first->chosen = true;
  }
  return true;
}

tfc_status run_backups_step(struct run_backups *b) {
  tfc_status s = NULL;
  pthread_mutex_lock(&b->lock);
  b->step++;
  for (uint32_t i = 0; i < b->count; i++)
    if (b->replicas[i].state == IDLE) begin(b, &b->replicas[i]);
  for (;;) {
    TFC_TRY(s, drop_late(b, true));
    if (choose(b)) break;
    await(b);
  }
  for (uint32_t i = 0; i < b->count; i++)
    if (b->replicas[i].chosen) TFC_TRY(s, leave(b, &b->replicas[i], true));
  pthread_mutex_unlock(&b->lock);
  s = b->calls.apply(b->calls.arg);
  pthread_mutex_lock(&b->lock);
out:
  pthread_mutex_unlock(&b->lock);
  return s;
}

tfc_status run_backups_rest(struct run_backups *b) {
  tfc_status s = NULL;
  pthread_mutex_lock(&b->lock);
  for (bool computes = true; computes && !s;) {
    s = drop_late(b, false);
    computes = false;
    for (uint32_t i = 0; i < b->count; i++) computes |= b->replicas[i].state >= COMPUTES;
    if (computes && !s) await(b);
  }
  pthread_mutex_unlock(&b->lock);
  return s;
}

struct run_backups_counts run_backups_counts(const struct run_backups *b) {
  return b->counts;
}

void run_backups_end(struct run_backups *b) {
  if (!b) return;
  pthread_mutex_lock(&b->lock);
  atomic_store(&b->cancel, true);
  for (uint32_t i = 0; i < b->count; i++) b->replicas[i].state = ENDS;
  pthread_cond_broadcast(&b->begins);
  pthread_mutex_unlock(&b->lock);
  for (uint32_t i = 0; i < b->threads; i++) {
    pthread_join(b->replicas[i].thread, NULL);
    tfc_status_free(b->replicas[i].status);
  }
  pthread_cond_destroy(&b->begins);
  pthread_cond_destroy(&b->ends);
  pthread_mutex_destroy(&b->lock);
  free(b->replicas);
  free(b);
}
