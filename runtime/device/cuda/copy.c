// Copies run on streams of their own, one per direction, so that both directions and compute overlap. For the executor
// they are one ordered queue: one thread issues them, and a signal is set only when all earlier copies on all streams
// have ended. A copy waits for an earlier copy on another stream if both use the same memory and one of them writes it.
//
// Host tensors are copied through pieces of pinned memory, so that the calls do not wait for the device. Before a copy
// to the device the copying thread fills a piece; after a copy from the device the finisher (finish.c) empties it. Only
// tensors that would need too much pinned memory are copied directly, by calls that return when the copy has ended.
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/cuda/copy.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/finish.h"
#include "runtime/device/cuda/flag.h"
#include "runtime/device/cuda/staging.h"
#include "runtime/device/runner.h"

enum { SPIN_NS = 20000 };
static const size_t most_staged = (size_t)512 << 20;

// Makes `stream` wait for all work on the compute stream so far.
static tfc_status after_compute(struct tfc_cuda_device *d, tfc_cuda_stream stream) {
  struct tfc_cuda_mark *mark = NULL;
  int error = 0;
  TFC_RETURN_IF_ERROR(tfc_cuda_mark_record(d->pool, d->compute, &mark, &error));
  error = d->api->stream_wait(stream, mark->event);
  tfc_cuda_mark_release(mark);
  return error ? tfc_cuda_error(d, error, "waiting for its own work") : NULL;
}

// --- Copies of a step --------------------------------------------------------------------------------------------
static bool on_host(const struct tfc_device *d) {
  return !d || d->info.address_space == 0;
}

static int direction_of(const struct tfc_copy *c) {
  if (on_host(c->target_device)) return TFC_CUDA_OUT;
  return tfc_cuda_is_cuda(c->source_device) ? TFC_CUDA_PEER : TFC_CUDA_IN;
}

static tfc_status give_place(struct tfc_cuda_device *d, const struct tfc_copy *c, tfc_cuda_stream stream) {
  const struct tfc_tensor *from = c->source;
  struct tfc_tensor *to = c->target;
  if (to->data && !to->buffer) {
    if (to->size < from->size)
      return tfc_status_make(TFC_INTERNAL, "a copy of %zu bytes to a place of %zu", from->size, to->size);
    to->shape = from->shape;
    to->dtype = from->dtype;
    to->size = from->size;
    return c->fresh ? after_compute(d, stream) : NULL;
  }
  struct tfc_tensor fresh = *from;
  fresh.buffer = NULL;
  if (on_host(c->target_device)) {
    TFC_RETURN_IF_ERROR(tfc_buffer_create_host(from->size, &fresh.buffer));
  } else { // the compute stream may still read this memory
    TFC_RETURN_IF_ERROR(tfc_cuda_memory_allocate(&d->memory, from->size, &fresh.buffer));
    tfc_status s = after_compute(d, stream);
    if (s) {
      tfc_buffer_release(fresh.buffer);
      return s;
    }
  }
  fresh.data = fresh.buffer->data;
  tfc_tensor_release(to);
  *to = fresh;
  return NULL;
}

// --- One queue on several streams ----------------------------------------------------------------------------------
static tfc_status follow(struct tfc_cuda_device *d, int stream, int before) {
  struct tfc_cuda_mark *mark = NULL;
  int error = 0;
  TFC_RETURN_IF_ERROR(tfc_cuda_mark_record(d->pool, d->copies[before], &mark, &error));
  error = d->api->stream_wait(d->copies[stream], mark->event);
  tfc_cuda_mark_release(mark);
  return error ? tfc_cuda_error(d, error, "ordering copies") : NULL;
}

static tfc_status keep_order(struct tfc_cuda_device *d, int stream, const void *memory, size_t bytes, bool writes) {
  struct tfc_cuda_range r = {(uintptr_t)memory, (uintptr_t)memory + bytes, (uint8_t)stream, writes};
  uint32_t conflicts = 0;
  for (uint32_t i = 0; i < d->recent_count; i++) {
    const struct tfc_cuda_range *o = &d->recent[i];
    if (o->stream != stream && (o->writes || writes) && o->begin < r.end && r.begin < o->end)
      conflicts |= 1u << o->stream;
  }
  for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++)
    if (conflicts >> k & 1) TFC_RETURN_IF_ERROR(follow(d, stream, k));
  // the list is full: it is emptied, and all later copies wait for all earlier ones
  if (d->recent_count == TFC_CUDA_RECENT) {
    for (int hub = 1; hub < TFC_CUDA_COPY_STREAMS; hub++) TFC_RETURN_IF_ERROR(follow(d, 0, hub));
    for (int k = 1; k < TFC_CUDA_COPY_STREAMS; k++) TFC_RETURN_IF_ERROR(follow(d, k, 0));
    d->recent_count = 0;
  }
  d->recent[d->recent_count++] = r;
  return NULL;
}

// Enables direct copies between two GPUs if the hardware supports them; otherwise CUDA copies through the host. It is
// called only for an actual copy, because enabling makes a context on the other GPU, which takes memory from other
// users of that GPU.
static void enable_peer(struct tfc_cuda_device *d, int peer) {
  bool can = false;
  if (peer >= 64 || d->peers_asked >> peer & 1) return;
  d->peers_asked |= UINT64_C(1) << peer;
  if (d->api->can_access_peer(d->ordinal, peer, &can) || !can) return;
  if (d->api->enable_peer(peer)) (void)d->api->last_error(); // an error only means that the access was already enabled
}

// Allocates the target if it has no memory, and makes the stream wait for earlier work that uses the same memory.
static tfc_status make_ready(struct tfc_cuda_device *d, const struct tfc_copy *c, int direction,
                             tfc_cuda_stream stream) {
  const struct tfc_tensor *from = c->source;
  size_t bytes = from->size;
  if (!tfc_dtype_is_plain(from->dtype)) { // strings and handles are always in host memory
    tfc_tensor_release(c->target);
    tfc_tensor_share(from, c->target);
    return NULL;
  }
  TFC_RETURN_IF_ERROR(give_place(d, c, stream));
  if (bytes == 0) return NULL;
  if (!on_host(c->target_device)) TFC_RETURN_IF_ERROR(keep_order(d, direction, c->target->data, bytes, true));
  if (c->source_device == &d->base) TFC_RETURN_IF_ERROR(keep_order(d, direction, from->data, bytes, false));
  if (tfc_cuda_is_cuda(c->source_device)) {
    struct tfc_cuda_device *source = tfc_cuda_device_of(c->source_device);
    if (atomic_load(&source->launched)) {
      struct tfc_cuda_mark *mark = NULL; // outputs of single launches have no timepoint to wait for
      int error = 0;
      TFC_RETURN_IF_ERROR(tfc_cuda_mark_record(source->pool, source->compute, &mark, &error));
      error = d->api->stream_wait(stream, mark->event);
      tfc_cuda_mark_release(mark);
      if (!error) error = tfc_cuda_enter(d->api, d->ordinal);
      if (error) return tfc_cuda_error(d, error, "waiting for the source of a copy");
    }
  }
  return NULL;
}

static tfc_status enqueue(struct tfc_cuda_device *d, const struct tfc_copy *c, int direction, tfc_cuda_stream stream,
                          struct tfc_cuda_end *end) {
  const struct tfc_tensor *from = c->source;
  size_t bytes = from->size;
  if (bytes == 0 || !tfc_dtype_is_plain(from->dtype)) return NULL;
  if (direction == TFC_CUDA_OUT) {
    if (bytes > most_staged) {
      TFC_CUDA_TRY(d, d->api->copy(c->target->data, from->data, bytes, stream), "copying to the host");
      return NULL;
    }
    TFC_RETURN_IF_ERROR(tfc_cuda_staging_take_pieces(d, bytes, &end->staging));
    end->host_target = c->target->data;
    const char *next = from->data;
    for (struct tfc_cuda_staging *piece = end->staging; piece; next += piece->bytes, piece = piece->next)
      TFC_CUDA_TRY(d, d->api->copy(piece->data, next, piece->bytes, stream), "copying to the host");
    return NULL;
  }
  if (direction == TFC_CUDA_PEER) {
    struct tfc_cuda_device *source = tfc_cuda_device_of(c->source_device);
    if (source->ordinal != d->ordinal) enable_peer(d, source->ordinal);
    if (source->ordinal == d->ordinal)
      TFC_CUDA_TRY(d, d->api->copy(c->target->data, from->data, bytes, stream), "copying on the device");
    else
      TFC_CUDA_TRY(d, d->api->copy_peer(c->target->data, d->ordinal, from->data, source->ordinal, bytes, stream),
                   "copying from another GPU");
    return NULL;
  }
  if (!on_host(c->source_device)) { // the source is a device of another driver
    TFC_RETURN_IF_ERROR(tfc_cuda_staging_take(d, bytes, &end->staging));
    TFC_RETURN_IF_ERROR(c->source_device->driver->read(c->source_device, from, end->staging->data));
    TFC_CUDA_TRY(d, d->api->copy(c->target->data, end->staging->data, bytes, stream), "copying from the host");
    return NULL;
  }
  if (bytes > most_staged) {
    TFC_CUDA_TRY(d, d->api->copy(c->target->data, from->data, bytes, stream), "copying from the host");
    return NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_cuda_staging_take_pieces(d, bytes, &end->staging));
  const char *next = from->data;
  char *to = c->target->data;
  for (struct tfc_cuda_staging *piece = end->staging; piece; piece = piece->next) {
    memcpy(piece->data, next, piece->bytes);
    TFC_CUDA_TRY(d, d->api->copy(to, piece->data, piece->bytes, stream), "copying from the host");
    next += piece->bytes, to += piece->bytes;
  }
  return NULL;
}

static tfc_status timed(struct tfc_cuda_device *d, tfc_cuda_stream stream, struct tfc_cuda_mark **out) {
  int error = 0;
  tfc_status s = tfc_cuda_mark_record(d->timed, stream, out, &error);
  if (s && error) {
    tfc_status_free(s);
    s = tfc_cuda_error(d, error, "timing a copy");
  }
  return s;
}

static tfc_status run_copy(struct tfc_cuda_device *d, const struct tfc_copy *c, struct tfc_step *step, int direction,
                           struct tfc_cuda_end *end) {
  if (tfc_step_stopped(step)) return NULL;
  if (c->variable && !c->variable->initialized) return tfc_variable_check(c->variable);
  tfc_cuda_stream stream = d->copies[direction];
  struct tfc_trace_sink *sink = c->id == TFC_COPY_UNTRACED ? NULL : step->trace;
  bool dated = sink && sink->copies && sink->executions && tfc_dtype_is_plain(c->source->dtype);
  uint16_t index = d->base.index;
  if (dated) TFC_RETURN_IF_ERROR(tfc_cuda_clock_set(d, step));
  TFC_RETURN_IF_ERROR(make_ready(d, c, direction, stream));
  if (dated && (end->timings = calloc(1, sizeof *end->timings))) {
    end->timings[0] = (struct tfc_cuda_timing){.id = c->id, .kind = TFC_TRACE_TRANSFER, .bytes = c->source->size};
    TFC_RETURN_IF_ERROR(timed(d, stream, &end->timings[0].begin));
    end->timing_count = 1; // its `end` is set after the copy was issued
    end->trace = &sink->copies[index];
  } else if (sink && sink->copies) {
    end->trace = &sink->copies[index];
    end->host_dated = true;
    end->host_begin = tfc_ticks();
    end->host_id = c->id;
    end->host_traced_bytes = c->source->size;
  }
  if (sink && sink->op_begin) sink->op_begin(sink, index, c->id | TFC_TRACE_UID_TRANSFER);
  tfc_status s = enqueue(d, c, direction, stream, end);
  if (sink && sink->op_end) sink->op_end(sink, index, c->id | TFC_TRACE_UID_TRANSFER);
  if (!s && end->timing_count) s = timed(d, stream, &end->timings[0].end);
  return s;
}

// Publishes the signals' values. Waiters rely on all copies issued so far, so the marks must cover every stream that
// got a copy since the last published value.
static tfc_status publish(struct tfc_cuda_device *d, struct tfc_cuda_end *end, const struct tfc_timepoint *signals,
                          uint32_t count) {
  for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++) {
    if (!(d->unpublished_streams >> k & 1)) continue;
    int error = 0;
    tfc_status s = tfc_cuda_mark_record(d->pool, d->copies[k], &end->marks[end->mark_count], &error);
    if (s && error) {
      tfc_status_free(s);
      s = tfc_cuda_error(d, error, "recording an event");
    }
    if (s) return s;
    tfc_cuda_flag_after(d, (unsigned)k, end->marks[end->mark_count++]);
  }
  if (count == 0) return NULL;
  for (uint32_t k = 0; k < count; k++)
    TFC_RETURN_IF_ERROR(
        tfc_cuda_publish(signals[k].semaphore, signals[k].value, end->marks, end->mark_count, d->unpublished_host));
  d->unpublished_streams = 0;
  d->unpublished_host = false;
  return NULL;
}

static void copy_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  (void)from, (void)to;
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  struct tfc_step *step = e->step;
  const struct tfc_timepoint *points = e->points, *signals = points + e->wait_count;
  int direction = direction_of(&e->copy);
  int error = tfc_cuda_enter(d->api, d->ordinal);
  tfc_status s = error ? tfc_cuda_error(d, error, "entering it") : tfc_cuda_check_alive(d);
  // Data that another kind of driver reads, or that host code wrote, must have arrived in host memory.
  bool host_source = direction == TFC_CUDA_IN;
  for (uint32_t i = 0; i < e->wait_count; i++) {
    uint64_t since = 0;
    int failed = 0;
    tfc_status w = tfc_cuda_wait(d->api, d->copies[direction], points[i].semaphore, points[i].value,
                                 s != NULL || host_source, SPIN_NS, &since, &failed);
    if (w && failed) {
      tfc_status_free(w);
      w = tfc_cuda_error(d, failed, "waiting for another stream");
    }
    if (w) s = s ? (tfc_status_free(w), s) : w;
  }
  struct tfc_cuda_end *end = calloc(1, sizeof *end);
  if (!end) {
    s = s ? s : tfc_status_no_memory("a copy");
    tfc_step_fail(step, tfc_status_annotate(s, "a transfer to %s", device->info.name));
    for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++) (void)d->api->stream_synchronize(d->copies[k]);
    for (uint32_t k = 0; k < e->signal_count; k++) tfc_semaphore_signal(signals[k].semaphore, signals[k].value);
    return;
  }
  *end = (struct tfc_cuda_end){.device = d, .step = step};
  if (!s) s = run_copy(d, &e->copy, step, direction, end);
  // The step must fail before the signals are set, so that threads that wait for them see the failure.
  if (s) tfc_step_fail(step, tfc_status_annotate(s, "a transfer to %s", device->info.name));
  s = NULL;
  d->unpublished_streams |= UINT64_C(1) << direction;
  d->unpublished_host |= direction == TFC_CUDA_OUT || !tfc_dtype_is_plain(e->copy.source->dtype);
  if (!atomic_load(&d->dead)) {
    s = publish(d, end, signals, e->signal_count);
    if (s) tfc_step_fail(step, tfc_status_annotate(s, "a transfer to %s", device->info.name));
  }
  s = tfc_cuda_finish(&d->copy_end, end, signals, e->signal_count);
  if (!s) return;
  tfc_step_fail(step, s);
  for (int k = 0; k < TFC_CUDA_COPY_STREAMS; k++) (void)d->api->stream_synchronize(d->copies[k]);
  for (uint32_t k = 0; k < e->signal_count; k++) tfc_semaphore_signal(signals[k].semaphore, signals[k].value);
}

tfc_status tfc_cuda_copy(struct tfc_device *device, const struct tfc_copy *record, struct tfc_step *step,
                         const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                         uint32_t signal_count) {
  return tfc_queue_submit(
      &tfc_cuda_device_of(device)->copy_queue,
      &(struct tfc_queue_entry){
          .run = copy_entry, .copy = *record, .step = step, .wait_count = wait_count, .signal_count = signal_count},
      waits, signals);
}

// --- Waiting for copies ------------------------------------------------------------------------------------------
tfc_status tfc_cuda_await(struct tfc_device *device, const struct tfc_timepoint *waits, uint32_t wait_count) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  TFC_RETURN_IF_ERROR(tfc_cuda_check_alive(d));
  TFC_CUDA_TRY(d, tfc_cuda_enter(d->api, d->ordinal), "waiting for a copy");
  for (uint32_t i = 0; i < wait_count; i++) {
    uint64_t since = 0;
    int failed = 0;
    tfc_status s =
        tfc_cuda_wait(d->api, d->compute, waits[i].semaphore, waits[i].value, false, SPIN_NS, &since, &failed);
    if (!s) continue;
    if (!failed) return s;
    tfc_status_free(s);
    return tfc_cuda_error(d, failed, "waiting for a copy");
  }
  return NULL;
}

// --- Synchronous copies ------------------------------------------------------------------------------------------
static tfc_status copy_now(struct tfc_cuda_device *d, void *to, const void *from, size_t bytes, int direction,
                           const char *doing) {
  if (bytes == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_check_alive(d));
  TFC_CUDA_TRY(d, tfc_cuda_enter(d->api, d->ordinal), doing);
  tfc_cuda_stream stream = d->copies[direction];
  if (direction == TFC_CUDA_IN || atomic_load(&d->launched)) TFC_RETURN_IF_ERROR(after_compute(d, stream));
  TFC_CUDA_TRY(d, d->api->copy(to, from, bytes, stream), doing);
  TFC_CUDA_TRY(d, d->api->stream_synchronize(stream), doing);
  return NULL;
}

tfc_status tfc_cuda_read_tensor(struct tfc_device *device, const struct tfc_tensor *source, void *target) {
  return copy_now(tfc_cuda_device_of(device), target, source->data, source->size, TFC_CUDA_OUT, "reading a tensor");
}

tfc_status tfc_cuda_write_tensor(struct tfc_device *device, const void *source, struct tfc_tensor *target) {
  return copy_now(tfc_cuda_device_of(device), target->data, source, target->size, TFC_CUDA_IN, "writing a tensor");
}
