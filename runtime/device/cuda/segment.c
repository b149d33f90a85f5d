// Prepares and runs segments. Each operation becomes a record with a kernel context. It runs by a row of the kernel
// table, as a view, or on the host. The device's work thread runs a segment: it waits for the segment's semaphores (on
// the device's stream if possible), launches the operations, and records an event. It blocks until the device is idle
// only for operations that run on the host.
#include <math.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/finish.h"
#include "runtime/device/cuda/flag.h"
#include "runtime/device/cuda/graph.h"
#include "runtime/device/cuda/host.h"
#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/libraries.h"
#include "runtime/device/cuda/rows.h"
#include "runtime/device/runner.h"
#include "runtime/ops/host_memory.h"

enum { SPIN_NS = 20000, MOST_TOGETHER = 64 };

// --- Preparing ---------------------------------------------------------------------------------------------------
static tfc_status fit_scratch(struct tfc_cuda_device *d, size_t bytes) { // under launch_lock
  if (bytes <= d->scratch_size) return NULL;
  struct tfc_buffer *grown = NULL;
  if (d->scratch) TFC_CUDA_TRY(d, d->api->stream_synchronize(d->compute), "making room");
  TFC_RETURN_IF_ERROR(tfc_cuda_memory_allocate(&d->memory, bytes, &grown));
  tfc_buffer_release(d->scratch);
  d->scratch = grown;
  d->scratch_size = bytes;
  d->scratch_generation++;
  return NULL;
}

static tfc_status choose(struct tfc_cuda_device *d, struct tfc_prepared *p, const struct tfc_segment_op *op,
                         struct tfc_cuda_call *c) {
  const struct tfc_graph *g = p->segment->graph;
  const struct tfc_node *n = &g->nodes[op->node];
  struct tfc_prepare_ctx base = tfc_segment_prepare_ctx(g, op, &p->arena);
  struct tfc_text reasons = {0};
  bool declined = false; // a library declined the operation
  const struct tfc_cuda_kernel *row = NULL;
  // An operation that a rewrite prepared computes in float32, also if its node's first input has another type.
  const tfc_dtype type = op->prepared ? TFC_FLOAT : tfc_node_main_type(g, n);
  while (!op->on_host && (row = tfc_cuda_kernel_next(tfc_str_from(op->def->name), type, row))) {
    struct tfc_prepare_ctx attempt = base;
    struct tfc_cuda_prepare cp = {.base = &attempt,
                                  .op = op->outputs ? op : NULL,
                                  .library = &d->library,
                                  .host_inputs = op->host_inputs,
                                  .host_outputs = op->host_outputs,
                                  .variant = tfc_cuda_variant(row->flags)};
    tfc_status s = row->prepare ? row->prepare(&cp) : NULL;
    tfc_cuda_cudnn_leave(d);
    if (!s) s = fit_scratch(d, cp.scratch);
    if (!s) {
      c->row = row;
      c->note = cp.library_note;
      c->scratch = cp.scratch;
      c->ctx.state = attempt.state;
      c->release = attempt.release;
      if (declined) c->declined = tfc_arena_str(&p->arena, tfc_str_from(reasons.data ? reasons.data : "")).data;
      tfc_text_deinit(&reasons);
      return NULL;
    }
    if (attempt.release && attempt.state) attempt.release(attempt.state);
    s = tfc_cuda_library_error(d, s); // if the device has failed, this becomes the error, instead of the row's refusal
    if (tfc_status_code(s) != TFC_UNIMPLEMENTED) {
      tfc_text_deinit(&reasons);
      return tfc_status_annotate(s, "node '%.*s' (%s)", TFC_STR_ARG(n->name), op->def->name);
    }
    declined |= cp.declined;
    tfc_text_printf(&reasons, "%s%s", reasons.size ? "; " : "", tfc_status_message(s));
    tfc_status_free(s);
  }
  tfc_status s = NULL;
  if (op->prepared) // a rewrite prepared it for the host: its state is in host memory
    s = tfc_status_make(TFC_INTERNAL, "node '%.*s': a rewrite for the host on %s: %s", TFC_STR_ARG(n->name),
                        d->base.info.name, reasons.data ? reasons.data : "it has no such kernel");
  else if (!op->def->kernel)
    s = tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %s has no kernel on %s", TFC_STR_ARG(n->name),
                        op->def->name, d->base.info.name);
  else if ((s = tfc_kernel_prepare(&base)))
    s = tfc_status_annotate(s, "node '%.*s' (%s)", TFC_STR_ARG(n->name), op->def->name);
  c->is_view = !op->on_host && (op->def->flags & (TFC_OP_VIEW | TFC_OP_NO_ELEMENTS));
  if (!s && !c->is_view && !op->on_host) {
    tfc_str note =
        tfc_arena_str(&p->arena, reasons.data ? tfc_str_from(reasons.data) : TFC_STR("no kernel for the device"));
    c->note = note.data;
  }
  c->ctx.state = base.state;
  c->release = base.release;
  tfc_text_deinit(&reasons);
  return s;
}

// Whether the operation reads a variable through a reshaped view. An update of the variable may change the address that
// the view must use.
static bool reads_a_view(const struct tfc_segment_op *op) {
  bool found = false;
  for (uint32_t i = 0; i < op->read_count; i++) found |= op->reads[i].view != NULL;
  return found;
}

// Finds the calls that share the launches of the call before them.
static void find_together(struct tfc_prepared *p) {
  for (uint32_t i = p->call_count; i-- > 0;) {
    struct tfc_cuda_call *c = &p->calls[i], *next = c + 1;
    c->together = 1;
    if (!tfc_cuda_together || i + 1 == p->call_count || !c->row || !next->row) continue;
    if (next->together < MOST_TOGETHER && !reads_a_view(next->op) &&
        tfc_cuda_together(c->row, c->ctx.state, next->row, next->ctx.state))
      c->together += next->together;
  }
}

tfc_status tfc_cuda_prepare_segment(struct tfc_device *device, const struct tfc_segment *segment,
                                    struct tfc_prepared **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  tfc_status s = tfc_cuda_check_alive(d);
  if (s) return s;
  struct tfc_prepared *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("preparing a segment");
  p->device = d;
  p->segment = segment;
  pthread_mutex_lock(&d->launch_lock);
  int error = tfc_cuda_enter(d->api, d->ordinal);
  if (error) {
    s = tfc_cuda_error(d, error, "preparing a segment");
    goto out;
  }
  p->calls = calloc(segment->op_count + 1u, sizeof *p->calls);
  if (!p->calls) TFC_TRY(s, tfc_status_no_memory("preparing a segment"));
  for (uint32_t i = 0; i < segment->op_count; i++) {
    const struct tfc_segment_op *op = &segment->ops[i];
    struct tfc_cuda_call *c = &p->calls[i];
    p->call_count = i + 1;
    c->node = op->node;
    c->op = op;
    c->ctx = (struct tfc_kernel_ctx){.graph = segment->graph,
                                     .node = &segment->graph->nodes[op->node],
                                     .env = &d->env,
                                     .inputs = op->inputs,
                                     .variables = op->variables,
                                     .outputs = op->outputs,
                                     .output_variables = op->output_variables,
                                     .input_count = op->input_count,
                                     .output_count = op->output_count,
                                     .node_state = op->node_state};
    TFC_TRY(s, choose(d, p, op, c));
  }
  find_together(p);
  *out = p, p = NULL;
out:
  pthread_mutex_unlock(&d->launch_lock);
  if (p) tfc_cuda_release_segment(device, p);
  return s;
}

void tfc_cuda_release_segment(struct tfc_device *device, struct tfc_prepared *p) {
  if (!p) return;
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  (void)tfc_cuda_enter(d->api, d->ordinal);
  tfc_cuda_graph_release(d, p->capture);
  for (uint32_t i = 0; i < p->call_count; i++)
    if (p->calls[i].release) p->calls[i].release(p->calls[i].ctx.state);
  free(p->calls);
  tfc_arena_deinit(&p->arena);
  free(p);
}

bool tfc_cuda_supports(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type,
                       const char **out_reason) {
  (void)device;
  const char *reason = NULL;
  if (!def)
    reason = "the op is not known";
  else if (tfc_cuda_kernel_next(tfc_str_from(def->name), tfc_dtype_base(type), NULL))
    reason = NULL;
  else if (!def->kernel)
    reason = "the op has no kernel";
  else if (def->types && type != TFC_DTYPE_NONE && !(def->types & TFC_TYPE_BIT(tfc_dtype_base(type))))
    reason = "the op's kernel does not take this type";
  if (out_reason) *out_reason = reason;
  return !reason;
}

const char *tfc_cuda_fallback(const struct tfc_prepared *p, uint32_t index) {
  const struct tfc_cuda_call *c = &p->calls[index];
  return c->row || c->is_view || c->op->on_host ? NULL : c->note;
}

const char *tfc_cuda_declined(const struct tfc_prepared *p, uint32_t index) {
  return p->calls[index].declined;
}

// Lets the first kernel row for an operation prepare it, keeps what the row says about it in *cp, and releases what it
// has prepared. False: there is no row, or the row declines, and *cp means nothing.
static bool ask(struct tfc_device *device, struct tfc_prepare_ctx *ctx, struct tfc_cuda_prepare *cp) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  const struct tfc_cuda_kernel *row = NULL;
  const tfc_dtype type = tfc_node_main_type(ctx->graph, ctx->node);
  bool known = false;
  tfc_status s = tfc_cuda_check_alive(d);
  pthread_mutex_lock(&d->launch_lock);
  if (!s && tfc_cuda_enter(d->api, d->ordinal) == 0 &&
      (row = tfc_cuda_kernel_next(tfc_str_from(ctx->def->name), type, NULL)) && row->prepare) {
    *cp = (struct tfc_cuda_prepare){.base = ctx, .library = &d->library, .variant = tfc_cuda_variant(row->flags)};
    s = row->prepare(cp);
    tfc_cuda_cudnn_leave(d);
    known = !s;
    if (ctx->release && ctx->state) ctx->release(ctx->state);
    s = tfc_cuda_library_error(d, s); // a device that has failed is found again when the plan is prepared
  }
  pthread_mutex_unlock(&d->launch_lock);
  tfc_status_free(s);
  return known;
}

tfc_filter_form tfc_cuda_filter_form(struct tfc_device *device, struct tfc_prepare_ctx *ctx) {
  struct tfc_cuda_prepare cp;
  return ask(device, ctx, &cp) ? cp.filter_form : TFC_FILTER_OF_GRAPH;
}

double tfc_cuda_channels_last_gain_us(struct tfc_device *device, struct tfc_prepare_ctx *ctx) {
  struct tfc_cuda_prepare cp;
  return ask(device, ctx, &cp) ? cp.channels_last_gain_us : NAN;
}

bool tfc_cuda_has_kernel(const struct tfc_op_def *def, tfc_dtype type) {
  // For these types all operands of the op are in host memory.
  if (def->host.types & TFC_TYPE_BIT(tfc_dtype_base(type))) return false;
  if (def->flags & (TFC_OP_VIEW | TFC_OP_NO_ELEMENTS)) return true;
  for (int first = 1; first < TFC_DTYPE_COUNT; first++) {
    const struct tfc_cuda_kernel *row = NULL;
    while ((row = tfc_cuda_kernel_next(tfc_str_from(def->name), (tfc_dtype)first, row)))
      if (tfc_cuda_row_types(row) & TFC_TYPE_BIT(tfc_dtype_base(type))) return true;
  }
  return false;
}

// --- Running -----------------------------------------------------------------------------------------------------
// A view's output is its input's memory. If the plan has given the output a place of its own, the input is copied
// there.
static tfc_status run_view(struct tfc_cuda_device *d, const struct tfc_cuda_call *c, struct tfc_kernel_ctx *ctx,
                           tfc_cuda_stream stream) {
  struct tfc_tensor *slot = ctx->output_count ? ctx->outputs[0] : NULL;
  bool on_host = tfc_host_bit(c->op->host_outputs, 0);
  if (!slot || on_host || !slot->data || slot->buffer || ctx->output_count != 1) return c->op->def->kernel(ctx);
  struct tfc_tensor made = {0}, *outputs[1] = {&made};
  struct tfc_kernel_ctx inner = *ctx;
  inner.outputs = outputs;
  TFC_RETURN_IF_ERROR(c->op->def->kernel(&inner));
  tfc_status s = NULL;
  if (made.size > slot->size)
    s = tfc_status_make(TFC_INTERNAL, "a view of %zu bytes in a place of %zu", made.size, slot->size);
  else if (made.size && made.data != slot->data) {
    int error = tfc_cuda_launch_copy(d, slot->data, made.data, made.size, stream);
    if (error) s = tfc_cuda_error(d, error, "copying a view");
  }
  slot->dtype = made.dtype;
  slot->shape = made.shape;
  slot->size = made.size;
  tfc_tensor_release(&made);
  return s;
}

// Runs the kernel on the host: everything that it reads and writes is in host memory. A view of a tensor without a
// buffer becomes a copy, because the plan may reuse the tensor's memory.
static tfc_status run_on_host(const struct tfc_cuda_call *c, struct tfc_kernel_ctx *ctx) {
  struct tfc_kernel_env env = *ctx->env;
  struct tfc_kernel_ctx inner = *ctx;
  struct tfc_tensor *view = ctx->output_count && c->op->def->flags & TFC_OP_VIEW ? ctx->outputs[0] : NULL;
  if (view && view->data && !view->buffer) view = NULL; // the plan gave the output memory of its own
  env.allocate = NULL;
  env.parallel_for = tfc_env_serial_for;
  inner.env = &env;
  TFC_RETURN_IF_ERROR(c->op->def->kernel(&inner));
  if (!view || view->buffer) return NULL;
  struct tfc_tensor seen = *view;
  return tfc_tensor_clone(&seen, view);
}

// Launches one prepared call with this context on a stream. The caller is the work thread or holds launch_lock.
static tfc_status run_call(struct tfc_cuda_device *d, const struct tfc_cuda_call *c, struct tfc_kernel_ctx *ctx,
                           tfc_cuda_stream stream) {
  if (__builtin_expect(c->row != NULL, 1)) {
    struct tfc_cuda_launch l = {
        .ctx = ctx, .stream = stream, .library = &d->library, .scratch = d->scratch ? d->scratch->data : NULL};
    tfc_status s = c->row->launch(&l);
    tfc_cuda_cudnn_leave(d);
    return __builtin_expect(s == NULL, 1) ? NULL : tfc_cuda_library_error(d, s);
  }
  if (c->op->on_host) return run_on_host(c, ctx);
  if (c->is_view) return run_view(d, c, ctx, stream);
  return tfc_cuda_host_run(d, c->op, ctx, stream);
}

static tfc_status check_reads(const struct tfc_segment_op *op) {
  for (uint32_t i = 0; i < op->read_count; i++) {
    const struct tfc_variable_read *read = &op->reads[i];
    if (!read->variable->initialized) return tfc_variable_check(read->variable);
    if (read->view) read->view->data = read->variable->value.data;
  }
  return NULL;
}

tfc_status tfc_cuda_calls_next(struct tfc_cuda_device *d, struct tfc_prepared *p, uint32_t index, uint32_t end,
                               tfc_cuda_stream stream, uint32_t *out_next) {
  struct tfc_cuda_call *c = &p->calls[index];
  struct tfc_kernel_ctx *contexts[MOST_TOGETHER] = {0};
  const uint32_t count = c->together < end - index ? c->together : end - index; // at least 1
  for (uint32_t i = 0; i < count; i++) {
    *out_next = index + i;
    contexts[i] = &c[i].ctx;
    TFC_RETURN_IF_ERROR(check_reads(c[i].op));
  }
  tfc_status s = NULL;
  *out_next = index;
  if (count == 1) {
    d->cudnn_used = false;
    s = run_call(d, c, &c->ctx, stream);
    c->uses_cudnn |= d->cudnn_used;
  } else {
    struct tfc_cuda_launch l = {.stream = stream, .library = &d->library};
    uint32_t at = 0;
    s = tfc_cuda_launch_together(&l, contexts, count, &at);
    *out_next = index + at;
  }
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t r = 0; r < c[i].op->release_count; r++) tfc_tensor_release(c[i].op->releases[r]);
  if (!s) *out_next = index + count;
  return s;
}

struct times { // in a traced segment, marks between operations measure their times
  struct tfc_cuda_timing *timings;
  uint32_t count;
  struct tfc_cuda_mark *last;
};

// Records a mark. The time since the last mark is that of operation `node` (TFC_NONE: it is no operation's).
static tfc_status time_op(struct tfc_cuda_device *d, struct times *t, uint32_t node) {
  struct tfc_cuda_mark *mark = NULL;
  int error = 0;
  tfc_status s = tfc_cuda_mark_record(d->timed, d->compute, &mark, &error);
  if (s) return s;
  if (t->last && node != TFC_NONE) {
    tfc_cuda_mark_retain(mark);
    t->timings[t->count++] = (struct tfc_cuda_timing){t->last, mark, node, TFC_TRACE_EXECUTE, 0};
  } else {
    tfc_cuda_mark_release(t->last);
  }
  t->last = mark;
  return NULL;
}

// Launches the operations: each captured graph with one call, other operations one by one.
static void launch_calls(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_step *step,
                         struct times *times) {
  struct tfc_trace_sink *sink = step->trace;
  uint16_t index = d->base.index;
  struct tfc_trace_buffer *buffer = sink ? &sink->buffers[index] : NULL;
  const struct tfc_graph *g = p->segment->graph;
  tfc_status s = NULL;
  if (times->timings) s = time_op(d, times, TFC_NONE);
  uint64_t last = tfc_ticks();
  bool graphs = d->graphs && !times->timings;
  for (uint32_t i = 0, next = 0; i < p->call_count && !s; i++) {
    struct tfc_cuda_call *c = &p->calls[i];
    if (tfc_step_stopped(step)) {
      tfc_step_note_stop(step, index, i ? p->calls[i - 1].node + 1 : 0, c->node + 1);
      break;
    }
    if (graphs && (s = tfc_cuda_graph_run(d, p, step, i, &next))) break;
    if (graphs && next > i) {
      i = next - 1;
      last = tfc_ticks();
      continue;
    }
    if (buffer && sink->op_begin) sink->op_begin(sink, index, c->node);
    const uint64_t launched = tfc_cuda_launches();
    // If operations are timed, each is launched alone, between two events.
    s = tfc_cuda_calls_next(d, p, i, times->timings ? i + 1 : p->call_count, d->compute, &next);
    if (buffer) {
      if (sink->op_end) sink->op_end(sink, index, c->node);
      uint64_t now = tfc_ticks();
      tfc_trace_add(buffer, TFC_TRACE_OP, c->node, index, last, now, tfc_cuda_launches() - launched);
      for (uint32_t k = i + 1; k < next; k++) tfc_trace_add(buffer, TFC_TRACE_OP, p->calls[k].node, index, now, now, 0);
      last = now;
    }
    if (__builtin_expect(s != NULL, 0)) {
      c = &p->calls[next];
      s = tfc_op_error(s, g, &g->nodes[c->node], &d->base, c->op->inputs, c->op->input_count);
      break;
    }
    i = next - 1;
    if (times->timings) s = time_op(d, times, c->op->on_host ? TFC_NONE : c->node);
  }
  if (s) tfc_step_fail(step, s);
}

static void run_segment(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_step *step, uint64_t waited_from,
                        uint64_t waited_to, struct times *times) {
  d->env.resources = step->resources;
  d->env.step_resources = step->step_resources;
  d->env.step_id = step->id;
  d->env.seed = step->seed;
  d->env.owner = step;
  struct tfc_trace_sink *sink = step->trace;
  uint16_t index = d->base.index;
  if (sink && sink->executions) {
    tfc_status s = tfc_cuda_clock_set(d, step);
    if (s) {
      tfc_step_fail(step, s);
      return;
    }
    times->timings = calloc(p->call_count + 1u, sizeof *times->timings);
  }
  uint64_t begin = tfc_ticks();
  for (uint32_t i = 0; sink && i < p->segment->arrival_count; i++)
    tfc_trace_add(&sink->buffers[index], TFC_TRACE_TRANSFER, p->segment->arrivals[i], index,
                  waited_to ? waited_from : begin, waited_to ? waited_to : begin, 0);
  if (step->spans && !step->spans[index].begin) step->spans[index].begin = begin;
  pthread_mutex_lock(&d->launch_lock);
  launch_calls(d, p, step, times);
  pthread_mutex_unlock(&d->launch_lock);
}

static void work_entry(struct tfc_device *device, struct tfc_queue_entry *e, uint64_t from, uint64_t to) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  struct tfc_step *step = e->step;
  const struct tfc_timepoint *points = e->points;
  struct times times = {0};
  int error = tfc_cuda_enter(d->api, d->ordinal);
  tfc_status s = error ? tfc_cuda_error(d, error, "entering it") : tfc_cuda_check_alive(d);
  uint64_t begin = e->wait_count ? tfc_ticks() : 0;
  from = to = 0;
  // Waits even after a failure, because the operations that will signal may still use this segment's memory.
  for (uint32_t i = 0; i < e->wait_count; i++) {
    uint64_t since = 0;
    int failed = 0;
    tfc_status w =
        tfc_cuda_wait(d->api, d->compute, points[i].semaphore, points[i].value, s != NULL, SPIN_NS, &since, &failed);
    if (w) {
      if (failed) {
        tfc_status_free(w);
        w = tfc_cuda_error(d, failed, "waiting for another stream");
      }
      s = s ? (tfc_status_free(w), s) : w;
    }
    if (since > from) from = since;
  }
  if (e->wait_count) {
    to = tfc_ticks();
    from = from == 0 ? to : from < begin ? begin : from > to ? to : from;
  }
  struct tfc_prepared *p = e->prepared;
  bool runs = !s && p && p->call_count && !tfc_step_stopped(step);
  if (s) tfc_step_fail(step, s);
  if (runs) run_segment(d, p, step, from, to, &times);
  struct tfc_cuda_end *end = calloc(1, sizeof *end);
  const struct tfc_timepoint *signals = points + e->wait_count;
  if (end) {
    *end = (struct tfc_cuda_end){.device = d, .step = step, .span = runs, .timings = times.timings};
    end->timing_count = times.count;
    if (runs) end->first = p->calls[0].node + 1, end->last = p->calls[p->call_count - 1].node + 1;
    if (times.timings && step->trace && step->trace->executions) end->trace = &step->trace->executions[device->index];
    if (!atomic_load(&d->dead)) {
      s = tfc_cuda_mark_record(d->pool, d->compute, &end->marks[0], &error);
      end->mark_count = !s;
      if (!s) tfc_cuda_flag_after(d, TFC_CUDA_COMPUTE, end->marks[0]);
      for (uint32_t k = 0; !s && k < e->signal_count; k++)
        s = tfc_cuda_publish(signals[k].semaphore, signals[k].value, end->marks, 1, false);
      if (s) tfc_step_fail(step, error ? (tfc_status_free(s), tfc_cuda_error(d, error, "recording an event")) : s);
    }
    s = tfc_cuda_finish(&d->work_end, end, signals, e->signal_count);
  } else {
    s = tfc_status_no_memory("running a segment");
  }
  tfc_cuda_mark_release(times.last);
  if (!s) return;
  (void)d->api->stream_synchronize(d->compute);
  tfc_step_fail(step, s);
  for (uint32_t k = 0; k < e->signal_count; k++) tfc_semaphore_signal(signals[k].semaphore, signals[k].value);
}

tfc_status tfc_cuda_submit(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                           const struct tfc_timepoint *waits, uint32_t wait_count, const struct tfc_timepoint *signals,
                           uint32_t signal_count) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  return tfc_queue_submit(&d->work,
                          &(struct tfc_queue_entry){.run = work_entry,
                                                    .prepared = prepared,
                                                    .step = step,
                                                    .wait_count = wait_count,
                                                    .signal_count = signal_count},
                          waits, signals);
}

static tfc_status launch_single(struct tfc_device *device, struct tfc_prepared *p, uint32_t index,
                                struct tfc_kernel_ctx *ctx, struct times *times) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  const struct tfc_cuda_call *c = &p->calls[index];
  ctx->state = c->ctx.state;
  ctx->graph = c->ctx.graph;
  ctx->node = c->ctx.node;
  tfc_status s = tfc_cuda_check_alive(d);
  if (!s) {
    int error = tfc_cuda_enter(d->api, d->ordinal);
    if (error) s = tfc_cuda_error(d, error, "launching");
  }
  if (!s) {
    atomic_store(&d->launched, true);
    pthread_mutex_lock(&d->launch_lock);
    if (times) s = time_op(d, times, 0);
    if (!s) s = run_call(d, c, ctx, d->compute);
    if (!s && times) s = time_op(d, times, c->node);
    pthread_mutex_unlock(&d->launch_lock);
  }
  if (__builtin_expect(s != NULL, 0))
    return tfc_op_error(s, ctx->graph, ctx->node, device, ctx->inputs, ctx->input_count);
  return NULL;
}

tfc_status tfc_cuda_launch_one(struct tfc_device *device, struct tfc_prepared *p, uint32_t index,
                               struct tfc_kernel_ctx *ctx) {
  return launch_single(device, p, index, ctx, NULL);
}

tfc_status tfc_cuda_launch_timed(struct tfc_device *device, struct tfc_prepared *p, uint32_t index,
                                 struct tfc_kernel_ctx *ctx, struct tfc_step *step) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(device);
  struct tfc_cuda_end *end = calloc(1, sizeof *end);
  struct times times = {.timings = calloc(1, sizeof *times.timings)};
  tfc_status s = tfc_cuda_clock_set(d, step);
  if (!s && (!end || !times.timings)) s = tfc_status_no_memory("timing an operation");
  if (!s) s = launch_single(device, p, index, ctx, &times);
  tfc_cuda_mark_release(times.last);
  if (s) {
    if (times.count) tfc_cuda_mark_release(times.timings->begin), tfc_cuda_mark_release(times.timings->end);
    free(times.timings);
    free(end);
    return s;
  }
  *end = (struct tfc_cuda_end){.device = d, .step = step, .timings = times.timings, .timing_count = times.count};
  end->marks[0] = times.timings->end;
  end->mark_count = 1;
  tfc_cuda_mark_retain(end->marks[0]);
  end->trace = &step->trace->executions[device->index];
  return tfc_cuda_finish(&d->work_end, end, NULL, 0);
}
