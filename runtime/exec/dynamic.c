// Running in ready order. The rules of frames, iterations and dead values are those of TensorFlow's executor:
// a node runs when all its inputs have come; one with a dead input is dead and makes its outputs dead, but a Merge is
// live with its first live input and dead when all are; a dead NextIteration ends there, a dead Exit is kept until its
// frame is done and then told to the outside; at most `parallel` iterations of a frame are under way at once.
#include "runtime/exec/dynamic.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/queue.h"
#include "runtime/device/runner.h"
#include "runtime/device/wait.h"

enum { DONE = UINT32_MAX, FEW = 16, CHECK_EVERY = 256, POLL_NS = 5000000 };

struct value {
  struct tfc_tensor t;
  struct tfc_variable *reference;
  uint16_t location; // device, or TFC_ON_HOST
  bool live;
};
struct frame;
struct iteration {
  int64_t number;
  uint32_t outstanding; // nodes that are ready or running
  uint32_t children;    // frames that were entered from here
  struct value *values;
  uint32_t *pending, *dead; // [node_count]
  struct frame *first_child;
  struct iteration *next_free;
};
struct deferred {
  const struct tfc_dnode *node;
  struct value value;
  bool dead;
};
struct frame {
  const struct tfc_dframe *f;
  uint32_t index;
  struct frame *parent;
  struct iteration *parent_iteration;
  struct frame *sibling;
  struct iteration **ring; // [parallel + 1] by number
  int64_t count;           // number of the last iteration
  uint32_t outstanding;    // iterations
  uint32_t pending_enters;
  TFC_ARRAY(const struct tfc_dnode *) dead_exits;
  TFC_ARRAY(struct deferred) next_roots; // NextIteration values that wait for an iteration to end
  TFC_ARRAY(struct deferred) constants;  // values of constant Enters
  struct frame *previous, *next;         // all frames of the run
};
struct item {
  const struct tfc_dnode *node;
  struct frame *frame;
  struct iteration *iteration;
  bool dead;
};

// Where kernels that ran elsewhere come back. It outlives the run while somebody still holds it.
struct flight;
struct mailbox {
  _Atomic(struct flight *) arrived;
  _Atomic uint32_t signal;
  _Atomic int32_t references;
};
struct run {
  struct tfc_plan *plan;
  struct tfc_dynamic *d;
  struct tfc_session *session;
  struct tfc_step *step; // of the outermost run
  bool nested, failed;
  _Atomic bool stopped;
  tfc_status status;
  int64_t deadline;
  const _Atomic bool *cancel;
  struct frame *root, *frames;
  struct iteration **pools; // [frame_count]
  TFC_ARRAY(struct item) ready;
  uint32_t in_flight, root_done;
  struct flight *flights;
  struct mailbox *mailbox;
  struct tfc_kernel_env *envs, *host_envs; // [devices]; host_envs: with host memory
  struct value *outs;                      // [most_outputs]
  const struct tfc_tensor *feeds;
  struct tfc_tensor *fetches;
  struct tfc_dynamic_parent self; // for functions that kernels call
};
struct flight { // a kernel that runs elsewhere or waits
  struct tfc_task task;
  struct tfc_kernel_ctx ctx;
  struct run *run;
  struct mailbox *mailbox;
  struct item item;
  struct value *outs;
  tfc_status status;
  struct flight *next;           // arrived
  struct flight *before, *after; // of the run
  struct tfc_tensor **outputs;
  const struct tfc_tensor **inputs;
  struct tfc_variable **variables;
};

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory running a step");
}

static void fail(struct run *r, tfc_status s) {
  if (r->failed) {
    tfc_status_free(s);
    return;
  }
  r->failed = true;
  r->status = s;
  atomic_store(&r->stopped, true);
  if (r->in_flight) tfc_resources_wake(r->session->resources);
}

static void release_value(struct value *v) {
  if (v->t.buffer) tfc_buffer_release(v->t.buffer);
  v->t.buffer = NULL;
  v->t.data = NULL;
  v->t.dtype = TFC_DTYPE_NONE;
  v->reference = NULL;
  v->live = false;
}

// --- Frames and iterations ---------------------------------------------------------------------------------------
static struct iteration *get(const struct frame *f, int64_t number) {
  struct iteration *it = f->ring[number % (f->f->parallel + 1)];
  return it && it->number == number ? it : NULL;
}

static struct iteration *new_iteration(struct run *r, struct frame *f, int64_t number) {
  const struct tfc_dframe *s = f->f;
  struct iteration *it = r->pools[f->index];
  if (it) {
    r->pools[f->index] = it->next_free;
  } else {
    size_t values = s->value_count * sizeof(struct value), counts = (size_t)s->node_count * sizeof(uint32_t);
    it = calloc(1, sizeof *it + values + 2 * counts);
    if (!it) {
      fail(r, no_memory());
      return NULL;
    }
    it->values = (struct value *)(it + 1);
    it->pending = (uint32_t *)(it->values + s->value_count);
    it->dead = it->pending + s->node_count;
  }
  it->number = number;
  it->outstanding = it->children = 0;
  it->first_child = NULL;
  memcpy(it->pending, s->initial, s->node_count * sizeof *it->pending);
  memset(it->dead, 0, s->node_count * sizeof *it->dead);
  f->ring[number % (s->parallel + 1)] = it;
  f->outstanding++;
  return it;
}

static void free_iteration(struct run *r, struct frame *f, struct iteration *it) {
  for (uint32_t i = 0; i < f->f->value_count; i++)
    if (it->values[i].live) release_value(&it->values[i]);
  f->ring[it->number % (f->f->parallel + 1)] = NULL;
  f->outstanding--;
  it->next_free = r->pools[f->index];
  r->pools[f->index] = it;
}

static struct frame *new_frame(struct run *r, uint32_t index, struct frame *parent, struct iteration *from) {
  const struct tfc_dframe *s = &r->d->frames[index];
  struct frame *f = calloc(1, sizeof *f + (s->parallel + 1) * sizeof(struct iteration *));
  if (!f) {
    fail(r, no_memory());
    return NULL;
  }
  f->ring = (struct iteration **)(f + 1);
  f->f = s;
  f->index = index;
  f->parent = parent;
  f->parent_iteration = from;
  f->pending_enters = s->enter_count;
  f->next = r->frames;
  if (r->frames) r->frames->previous = f;
  r->frames = f;
  if (from) {
    f->sibling = from->first_child;
    from->first_child = f;
    from->children++;
  }
  if (new_iteration(r, f, 0)) return f;
  return NULL; // the run has failed; the frame is freed with it
}

static void free_frame(struct run *r, struct frame *f) {
  for (uint32_t i = 0; i <= f->f->parallel; i++)
    if (f->ring[i]) free_iteration(r, f, f->ring[i]);
  for (size_t i = 0; i < f->next_roots.count; i++) release_value(&f->next_roots.data[i].value);
  for (size_t i = 0; i < f->constants.count; i++) release_value(&f->constants.data[i].value);
  tfc_array_free(&f->dead_exits);
  tfc_array_free(&f->next_roots);
  tfc_array_free(&f->constants);
  if (f->next) f->next->previous = f->previous;
  if (f->previous)
    f->previous->next = f->next;
  else
    r->frames = f->next;
  free(f);
}

static void make_ready(struct run *r, const struct tfc_dnode *n, struct frame *f, struct iteration *it, bool dead) {
  it->outstanding++;
  if (!tfc_array_push(&r->ready, (struct item){n, f, it, dead})) fail(r, no_memory());
}

static void share(const struct value *from, struct value *to) {
  *to = *from;
  tfc_buffer_retain(to->t.buffer);
}

// Gives a node's outputs to its consumers in one iteration. `outs[i].live` says which are not dead.
static void activate(struct run *r, const struct tfc_dnode *n, struct frame *f, struct iteration *it,
                     struct value *outs, bool dead) {
  bool from_enter = n->def && n->def->flags & TFC_OP_ENTER;
  for (uint32_t e = n->edge_begin; e < n->edge_end; e++) {
    const struct tfc_dedge *edge = &r->d->edges[e];
    const struct tfc_dnode *to = &r->d->nodes[edge->to];
    uint32_t *pending = &it->pending[to->local];
    bool control = edge->output < 0, live = !control && !dead && outs[edge->output].live, is_ready, is_dead = false;
    bool takes = live;
    if (to->kind == TFC_DNODE_MERGE) {
      if (control) {
        *pending -= 2;
        is_dead = it->dead[to->local] == to->input_count;
        is_ready = *pending == 0 || (*pending == 1 && is_dead);
      } else if (live) {
        takes = *pending != DONE && *pending & 1; // the first live input only
        is_ready = takes && *pending == 1;
        if (takes) *pending &= ~1u;
      } else {
        it->dead[to->local]++;
        is_dead = it->dead[to->local] == to->input_count || from_enter;
        is_ready = *pending == 1 && is_dead;
      }
    } else {
      if (control ? dead : !live) it->dead[to->local]++;
      is_ready = --*pending == 0;
      is_dead = it->dead[to->local] > 0 && !to->is_trigger;
    }
    if (takes) {
      struct value *in = &it->values[to->input_begin + edge->slot];
      if (edge->last) {
        *in = outs[edge->output];
        outs[edge->output].t.buffer = NULL;
      } else {
        share(&outs[edge->output], in);
      }
    }
    if (is_ready) make_ready(r, to, f, it, is_dead);
  }
}

static void activate_copy(struct run *r, const struct deferred *c, struct frame *f, struct iteration *it) {
  struct value v = {0};
  if (!c->dead) share(&c->value, &v);
  activate(r, c->node, f, it, &v, c->dead);
  if (!c->dead) release_value(&v);
}

static void next_iteration(struct run *r, struct frame *f) {
  f->count++;
  struct iteration *it = new_iteration(r, f, f->count);
  if (!it) return;
  f->dead_exits.count = 0;
  size_t roots = f->next_roots.count;
  for (size_t i = 0; i < roots; i++) {
    struct deferred d = f->next_roots.data[i];
    activate(r, d.node, f, it, &d.value, false);
    release_value(&d.value);
  }
  f->next_roots.count = 0;
  for (size_t i = 0; i < f->constants.count; i++) activate_copy(r, &f->constants.data[i], f, it);
}

static bool iteration_done(const struct frame *f, const struct iteration *it) {
  if (it->outstanding || it->children) return false;
  return it->number == 0 ? f->pending_enters == 0 : !get(f, it->number - 1);
}

static void settle(struct run *r, struct frame *f, struct iteration *it) {
  while (f->parent && !r->failed && iteration_done(f, it)) {
    int64_t number = it->number;
    for (; number <= f->count && (it = get(f, number)) && iteration_done(f, it); number++) {
      free_iteration(r, f, it);
      if (f->next_roots.count) next_iteration(r, f);
      if (r->failed) return;
    }
    if (f->pending_enters || f->outstanding) return;
    // The frame is done: its dead exits are dead outside.
    struct frame *parent = f->parent;
    struct iteration *outside = f->parent_iteration;
    for (size_t i = 0; i < f->dead_exits.count; i++) activate(r, f->dead_exits.data[i], parent, outside, NULL, true);
    for (struct frame **c = &outside->first_child; *c; c = &(*c)->sibling)
      if (*c == f) {
        *c = f->sibling;
        break;
      }
    outside->children--;
    free_frame(r, f);
    f = parent;
    it = outside;
  }
}

static void propagate(struct run *r, const struct item *item, struct value *outs) {
  const struct tfc_dnode *n = item->node;
  struct frame *f = item->frame;
  struct iteration *it = item->iteration;
  uint32_t flags = n->def ? n->def->flags : 0;
  it->pending[n->local] = DONE;
  if (f->index == 0) r->root_done++;
  struct frame *child = NULL;
  if (flags & TFC_OP_ENTER) {
    for (child = it->first_child; child && child->index != n->enters;) child = child->sibling;
    if (!child && !(child = new_frame(r, n->enters, f, it))) return;
    if (n->is_constant) {
      struct deferred c = {.node = n, .dead = item->dead};
      if (!item->dead) {
        c.value = outs[0];
        outs[0].t.buffer = NULL;
      }
      if (!tfc_array_push(&child->constants, c)) {
        release_value(&c.value);
        fail(r, no_memory());
        return;
      }
      for (int64_t k = 0; k <= child->count; k++) {
        struct iteration *inside = get(child, k);
        if (inside) activate_copy(r, &c, child, inside);
      }
    } else {
      activate(r, n, child, get(child, 0), outs, item->dead);
    }
    child->pending_enters--;
  } else if (flags & TFC_OP_EXIT) {
    if (!item->dead)
      activate(r, n, f->parent, f->parent_iteration, outs, false);
    else if (it->number == f->count && !tfc_array_push(&f->dead_exits, n))
      fail(r, no_memory());
  } else if (flags & TFC_OP_NEXT_ITERATION) {
    if (!item->dead) {
      if (it->number == f->count && f->outstanding == f->f->parallel) {
        struct deferred d = {.node = n, .value = outs[0]};
        outs[0].t.buffer = NULL;
        if (!tfc_array_push(&f->next_roots, d)) {
          release_value(&d.value);
          fail(r, no_memory());
        }
      } else {
        if (it->number == f->count) next_iteration(r, f);
        struct iteration *next = get(f, it->number + 1);
        if (next) activate(r, n, f, next, outs, false);
      }
    }
  } else {
    activate(r, n, f, it, outs, item->dead);
  }
  if (child && !r->failed) {
    struct iteration *first = get(child, 0);
    if (first) settle(r, child, first); // while `it` is held
  }
  it->outstanding--;
  settle(r, f, it);
}

// --- Values ------------------------------------------------------------------------------------------------------
static bool own_space(const struct run *r, uint16_t device) {
  return r->session->devices[device]->info.address_space != 0;
}

// What a reference holds now.
static tfc_status dereference(struct run *r, struct value *v) {
  struct tfc_variable *variable = v->reference;
  TFC_RETURN_IF_ERROR(tfc_variable_check(variable));
  tfc_variable_lock(variable);
  tfc_tensor_share(&variable->value, &v->t);
  tfc_variable_unlock(variable);
  v->reference = NULL;
  bool device = tfc_dtype_is_plain(variable->dtype) && own_space(r, (uint16_t)variable->device);
  v->location = device ? (uint16_t)variable->device : TFC_ON_HOST;
  return NULL;
}

// Brings a value to where it is wanted: a device with its own memory, or the host.
static tfc_status bring(struct run *r, struct value *v, uint16_t wanted) {
  if (v->location == wanted) return NULL;
  struct tfc_tensor moved = {0};
  struct tfc_copy copy = {.source_device = v->location == TFC_ON_HOST ? NULL : r->session->devices[v->location],
                          .target_device = wanted == TFC_ON_HOST ? NULL : r->session->devices[wanted],
                          .source = &v->t,
                          .target = &moved};
  TFC_RETURN_IF_ERROR(tfc_runner_copy(&copy));
  tfc_tensor_release(&v->t);
  v->t = moved;
  v->location = wanted;
  return NULL;
}

static tfc_status host_index(struct run *r, struct value *v, int64_t *out) {
  if (v->reference) TFC_RETURN_IF_ERROR(dereference(r, v));
  TFC_RETURN_IF_ERROR(bring(r, v, TFC_ON_HOST));
  if (tfc_tensor_elements(&v->t) != 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "the predicate is not a scalar");
  *out = v->t.dtype == TFC_BOOL ? *(const bool *)v->t.data : tfc_tensor_int(&v->t, 0);
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
// Makes inputs ready for a kernel: references, variables behind handles, memory. On the thread that will run it.
static tfc_status take_inputs(struct run *r, const struct item *item, const struct tfc_tensor **inputs,
                              struct tfc_variable **variables) {
  const struct tfc_dnode *n = item->node;
  struct value *in = item->iteration->values + n->input_begin;
  bool foreign = own_space(r, n->device) && !n->direct;
  for (uint32_t k = 0; k < n->input_count; k++) {
    struct value *v = &in[k];
    variables[k] = NULL;
    if (v->reference) {
      if (k < 32 && n->reference_inputs >> k & 1) {
        variables[k] = v->reference;
        inputs[k] = &v->reference->value;
        continue;
      }
      TFC_RETURN_IF_ERROR(dereference(r, v));
    }
    if (v->t.dtype == TFC_RESOURCE && v->t.size == sizeof(void *)) {
      struct tfc_object *object = *(struct tfc_object **)v->t.data;
      if (object && object->type == &tfc_variable_type) variables[k] = (struct tfc_variable *)(void *)object;
    }
    bool on_device = foreign && tfc_dtype_is_plain(v->t.dtype) && !(k < 32 && n->def->host_inputs >> k & 1);
    uint16_t wanted = on_device ? n->device : TFC_ON_HOST;
    if (v->location != wanted) TFC_RETURN_IF_ERROR(bring(r, v, wanted));
    inputs[k] = &v->t;
  }
  return NULL;
}

static tfc_status check_outputs(struct run *r, const struct tfc_dnode *n, struct value *outs,
                                struct tfc_variable **output_variables) {
  const struct tfc_graph *g = r->plan->ir.graph;
  bool foreign = own_space(r, n->device) && !n->direct;
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct value *v = &outs[i];
    if (output_variables[i]) {
      release_value(v);
      v->reference = output_variables[i];
    } else if (v->t.dtype == TFC_DTYPE_NONE) {
      return tfc_status_make(TFC_INTERNAL, "node '%.*s' (%s) left its output %u empty",
                             TFC_STR_ARG(g->nodes[n->node].name), n->def->name, i);
    }
    bool device = foreign && tfc_dtype_is_plain(v->t.dtype) && !(i < 32 && n->def->host_outputs >> i & 1);
    v->location = device ? n->device : TFC_ON_HOST;
    v->live = true;
  }
  return NULL;
}

static tfc_status launch_direct(struct run *r, const struct tfc_dnode *n, struct tfc_kernel_ctx *ctx) {
  const struct tfc_graph *graph = ctx->graph = r->plan->ir.graph;
  const struct tfc_node *node = ctx->node = &graph->nodes[n->node];
  const struct tfc_tensor *const *inputs = ctx->inputs;
  ctx->state = n->state;
  if (own_space(r, n->device)) ctx->env = &r->host_envs[n->device];
  tfc_status s = n->def->kernel(ctx);
  return s ? tfc_op_error(s, graph, node, r->session->devices[n->device], inputs, n->input_count) : NULL;
}

static tfc_status launch(struct run *r, const struct tfc_dnode *n, struct tfc_kernel_ctx *ctx) {
  struct tfc_device *device = r->session->devices[n->device];
  if (n->direct) return launch_direct(r, n, ctx);
  struct tfc_trace_sink *sink = r->nested ? NULL : r->step->trace;
  if (!sink) return device->driver->launch(device, r->d->prepared[n->device], n->kernel, ctx);
  if (sink->op_begin) sink->op_begin(sink, n->device, n->node);
  uint64_t begin = tfc_ticks();
  tfc_status s = device->driver->launch(device, r->d->prepared[n->device], n->kernel, ctx);
  tfc_trace_add(&sink->buffers[n->device], TFC_TRACE_OP, n->node, n->device, begin, tfc_ticks(), 0);
  if (sink->op_end) sink->op_end(sink, n->device, n->node);
  return s;
}

static tfc_status run_inline(struct run *r, const struct item *item, struct value *outs) {
  const struct tfc_dnode *n = item->node;
  const struct tfc_tensor *inputs[FEW];
  struct tfc_variable *variables[2 * FEW] = {0};
  struct tfc_tensor *outputs[FEW];
  TFC_RETURN_IF_ERROR(take_inputs(r, item, inputs, variables));
  for (uint32_t i = 0; i < n->output_count; i++) {
    outputs[i] = &outs[i].t;
    variables[FEW + i] = NULL;
  }
  struct tfc_kernel_ctx ctx = {.env = &r->envs[n->device],
                               .inputs = inputs,
                               .variables = variables,
                               .outputs = outputs,
                               .output_variables = variables + FEW,
                               .input_count = n->input_count,
                               .output_count = n->output_count,
                               .node_state = n->node_state};
  TFC_RETURN_IF_ERROR(launch(r, n, &ctx));
  return check_outputs(r, n, outs, variables + FEW);
}

static void free_flight(struct flight *f) {
  for (uint32_t i = 0; i < f->item.node->output_count; i++)
    if (f->outs[i].live || f->outs[i].t.buffer) release_value(&f->outs[i]);
  free(f);
}

static void leave_mailbox(struct mailbox *m) {
  if (atomic_fetch_sub(&m->references, 1) == 1) free(m);
}

static void arrive(struct flight *f) { // any thread; the flight and the run may be gone afterwards
  struct mailbox *m = f->mailbox;
  f->next = atomic_load(&m->arrived);
  while (!atomic_compare_exchange_weak(&m->arrived, &f->next, f)) {
  }
  atomic_fetch_add(&m->signal, 1);
  tfc_futex_wake(&m->signal, 1);
  leave_mailbox(m);
}

static void async_done(struct tfc_kernel_ctx *ctx, tfc_status status) {
  struct flight *f = (struct flight *)(void *)((char *)ctx - offsetof(struct flight, ctx));
  f->status = status;
  arrive(f);
}

static void run_flight(struct tfc_task *task) { // on the device's thread, or the run's own for kernels that wait
  struct flight *f = (struct flight *)(void *)task;
  struct run *r = f->run;
  const struct tfc_dnode *n = f->item.node;
  bool waits = n->is_async;
  if (atomic_load(&r->stopped))
    f->status = tfc_status_make(TFC_CANCELLED, "the step was cancelled");
  else if (!(f->status = take_inputs(r, &f->item, f->inputs, f->variables))) {
    tfc_status s = launch(r, n, &f->ctx); // a kernel that waits may have arrived, and `f` be gone, when this returns
    if (waits && !s) return;
    f->status = s;
  }
  arrive(f);
}

static void start_flight(struct run *r, const struct item *item) {
  const struct tfc_dnode *n = item->node;
  uint32_t in = n->input_count, out = n->output_count;
  struct flight *f = calloc(1, sizeof *f + out * sizeof(struct value) + (in + out) * 2 * sizeof(void *));
  if (!f) {
    fail(r, no_memory());
    return;
  }
  f->outs = (struct value *)(f + 1);
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
                                   .node_state = n->node_state,
                                   .done = async_done};
  atomic_fetch_add(&r->mailbox->references, 1);
  r->in_flight++;
  f->after = r->flights;
  if (r->flights) r->flights->before = f;
  r->flights = f;
  struct tfc_device *device = r->session->devices[n->device];
  if (n->direct || r->d->inline_only || !device->driver->post) {
    run_flight(&f->task);
    return;
  }
  tfc_status s = device->driver->post(device, &f->task);
  if (s) {
    f->status = s;
    arrive(f);
  }
}

static void release_inputs(const struct item *item) {
  struct value *in = item->iteration->values + item->node->input_begin;
  for (uint32_t k = 0; k < item->node->input_count; k++)
    if (in[k].live) release_value(&in[k]);
}

static void finish(struct run *r, const struct item *item, struct value *outs) {
  release_inputs(item);
  propagate(r, item, outs);
  for (uint32_t i = 0; i < item->node->output_count; i++)
    if (outs[i].t.buffer || outs[i].live) release_value(&outs[i]);
}

static void collect(struct run *r) {
  struct flight *f = atomic_exchange(&r->mailbox->arrived, NULL), *sorted = NULL;
  while (f) { // in order of arrival
    struct flight *next = f->next;
    f->next = sorted;
    sorted = f;
    f = next;
  }
  for (f = sorted; f; f = sorted) {
    sorted = f->next;
    r->in_flight--;
    if (f->before)
      f->before->after = f->after;
    else
      r->flights = f->after;
    if (f->after) f->after->before = f->before;
    tfc_status s = f->status;
    if (!s) s = check_outputs(r, f->item.node, f->outs, f->ctx.output_variables);
    if (s)
      fail(r, s);
    else if (!r->failed)
      finish(r, &f->item, f->outs);
    free_flight(f);
  }
}

// --- Nodes -------------------------------------------------------------------------------------------------------
static tfc_status named(struct run *r, const struct tfc_dnode *n, tfc_status s) {
  if (!s || n->kind == TFC_DNODE_FETCH || n->kind == TFC_DNODE_FEED) return s;
  const struct tfc_node *node = &r->plan->ir.graph->nodes[n->node];
  return tfc_status_annotate(s, "node '%.*s' (%.*s)", TFC_STR_ARG(node->name), TFC_STR_ARG(node->op));
}

static tfc_status pass(struct run *r, const struct tfc_dnode *n, struct value *in, struct value *out) {
  if (in->reference && !n->keeps_reference) TFC_RETURN_IF_ERROR(dereference(r, in));
  *out = *in;
  in->t.buffer = NULL;
  in->live = false;
  return NULL;
}

static tfc_status fetch(struct run *r, const struct tfc_dnode *n, struct value *v) {
  struct tfc_tensor *out = r->fetches ? &r->fetches[n->node] : NULL;
  if (v->reference) TFC_RETURN_IF_ERROR(dereference(r, v));
  TFC_RETURN_IF_ERROR(bring(r, v, TFC_ON_HOST));
  if (!out) return NULL;
  if (r->nested && v->t.buffer) { // stays inside
    *out = v->t;
    v->t.buffer = NULL;
    return NULL;
  }
  return tfc_tensor_clone(&v->t, out);
}

static tfc_status merge(struct run *r, const struct item *item, struct value *outs) {
  const struct tfc_dnode *n = item->node;
  struct value *in = item->iteration->values + n->input_begin;
  for (uint32_t k = 0; k < n->input_count; k++) {
    if (!in[k].live) continue;
    TFC_RETURN_IF_ERROR(pass(r, n, &in[k], &outs[0]));
    if (!n->wants_index) return NULL;
    TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &outs[1].t));
    *(int32_t *)outs[1].t.data = (int32_t)k;
    outs[1].live = true;
    outs[1].location = TFC_ON_HOST;
    return NULL;
  }
  return tfc_status_make(TFC_INTERNAL, "a merge without a live input");
}

static tfc_status feed(struct run *r, const struct tfc_dnode *n, struct value *out) {
  const struct tfc_tensor *t = &r->feeds[n->node];
  out->live = true;
  out->location = TFC_ON_HOST;
  if (!t->buffer) return tfc_tensor_clone(t, &out->t); // the caller's memory: it may not outlive the step
  tfc_tensor_share(t, &out->t);
  return NULL;
}

static void process(struct run *r, const struct item *item) {
  const struct tfc_dnode *n = item->node;
  struct value *in = item->iteration->values + n->input_begin, *outs = r->outs;
  tfc_status s = NULL;
  if (item->dead) {
    if (n->kind == TFC_DNODE_FETCH) {
      const struct tfc_output o = r->plan->fetch_outputs[n->node];
      fail(r, tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s:%d' has no value: its branch was not taken",
                              TFC_STR_ARG(r->plan->ir.graph->nodes[o.node].name), o.index));
      return;
    }
    finish(r, item, outs);
    return;
  }
  switch (n->kind) {
  case TFC_DNODE_OP:
    if (n->is_async || (!r->d->inline_only && !n->direct) || n->input_count > FEW || n->output_count > FEW) {
      start_flight(r, item);
      return;
    }
    if ((s = run_inline(r, item, outs))) {
      for (uint32_t i = 0; i < n->output_count; i++) release_value(&outs[i]);
      fail(r, s);
      return;
    }
    break;
  case TFC_DNODE_PASS: s = pass(r, n, &in[0], &outs[0]); break;
  case TFC_DNODE_SPREAD:
    for (uint32_t i = 0; i < n->output_count && !s; i++) s = pass(r, n, &in[i], &outs[i]);
    break;
  case TFC_DNODE_NONE: break;
  case TFC_DNODE_CONST:
  case TFC_DNODE_HANDLE:
    outs[0] = (struct value){.live = true, .location = TFC_ON_HOST};
    tfc_tensor_share(n->kind == TFC_DNODE_CONST ? n->constant : n->handle, &outs[0].t);
    break;
  case TFC_DNODE_VARIABLE:
    outs[0] = (struct value){.live = true, .location = TFC_ON_HOST, .reference = n->variable};
    break;
  case TFC_DNODE_SWITCH: {
    int64_t index = 0;
    if ((s = host_index(r, &in[n->input_count - 1], &index))) break;
    if (index < 0 || index >= n->output_count) index = n->output_count - 1;
    s = pass(r, n, &in[0], &outs[index]);
    break;
  }
  case TFC_DNODE_MERGE: s = merge(r, item, outs); break;
  case TFC_DNODE_FEED: s = feed(r, n, &outs[0]); break;
  case TFC_DNODE_FETCH: s = fetch(r, n, &in[0]); break;
  }
  if (s) {
    for (uint32_t i = 0; i < n->output_count; i++) release_value(&outs[i]);
    fail(r, named(r, n, s));
    return;
  }
  finish(r, item, outs);
}

// --- The loop ----------------------------------------------------------------------------------------------------
static void name_waiting(struct run *r, struct tfc_text *text) {
  const struct tfc_graph *g = r->plan->ir.graph;
  uint32_t shown = 0;
  for (const struct flight *f = r->flights; f && shown < 8; f = f->after, shown++)
    tfc_text_printf(text, "%s'%.*s' (%s) has not completed", shown ? ", " : "",
                    TFC_STR_ARG(g->nodes[f->item.node->node].name), f->item.node->def->name);
  for (uint32_t i = 0; i < r->d->node_count && shown < 8; i++) {
    const struct tfc_dnode *n = &r->d->nodes[i];
    const struct iteration *it = n->frame == 0 ? get(r->root, 0) : NULL;
    if (!it || it->pending[n->local] == DONE || n->kind == TFC_DNODE_FETCH || n->kind == TFC_DNODE_FEED) continue;
    const struct tfc_node *node = &g->nodes[n->node];
    for (uint32_t k = 0; k < node->input_count + node->control_count && shown < 8; k++) {
      struct tfc_output o = tfc_node_inputs(g, node)[k];
      for (uint32_t j = 0; j < r->d->node_count; j++) {
        const struct tfc_dnode *p = &r->d->nodes[j];
        if (p->node != o.node || p->kind == TFC_DNODE_FEED || p->kind == TFC_DNODE_FETCH) continue;
        if (p->frame == 0 && it->pending[p->local] == DONE && !(p->def->flags & TFC_OP_EXIT)) continue;
        if (p->frame == 0 && it->pending[p->local] != DONE && r->flights) continue; // it waits itself
        tfc_text_printf(text, "%s'%.*s' waits for '%.*s'", shown++ ? ", " : "", TFC_STR_ARG(node->name),
                        TFC_STR_ARG(g->nodes[o.node].name));
        break;
      }
    }
  }
}

static void check_time(struct run *r) {
  if (r->failed) return;
  if (r->cancel && atomic_load(r->cancel)) {
    fail(r, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
  } else if (r->deadline && tfc_now_ns() >= r->deadline) {
    struct tfc_text text = {0};
    name_waiting(r, &text);
    fail(r, tfc_status_make(TFC_DEADLINE_EXCEEDED, "the step did not end in time%s%s", text.size ? ": " : "",
                            text.size ? text.data : ""));
    tfc_text_deinit(&text);
  } else if (r->nested && tfc_step_stopped(r->step)) {
    fail(r, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
  }
}

static void wait_for_arrivals(struct run *r) {
  uint32_t seen = atomic_load(&r->mailbox->signal);
  if (atomic_load(&r->mailbox->arrived)) return;
  for (int i = 0; i < 2000; i++) {
    if (atomic_load_explicit(&r->mailbox->signal, memory_order_relaxed) != seen) return;
    tfc_pause();
  }
  bool watch = !r->failed && (r->deadline || r->cancel || r->nested);
  tfc_futex_wait(&r->mailbox->signal, seen, watch ? POLL_NS : r->failed ? POLL_NS : -1);
  if (r->failed && r->in_flight) tfc_resources_wake(r->session->resources); // who came in too late
}

static void loop(struct run *r) {
  for (uint32_t turn = 0;; turn++) {
    if (r->in_flight && atomic_load_explicit(&r->mailbox->arrived, memory_order_relaxed)) collect(r);
    if (turn % CHECK_EVERY == CHECK_EVERY - 1) check_time(r);
    if (r->failed) {
      if (!r->in_flight) return;
      wait_for_arrivals(r);
      continue;
    }
    if (r->ready.count) {
      struct item item = r->ready.data[--r->ready.count];
      process(r, &item);
    } else if (r->in_flight) {
      wait_for_arrivals(r);
      check_time(r);
    } else {
      return;
    }
  }
}

static bool run_cancelled(struct tfc_kernel_env *env) {
  const struct run *r = env->owner;
  return atomic_load(&((struct run *)(uintptr_t)r)->stopped) || (r->nested && tfc_step_stopped(r->step));
}

static tfc_status start(struct run *r) {
  struct tfc_session *session = r->session;
  r->pools = calloc(r->d->frame_count + 1u, sizeof(*r->pools));
  r->envs = calloc(2 * (size_t)session->device_count, sizeof *r->envs);
  r->outs = calloc(r->d->most_outputs + 2u, sizeof *r->outs);
  r->mailbox = calloc(1, sizeof *r->mailbox);
  if (!r->pools || !r->envs || !r->outs || !r->mailbox) return no_memory();
  atomic_init(&r->mailbox->references, 1);
  r->host_envs = r->envs + session->device_count;
  for (uint32_t d = 0; d < session->device_count; d++) {
    struct tfc_kernel_env *env = &r->envs[d];
    env->call = tfc_dynamic_call;
    env->cancelled = run_cancelled;
    env->resources = session->resources;
    env->step_resources = r->step->step_resources;
    env->step_id = r->step->id;
    env->seed = r->step->seed;
    env->owner = r;
    r->host_envs[d] = *env;
    session->devices[d]->driver->environment(session->devices[d], env);
    r->host_envs[d].device = session->devices[d];
    r->host_envs[d].threads = 1;
  }
  r->root = new_frame(r, 0, NULL, NULL);
  for (uint32_t i = 0; i < r->d->root_count && !r->failed; i++)
    make_ready(r, &r->d->nodes[r->d->roots[i]], r->root, get(r->root, 0), false);
  return NULL;
}

static tfc_status run_plan(struct run *r) {
  uint32_t mode = tfc_float_mode_enter();
  tfc_status s = start(r);
  if (!s) {
    loop(r);
    s = r->status;
    if (!s && r->root_done != r->d->frames[0].node_count) {
      struct tfc_text text = {0};
      name_waiting(r, &text);
      s = tfc_status_make(TFC_INTERNAL, "the step cannot go on: %u nodes never run; %s",
                          r->d->frames[0].node_count - r->root_done, text.data ? text.data : "");
      tfc_text_deinit(&text);
    }
  }
  while (r->frames) free_frame(r, r->frames);
  for (uint32_t i = 0; r->pools && i < r->d->frame_count; i++)
    while (r->pools[i]) {
      struct iteration *it = r->pools[i];
      r->pools[i] = it->next_free;
      free(it);
    }
  free(r->pools);
  free(r->envs);
  free(r->outs);
  if (r->mailbox) leave_mailbox(r->mailbox);
  tfc_array_free(&r->ready);
  for (uint32_t i = 0; s && r->fetches && i < r->plan->fetch_count; i++) tfc_tensor_release(&r->fetches[i]);
  tfc_float_mode_leave(mode);
  return s;
}

tfc_status tfc_plan_run_dynamic(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                const struct tfc_run_options *options) {
  tfc_status s = NULL;
  struct tfc_session *session = plan->session;
  struct tfc_resources *own = NULL;
  TFC_RETURN_IF_ERROR(tfc_plan_check_feeds(plan, feeds));
  struct tfc_step step = {.id = atomic_fetch_add(&session->next_step, 1),
                          .trace = options ? options->trace : NULL,
                          .resources = session->resources,
                          .step_resources = plan->step_resources,
                          .seed = session->options.seed};
  struct run r = {.plan = plan,
                  .d = plan->dynamic,
                  .session = session,
                  .step = &step,
                  .feeds = feeds,
                  .fetches = fetches,
                  .cancel = options ? options->cancel : NULL};
  if (options && options->deadline_ns) r.deadline = tfc_now_ns() + options->deadline_ns;
  r.self = (struct tfc_dynamic_parent){&step, r.deadline, r.cancel};
  for (uint32_t i = 0; fetches && i < plan->fetch_count; i++) fetches[i] = (struct tfc_tensor){0};
  if (plan->uses_step_resources) {
    TFC_RETURN_IF_ERROR(tfc_resources_create(&own));
    step.step_resources = own;
  }
  pthread_mutex_lock(&session->run_lock);
  for (size_t i = 0; i < plan->ir.variables.count && !s; i++) {
    const struct tfc_ir_variable *v = &plan->ir.variables.data[i];
    if (v->variable->device != v->device) s = tfc_session_move_variable(session, v->variable, v->device);
  }
  pthread_mutex_unlock(&session->run_lock);
  uint64_t begin = tfc_ticks();
  if (!s) {
    check_time(&r);
    s = r.failed ? r.status : run_plan(&r);
  }
  uint64_t end = tfc_ticks();
  tfc_resources_free(own);
  pthread_mutex_lock(&session->lock);
  plan->last_step_us = (double)(end - begin) * tfc_ns_per_tick() * 1e-3;
  pthread_mutex_unlock(&session->lock);
  if (!s && step.trace)
    tfc_trace_add(&step.trace->buffers[step.trace->buffer_count - 1], TFC_TRACE_STEP, 0, UINT16_MAX, begin, end, 0);
  return s;
}

tfc_status tfc_plan_run_inside(struct tfc_plan *plan, const struct tfc_dynamic_parent *parent,
                               const struct tfc_tensor *feeds, struct tfc_tensor *fetches) {
  struct run r = {.plan = plan,
                  .d = plan->dynamic,
                  .session = plan->session,
                  .step = parent->step,
                  .nested = true,
                  .deadline = parent->deadline,
                  .cancel = parent->cancel,
                  .feeds = feeds,
                  .fetches = fetches,
                  .self = *parent};
  for (uint32_t i = 0; i < plan->fetch_count; i++) fetches[i] = (struct tfc_tensor){0};
  return run_plan(&r);
}

// --- Functions ---------------------------------------------------------------------------------------------------
static tfc_status function_plan(struct run *r, const struct tfc_function *fn, uint16_t device, struct tfc_plan **out) {
  tfc_status s = NULL;
  struct tfc_session *session = r->session;
  struct tfc_output *feeds = NULL, *fetches = NULL;
  uint32_t *targets = NULL, target_count = 0;
  uint16_t *placement = NULL;
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->function_plans.count && !*out; i++) {
    struct tfc_plan *p = session->function_plans.data[i];
    if (p->ir.graph == fn->body && p->function_device == device) *out = p;
  }
  pthread_mutex_unlock(&session->lock);
  if (*out) return NULL;
  const struct tfc_graph *g = fn->body;
  feeds = calloc(fn->arg_count + 1u, sizeof *feeds);
  fetches = calloc(fn->ret_count + 1u, sizeof *fetches);
  targets = calloc(g->node_count + fn->control_ret_count + 1u, sizeof *targets);
  placement = calloc(g->node_count + 1u, sizeof *placement);
  if (!feeds || !fetches || !targets || !placement) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < fn->arg_count; i++) feeds[i] = (struct tfc_output){fn->args[i], 0};
  for (uint32_t i = 0; i < fn->ret_count; i++) fetches[i] = tfc_node_inputs(g, &g->nodes[fn->rets[i]])[0];
  for (uint32_t i = 0; i < fn->control_ret_count; i++) targets[target_count++] = fn->control_rets[i];
  for (uint32_t i = 0; i < g->node_count; i++) { // what has an effect runs, whether somebody reads it or not
    placement[i] = device;
    const struct tfc_op_def *def = g->nodes[i].def;
    if (def && def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE) && !(def->flags & TFC_OP_VARIABLE) && !def->node_state)
      targets[target_count++] = i;
  }
  struct tfc_run_spec spec = {.feeds = feeds,
                              .feed_count = fn->arg_count,
                              .fetches = fetches,
                              .fetch_count = fn->ret_count,
                              .targets = targets,
                              .target_count = target_count,
                              .placement = placement,
                              .dynamic = true};
  struct tfc_plan *plan = NULL;
  TFC_TRY(s, tfc_plan_create_for(session, g, &spec, &plan));
  plan->function_device = device;
  pthread_mutex_lock(&session->lock);
  bool kept = tfc_array_push(&session->function_plans, plan);
  pthread_mutex_unlock(&session->lock);
  if (!kept) {
    tfc_plan_free(plan);
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  }
  *out = plan;
out:
  free(feeds);
  free(fetches);
  free(targets);
  free(placement);
  return s;
}

tfc_status tfc_dynamic_call(struct tfc_kernel_env *env, const struct tfc_func_attr *func,
                            const struct tfc_tensor *inputs, uint32_t input_count, struct tfc_tensor *outputs,
                            uint32_t output_count) {
  struct run *r = env->owner;
  const struct tfc_function *fn = tfc_graph_function(r->session->graph, func->name);
  struct tfc_plan *plan = NULL;
  if (!fn) return tfc_status_make(TFC_NOT_FOUND, "there is no function '%.*s'", TFC_STR_ARG(func->name));
  if (fn->arg_count != input_count || fn->ret_count != output_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "function '%.*s' has %u parameters and %u results, called with %u and %u",
                           TFC_STR_ARG(func->name), fn->arg_count, fn->ret_count, input_count, output_count);
  TFC_RETURN_IF_ERROR(function_plan(r, fn, env->device->index, &plan));
  struct tfc_dynamic_parent parent = r->self;
  return tfc_status_annotate(tfc_plan_run_inside(plan, &parent, inputs, outputs), "function '%.*s'",
                             TFC_STR_ARG(func->name));
}
