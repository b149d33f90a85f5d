// A partial run is an ordinary run in ready order. Its feeds become ready when the caller gives them, and it stops when
// it can only wait for feeds or for other steps.
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/plan/step.h"
#include "runtime/exec/variables.h"

struct tfc_partial {
  struct tfc_plan *plan; // owned
  struct tfc_run run;
  struct tfc_step step;
  struct tfc_resources *own;  // resources that only this step uses
  struct tfc_tensor *feeds;   // [feed_count], borrowed during the call that gives them
  struct tfc_tensor *fetches; // [fetch_count]
  bool *fed, *fetched, *wanted;
  bool begun;
};

static tfc_str name_of(const struct tfc_partial *p, struct tfc_output o) {
  return p->plan->ir.graph->nodes[o.node].name;
}

// Whether all fetches that the call wants have been computed.
static bool has_all(const struct tfc_partial *p) {
  for (uint32_t i = 0; i < p->plan->fetch_count; i++)
    if (p->wanted[i] && p->fetches[i].dtype == TFC_DTYPE_NONE) return false;
  return true;
}

static void leave(struct tfc_partial *p, uint32_t mode) {
  tfc_float_mode_leave(mode);
  tfc_gate_leave(&p->plan->session->gate, false);
}

tfc_status tfc_partial_begin(struct tfc_session *session, const struct tfc_run_spec *spec, struct tfc_partial **out) {
  tfc_status s = NULL;
  struct tfc_run_spec dynamic = *spec;
  dynamic.dynamic = true;
  dynamic.feed_shapes = NULL;
  struct tfc_partial *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("running a step");
  TFC_TRY(s, session->planner->create(session, session->graph, &dynamic, &p->plan));
  p->feeds = calloc(spec->feed_count + 1u, sizeof *p->feeds);
  p->fetches = calloc(spec->fetch_count + 1u, sizeof *p->fetches);
  p->fed = calloc(spec->feed_count + 1u, 1);
  p->fetched = calloc(spec->fetch_count + 1u, 1);
  p->wanted = calloc(spec->fetch_count + 1u, 1);
  if (!p->feeds || !p->fetches || !p->fed || !p->fetched || !p->wanted) {
    s = tfc_status_no_memory("running a step");
    goto out;
  }
  TFC_TRY(s, tfc_resources_create(&p->own));
  p->step.id = atomic_fetch_add(&session->next_step, 1);
  p->step.resources = session->resources;
  p->step.step_resources = p->own;
  p->step.seed = (uint64_t)session->options.execution.seed;
  p->run.plan = p->plan;
  p->run.d = p->plan->dynamic;
  p->run.session = session;
  p->run.step = &p->step;
  p->run.feeds = p->feeds;
  p->run.fetches = p->fetches;
  p->run.partial = p;
  p->run.has_all = has_all;
  pthread_mutex_lock(&session->run_lock);
  for (size_t i = 0; i < p->plan->ir.variables.count && !s; i++) {
    const struct tfc_ir_variable *v = &p->plan->ir.variables.data[i];
    if (v->variable->device != v->device) s = tfc_session_move_variable(session, v->variable, v->device);
  }
  pthread_mutex_unlock(&session->run_lock);
  if (s) goto out;
  p->begun = true;
  TFC_TRY(s, tfc_run_begin(&p->run));
  *out = p, p = NULL;
out:
  tfc_partial_end(p);
  return s;
}

static tfc_status check(const struct tfc_partial *p, const struct tfc_partial_call *call) {
  const struct tfc_plan *plan = p->plan;
  if (p->run.failed) return tfc_status_make(TFC_FAILED_PRECONDITION, "this partial run has failed before");
  for (uint32_t i = 0; i < call->feed_count; i++) {
    uint32_t k = call->feeds[i];
    if (k >= plan->feed_count) return tfc_status_make(TFC_INVALID_ARGUMENT, "this partial run has no feed %u", k);
    if (p->fed[k])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s:%d' was fed before", TFC_STR_ARG(name_of(p, plan->feeds[k])),
                             plan->feeds[k].index);
    TFC_RETURN_IF_ERROR(tfc_plan_check_feed(plan, k, &call->values[i]));
  }
  for (uint32_t i = 0; i < call->fetch_count; i++) {
    uint32_t k = call->fetches[i];
    if (k >= plan->fetch_count) return tfc_status_make(TFC_INVALID_ARGUMENT, "this partial run has no fetch %u", k);
    if (p->fetched[k])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s:%d' was fetched before",
                             TFC_STR_ARG(name_of(p, plan->fetch_outputs[k])), plan->fetch_outputs[k].index);
  }
  return NULL;
}

static tfc_status missing(struct tfc_partial *p) {
  for (uint32_t i = 0; i < p->plan->fetch_count; i++)
    if (p->wanted[i] && p->fetches[i].dtype == TFC_DTYPE_NONE)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s:%d' cannot be computed from what has been fed so far",
                             TFC_STR_ARG(name_of(p, p->plan->fetch_outputs[i])), p->plan->fetch_outputs[i].index);
  return NULL;
}

tfc_status tfc_partial_run(struct tfc_partial *p, const struct tfc_partial_call *call, struct tfc_tensor *fetches,
                           const struct tfc_run_options *options) {
  struct tfc_run *r = &p->run;
  TFC_RETURN_IF_ERROR(check(p, call));
  tfc_gate_enter_dynamic(&p->plan->session->gate);
  uint32_t mode = tfc_float_mode_enter();
  r->cancel = options ? options->cancel : NULL;
  p->step.limit_ns = options ? options->deadline_ns : 0;
  r->deadline = options && options->deadline_ns ? tfc_now_ns() + options->deadline_ns : 0;
  r->self = (struct tfc_dynamic_parent){&p->step, r->deadline, r->cancel, NULL, 0};
  for (uint32_t i = 0; i < call->fetch_count; i++) p->wanted[call->fetches[i]] = true;
  for (uint32_t i = 0; i < call->feed_count; i++) {
    p->feeds[call->feeds[i]] = call->values[i];
    p->fed[call->feeds[i]] = true;
    for (uint32_t k = 0; k < r->d->node_count; k++) {
      const struct tfc_dnode *n = &r->d->nodes[k];
      if (n->kind == TFC_DNODE_FEED && n->node == call->feeds[i])
        tfc_run_make_ready(r, n, r->root, tfc_run_iteration(r->root, 0), false);
    }
  }
  p->step.trace = options ? options->trace : NULL;
  uint64_t begin = tfc_ticks();
  tfc_run_loop(r);
  tfc_status settled = tfc_run_settle(r, r->status);
  r->status = NULL;
  if (r->failed)
    r->status = settled;
  else if (settled)
    tfc_run_fail(r, settled);
  struct tfc_trace_sink *sink = p->step.trace;
  if (sink && !r->failed)
    tfc_trace_add(&sink->buffers[sink->buffer_count - 1], TFC_TRACE_STEP, 0, TFC_NO_DEVICE, begin, tfc_ticks(), 0);
  p->step.trace = NULL;
  r->cancel = NULL, r->deadline = 0; // of this call
  leave(p, mode);
  for (uint32_t i = 0; i < call->feed_count; i++) p->feeds[call->feeds[i]] = (struct tfc_tensor){0};
  tfc_status s = r->failed ? r->status : missing(p);
  if (r->failed) r->status = NULL;
  for (uint32_t i = 0; i < call->fetch_count; i++) {
    uint32_t k = call->fetches[i];
    p->wanted[k] = false;
    if (s) continue; // a later call may request this fetch again
    p->fetched[k] = true;
    fetches[i] = p->fetches[k];
    p->fetches[k] = (struct tfc_tensor){0};
  }
  return s;
}

void tfc_partial_end(struct tfc_partial *p) {
  if (!p) return;
  if (p->begun) {
    tfc_gate_enter_dynamic(&p->plan->session->gate);
    uint32_t mode = tfc_float_mode_enter();
    if (p->run.in_flight) { // some operations still wait for other steps, so they are cancelled
      tfc_run_fail(&p->run, tfc_status_make(TFC_CANCELLED, "the partial run has ended"));
      tfc_run_loop(&p->run);
    }
    tfc_run_end(&p->run);
    leave(p, mode);
    tfc_status_free(p->run.status);
  }
  for (uint32_t i = 0; p->fetches && p->plan && i < p->plan->fetch_count; i++) tfc_tensor_release(&p->fetches[i]);
  tfc_resources_free(p->own);
  if (p->plan) p->plan->session->planner->free(p->plan);
  free(p->feeds), free(p->fetches), free(p->fed), free(p->fetched), free(p->wanted);
  free(p);
}
