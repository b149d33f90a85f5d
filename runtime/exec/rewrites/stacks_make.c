// Replaces each stack by one operation. Its operands are stacked tensors, which another stack computes or a Pack makes.
// An Unpack takes its result apart for operations that read single pieces.
#include <string.h>

#include "runtime/exec/rewrites/stacks.h"
#include "runtime/exec/rewrites/stacks_make.h"

struct packed { // pieces that a Pack already joins: input `input` of each of `ops`
  const uint32_t *ops;
  uint32_t count, input, value;
};
struct making {
  struct tfc_stacks *w;
  struct tfc_ir *ir;
  uint32_t **made; // [stack][output] the stacked values
  TFC_ARRAY(struct packed) packed;
};

static struct tfc_shape stacked_shape(const struct tfc_shape *piece, uint32_t count, tfc_stacking how, int rank) {
  struct tfc_shape s = *piece;
  if (how == TFC_STACKING_ROWS) {
    s.dims[0] *= count;
    return s;
  }
  const int ones = rank > piece->rank ? rank - piece->rank : 0;
  s = (struct tfc_shape){.rank = 1 + ones + piece->rank};
  s.dims[0] = count;
  for (int d = 0; d < ones; d++) s.dims[1 + d] = 1;
  for (int d = 0; d < piece->rank; d++) s.dims[1 + ones + d] = piece->dims[d];
  return s;
}

static tfc_status add_value(struct tfc_ir *ir, const struct tfc_ir_value *like, uint32_t count,
                            const struct tfc_shape *shape, uint32_t *out) {
  struct tfc_ir_value v = *like;
  v.op = TFC_NONE;
  v.shape = *shape;
  v.bytes *= count;
  v.fetched = false;
  v.alias = TFC_NONE;
  return tfc_ir_add_value(ir, &v, out);
}

// Makes an input that reads `value` with this shape.
static tfc_status read_as(struct tfc_ir *ir, uint32_t value, const struct tfc_shape *shape, struct tfc_ir_input *out) {
  *out = (struct tfc_ir_input){.value = value, .variable = TFC_NONE};
  if (tfc_shape_equal(&ir->values.data[value].shape, shape)) return NULL;
  struct tfc_shape *view = TFC_ARENA_NEW(&ir->arena, struct tfc_shape);
  if (!view) return tfc_status_no_memory("planning a step");
  *view = *shape;
  out->view = view;
  return NULL;
}

static bool same_pieces(const struct tfc_ir *ir, const struct packed *p, const struct tfc_stack *stack, uint32_t k) {
  if (p->count != stack->count) return false;
  for (uint32_t i = 0; i < p->count; i++)
    if (ir->ops.data[p->ops[i]].inputs[p->input].value != ir->ops.data[stack->ops[i]].inputs[k].value) return false;
  return true;
}

// Returns in *out the stacked tensor of the pieces that are input `k` of the stack's operations; adds a Pack if there
// is none yet.
static tfc_status pack(struct making *m, const struct tfc_stack *stack, uint32_t k, uint32_t *out) {
  struct tfc_ir *ir = m->ir;
  for (size_t i = 0; i < m->packed.count; i++)
    if (same_pieces(ir, &m->packed.data[i], stack, k)) return *out = m->packed.data[i].value, NULL;
  const struct tfc_ir_op like = ir->ops.data[stack->ops[0]];
  const struct tfc_shape shape = stacked_shape(tfc_ir_shape(ir, &like.inputs[k]), stack->count, TFC_STACKING_AHEAD, 0);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, stack->count);
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t), id;
  if (!inputs || !outputs) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < stack->count; i++) inputs[i] = ir->ops.data[stack->ops[i]].inputs[k];
  TFC_RETURN_IF_ERROR(add_value(ir, &ir->values.data[like.inputs[k].value], stack->count, &shape, &outputs[0]));
  *out = outputs[0];
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir,
                                    &(struct tfc_ir_op){.node = like.node,
                                                        .def = tfc_op_find(TFC_STR("Pack")),
                                                        .device = like.device,
                                                        .inputs = inputs,
                                                        .input_count = stack->count,
                                                        .outputs = outputs,
                                                        .output_count = 1,
                                                        .cost_us = 1},
                                    &id));
  return tfc_array_push(&m->packed, (struct packed){stack->ops, stack->count, k, *out})
             ? NULL
             : tfc_status_no_memory("planning a step");
}

static tfc_status add_constant(struct tfc_ir *ir, uint32_t node, tfc_dtype type, const struct tfc_shape *shape,
                               const int64_t *numbers, uint32_t *out) {
  void *data;
  TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &(struct tfc_ir_tensor){{node, 0}, type, *shape}, &data, out));
  for (int64_t i = 0; i < tfc_shape_elements(shape); i++) {
    if (type == TFC_INT64)
      ((int64_t *)data)[i] = numbers[i];
    else
      ((int32_t *)data)[i] = (int32_t)numbers[i];
  }
  return NULL;
}

static tfc_status input_of(struct making *m, const struct tfc_stack *stack, uint32_t k, struct tfc_ir_input *out) {
  struct tfc_ir *ir = m->ir;
  const struct tfc_ir_op *op = &ir->ops.data[stack->ops[0]];
  *out = op->inputs[k];
  if (stack->stacked >> k & 1) {
    uint32_t from = 0, output = 0, value = TFC_NONE;
    const struct tfc_ir_value *y = &ir->values.data[op->outputs[0]];
    const struct tfc_shape shape =
        stacked_shape(tfc_ir_shape(ir, out), stack->count, stack->how, op->def->broadcasts ? y->shape.rank : 0);
    if (tfc_stacks_is_stacked(m->w, stack->ops, stack->count, k, &from, &output))
      value = m->made[from][output];
    else
      TFC_RETURN_IF_ERROR(pack(m, stack, k, &value));
    return read_as(ir, value, &shape, out);
  }
  const struct tfc_ir_value *v = &ir->values.data[out->value];
  int64_t numbers[2 * TFC_MAX_RANK];
  struct tfc_stacks_op described;
  if (v->kind != TFC_IR_CONST || (v->dtype != TFC_INT32 && v->dtype != TFC_INT64)) return NULL;
  const struct tfc_shape shape = *tfc_ir_shape(ir, out);
  if (tfc_shape_elements(&shape) > 2 * TFC_MAX_RANK) return NULL;
  if (!tfc_stacks_describe(ir, stack->ops[0], stack->stacked, &described)) return NULL;
  if (!tfc_stacking_constant(&described.of, stack->how, k, numbers)) return NULL;
  *out = (struct tfc_ir_input){.variable = TFC_NONE};
  return add_constant(ir, op->node, v->dtype, &shape, numbers, &out->value);
}

// Replaces the terms of an AddN for which `is_one` is true by one new value, their sum: *out_value. If all terms are
// taken (*out_all), *out_value is the AddN's own result.
static tfc_status take_terms(struct tfc_ir *ir, uint32_t id, const bool *is_one, uint32_t *out_value, bool *out_all) {
  struct tfc_ir_op *add = &ir->ops.data[id];
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, add->input_count);
  uint32_t left = 0;
  if (!inputs) return tfc_status_no_memory("planning a step");
  for (uint32_t k = 0; k < add->input_count; k++)
    if (!is_one[k]) inputs[left++] = add->inputs[k];
  *out_all = !left;
  *out_value = add->outputs[0];
  if (!left) return NULL;
  const struct tfc_ir_value like = ir->values.data[add->outputs[0]];
  TFC_RETURN_IF_ERROR(add_value(ir, &like, 1, &like.shape, out_value));
  inputs[left] = (struct tfc_ir_input){.value = *out_value, .variable = TFC_NONE};
  add->inputs = inputs, add->input_count = left + 1;
  return NULL;
}

static tfc_status make_one(struct making *m, uint32_t index) {
  struct tfc_ir *ir = m->ir;
  const struct tfc_stack *stack = &m->w->all.data[index];
  struct tfc_ir_op op = ir->ops.data[stack->ops[0]];
  uint32_t id = 0;
  bool all = false;
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op.input_count);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, op.output_count + 1);
  if (!inputs || !outputs) return tfc_status_no_memory("planning a step");
  for (uint32_t k = 0; k < op.input_count; k++) TFC_RETURN_IF_ERROR(input_of(m, stack, k, &inputs[k]));
  for (uint32_t i = 1; i < stack->count; i++) {
    const struct tfc_ir_op *other = &ir->ops.data[stack->ops[i]];
    if (other->node > op.node) op.node = other->node;
    op.cost_us += other->cost_us;
  }
  if (stack->sum == TFC_NONE) {
    memcpy(outputs, m->made[index], op.output_count * sizeof *outputs);
  } else {
    const struct tfc_ir_op *add = &ir->ops.data[stack->sum];
    bool *is_one = TFC_ARENA_ARRAY(&m->w->arena, bool, add->input_count + 1);
    if (!is_one) return tfc_status_no_memory("planning a step");
    for (uint32_t k = 0; k < add->input_count; k++)
      for (uint32_t i = 0; i < stack->count; i++)
        is_one[k] |= add->inputs[k].value == ir->ops.data[stack->ops[i]].outputs[0];
    TFC_RETURN_IF_ERROR(take_terms(ir, stack->sum, is_one, &outputs[0], &all));
  }
  op.inputs = inputs, op.outputs = outputs;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  for (uint32_t i = 0; i < stack->count; i++) tfc_ir_replace(ir, stack->ops[i], id);
  if (all) tfc_ir_replace(ir, stack->sum, id);
  return NULL;
}

static tfc_status make_total(struct making *m, const struct tfc_stack_total *total) {
  struct tfc_ir *ir = m->ir;
  const struct tfc_stack *stack = &m->w->all.data[total->stack];
  const struct tfc_ir_op add = ir->ops.data[total->sum];
  const struct tfc_shape shape =
      stacked_shape(&ir->values.data[add.outputs[0]].shape, stack->count, TFC_STACKING_AHEAD, 0);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2);
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t), id;
  bool *is_one = TFC_ARENA_ARRAY(&m->w->arena, bool, add.input_count + 1), all = false;
  if (!inputs || !outputs || !is_one) return tfc_status_no_memory("planning a step");
  for (uint32_t k = 0; k < add.input_count; k++)
    for (uint32_t i = 0; i < stack->count; i++)
      is_one[k] |= add.inputs[k].value == ir->ops.data[stack->ops[i]].outputs[total->output];
  TFC_RETURN_IF_ERROR(read_as(ir, m->made[total->stack][total->output], &shape, &inputs[0]));
  inputs[1] = (struct tfc_ir_input){.variable = TFC_NONE};
  TFC_RETURN_IF_ERROR(add_constant(ir, add.node, TFC_INT32, &TFC_SHAPE(1), &(int64_t){0}, &inputs[1].value));
  TFC_RETURN_IF_ERROR(take_terms(ir, total->sum, is_one, &outputs[0], &all));
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir,
                                    &(struct tfc_ir_op){.node = add.node,
                                                        .def = tfc_op_find(TFC_STR("Sum")),
                                                        .device = add.device,
                                                        .inputs = inputs,
                                                        .input_count = 2,
                                                        .outputs = outputs,
                                                        .output_count = 1,
                                                        .cost_us = add.cost_us},
                                    &id));
  if (all) tfc_ir_replace(ir, total->sum, id);
  return NULL;
}

// Adds an Unpack for operations that read single pieces of a stacked tensor.
static tfc_status unpack(struct making *m, const struct tfc_ir_readers *readers, const struct tfc_stack *stack,
                         uint32_t output, uint32_t stacked) {
  struct tfc_ir *ir = m->ir;
  const struct tfc_ir_op like = ir->ops.data[stack->ops[0]];
  const struct tfc_shape shape =
      stacked_shape(&ir->values.data[like.outputs[output]].shape, stack->count, TFC_STACKING_AHEAD, 0);
  bool read = false;
  for (uint32_t i = 0; i < stack->count; i++) {
    const uint32_t v = ir->ops.data[stack->ops[i]].outputs[output];
    read |= readers->begin[v + 1] > readers->begin[v];
  }
  if (!read) return NULL;
  struct tfc_ir_input *inputs = TFC_ARENA_NEW(&ir->arena, struct tfc_ir_input);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, stack->count), id;
  if (!inputs || !outputs) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(read_as(ir, stacked, &shape, inputs));
  for (uint32_t i = 0; i < stack->count; i++) outputs[i] = ir->ops.data[stack->ops[i]].outputs[output];
  return tfc_ir_add_op(ir,
                       &(struct tfc_ir_op){.node = like.node,
                                           .def = tfc_op_find(TFC_STR("Unpack")),
                                           .device = like.device,
                                           .inputs = inputs,
                                           .input_count = 1,
                                           .outputs = outputs,
                                           .output_count = stack->count,
                                           .cost_us = 1},
                       &id);
}

tfc_status tfc_stacks_make(struct tfc_stacks *w) {
  tfc_status s = NULL;
  struct tfc_ir_readers readers;
  struct making m = {.w = w, .ir = w->ir};
  const uint32_t count = (uint32_t)w->all.count;
  if (!count) return NULL;
  m.made = TFC_ARENA_ARRAY(&w->arena, uint32_t *, count);
  if (!m.made) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_stack *stack = &w->all.data[i];
    const struct tfc_ir_op op = w->ir->ops.data[stack->ops[0]];
    m.made[i] = TFC_ARENA_ARRAY(&w->arena, uint32_t, op.output_count);
    if (!m.made[i]) TFC_TRY(s, tfc_status_no_memory("planning a step"));
    for (uint32_t k = 0; k < op.output_count && stack->sum == TFC_NONE; k++) {
      const struct tfc_ir_value like = w->ir->values.data[op.outputs[k]];
      const struct tfc_shape shape = stacked_shape(&like.shape, stack->count, stack->how, 0);
      TFC_TRY(s, add_value(w->ir, &like, stack->count, &shape, &m.made[i][k]));
    }
  }
  for (uint32_t i = 0; i < count; i++) TFC_TRY(s, make_one(&m, i));
  for (size_t i = 0; i < w->totals.count; i++) TFC_TRY(s, make_total(&m, &w->totals.data[i]));
  TFC_TRY(s, tfc_ir_readers(w->ir, &w->arena, &readers));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_stack *stack = &w->all.data[i];
    const uint32_t outputs = w->ir->ops.data[stack->ops[0]].output_count;
    for (uint32_t k = 0; k < outputs && stack->sum == TFC_NONE; k++)
      TFC_TRY(s, unpack(&m, &readers, stack, k, m.made[i][k]));
  }
out:
  tfc_array_free(&m.packed);
  return s;
}
