// Runs a graph in ready order: the loop that takes nodes off the ready list until none is left, and everything that
// ends it early.
#include <errno.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/dynamic/copies.h"
#include "runtime/exec/dynamic/frames.h"
#include "runtime/exec/dynamic/iterations.h"
#include "runtime/exec/dynamic/kernels.h"
#include "runtime/exec/dynamic/nodes.h"
#include "runtime/exec/dynamic/ready.h"
#include "runtime/exec/dynamic/wait.h"
#include "runtime/exec/plan/arenas.h"
#include "runtime/exec/plan/step.h"
#include "runtime/exec/variables.h"

enum { CHECK_EVERY = 256 };

void tfc_run_loop(struct tfc_run *r) {
  for (uint32_t turn = 0;; turn++) {
    if (r->in_flight && atomic_load_explicit(&r->mailbox->arrived, memory_order_relaxed)) tfc_run_collect(r);
    if (r->deadline || turn % CHECK_EVERY == CHECK_EVERY - 1) tfc_run_check_time(r);
    if (r->failed) {
      if (!r->in_flight) return;
      tfc_run_wait(r);
      continue;
    }
    if (r->ready.count) {
      struct tfc_run_item item = r->ready.data[--r->ready.count];
      tfc_run_process(r, &item);
    } else if (r->loops.count) {
      tfc_run_loops_that_wait(r);
    } else if (r->updates_begin < r->updates.count) {
      struct tfc_run_item item = r->updates.data[r->updates_begin++];
      if (r->updates_begin == r->updates.count) r->updates_begin = r->updates.count = 0;
      tfc_run_process(r, &item);
    } else if (r->last.count) {
      struct tfc_run_item item = r->last.data[--r->last.count];
      tfc_run_process(r, &item);
    } else if (r->in_flight) {
      if (r->partial && tfc_run_at_work(r) == 0 && r->has_all(r->partial)) return;
      tfc_run_wait(r);
      tfc_run_check_time(r);
    } else if (!tfc_run_unpark(r)) {
      return;
    }
  }
}

static bool run_cancelled(struct tfc_kernel_env *env) {
  struct tfc_run *r = env->owner;
  // A kernel that loops keeps the run's own thread from looking.
  if (atomic_load(&r->stopped) || (r->nested && tfc_step_stopped(r->step))) return true;
  if (r->partial) return false; // its kernels wait also between calls, each of which has limits of its own
  return (r->cancel && atomic_load(r->cancel)) || (r->deadline && tfc_now_ns() >= r->deadline);
}

tfc_status tfc_run_begin(struct tfc_run *r) {
  struct tfc_session *session = r->session;
  r->pools = calloc(r->d->frame_count + 1u, sizeof(*r->pools));
  r->envs = calloc(2 * (size_t)session->device_count, sizeof *r->envs);
  r->outs = calloc(r->d->most_outputs + 2u, sizeof *r->outs);
  r->mailbox = calloc(1, sizeof *r->mailbox);
  r->launched = r->nested ? r->parent->launched : calloc(session->device_count, sizeof *r->launched);
  if (!r->pools || !r->envs || !r->outs || !r->mailbox || !r->launched) return tfc_status_no_memory("running a step");
  atomic_init(&r->mailbox->references, 1);
  r->host_envs = r->envs + session->device_count;
  for (uint32_t d = 0; d < session->device_count; d++) {
    struct tfc_kernel_env *env = &r->envs[d];
    env->call = tfc_dynamic_call;
    env->cancelled = run_cancelled;
    env->resources = session->resources;
    env->step_resources = r->step->step_resources;
    env->step_id = r->step->id;
    env->rendezvous = session->options.rendezvous;
    env->seed = r->step->seed;
    env->states = r->self.states;
    env->owner = r;
    r->host_envs[d] = *env;
    session->devices[d]->driver->environment(session->devices[d], env);
    r->host_envs[d].device = session->devices[d];
    r->host_envs[d].device_cores = session->devices[d]->info.cores;
    r->host_envs[d].threads = 1;
    if (r->d->prepared && r->d->prepared[d] && session->devices[d]->driver->on_its_own)
      atomic_store_explicit(&r->launched[d], true, memory_order_relaxed);
  }
  TFC_RETURN_IF_ERROR(tfc_run_copies_begin(r));
  r->root = tfc_run_frame_create(r, 0, NULL, NULL);
  for (uint32_t i = 0; i < r->d->root_count && !r->failed; i++) {
    const struct tfc_dnode *n = &r->d->nodes[r->d->roots[i]];
    if (r->partial && n->kind == TFC_DNODE_FEED) continue; // it becomes ready when it is fed
    tfc_run_make_ready(r, n, r->root, tfc_run_iteration(r->root, 0), false);
  }
  return NULL;
}

void tfc_run_end(struct tfc_run *r) {
  tfc_run_copies_end(r);
  while (r->frames) tfc_run_frame_free(r, r->frames);
  for (uint32_t i = 0; r->pools && i < r->d->frame_count; i++)
    while (r->pools[i]) {
      struct tfc_run_iteration *it = r->pools[i];
      r->pools[i] = it->next_free;
      free(it);
    }
  free(r->pools);
  free(r->envs);
  free(r->outs);
  if (!r->nested) free(r->launched);
  if (r->mailbox) tfc_run_mailbox_leave(r->mailbox);
  tfc_array_free(&r->ready);
  tfc_array_free(&r->loops);
  tfc_array_free(&r->updates);
  tfc_array_free(&r->last);
}

// A step succeeds only when everything that it launched has ended. Functions inside of it leave this check to the step.
tfc_status tfc_run_settle(struct tfc_run *r, tfc_status before) {
  tfc_status s = NULL;
  if (r->nested) return before;
  for (uint32_t d = 0; r->launched && d < r->session->device_count; d++)
    if (atomic_load_explicit(&r->launched[d], memory_order_relaxed))
      s = tfc_status_join(s, r->session->devices[d]->driver->synchronize(r->session->devices[d]));
  tfc_run_copies_finish(r);
  // A copy that failed is the cause of the error; the operations that waited for it only stopped waiting.
  tfc_status copy = atomic_load(&r->step->failed) ? r->step->status : NULL;
  r->step->status = NULL;
  s = tfc_status_join(copy, s);
  return tfc_status_code(before) == TFC_CANCELLED ? tfc_status_join(s, before) : tfc_status_join(before, s);
}

static tfc_status run_plan(struct tfc_run *r) {
  uint32_t mode = tfc_float_mode_enter();
  tfc_status s = tfc_run_begin(r);
  if (!s) {
    tfc_run_loop(r);
    tfc_run_flush(r);
    s = r->status;
    if (!s && r->root_done != r->d->frames[0].node_count) {
      struct tfc_text text = {0};
      tfc_run_name_waiting(r, &text);
      s = tfc_status_make(TFC_INTERNAL, "the step cannot go on: %u nodes never run; %s",
                          r->d->frames[0].node_count - r->root_done, text.data ? text.data : "");
      tfc_text_deinit(&text);
    }
    if (!s) s = tfc_run_fetch_late(r);
    s = tfc_run_settle(r, s);
  }
  free(r->late);
  tfc_run_end(r);
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
  struct tfc_step step = {.id = options && options->step ? options->step : atomic_fetch_add(&session->next_step, 1),
                          .trace = options ? options->trace : NULL,
                          .resources = session->resources,
                          .step_resources = plan->step_resources,
                          .seed = (uint64_t)session->options.execution.seed};
  struct tfc_run r = {.plan = plan,
                      .d = plan->dynamic,
                      .session = session,
                      .step = &step,
                      .feeds = feeds,
                      .fetches = fetches,
                      .cancel = options ? options->cancel : NULL};
  if (options && options->deadline_ns) {
    step.limit_ns = options->deadline_ns;
    r.deadline = tfc_now_ns() + options->deadline_ns;
  }
  r.self = (struct tfc_dynamic_parent){&step, r.deadline, r.cancel, NULL, 0};
  for (uint32_t i = 0; fetches && i < plan->fetch_count; i++) fetches[i] = (struct tfc_tensor){0};
  if (plan->uses_step_resources) {
    TFC_RETURN_IF_ERROR(tfc_resources_create(&own));
    step.step_resources = own;
  }
  pthread_mutex_lock(&session->run_lock);
  tfc_session_note_dynamic(session);
  for (size_t i = 0; i < plan->ir.variables.count && !s; i++) {
    const struct tfc_ir_variable *v = &plan->ir.variables.data[i];
    if (v->variable->device != v->device) s = tfc_session_move_variable(session, v->variable, v->device);
  }
  pthread_mutex_unlock(&session->run_lock);
  uint64_t begin = tfc_ticks();
  if (!s) {
    tfc_run_check_time(&r);
    s = r.failed ? r.status : run_plan(&r);
  }
  uint64_t end = tfc_ticks();
  tfc_resources_free(own);
  pthread_mutex_lock(&session->lock);
  plan->last_step_us = (double)(end - begin) * tfc_ns_per_tick() * 1e-3;
  pthread_mutex_unlock(&session->lock);
  if (!s && step.trace)
    tfc_trace_add(&step.trace->buffers[step.trace->buffer_count - 1], TFC_TRACE_STEP, 0, TFC_NO_DEVICE, begin, end, 0);
  return s;
}

tfc_status tfc_plan_run_inside(struct tfc_plan *plan, const struct tfc_dynamic_parent *parent,
                               const struct tfc_tensor *feeds, struct tfc_tensor *fetches) {
  struct tfc_run r = {.plan = plan,
                      .d = plan->dynamic,
                      .session = plan->session,
                      .step = parent->step,
                      .nested = true,
                      .parent = parent->run,
                      .deadline = parent->deadline,
                      .cancel = parent->cancel,
                      .feeds = feeds,
                      .fetches = fetches,
                      .self = *parent};
  for (uint32_t i = 0; i < plan->fetch_count; i++) fetches[i] = (struct tfc_tensor){0};
  tfc_run_check_time(&r); // a function of a few nodes, called again and again, would never look
  return r.failed ? r.status : run_plan(&r);
}
