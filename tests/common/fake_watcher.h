// A profiler that watches the fake CUDA: it records every piece of work after it ran, with the correlation id of its
// launch and, if it was captured, with its node. As with CUPTI, each launching thread has its own buffer, and only a
// flush delivers records: those of the buffers in which every launch has finished.
//
// The recorded works of a captured segment are at most a microsecond apart, because the real distance would depend on
// the load of the machine. FAKE_GAP_NS=N: before the third work of each segment, its stream pauses for N ns.
#ifndef TFC_TESTS_COMMON_FAKE_WATCHER_H
#define TFC_TESTS_COMMON_FAKE_WATCHER_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/common/cuda_fake.h"
#include "tests/common/fake_profiler.h"

static void fake_pop(void) {
  fake_marked = 0;
}

// A record since the last flush: a piece of work, or (`external` not 0) the link between a launch and its region.
struct fake_record {
  struct tfc_activity_work work;
  uint64_t external;
};
struct fake_buffer { // of a thread, also after its end
  TFC_ARRAY(struct fake_record) records;
  uint64_t unfinished; // works that the thread has launched, and that have neither run nor been dropped yet
  struct fake_buffer *next;
};
enum { FAKE_FLYING = 1 << 16 }; // more launches are never unfinished
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_buffer *fake_buffers, *fake_launchers[FAKE_FLYING]; // launchers: by correlation
static _Thread_local struct fake_buffer *fake_mine;
static _Atomic int fake_lost_copies; // how many records of copies from now on never arrive

static void fake_keep(struct fake_buffer *buffer, const struct fake_record *record) { // under the lock
  if (!tfc_array_push(&buffer->records, *record)) tfc_activity_drop(fake_activity, 1);
}

static tfc_status fake_deliver(void) {
  pthread_mutex_lock(&fake_lock);
  for (struct fake_buffer *b = fake_buffers; b; b = b->next) {
    if (b->unfinished) continue;
    for (size_t i = 0; i < b->records.count; i++) {
      const struct fake_record *r = &b->records.data[i];
      if (r->external)
        tfc_activity_correlate(fake_activity, r->work.correlation, r->external);
      else
        tfc_activity_add(fake_activity, &r->work);
    }
    b->records.count = 0;
  }
  pthread_mutex_unlock(&fake_lock);
  return fake_flush();
}

static uint32_t fake_launched(uint64_t works) {
  const uint32_t correlation = atomic_fetch_add(&fake_correlations, 1) + 1;
  pthread_mutex_lock(&fake_lock);
  if (!fake_mine) {
    if (!(fake_mine = calloc(1, sizeof *fake_mine))) abort();
    fake_mine->next = fake_buffers;
    fake_buffers = fake_mine;
  }
  fake_mine->unfinished += works;
  fake_launchers[correlation % FAKE_FLYING] = fake_mine;
  if (fake_marked && fake_activity && atomic_load(&fake_recording))
    fake_keep(fake_mine, &(struct fake_record){.work.correlation = correlation, .external = fake_marked});
  pthread_mutex_unlock(&fake_lock);
  return correlation;
}

// Returns when a work of a segment is recorded to have begun: at most GAP_NS after the end of the work before it on
// this stream's thread, unless FAKE_GAP_NS asks for a pause there.
static int64_t fake_begin(const struct tfc_cuda_fake_seen *seen) {
  enum { GAP_NS = 1000, SLOW = 2 };
  static _Thread_local uint32_t segment, place;
  static _Thread_local int64_t end;
  const char *slow = getenv("FAKE_GAP_NS");
  int64_t start = seen->start_ns;
  place = segment == seen->correlation ? place + 1 : 0;
  segment = seen->correlation;
  if (place && !(slow && place == SLOW) && start > end + GAP_NS) start = end + GAP_NS;
  end = start + (seen->end_ns - seen->start_ns);
  if (slow && place == SLOW - 1) nanosleep(&(struct timespec){.tv_nsec = atol(slow)}, NULL);
  return start;
}

static void fake_ran(const struct tfc_cuda_fake_seen *seen) {
  static const struct {
    tfc_activity_kind kind;
    const char *name, *direction;
  } kinds[] = {[TFC_CUDA_FAKE_KERNEL] = {TFC_ACTIVITY_KERNEL, "fake kernel", ""},
               [TFC_CUDA_FAKE_COPIED] = {TFC_ACTIVITY_COPY, "copy DtoD", "DtoD"},
               [TFC_CUDA_FAKE_FILLED] = {TFC_ACTIVITY_SET, "fill", ""}};
  bool recorded = fake_activity && atomic_load(&fake_recording);
  if (seen->kind == TFC_CUDA_FAKE_COPIED && atomic_load(&fake_lost_copies) > 0)
    recorded = atomic_fetch_sub(&fake_lost_copies, 1) <= 0;
  const int64_t start = seen->graph_node && recorded ? fake_begin(seen) : seen->start_ns;
  if (seen->kind == TFC_CUDA_FAKE_DROPPED) {
    pthread_mutex_lock(&fake_lock);
    fake_launchers[seen->correlation % FAKE_FLYING]->unfinished--;
    pthread_mutex_unlock(&fake_lock);
    return;
  }
  struct tfc_activity_work w = {.kind = kinds[seen->kind].kind,
                                .start_ns = start,
                                .end_ns = start + (seen->end_ns - seen->start_ns),
                                .context = seen->context,
                                .stream = seen->stream,
                                .correlation = seen->correlation,
                                .graph_node = seen->graph_node,
                                .bytes = seen->bytes};
  snprintf(w.name, sizeof w.name, "%s", seen->name ? seen->name : kinds[seen->kind].name);
  snprintf(w.direction, sizeof w.direction, "%s", kinds[seen->kind].direction);
  pthread_mutex_lock(&fake_lock);
  struct fake_buffer *b = fake_launchers[seen->correlation % FAKE_FLYING];
  b->unfinished--;
  if (recorded) fake_keep(b, &(struct fake_record){.work = w});
  pthread_mutex_unlock(&fake_lock);
}

#endif
