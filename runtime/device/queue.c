// A submitter appends to `incoming` under a lock. The queue's thread swaps `incoming` with its own empty batch, so that
// neither waits long for the other. Only the queue's thread blocks on semaphores. Without streams it waits for one
// entry after the other; with streams it runs the first entry whose semaphores are reached.
#include "runtime/device/queue.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/device/wait.h"

void tfc_thread_prepare(void) {
  (void)tfc_float_mode_enter();
  void (*set_threads)(int) = NULL;
  *(void **)(&set_threads) = dlsym(RTLD_DEFAULT, "omp_set_num_threads"); // for libraries that are linked with OpenMP
  if (set_threads) set_threads(1);
}

static bool take(struct tfc_queue *q) { // moves new entries to `current`
  pthread_mutex_lock(&q->lock);
  struct tfc_queue_batch swap = q->current;
  q->current = q->incoming;
  q->incoming = swap;
  q->incoming.entries.count = q->incoming.points.count = 0;
  pthread_mutex_unlock(&q->lock);
  return q->current.entries.count > 0;
}

static bool wait_for_work(struct tfc_queue *q, uint32_t seen) {
  if (q->options.spin_ns > 0) {
    int64_t begin = tfc_now_ns();
    do {
      for (int i = 0; i < 32; i++) {
        if (atomic_load_explicit(&q->ready, memory_order_acquire) != seen) return true;
        tfc_pause();
      }
    } while (tfc_now_ns() - begin < q->options.spin_ns);
  }
  atomic_store(&q->asleep, 1);
  while (atomic_load(&q->ready) == seen && !atomic_load(&q->stop)) tfc_futex_wait(&q->ready, seen, -1);
  atomic_store(&q->asleep, 0);
  return atomic_load(&q->ready) != seen;
}

// Waits for all points. Returns the time at which the last of them was signalled (ticks; 0: it did not have to wait).
static uint64_t wait_all(struct tfc_queue *q, const struct tfc_timepoint *points, uint32_t count) {
  uint64_t since = 0;
  int64_t spin_ns = q->options.wait_spin_ns ? q->options.wait_spin_ns : q->options.spin_ns;
  for (uint32_t i = 0; i < count; i++) {
    if (tfc_semaphore_reached(points[i].semaphore, points[i].value)) continue;
    tfc_status s = tfc_semaphore_wait(points[i].semaphore, points[i].value, spin_ns, -1);
    tfc_status_free(s); // without a timeout it cannot fail
    since = atomic_load_explicit(&points[i].semaphore->stamp, memory_order_relaxed);
  }
  return since;
}

static void run_entry(struct tfc_queue *q, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  const struct tfc_timepoint *signals = q->current.points.data + e->first_point + e->wait_count;
  if (e->run) e->run(q->device, e, from, to);
  for (uint32_t k = 0; k < e->signal_count; k++) tfc_semaphore_signal(signals[k].semaphore, signals[k].value);
  tfc_semaphore_signal(q->done, ++q->ended);
}

// --- Streams ---------------------------------------------------------------------------------------------------------
// While steps of several streams are in flight, this runs the oldest entry that is ready and the first in its stream.
// New entries are added to the batch meanwhile. When no entry is left, the thread runs entries one by one again.
struct streams {
  size_t head[TFC_STREAMS]; // in q->current: the search for a stream's next entry begins here
  size_t first;             // all entries before this one have run
  uint32_t seen;            // value of q->ready when new entries were taken last
  int64_t idle_since;       // 0: not idle
};

static struct tfc_queue_entry *head_of(struct tfc_queue *q, struct streams *t, uint32_t stream) {
  size_t *at = &t->head[stream];
  while (*at < q->current.entries.count && q->current.entries.data[*at].stream != stream) ++*at;
  return *at < q->current.entries.count ? &q->current.entries.data[*at] : NULL;
}

static const struct tfc_timepoint *waits_for(const struct tfc_queue *q, const struct tfc_queue_entry *e) {
  const struct tfc_timepoint *points = q->current.points.data + e->first_point;
  for (uint32_t i = 0; i < e->wait_count; i++)
    if (!tfc_semaphore_reached(points[i].semaphore, points[i].value)) return &points[i];
  return NULL;
}

// Removes entries that have run, and takes new ones. If there is no memory for the new entries, they are taken later,
// when all others have run.
static void join_incoming(struct tfc_queue *q, struct streams *t) {
  struct tfc_queue_batch *c = &q->current, *in = &q->incoming;
  t->seen = atomic_load(&q->ready);
  if (t->first > c->entries.count / 2 && t->first < c->entries.count) {
    size_t points = c->entries.data[t->first].first_point;
    c->entries.count -= t->first, c->points.count -= points;
    memmove(c->entries.data, c->entries.data + t->first, c->entries.count * sizeof *c->entries.data);
    memmove(c->points.data, c->points.data + points, c->points.count * sizeof *c->points.data);
    for (size_t i = 0; i < c->entries.count; i++) c->entries.data[i].first_point -= points;
    for (uint32_t s = 0; s < TFC_STREAMS; s++) t->head[s] -= t->head[s] < t->first ? t->head[s] : t->first;
    t->first = 0;
  }
  pthread_mutex_lock(&q->lock);
  if (in->entries.count && tfc_array_reserve(&c->entries, c->entries.count + in->entries.count) &&
      tfc_array_reserve(&c->points, c->points.count + in->points.count)) {
    for (size_t i = 0; i < in->entries.count; i++) {
      c->entries.data[c->entries.count] = in->entries.data[i];
      c->entries.data[c->entries.count++].first_point += c->points.count;
    }
    for (size_t i = 0; i < in->points.count; i++) c->points.data[c->points.count + i] = in->points.data[i];
    c->points.count += in->points.count;
    in->entries.count = in->points.count = 0;
  }
  pthread_mutex_unlock(&q->lock);
}

enum { IDLE_YIELD_NS = 500000, IDLE_SLEEP_NS = 50000 };

// Called when no entry is ready: spins for a while. After that, it sleeps until the semaphore of the oldest entry is
// signalled, but not for longer than IDLE_SLEEP_NS, because another entry may become ready first.
static void idle(struct tfc_queue *q, struct streams *t, const struct tfc_timepoint *oldest) {
  int64_t now = tfc_now_ns(), spin_ns = q->options.wait_spin_ns ? q->options.wait_spin_ns : q->options.spin_ns;
  if (!t->idle_since) t->idle_since = now;
  if (now - t->idle_since >= spin_ns) {
    tfc_status_free(tfc_semaphore_wait(oldest->semaphore, oldest->value, 0, IDLE_SLEEP_NS));
    return;
  }
  if (now - t->idle_since > IDLE_YIELD_NS) sched_yield();
  for (int i = 0; i < 16; i++) tfc_pause();
}

static void run_streams(struct tfc_queue *q, size_t first) {
  struct streams t = {.first = first, .seen = atomic_load(&q->ready) - 1};
  for (uint32_t s = 0; s < TFC_STREAMS; s++) t.head[s] = first;
  for (;;) {
    if (atomic_load_explicit(&q->ready, memory_order_acquire) != t.seen) join_incoming(q, &t);
    struct tfc_queue_entry *next = NULL;
    const struct tfc_timepoint *oldest = NULL;
    size_t left = SIZE_MAX, waiting = SIZE_MAX;
    for (uint32_t s = 0; s < TFC_STREAMS; s++) {
      struct tfc_queue_entry *e = head_of(q, &t, s);
      if (!e) continue;
      if (t.head[s] < left) left = t.head[s];
      const struct tfc_timepoint *point = waits_for(q, e);
      if (!point && (!next || e < next)) next = e;
      if (point && t.head[s] < waiting) waiting = t.head[s], oldest = point;
    }
    if (left == SIZE_MAX) return;
    t.first = left;
    if (!next) {
      idle(q, &t, oldest);
      continue;
    }
    t.idle_since = 0;
    t.head[next->stream] = (size_t)(next - q->current.entries.data) + 1;
    run_entry(q, next, 0, 0);
  }
}

static void *run_thread(void *arg) {
  struct tfc_queue *q = arg;
  tfc_thread_prepare();
  for (;;) {
    uint32_t seen = atomic_load(&q->ready);
    if (!take(q)) {
      if (!wait_for_work(q, seen) && atomic_load(&q->stop)) break;
      continue;
    }
    for (size_t i = 0; i < q->current.entries.count; i++) {
      struct tfc_queue_entry *e = &q->current.entries.data[i];
      const struct tfc_timepoint *points = q->current.points.data + e->first_point;
      uint64_t from = 0, to = 0;
      if (q->options.by_itself) {
        e->points = points;
        e->run(q->device, e, 0, 0);
        tfc_semaphore_signal(q->done, ++q->ended);
        continue;
      }
      if (e->stream) {
        run_streams(q, i);
        break;
      }
      if (e->wait_count) {
        uint64_t begin = tfc_ticks();
        from = wait_all(q, points, e->wait_count);
        to = tfc_ticks();
        from = from == 0 ? to : from < begin ? begin : from > to ? to : from;
      }
      run_entry(q, e, from, to);
    }
    q->current.entries.count = q->current.points.count = 0;
  }
  return NULL;
}

tfc_status tfc_queue_init(struct tfc_queue *q, struct tfc_device *device, const struct tfc_queue_options *options) {
  *q = (struct tfc_queue){.device = device, .options = *options};
  pthread_mutex_init(&q->lock, NULL);
  TFC_RETURN_IF_ERROR(tfc_semaphore_create(&q->done));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 8u << 20);
  if (options->cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < options->cpu_count; i++) CPU_SET(options->cpus[i], &set);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  }
  int failed = pthread_create(&q->thread, &attributes, run_thread, q);
  pthread_attr_destroy(&attributes);
  if (failed) return tfc_status_make(TFC_UNAVAILABLE, "%s: no thread for it (%d)", device->info.name, failed);
  char name[16];
  snprintf(name, sizeof name, "%.15s", options->name);
  pthread_setname_np(q->thread, name);
  q->started = true;
  return NULL;
}

void tfc_queue_deinit(struct tfc_queue *q) {
  if (q->started) {
    tfc_queue_drain(q);
    atomic_store(&q->stop, true);
    atomic_fetch_add(&q->ready, 1);
    tfc_futex_wake(&q->ready, 1);
    pthread_join(q->thread, NULL);
  }
  tfc_semaphore_free(q->done);
  tfc_array_free(&q->incoming.entries);
  tfc_array_free(&q->incoming.points);
  tfc_array_free(&q->current.entries);
  tfc_array_free(&q->current.points);
  if (q->device) pthread_mutex_destroy(&q->lock);
  *q = (struct tfc_queue){0};
}

tfc_status tfc_queue_submit(struct tfc_queue *q, const struct tfc_queue_entry *entry, const struct tfc_timepoint *waits,
                            const struct tfc_timepoint *signals) {
  struct tfc_queue_entry e = *entry;
  uint32_t count = e.wait_count + e.signal_count;
  pthread_mutex_lock(&q->lock);
  struct tfc_queue_batch *b = &q->incoming;
  bool room =
      tfc_array_reserve(&b->entries, b->entries.count + 1) && tfc_array_reserve(&b->points, b->points.count + count);
  if (room) {
    e.first_point = b->points.count;
    e.stream = e.step ? e.step->stream % TFC_STREAMS : 0;
    for (uint32_t i = 0; i < e.wait_count; i++) b->points.data[b->points.count++] = waits[i];
    for (uint32_t i = 0; i < e.signal_count; i++) b->points.data[b->points.count++] = signals[i];
    b->entries.data[b->entries.count++] = e;
    atomic_fetch_add_explicit(&q->submitted, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&q->lock);
  if (!room) return tfc_status_no_memory_for("the queue of %s", q->device->info.name);
  atomic_fetch_add(&q->ready, 1);
  if (atomic_load(&q->asleep)) tfc_futex_wake(&q->ready, 1);
  return NULL;
}

static void run_task(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)device, (void)from, (void)to;
  e->task->run(e->task);
}

tfc_status tfc_queue_post(struct tfc_queue *q, struct tfc_task *task) {
  return tfc_queue_submit(q, &(struct tfc_queue_entry){.run = run_task, .task = task}, NULL, NULL);
}

void tfc_queue_drain(struct tfc_queue *q) {
  if (!q->started) return;
  uint64_t last = atomic_load(&q->submitted);
  tfc_status_free(tfc_semaphore_wait(q->done, last, 0, -1));
}
