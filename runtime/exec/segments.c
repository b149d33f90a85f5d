// From an arrangement to what is submitted each step: slots with their places, operations with their tensors, segments
// between arrivals and departures, and the timepoints that join them.
#include <stdlib.h>

#include "runtime/base/units.h"

#include "runtime/exec/plan_internal.h"

struct maker {
  struct tfc_plan *plan;
  struct tfc_build *build;
  struct tfc_ir *ir;
  struct tfc_arrangement a;
  struct tfc_memory_plan memory;
  struct tfc_arena scratch;
  struct tfc_tensor **slots;      // [values] of operations, constants and feeds
  struct tfc_tensor **copy_slots; // [transfers]
  TFC_ARRAY(struct tfc_place) places;
  TFC_ARRAY(struct tfc_feed_view) feed_views;
  TFC_ARRAY(struct tfc_tensor *) unplanned;
  TFC_ARRAY(struct tfc_submission) submissions;
  TFC_ARRAY(struct tfc_point) points;
};

// --- Slots ---------------------------------------------------------------------------------------------------------
static tfc_status new_slot(struct maker *m, struct tfc_tensor **out) {
  *out = TFC_ARENA_NEW(&m->plan->arena, struct tfc_tensor);
  return *out ? NULL : TFC_PLAN_NO_MEMORY();
}

static tfc_status placed_slot(struct maker *m, tfc_dtype dtype, const struct tfc_shape *shape, uint64_t bytes,
                              uint64_t offset, uint16_t location, struct tfc_tensor **out) {
  TFC_RETURN_IF_ERROR(new_slot(m, out));
  **out = (struct tfc_tensor){.dtype = dtype, .shape = *shape, .size = bytes};
  struct tfc_place place = {.slot = *out, .offset = offset, .location = location, .size = bytes, .dtype = dtype};
  place.shape = tfc_arena_alloc(&m->plan->arena, sizeof *shape);
  if (!place.shape || !tfc_array_push(&m->places, place)) return TFC_PLAN_NO_MEMORY();
  memcpy((void *)(uintptr_t)place.shape, shape, sizeof *shape);
  return NULL;
}

static uint64_t offset_of(const struct maker *m, uint32_t value) {
  while (m->ir->values.data[value].alias != TFC_NONE32) value = m->ir->values.data[value].alias;
  return m->memory.value_offset[value];
}

static tfc_status make_slot(struct maker *m, uint32_t v) {
  const struct tfc_ir_value *value = &m->ir->values.data[v];
  if (m->slots[v]) return NULL;
  if (value->kind == TFC_IR_OP && value->planned && offset_of(m, v) != UINT64_MAX)
    return placed_slot(m, value->dtype, &value->shape, value->bytes, offset_of(m, v), tfc_value_location(m->ir, value),
                       &m->slots[v]);
  TFC_RETURN_IF_ERROR(new_slot(m, &m->slots[v]));
  struct tfc_tensor *slot = m->slots[v];
  if (value->kind == TFC_IR_CONST) {
    *slot = *value->constant;
    slot->buffer = NULL;
  } else {
    *slot = (struct tfc_tensor){.dtype = value->dtype};
    if (value->kind == TFC_IR_OP && !tfc_array_push(&m->unplanned, slot)) return TFC_PLAN_NO_MEMORY();
    if (value->kind == TFC_IR_FEED && !tfc_array_push(&m->feed_views, (struct tfc_feed_view){slot, value->feed, NULL}))
      return TFC_PLAN_NO_MEMORY();
  }
  return NULL;
}

static tfc_status make_copy_slots(struct maker *m) {
  for (uint32_t t = 0; t < m->a.transfer_count; t++) {
    const struct tfc_plan_copy *copy = &m->a.transfers[t];
    const struct tfc_ir_value *value = &m->ir->values.data[copy->value];
    if (copy->item == TFC_NONE32) continue;
    if (m->memory.copy_offset[t] != UINT64_MAX) {
      TFC_RETURN_IF_ERROR(placed_slot(m, value->dtype, &value->shape, value->bytes, m->memory.copy_offset[t],
                                      copy->target, &m->copy_slots[t]));
      continue;
    }
    TFC_RETURN_IF_ERROR(new_slot(m, &m->copy_slots[t]));
    *m->copy_slots[t] = (struct tfc_tensor){.dtype = value->dtype};
    if (!tfc_array_push(&m->unplanned, m->copy_slots[t])) return TFC_PLAN_NO_MEMORY();
  }
  return NULL;
}

// A constant on a device with its own memory is uploaded once, when planned.
static tfc_status upload(struct maker *m, uint16_t location, const struct tfc_tensor *constant,
                         struct tfc_tensor **out) {
  struct tfc_device *device = m->ir->devices[location];
  struct tfc_buffer *buffer = NULL;
  TFC_RETURN_IF_ERROR(new_slot(m, out));
  **out = *constant;
  (*out)->buffer = NULL;
  TFC_RETURN_IF_ERROR(device->driver->allocate(device, constant->size ? constant->size : 1, &buffer));
  if (!tfc_array_push(&m->plan->constants, buffer)) {
    tfc_buffer_release(buffer);
    return TFC_PLAN_NO_MEMORY();
  }
  (*out)->data = buffer->data;
  return constant->size ? device->driver->write(device, constant->data, *out) : NULL;
}

// The record that an operation reads an input from, without its view; *out_variable is set where that is a variable's.
static tfc_status base_slot(struct maker *m, const struct tfc_ir_op *op, uint32_t k, struct tfc_tensor **out,
                            struct tfc_variable **out_variable) {
  const struct tfc_ir_input *input = &op->inputs[k];
  const struct tfc_ir_value *value = &m->ir->values.data[input->value];
  *out_variable = NULL;
  if (value->kind == TFC_IR_CONST) {
    uint16_t location = tfc_input_location(m->ir, op, k);
    if (!tfc_location_on_host(m->ir, location) && tfc_dtype_is_plain(value->dtype))
      return upload(m, location, value->constant, out);
    *out = m->slots[input->value];
    return NULL;
  }
  if (input->variable == TFC_NONE32) {
    uint32_t t = tfc_find_copy(&m->a, m->ir, input->value, tfc_input_location(m->ir, op, k));
    if (t != TFC_NONE32) {
      *out = m->copy_slots[t];
      return NULL;
    }
  }
  if (value->kind == TFC_IR_VARIABLE) {
    *out_variable = m->ir->variables.data[value->variable].variable;
    *out = &(*out_variable)->value;
    return NULL;
  }
  *out = m->slots[input->value];
  return NULL;
}

// A slot that shows `base` with another shape.
static tfc_status view_slot(struct maker *m, const struct tfc_ir_op *op, uint32_t k, struct tfc_tensor *base,
                            struct tfc_tensor **out) {
  const struct tfc_ir_input *input = &op->inputs[k];
  const struct tfc_ir_value *value = &m->ir->values.data[input->value];
  uint32_t t = value->kind == TFC_IR_CONST
                   ? TFC_NONE32
                   : tfc_find_copy(&m->a, m->ir, input->value, tfc_input_location(m->ir, op, k));
  uint64_t offset = t != TFC_NONE32            ? m->memory.copy_offset[t]
                    : value->kind == TFC_IR_OP ? offset_of(m, input->value)
                                               : UINT64_MAX;
  if (offset != UINT64_MAX) {
    uint16_t location = t != TFC_NONE32 ? m->a.transfers[t].target : tfc_value_location(m->ir, value);
    return placed_slot(m, value->dtype, input->view, value->bytes, offset, location, out);
  }
  TFC_RETURN_IF_ERROR(new_slot(m, out));
  **out = *base;
  (*out)->buffer = NULL;
  (*out)->shape = *input->view;
  (*out)->dtype = value->dtype;
  size_t bytes = 0;
  if (tfc_shape_is_static(input->view)) TFC_RETURN_IF_ERROR(tfc_tensor_bytes(value->dtype, input->view, &bytes));
  (*out)->size = bytes;
  if (value->kind == TFC_IR_FEED && t == TFC_NONE32 &&
      !tfc_array_push(&m->feed_views, (struct tfc_feed_view){*out, value->feed, input->view}))
    return TFC_PLAN_NO_MEMORY();
  return NULL;
}

// --- Operations ----------------------------------------------------------------------------------------------------
static tfc_status make_inputs(struct maker *m, const struct tfc_ir_op *op, struct tfc_segment_op *out) {
  struct tfc_arena *arena = &m->plan->arena;
  uint32_t n = op->input_count;
  out->inputs = TFC_ARENA_ARRAY(arena, const struct tfc_tensor *, n + 1);
  out->variables = TFC_ARENA_ARRAY(arena, struct tfc_variable *, n + 1);
  struct tfc_shape *shapes = TFC_ARENA_ARRAY(arena, struct tfc_shape, n + 1);
  tfc_dtype *types = TFC_ARENA_ARRAY(arena, tfc_dtype, n + 1);
  const struct tfc_tensor **values = TFC_ARENA_ARRAY(arena, const struct tfc_tensor *, n + 1);
  struct tfc_variable_read *reads = TFC_ARENA_ARRAY(arena, struct tfc_variable_read, n + 1);
  if (!out->inputs || !out->variables || !shapes || !types || !values || !reads) return TFC_PLAN_NO_MEMORY();
  for (uint32_t k = 0; k < n; k++) {
    const struct tfc_ir_input *input = &op->inputs[k];
    const struct tfc_ir_value *value = &m->ir->values.data[input->value];
    struct tfc_tensor *slot = NULL;
    struct tfc_variable *read = NULL;
    TFC_RETURN_IF_ERROR(base_slot(m, op, k, &slot, &read));
    struct tfc_tensor *view = NULL;
    if (input->view) TFC_RETURN_IF_ERROR(view_slot(m, op, k, slot, &view));
    if (read && input->by_value && input->variable == TFC_NONE32)
      reads[out->read_count++] = (struct tfc_variable_read){read, view};
    out->inputs[k] = view ? view : slot;
    if (input->variable != TFC_NONE32) out->variables[k] = m->ir->variables.data[input->variable].variable;
    shapes[k] = input->view ? *input->view : value->shape;
    types[k] = value->dtype;
    values[k] = value->kind == TFC_IR_CONST && !input->view ? value->constant : NULL;
  }
  out->input_shapes = shapes, out->input_dtypes = types, out->input_values = values, out->reads = reads;
  return NULL;
}

static tfc_status make_outputs(struct maker *m, const struct tfc_ir_op *op, struct tfc_segment_op *out) {
  struct tfc_arena *arena = &m->plan->arena;
  uint32_t n = op->output_count;
  out->outputs = TFC_ARENA_ARRAY(arena, struct tfc_tensor *, n + 1);
  out->output_variables = TFC_ARENA_ARRAY(arena, struct tfc_variable *, n + 1);
  struct tfc_shape *shapes = TFC_ARENA_ARRAY(arena, struct tfc_shape, n + 1);
  if (!out->outputs || !out->output_variables || !shapes) return TFC_PLAN_NO_MEMORY();
  const struct tfc_node *node = &m->ir->graph->nodes[op->node];
  for (uint32_t i = 0; i < n; i++) {
    uint32_t v = op->outputs[i];
    bool own = !op->prepared && i < node->output_count;
    shapes[i] = v != TFC_NONE32 ? m->ir->values.data[v].shape
                : own           ? m->plan->shapes.shapes[node->output_begin + i]
                                : TFC_SHAPE_UNKNOWN;
    if (op->output_variables && op->output_variables[i] != TFC_NONE32)
      out->output_variables[i] = m->ir->variables.data[op->output_variables[i]].variable;
    if (v != TFC_NONE32) {
      TFC_RETURN_IF_ERROR(make_slot(m, v));
      out->outputs[i] = m->slots[v];
      continue;
    }
    TFC_RETURN_IF_ERROR(new_slot(m, &out->outputs[i])); // nobody wants it; the kernel finds its own place
    if (!tfc_array_push(&m->unplanned, out->outputs[i])) return TFC_PLAN_NO_MEMORY();
  }
  out->output_shapes = shapes;
  return NULL;
}

static tfc_status make_op(struct maker *m, uint32_t id, struct tfc_segment_op *out) {
  const struct tfc_ir_op *op = &m->ir->ops.data[id];
  *out = (struct tfc_segment_op){.node = op->node,
                                 .def = op->def,
                                 .input_count = op->input_count,
                                 .output_count = op->output_count,
                                 .prepared = op->prepared,
                                 .state = op->state};
  TFC_RETURN_IF_ERROR(make_outputs(m, op, out));
  TFC_RETURN_IF_ERROR(make_inputs(m, op, out));
  if (op->prepared) return NULL;
  return tfc_session_node_state(m->plan->session, m->ir->graph, op->node, &out->node_state);
}

// --- Segments ------------------------------------------------------------------------------------------------------
static tfc_status add_points(struct maker *m, const struct tfc_item *first, const struct tfc_item *last,
                             struct tfc_submission *s) {
  s->point_begin = (uint32_t)m->points.count;
  s->wait_count = first->wait_count;
  for (uint32_t w = 0; w < first->wait_count; w++) {
    struct tfc_wait wait = m->a.waits[first->wait_begin + w];
    if (!tfc_array_push(&m->points, (struct tfc_point){wait.queue, wait.position + 1})) return TFC_PLAN_NO_MEMORY();
  }
  s->signal_count = last->signals;
  if (last->signals && !tfc_array_push(&m->points, (struct tfc_point){last->queue, last->position + 1}))
    return TFC_PLAN_NO_MEMORY();
  return tfc_array_push(&m->submissions, *s) ? NULL : TFC_PLAN_NO_MEMORY();
}

static tfc_status submit_segment(struct maker *m, const uint32_t *items, uint32_t count) {
  struct tfc_plan *plan = m->plan;
  const struct tfc_item *first = &m->a.items[items[0]], *last = &m->a.items[items[count - 1]];
  struct tfc_segment *segment = &plan->segments[plan->segment_count++];
  *segment = (struct tfc_segment){.graph = m->ir->graph,
                                  .ops = TFC_ARENA_ARRAY(&plan->arena, struct tfc_segment_op, count),
                                  .op_count = count,
                                  .arrivals = m->a.arrivals + first->arrival_begin,
                                  .arrival_count = first->arrival_count};
  if (!segment->ops) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < count; i++) TFC_RETURN_IF_ERROR(make_op(m, m->a.items[items[i]].op, &segment->ops[i]));
  struct tfc_device *device = m->ir->devices[first->queue];
  struct tfc_submission s = {.device = device};
  TFC_RETURN_IF_ERROR(device->driver->prepare(device, segment, &s.prepared));
  tfc_status status = add_points(m, first, last, &s);
  if (status) device->driver->release(device, s.prepared);
  return status;
}

static tfc_status submit_copy(struct maker *m, const struct tfc_item *item) {
  const struct tfc_plan_copy *copy = &m->a.transfers[item->transfer];
  const struct tfc_ir_value *value = &m->ir->values.data[copy->value];
  uint32_t hosts = m->ir->device_count;
  struct tfc_submission s = {.device = m->ir->devices[item->queue - hosts]};
  s.copy = (struct tfc_copy){.source_device = copy->source == hosts ? NULL : m->ir->devices[copy->source],
                             .target_device = copy->target == hosts ? NULL : m->ir->devices[copy->target],
                             .target = m->copy_slots[item->transfer],
                             .id = item->transfer};
  if (value->kind == TFC_IR_VARIABLE) {
    s.copy.variable = m->ir->variables.data[value->variable].variable;
    s.copy.source = &s.copy.variable->value;
  } else {
    s.copy.source = m->slots[copy->value];
  }
  return add_points(m, item, item, &s);
}

// Items in their order; a segment is closed by a departure, by an arrival of the next item, and by its queue's end.
static tfc_status make_segments(struct maker *m) {
  uint32_t n = m->ir->device_count;
  uint32_t *members = TFC_ARENA_ARRAY(&m->scratch, uint32_t, (size_t)n * (m->a.item_count + 1));
  uint32_t *count = TFC_ARENA_ARRAY(&m->scratch, uint32_t, n);
  m->plan->segments = TFC_ARENA_ARRAY(&m->plan->arena, struct tfc_segment, m->a.item_count + 1);
  if (!members || !count || !m->plan->segments) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < m->a.item_count; i++) {
    const struct tfc_item *item = &m->a.items[i];
    if (item->op == TFC_NONE32) {
      TFC_RETURN_IF_ERROR(submit_copy(m, item));
      continue;
    }
    uint32_t *own = members + (size_t)item->queue * (m->a.item_count + 1);
    if (count[item->queue] && (item->wait_count || item->arrival_count)) {
      TFC_RETURN_IF_ERROR(submit_segment(m, own, count[item->queue]));
      count[item->queue] = 0;
    }
    own[count[item->queue]++] = i;
    if (item->signals) {
      TFC_RETURN_IF_ERROR(submit_segment(m, own, count[item->queue]));
      count[item->queue] = 0;
    }
  }
  for (uint32_t d = 0; d < n; d++)
    if (count[d]) TFC_RETURN_IF_ERROR(submit_segment(m, members + (size_t)d * (m->a.item_count + 1), count[d]));
  return NULL;
}

// --- The plan ------------------------------------------------------------------------------------------------------
static tfc_status make_fetches(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  const struct tfc_run_spec *spec = m->build->spec;
  plan->fetch_count = spec->fetch_count;
  plan->fetch_slots = TFC_ARENA_ARRAY(&plan->arena, struct tfc_tensor *, spec->fetch_count + 1);
  plan->fetch_locations = TFC_ARENA_ARRAY(&plan->arena, uint16_t, spec->fetch_count + 1);
  plan->fetch_views = TFC_ARENA_ARRAY(&plan->arena, const struct tfc_shape *, spec->fetch_count + 1);
  if (!plan->fetch_slots || !plan->fetch_locations || !plan->fetch_views) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < spec->fetch_count; i++) {
    const struct tfc_plan_fetch *f = &m->build->fetches[i];
    const struct tfc_ir_value *value = &m->ir->values.data[f->value];
    plan->fetch_locations[i] = tfc_value_location(m->ir, value);
    plan->fetch_views[i] = f->view;
    if (value->kind == TFC_IR_VARIABLE) {
      plan->fetch_slots[i] = &m->ir->variables.data[value->variable].variable->value;
    } else {
      TFC_RETURN_IF_ERROR(make_slot(m, f->value));
      plan->fetch_slots[i] = m->slots[f->value];
    }
  }
  return NULL;
}

static tfc_status keep_feeds(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  const struct tfc_run_spec *spec = m->build->spec;
  plan->feed_count = spec->feed_count;
  plan->feed_dtypes = TFC_ARENA_ARRAY(&plan->arena, tfc_dtype, spec->feed_count + 1);
  plan->feed_shapes = TFC_ARENA_ARRAY(&plan->arena, struct tfc_shape, spec->feed_count + 1);
  struct tfc_output *feeds = TFC_ARENA_ARRAY(&plan->arena, struct tfc_output, spec->feed_count + 1);
  if (!plan->feed_dtypes || !plan->feed_shapes || !feeds) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < spec->feed_count; i++) {
    uint32_t o = m->ir->graph->nodes[spec->feeds[i].node].output_begin + (uint32_t)spec->feeds[i].index;
    plan->feed_dtypes[i] = tfc_dtype_base(m->ir->graph->output_dtypes[o]);
    plan->feed_shapes[i] = plan->shapes.shapes[o];
    feeds[i] = spec->feeds[i];
  }
  plan->feeds = feeds;
  return NULL;
}

static tfc_status make_info(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  uint32_t locations = m->ir->device_count + 1, nodes = m->ir->graph->node_count;
  struct tfc_plan_op *ops = TFC_ARENA_ARRAY(&plan->arena, struct tfc_plan_op, m->a.item_count + 1);
  struct tfc_plan_transfer *transfers =
      TFC_ARENA_ARRAY(&plan->arena, struct tfc_plan_transfer, m->a.transfer_count + 1);
  uint64_t *peak = TFC_ARENA_ARRAY(&plan->arena, uint64_t, locations);
  if (!ops || !transfers || !peak) return TFC_PLAN_NO_MEMORY();
  struct tfc_plan_info *info = &plan->info;
  for (uint32_t i = 0; i < m->a.item_count; i++) {
    const struct tfc_item *item = &m->a.items[i];
    if (item->op == TFC_NONE32) continue;
    ops[info->op_count++] = (struct tfc_plan_op){m->ir->ops.data[item->op].node, item->queue, item->position};
  }
  for (uint32_t t = 0; t < m->a.transfer_count; t++) {
    const struct tfc_plan_copy *copy = &m->a.transfers[t];
    const struct tfc_ir_value *value = &m->ir->values.data[copy->value];
    transfers[t] =
        (struct tfc_plan_transfer){value->origin, copy->source, copy->target, value->bytes, copy->item == TFC_NONE32};
  }
  for (uint32_t l = 0; l < m->ir->device_count; l++) peak[l] = m->memory.size[l];
  for (size_t i = 0; i < m->ir->variables.count; i++) {
    const struct tfc_ir_variable *v = &m->ir->variables.data[i];
    size_t bytes = 0;
    if (tfc_shape_is_static(&v->variable->shape))
      TFC_RETURN_IF_ERROR(tfc_tensor_bytes(v->variable->dtype, &v->variable->shape, &bytes));
    peak[v->device] += bytes;
  }
  // Which operation of the plan stands for a node: itself, or what it was fused into.
  uint32_t *runs_in = TFC_ARENA_ARRAY(&plan->arena, uint32_t, nodes + 1);
  if (!runs_in) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < nodes; i++) runs_in[i] = i;
  for (size_t i = 0; i < m->ir->fused.count; i++) runs_in[m->ir->fused.data[i].node] = m->ir->fused.data[i].into;
  info->runs_in = runs_in;
  info->ops = ops, info->transfers = transfers, info->transfer_count = m->a.transfer_count;
  info->peak_bytes = peak, info->device_count = m->ir->device_count, info->is_static = true;
  return NULL;
}

static tfc_status make_queues(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  uint32_t n = plan->queue_count = m->a.queue_count;
  plan->semaphores = TFC_ARENA_ARRAY(&plan->arena, struct tfc_semaphore *, n);
  plan->base = TFC_ARENA_ARRAY(&plan->arena, uint64_t, n);
  plan->queue_items = TFC_ARENA_ARRAY(&plan->arena, uint32_t, n);
  plan->arena_generation = TFC_ARENA_ARRAY(&plan->arena, uint64_t, m->ir->device_count + 1);
  plan->arena_size = TFC_ARENA_ARRAY(&plan->arena, uint64_t, m->ir->device_count + 1);
  plan->spans = tfc_arena_alloc(&plan->arena, (m->ir->device_count + 1) * sizeof *plan->spans + 64);
  if (!plan->semaphores || !plan->base || !plan->queue_items || !plan->arena_generation || !plan->arena_size ||
      !plan->spans)
    return TFC_PLAN_NO_MEMORY();
  plan->spans = (struct tfc_span *)(((uintptr_t)plan->spans + 63) & ~(uintptr_t)63);
  for (uint32_t q = 0; q < n; q++) {
    plan->queue_items[q] = m->a.queue_items[q];
    TFC_RETURN_IF_ERROR(tfc_semaphore_create(&plan->semaphores[q]));
  }
  for (uint32_t l = 0; l <= m->ir->device_count; l++) {
    plan->arena_size[l] = m->memory.size[l];
    plan->arena_generation[l] = UINT64_MAX;
  }
  return NULL;
}

// Arrays that grew while planning become the plan's.
static tfc_status settle(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  plan->places = m->places.data, plan->place_count = (uint32_t)m->places.count;
  plan->feed_views = m->feed_views.data, plan->feed_view_count = (uint32_t)m->feed_views.count;
  plan->unplanned = m->unplanned.data, plan->unplanned_count = (uint32_t)m->unplanned.count;
  plan->submissions = m->submissions.data, plan->submission_count = (uint32_t)m->submissions.count;
  plan->points = m->points.data, plan->point_count = (uint32_t)m->points.count;
  plan->timepoints = TFC_ARENA_ARRAY(&plan->arena, struct tfc_timepoint, m->points.count + 1);
  if (!plan->timepoints) return TFC_PLAN_NO_MEMORY();
  for (uint32_t i = 0; i < plan->point_count; i++)
    plan->timepoints[i].semaphore = plan->semaphores[plan->points[i].queue];
  return NULL;
}

// Early, so that a placement that does not fit says so when it is planned.
static tfc_status check_memory(struct maker *m) {
  char a[32], b[32];
  for (uint32_t l = 0; l < m->ir->device_count; l++) {
    const struct tfc_device *device = m->ir->devices[l];
    if (m->plan->info.peak_bytes[l] <= device->info.memory) continue;
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s: the step needs %s (tensors and variables), its limit is %s",
                           device->info.name, tfc_show_bytes(a, (double)m->plan->info.peak_bytes[l]),
                           tfc_show_bytes(b, (double)device->info.memory));
  }
  return NULL;
}

tfc_status tfc_plan_make_static(struct tfc_build *b, struct tfc_plan *plan) {
  tfc_status s = NULL;
  struct maker m = {.plan = plan, .build = b, .ir = &plan->ir};
  uint32_t *sequence = NULL, count = 0;
  TFC_TRY(s, tfc_build_ir(b, &plan->ir));
  plan->shapes = b->shapes;
  b->shapes = (struct tfc_shapes){0};
  if (!plan->session->options.no_rewrites) TFC_TRY(s, tfc_ir_rewrite(&plan->ir));
  TFC_TRY(s, tfc_order_make(&plan->ir, b->spec, &sequence, &count));
  TFC_TRY(s, tfc_arrange(&plan->ir, sequence, count, &plan->arena, &m.a));
  TFC_TRY(s, tfc_memory_plan_make(&plan->ir, &m.a, &plan->arena, &m.memory));
  TFC_TRY(s, make_info(&m));
  TFC_TRY(s, check_memory(&m));
  m.slots = TFC_ARENA_ARRAY(&plan->arena, struct tfc_tensor *, plan->ir.values.count + 1);
  m.copy_slots = TFC_ARENA_ARRAY(&plan->arena, struct tfc_tensor *, m.a.transfer_count + 1);
  if (!m.slots || !m.copy_slots) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning a step");
  for (uint32_t v = 0; v < plan->ir.values.count; v++) {
    const struct tfc_ir_value *value = &plan->ir.values.data[v];
    bool dead = value->kind == TFC_IR_OP && (value->op == TFC_NONE32 || plan->ir.ops.data[value->op].dead);
    if (value->kind != TFC_IR_VARIABLE && !dead) TFC_TRY(s, make_slot(&m, v));
  }
  TFC_TRY(s, make_copy_slots(&m));
  TFC_TRY(s, make_queues(&m));
  TFC_TRY(s, make_segments(&m));
  TFC_TRY(s, make_fetches(&m));
  TFC_TRY(s, keep_feeds(&m));
out:
  s = tfc_status_join(s, settle(&m)); // also on failure: what was prepared has to be released
  free(sequence);
  tfc_arena_deinit(&m.scratch);
  return s;
}

void tfc_plan_static_deinit(struct tfc_plan *plan) {
  for (uint32_t i = 0; i < plan->submission_count; i++) {
    struct tfc_submission *s = &plan->submissions[i];
    if (s->prepared) s->device->driver->release(s->device, s->prepared);
  }
  for (uint32_t i = 0; i < plan->unplanned_count; i++) tfc_tensor_release(plan->unplanned[i]);
  for (uint32_t q = 0; plan->semaphores && q < plan->queue_count; q++) tfc_semaphore_free(plan->semaphores[q]);
  for (size_t i = 0; i < plan->constants.count; i++) tfc_buffer_release(plan->constants.data[i]);
  for (size_t i = 0; i < plan->ir.ops.count; i++) {
    struct tfc_ir_op *op = &plan->ir.ops.data[i];
    if (op->prepared && op->release && !op->dead) op->release(op->state);
  }
  for (size_t i = 0; i < plan->ir.variables.count; i++) {
    struct tfc_tensor *handle = (struct tfc_tensor *)(uintptr_t)plan->ir.variables.data[i].handle;
    if (handle) tfc_tensor_release(handle);
  }
  tfc_array_free(&plan->constants);
  tfc_array_free(&plan->ir.ops);
  tfc_array_free(&plan->ir.values);
  tfc_array_free(&plan->ir.edges);
  tfc_array_free(&plan->ir.variables);
  tfc_array_free(&plan->ir.fused);
  free(plan->places);
  free(plan->feed_views);
  free(plan->unplanned);
  free(plan->submissions);
  free(plan->points);
  tfc_arena_deinit(&plan->ir.arena);
}
