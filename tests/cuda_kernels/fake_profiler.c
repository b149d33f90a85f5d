// libtfc_cupti.so beside fake_plugin.c's libtfc_cuda.so: every marked region is one kernel, or one copy, that ran while
// it was marked.
#include <stdatomic.h>
#include <stdio.h>

#include "profiler/gpu.h"
#include "runtime/base/clock.h"

static struct tfc_activity *activity;
static _Atomic uint32_t correlations;
static _Atomic bool recording = true;
static _Thread_local uint64_t marked;
static _Thread_local int64_t marked_at;

static tfc_status start(struct tfc_activity *a) {
  activity = a;
  return NULL;
}
static void push(uint64_t external) {
  marked = external;
  marked_at = tfc_now_ns();
}
static void pop(void) {
  bool copy = marked & TFC_TRACE_UID_TRANSFER;
  uint32_t correlation = atomic_fetch_add(&correlations, 1) + 1;
  struct tfc_activity_work w = {.kind = copy ? TFC_ACTIVITY_COPY : TFC_ACTIVITY_KERNEL,
                                .start_ns = marked_at,
                                .end_ns = tfc_now_ns(),
                                .context = 1 + (uint32_t)(marked >> 32 & 0xff),
                                .stream = copy ? 14 : 13,
                                .correlation = correlation,
                                .bytes = copy ? 4 : 0};
  snprintf(w.name, sizeof w.name, "%s", copy ? "copy DtoD" : "fake kernel");
  snprintf(w.direction, sizeof w.direction, "%s", copy ? "DtoD" : "");
  if (!atomic_load(&recording)) return;
  tfc_activity_correlate(activity, correlation, marked);
  tfc_activity_add(activity, &w);
}
static tfc_status flush(void) {
  return NULL;
}
static tfc_status record(bool on) {
  atomic_store(&recording, on);
  return NULL;
}

const struct tfc_gpu_profiler tfc_gpu_profiler = {
    .name = "a fake profiler", .start = start, .push = push, .pop = pop, .flush = flush, .record = record};
