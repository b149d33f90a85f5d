// Makes the static plan: slots, prepared segments, and the list of what is submitted in each step.
//
// A slot is a tensor record that the output of a producer and the inputs of its consumers share. Slots with a planned
// place point into their arena; slots of variables are the variables' own; slots of feeds are set in each step; kernels
// fill the others, which are released after their last reader.
#include <stdlib.h>

#include "runtime/exec/node_state.h"
#include "runtime/exec/plan/adapt.h"
#include "runtime/exec/plan/arenas.h"
#include "runtime/exec/plan/build.h"
#include "runtime/exec/plan/lane_steps.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/exec/plan/segment_order.h"
#include "runtime/exec/plan/segments.h"
#include "runtime/exec/variables.h"
#include "runtime/host/chain/chain.h"

struct uploaded { // a constant that was copied to a device with its own memory
  uint32_t value;
  uint16_t device;
  struct tfc_tensor *slot;
};
struct maker {
  struct tfc_plan *plan;
  const struct tfc_ir *ir;
  const struct tfc_arrangement *a;
  const struct tfc_memory_plan *memory;
  const struct tfc_lane_schedule *lanes; // NULL: none
  struct tfc_arena *arena;
  struct tfc_tensor **value_slots; // [values] at the value's own location
  struct tfc_tensor **copy_slots;  // [transfers]
  TFC_ARRAY(struct tfc_place) places;
  TFC_ARRAY(struct tfc_feed_view) feed_views;
  TFC_ARRAY(struct tfc_tensor *) unplanned;
  TFC_ARRAY(struct uploaded) uploads;
  struct tfc_variable **no_variables; // NULLs, as many as an operation has inputs or outputs at most
  // [values] the item that reads an unplanned value last; NONE: readers are on several queues, or there are none.
  uint32_t *last_reader;
};

static struct tfc_tensor *new_slot(struct maker *m) {
  return TFC_ARENA_NEW(m->arena, struct tfc_tensor);
}

static tfc_status place(struct maker *m, struct tfc_tensor *slot, tfc_dtype dtype, const struct tfc_shape *shape,
                        uint64_t bytes, uint16_t location, uint64_t offset) {
  struct tfc_place p = {slot, offset, location, bytes, dtype, shape}; // the ir owns shapes of values and views
  return tfc_array_push(&m->places, p) ? NULL : tfc_status_no_memory("planning a step");
}

static tfc_status make_value_slot(struct maker *m, uint32_t v) {
  const struct tfc_ir_value *value = &m->ir->values.data[v];
  switch (value->kind) {
  // The slot is const: no kernel writes to it.
  case TFC_IR_CONST: m->value_slots[v] = (struct tfc_tensor *)(uintptr_t)value->constant; return NULL;
  case TFC_IR_VARIABLE: m->value_slots[v] = &m->ir->variables.data[value->variable].variable->value; return NULL;
  default: break;
  }
  if (value->kind == TFC_IR_OP && m->ir->ops.data[value->op].dead) return NULL;
  struct tfc_tensor *slot = new_slot(m);
  if (!slot) return tfc_status_no_memory("planning a step");
  m->value_slots[v] = slot;
  if (value->kind == TFC_IR_FEED)
    return tfc_array_push(&m->feed_views, (struct tfc_feed_view){slot, value->feed, NULL})
               ? NULL
               : tfc_status_no_memory("planning a step");
  if (m->memory->value_offset[v] != UINT64_MAX)
    return place(m, slot, value->dtype, &value->shape, value->bytes, tfc_value_location(m->ir, value),
                 m->memory->value_offset[v]);
  slot->dtype = value->dtype;
  return tfc_array_push(&m->unplanned, slot) ? NULL : tfc_status_no_memory("planning a step");
}

static tfc_status make_copy_slot(struct maker *m, uint32_t t) {
  const struct tfc_plan_copy *copy = &m->a->transfers[t];
  if (copy->item == TFC_NONE) return NULL;
  const struct tfc_ir_value *value = &m->ir->values.data[copy->value];
  struct tfc_tensor *slot = new_slot(m);
  if (!slot) return tfc_status_no_memory("planning a step");
  m->copy_slots[t] = slot;
  if (m->memory->copy_offset[t] != UINT64_MAX)
    return place(m, slot, value->dtype, &value->shape, value->bytes, copy->target, m->memory->copy_offset[t]);
  return tfc_array_push(&m->unplanned, slot) ? NULL : tfc_status_no_memory("planning a step");
}

static tfc_status upload(struct maker *m, uint32_t v, uint16_t device, struct tfc_tensor **out) {
  for (size_t i = 0; i < m->uploads.count; i++)
    if (m->uploads.data[i].value == v && m->uploads.data[i].device == device) {
      *out = m->uploads.data[i].slot;
      return NULL;
    }
  struct tfc_device *d = m->ir->devices[device];
  const struct tfc_tensor *c = m->ir->values.data[v].constant;
  struct tfc_tensor *slot = new_slot(m);
  struct tfc_buffer *buffer = NULL;
  if (!slot) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(d->driver->allocate(d, c->size, &buffer));
  if (!tfc_array_push(&m->plan->constants, buffer)) {
    tfc_buffer_release(buffer);
    return tfc_status_no_memory("planning a step");
  }
  *slot = (struct tfc_tensor){.dtype = c->dtype, .shape = c->shape, .size = c->size, .data = buffer->data};
  TFC_RETURN_IF_ERROR(d->driver->write(d, c->data, slot));
  if (!tfc_array_push(&m->uploads, (struct uploaded){v, device, slot})) return tfc_status_no_memory("planning a step");
  *out = slot;
  return NULL;
}

// Gets the slot from which operation `op` reads its input k: the slot of the value or of its copy at the operation's
// location, or a new one if the operation sees the value with another shape (in->view). Sets *out_read if the input is
// a variable that is read by value.
static tfc_status input_slot(struct maker *m, const struct tfc_ir_op *op, uint32_t k, struct tfc_tensor **out,
                             struct tfc_variable_read *out_read) {
  const struct tfc_ir_input *in = &op->inputs[k];
  const struct tfc_ir_value *value = &m->ir->values.data[in->value];
  uint16_t location = tfc_input_location(m->ir, op, k);
  struct tfc_tensor *base = m->value_slots[in->value];
  uint64_t offset = m->memory->value_offset[in->value];
  uint16_t base_location = tfc_value_location(m->ir, value);
  bool copied = false;
  if (value->kind == TFC_IR_CONST) {
    if (!tfc_location_on_host(m->ir, location)) TFC_RETURN_IF_ERROR(upload(m, in->value, location, &base));
  } else if (in->variable == TFC_NONE) {
    uint32_t t = tfc_find_copy(m->a, m->ir, in->value, location);
    if (t != TFC_NONE) {
      base = m->copy_slots[t];
      offset = m->memory->copy_offset[t];
      base_location = location;
      copied = true;
    }
  }
  bool reads = in->by_value && value->kind == TFC_IR_VARIABLE && !copied;
  if (in->view && in->variable == TFC_NONE) {
    struct tfc_tensor *slot = new_slot(m);
    if (!slot) return tfc_status_no_memory("planning a step");
    size_t bytes = 0;
    TFC_RETURN_IF_ERROR(tfc_tensor_bytes(value->dtype, in->view, &bytes));
    *slot = (struct tfc_tensor){.dtype = value->dtype, .shape = *in->view, .size = bytes};
    if (value->kind == TFC_IR_CONST) {
      slot->data = base->data;
    } else if (value->kind == TFC_IR_FEED && !copied) {
      if (!tfc_array_push(&m->feed_views, (struct tfc_feed_view){slot, value->feed, in->view}))
        return tfc_status_no_memory("planning a step");
    } else if (reads) {
      slot->data = base->data;
    } else if (offset != UINT64_MAX) {
      TFC_RETURN_IF_ERROR(place(m, slot, value->dtype, in->view, bytes, base_location, offset));
    } else {
      return tfc_status_make(TFC_INTERNAL, "node '%.*s': a view of what has no place",
                             TFC_STR_ARG(m->ir->graph->nodes[op->node].name));
    }
    if (reads) *out_read = (struct tfc_variable_read){m->ir->variables.data[value->variable].variable, slot};
    *out = slot;
    return NULL;
  }
  if (reads) *out_read = (struct tfc_variable_read){m->ir->variables.data[value->variable].variable, NULL};
  *out = base;
  return NULL;
}

static void *carve(char **at, size_t count, size_t size) {
  void *piece = *at;
  *at += count * size;
  return piece;
}

static tfc_status make_segment_op(struct maker *m, uint32_t item, struct tfc_segment_op *out) {
  const struct tfc_ir *ir = m->ir;
  const struct tfc_ir_op *op = &ir->ops.data[m->a->items[item].op];
  uint32_t n = op->input_count, k = op->output_count;
  // A driver that runs kernels of the host asks nothing about an operation that a rewrite has prepared.
  const bool described = !op->prepared || !ir->devices[op->device]->driver->host_kernels;
  // Its arrays are one allocation, because there are many operations with few inputs each. Arrays that few operations
  // need are shared, or made when they are needed.
  const size_t each = sizeof(struct tfc_shape) + sizeof(struct tfc_tensor *) + sizeof(tfc_dtype);
  char *at = tfc_arena_alloc(m->arena, (n + k) * sizeof(struct tfc_tensor *) + (described ? (n + k) * each : 0));
  if (!at) return tfc_status_no_memory("planning a step");
  const struct tfc_tensor **inputs = carve(&at, n, sizeof *inputs), **values = NULL;
  struct tfc_tensor **outputs = carve(&at, k, sizeof *outputs), **releases = NULL;
  struct tfc_shape *input_shapes = NULL, *output_shapes = NULL;
  struct tfc_variable_read *reads = NULL;
  struct tfc_variable **variables = m->no_variables, **output_variables = m->no_variables;
  tfc_dtype *dtypes = NULL;
  if (described) {
    values = carve(&at, n, sizeof *values);
    input_shapes = carve(&at, n, sizeof *input_shapes);
    output_shapes = carve(&at, k, sizeof *output_shapes);
    dtypes = carve(&at, n, sizeof *dtypes);
  }
  *out = (struct tfc_segment_op){.node = op->node,
                                 .def = op->def,
                                 .inputs = inputs,
                                 .outputs = outputs,
                                 .input_count = n,
                                 .output_count = k,
                                 .host_inputs = op->host.inputs,
                                 .host_outputs = op->host.outputs,
                                 .on_host = op->host.all,
                                 .input_shapes = input_shapes,
                                 .output_shapes = output_shapes,
                                 .input_dtypes = dtypes,
                                 .input_values = values,
                                 .prepared = op->prepared,
                                 .state = op->state,
                                 .finish = op->finish,
                                 .window = op->window};
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_ir_input *in = &op->inputs[i];
    const struct tfc_ir_value *value = &ir->values.data[in->value];
    struct tfc_tensor *slot = NULL;
    struct tfc_variable_read read = {0};
    TFC_RETURN_IF_ERROR(input_slot(m, op, i, &slot, &read));
    inputs[i] = slot;
    if (read.variable) {
      if (!reads && !(reads = TFC_ARENA_ARRAY(m->arena, struct tfc_variable_read, n)))
        return tfc_status_no_memory("planning a step");
      reads[out->read_count++] = read;
    }
    if (in->variable != TFC_NONE) {
      if (variables == m->no_variables) variables = TFC_ARENA_ARRAY(m->arena, struct tfc_variable *, n);
      if (!variables) return tfc_status_no_memory("planning a step");
      variables[i] = ir->variables.data[in->variable].variable;
    }
    if (described) {
      input_shapes[i] = in->view ? *in->view : value->shape;
      dtypes[i] = value->dtype;
      values[i] = NULL;
    }
    if (described && value->kind == TFC_IR_CONST && tfc_dtype_is_plain(value->dtype)) {
      values[i] = value->constant;
      if (in->view) { // the view's slot has the same bytes with another shape
        struct tfc_tensor *seen = new_slot(m);
        if (!seen) return tfc_status_no_memory("planning a step");
        *seen = *value->constant;
        seen->shape = *in->view;
        seen->buffer = NULL;
        values[i] = seen;
      }
    }
    bool unplanned = value->kind == TFC_IR_OP && m->memory->value_offset[in->value] == UINT64_MAX;
    if (unplanned && m->last_reader[in->value] == item) {
      bool twice = false;
      for (uint32_t r = 0; r < out->release_count; r++) twice |= releases[r] == m->value_slots[in->value];
      if (!twice) {
        if (!releases && !(releases = TFC_ARENA_ARRAY(m->arena, struct tfc_tensor *, n + k)))
          return tfc_status_no_memory("planning a step");
        releases[out->release_count++] = m->value_slots[in->value];
      }
    }
  }
  for (uint32_t i = 0; i < k; i++) {
    uint32_t v = op->outputs[i];
    if (v != TFC_NONE) {
      outputs[i] = m->value_slots[v];
      if (described) output_shapes[i] = op->finish ? op->finish->before : ir->values.data[v].shape;
      continue;
    }
    // It is a reference: consumers read the variable itself, and the kernel's output is dropped.
    if (!(outputs[i] = new_slot(m))) return tfc_status_no_memory("planning a step");
    if (described) output_shapes[i] = TFC_SHAPE_UNKNOWN;
    if (op->output_variables && op->output_variables[i] != TFC_NONE) {
      struct tfc_variable *variable = ir->variables.data[op->output_variables[i]].variable;
      if (output_variables == m->no_variables) output_variables = TFC_ARENA_ARRAY(m->arena, struct tfc_variable *, k);
      if (!output_variables) return tfc_status_no_memory("planning a step");
      output_variables[i] = variable;
      if (described) output_shapes[i] = variable->shape;
    }
    if (!releases && !(releases = TFC_ARENA_ARRAY(m->arena, struct tfc_tensor *, n + k)))
      return tfc_status_no_memory("planning a step");
    releases[out->release_count++] = outputs[i];
  }
  out->variables = variables, out->output_variables = output_variables;
  out->reads = reads, out->releases = releases;
  if (op->def->node_state && !op->prepared)
    TFC_RETURN_IF_ERROR(tfc_session_node_state(m->plan->session, ir->source, 0, op->node, &out->node_state));
  return NULL;
}

// For each value without a planned place, finds the item that reads it last, if that is known: all readers are on the
// producer's queue; or, in a plan with lanes (whose items have no order), there is only one reader.
static void find_last_readers(struct maker *m) {
  const struct tfc_ir *ir = m->ir;
  enum { SEVERAL = UINT32_MAX - 1 };
  for (size_t v = 0; v < ir->values.count; v++) {
    m->last_reader[v] = TFC_NONE;
    if (ir->values.data[v].fetched) m->last_reader[v] = SEVERAL;
    if (ir->values.data[v].alias != TFC_NONE) m->last_reader[ir->values.data[v].alias] = SEVERAL;
  }
  for (uint32_t t = 0; t < m->a->transfer_count; t++) m->last_reader[m->a->transfers[t].value] = SEVERAL;
  for (uint32_t i = 0; i < m->a->item_count; i++) {
    if (m->a->items[i].op == TFC_NONE) continue;
    const struct tfc_ir_op *op = &ir->ops.data[m->a->items[i].op];
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t v = op->inputs[k].value;
      uint32_t *last = &m->last_reader[v];
      if (m->lanes && *last != TFC_NONE && *last != i) *last = SEVERAL;
      if (*last != SEVERAL) *last = i;
    }
  }
}

// Makes the plan's only segment, which the lanes run.
static tfc_status prepare_lanes(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  const struct tfc_arrangement *a = m->a;
  const struct tfc_lanes *lanes = NULL;
  TFC_RETURN_IF_ERROR(tfc_lane_steps_make(m->ir, a, m->memory, m->lanes, m->arena, &lanes));
  plan->segments = TFC_ARENA_ARRAY(m->arena, struct tfc_segment, 1);
  plan->submissions = TFC_ARENA_ARRAY(m->arena, struct tfc_submission, 1);
  plan->points = TFC_ARENA_ARRAY(m->arena, struct tfc_point, 1);
  plan->timepoints = TFC_ARENA_ARRAY(m->arena, struct tfc_timepoint, 1);
  struct tfc_segment_op *ops = TFC_ARENA_ARRAY(m->arena, struct tfc_segment_op, a->item_count + 1);
  if (!plan->segments || !plan->submissions || !plan->points || !plan->timepoints || !ops)
    return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < a->item_count; i++) TFC_RETURN_IF_ERROR(make_segment_op(m, i, &ops[i]));
  plan->segments[0] = (struct tfc_segment){.graph = m->ir->graph,
                                           .ops = ops,
                                           .op_count = a->item_count,
                                           .lanes = lanes,
                                           .rounding = tfc_rounding_welcome(m->ir)};
  plan->submissions[0] = (struct tfc_submission){.device = m->ir->devices[0], .signal_count = 1};
  plan->points[0] = (struct tfc_point){0, 1};
  plan->segment_count = plan->submission_count = plan->point_count = 1;
  return NULL;
}

// Tells a segment's driver which of its operations depend on each other. of_item: [items] the submission of each item,
// `index`: [items] the operation's place in its segment.
static tfc_status order_segment(struct maker *m, const struct tfc_item_order *by, const uint32_t *of_item,
                                const uint32_t *index, uint32_t first, uint32_t last, struct tfc_segment *segment) {
  const uint32_t n = segment->op_count;
  struct tfc_segment_order *order = TFC_ARENA_NEW(m->arena, struct tfc_segment_order);
  uint32_t *begin = TFC_ARENA_ARRAY(m->arena, uint32_t, n + 1), *end = TFC_ARENA_ARRAY(m->arena, uint32_t, n + 1);
  size_t most = 0, count = 0;
  for (uint32_t i = first; i <= last; i++)
    if (of_item[i] == of_item[first]) most += by->end[i] - by->begin[i];
  uint32_t *ops = TFC_ARENA_ARRAY(m->arena, uint32_t, most + 1);
  if (!order || !begin || !end || !ops) return tfc_status_no_memory("planning a step");
  for (uint32_t i = first; i <= last; i++) {
    if (of_item[i] != of_item[first]) continue;
    begin[index[i]] = (uint32_t)count;
    for (uint32_t k = by->begin[i]; k < by->end[i]; k++)
      if (of_item[by->from[k]] == of_item[first]) ops[count++] = index[by->from[k]];
    end[index[i]] = (uint32_t)count;
  }
  *order = (struct tfc_segment_order){begin, end, ops};
  segment->order = order;
  return NULL;
}

static tfc_status prepare_segments(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  const struct tfc_arrangement *a = m->a;
  const struct tfc_ir *ir = m->ir;
  tfc_status s = NULL;
  uint32_t queues = a->queue_count, segments = 0, submissions = 0, points = 0, position = 0, placed = 0;
  // [queue] 1 + index of the submission to which its next items are added
  uint32_t *open = calloc(queues, sizeof *open);
  uint32_t *of_item = calloc(a->item_count + 1u, sizeof *of_item);
  uint32_t *op_count = calloc(a->item_count + 1u, sizeof *op_count), *first_item = NULL, *last_item = NULL;
  uint32_t *arrival_count = calloc(a->item_count + 1u, sizeof *arrival_count);
  uint32_t *index = calloc(a->item_count + 1u, sizeof *index); // [items] the operation's place in its segment
  const bool branches = plan->session->options.execution.captures == TFC_CAPTURES_BRANCHES;
  struct tfc_arena scratch = {0};
  struct tfc_item_order by = {0};
  first_item = calloc(a->item_count + 1u, sizeof *first_item);
  last_item = calloc(a->item_count + 1u, sizeof *last_item);
  if (!open || !of_item || !op_count || !first_item || !last_item || !arrival_count || !index)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  if (branches) TFC_TRY(s, tfc_item_order_make(ir, a, m->memory, &scratch, &by));
  for (uint32_t i = 0; i < a->item_count; i++) {
    const struct tfc_item *item = &a->items[i];
    bool copy = item->op == TFC_NONE;
    uint32_t at = open[item->queue];
    if (copy || !at || item->wait_count || a->items[last_item[at - 1]].signals) {
      first_item[submissions] = i;
      at = open[item->queue] = ++submissions;
      segments += !copy;
    }
    last_item[at - 1] = i;
    op_count[at - 1] += !copy;
    arrival_count[at - 1] += item->arrival_count;
    of_item[i] = at - 1;
  }
  for (uint32_t i = 0; i < submissions; i++)
    points += a->items[first_item[i]].wait_count + a->items[last_item[i]].signals;
  plan->segments = TFC_ARENA_ARRAY(m->arena, struct tfc_segment, segments + 1);
  plan->submissions = TFC_ARENA_ARRAY(m->arena, struct tfc_submission, submissions + 1);
  plan->points = TFC_ARENA_ARRAY(m->arena, struct tfc_point, points + 1);
  plan->timepoints = TFC_ARENA_ARRAY(m->arena, struct tfc_timepoint, points + 1);
  if (!plan->segments || !plan->submissions || !plan->points || !plan->timepoints)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  plan->submission_count = submissions;
  for (uint32_t i = 0; i < submissions; i++) {
    const struct tfc_item *first = &a->items[first_item[i]], *last = &a->items[last_item[i]];
    struct tfc_submission *sub = &plan->submissions[i];
    sub->point_begin = position;
    sub->wait_count = first->wait_count;
    sub->signal_count = last->signals;
    for (uint32_t w = 0; w < first->wait_count; w++) {
      const struct tfc_wait *wait = &a->waits[first->wait_begin + w];
      plan->points[position++] = (struct tfc_point){wait->queue, wait->position + 1};
    }
    if (last->signals) plan->points[position++] = (struct tfc_point){last->queue, last->position + 1};
    if (first->op == TFC_NONE) {
      const struct tfc_plan_copy *copy = &a->transfers[first->transfer];
      const struct tfc_ir_value *value = &ir->values.data[copy->value];
      sub->device = ir->devices[first->queue - ir->device_count];
      sub->copy = (struct tfc_copy){
          .source_device = copy->source == ir->device_count ? NULL : ir->devices[copy->source],
          .target_device = copy->target == ir->device_count ? NULL : ir->devices[copy->target],
          .source = m->value_slots[copy->value],
          .target = m->copy_slots[first->transfer],
          .variable = value->kind == TFC_IR_VARIABLE ? ir->variables.data[value->variable].variable : NULL,
          .id = first->transfer};
      continue;
    }
    struct tfc_segment *segment = &plan->segments[plan->segment_count++];
    segment->rounding = tfc_rounding_welcome(ir);
    sub->device = ir->devices[first->queue];
    segment->graph = ir->graph;
    segment->ops = tfc_arena_alloc(m->arena, (op_count[i] + (size_t)1) * sizeof *segment->ops);
    uint32_t *arrivals = TFC_ARENA_ARRAY(m->arena, uint32_t, arrival_count[i] + 1);
    if (!segment->ops || !arrivals) TFC_TRY(s, tfc_status_no_memory("planning a step"));
    segment->arrivals = arrivals;
    for (uint32_t k = first_item[i]; k <= last_item[i]; k++) {
      if (of_item[k] != i) continue;
      plan->segment_ops[placed++] = a->items[k].op;
      const struct tfc_item *item = &a->items[k];
      for (uint32_t t = 0; t < item->arrival_count; t++)
        arrivals[segment->arrival_count++] = a->arrivals[item->arrival_begin + t];
      TFC_TRY(s, make_segment_op(m, k, &segment->ops[segment->op_count]));
      index[k] = segment->op_count++;
    }
    if (branches) TFC_TRY(s, order_segment(m, &by, of_item, index, first_item[i], last_item[i], segment));
  }
  plan->point_count = position;
out:
  free(open);
  free(of_item);
  free(op_count);
  free(first_item);
  free(last_item);
  free(arrival_count);
  free(index);
  tfc_arena_deinit(&scratch);
  return s;
}

static tfc_status make_fetches(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  uint32_t n = plan->fetch_count;
  plan->fetch_slots = TFC_ARENA_ARRAY(m->arena, struct tfc_tensor *, n + 1);
  plan->fetch_locations = TFC_ARENA_ARRAY(m->arena, uint16_t, n + 1);
  if (!plan->fetch_slots || !plan->fetch_locations) return tfc_status_no_memory("planning a step");
  plan->fetch_views = TFC_ARENA_ARRAY(m->arena, const struct tfc_shape *, n + 1);
  if (!plan->fetch_views) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_ir_value *value = &m->ir->values.data[plan->fetch_values[i].value];
    plan->fetch_slots[i] = m->value_slots[plan->fetch_values[i].value];
    plan->fetch_locations[i] = tfc_value_location(m->ir, value);
    plan->fetch_views[i] = plan->fetch_values[i].view;
  }
  return NULL;
}

// --- The plan's description (struct tfc_plan_info) -----------------------------------------------------------------
static void *keep(struct tfc_arena *arena, const void *data, size_t count, size_t size) {
  void *copy = tfc_arena_alloc(arena, (count + 1) * size);
  if (copy && count) memcpy(copy, data, count * size);
  return copy;
}

struct tfc_plan_edges {
  TFC_ARRAY(struct tfc_plan_edge) list;
};

// Adds an ordering edge. If it comes from a joint, which is not in the description, edges from all operations that the
// joint waits for are added instead.
static tfc_status add_control(struct maker *m, struct tfc_plan_edges *edges, const uint32_t *begin,
                              const uint32_t *sources, uint32_t from, uint32_t to, uint32_t *seen, uint32_t mark) {
  TFC_ARRAY(uint32_t) stack = {0};
  tfc_status s = NULL;
  bool room = tfc_array_push(&stack, from);
  while (room && stack.count) {
    uint32_t at = stack.data[--stack.count];
    if (seen[at] == mark) continue;
    seen[at] = mark;
    if (!m->ir->ops.data[at].joint) {
      struct tfc_plan_edge e = {m->ir->ops.data[at].node, m->ir->ops.data[to].node, TFC_CONTROL, 0};
      if (e.from != e.to) room = tfc_array_push(&edges->list, e);
      continue;
    }
    for (uint32_t k = begin[at]; room && k < begin[at + 1]; k++) room = tfc_array_push(&stack, sources[k]);
  }
  if (!room) s = tfc_status_no_memory("planning a step");
  tfc_array_free(&stack);
  return s;
}

static tfc_status make_edges(struct maker *m, struct tfc_plan_edges *edges) {
  const struct tfc_ir *ir = m->ir;
  tfc_status s = NULL;
  size_t n = ir->ops.count;
  uint32_t *begin = calloc(n + 2, sizeof *begin), *sources = malloc((ir->edges.count + 1) * sizeof *sources);
  uint32_t *seen = malloc((n + 1) * sizeof *seen);
  if (!begin || !sources || !seen) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  if (!tfc_array_reserve(&edges->list, 2 * n + ir->edges.count)) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (size_t i = 0; i < n; i++) seen[i] = TFC_NONE;
  for (size_t i = 0; i < ir->edges.count; i++) begin[ir->edges.data[i].to + 2]++;
  for (size_t i = 1; i <= n; i++) begin[i + 1] += begin[i];
  for (size_t i = 0; i < ir->edges.count; i++) sources[begin[ir->edges.data[i].to + 1]++] = ir->edges.data[i].from;
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint) continue;
    for (uint32_t k = 0; k < op->input_count; k++) {
      const struct tfc_ir_value *v = &ir->values.data[op->inputs[k].value];
      if (v->kind == TFC_IR_CONST || op->inputs[k].variable != TFC_NONE) continue;
      struct tfc_plan_edge e = {v->origin.node, op->node, v->origin.index, v->bytes};
      if (v->kind == TFC_IR_OP) e.from = ir->ops.data[v->op].node;
      bool twice = false;
      for (uint32_t j = 0; j < k; j++) twice |= op->inputs[j].value == op->inputs[k].value;
      if (!twice && !tfc_array_push(&edges->list, e)) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
    for (uint32_t k = begin[i]; k < begin[i + 1]; k++)
      TFC_TRY(s, add_control(m, edges, begin, sources, sources[k], i, seen, i));
  }
out:
  free(begin);
  free(sources);
  free(seen);
  return s;
}

static tfc_status make_info(struct maker *m) {
  struct tfc_plan *plan = m->plan;
  const struct tfc_ir *ir = m->ir;
  const struct tfc_arrangement *a = m->a;
  tfc_status s = NULL;
  struct tfc_plan_edges edges = {0};
  struct tfc_plan_op *ops = TFC_ARENA_ARRAY(m->arena, struct tfc_plan_op, a->item_count + 1);
  struct tfc_plan_transfer *transfers = TFC_ARENA_ARRAY(m->arena, struct tfc_plan_transfer, a->transfer_count + 1);
  struct tfc_plan_variable *variables = TFC_ARENA_ARRAY(m->arena, struct tfc_plan_variable, ir->variables.count + 1);
  uint64_t *peaks = TFC_ARENA_ARRAY(m->arena, uint64_t, ir->device_count);
  if (!ops || !transfers || !variables || !peaks) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < a->item_count; i++)
    if (a->items[i].op != TFC_NONE)
      ops[plan->info.op_count++] = (struct tfc_plan_op){
          ir->ops.data[a->items[i].op].node, m->lanes ? 0 : a->items[i].queue, m->lanes ? i : a->items[i].position};
  for (uint32_t t = 0; t < a->transfer_count; t++) {
    const struct tfc_plan_copy *c = &a->transfers[t];
    const struct tfc_ir_value *v = &ir->values.data[c->value];
    transfers[t] = (struct tfc_plan_transfer){.tensor = v->origin,
                                              .source = c->source == ir->device_count ? TFC_PLAN_HOST : c->source,
                                              .target = c->target == ir->device_count ? TFC_PLAN_HOST : c->target,
                                              .bytes = v->bytes,
                                              .handed_over = c->item == TFC_NONE};
  }
  for (uint32_t d = 0; d < ir->device_count; d++) peaks[d] = m->memory->size[d];
  for (size_t i = 0; i < ir->variables.count; i++) {
    const struct tfc_ir_variable *v = &ir->variables.data[i];
    size_t bytes = 0;
    if (tfc_shape_is_static(&v->variable->shape))
      tfc_status_free(tfc_tensor_bytes(v->variable->dtype, &v->variable->shape, &bytes));
    if (!tfc_variable_beside(ir->devices[v->device], v->variable->dtype)) peaks[v->device] += bytes;
    variables[i] = (struct tfc_plan_variable){v->node, v->device, bytes};
  }
  uint32_t *runs_in = TFC_ARENA_ARRAY(m->arena, uint32_t, ir->graph->node_count + 1);
  if (!runs_in) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < ir->graph->node_count; i++) runs_in[i] = i;
  for (size_t i = 0; i < ir->fused.count; i++) runs_in[ir->fused.data[i].node] = ir->fused.data[i].into;
  plan->info.runs_in = runs_in;
  plan->info.continued = ir->continued.data, plan->info.continued_count = (uint32_t)ir->continued.count;
  plan->info.shared = ir->shared.data, plan->info.shared_count = (uint32_t)ir->shared.count;
  TFC_TRY(s, make_edges(m, &edges));
  plan->info.edges = keep(m->arena, edges.list.data, edges.list.count, sizeof *edges.list.data);
  if (!plan->info.edges) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  plan->info.edge_count = (uint32_t)edges.list.count;
  plan->info.ops = ops;
  plan->info.transfers = transfers;
  plan->info.transfer_count = a->transfer_count;
  plan->info.variables = variables;
  plan->info.variable_count = (uint32_t)ir->variables.count;
  plan->info.peak_bytes = peaks;
  plan->info.device_count = ir->device_count;
  plan->info.is_static = true;
out:
  tfc_array_free(&edges.list);
  return s;
}

// Limits count the arena and the variables together, so a placement that cannot fit fails when it is planned.
static tfc_status check_limits(const struct tfc_plan *plan) {
  for (uint32_t d = 0; d < plan->ir.device_count; d++) {
    const struct tfc_device_info *info = &plan->ir.devices[d]->info;
    if (plan->info.peak_bytes[d] > info->memory)
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                             "%s: out of memory: the step needs %llu bytes (%llu of them variables), the limit is %llu",
                             info->name, (unsigned long long)plan->info.peak_bytes[d],
                             (unsigned long long)(plan->info.peak_bytes[d] - plan->arena_size[d]),
                             (unsigned long long)info->memory);
  }
  return NULL;
}

tfc_status tfc_plan_make_static(struct tfc_build *b, struct tfc_plan *plan) {
  tfc_status s = NULL;
  uint32_t *sequence = NULL, sequence_count = 0;
  TFC_TRY(s, tfc_build_ir(b, &plan->ir));
  if (!b->session->options.no_rewrites) TFC_TRY(s, tfc_ir_rewrite(&plan->ir));
  TFC_TRY(s, tfc_order_make(&plan->ir, b->spec, &sequence, &sequence_count));
  plan->fetch_count = b->spec->fetch_count;
  plan->fetch_values = b->fetches;
  TFC_TRY(s, tfc_plan_lay_out(plan, sequence, sequence_count, NULL));
  plan->sequence = keep(&plan->arena, sequence, sequence_count, sizeof *sequence);
  plan->sequence_count = sequence_count;
  if (!plan->sequence) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_plan_adapt_create(plan, b->spec));
out:
  free(sequence);
  return s;
}

tfc_status tfc_plan_lay_out(struct tfc_plan *plan, const uint32_t *sequence, uint32_t sequence_count,
                            const struct tfc_lane_schedule *lanes) {
  tfc_status s = NULL;
  struct tfc_arena scratch = {.block_size = tfc_plan_block_size(sequence_count) / 2};
  struct tfc_arrangement a = {0};
  struct tfc_memory_plan memory = {0};
  struct maker m = {.plan = plan, .ir = &plan->ir, .a = &a, .memory = &memory, .lanes = lanes, .arena = &plan->arena};
  uint32_t locations = plan->ir.device_count + 1, queues = 2 * plan->ir.device_count;
  TFC_TRY(s, tfc_arrange(&plan->ir, sequence, sequence_count, lanes, &scratch, &a));
  TFC_TRY(s, tfc_memory_plan_make(&plan->ir, &a, &scratch, &memory));
  size_t values = plan->ir.values.count;
  m.value_slots = TFC_ARENA_ARRAY(&scratch, struct tfc_tensor *, values + 1);
  m.copy_slots = TFC_ARENA_ARRAY(&scratch, struct tfc_tensor *, a.transfer_count + 1);
  m.last_reader = TFC_ARENA_ARRAY(&scratch, uint32_t, values + 1);
  plan->arena_size = TFC_ARENA_ARRAY(&plan->arena, uint64_t, locations);
  plan->arena_generation = TFC_ARENA_ARRAY(&plan->arena, uint64_t, locations);
  plan->spans = tfc_arena_zalloc(&plan->arena, sizeof *plan->spans * (locations + 1) + 64);
  plan->semaphores = TFC_ARENA_ARRAY(&plan->arena, struct tfc_semaphore *, queues);
  plan->base = TFC_ARENA_ARRAY(&plan->arena, uint64_t, queues);
  const uint32_t one[2] = {1, 0}; // all lanes together are one submission
  plan->queue_items = keep(&plan->arena, lanes ? one : a.queue_items, queues, sizeof *a.queue_items);
  if (!m.value_slots || !m.copy_slots || !m.last_reader || !plan->arena_size || !plan->arena_generation ||
      !plan->spans || !plan->semaphores || !plan->base || !plan->queue_items)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  plan->spans = (struct tfc_span *)(((uintptr_t)plan->spans + 63) & ~(uintptr_t)63);
  memcpy(plan->arena_size, memory.size, locations * sizeof *memory.size);
  plan->queue_count = queues;
  for (uint32_t q = 0; q < queues; q++) TFC_TRY(s, tfc_semaphore_create(&plan->semaphores[q]));
  if (!tfc_array_reserve(&m.places, values)) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t v = 0; v < values; v++) TFC_TRY(s, make_value_slot(&m, v));
  for (uint32_t t = 0; t < a.transfer_count; t++) TFC_TRY(s, make_copy_slot(&m, t));
  find_last_readers(&m);
  uint32_t most = 0;
  for (size_t i = 0; i < plan->ir.ops.count; i++) {
    const struct tfc_ir_op *op = &plan->ir.ops.data[i];
    if (op->input_count > most) most = op->input_count;
    if (op->output_count > most) most = op->output_count;
  }
  m.no_variables = TFC_ARENA_ARRAY(&plan->arena, struct tfc_variable *, most + 1);
  plan->segment_ops = TFC_ARENA_ARRAY(&plan->arena, uint32_t, a.item_count + 1);
  if (!plan->segment_ops || !m.no_variables) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, lanes ? prepare_lanes(&m) : prepare_segments(&m));
  TFC_TRY(s, make_fetches(&m));
  TFC_TRY(s, make_info(&m));
  TFC_TRY(s, check_limits(plan));
  plan->places = keep(&plan->arena, m.places.data, m.places.count, sizeof *m.places.data);
  plan->place_count = (uint32_t)m.places.count;
  plan->feed_views = keep(&plan->arena, m.feed_views.data, m.feed_views.count, sizeof *m.feed_views.data);
  plan->feed_view_count = (uint32_t)m.feed_views.count;
  plan->unplanned = keep(&plan->arena, m.unplanned.data, m.unplanned.count, sizeof(*m.unplanned.data));
  plan->unplanned_count = (uint32_t)m.unplanned.count;
  if (!plan->places || !plan->feed_views || !plan->unplanned) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  // Drivers need the addresses when they prepare segments.
  TFC_TRY(s, tfc_plan_settle(plan));
  for (uint32_t i = 0, k = 0; i < plan->submission_count; i++) {
    struct tfc_submission *sub = &plan->submissions[i];
    if (sub->copy.source) continue;
    TFC_TRY(s, sub->device->driver->prepare(sub->device, &plan->segments[k++], &sub->prepared));
  }
out:
  tfc_array_free(&m.places);
  tfc_array_free(&m.feed_views);
  tfc_array_free(&m.unplanned);
  tfc_array_free(&m.uploads);
  tfc_arena_deinit(&scratch);
  return s;
}

void tfc_plan_static_deinit(struct tfc_plan *plan) {
  for (uint32_t q = 0; q < plan->queue_count; q++) { // a thread that signalled a semaphore may still be using it
    struct tfc_device *d = plan->ir.devices[q % plan->ir.device_count];
    if (plan->semaphores[q] && q < plan->ir.device_count) tfc_status_free(d->driver->synchronize(d));
  }
  for (uint32_t i = 0; i < plan->submission_count; i++) {
    struct tfc_submission *sub = &plan->submissions[i];
    if (sub->prepared) sub->device->driver->release(sub->device, sub->prepared);
  }
  for (uint32_t q = 0; q < plan->queue_count; q++) tfc_semaphore_free(plan->semaphores[q]);
  for (uint32_t i = 0; i < plan->unplanned_count; i++) tfc_tensor_release(plan->unplanned[i]);
  for (size_t i = 0; i < plan->constants.count; i++) tfc_buffer_release(plan->constants.data[i]);
  tfc_array_free(&plan->constants);
}
