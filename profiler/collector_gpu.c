// Collects the work of asynchronous devices (GPUs). An operation has two intervals: its dispatch on the host, and its
// execution on the device, from the start of its first kernel to the end of its last one. They are joined by node and
// kept apart.
#include <stdlib.h>
#include <string.h>

#include "profiler/collector_gpu.h"
#include "profiler/collector_launches.h"
#include "profiler/collector_private.h"
#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/str.h"
#include "runtime/device/driver.h"

// Records that are missing are waited for so long; that they never come is found out twice at most (MOST_UNTRUSTED).
enum { FLUSHES = 20, FLUSH_NAP_NS = 100000, MISSING_NS = 20000000, MOST_UNTRUSTED = 2 };
const int tfc_collector_flushes[TFC_COLLECTOR_FLUSHES] = {2, 5, FLUSHES};

static void mark_begin(struct tfc_trace_sink *sink, uint16_t device, uint32_t uid) {
  const struct tfc_collector *c = sink->owner;
  if (c->own[device]) c->profiler->push(tfc_activity_external(c->step, device, uid));
}
static void mark_end(struct tfc_trace_sink *sink, uint16_t device, uint32_t uid) {
  (void)uid;
  const struct tfc_collector *c = sink->owner;
  if (c->own[device]) c->profiler->pop();
}

static void name_graph_node(struct tfc_trace_sink *sink, uint16_t device, uint64_t graph_node, uint32_t uid) {
  (void)device;
  const struct tfc_collector *c = sink->owner;
  tfc_activity_map(c->activity, graph_node, uid);
}

static tfc_status use_events(struct tfc_collector *c) {
  size_t capacity = c->sink.buffers[0].capacity;
  c->sink.executions = calloc(c->device_count, sizeof *c->sink.executions);
  if (!c->sink.executions) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < c->device_count; i++) {
    if (!c->own[i]) continue;
    struct tfc_trace_buffer *b = &c->sink.executions[i];
    if (!(b->records = calloc(capacity, sizeof *b->records)))
      return tfc_status_no_memory_for("%zu trace records", capacity);
    b->capacity = capacity;
  }
  return NULL;
}

tfc_status tfc_collector_watch(struct tfc_collector *c, const struct tfc_device_set *set) {
  bool any = false;
  c->set = set;
  for (uint32_t d = 0; d < set->count; d++) any |= set->devices[d]->driver->on_its_own;
  if (!any) return NULL;
  if (!c->own && !(c->own = calloc(c->device_count + 1u, sizeof *c->own))) return tfc_status_no_memory(NULL);
  for (uint32_t d = 0; d < set->count && d < c->device_count; d++) c->own[d] = set->devices[d]->driver->on_its_own;
  tfc_status refusal = tfc_gpu_profiler_get(&c->profiler, &c->activity);
  free(c->timer);
  if (refusal) {
    c->profiler = NULL;
    c->timer = tfc_format("CUDA events: %s", tfc_status_message(refusal));
    tfc_status_free(refusal);
    TFC_RETURN_IF_ERROR(use_events(c));
  } else {
    c->timer = tfc_format("%s", c->profiler->name);
    c->sink.op_begin = mark_begin;
    c->sink.op_end = mark_end;
    c->sink.graph_node = name_graph_node;
  }
  return c->timer ? NULL : tfc_status_no_memory(NULL);
}

const char *tfc_collector_timer(const struct tfc_collector *c) {
  return c->timer;
}

bool tfc_collector_has_profiler(const struct tfc_collector *c) {
  return c->profiler != NULL;
}

bool tfc_collector_records_get(const struct tfc_collector *c, struct tfc_collector_records *out) {
  if (!c->profiler) return false;
  memcpy(out->flushes, c->flushes, sizeof out->flushes);
  tfc_activity_overlaps_get(c->activity, &out->overlaps);
  return true;
}

tfc_status tfc_collector_rest(struct tfc_collector *c) {
  c->traced = false;
  return c->profiler ? tfc_gpu_profiler_record(false) : NULL;
}

// Work before the first of several traced steps (initialisation, algorithms that were measured, captures) may have
// records that arrive late and would look like broken ones of the step. So this takes them now, and beginning the step
// forgets them. An error here is ignored, because draining the step reports it again.
static void take_late_records(struct tfc_collector *c) {
  size_t before = SIZE_MAX, works = 0;
  for (uint32_t d = 0; d < c->set->count && d < c->device_count; d++)
    if (c->own[d]) tfc_status_free(c->set->devices[d]->driver->synchronize(c->set->devices[d]));
  for (int i = 0; i < FLUSHES; i++) {
    tfc_status_free(c->profiler->flush());
    const size_t held = tfc_activity_held(c->activity, &works);
    if (held == before) break;
    before = held;
    tfc_sleep_ns(FLUSH_NAP_NS);
  }
}

void tfc_collector_reset_gpu(struct tfc_collector *c) {
  for (uint32_t i = 0; c->sink.executions && i < c->device_count; i++)
    c->sink.executions[i].count = c->sink.executions[i].dropped = 0;
  if (!c->profiler) return;
  if (!c->traced) take_late_records(c);
  c->traced = true;
  c->step++;
  tfc_activity_begin(c->activity, tfc_now_ns());
  tfc_status s = tfc_gpu_profiler_record(true);
  if (s) tfc_activity_drop(c->activity, 1); // so that draining the step reports a dropped record
  tfc_status_free(s);
}

// --- Times from the profiler's records ---------------------------------------------------------------------------
static int by_owner(const void *a, const void *b) {
  const struct tfc_activity_work *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_transfer(const void *a, const void *b) {
  const struct tfc_profile_transfer *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  if ((x->bytes == 0) != (y->bytes == 0)) return x->bytes == 0 ? 1 : -1;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

uint64_t tfc_collector_same_transfer(const struct tfc_step_profile *p, size_t first, size_t *out_next) {
  const struct tfc_profile_transfer *t = &p->transfers.data[first];
  uint64_t copies = 0;
  size_t i = first;
  for (; i < p->transfers.count && p->transfers.data[i].id == t->id && p->transfers.data[i].device == t->device; i++)
    copies += p->transfers.data[i].bytes > 0;
  *out_next = i;
  return copies;
}

// Sets the times of transfers. Works arrive in order of start, like the transfers with one number; additional works
// belong to the last of these. dated: for the first transfer of each number, how many works it had.
static void date_transfer(struct tfc_step_profile *p, const struct tfc_activity_work *w, size_t *dated) {
  const struct tfc_profile_transfer like = {.id = w->uid & ~TFC_TRACE_UID_TRANSFER, .device = w->device};
  size_t low = 0, high = p->transfers.count, next = 0;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const struct tfc_profile_transfer *t = &p->transfers.data[middle];
    if (t->device < like.device || (t->device == like.device && t->id < like.id))
      low = middle + 1;
    else
      high = middle;
  }
  if (low == p->transfers.count || p->transfers.data[low].id != like.id || p->transfers.data[low].device != like.device)
    return;
  const size_t copies = tfc_collector_same_transfer(p, low, &next), k = dated[low]++;
  if (!copies) return;
  struct tfc_profile_transfer *t = &p->transfers.data[low + (k < copies ? k : copies - 1)];
  int64_t end = t->start_ns + t->duration_ns;
  if (k < copies) { // the host's interval was longer
    t->start_ns = w->start_ns;
    end = w->end_ns;
  }
  if (w->end_ns > end) end = w->end_ns;
  t->duration_ns = end - t->start_ns;
}

// Waits for the records of the step. They arrive after the work has ended, some a little later, one launching thread
// after another. All have arrived when another request brings no more and there are at least as many as launches.
static tfc_status wait_for_records(struct tfc_collector *c) {
  for (uint32_t d = 0; d < c->set->count && d < c->device_count; d++)
    if (c->own[d]) TFC_RETURN_IF_ERROR(c->set->devices[d]->driver->synchronize(c->set->devices[d]));
  size_t before = 0, works = 0;
  const int64_t begin = tfc_now_ns();
  int flushes = 0;
  for (;;) {
    TFC_RETURN_IF_ERROR(c->profiler->flush());
    flushes++;
    const size_t held = tfc_activity_held(c->activity, &works);
    const bool missing = !works || works < c->launches;
    if (c->dispatches.count == 0 || (!missing && held == before)) break;
    if (flushes >= FLUSHES && (!missing || tfc_now_ns() - begin > MISSING_NS)) break;
    before = held;
    tfc_sleep_ns(FLUSH_NAP_NS);
  }
  int i = 0;
  while (i < TFC_COLLECTOR_FLUSHES && flushes > tfc_collector_flushes[i]) i++;
  c->flushes[i]++;
  return NULL;
}

// Makes the step invalid as a measurement. If a profiler fails again and again, the devices' own events replace it.
static tfc_status distrust(struct tfc_collector *c, tfc_status reason) {
  if (++c->untrusted < MOST_UNTRUSTED) return NULL;
  char *timer = tfc_format("CUDA events: %s cannot be relied on: %s", c->profiler->name, tfc_status_message(reason));
  tfc_status s = tfc_gpu_profiler_record(false);
  tfc_status_free(s);
  s = timer ? use_events(c) : tfc_status_no_memory(NULL);
  if (s) {
    free(timer);
    tfc_status_free(reason);
    return s;
  }
  free(c->timer);
  c->timer = timer;
  c->profiler = NULL;
  c->sink.op_begin = c->sink.op_end = NULL;
  c->sink.graph_node = NULL;
  return NULL;
}

tfc_status tfc_collector_drain_gpu(struct tfc_collector *c, const struct tfc_collector_names *names,
                                   struct tfc_step_profile *p) {
  if (!c->profiler) return NULL;
  struct tfc_activity_result *r = &c->activity_result;
  c->launches = 0;
  for (size_t i = 0; i < c->dispatches.count; i++) c->launches += c->dispatches.data[i].launches;
  for (size_t i = 0; i < p->transfers.count; i++)
    c->launches += c->own[p->transfers.data[i].device] && p->transfers.data[i].bytes > 0;
  TFC_RETURN_IF_ERROR(wait_for_records(c));
  TFC_RETURN_IF_ERROR(tfc_activity_take(c->activity, c->step, r));
  tfc_status trust = tfc_activity_trust(r);
  if (!trust && c->launches && r->works.count == 0)
    trust = tfc_status_make(TFC_ABORTED, "GPU trace: no record of the step's %zu operations: no measurement",
                            c->dispatches.count);
  if (p->transfers.count) qsort(p->transfers.data, p->transfers.count, sizeof *p->transfers.data, by_transfer);
  if (!trust) trust = tfc_collector_check_launches(c, names, p, r);
  if (trust) {
    TFC_RETURN_IF_ERROR(distrust(c, trust));
    return trust;
  }
  c->untrusted = 0;
  p->gpu_busy_ns = r->busy_ns;
  p->gpu_attributed_ns = r->attributed_ns;
  for (size_t i = 0; i < r->works.count; i++)
    if (!tfc_array_push(&p->works, r->works.data[i])) return tfc_status_no_memory(NULL);
  for (size_t i = 0; i < r->calls.count; i++)
    if (!tfc_array_push(&p->calls, r->calls.data[i])) return tfc_status_no_memory(NULL);
  if (r->works.count) qsort(r->works.data, r->works.count, sizeof *r->works.data, by_owner);
  size_t *dated = calloc(p->transfers.count + 1, sizeof *dated);
  if (!dated) return tfc_status_no_memory(NULL);
  tfc_status s = NULL;
  size_t last = SIZE_MAX; // the operation of the last work
  for (size_t i = 0; i < r->works.count && !s; i++) {
    const struct tfc_activity_work *w = &r->works.data[i];
    if (w->uid == TFC_NONE || w->device >= c->device_count) continue;
    if (w->uid & TFC_TRACE_UID_TRANSFER) {
      date_transfer(p, w, dated);
      continue;
    }
    struct tfc_profile_op *o = last == SIZE_MAX ? NULL : &p->ops.data[last];
    if (o && o->node == w->uid && o->device == w->device) {
      if (w->end_ns > o->start_ns + o->duration_ns) o->duration_ns = w->end_ns - o->start_ns;
      continue;
    }
    struct tfc_profile_op made = {w->start_ns, w->end_ns - w->start_ns, w->uid, w->device, -1, -1};
    if (!tfc_array_push(&p->ops, made)) s = tfc_status_no_memory(NULL);
    last = p->ops.count - 1;
  }
  free(dated);
  return s;
}

// --- Dispatch intervals of operations ----------------------------------------------------------------------------
int tfc_collector_by_node(const void *a, const void *b) {
  const struct tfc_profile_op *x = a, *y = b;
  if (x->device != y->device) return x->device < y->device ? -1 : 1;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

tfc_status tfc_collector_join_dispatches(struct tfc_collector *c, struct tfc_step_profile *p) {
  if (p->ops.count) qsort(p->ops.data, p->ops.count, sizeof *p->ops.data, tfc_collector_by_node);
  if (c->dispatches.count)
    qsort(c->dispatches.data, c->dispatches.count, sizeof *c->dispatches.data, tfc_collector_by_node);
  size_t ran = p->ops.count, k = 0;
  for (size_t i = 0; i < c->dispatches.count; i++) {
    struct tfc_profile_op d = c->dispatches.data[i].op;
    while (k < ran &&
           (p->ops.data[k].device < d.device || (p->ops.data[k].device == d.device && p->ops.data[k].node < d.node)))
      k++;
    if (k < ran && p->ops.data[k].device == d.device && p->ops.data[k].node == d.node) {
      p->ops.data[k].dispatch_ns = d.dispatch_ns;
      p->ops.data[k++].launched_ns = d.launched_ns;
      continue;
    }
    d.start_ns += d.duration_ns;
    d.duration_ns = 0;
    if (!tfc_array_push(&p->ops, d)) return tfc_status_no_memory(NULL);
  }
  return NULL;
}
