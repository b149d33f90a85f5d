#include <string.h>

#include "profiler/collector_private.h"
#include "profiler/idle.h"

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"

enum { SHORT_GAP_NS = 1000 }; // a shorter gap is the transition to the next operation, and no waiting

tfc_status tfc_collector_create(uint32_t device_count, size_t records_per_device, struct tfc_collector **out) {
  tfc_status s = NULL;
  struct tfc_collector *c = calloc(1, sizeof *c);
  // buffers of the devices, of the thread that runs steps, and of the copying threads
  if (!c || !(c->sink.buffers = calloc(2 * (size_t)device_count + 1, sizeof *c->sink.buffers)))
    TFC_TRY(s, tfc_status_no_memory(NULL));
  c->device_count = device_count;
  c->sink.buffer_count = device_count + 1;
  c->sink.copies = c->sink.buffers + device_count + 1;
  c->sink.owner = c;
  for (uint32_t i = 0; i < 2 * device_count + 1; i++) {
    struct tfc_trace_buffer *b = &c->sink.buffers[i];
    // The memory is written now, so that no page faults occur while a step is timed.
    if (!(b->records = malloc(records_per_device * sizeof *b->records)))
      TFC_TRY(s, tfc_status_no_memory_for("%zu trace records", records_per_device));
    memset(b->records, 0, records_per_device * sizeof *b->records);
    b->capacity = records_per_device;
  }
  *out = c, c = NULL;
out:
  tfc_collector_free(c);
  return s;
}

void tfc_collector_free(struct tfc_collector *c) {
  if (!c) return;
  for (uint32_t i = 0; c->sink.buffers && i < 2 * c->device_count + 1; i++) free(c->sink.buffers[i].records);
  free(c->sink.buffers);
  for (uint32_t i = 0; c->sink.executions && i < c->device_count; i++) free(c->sink.executions[i].records);
  free(c->sink.executions);
  tfc_activity_result_deinit(&c->activity_result);
  tfc_array_free(&c->dispatches);
  free(c->timer);
  free(c->own);
  free(c);
}

struct tfc_trace_sink *tfc_collector_sink(struct tfc_collector *c) {
  return &c->sink;
}

void tfc_collector_reset(struct tfc_collector *c) {
  for (uint32_t i = 0; i < 2 * c->device_count + 1; i++) c->sink.buffers[i].count = c->sink.buffers[i].dropped = 0;
  tfc_collector_reset_gpu(c);
}

bool tfc_collector_make_room(struct tfc_collector *c) {
  bool grown = false;
  for (uint32_t i = 0; i < 2 * c->device_count + 1; i++) {
    struct tfc_trace_buffer *b = &c->sink.buffers[i];
    size_t capacity = b->capacity + 2 * b->dropped;
    struct tfc_trace_record *records = b->dropped ? malloc(capacity * sizeof *records) : NULL;
    if (!records) continue; // nothing was dropped; or there is no memory, which draining reports
    memset(records, 0, capacity * sizeof *records);
    free(b->records);
    b->records = records;
    b->capacity = capacity;
    b->count = b->dropped = 0;
    grown = true;
  }
  return grown;
}

void tfc_step_profile_deinit(struct tfc_step_profile *p) {
  tfc_array_free(&p->ops);
  tfc_array_free(&p->transfers);
  tfc_array_free(&p->busy);
  tfc_array_free(&p->works);
  tfc_array_free(&p->calls);
  *p = (struct tfc_step_profile){0};
}

static int by_start_op(const void *a, const void *b) {
  const struct tfc_profile_op *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  if (x->duration_ns != y->duration_ns) return x->duration_ns < y->duration_ns ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}
static int by_start_transfer(const void *a, const void *b) {
  const struct tfc_profile_transfer *x = a, *y = b;
  if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
  return (x->id > y->id) - (x->id < y->id);
}

static tfc_status take(const struct tfc_trace_record *r, struct tfc_collector *c, const bool *async,
                       struct tfc_step_profile *p) {
  bool kept = true;
  if (r->kind == TFC_TRACE_ALLOCATE) return p->allocated += r->bytes, NULL;
  if (r->kind != TFC_TRACE_OP && r->kind != TFC_TRACE_TRANSFER && r->kind != TFC_TRACE_EXECUTE) return NULL;
  if (r->begin == 0 || r->end < r->begin)
    return tfc_status_make(TFC_ABORTED, "trace: %s %u on device %u has no valid time stamps",
                           r->kind == TFC_TRACE_TRANSFER ? "transfer" : "operation", r->id, r->device);
  if (r->device >= c->device_count)
    return tfc_status_make(TFC_ABORTED, "trace: a record names device %u of %u", r->device, c->device_count);
  int64_t begin = tfc_ticks_to_ns(r->begin), duration = tfc_ticks_to_ns(r->end) - begin;
  if (r->kind == TFC_TRACE_TRANSFER)
    kept = tfc_array_push(&p->transfers, (struct tfc_profile_transfer){begin, duration, r->bytes, r->id, r->device});
  else if (r->kind == TFC_TRACE_OP && c->own && c->own[r->device])
    kept = tfc_array_push(
        &c->dispatches,
        (struct tfc_dispatch){{begin, duration, r->id, r->device, duration, begin + duration}, r->bytes});
  else if (!async || !async[r->id])
    kept = tfc_array_push(&p->ops, (struct tfc_profile_op){begin, duration, r->id, r->device, -1, -1});
  return kept ? NULL : tfc_status_no_memory(NULL);
}

tfc_status tfc_collector_drain(struct tfc_collector *c, const struct tfc_collector_names *names, const bool *async,
                               struct tfc_step_profile *p) {
  p->ops.count = p->transfers.count = p->busy.count = p->works.count = p->calls.count = 0;
  p->allocated = 0;
  p->gpu_busy_ns = p->gpu_attributed_ns = 0;
  c->dispatches.count = 0;
  if (!tfc_array_resize(&p->busy, c->device_count)) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < 2 * c->device_count + 1; i++) {
    const struct tfc_trace_buffer *b = &c->sink.buffers[i];
    if (b->dropped) return tfc_status_make(TFC_ABORTED, "trace: %zu records found no room", b->dropped);
    for (size_t k = 0; k < b->count; k++) TFC_RETURN_IF_ERROR(take(&b->records[k], c, async, p));
  }
  if (c->own) TFC_RETURN_IF_ERROR(tfc_collector_drain_gpu(c, names, p));
  for (uint32_t i = 0; c->sink.executions && i < c->device_count; i++) {
    const struct tfc_trace_buffer *b = &c->sink.executions[i];
    if (b->dropped) return tfc_status_make(TFC_ABORTED, "trace: %zu records found no room", b->dropped);
    for (size_t k = 0; k < b->count; k++) TFC_RETURN_IF_ERROR(take(&b->records[k], c, async, p));
  }
  if (c->own) TFC_RETURN_IF_ERROR(tfc_collector_join_dispatches(c, p));
  if (p->ops.count == 0) return tfc_status_make(TFC_ABORTED, "trace: the step recorded no operation");
  qsort(p->ops.data, p->ops.count, sizeof *p->ops.data, by_start_op);
  if (p->transfers.count) qsort(p->transfers.data, p->transfers.count, sizeof *p->transfers.data, by_start_transfer);
  int64_t first = p->ops.data[0].start_ns, last = first;
  int64_t *end = calloc(c->device_count, sizeof *end); // of each device's last operation
  if (!end) return tfc_status_no_memory(NULL);
  tfc_status s = NULL;
  for (size_t i = 0; i < p->ops.count && !s; i++) {
    struct tfc_profile_op *o = &p->ops.data[i];
    struct tfc_profile_busy *busy = &p->busy.data[o->device];
    o->start_ns -= first;
    if (o->launched_ns >= 0) o->launched_ns = o->launched_ns > first ? o->launched_ns - first : 0;
    if (o->duration_ns == 0 && o->dispatch_ns >= 0 && o->start_ns < end[o->device]) o->start_ns = end[o->device];
    if (o->start_ns < end[o->device])
      s = tfc_status_make(TFC_ABORTED, "trace: operation %u starts on device %u while another one runs there", o->node,
                          o->device);
    int64_t gap = busy->operations ? o->start_ns - end[o->device] : SHORT_GAP_NS;
    if (gap < SHORT_GAP_NS) busy->busy_ns += gap;
    end[o->device] = o->start_ns + o->duration_ns;
    if (end[o->device] > last - first) last = first + end[o->device];
    busy->operations++;
    busy->operations_ns += o->duration_ns;
    busy->busy_ns += o->duration_ns;
  }
  free(end);
  if (s) return s;
  // Sums of microseconds in floating point may be rounded up; a nanosecond less keeps them below the limit.
  for (uint32_t d = 0; d < c->device_count; d++)
    if (p->busy.data[d].operations > 1 && p->busy.data[d].busy_ns < last - first) p->busy.data[d].busy_ns++;
  for (size_t i = 0; i < p->transfers.count; i++) p->transfers.data[i].start_ns -= first;
  for (size_t i = 0; i < p->works.count; i++) {
    p->works.data[i].start_ns -= first;
    p->works.data[i].end_ns -= first;
  }
  for (size_t i = 0; i < p->calls.count; i++) p->calls.data[i].start_ns -= first, p->calls.data[i].end_ns -= first;
  p->start_ns = first;
  p->duration_ns = last - first;
  if (p->duration_ns <= 0) return tfc_status_make(TFC_ABORTED, "trace: the step took no time");
  return tfc_idle_find(p, SHORT_GAP_NS);
}
