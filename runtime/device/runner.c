// Preparing a segment makes a record for each of its operations: the kernel and the context that the kernel is called
// with. To run a simple operation (no variables read by value, no buffers to release, one address space) then costs a
// call and a branch. The records of other operations have `extra` set: there is more to do before or after the call.
#include "runtime/device/runner.h"

#include <stddef.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/pages.h"
#include "runtime/base/spare.h"
#include "runtime/device/cpu/kernels.h"
#include "runtime/device/cpu/team.h"
#include "runtime/device/wait.h"
#include "runtime/host/chain/chain.h"
#include "runtime/ops/host_memory.h"
#include "runtime/ops/rendezvous.h"

// A chain that is part of an operation, with the tensors of the current step.
struct finishing {
  struct tfc_kernel_finish base;
  const struct tfc_chain_finish *finish;
  struct tfc_last_pass last;
  void *inputs[TFC_CHAIN_OPERANDS];
};

// Of an operation that completes by callback (TFC_OP_ASYNC).
struct completion {
  _Atomic uint32_t done; // 1: `status` is set
  tfc_status status;
  // Of one that nobody waits for (tfc_runner_begin_one): called when it has ended.
  void (*ended)(void *arg, bool good);
  void *arg;
  struct tfc_step *step;
  struct tfc_prepared *prepared;
};

// What a simple operation needs of it is at its begin, in as few cache lines as possible.
struct call {
  tfc_status (*run)(struct tfc_kernel_ctx *ctx);
  uint32_t node;
  bool extra;
  bool foreign; // its tensors are in another address space
  bool more;    // it sends a tensor to another task, and so does the next one
  struct tfc_kernel_ctx ctx;
  const struct tfc_segment_op *op;
  struct finishing *finishing;   // NULL: nothing follows on its output
  struct completion *completion; // NULL: it has completed when its kernel returns
  void (*release)(void *state);
  // If `foreign`: copies of the slots with host addresses, which the kernel gets instead.
  struct tfc_tensor *inputs, *outputs;
  struct tfc_variable *shadows; // [input_count]
  struct tfc_variable **shadow_pointers;
};

struct tfc_prepared {
  struct tfc_runner *runner;
  const struct tfc_segment *segment;
  struct call *calls;
  size_t call_bytes; // allocated
  uint32_t call_count;
  struct tfc_arena arena;
  void *own; // the driver's record
  void (*release_own)(void *own);
};

static const struct tfc_shape *declared_shape(const struct tfc_graph *g, struct tfc_output o) {
  static const struct tfc_shape unknown = {.rank = -1};
  for (int hops = 0; hops < 8; hops++) { // through Identity, Switch, reads
    const struct tfc_node *n = &g->nodes[o.node];
    const struct tfc_attr *shape = tfc_node_attr(g, n, "shape");
    if (shape && shape->kind == TFC_ATTR_SHAPE) return shape->shape;
    if (n->input_count == 0) break;
    o = tfc_node_inputs(g, n)[0];
  }
  return &unknown;
}

tfc_status tfc_op_error(tfc_status status, const struct tfc_graph *graph, const struct tfc_node *node,
                        const struct tfc_device *device, const struct tfc_tensor *const *inputs, uint32_t input_count) {
  struct tfc_text text = {0};
  char shape[TFC_SHAPE_TEXT];
  for (uint32_t i = 0; inputs && i < input_count; i++) {
    if (i == 12) {
      tfc_text_printf(&text, ", ... (%u inputs)", input_count);
      break;
    }
    if (!inputs[i]) continue;
    tfc_dtype type = inputs[i]->dtype;
    const struct tfc_shape *of = &inputs[i]->shape;
    if (type == TFC_DTYPE_NONE && i < node->input_count) { // a variable without a value: names its declared type
      struct tfc_output from = tfc_node_inputs(graph, node)[i];
      type = tfc_dtype_base(tfc_output_dtype(graph, from));
      of = declared_shape(graph, from);
    }
    tfc_text_printf(&text, "%s%s%s", text.size ? ", " : "", tfc_dtype_name(type), tfc_shape_show(of, shape));
  }
  status = tfc_status_annotate(status, "node '%.*s' (%.*s) on %s, inputs (%s)", TFC_STR_ARG(node->name),
                               TFC_STR_ARG(node->op), device->info.name, text.data ? text.data : "");
  tfc_text_deinit(&text);
  return status;
}

// --- Chains that are part of an operation ------------------------------------------------------------------------
static void finish_rows(const struct tfc_kernel_finish *base, float *y, int64_t begin, int64_t end) {
  const struct finishing *f = (const struct finishing *)(const void *)base;
  void *tensors[TFC_CHAIN_OPERANDS + 1];
  for (uint32_t i = 0; i < f->finish->input_count; i++) tensors[i] = f->finish->from[i] == TFC_NONE ? y : f->inputs[i];
  tensors[f->finish->input_count] = y;
  tfc_chain_run_rows(&f->finish->chain, tensors, f->finish->columns, begin, end);
}

struct finish_job {
  const struct tfc_kernel_finish *finish;
  float *y;
};
static void finish_range(void *arg, int64_t begin, int64_t end) {
  const struct finish_job *job = arg;
  job->finish->rows(job->finish, job->y, begin, end);
}

// --- Operations that complete by callback ------------------------------------------------------------------------
static struct call *call_of(struct tfc_kernel_ctx *ctx) {
  return (struct call *)(void *)((char *)ctx - offsetof(struct call, ctx));
}

static void complete(struct tfc_kernel_ctx *ctx, tfc_status status) {
  struct completion *end = call_of(ctx)->completion;
  end->status = status;
  atomic_store_explicit(&end->done, 1, memory_order_release);
  tfc_futex_wake(&end->done, 1);
}

// Runs the operation and waits until it has completed. Meanwhile this thread sends and receives messages itself, which
// is faster than being woken.
static tfc_status run_to_end(struct call *c) {
  struct completion *end = c->completion;
  struct tfc_rendezvous *others = c->ctx.env->rendezvous;
  atomic_store_explicit(&end->done, 0, memory_order_relaxed);
  end->status = NULL;
  c->ctx.done = complete;
  c->ctx.more = c->more;
  TFC_RETURN_IF_ERROR(c->run(&c->ctx));
  while (!atomic_load_explicit(&end->done, memory_order_acquire)) {
    if (others && others->attend) others->attend(others, &end->done, 0);
    tfc_futex_wait(&end->done, 0, -1);
  }
  return end->status;
}

// Runs an operation and what follows on its output 0.
static tfc_status run_finished(const struct call *c, struct tfc_kernel_ctx *ctx, struct finishing *f) {
  for (uint32_t i = 0; i < f->finish->input_count; i++)
    if (f->finish->from[i] != TFC_NONE) f->inputs[i] = ctx->inputs[f->finish->from[i]]->data;
  f->base.done = false;
  f->base.last = tfc_chain_last_pass(f->finish, f->inputs, &f->last) ? &f->last : NULL;
  TFC_RETURN_IF_ERROR(c->run(ctx));
  struct tfc_tensor *y = ctx->outputs[0];
  if (!tfc_shape_equal(&y->shape, f->finish->pool ? &f->finish->after : &f->finish->before))
    return tfc_status_make(TFC_INTERNAL, "the output has another shape than when the step was planned");
  struct finish_job job = {&f->base, y->data};
  const int64_t columns = f->finish->columns, rows = tfc_tensor_elements(y) / columns;
  if (!f->base.done) tfc_kernel_parallel_for(ctx, rows, 16384 / columns + 1, finish_range, &job);
  y->shape = f->finish->after;
  return NULL;
}

static tfc_status run_and_finish(struct call *c) {
  if (c->completion) return run_to_end(c);
  return c->finishing ? run_finished(c, &c->ctx, c->finishing) : c->run(&c->ctx);
}

// --- Preparing ---------------------------------------------------------------------------------------------------
static tfc_status choose(struct tfc_runner *r, struct tfc_prepared *p, const struct tfc_segment_op *op,
                         struct call *c) {
  const struct tfc_graph *g = p->segment->graph;
  const struct tfc_node *n = &g->nodes[op->node];
  if (op->prepared) {
    c->run = op->def->kernel;
    c->ctx.state = op->state;
    return NULL;
  }
  struct tfc_prepare_ctx base = tfc_segment_prepare_ctx(g, op, &p->arena);
  base.pool = op->finish ? op->finish->pool : NULL;
  tfc_str name = tfc_str_from(op->def->name);
  const struct tfc_cpu_kernel *k = NULL;
  while (r->fast_kernels && (k = tfc_cpu_kernel_next(name, tfc_node_main_type(g, n), k))) {
    struct tfc_prepare_ctx attempt = base;
    struct tfc_cpu_prepare cp = {
        .base = &attempt, .op = op->outputs ? op : NULL, .device = r->device, .variant = k->variant};
    tfc_status s = k->prepare ? k->prepare(&cp) : NULL;
    if (!s) {
      c->run = k->run;
      c->ctx.state = attempt.state;
      c->release = attempt.release;
      return NULL;
    }
    if (tfc_status_code(s) != TFC_UNIMPLEMENTED)
      return tfc_status_annotate(s, "node '%.*s' (%s)", TFC_STR_ARG(n->name), op->def->name);
    tfc_status_free(s);
  }
  if (!op->def->kernel)
    return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %s has no kernel on %s; feed its outputs instead",
                           TFC_STR_ARG(n->name), op->def->name, r->device->info.name);
  if (base.pool)
    return tfc_status_make(TFC_INTERNAL, "node '%.*s': no kernel of %s pools its result", TFC_STR_ARG(n->name),
                           op->def->name);
  tfc_status s = tfc_kernel_prepare(&base);
  if (s) return tfc_status_annotate(s, "node '%.*s' (%s)", TFC_STR_ARG(n->name), op->def->name);
  c->run = op->def->kernel;
  c->ctx.state = base.state;
  c->release = base.release;
  return NULL;
}

static tfc_status build(struct tfc_runner *r, struct tfc_prepared *p, const struct tfc_segment_op *op, struct call *c) {
  const struct tfc_graph *g = p->segment->graph;
  c->node = op->node;
  c->op = op;
  c->ctx = (struct tfc_kernel_ctx){.graph = g,
                                   .node = &g->nodes[op->node],
                                   .env = r->offset && op->on_host ? &r->host_env : &r->env,
                                   .inputs = op->inputs,
                                   .variables = op->variables,
                                   .outputs = op->outputs,
                                   .output_variables = op->output_variables,
                                   .input_count = op->input_count,
                                   .output_count = op->output_count,
                                   .rounding = p->segment->rounding,
                                   .node_state = op->node_state};
  c->foreign = r->offset && !op->on_host;
  c->extra = op->read_count || op->release_count || r->offset || op->finish || op->def->flags & TFC_OP_ASYNC;
  if (op->def->flags & TFC_OP_ASYNC && !(c->completion = TFC_ARENA_NEW(&p->arena, struct completion)))
    return tfc_status_no_memory("preparing a segment");
  if (op->finish) {
    c->finishing = TFC_ARENA_NEW(&p->arena, struct finishing);
    if (!c->finishing) return tfc_status_no_memory("preparing a segment");
    *c->finishing = (struct finishing){.base.rows = finish_rows, .finish = op->finish};
    c->ctx.finish = &c->finishing->base;
    c->ctx.input_count = op->finish->own;
  }
  if (c->foreign && op->outputs) {
    c->inputs = TFC_ARENA_ARRAY(&p->arena, struct tfc_tensor, op->input_count + 1);
    c->outputs = TFC_ARENA_ARRAY(&p->arena, struct tfc_tensor, op->output_count + 1);
    c->shadows = TFC_ARENA_ARRAY(&p->arena, struct tfc_variable, op->input_count + 1);
    c->shadow_pointers = TFC_ARENA_ARRAY(&p->arena, struct tfc_variable *, op->input_count + op->output_count + 1);
    const struct tfc_tensor **inputs = TFC_ARENA_ARRAY(&p->arena, const struct tfc_tensor *, op->input_count + 1);
    struct tfc_tensor **outputs = TFC_ARENA_ARRAY(&p->arena, struct tfc_tensor *, op->output_count + 1);
    if (!c->inputs || !c->outputs || !c->shadows || !c->shadow_pointers || !inputs || !outputs)
      return tfc_status_no_memory("preparing a segment");
    for (uint32_t i = 0; i < op->input_count; i++) inputs[i] = &c->inputs[i];
    for (uint32_t i = 0; i < op->output_count; i++) outputs[i] = &c->outputs[i];
    c->ctx.inputs = inputs;
    c->ctx.outputs = outputs;
    c->ctx.variables = c->shadow_pointers;
    c->ctx.output_variables = c->shadow_pointers + op->input_count;
  }
  return choose(r, p, op, c);
}

static bool sends(const struct call *c) {
  return c->op->def->role == TFC_ROLE_SEND;
}

tfc_status tfc_runner_prepare(struct tfc_runner *r, const struct tfc_segment *segment, struct tfc_prepared **out) {
  tfc_status s = NULL;
  struct tfc_prepared *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("preparing a segment");
  p->runner = r;
  p->segment = segment;
  p->call_bytes = (segment->op_count + (size_t)1) * sizeof *p->calls;
  p->calls = tfc_spare_take(p->call_bytes, &p->call_bytes);
  if (!p->calls) {
    p->calls = malloc(p->call_bytes);
    if (!p->calls) TFC_TRY(s, tfc_status_no_memory("preparing a segment"));
    tfc_pages_advise(p->calls, p->call_bytes);
  }
  for (uint32_t i = 0; i < segment->op_count; i++) {
    p->calls[i] = (struct call){0}; // one by one, because they are written at once while they are in the cache
    p->call_count = i + 1;
    TFC_TRY(s, build(r, p, &segment->ops[i], &p->calls[i]));
    if (i) p->calls[i - 1].more = sends(&p->calls[i - 1]) && sends(&p->calls[i]);
  }
  *out = p, p = NULL;
out:
  tfc_runner_release(p);
  return s;
}

void tfc_runner_release(struct tfc_prepared *p) {
  if (!p) return;
  for (uint32_t i = 0; i < p->call_count; i++)
    if (p->calls[i].release) p->calls[i].release(p->calls[i].ctx.state);
  if (p->release_own) p->release_own(p->own);
  tfc_spare_give(p->calls, p->call_bytes);
  tfc_arena_deinit(&p->arena);
  free(p);
}

const struct tfc_segment *tfc_runner_segment(const struct tfc_prepared *p) {
  return p->segment;
}

void tfc_runner_attach(struct tfc_prepared *p, void *own, void (*release)(void *own)) {
  p->own = own;
  p->release_own = release;
}

void *tfc_runner_attached(const struct tfc_prepared *p) {
  return p->own;
}

bool tfc_runner_supports(struct tfc_runner *r, const struct tfc_op_def *def, tfc_dtype type, const char **out_reason) {
  const char *reason = NULL;
  if (!def)
    reason = "the op is not known";
  else if (!def->kernel && !(r->fast_kernels && tfc_cpu_kernel_next(tfc_str_from(def->name), type, NULL)))
    reason = "the op has no kernel";
  else if (def->types && type != TFC_DTYPE_NONE && !(def->types & TFC_TYPE_BIT(tfc_dtype_base(type))))
    reason = "the op's kernel does not take this type";
  if (out_reason) *out_reason = reason;
  return !reason;
}

// --- Another address space ---------------------------------------------------------------------------------------
static void hide_buffer(struct tfc_runner *r, const struct tfc_tensor *t) {
  if (t->buffer && t->buffer->owner == r->memory && !tfc_is_foreign(t->buffer->data))
    t->buffer->data = tfc_to_foreign(t->buffer->data);
}

static tfc_status enter_space(struct tfc_runner *r, struct call *c) {
  const struct tfc_segment_op *op = c->op;
  for (uint32_t i = 0; i < op->input_count; i++) {
    struct tfc_tensor *t = &c->inputs[i];
    *t = *op->inputs[i];
    bool on_host = tfc_host_bit(op->host_inputs, i), foreign = tfc_is_foreign(t->data);
    if (t->data && t->size && tfc_dtype_is_plain(t->dtype) && foreign == on_host)
      return tfc_status_make(TFC_INTERNAL, "input %u is expected in %s memory", i, on_host ? "host" : "device");
    if (foreign) t->data = tfc_to_host(t->data);
    c->shadow_pointers[i] = NULL;
    struct tfc_variable *v = op->variables ? op->variables[i] : NULL;
    if (!v) continue;
    tfc_variable_lock(v);
    c->shadows[i] = (struct tfc_variable){.object = {.type = v->object.type},
                                          .name = v->name,
                                          .dtype = v->dtype,
                                          .shape = v->shape,
                                          .value = v->value,
                                          .initialized = v->initialized,
                                          .device = v->device};
    tfc_variable_unlock(v);
    atomic_init(&c->shadows[i].object.references, 1000); // so that releasing it never frees it
    if (tfc_is_foreign(c->shadows[i].value.data)) c->shadows[i].value.data = tfc_to_host(c->shadows[i].value.data);
    c->shadow_pointers[i] = &c->shadows[i];
  }
  for (uint32_t i = 0; i < op->output_count; i++) {
    c->outputs[i] = *op->outputs[i];
    if (tfc_is_foreign(c->outputs[i].data)) c->outputs[i].data = tfc_to_host(c->outputs[i].data);
    struct tfc_variable **shadow = &c->shadow_pointers[op->input_count + i];
    *shadow = NULL;
    for (uint32_t k = 0; op->output_variables && op->output_variables[i] && k < op->input_count; k++)
      if (op->variables[k] == op->output_variables[i]) *shadow = &c->shadows[k];
  }
  (void)r;
  return NULL;
}

static void leave_space(struct tfc_runner *r, struct call *c) {
  const struct tfc_segment_op *op = c->op;
  for (uint32_t i = 0; i < op->input_count; i++) {
    struct tfc_variable *v = op->variables ? op->variables[i] : NULL, *shadow = &c->shadows[i];
    if (!v) continue;
    hide_buffer(r, &shadow->value);
    if (shadow->value.data && shadow->value.buffer && shadow->value.buffer->owner == r->memory)
      shadow->value.data = tfc_to_foreign(shadow->value.data);
    tfc_variable_lock(v);
    if (shadow->value.buffer != v->value.buffer || shadow->value.data != v->value.data ||
        shadow->initialized != v->initialized || !tfc_shape_equal(&shadow->value.shape, &v->value.shape)) {
      v->value = shadow->value;
      v->initialized = shadow->initialized;
    }
    tfc_variable_unlock(v);
  }
  for (uint32_t i = 0; i < op->output_count; i++) {
    struct tfc_tensor *t = &c->outputs[i], *slot = op->outputs[i];
    if (op->output_variables && op->output_variables[i]) { // readers of a reference read the variable
      tfc_buffer_release(t->buffer);
      continue;
    }
    if (slot->data && !slot->buffer && !t->buffer) { // a planned place
      slot->dtype = t->dtype;
      slot->shape = t->shape;
      slot->size = t->size;
      continue;
    }
    *slot = *t;
    bool on_host = tfc_host_bit(op->host_outputs, i);
    if (!slot->buffer || slot->buffer->owner != r->memory || on_host) continue;
    hide_buffer(r, slot);
    slot->data = tfc_to_foreign(slot->data);
  }
}

// --- Running -----------------------------------------------------------------------------------------------------
static tfc_status before(struct tfc_runner *r, struct call *c) {
  for (uint32_t i = 0; i < c->op->read_count; i++) {
    const struct tfc_variable_read *read = &c->op->reads[i];
    if (!read->variable->initialized) return tfc_variable_check(read->variable);
    if (read->view) read->view->data = read->variable->value.data;
  }
  return c->foreign ? enter_space(r, c) : NULL;
}

static void after(struct tfc_runner *r, struct call *c) {
  if (c->foreign) leave_space(r, c);
  for (uint32_t i = 0; i < c->op->release_count; i++) tfc_tensor_release(c->op->releases[i]);
}

static tfc_status run_call(struct tfc_runner *r, struct call *c) {
  tfc_status s = NULL;
  if (__builtin_expect(!c->extra, 1))
    s = c->run(&c->ctx);
  else if (!(s = before(r, c))) {
    s = run_and_finish(c);
    after(r, c);
  }
  return s;
}

static tfc_status call_error(struct tfc_runner *r, struct tfc_prepared *p, struct call *c, tfc_status s) {
  const struct tfc_graph *g = p->segment->graph;
  return tfc_op_error(s, g, &g->nodes[c->node], r->device, c->op->inputs, c->op->input_count);
}

void tfc_runner_enter(struct tfc_kernel_env *env, struct tfc_step *step) {
  env->resources = step->resources;
  env->step_resources = step->step_resources;
  env->step_id = step->id;
  env->rendezvous = step->rendezvous;
  env->seed = step->seed;
  env->owner = step;
}

// Memory for an operation on the host is allocated as host memory.
static void enter_host(struct tfc_runner *r) {
  r->host_env = r->env;
  r->host_env.allocate = NULL;
}

void tfc_runner_set_environment(struct tfc_prepared *p, uint32_t index, struct tfc_kernel_env *env) {
  p->calls[index].ctx.env = env;
}

bool tfc_runner_run_one(struct tfc_prepared *p, uint32_t index, struct tfc_step *step) {
  struct call *c = &p->calls[index];
  if (tfc_step_stopped(step)) {
    tfc_step_note_stop(step, p->runner->device->index, 0, c->node + 1);
    return false;
  }
  tfc_status s = run_call(p->runner, c);
  if (__builtin_expect(s == NULL, 1)) return true;
  tfc_step_fail(step, call_error(p->runner, p, c, s));
  return false;
}

static void completed(struct tfc_kernel_ctx *ctx, tfc_status status) {
  struct call *c = call_of(ctx);
  const struct completion end = *c->completion; // the call may be made again as soon as `ended` was called
  if (status)
    tfc_step_fail(end.step, call_error(end.prepared->runner, end.prepared, c, status));
  else
    after(end.prepared->runner, c);
  end.ended(end.arg, !status);
}

bool tfc_runner_completes_later(const struct tfc_prepared *p, uint32_t index) {
  return p->calls[index].completion;
}

void tfc_runner_begin_one(struct tfc_prepared *p, uint32_t index, struct tfc_step *step, bool more,
                          void (*ended)(void *arg, bool good), void *arg) {
  struct call *c = &p->calls[index];
  if (tfc_step_stopped(step)) {
    tfc_step_note_stop(step, p->runner->device->index, 0, c->node + 1);
    ended(arg, false);
    return;
  }
  *c->completion = (struct completion){.ended = ended, .arg = arg, .step = step, .prepared = p};
  c->ctx.done = completed;
  c->ctx.more = more;
  tfc_status s = before(p->runner, c);
  if (!s) s = c->run(&c->ctx);
  if (s) completed(&c->ctx, s); // an error means that the kernel does not call `done`
}

// Runs an operation and updates its shortest time.
static tfc_status run_timed(struct tfc_runner *r, struct call *c, struct tfc_op_time *out) {
  if (c->completion) { // it waits for others: how long says nothing about this operation
    *out = (struct tfc_op_time){.wall = 1};
    return run_call(r, c);
  }
  uint64_t split = atomic_load_explicit(&r->times->split, memory_order_relaxed);
  uint64_t work = atomic_load_explicit(&r->times->work, memory_order_relaxed);
  uint64_t begin = tfc_ticks();
  tfc_status s = run_call(r, c);
  uint64_t wall = tfc_ticks() - begin;
  if (!out->wall || wall < out->wall)
    *out = (struct tfc_op_time){wall, atomic_load_explicit(&r->times->split, memory_order_relaxed) - split,
                                atomic_load_explicit(&r->times->work, memory_order_relaxed) - work};
  return s;
}

void tfc_runner_run(struct tfc_runner *r, struct tfc_prepared *p, struct tfc_step *step, tfc_status fail,
                    uint64_t waited_from, uint64_t waited_to) {
  if (tfc_step_stopped(step) || p->call_count == 0) {
    if (p->call_count) tfc_step_note_stop(step, r->device->index, 0, p->calls[0].node + 1);
    if (fail) tfc_step_fail(step, fail);
    return;
  }
  if (fail) {
    tfc_step_fail(step, call_error(r, p, &p->calls[0], fail));
    return;
  }
  struct tfc_device *device = r->device;
  struct tfc_memory_account *before = tfc_account_enter(r->memory->account);
  tfc_runner_enter(&r->env, step);
  if (r->offset) enter_host(r);
  struct tfc_op_time *times = r->times ? p->segment->times : NULL;
  struct tfc_trace_sink *sink = step->trace;
  struct tfc_trace_buffer *buffer = sink ? &sink->buffers[device->index] : NULL;
  uint64_t begin = tfc_ticks(), last = begin;
  if (!waited_to) waited_from = waited_to = begin; // it did not wait: its inputs were ready
  for (uint32_t i = 0; buffer && i < p->segment->arrival_count; i++)
    tfc_trace_add(buffer, TFC_TRACE_TRANSFER, p->segment->arrivals[i], device->index, waited_from, waited_to, 0);
  struct call *end = p->calls + p->call_count;
  for (struct call *c = p->calls; c < end; c++) {
    if (tfc_step_stopped(step)) {
      tfc_step_note_stop(step, device->index, c > p->calls ? c[-1].node + 1 : 0, c->node + 1);
      break;
    }
    if (buffer && sink->op_begin) sink->op_begin(sink, device->index, c->node);
    tfc_status s = __builtin_expect(times != NULL, 0) ? run_timed(r, c, &times[c - p->calls]) : run_call(r, c);
    if (buffer) {
      if (sink->op_end) sink->op_end(sink, device->index, c->node);
      uint64_t now = tfc_ticks();
      if (!c->completion) // else the device waited, and did not work
        tfc_trace_add(buffer, TFC_TRACE_OP, c->node, device->index, last, now, 0);
      last = now;
    }
    if (__builtin_expect(s != NULL, 0)) {
      tfc_step_fail(step, call_error(r, p, c, s));
      break;
    }
  }
  if (step->spans) {
    struct tfc_span *span = &step->spans[device->index];
    if (!span->begin) span->begin = begin;
    span->end = tfc_ticks();
  }
  tfc_account_enter(before);
}

// Several threads may launch one operation, so each has its own struct finishing.
static tfc_status launch_finished(const struct call *c, struct tfc_kernel_ctx *ctx) {
  struct finishing f = {.base.rows = finish_rows, .finish = c->finishing->finish};
  const uint32_t count = ctx->input_count;
  ctx->finish = &f.base, ctx->input_count = f.finish->own;
  tfc_status s = run_finished(c, ctx, &f);
  ctx->finish = NULL, ctx->input_count = count;
  return s;
}

// A launch has the caller's tensors instead of the segment's slots, so it uses a copy of the call on the stack. An
// operation on which a chain follows is launched only in the host's own memory.
tfc_status tfc_runner_launch(struct tfc_runner *r, struct tfc_prepared *p, uint32_t index, struct tfc_kernel_ctx *ctx) {
  struct call *c = &p->calls[index];
  ctx->state = c->ctx.state;
  ctx->rounding = c->ctx.rounding;
  ctx->graph = c->ctx.graph;
  ctx->node = c->ctx.node;
  if (!c->foreign) {
    struct tfc_kernel_env env;
    if (r->offset) {
      env = *ctx->env;
      env.allocate = NULL;
      ctx->env = &env;
    }
    struct tfc_memory_account *before = tfc_account_enter(r->memory->account);
    tfc_status s = c->finishing ? launch_finished(c, ctx) : c->run(ctx);
    tfc_account_enter(before);
    if (__builtin_expect(s != NULL, 0))
      return tfc_op_error(s, ctx->graph, ctx->node, r->device, ctx->inputs, ctx->input_count);
    return NULL;
  }
  enum { FEW = 16 };
  uint32_t n = ctx->input_count, m = ctx->output_count;
  struct tfc_tensor few_tensors[FEW];
  const struct tfc_tensor *few_inputs[FEW];
  struct tfc_tensor *few_outputs[FEW];
  struct tfc_variable few_shadows[FEW], *few_pointers[FEW];
  bool fits = n + m <= FEW;
  void *heap = NULL;
  struct call local = {.op = &(struct tfc_segment_op){.node = c->node,
                                                      .def = c->op->def,
                                                      .inputs = (const struct tfc_tensor **)(uintptr_t)ctx->inputs,
                                                      .outputs = ctx->outputs,
                                                      .variables = (struct tfc_variable **)(uintptr_t)ctx->variables,
                                                      .output_variables = ctx->output_variables,
                                                      .input_count = n,
                                                      .output_count = m,
                                                      .host_inputs = c->op->host_inputs,
                                                      .host_outputs = c->op->host_outputs}};
  const struct tfc_tensor **inputs = few_inputs;
  struct tfc_tensor **outputs = few_outputs;
  local.inputs = few_tensors;
  local.shadows = few_shadows;
  local.shadow_pointers = few_pointers;
  if (!fits) {
    size_t size = (n + m) * (sizeof(struct tfc_tensor) + sizeof(struct tfc_variable) + 3 * sizeof(void *));
    if (!(heap = malloc(size))) return tfc_status_no_memory("a launch");
    local.inputs = heap;
    local.shadows = (struct tfc_variable *)(local.inputs + n + m);
    local.shadow_pointers = (struct tfc_variable **)(local.shadows + n + m);
    inputs = (const struct tfc_tensor **)(local.shadow_pointers + n + m);
    outputs = (struct tfc_tensor **)(inputs + n + m);
  }
  local.outputs = local.inputs + n;
  tfc_status s = enter_space(r, &local);
  if (!s) {
    for (uint32_t i = 0; i < n; i++) inputs[i] = &local.inputs[i];
    for (uint32_t i = 0; i < m; i++) outputs[i] = &local.outputs[i];
    struct tfc_kernel_ctx call = *ctx;
    call.inputs = inputs;
    call.outputs = outputs;
    call.variables = local.shadow_pointers;
    call.output_variables = local.shadow_pointers + n;
    struct tfc_memory_account *before = tfc_account_enter(r->memory->account);
    s = c->run(&call);
    tfc_account_enter(before);
    leave_space(r, &local);
  }
  if (s) s = tfc_op_error(s, ctx->graph, ctx->node, r->device, ctx->inputs, n);
  free(heap);
  return s;
}
