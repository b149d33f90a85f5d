// A mark returns to its pool when its last reference is released. References are held by the device's finisher, by the
// timelines for which the mark was published, and by waiters. A pool exists longer than its device if marks are still
// in use. Its events are destroyed when the device is closed, because the green context in which they may have been
// made is destroyed then, too. No thread waits for an event by then: all work of the device has ended.
#include "runtime/device/cuda/event.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/libraries.h"
#include "runtime/device/wait.h"

struct tfc_cuda_pool {
  const struct tfc_cuda_api *api;
  char device[48];
  int ordinal;
  bool timing;
  struct tfc_cuda_device *owner; // exists until the pool is released
  pthread_mutex_t lock;
  struct tfc_cuda_mark *free;
  struct tfc_cuda_mark *made; // all marks
  uint64_t out;               // marks that are in use
  bool released;              // its creator has released the pool
};

tfc_status tfc_cuda_pool_create(struct tfc_cuda_device *d, bool timing, struct tfc_cuda_pool **out) {
  struct tfc_cuda_pool *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("events");
  p->api = d->api;
  p->ordinal = d->ordinal;
  p->owner = d;
  p->timing = timing;
  snprintf(p->device, sizeof p->device, "%s", d->base.info.name);
  pthread_mutex_init(&p->lock, NULL);
  *out = p;
  return NULL;
}

static void free_pool(struct tfc_cuda_pool *p) {
  while (p->made) {
    struct tfc_cuda_mark *m = p->made;
    p->made = m->made_before;
    free(m);
  }
  pthread_mutex_destroy(&p->lock);
  free(p);
}

void tfc_cuda_pool_release(struct tfc_cuda_pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  for (struct tfc_cuda_mark *m = p->made; m; m = m->made_before) {
    (void)p->api->event_destroy(m->event);
    m->event = NULL;
  }
  p->released = true;
  bool last = p->out == 0;
  pthread_mutex_unlock(&p->lock);
  if (last) free_pool(p);
}

static void give_back(struct tfc_cuda_mark *m) {
  struct tfc_cuda_pool *p = m->pool;
  pthread_mutex_lock(&p->lock);
  m->next = p->free;
  p->free = m;
  bool last = --p->out == 0 && p->released;
  pthread_mutex_unlock(&p->lock);
  if (last) free_pool(p);
}

// --- The context of events -------------------------------------------------------------------------------------------
int tfc_cuda_event_make(struct tfc_cuda_device *d, bool timing, tfc_cuda_event *out) {
  int error = tfc_cuda_enter(d->api, d->ordinal); // an event belongs to its device
  if (!error && d->green_events) error = tfc_cuda_green_enter(d);
  if (error) return error;
  error = d->api->event_create(timing, out);
  if (d->green_events) tfc_cuda_green_leave(d);
  return error;
}

static int try_event(struct tfc_cuda_device *d) {
  tfc_cuda_event event = NULL;
  int error = tfc_cuda_event_make(d, false, &event);
  if (error) return error;
  error = d->api->event_record(event, d->compute);
  (void)d->api->event_destroy(event);
  return error;
}
tfc_status tfc_cuda_events_open(struct tfc_cuda_device *d) {
  if (!d->partition) return NULL;
  int error = try_event(d);
  if (error == TFC_CUDA_INVALID_HANDLE && d->api->push) {
    (void)d->api->last_error();
    d->green_events = true;
    error = try_event(d);
  }
  TFC_CUDA_TRY(d, error, "recording an event on a stream of its green context");
  return NULL;
}

int tfc_cuda_library_event(struct tfc_cuda_library *library, bool timing, struct CUevent_st **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(library->device);
  if (d->pushed) return d->api->event_create(timing, out); // the caller is in the green context, for cuDNN
  return tfc_cuda_event_make(d, timing, out);
}

// --- Marks -----------------------------------------------------------------------------------------------------------
tfc_status tfc_cuda_mark_record(struct tfc_cuda_pool *p, tfc_cuda_stream stream, struct tfc_cuda_mark **out,
                                int *out_error) {
  int error = 0;
  pthread_mutex_lock(&p->lock);
  struct tfc_cuda_mark *m = p->free;
  if (m) p->free = m->next;
  p->out++;
  pthread_mutex_unlock(&p->lock);
  if (!m) {
    m = calloc(1, sizeof *m);
    if (m) {
      m->pool = p;
      error = tfc_cuda_event_make(p->owner, p->timing, &m->event);
      if (error) {
        free(m);
        m = NULL;
      }
    }
    pthread_mutex_lock(&p->lock);
    if (m) m->made_before = p->made, p->made = m;
    if (!m) p->out--;
    pthread_mutex_unlock(&p->lock);
    if (!m) {
      *out_error = error;
      return error ? tfc_status_make(TFC_UNAVAILABLE, "%s: no event: %s", p->device, p->api->error_text(error))
                   : tfc_status_no_memory_for("the events of %s", p->device);
    }
  }
  m->stream = stream;
  m->flag = NULL;
  atomic_store(&m->references, 1);
  if ((error = p->api->event_record(m->event, stream))) {
    give_back(m);
    *out_error = error;
    return tfc_status_make(TFC_UNAVAILABLE, "%s: recording an event: %s (%s)", p->device, p->api->error_text(error),
                           p->api->error_name(error));
  }
  *out = m;
  return NULL;
}

void tfc_cuda_mark_retain(struct tfc_cuda_mark *m) {
  atomic_fetch_add_explicit(&m->references, 1, memory_order_relaxed);
}

void tfc_cuda_mark_release(struct tfc_cuda_mark *m) {
  if (m && atomic_fetch_sub_explicit(&m->references, 1, memory_order_acq_rel) == 1) give_back(m);
}

// --- Timelines ---------------------------------------------------------------------------------------------------
struct entry {
  uint64_t value;
  struct tfc_cuda_mark *mark; // NULL: the value is for host code, so waiters wait on the host
};
struct timeline {
  pthread_mutex_t lock;
  uint64_t published; // all values up to this one have marks in `entries`, except those that the host has seen reached
  TFC_ARRAY(struct entry) entries;
};

static void timeline_free(void *native) {
  struct timeline *t = native;
  for (size_t i = 0; i < t->entries.count; i++) tfc_cuda_mark_release(t->entries.data[i].mark);
  tfc_array_free(&t->entries);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

static struct timeline *timeline_of(struct tfc_semaphore *s) {
  return __atomic_load_n(&s->native, __ATOMIC_ACQUIRE);
}

static struct timeline *timeline_make(struct tfc_semaphore *s) {
  struct timeline *t = timeline_of(s);
  if (t) return t;
  if (!(t = calloc(1, sizeof *t))) return NULL;
  pthread_mutex_init(&t->lock, NULL);
  s->native_free = timeline_free; // no lock is needed, because only one thread publishes values of a semaphore
  __atomic_store_n(&s->native, t, __ATOMIC_RELEASE);
  return t;
}

tfc_status tfc_cuda_publish(struct tfc_semaphore *s, uint64_t value, struct tfc_cuda_mark *const *marks, uint32_t count,
                            bool host_only) {
  struct timeline *t = timeline_make(s);
  if (!t) return tfc_status_no_memory("a semaphore");
  uint64_t reached = atomic_load(&s->value);
  bool room = true;
  pthread_mutex_lock(&t->lock);
  size_t kept = 0; // a value that the host has seen reached needs no mark
  for (size_t i = 0; i < t->entries.count; i++)
    if (t->entries.data[i].value > reached)
      t->entries.data[kept++] = t->entries.data[i];
    else
      tfc_cuda_mark_release(t->entries.data[i].mark);
  t->entries.count = kept;
  if ((room = tfc_array_reserve(&t->entries, kept + count + 1))) {
    for (uint32_t i = 0; i < count; i++) {
      tfc_cuda_mark_retain(marks[i]);
      t->entries.data[t->entries.count++] = (struct entry){value, marks[i]};
    }
    if (host_only) t->entries.data[t->entries.count++] = (struct entry){value, NULL};
    if (value > t->published) t->published = value;
  }
  pthread_mutex_unlock(&t->lock);
  if (!room) return tfc_status_no_memory("a semaphore");
  if (atomic_load(&s->waiters)) {
    atomic_fetch_add(&s->futex, 1);
    tfc_futex_wake(&s->futex, INT_MAX);
  }
  return NULL;
}

// Whether all values up to `value` have been published, and none of those that are not yet reached is for host code.
static bool covered(const struct timeline *t, uint64_t reached, uint64_t value) {
  if (t->published < value) return false;
  for (size_t i = 0; i < t->entries.count; i++) {
    const struct entry *e = &t->entries.data[i];
    if (!e->mark && e->value > reached && e->value <= value) return false;
  }
  return true;
}

// True: the stream waits for the value on the device, or it need not wait.
static bool wait_natively(const struct tfc_cuda_api *api, tfc_cuda_stream stream, struct tfc_semaphore *s,
                          uint64_t value, int *out_error) {
  struct timeline *t = timeline_of(s);
  if (!t) return false;
  pthread_mutex_lock(&t->lock);
  uint64_t reached = atomic_load(&s->value);
  bool done = covered(t, reached, value);
  for (size_t i = 0; done && i < t->entries.count && !*out_error; i++) {
    const struct entry *e = &t->entries.data[i];
    if (!e->mark || e->value <= reached || e->value > value || e->mark->stream == stream) continue;
    *out_error = api->stream_wait(stream, e->mark->event);
  }
  pthread_mutex_unlock(&t->lock);
  return done;
}

tfc_status tfc_cuda_wait(const struct tfc_cuda_api *api, tfc_cuda_stream stream, struct tfc_semaphore *s,
                         uint64_t value, bool on_host, int64_t spin_ns, uint64_t *out_from, int *out_error) {
  *out_from = 0;
  *out_error = 0;
  bool waited = false;
  int64_t begin = spin_ns > 0 ? tfc_now_ns() : 0;
  for (;;) {
    if (tfc_semaphore_reached(s, value)) {
      if (waited) *out_from = atomic_load_explicit(&s->stamp, memory_order_relaxed);
      return NULL;
    }
    if (!on_host && wait_natively(api, stream, s, value, out_error))
      return *out_error ? tfc_status_make(TFC_UNAVAILABLE, "waiting for another stream: %s (%s)",
                                          api->error_text(*out_error), api->error_name(*out_error))
                        : NULL;
    waited = true;
    if (spin_ns > 0 && tfc_now_ns() - begin < spin_ns) {
      for (int i = 0; i < 32 && !tfc_semaphore_reached(s, value); i++) tfc_pause();
      continue;
    }
    atomic_fetch_add(&s->waiters, 1);
    uint32_t seen = atomic_load(&s->futex);
    bool go = tfc_semaphore_reached(s, value);
    struct timeline *t = on_host ? NULL : timeline_of(s);
    if (!go && t) { // the value may have been published since the last check
      pthread_mutex_lock(&t->lock);
      go = covered(t, atomic_load(&s->value), value);
      pthread_mutex_unlock(&t->lock);
    }
    if (!go) tfc_futex_wait(&s->futex, seen, -1);
    atomic_fetch_sub(&s->waiters, 1);
  }
}
