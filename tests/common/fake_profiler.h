// For all fake profilers: the region that a launching thread has marked, and records with a correlation id each.
#ifndef TFC_TESTS_COMMON_FAKE_PROFILER_H
#define TFC_TESTS_COMMON_FAKE_PROFILER_H

#include <stdatomic.h>

#include "profiler/gpu.h"
#include "runtime/base/clock.h"

static struct tfc_activity *fake_activity;
static _Atomic uint32_t fake_correlations;
static _Atomic bool fake_recording = true;
static _Thread_local uint64_t fake_marked;
static _Thread_local int64_t fake_marked_at;

static tfc_status fake_start(struct tfc_activity *activity) {
  fake_activity = activity;
  return NULL;
}
static void fake_push(uint64_t external) {
  fake_marked = external;
  fake_marked_at = tfc_now_ns();
}
// Records `work` for the region that the thread has marked, with a correlation id of its own.
static inline void fake_add(struct tfc_activity_work *work) {
  if (!atomic_load(&fake_recording)) return;
  work->correlation = atomic_fetch_add(&fake_correlations, 1) + 1;
  tfc_activity_correlate(fake_activity, work->correlation, fake_marked);
  tfc_activity_add(fake_activity, work);
}
static tfc_status fake_flush(void) {
  return NULL;
}
static tfc_status fake_record(bool on) {
  atomic_store(&fake_recording, on);
  return NULL;
}

#endif
