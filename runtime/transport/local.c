// A transport for tasks that are threads of one process: each task has a list of the messages that were sent to it. It
// is used in tests, also because the thread sanitizer cannot follow messages through MPI.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/str.h"
#include "runtime/transport/transport.h"

struct inbox {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct tfc_message *first, **last;
};
struct hub { // shared by all tasks
  uint32_t count;
  _Atomic uint32_t open;
  pthread_mutex_t lock;
  _Atomic bool failed;
  char *why; // set once, under the lock
  struct inbox *inboxes;
};
struct local {
  struct tfc_transport base;
  struct hub *hub;
};

static void hub_free(struct hub *h) {
  for (uint32_t i = 0; h->inboxes && i < h->count; i++) {
    struct inbox *in = &h->inboxes[i];
    for (struct tfc_message *m = in->first, *next; m; m = next) {
      next = m->next;
      tfc_message_free(m);
    }
    pthread_cond_destroy(&in->changed);
    pthread_mutex_destroy(&in->lock);
  }
  pthread_mutex_destroy(&h->lock);
  free(h->inboxes);
  free(h->why);
  free(h);
}

static tfc_status failure(struct hub *h) {
  if (!atomic_load(&h->failed)) return NULL;
  pthread_mutex_lock(&h->lock);
  tfc_status s = tfc_status_make(TFC_UNAVAILABLE, "%s", h->why ? h->why : "the job has failed");
  pthread_mutex_unlock(&h->lock);
  return s;
}

static tfc_status send(struct tfc_transport *t, uint32_t to, struct tfc_message *m) {
  struct hub *h = ((struct local *)t)->hub;
  if (to >= h->count) {
    tfc_message_free(m);
    return tfc_status_make(TFC_INTERNAL, "there is no task %u", to);
  }
  struct inbox *in = &h->inboxes[to];
  m->peer = t->rank;
  m->next = NULL;
  pthread_mutex_lock(&in->lock);
  *in->last = m;
  in->last = &m->next;
  pthread_cond_signal(&in->changed);
  pthread_mutex_unlock(&in->lock);
  return NULL;
}

static tfc_status flush(struct tfc_transport *t) { // every message is delivered when it is sent
  (void)t;
  return NULL;
}

static tfc_status receive(struct tfc_transport *t, struct tfc_message **out) {
  struct hub *h = ((struct local *)t)->hub;
  struct inbox *in = &h->inboxes[t->rank];
  pthread_mutex_lock(&in->lock);
  *out = in->first;
  if (in->first) {
    in->first = in->first->next;
    if (!in->first) in->last = &in->first;
  }
  pthread_mutex_unlock(&in->lock);
  return NULL;
}

static tfc_status progress(struct tfc_transport *t, int64_t wait_ns) {
  struct hub *h = ((struct local *)t)->hub;
  struct inbox *in = &h->inboxes[t->rank];
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t ns = until.tv_nsec + wait_ns;
  until.tv_sec += ns / 1000000000;
  until.tv_nsec = ns % 1000000000;
  int timed_out = 0;
  pthread_mutex_lock(&in->lock);
  while (!in->first && !timed_out && !atomic_load(&h->failed))
    timed_out = pthread_cond_timedwait(&in->changed, &in->lock, &until);
  pthread_mutex_unlock(&in->lock);
  return failure(h);
}

// there is nothing to do: in this transport a message always wakes a sleeping thread
static void attend(struct tfc_transport *t, bool begins) {
  (void)t;
  (void)begins;
}

static void fail(struct tfc_transport *t, int code, const char *why) {
  struct hub *h = ((struct local *)t)->hub;
  (void)code;
  pthread_mutex_lock(&h->lock);
  if (!h->why) h->why = tfc_format("%s", why);
  atomic_store(&h->failed, true);
  pthread_mutex_unlock(&h->lock);
  for (uint32_t i = 0; i < h->count; i++) {
    pthread_mutex_lock(&h->inboxes[i].lock);
    pthread_cond_signal(&h->inboxes[i].changed);
    pthread_mutex_unlock(&h->inboxes[i].lock);
  }
}

static void close_(struct tfc_transport *t) {
  struct hub *h = ((struct local *)t)->hub;
  free(t);
  if (atomic_fetch_sub(&h->open, 1) == 1) hub_free(h);
}

static const struct tfc_transport_type local_type = {.name = "local",
                                                     .send = send,
                                                     .flush = flush,
                                                     .receive = receive,
                                                     .progress = progress,
                                                     .attend = attend,
                                                     .fail = fail,
                                                     .close = close_};

tfc_status tfc_transport_local(uint32_t count, struct tfc_transport **out) {
  struct hub *h = calloc(1, sizeof *h);
  if (!h) return tfc_status_no_memory(NULL);
  pthread_mutex_init(&h->lock, NULL);
  h->inboxes = calloc(count, sizeof *h->inboxes);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  for (; h->inboxes && h->count < count; h->count++) {
    struct inbox *in = &h->inboxes[h->count];
    pthread_mutex_init(&in->lock, NULL);
    pthread_cond_init(&in->changed, &monotonic);
    in->last = &in->first;
  }
  pthread_condattr_destroy(&monotonic);
  uint32_t made = 0;
  for (; h->inboxes && made < count; made++) {
    struct local *l = calloc(1, sizeof *l);
    if (!l) break;
    *l = (struct local){.base = {.type = &local_type,
                                 .rank = made,
                                 .count = count,
                                 .beside = made,
                                 .beside_count = count,
                                 .hands_over = true},
                        .hub = h};
    out[made] = &l->base;
  }
  if (made == count && h->inboxes) {
    atomic_store(&h->open, count);
    return NULL;
  }
  while (made > 0) free(out[--made]);
  hub_free(h);
  return tfc_status_no_memory(NULL);
}
