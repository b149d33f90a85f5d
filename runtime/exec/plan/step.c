// Runs one step of a static plan: sets feeds, submits everything in the order of the sequence, waits until the queues
// have ended, returns fetches. Submitting never waits, and every item waits only for items that were submitted before
// it, on queues that run in order: so a step always ends. Submissions of two steps are not mixed (one lock in the
// process), so that two steps never wait for each other in a circle.
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/runner.h"
#include "runtime/exec/plan/adapt.h"
#include "runtime/exec/plan/arenas.h"
#include "runtime/exec/plan/arrange.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/exec/plan/step.h"
#include "runtime/exec/variables.h"

static pthread_mutex_t submit_lock = PTHREAD_MUTEX_INITIALIZER;
void tfc_submit_begin(void) {
  pthread_mutex_lock(&submit_lock);
}
void tfc_submit_end(void) {
  pthread_mutex_unlock(&submit_lock);
}

tfc_status tfc_plan_check_feed(const struct tfc_plan *plan, uint32_t i, const struct tfc_tensor *t) {
  const struct tfc_graph *g = plan->ir.graph;
  struct tfc_output o = plan->feeds[i];
  if (t->dtype != plan->feed_dtypes[i])
    return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%.*s:%d' is %s, the graph wants %s",
                           TFC_STR_ARG(g->nodes[o.node].name), o.index, tfc_dtype_name(t->dtype),
                           tfc_dtype_name(plan->feed_dtypes[i]));
  if (!tfc_shape_compatible(&t->shape, &plan->feed_shapes[i])) {
    char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%.*s:%d' has shape %s, the graph wants %s",
                           TFC_STR_ARG(g->nodes[o.node].name), o.index, tfc_shape_show(&t->shape, a),
                           tfc_shape_show(&plan->feed_shapes[i], b));
  }
  return NULL;
}

tfc_status tfc_plan_check_feeds(const struct tfc_plan *plan, const struct tfc_tensor *feeds) {
  for (uint32_t i = 0; i < plan->feed_count; i++) TFC_RETURN_IF_ERROR(tfc_plan_check_feed(plan, i, &feeds[i]));
  return NULL;
}

static void set_feeds(struct tfc_plan *plan, const struct tfc_tensor *feeds) {
  for (uint32_t i = 0; i < plan->feed_view_count; i++) {
    const struct tfc_feed_view *v = &plan->feed_views[i];
    *v->slot = feeds[v->feed];
    v->slot->buffer = NULL; // the feed was borrowed for the step
    if (v->view) v->slot->shape = *v->view;
  }
}

// Returns how many submissions devices refused. If any did, the step has failed.
static uint32_t submit_all(struct tfc_plan *plan, struct tfc_step *step) {
  uint32_t refused = 0;
  for (uint32_t i = 0; i < plan->point_count; i++) {
    const struct tfc_point *p = &plan->points[i];
    plan->timepoints[i] = (struct tfc_timepoint){plan->semaphores[p->queue], plan->base[p->queue] + p->offset};
  }
  tfc_submit_begin();
  for (uint32_t i = 0; i < plan->submission_count; i++) {
    struct tfc_submission *sub = &plan->submissions[i];
    const struct tfc_timepoint *waits = plan->timepoints + sub->point_begin, *signals = waits + sub->wait_count;
    const struct tfc_device_driver *driver = sub->device->driver;
    tfc_status s;
    if (sub->copy.source)
      s = driver->copy(sub->device, &sub->copy, step, waits, sub->wait_count, signals, sub->signal_count);
    else
      s = driver->submit(sub->device, sub->prepared, step, waits, sub->wait_count, signals, sub->signal_count);
    if (!s) continue;
    refused++;
    // The step has failed. Work that waits for this submission must continue, to see the failure.
    tfc_step_fail(step, tfc_status_annotate(s, "submitting to %s", sub->device->info.name));
    for (uint32_t k = 0; k < sub->signal_count; k++) tfc_semaphore_signal(signals[k].semaphore, signals[k].value);
  }
  tfc_submit_end();
  return refused;
}

enum { POLL_NS = 5000000 };

// Makes the error for a step that exceeded its deadline. It names what each device was running or would have run next.
// Call it when all devices have stopped.
static tfc_status too_late(const struct tfc_plan *plan, const struct tfc_step *step) {
  const struct tfc_graph *g = plan->ir.graph;
  struct tfc_text text = {0};
  for (uint32_t d = 0; d < plan->ir.device_count; d++) {
    uint32_t last = atomic_load(&plan->spans[d].last), next = atomic_load(&plan->spans[d].next);
    if (!next) continue;
    const struct tfc_node *n = &g->nodes[(last ? last : next) - 1];
    tfc_text_printf(&text, "%s'%.*s' (%.*s) on %s %s", text.size ? ", " : ": ", TFC_STR_ARG(n->name),
                    TFC_STR_ARG(n->op), plan->ir.devices[d]->info.name, last ? "was running" : "was waiting");
  }
  tfc_status s = tfc_status_make(TFC_DEADLINE_EXCEEDED, "the step did not end within %g ms%s",
                                 (double)step->limit_ns * 1e-6, text.size ? text.data : "");
  tfc_text_deinit(&text);
  return s;
}

static void wait_end(struct tfc_plan *plan, struct tfc_step *step, const struct tfc_run_options *options,
                     int64_t deadline) {
  bool late = false;
  const bool receives = step->rendezvous != NULL; // operations may wait for other tasks
  bool watch = deadline || receives || (options && options->cancel);
  for (uint32_t q = 0; q < plan->queue_count; q++) {
    if (!plan->queue_items[q]) continue;
    for (;;) {
      int64_t timeout = -1;
      if (watch && (receives || !atomic_load(&step->cancelled))) {
        timeout = POLL_NS;
        if (deadline && !atomic_load(&step->cancelled) && deadline - tfc_now_ns() < timeout)
          timeout = deadline - tfc_now_ns();
        if (timeout < 0) timeout = 0;
      }
      tfc_status s =
          tfc_semaphore_wait(plan->semaphores[q], plan->base[q] + plan->queue_items[q], watch ? 0 : 20000, timeout);
      if (!s) break;
      tfc_status_free(s);
      if (deadline && tfc_now_ns() >= deadline) {
        late |= !atomic_exchange(&step->cancelled, true);
      } else if (options && options->cancel && atomic_load(options->cancel)) {
        if (!atomic_exchange(&step->cancelled, true))
          tfc_step_fail(step, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
      }
      // again and again, because an operation may begin to wait now
      if (receives && tfc_step_stopped(step)) tfc_resources_wake(step->resources);
    }
  }
  if (late) tfc_step_fail(step, too_late(plan, step));
}

tfc_status tfc_fetch_error(tfc_status s, const struct tfc_session *session, const struct tfc_graph *g,
                           struct tfc_output o, const struct tfc_variable *v) {
  static const struct tfc_tensor none;
  const struct tfc_node *n = &g->nodes[o.node];
  return tfc_op_error(s, g, n, session->devices[v->device], (const struct tfc_tensor *[]){&none}, n->input_count > 0);
}

static tfc_status fetch(struct tfc_plan *plan, uint32_t i, struct tfc_tensor *out) {
  const struct tfc_tensor *slot = plan->fetch_slots[i];
  uint16_t location = plan->fetch_locations[i];
  tfc_status s = NULL;
  struct tfc_tensor t = {0};
  for (size_t v = 0; v < plan->ir.variables.count; v++) {
    const struct tfc_variable *variable = plan->ir.variables.data[v].variable;
    if (slot != &variable->value) continue;
    s = tfc_variable_check(variable);
    if (s && i < plan->spec.fetch_count)
      s = tfc_fetch_error(s, plan->session, plan->ir.graph, plan->spec.fetches[i], variable);
    if (s) return s;
  }
  if (tfc_location_on_host(&plan->ir, location)) {
    TFC_RETURN_IF_ERROR(tfc_tensor_clone(slot, &t));
  } else {
    struct tfc_device *d = plan->ir.devices[location];
    TFC_RETURN_IF_ERROR(tfc_tensor_create(slot->dtype, &slot->shape, &t));
    s = d->driver->read(d, slot, t.data);
    if (s) {
      tfc_tensor_release(&t);
      return s;
    }
  }
  if (plan->fetch_views[i]) t.shape = *plan->fetch_views[i];
  *out = t;
  return NULL;
}

static void measure(struct tfc_plan *plan, const struct tfc_run_options *options) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (uint32_t d = 0; d < plan->ir.device_count; d++) {
    if (!plan->spans[d].begin) continue;
    if (plan->spans[d].begin < begin) begin = plan->spans[d].begin;
    if (plan->spans[d].end > end) end = plan->spans[d].end;
  }
  plan->last_step_us = end > begin ? (double)(end - begin) * tfc_ns_per_tick() * 1e-3 : 0;
  struct tfc_trace_sink *sink = options ? options->trace : NULL;
  if (sink && end > begin)
    tfc_trace_add(&sink->buffers[sink->buffer_count - 1], TFC_TRACE_STEP, 0, TFC_NO_DEVICE, begin, end, 0);
}

// Moves variables to the devices where the plan needs them. Copies of a plan, whose steps overlap, need them on
// the same devices.
static tfc_status move_variables(struct tfc_plan *plan) {
  tfc_status s = NULL;
  if (plan->own_arenas) pthread_mutex_lock(&plan->session->run_lock);
  for (size_t i = 0; i < plan->ir.variables.count; i++) {
    const struct tfc_ir_variable *v = &plan->ir.variables.data[i];
    if (v->variable->device != v->device) TFC_TRY(s, tfc_session_move_variable(plan->session, v->variable, v->device));
  }
out:
  if (plan->own_arenas) pthread_mutex_unlock(&plan->session->run_lock);
  return s;
}

// Runs `plan`, or its second plan in lanes. The caller holds run_lock, or the plan's own lock.
static tfc_status run(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                      const struct tfc_run_options *options) {
  tfc_status s = NULL;
  struct tfc_session *session = plan->session;
  struct tfc_step step = {.id = options && options->step ? options->step : atomic_fetch_add(&session->next_step, 1),
                          .trace = options ? options->trace : NULL,
                          .resources = session->resources,
                          .rendezvous = session->options.rendezvous,
                          .seed = (uint64_t)session->options.execution.seed,
                          .spans = plan->spans,
                          .stream = plan->stream};
  step.limit_ns = options ? options->deadline_ns : 0;
  int64_t deadline = options && options->deadline_ns ? tfc_now_ns() + options->deadline_ns : 0;
  uint32_t fetched = 0;
  if (options && options->cancel && atomic_load(options->cancel)) TFC_FAIL(s, TFC_CANCELLED, "the step was cancelled");
  TFC_TRY(s, tfc_plan_settle(plan));
  TFC_TRY(s, move_variables(plan));
  step.step_resources = plan->step_resources;
  memset(plan->spans, 0, plan->ir.device_count * sizeof *plan->spans);
  set_feeds(plan, feeds);
  uint32_t refused = submit_all(plan, &step);
  wait_end(plan, &step, options, deadline);
  // The semaphore of a refused submission was signalled at once, while earlier submissions of the same queue may still
  // use the step; so this waits for them.
  for (uint32_t d = 0; refused && d < plan->ir.device_count; d++)
    s = tfc_status_join(s, plan->ir.devices[d]->driver->synchronize(plan->ir.devices[d]));
  for (uint32_t q = 0; q < plan->queue_count; q++) plan->base[q] += plan->queue_items[q];
  if (atomic_load(&step.failed)) {
    s = tfc_status_join(step.status, s);
    goto out;
  }
  measure(plan, options);
  for (uint32_t i = 0; i < plan->fetch_count && fetches; i++) {
    TFC_TRY(s, fetch(plan, i, &fetches[i]));
    fetched = i + 1;
  }
out:
  for (uint32_t i = 0; s && i < fetched; i++) tfc_tensor_release(&fetches[i]);
  for (uint32_t i = 0; i < plan->unplanned_count; i++) tfc_tensor_release(plan->unplanned[i]);
  if (plan->uses_step_resources) {
    tfc_resources_free(plan->step_resources);
    plan->step_resources = NULL;
    tfc_status again = tfc_resources_create(&plan->step_resources);
    s = s ? tfc_status_join(s, again) : again;
  }
  return s;
}

tfc_status tfc_plan_run_static(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                               const struct tfc_run_options *options) {
  TFC_RETURN_IF_ERROR(tfc_plan_check_feeds(plan, feeds));
  pthread_mutex_t *lock = plan->own_arenas ? &plan->own_lock : &plan->session->run_lock;
  pthread_mutex_lock(lock);
  struct tfc_plan *used = plan->adaptation ? tfc_plan_adapt_begin(plan, options) : plan;
  tfc_status s = run(used, feeds, fetches, options);
  if (plan->adaptation) tfc_plan_adapt_end(plan, used, s != NULL);
  pthread_mutex_unlock(lock);
  return s;
}
