// Running a static plan: point the slots at feeds and arenas, submit everything, wait for the end of every queue.
// Nothing here depends on the number of operations but the submissions themselves.
#include "runtime/base/clock.h"
#include "runtime/exec/plan_internal.h"

enum { end_spin_ns = 20000, poll_ns = 20000000 };

tfc_status tfc_plan_check_feeds(const struct tfc_plan *plan, const struct tfc_tensor *feeds) {
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  for (uint32_t i = 0; i < plan->feed_count; i++) {
    const struct tfc_node *n = &plan->ir.graph->nodes[plan->feeds[i].node];
    if (feeds[i].dtype != plan->feed_dtypes[i])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%.*s:%d' is %s, the graph wants %s", TFC_STR_ARG(n->name),
                             plan->feeds[i].index, tfc_dtype_name(feeds[i].dtype),
                             tfc_dtype_name(plan->feed_dtypes[i]));
    if (!tfc_shape_compatible(&feeds[i].shape, &plan->feed_shapes[i]))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%.*s:%d' has shape %s, the graph wants %s",
                             TFC_STR_ARG(n->name), plan->feeds[i].index, tfc_shape_show(&feeds[i].shape, a),
                             tfc_shape_show(&plan->feed_shapes[i], b));
  }
  return NULL;
}

// Arenas of the session may have moved since this plan last ran.
static tfc_status settle_places(struct tfc_plan *plan) {
  struct tfc_session *session = plan->session;
  bool moved = false;
  for (uint32_t l = 0; l <= session->device_count; l++) {
    bool limited = l < session->device_count && session->devices[l]->info.memory != UINT64_MAX;
    TFC_RETURN_IF_ERROR(tfc_session_fit_arena(session, l, plan->arena_size[l], limited));
    moved |= plan->arena_generation[l] != session->arenas[l].generation;
    plan->arena_generation[l] = session->arenas[l].generation;
  }
  for (uint32_t i = 0; moved && i < plan->place_count; i++) {
    const struct tfc_place *p = &plan->places[i];
    char *base = session->arenas[p->location].buffer ? session->arenas[p->location].buffer->data : NULL;
    *p->slot = (struct tfc_tensor){p->dtype, *p->shape, base + p->offset, p->size, NULL};
  }
  for (size_t i = 0; i < plan->ir.variables.count; i++) {
    const struct tfc_ir_variable *v = &plan->ir.variables.data[i];
    if (v->variable->device != v->device)
      TFC_RETURN_IF_ERROR(tfc_session_move_variable(session, v->variable, v->device));
  }
  return NULL;
}

static void point_feeds(struct tfc_plan *plan, const struct tfc_tensor *feeds) {
  for (uint32_t i = 0; i < plan->feed_view_count; i++) {
    const struct tfc_feed_view *f = &plan->feed_views[i];
    *f->slot = feeds[f->feed];
    f->slot->buffer = NULL;
    if (f->view) f->slot->shape = *f->view;
  }
}

static tfc_status submit_all(struct tfc_plan *plan, struct tfc_step *step) {
  for (uint32_t i = 0; i < plan->point_count; i++)
    plan->timepoints[i].value = plan->base[plan->points[i].queue] + plan->points[i].offset;
  for (uint32_t i = 0; i < plan->submission_count; i++) {
    struct tfc_submission *s = &plan->submissions[i];
    const struct tfc_timepoint *waits = plan->timepoints + s->point_begin, *signals = waits + s->wait_count;
    const struct tfc_device_driver *driver = s->device->driver;
    TFC_RETURN_IF_ERROR(
        s->prepared ? driver->submit(s->device, s->prepared, step, waits, s->wait_count, signals, s->signal_count)
                    : driver->copy(s->device, &s->copy, step, waits, s->wait_count, signals, s->signal_count));
  }
  return NULL;
}

// Waits for the end of every queue. A deadline or a cancelled step is said to the devices, which then skip what is
// left, and waited for all the same: their memory is in use until then.
static void wait_all(struct tfc_plan *plan, struct tfc_step *step, const struct tfc_run_options *options,
                     int64_t begin) {
  bool watched = options && (options->deadline_ns > 0 || options->cancel);
  for (uint32_t q = 0; q < plan->queue_count; q++) {
    if (!plan->queue_items[q]) continue;
    for (;;) {
      tfc_status s = tfc_semaphore_wait(plan->semaphores[q], plan->base[q] + plan->queue_items[q], end_spin_ns,
                                        watched ? poll_ns : -1);
      if (!s) break;
      tfc_status_free(s);
      if (options->cancel && atomic_load(options->cancel))
        tfc_step_fail(step, tfc_status_make(TFC_CANCELLED, "the step was cancelled"));
      else if (options->deadline_ns > 0 && tfc_now_ns() - begin > options->deadline_ns)
        tfc_step_fail(step, tfc_status_make(TFC_DEADLINE_EXCEEDED, "the step took longer than %.3f s",
                                            1e-9 * (double)options->deadline_ns));
    }
  }
}

static tfc_status fetch(struct tfc_plan *plan, struct tfc_tensor *fetches) {
  for (uint32_t i = 0; i < plan->fetch_count; i++) {
    const struct tfc_tensor *slot = plan->fetch_slots[i];
    uint16_t location = plan->fetch_locations[i];
    struct tfc_tensor copy = {0};
    tfc_status s = NULL;
    if (tfc_location_on_host(&plan->ir, location) || !tfc_dtype_is_plain(slot->dtype)) {
      s = tfc_tensor_clone(slot, &copy);
    } else {
      struct tfc_device *device = plan->session->devices[location];
      s = tfc_tensor_create(slot->dtype, &slot->shape, &copy);
      if (!s) s = device->driver->read(device, slot, copy.data);
    }
    if (s) {
      tfc_tensor_release(&copy);
      for (uint32_t k = 0; k < i; k++) tfc_tensor_release(&fetches[k]);
      return s;
    }
    if (plan->fetch_views[i]) copy.shape = *plan->fetch_views[i];
    fetches[i] = copy;
  }
  return NULL;
}

static void measure(struct tfc_plan *plan, struct tfc_trace_sink *trace) {
  uint64_t begin = UINT64_MAX, end = 0;
  for (uint32_t d = 0; d < plan->session->device_count; d++) {
    if (!plan->spans[d].begin) continue;
    if (plan->spans[d].begin < begin) begin = plan->spans[d].begin;
    if (plan->spans[d].end > end) end = plan->spans[d].end;
  }
  plan->last_step_us = end > begin ? 1e-3 * (double)(end - begin) * tfc_ns_per_tick() : 0;
  if (trace && end > begin)
    tfc_trace_add(&trace->buffers[trace->buffer_count - 1], TFC_TRACE_STEP, 0, UINT16_MAX, begin, end, 0);
}

tfc_status tfc_plan_run_static(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                               const struct tfc_run_options *options) {
  tfc_status s = NULL;
  struct tfc_session *session = plan->session;
  TFC_RETURN_IF_ERROR(tfc_plan_check_feeds(plan, feeds));
  pthread_mutex_lock(&session->run_lock);
  struct tfc_step step = {.id = atomic_fetch_add(&session->next_step, 1),
                          .spans = plan->spans,
                          .trace = options ? options->trace : NULL,
                          .resources = session->resources,
                          .step_resources = plan->step_resources,
                          .seed = session->options.seed};
  TFC_TRY(s, settle_places(plan));
  point_feeds(plan, feeds);
  memset(plan->spans, 0, session->device_count * sizeof *plan->spans);
  int64_t begin = tfc_now_ns();
  TFC_TRY(s, submit_all(plan, &step));
  wait_all(plan, &step, options, begin);
  for (uint32_t q = 0; q < plan->queue_count; q++) plan->base[q] += plan->queue_items[q];
  measure(plan, step.trace);
  s = step.status;
  if (!s && plan->fetch_count) s = fetch(plan, fetches);
  for (uint32_t i = 0; i < plan->unplanned_count; i++)
    if (plan->unplanned[i]->buffer) tfc_tensor_release(plan->unplanned[i]);
out:
  pthread_mutex_unlock(&session->run_lock);
  return s;
}
