// On devices that launch kernels, computes the sums of squares that one operation reads (for the norm of all gradients,
// or for the decay of all weights) in one operation with many inputs, which needs two launches for all of them. Each
// sum is computed as before, so the results are bit-identical.
#include "runtime/exec/rewrites/merging.h"

static const struct tfc_op_def sums_def = {
    .name = "_SumsOfSquares", .inputs = "t: N * float", .outputs = "halves: N * float", .attrs = "N: int"};

struct search {
  struct tfc_ir *ir;
  struct tfc_arena arena;
  struct tfc_ir_readers readers;
  struct tfc_merging merging; // begun for the first operation that reads several sums
  bool is_merging;
};

// Whether this value is a sum of squares that only one operation reads.
static bool is_sum(const struct search *s, uint32_t v) {
  const struct tfc_ir *ir = s->ir;
  if (v == TFC_NONE || s->readers.begin[v + 1] - s->readers.begin[v] != 1) return false;
  const struct tfc_ir_value *value = &ir->values.data[v];
  if (value->kind != TFC_IR_OP || value->op == TFC_NONE || value->fetched || value->alias != TFC_NONE ||
      value->dtype != TFC_FLOAT)
    return false;
  const struct tfc_ir_op *op = &ir->ops.data[value->op];
  return !op->dead && !op->joint && !op->prepared && !op->wanted && !op->host.all && op->def &&
         op->def->plan_trait == TFC_PLAN_HALF_SQUARES && op->input_count == 1 && op->inputs[0].value != TFC_NONE &&
         tfc_ir_launches(ir, op->device, &sums_def);
}

static tfc_status make_one(struct search *s, const uint32_t *ops, uint32_t count) {
  struct tfc_ir *ir = s->ir;
  struct tfc_ir_op op = ir->ops.data[ops[0]];
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, count);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, count), id;
  if (!inputs || !outputs) return tfc_status_no_memory("planning a step");
  op.cost_us = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *each = &ir->ops.data[ops[i]];
    inputs[i] = each->inputs[0];
    outputs[i] = each->outputs[0];
    if (each->node > op.node) op.node = each->node;
    op.cost_us += each->cost_us;
  }
  op.def = &sums_def;
  op.inputs = inputs, op.input_count = count;
  op.outputs = outputs, op.output_count = count;
  op.output_variables = NULL;
  op.prepared = true;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  tfc_merging_note(&s->merging, ops, count, TFC_NONE);
  for (uint32_t i = 0; i < count; i++) tfc_ir_replace(ir, ops[i], id);
  return NULL;
}

// Joins the sums of squares among the inputs of one operation, device by device.
static tfc_status join_inputs(struct search *s, uint32_t reader) {
  struct tfc_ir *ir = s->ir;
  const uint32_t inputs = ir->ops.data[reader].input_count;
  uint32_t *ops = TFC_ARENA_ARRAY(&s->arena, uint32_t, inputs + 1);
  if (!ops) return tfc_status_no_memory("planning a step");
  for (uint16_t device = 0; device < ir->device_count; device++) {
    uint32_t count = 0;
    for (uint32_t k = 0; k < inputs; k++) {
      const uint32_t v = ir->ops.data[reader].inputs[k].value;
      if (is_sum(s, v) && ir->ops.data[ir->values.data[v].op].device == device) ops[count++] = ir->values.data[v].op;
    }
    if (count > 1 && !tfc_merging_waits(&s->merging, ops, count, TFC_NONE))
      TFC_RETURN_IF_ERROR(make_one(s, ops, count));
  }
  return NULL;
}

static tfc_status join_squares(struct tfc_ir *ir) {
  tfc_status status = NULL;
  struct search s = {.ir = ir};
  const uint32_t count = (uint32_t)ir->ops.count;
  if (!tfc_ir_any_launches(ir, &sums_def)) return NULL;
  TFC_TRY(status, tfc_ir_readers(ir, &s.arena, &s.readers));
  for (uint32_t i = 0; i < count; i++) {
    uint32_t sums = 0;
    const struct tfc_ir_op *op = &ir->ops.data[i];
    for (uint32_t k = 0; !op->dead && k < op->input_count; k++) sums += is_sum(&s, op->inputs[k].value);
    if (sums < 2) continue;
    if (!s.is_merging) TFC_TRY(status, tfc_merging_begin(ir, &s.arena, &s.readers, &s.merging));
    s.is_merging = true;
    TFC_TRY(status, join_inputs(&s, i));
  }
out:
  tfc_arena_deinit(&s.arena);
  return status;
}

static const struct tfc_rewrite rows[] = {{"sums of squares", 12, true, join_squares}};
TFC_REWRITES(rows);
