// Puts the calls of a captured piece on several streams, so that the graph has branches that a GPU may run at the same
// time. Each call goes, in the order of the segment, to the stream on which it could start first, if every call took
// equally long. A call that depends on one of another stream waits for an event that is recorded after that one, unless
// its stream has waited for something later already.
//
// What all kernels of a stream share must not be shared by streams: every stream has scratch memory of its own, and
// what uses cuDNN stays on the first one, where its handle is.
#include "runtime/device/cuda/branches.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/none.h"
#include "runtime/device/cuda/failure.h"

// A call takes 1; waiting for another stream takes this much longer than following in one's own.
static const double join = 0.25;

struct planner {
  const struct tfc_prepared *p;
  struct tfc_cuda_branches *b;
  uint32_t begin, end;
  uint32_t *unit;                        // [calls] the first call of those with the same launches
  double *finish;                        // [calls]
  uint32_t (*clocks)[TFC_CUDA_BRANCHES]; // [calls] 1 + the last call of each stream that has ended before it ends
  uint32_t known[TFC_CUDA_BRANCHES][TFC_CUDA_BRANCHES]; // of each stream, where it is now
  double free[TFC_CUDA_BRANCHES];
  uint32_t tail[TFC_CUDA_BRANCHES]; // 1 + the last call of each stream; 0: none
  TFC_ARRAY(uint32_t) waits;
};

void tfc_cuda_branches_deinit(struct tfc_cuda_branches *b) {
  free(b->stream);
  free(b->event);
  free(b->wait_begin);
  free(b->waits);
  *b = (struct tfc_cuda_branches){0};
}

// How many calls, this one and those after it, share its launches.
static uint32_t together(const struct planner *l, uint32_t call) {
  const uint32_t n = l->p->calls[call].together, most = l->end - call;
  return n < 1 ? 1 : n < most ? n : most;
}

// Calls `fn` for each earlier unit of the piece on which the unit depends.
static void each_dependency(struct planner *l, uint32_t unit, void (*fn)(struct planner *l, uint32_t from, void *arg),
                            void *arg) {
  const struct tfc_segment_order *order = l->p->segment->order;
  for (uint32_t c = unit; c < unit + together(l, unit); c++)
    for (uint32_t k = order->begin[c]; k < order->end[c]; k++)
      if (order->ops[k] >= l->begin && order->ops[k] < unit) fn(l, l->unit[order->ops[k] - l->begin], arg);
}

static void delay(struct planner *l, uint32_t from, void *arg) {
  double *ready = arg;
  const uint32_t at = from - l->begin;
  for (uint32_t s = 0; s < TFC_CUDA_BRANCHES; s++) {
    const double when = l->finish[at] + (l->b->stream[at] == s ? 0 : join);
    if (when > ready[s]) ready[s] = when;
  }
}
static void follow(struct planner *l, uint32_t from, void *arg) { // marks streams whose last call it depends on
  bool *follows = arg;
  const uint32_t s = l->b->stream[from - l->begin];
  follows[s] |= l->tail[s] == from + 1;
}

static uint32_t choose(struct planner *l, uint32_t unit) {
  double ready[TFC_CUDA_BRANCHES] = {0};
  bool follows[TFC_CUDA_BRANCHES] = {0};
  uint32_t best = 0;
  for (uint32_t c = unit; c < unit + together(l, unit); c++)
    if (l->p->calls[c].uses_cudnn) return 0;
  for (uint32_t s = 0; s < TFC_CUDA_BRANCHES; s++) // a stream that does nothing yet joins the capture first
    ready[s] = l->tail[s] ? l->free[s] : s ? join : 0;
  each_dependency(l, unit, delay, ready);
  each_dependency(l, unit, follow, follows);
  for (uint32_t s = 1; s < TFC_CUDA_BRANCHES; s++)
    if (ready[s] < ready[best] || (ready[s] <= ready[best] && follows[s] && !follows[best])) best = s;
  return best;
}

static void learn(struct planner *l, uint32_t stream, const uint32_t *clock) {
  for (uint32_t s = 0; s < TFC_CUDA_BRANCHES; s++)
    if (clock[s] > l->known[stream][s]) l->known[stream][s] = clock[s];
}

struct waiting {
  uint32_t stream;
  uint32_t last[TFC_CUDA_BRANCHES]; // 1 + the last call of each other stream to wait for; 0: none
};
static void wait_for(struct planner *l, uint32_t from, void *arg) {
  struct waiting *w = arg;
  const uint32_t s = l->b->stream[from - l->begin];
  if (s != w->stream && from + 1 > w->last[s]) w->last[s] = from + 1; // a stream's later call ends after earlier ones
}

// Makes the stream wait for these calls, but for those that it comes after anyway.
static bool add_waits(struct planner *l, struct waiting *w) {
  for (uint32_t n = 0; n < TFC_CUDA_BRANCHES; n++) {
    uint32_t s = 0; // the latest of those that are left: what it comes after need not be waited for
    for (uint32_t k = 1; k < TFC_CUDA_BRANCHES; k++)
      if (w->last[k] > w->last[s]) s = k;
    const uint32_t call = w->last[s];
    w->last[s] = 0;
    if (!call || l->known[w->stream][s] >= call) continue;
    uint32_t *event = &l->b->event[call - 1 - l->begin];
    if (*event == TFC_NONE) *event = ++l->b->event_count;
    if (!tfc_array_push(&l->waits, *event)) return false;
    learn(l, w->stream, l->clocks[call - 1 - l->begin]);
  }
  return true;
}

static bool plan_units(struct planner *l) {
  struct tfc_cuda_branches *b = l->b;
  for (uint32_t unit = l->begin, n; unit < l->end; unit += n) {
    n = together(l, unit);
    const uint32_t at = unit - l->begin, s = choose(l, unit);
    double ready[TFC_CUDA_BRANCHES] = {0};
    struct waiting w = {.stream = s};
    ready[s] = l->free[s];
    each_dependency(l, unit, delay, ready);
    each_dependency(l, unit, wait_for, &w);
    b->wait_begin[at] = (uint32_t)l->waits.count;
    if (!add_waits(l, &w)) return false;
    // A stream becomes a part of the capture when it waits for an event of it, so it has to wait for at least one.
    if (s && !l->tail[s] && l->waits.count == b->wait_begin[at] && !tfc_array_push(&l->waits, 0)) return false;
    for (uint32_t c = at; c < at + n; c++) {
      if (c > at) b->wait_begin[c] = (uint32_t)l->waits.count;
      b->stream[c] = (uint8_t)s, b->event[c] = TFC_NONE, l->unit[c] = unit;
    }
    l->finish[at] = l->free[s] = ready[s] + 1;
    l->tail[s] = l->known[s][s] = unit + 1;
    memcpy(l->clocks[at], l->known[s], sizeof l->known[s]);
    if (s + 1 > b->count) b->count = s + 1;
    for (uint32_t c = unit; c < unit + n; c++)
      if (l->p->calls[c].scratch > b->scratch[s]) b->scratch[s] = l->p->calls[c].scratch;
  }
  struct waiting last = {0}; // the first stream comes after all others
  for (uint32_t s = 1; s < TFC_CUDA_BRANCHES; s++) last.last[s] = l->tail[s];
  b->wait_begin[l->end - l->begin] = (uint32_t)l->waits.count;
  if (!add_waits(l, &last)) return false;
  b->wait_begin[l->end - l->begin + 1] = (uint32_t)l->waits.count;
  return true;
}

bool tfc_cuda_branches_plan(const struct tfc_prepared *p, uint32_t begin, uint32_t end, struct tfc_cuda_branches *out) {
  const uint32_t n = end - begin;
  struct tfc_cuda_branches b = {.stream = malloc(n + 1u),
                                .event = malloc((n + 1u) * sizeof *b.event),
                                .wait_begin = malloc((n + 2u) * sizeof *b.wait_begin)};
  struct planner l = {.p = p,
                      .b = &b,
                      .begin = begin,
                      .end = end,
                      .unit = malloc((n + 1u) * sizeof *l.unit),
                      .finish = malloc((n + 1u) * sizeof *l.finish),
                      .clocks = malloc((n + 1u) * sizeof *l.clocks)};
  bool ok = b.stream && b.event && b.wait_begin && l.unit && l.finish && l.clocks && plan_units(&l);
  free(l.unit);
  free(l.finish);
  free(l.clocks);
  b.waits = l.waits.data; // taken over
  ok = ok && b.count > 1;
  if (ok)
    *out = b;
  else
    tfc_cuda_branches_deinit(&b);
  return ok;
}

// --- Capturing -----------------------------------------------------------------------------------------------------
tfc_cuda_stream tfc_cuda_branch_stream(const struct tfc_cuda_device *d, uint32_t stream) {
  return stream ? d->branches[stream - 1] : d->capture;
}

tfc_status tfc_cuda_branches_open(struct tfc_cuda_device *d, const struct tfc_cuda_branches *b) {
  for (uint32_t s = 1; s < b->count; s++)
    if (!d->branches[s - 1]) {
      pthread_mutex_lock(&d->green_lock); // a green context's handle may be used by one thread at a time
      int error = d->api->stream_create(d->partition, &d->branches[s - 1]);
      pthread_mutex_unlock(&d->green_lock);
      TFC_CUDA_TRY(d, error, "making a stream");
    }
  while (d->branch_events.count <= b->event_count) { // and one for the beginning
    tfc_cuda_event event = NULL;
    TFC_CUDA_TRY(d, tfc_cuda_event_make(d, false, &event), "making an event");
    if (!tfc_array_push(&d->branch_events, event)) {
      (void)d->api->event_destroy(event);
      return tfc_status_no_memory("capturing a segment");
    }
  }
  return NULL;
}

void tfc_cuda_branches_close(struct tfc_cuda_device *d) {
  for (int s = 0; s < TFC_CUDA_BRANCHES - 1; s++)
    if (d->branches[s]) (void)d->api->stream_destroy(d->branches[s]);
  for (size_t i = 0; i < d->branch_events.count; i++) (void)d->api->event_destroy(d->branch_events.data[i]);
  tfc_array_free(&d->branch_events);
}

tfc_status tfc_cuda_branch_begin(struct tfc_cuda_device *d) {
  TFC_CUDA_TRY(d, d->api->event_record(d->branch_events.data[0], d->capture), "capturing branches");
  return NULL;
}
tfc_status tfc_cuda_branch_wait(struct tfc_cuda_device *d, const struct tfc_cuda_branches *b, uint32_t at,
                                uint32_t stream) {
  for (uint32_t k = b->wait_begin[at]; k < b->wait_begin[at + 1]; k++)
    TFC_CUDA_TRY(d, d->api->stream_wait(tfc_cuda_branch_stream(d, stream), d->branch_events.data[b->waits[k]]),
                 "capturing branches");
  return NULL;
}
tfc_status tfc_cuda_branch_ended(struct tfc_cuda_device *d, const struct tfc_cuda_branches *b, uint32_t at) {
  if (b->event[at] == TFC_NONE) return NULL;
  TFC_CUDA_TRY(d, d->api->event_record(d->branch_events.data[b->event[at]], tfc_cuda_branch_stream(d, b->stream[at])),
               "capturing branches");
  return NULL;
}
