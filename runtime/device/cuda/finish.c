// Each device has two threads that wait for the end of launched work, the finishers: one for segments and one for
// copies, so that neither delays the other. Each handles work in the order of its launch, because the values of a
// timeline semaphore only increase.
#include <stdlib.h>
#include <sys/prctl.h>

#include "runtime/base/clock.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/finish.h"
#include "runtime/device/cuda/flag.h"
#include "runtime/device/cuda/staging.h"
#include "runtime/device/wait.h"

enum {
  SPIN_NS = 200000,
  NAP_NS = 20000,
  ASK_NS = 1000000,
  LATE_NS = 300000000,
  CLOCK_AGE_NS = 1000000000,
  LONG_NS = 1000000000,
  GONE = -1
};

static void end_free(struct tfc_cuda_end *end) {
  if (!end) return;
  for (uint32_t i = 0; i < end->mark_count; i++) tfc_cuda_mark_release(end->marks[i]);
  for (uint32_t i = 0; i < end->timing_count; i++) {
    tfc_cuda_mark_release(end->timings[i].begin);
    tfc_cuda_mark_release(end->timings[i].end);
  }
  free(end->timings);
  tfc_cuda_staging_give(end->device, end->staging);
  free(end);
}

// Stores which nodes a segment has that takes long, for the error message about a process that hangs
// (runtime/exec/where.h).
static void note_long(const struct tfc_cuda_end *end, bool on) {
  if (!end || !end->first || !end->step || !end->step->spans) return;
  struct tfc_span *span = &end->step->spans[end->device->base.index];
  if (on) {
    tfc_step_note_stop(end->step, end->device->base.index, end->first, end->last);
  } else if (!tfc_step_stopped(end->step)) {
    atomic_store(&span->next, 0);
    atomic_store(&span->last, 0);
  }
}

// Asks CUDA whether the event is reached, for a mark with a flag: a device that is lost writes none.
static int ask(struct tfc_cuda_device *d, const struct tfc_cuda_mark *mark) {
  const int error = d->api->event_query(mark->event);
  if (error) return error;
  // The flag is written next, as a rule within a microsecond.
  const int64_t begin = tfc_now_ns();
  while (!tfc_cuda_flag_reached(mark) && tfc_cuda_flags_used(d)) {
    if (tfc_now_ns() - begin > LATE_NS) tfc_cuda_flags_distrust(d);
    tfc_sleep_ns(NAP_NS);
  }
  return 0;
}

// Returns when the event is reached, or with an error. It spins first, because the end of a step must be seen without
// delay.
static int await(struct tfc_cuda_device *d, const struct tfc_cuda_mark *mark, const struct tfc_cuda_end *end) {
  // Sleeps must have the exact length: by default Linux adds up to 50 us, which would be part of every step's time.
  static _Thread_local bool sharp;
  int64_t begin = tfc_now_ns(), asked = begin;
  bool noted = false;
  for (;;) {
    for (int i = 0; i < 8; i++) {
      int error = TFC_CUDA_NOT_READY;
      if (!mark->flag || !tfc_cuda_flags_used(d))
        error = d->api->event_query(mark->event);
      else if (tfc_cuda_flag_reached(mark))
        error = TFC_CUDA_OK;
      else if (i == 0 && tfc_now_ns() - asked > ASK_NS)
        error = ask(d, mark), asked = tfc_now_ns();
      if (error != TFC_CUDA_NOT_READY) {
        if (noted) note_long(end, false);
        return error;
      }
      // pauses between queries, because a query holds a lock inside CUDA that launches need
      for (int k = 0; k < 32; k++) tfc_pause();
    }
    // The device is lost: no event will be reached.
    if (atomic_load_explicit(&d->dead, memory_order_relaxed)) return GONE;
    const int64_t waited = tfc_now_ns() - begin;
    if (waited <= SPIN_NS) continue;
    if (waited > LONG_NS && !noted) note_long(end, noted = true);
    if (!sharp) sharp = prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0;
    tfc_sleep_ns(NAP_NS);
  }
}

// returns the time in ticks at which the mark was reached; 0: not known
static uint64_t date(struct tfc_cuda_device *d, const struct tfc_cuda_mark *mark) {
  float ms = 0;
  pthread_mutex_lock(&d->clock_lock);
  int error = d->clock.mark ? d->api->event_elapsed(d->clock.mark->event, mark->event, &ms) : 1;
  uint64_t ticks = d->clock.ticks;
  pthread_mutex_unlock(&d->clock_lock);
  return error ? 0 : ticks + (uint64_t)(int64_t)((double)ms * 1e6 / tfc_ns_per_tick());
}

static void run_end(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  struct tfc_cuda_end *end = e->data;
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  int error = tfc_cuda_enter(d->api, d->ordinal);
  for (uint32_t i = 0; i < end->mark_count && !error; i++) error = await(d, end->marks[i], end);
  struct tfc_step *step = end->step;
  if (error && step) tfc_step_fail(step, error == GONE ? tfc_cuda_check_alive(d) : tfc_cuda_error(d, error, "running"));
  char *target = !error && !(step && tfc_step_stopped(step)) ? end->host_target : NULL;
  for (struct tfc_cuda_staging *piece = end->staging; target && piece; target += piece->bytes, piece = piece->next)
    memcpy(target, piece->data, piece->bytes);
  for (uint32_t i = 0; !error && end->trace && i < end->timing_count; i++) {
    const struct tfc_cuda_timing *t = &end->timings[i];
    if (!t->end) continue; // the event could not be recorded
    tfc_trace_add(end->trace, (tfc_trace_kind)t->kind, t->id, device->index, date(d, t->begin), date(d, t->end),
                  t->bytes);
  }
  if (!error && end->trace && end->host_dated)
    tfc_trace_add(end->trace, TFC_TRACE_TRANSFER, end->host_id, device->index, end->host_begin, tfc_ticks(),
                  end->host_traced_bytes);
  if (end->span && step && step->spans) step->spans[device->index].end = tfc_ticks();
  atomic_fetch_sub(&d->unfinished, 1);
  end_free(end);
}

tfc_status tfc_cuda_finish(struct tfc_queue *queue, struct tfc_cuda_end *end, const struct tfc_timepoint *signals,
                           uint32_t signal_count) {
  struct tfc_cuda_device *d = end->device;
  atomic_fetch_add(&d->unfinished, 1);
  tfc_status s = tfc_queue_submit(
      queue, &(struct tfc_queue_entry){.run = run_end, .data = end, .signal_count = signal_count}, NULL, signals);
  if (s) {
    atomic_fetch_sub(&d->unfinished, 1);
    end_free(end);
  }
  return s;
}

static tfc_status set_clock(struct tfc_cuda_device *d) { // the caller holds clock_lock
  struct tfc_cuda_mark *mark = NULL;
  int error = 0;
  TFC_RETURN_IF_ERROR(tfc_cuda_mark_record(d->timed, d->compute, &mark, &error));
  error = await(d, mark, NULL); // the device is idle, so this takes a few microseconds
  uint64_t now = tfc_ticks();
  if (error) {
    tfc_cuda_mark_release(mark);
    return error == GONE ? tfc_cuda_check_alive(d) : tfc_cuda_error(d, error, "dating its clock");
  }
  tfc_cuda_mark_release(d->clock.mark);
  d->clock.mark = mark;
  d->clock.ticks = now;
  return NULL;
}

tfc_status tfc_cuda_clock_set(struct tfc_cuda_device *d, const struct tfc_step *step) {
  tfc_status s = NULL;
  pthread_mutex_lock(&d->clock_lock);
  const struct tfc_cuda_clock *c = &d->clock;
  bool old = !c->mark || tfc_ticks_to_ns(tfc_ticks()) - tfc_ticks_to_ns(c->ticks) > CLOCK_AGE_NS;
  bool first = !c->mark || c->step != step->id;
  d->clock.step = step->id;
  if (old && first && (!c->mark || !atomic_load(&d->unfinished))) s = set_clock(d);
  pthread_mutex_unlock(&d->clock_lock);
  return s;
}
