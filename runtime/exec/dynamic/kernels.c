// Runs the kernels of a run: moves their inputs to where they are needed, chooses the thread, and takes the results.
#include "runtime/exec/dynamic/kernels.h"
#include "runtime/exec/dynamic/copies.h"
#include "runtime/exec/dynamic/frames.h"
#include "runtime/exec/dynamic/ready.h"

#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/copy.h"
#include "runtime/device/runner.h"
#include "runtime/device/wait.h"
#include "runtime/exec/plan/step.h"
#include "runtime/exec/variables.h"

// Reads the current value of a reference.
tfc_status tfc_run_dereference(struct tfc_run *r, struct tfc_run_value *v) {
  struct tfc_variable *variable = v->reference;
  pthread_mutex_lock(&variable->access);
  tfc_status s = tfc_variable_check(variable);
  if (!s) tfc_tensor_share(&variable->value, &v->t);
  pthread_mutex_unlock(&variable->access);
  if (s) return s;
  v->reference = NULL;
  bool device = tfc_run_own_space(r, (uint16_t)variable->device) &&
                !tfc_variable_beside(r->session->devices[variable->device], variable->dtype);
  v->location = device ? (uint16_t)variable->device : TFC_PLAN_HOST;
  return NULL;
}

uint32_t tfc_run_transfer(const struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, uint16_t from) {
  return r->nested || !r->step->trace ? TFC_COPY_UNTRACED : tfc_dynamic_transfer(r->plan, n, slot, from);
}

tfc_status tfc_run_read(struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, struct tfc_run_value *v) {
  if (v->location == TFC_PLAN_HOST) return NULL;
  const uint16_t from = v->location;
  struct tfc_tensor read = {0};
  struct tfc_copy copy = {.source_device = r->session->devices[from], .source = &v->t, .target = &read};
  const uint32_t id = tfc_run_transfer(r, n, slot, from);
  struct tfc_trace_sink *sink = id == TFC_COPY_UNTRACED ? NULL : r->step->trace;
  const uint64_t begin = tfc_ticks();
  if (sink && sink->op_begin) sink->op_begin(sink, from, id | TFC_TRACE_UID_TRANSFER);
  tfc_status s = tfc_runner_copy(&copy);
  if (sink && sink->op_end) sink->op_end(sink, from, id | TFC_TRACE_UID_TRANSFER);
  if (s) return s;
  if (sink) { // the trace buffer of the thread that runs this: a device's, or the step's own
    const bool by_device = n->kind == TFC_DNODE_OP && !n->direct;
    tfc_trace_add(&sink->buffers[by_device ? n->device : sink->buffer_count - 1], TFC_TRACE_TRANSFER, id, from, begin,
                  tfc_ticks(), read.size);
  }
  tfc_tensor_release(&v->t);
  v->t = read;
  v->location = TFC_PLAN_HOST;
  return NULL;
}

// Whether a kernel on a device with its own memory needs this input in that memory.
static inline bool wants_on_device(const struct tfc_dnode *n, uint32_t k, const struct tfc_run_value *v) {
  return tfc_dtype_is_plain(v->t.dtype) && !tfc_host_bit(n->host.inputs, k);
}

static inline bool taken_by_reference(const struct tfc_dnode *n, uint32_t k) {
  return k < 32 && n->reference_inputs >> k & 1;
}

// Is called before a kernel starts, on the run's thread: waits until no copy reads memory that the kernel writes in
// place, and begins to send inputs that are elsewhere.
static tfc_status send_inputs(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_sending *sending) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_value *in = item->iteration->values + n->input_begin;
  bool foreign = tfc_run_own_space(r, n->device) && !n->direct;
  sending->to = n->device;
  for (uint32_t k = 0; k < n->input_count; k++) {
    struct tfc_run_value *v = &in[k];
    if (v->reference && taken_by_reference(n, k)) tfc_run_leave(r, v->reference);
    if (!foreign || (v->reference && taken_by_reference(n, k))) continue;
    if (v->reference) TFC_RETURN_IF_ERROR(tfc_run_dereference(r, v));
    if (v->location != n->device && wants_on_device(n, k, v)) TFC_RETURN_IF_ERROR(tfc_run_send(r, n, k, v, sending));
  }
  return NULL;
}

// Makes a kernel's inputs ready: references, variables behind handles, memory. On the thread that will run the kernel.
static tfc_status take_inputs(struct tfc_run *r, const struct tfc_run_item *item, const struct tfc_tensor **inputs,
                              struct tfc_variable **variables) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_value *in = item->iteration->values + n->input_begin;
  bool foreign = tfc_run_own_space(r, n->device) && !n->direct;
  for (uint32_t k = 0; k < n->input_count; k++) {
    struct tfc_run_value *v = &in[k];
    variables[k] = NULL;
    inputs[k] = &v->t;
    if (!v->live) continue; // dead
    if (v->reference) {
      if (taken_by_reference(n, k)) {
        variables[k] = v->reference;
        inputs[k] = &v->reference->value;
        continue;
      }
      TFC_RETURN_IF_ERROR(tfc_run_dereference(r, v));
    }
    if (v->t.dtype == TFC_RESOURCE && v->t.size == sizeof(void *)) {
      struct tfc_object *object = *(struct tfc_object **)v->t.data;
      if (object && object->type == &tfc_variable_type) variables[k] = (struct tfc_variable *)(void *)object;
    }
    if (v->location != TFC_PLAN_HOST && !(foreign && wants_on_device(n, k, v)))
      TFC_RETURN_IF_ERROR(tfc_run_read(r, n, k, v));
  }
  return NULL;
}

// Adds the node's name to an error.
static tfc_status name_node(const struct tfc_run *r, const struct tfc_run_item *item, const struct tfc_tensor **inputs,
                            tfc_status s) {
  const struct tfc_dnode *n = item->node;
  const struct tfc_graph *g = r->plan->ir.graph;
  if (__builtin_expect(s == NULL, 1)) return NULL;
  for (uint32_t k = 0; k < n->input_count; k++) inputs[k] = &item->iteration->values[n->input_begin + k].t;
  return tfc_op_error(s, g, &g->nodes[n->node], r->session->devices[n->device], inputs, n->input_count);
}

static tfc_status check_outputs(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_value *outs,
                                struct tfc_variable **output_variables) {
  const struct tfc_graph *g = r->plan->ir.graph;
  bool foreign = tfc_run_own_space(r, n->device) && !n->direct;
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct tfc_run_value *v = &outs[i];
    if (output_variables[i]) {
      tfc_run_value_release(v);
      v->reference = output_variables[i];
    } else if (v->t.dtype == TFC_DTYPE_NONE) {
      return tfc_status_make(TFC_INTERNAL, "node '%.*s' (%s) left its output %u empty",
                             TFC_STR_ARG(g->nodes[n->node].name), n->def->name, i);
    }
    bool device = foreign && tfc_dtype_is_plain(v->t.dtype) && !tfc_host_bit(n->host.outputs, i);
    v->location = device ? n->device : TFC_PLAN_HOST;
    v->live = true;
  }
  return NULL;
}

// Locks the variables that an operation uses, each once, in the order of their addresses.
enum { MOST_HELD = 16 };
static uint32_t hold_variables(const struct tfc_dnode *n, struct tfc_variable *const *variables,
                               struct tfc_variable **held) {
  uint32_t count = 0;
  // The operations of a called function lock their variables themselves; an operation that waits must hold no lock.
  if (n->def->flags & (TFC_OP_FUNCTIONAL | TFC_OP_ASYNC)) return 0;
  for (uint32_t k = 0; k < n->input_count && count < MOST_HELD; k++) {
    uint32_t at = count;
    if (!variables[k]) continue;
    while (at > 0 && held[at - 1] > variables[k]) at--;
    if (at > 0 && held[at - 1] == variables[k]) continue;
    memmove(held + at + 1, held + at, (count - at) * sizeof *held);
    held[at] = variables[k];
    count++;
  }
  for (uint32_t i = 0; i < count; i++) pthread_mutex_lock(&held[i]->access);
  return count;
}

// Records work on the run's own thread in the trace. For an asynchronous device the record goes to the run's buffer,
// because that device's thread may be writing to the device's own buffer. Calls of functions are not recorded.
static void trace_direct(struct tfc_run *r, const struct tfc_dnode *n, uint64_t begin) {
  const struct tfc_trace_sink *sink = r->nested ? NULL : r->step->trace;
  if (sink && r->session->devices[n->device]->driver->on_its_own &&
      !(n->def->flags & (TFC_OP_FUNCTIONAL | TFC_OP_ASYNC)))
    tfc_trace_add(&sink->buffers[sink->buffer_count - 1], TFC_TRACE_OP, n->node, n->device, begin, tfc_ticks(), 0);
}

static tfc_status launch_direct(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_kernel_ctx *ctx) {
  const struct tfc_graph *graph = ctx->graph = r->plan->ir.graph;
  const struct tfc_node *node = ctx->node = &graph->nodes[n->node];
  const struct tfc_tensor *const *inputs = ctx->inputs;
  ctx->state = n->state;
  if (tfc_run_own_space(r, n->device)) ctx->env = &r->host_envs[n->device];
  const uint64_t begin = r->step->trace ? tfc_ticks() : 0;
  tfc_status s = n->def->kernel(ctx);
  if (begin) trace_direct(r, n, begin);
  return s ? tfc_op_error(s, graph, node, r->session->devices[n->device], inputs, n->input_count) : NULL;
}

static tfc_status launch_held(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_kernel_ctx *ctx) {
  struct tfc_device *device = r->session->devices[n->device];
  if (n->direct) return launch_direct(r, n, ctx);
  struct tfc_trace_sink *sink = r->nested ? NULL : r->step->trace;
  if (!sink) return device->driver->launch(device, r->d->prepared[n->device], n->kernel, ctx);
  if (sink->op_begin) sink->op_begin(sink, n->device, n->node);
  uint64_t (*count)(void) = device->driver->launches, before = count ? count() : 0, begin = tfc_ticks();
  struct tfc_prepared *prepared = r->d->prepared[n->device];
  tfc_status s = sink->executions && device->driver->launch_timed
                     ? device->driver->launch_timed(device, prepared, n->kernel, ctx, r->step)
                     : device->driver->launch(device, prepared, n->kernel, ctx);
  tfc_trace_add(&sink->buffers[n->device], TFC_TRACE_OP, n->node, n->device, begin, tfc_ticks(),
                count ? count() - before : 0);
  if (sink->op_end) sink->op_end(sink, n->device, n->node);
  return s;
}

tfc_status tfc_run_launch(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *held[MOST_HELD + 1];
  uint32_t count = hold_variables(n, ctx->variables, held);
  tfc_status s = launch_held(r, n, ctx);
  while (count > 0) pthread_mutex_unlock(&held[--count]->access);
  return s;
}

// Sends and awaits a kernel's inputs, on devices whose operations the run's thread launches itself.
static tfc_status get_inputs(struct tfc_run *r, const struct tfc_run_item *item) {
  struct tfc_run_sending sending = {0};
  tfc_status s = send_inputs(r, item, &sending);
  if (!s && sending.made) {
    tfc_submit_begin();
    s = tfc_run_submit(r, &sending);
    tfc_submit_end();
  }
  if (!s && sending.arrival) s = tfc_run_await(r, sending.to, sending.arrival);
  tfc_run_drop(&sending);
  return s;
}

tfc_status tfc_run_inline(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs) {
  const struct tfc_dnode *n = item->node;
  const struct tfc_tensor *inputs[TFC_RUN_FEW];
  struct tfc_variable *variables[2 * TFC_RUN_FEW]; // variables that exist
  struct tfc_tensor *outputs[TFC_RUN_FEW];
  r->at = n;
  if (r->copies) TFC_RETURN_IF_ERROR(name_node(r, item, inputs, get_inputs(r, item)));
  TFC_RETURN_IF_ERROR(name_node(r, item, inputs, take_inputs(r, item, inputs, variables)));
  for (uint32_t i = 0; i < n->output_count; i++) {
    outputs[i] = &outs[i].t;
    variables[TFC_RUN_FEW + i] = NULL;
  }
  struct tfc_kernel_ctx ctx = {.env = &r->envs[n->device],
                               .inputs = inputs,
                               .variables = variables,
                               .outputs = outputs,
                               .output_variables = variables + TFC_RUN_FEW,
                               .input_count = n->input_count,
                               .output_count = n->output_count,
                               .reusable = n->reusable_inputs,
                               .node_state = n->node_state};
  TFC_RETURN_IF_ERROR(tfc_run_launch(r, n, &ctx));
  return check_outputs(r, n, outs, variables + TFC_RUN_FEW);
}

static void free_flight(struct tfc_run_flight *f) {
  for (uint32_t i = 0; i < f->item.node->output_count; i++)
    if (f->outs[i].live || f->outs[i].t.buffer) tfc_run_value_release(&f->outs[i]);
  free(f);
}

void tfc_run_mailbox_leave(struct tfc_run_mailbox *m) {
  if (atomic_fetch_sub(&m->references, 1) == 1) free(m);
}

// Returns a kernel to its run. Called on any thread; afterwards the flight and the run may have been freed.
static void arrive(struct tfc_run_flight *f) {
  struct tfc_run_mailbox *m = f->mailbox;
  f->next = atomic_load(&m->arrived);
  while (!atomic_compare_exchange_weak(&m->arrived, &f->next, f)) {
  }
  atomic_fetch_add(&m->signal, 1);
  tfc_futex_wake(&m->signal, 1);
  tfc_run_mailbox_leave(m);
}

static void async_done(struct tfc_kernel_ctx *ctx, tfc_status status) {
  struct tfc_run_flight *f = (struct tfc_run_flight *)(void *)((char *)ctx - offsetof(struct tfc_run_flight, ctx));
  const struct tfc_dnode *n = f->item.node;
  const struct tfc_run *r = f->run; // the run still exists, because it waits for this flight
  const struct tfc_graph *g = r->plan->ir.graph;
  if (status)
    status = tfc_op_error(status, g, &g->nodes[n->node], r->session->devices[n->device], f->inputs, n->input_count);
  f->status = status;
  arrive(f);
}

static tfc_status take_all(struct tfc_run_flight *f) {
  struct tfc_run *r = f->run;
  tfc_status s = f->arrival ? tfc_run_await(r, f->item.node->device, f->arrival) : NULL;
  if (!s) s = take_inputs(r, &f->item, f->inputs, f->variables);
  return name_node(r, &f->item, f->inputs, s);
}

// runs on the device's thread or, for kernels that wait, on the run's own
static void run_flight(struct tfc_task *task) {
  struct tfc_run_flight *f = (struct tfc_run_flight *)(void *)task;
  struct tfc_run *r = f->run;
  const struct tfc_dnode *n = f->item.node;
  bool waits = n->is_async;
  if (atomic_load(&r->stopped))
    f->status = tfc_status_make(TFC_CANCELLED, "the step was cancelled");
  else if (!(f->status = take_all(f))) {
    tfc_status s =
        tfc_run_launch(r, n, &f->ctx); // if the kernel waits, it may already have returned, and `f` may be freed
    if (waits && !s) return;
    f->status = s;
  }
  arrive(f);
}

// Passes a kernel to its device, together with the copies of its inputs, so that all queues have the work of two steps
// in the same order.
static tfc_status post(struct tfc_run *r, struct tfc_run_flight *f) {
  struct tfc_device *device = r->session->devices[f->item.node->device];
  if (!r->copies) return device->driver->post(device, &f->task);
  struct tfc_run_sending sending = {0};
  tfc_status s = name_node(r, &f->item, f->inputs, send_inputs(r, &f->item, &sending));
  if (!s) {
    tfc_submit_begin();
    s = name_node(r, &f->item, f->inputs, tfc_run_submit(r, &sending));
    f->arrival = sending.arrival;
    if (!s) s = device->driver->post(device, &f->task);
    tfc_submit_end();
  }
  tfc_run_drop(&sending);
  return s;
}

// Makes a hash of the names of the frames and of the numbers of their iterations: all tasks that run parts of a loop
// compute the same key.
static uint64_t iteration_key(const struct tfc_run_item *item) {
  uint64_t key = 0;
  const struct tfc_run_iteration *it = item->iteration;
  for (const struct tfc_run_frame *f = item->frame; f->parent; it = f->parent_iteration, f = f->parent) {
    const uint64_t level[] = {key, tfc_hash_bytes(f->f->name.data, f->f->name.size), (uint64_t)it->number};
    key = tfc_hash_bytes(level, sizeof level);
  }
  return key;
}

void tfc_run_start_flight(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dnode *n = item->node;
  uint32_t in = n->input_count, out = n->output_count;
  struct tfc_run_flight *f =
      calloc(1, sizeof *f + out * sizeof(struct tfc_run_value) + (in + out) * 2 * sizeof(void *));
  if (!f) {
    tfc_run_fail(r, tfc_status_no_memory("running a step"));
    return;
  }
  f->outs = (struct tfc_run_value *)(f + 1);
  f->inputs = (const struct tfc_tensor **)(f->outs + out);
  f->variables = (struct tfc_variable **)(f->inputs + in);
  f->outputs = (struct tfc_tensor **)(f->variables + in);
  for (uint32_t i = 0; i < out; i++) f->outputs[i] = &f->outs[i].t;
  f->task.run = run_flight;
  f->run = r;
  f->mailbox = r->mailbox;
  f->item = *item;
  f->ctx = (struct tfc_kernel_ctx){.env = &r->envs[n->device],
                                   .inputs = f->inputs,
                                   .variables = f->variables,
                                   .outputs = f->outputs,
                                   .output_variables = (struct tfc_variable **)(f->outputs + out),
                                   .input_count = in,
                                   .output_count = out,
                                   .reusable = n->reusable_inputs,
                                   .node_state = n->node_state,
                                   .dead = item->dead,
                                   .iteration = n->frame ? iteration_key(item) : 0,
                                   .more = n->def->role == TFC_ROLE_SEND && tfc_run_sends_more(r),
                                   .done = async_done};
  r->kept |= f->ctx.more;
  atomic_fetch_add(&r->mailbox->references, 1);
  r->in_flight++;
  if (n->is_async) r->waiting++;
  f->after = r->flights;
  if (r->flights) r->flights->before = f;
  r->flights = f;
  struct tfc_device *device = r->session->devices[n->device];
  const bool here = n->direct || r->d->inline_only || !device->driver->post;
  tfc_status s = NULL;
  if (here) {
    r->at = n;
    if (r->copies) s = name_node(r, item, f->inputs, get_inputs(r, item));
    if (!s) run_flight(&f->task);
  } else {
    s = post(r, f);
  }
  if (s) {
    f->status = s;
    arrive(f);
  }
}

static void release_inputs(const struct tfc_run_item *item) {
  struct tfc_run_value *in = item->iteration->values + item->node->input_begin;
  for (uint32_t k = 0; k < item->node->input_count; k++)
    if (in[k].live) tfc_run_value_release(&in[k]);
}

void tfc_run_finish(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs) {
  release_inputs(item);
  tfc_run_propagate(r, item, outs);
  for (uint32_t i = 0; i < item->node->output_count; i++)
    if (outs[i].t.buffer || outs[i].live) tfc_run_value_release(&outs[i]);
}

void tfc_run_collect(struct tfc_run *r) {
  struct tfc_run_flight *f = atomic_exchange(&r->mailbox->arrived, NULL), *sorted = NULL;
  while (f) { // oldest first
    struct tfc_run_flight *next = f->next;
    f->next = sorted;
    sorted = f;
    f = next;
  }
  for (f = sorted; f; f = sorted) {
    sorted = f->next;
    r->in_flight--;
    if (f->item.node->is_async) r->waiting--;
    if (f->before)
      f->before->after = f->after;
    else
      r->flights = f->after;
    if (f->after) f->after->before = f->before;
    tfc_status s = f->status;
    f->item.dead = f->ctx.dead;
    if (!s && !f->item.dead) s = check_outputs(r, f->item.node, f->outs, f->ctx.output_variables);
    if (s)
      tfc_run_fail(r, s);
    else if (!r->failed)
      tfc_run_finish(r, &f->item, f->outs);
    free_flight(f);
  }
}
