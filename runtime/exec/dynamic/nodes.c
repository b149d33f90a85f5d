// Runs each kind of node when all its inputs have arrived.
#include "runtime/exec/dynamic/nodes.h"
#include "runtime/device/runner.h"
#include "runtime/exec/dynamic/iterations.h"
#include "runtime/exec/dynamic/kernels.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/dynamic/wait.h"
#include "runtime/exec/plan/step.h"

tfc_status tfc_run_index(struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, struct tfc_run_value *v,
                         int64_t *out) {
  if (v->reference) TFC_RETURN_IF_ERROR(tfc_run_dereference(r, v));
  TFC_RETURN_IF_ERROR(tfc_run_read(r, n, slot, v));
  if (tfc_tensor_elements(&v->t) != 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "the predicate is not a scalar");
  *out = v->t.dtype == TFC_BOOL ? *(const bool *)v->t.data : tfc_tensor_int(&v->t, 0);
  return NULL;
}

// Adds to an error the node that failed, or whose output could not be fetched.
static tfc_status named(struct tfc_run *r, const struct tfc_dnode *n, const struct tfc_run_value *in, tfc_status s) {
  const struct tfc_graph *g = r->plan->ir.graph;
  const struct tfc_tensor *inputs[TFC_RUN_FEW + 1] = {0};
  uint32_t count = n->input_count < TFC_RUN_FEW ? n->input_count : TFC_RUN_FEW;
  if (n->kind == TFC_DNODE_FEED) return s;
  if (n->kind == TFC_DNODE_FETCH)
    return in->reference ? tfc_fetch_error(s, r->session, g, r->plan->fetch_outputs[n->node], in->reference) : s;
  for (uint32_t k = 0; k < count; k++) inputs[k] = &in[k].t;
  return tfc_op_error(s, g, &g->nodes[n->node], r->session->devices[n->device], inputs, count);
}

static tfc_status pass(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_value *in,
                       struct tfc_run_value *out) {
  if (in->reference && !n->keeps_reference) TFC_RETURN_IF_ERROR(tfc_run_dereference(r, in));
  tfc_run_value_move(in, out);
  in->t.buffer = NULL;
  in->live = false;
  return NULL;
}

// A fetched reference gives the variable's value at the end of the step. TensorFlow does the same, because its fetch
// shares the variable's memory.
static tfc_status fetch(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_value *v) {
  struct tfc_tensor *out = r->fetches ? &r->fetches[n->node] : NULL;
  if (v->reference && out && !r->nested && !r->partial) {
    if (!r->late) r->late = calloc(r->plan->fetch_count, sizeof(struct tfc_variable *));
    if (!r->late) return tfc_status_no_memory("running a step");
    r->late[n->node] = v->reference;
    return NULL;
  }
  if (v->reference) TFC_RETURN_IF_ERROR(tfc_run_dereference(r, v));
  TFC_RETURN_IF_ERROR(tfc_run_read(r, n, 0, v));
  if (!out) return NULL;
  if (r->nested && v->t.buffer) { // the surrounding run takes the tensor, so no copy is needed
    *out = v->t;
    v->t.buffer = NULL;
    return NULL;
  }
  return tfc_tensor_clone(&v->t, out);
}

tfc_status tfc_run_fetch_late(struct tfc_run *r) {
  tfc_status s = NULL;
  for (uint32_t i = 0; r->late && i < r->plan->fetch_count && !s; i++) {
    struct tfc_run_value v = {.reference = r->late[i], .live = true, .location = TFC_PLAN_HOST};
    if (!v.reference) continue;
    s = tfc_run_dereference(r, &v);
    if (s) s = tfc_fetch_error(s, r->session, r->plan->ir.graph, r->plan->fetch_outputs[i], r->late[i]);
    if (!s) s = tfc_run_read(r, &r->d->nodes[r->d->node_count - r->plan->fetch_count + i], 0, &v); // the fetch's node
    if (!s) s = tfc_tensor_clone(&v.t, &r->fetches[i]);
    if (v.t.buffer) tfc_buffer_release(v.t.buffer);
  }
  return s;
}

static tfc_status merge(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_value *in = item->iteration->values + n->input_begin;
  for (uint32_t k = 0; k < n->input_count; k++) {
    if (!in[k].live) continue;
    TFC_RETURN_IF_ERROR(pass(r, n, &in[k], &outs[0]));
    if (!n->wants_index) return NULL;
    TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &outs[1].t));
    *(int32_t *)outs[1].t.data = (int32_t)k;
    outs[1].live = true;
    outs[1].location = TFC_PLAN_HOST;
    return NULL;
  }
  return tfc_status_make(TFC_INTERNAL, "a merge without a live input");
}

static tfc_status feed(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_value *out) {
  const struct tfc_tensor *t = &r->feeds[n->node];
  out->live = true;
  out->location = TFC_PLAN_HOST;
  if (!t->buffer) return tfc_tensor_clone(t, &out->t); // the caller's memory may not outlive the step
  if (r->nested) {
    out->t = *t; // released after its last reader; if nothing else references it, an operation may compute in place
    ((struct tfc_tensor *)(uintptr_t)t)->buffer = NULL;
    return NULL;
  }
  tfc_tensor_share(t, &out->t);
  return NULL;
}

tfc_status tfc_run_compute(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_value *in = item->iteration->values + n->input_begin;
  tfc_status s = NULL;
  switch (n->kind) {
  case TFC_DNODE_OP: return tfc_run_inline(r, item, outs);
  case TFC_DNODE_PASS: s = pass(r, n, &in[0], &outs[0]); break;
  case TFC_DNODE_SPREAD:
    for (uint32_t i = 0; i < n->output_count && !s; i++) s = pass(r, n, &in[i], &outs[i]);
    break;
  case TFC_DNODE_NONE:
  case TFC_DNODE_LOOP: break;
  case TFC_DNODE_CONST:
  case TFC_DNODE_HANDLE:
    outs[0] = (struct tfc_run_value){.live = true, .location = TFC_PLAN_HOST};
    tfc_tensor_share(n->kind == TFC_DNODE_CONST ? n->constant : n->handle, &outs[0].t);
    break;
  case TFC_DNODE_VARIABLE:
    outs[0] = (struct tfc_run_value){.live = true, .location = TFC_PLAN_HOST, .reference = n->variable};
    break;
  case TFC_DNODE_SWITCH: {
    int64_t index = 0;
    if ((s = tfc_run_index(r, n, n->input_count - 1, &in[n->input_count - 1], &index))) break;
    if (index < 0 || index >= n->output_count) index = n->output_count - 1;
    s = pass(r, n, &in[0], &outs[index]);
    break;
  }
  case TFC_DNODE_MERGE: s = merge(r, item, outs); break;
  case TFC_DNODE_FEED: s = feed(r, n, &outs[0]); break;
  case TFC_DNODE_FETCH: s = fetch(r, n, &in[0]); break;
  }
  return s ? named(r, n, in, s) : NULL;
}

void tfc_run_process(struct tfc_run *r, const struct tfc_run_item *item) {
  const struct tfc_dnode *n = item->node;
  struct tfc_run_value *outs = r->outs;
  if (r->kept && tfc_run_takes_time(n)) tfc_run_flush(r);
  if (item->dead && !n->tells_dead) {
    if (n->kind == TFC_DNODE_FETCH) {
      const struct tfc_output o = r->plan->fetch_outputs[n->node];
      tfc_run_fail(r, tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s:%d' has no value: its branch was not taken",
                                      TFC_STR_ARG(r->plan->ir.graph->nodes[o.node].name), o.index));
      return;
    }
    tfc_run_finish(r, item, outs);
    return;
  }
  if (n->kind == TFC_DNODE_LOOP) {
    if (!tfc_run_waits_for_others(r, item))
      tfc_run_iterate(r, item);
    else if (!tfc_array_push(&r->loops, *item))
      tfc_run_fail(r, tfc_status_no_memory("running a step"));
    return;
  }
  if (n->kind == TFC_DNODE_OP && (n->is_async || (!r->d->inline_only && !n->direct) || n->input_count > TFC_RUN_FEW ||
                                  n->output_count > TFC_RUN_FEW)) {
    tfc_run_start_flight(r, item);
    return;
  }
  tfc_status s = tfc_run_compute(r, item, outs);
  if (s) {
    for (uint32_t i = 0; i < n->output_count; i++) tfc_run_value_release(&outs[i]);
    tfc_run_fail(r, s);
    return;
  }
  tfc_run_finish(r, item, outs);
}
