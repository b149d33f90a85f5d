// A batch normalisation with given statistics, if nothing but its normalised result is read, becomes three element-wise
// operations,
//
//   y = (x - mean) * factor + offset     with factor = scale / sqrt(variance + epsilon)
//
// which chains (chains.c) compute together with the operations that follow. The results are bit-identical: the device's
// kernel computes each element in the same steps. Where scale and variance are constants, so is the factor; else a
// small operation computes it in each step.
#include <math.h>

#include "runtime/exec/rewrites/rewrite.h"

enum { X, SCALE, OFFSET, MEAN, VARIANCE, INPUTS };

static void compute_factors(double epsilon, int64_t count, const float *scale, const float *variance, float *out) {
  for (int64_t i = 0; i < count; i++) out[i] = (float)((double)scale[i] / sqrt((double)variance[i] + epsilon));
}

static tfc_status factor_kernel(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[0], &out));
  compute_factors(*(const double *)ctx->state, tfc_tensor_elements(out), ctx->inputs[0]->data, ctx->inputs[1]->data,
                  out->data);
  return NULL;
}

static const struct tfc_op_def factor_def = {.name = "_NormFactor",
                                             .inputs = "scale: float, variance: float",
                                             .outputs = "factor: float",
                                             .attrs = "",
                                             .kernel = factor_kernel};

static bool is_norm(const struct tfc_ir_op *op) {
  return !op->dead && !op->joint && !op->prepared && op->def && op->def->role == TFC_ROLE_BATCH_NORM;
}

static bool fits(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, const struct tfc_ir_op *op) {
  if (!is_norm(op)) return false;
  if (!ir->devices[op->device]->driver->host_kernels || op->input_count != INPUTS) return false;
  const struct tfc_node *n = &ir->graph->nodes[op->node];
  if (tfc_node_attr_bool(ir->graph, n, "is_training", true)) return false;
  if (tfc_str_starts(tfc_node_attr_string(ir->graph, n, "data_format", ""), "NC")) return false;
  const uint32_t y = op->outputs[0];
  if (y == TFC_NONE || !ir->values.data[y].planned || ir->values.data[y].alias != TFC_NONE) return false;
  for (uint32_t i = 1; i < op->output_count; i++) {
    const uint32_t v = op->outputs[i];
    if (v != TFC_NONE && (readers->begin[v + 1] > readers->begin[v] || ir->values.data[v].fetched)) return false;
  }
  const struct tfc_shape *x = &ir->values.data[y].shape;
  if (!tfc_shape_is_static(x) || x->rank < 4 || tfc_shape_elements(x) < 2) return false;
  for (uint32_t i = 0; i < INPUTS; i++) {
    const struct tfc_shape *s = tfc_ir_shape(ir, &op->inputs[i]);
    if (tfc_dtype_base(ir->values.data[op->inputs[i].value].dtype) != TFC_FLOAT) return false;
    if (i == X ? !tfc_shape_equal(s, x) : s->rank != 1 || s->dims[0] != x->dims[x->rank - 1]) return false;
  }
  return true;
}

// Adds the value of `factor`: a constant, or the output of a small operation.
static tfc_status add_factor(struct tfc_ir *ir, const struct tfc_ir_op *norm, uint32_t *out_value) {
  const struct tfc_ir_value *scale = &ir->values.data[norm->inputs[SCALE].value],
                            *variance = &ir->values.data[norm->inputs[VARIANCE].value];
  const struct tfc_shape *shape = tfc_ir_shape(ir, &norm->inputs[SCALE]);
  double *epsilon = TFC_ARENA_NEW(&ir->arena, double);
  if (!epsilon) return tfc_status_no_memory("planning a step");
  *epsilon = (double)(float)tfc_node_attr_float(ir->graph, &ir->graph->nodes[norm->node], "epsilon", 0.0001);
  const struct tfc_ir_tensor factor = {{norm->node, 0}, TFC_FLOAT, *shape};
  if (scale->kind == TFC_IR_CONST && variance->kind == TFC_IR_CONST) {
    const float *scales = scale->constant->data, *variances = variance->constant->data;
    void *data;
    TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &factor, &data, out_value));
    compute_factors(*epsilon, tfc_shape_elements(&factor.shape), scales, variances, data);
    return NULL;
  }
  const struct tfc_ir_op op = {.node = norm->node,
                               .def = &factor_def,
                               .device = norm->device,
                               .inputs = (struct tfc_ir_input[]){norm->inputs[SCALE], norm->inputs[VARIANCE]},
                               .input_count = 2,
                               .prepared = true,
                               .state = epsilon,
                               .cost_us = 1};
  return tfc_ir_add_maker(ir, &op, &factor, out_value);
}

// Adds one of the three operations. *value: its first operand; on return, its result. `result`: the existing value that
// it shall compute (y), or TFC_NONE for a new one.
static tfc_status add_step(struct tfc_ir *ir, const struct tfc_ir_op *norm, const char *name,
                           const struct tfc_ir_input *operand, uint32_t result, struct tfc_ir_input *value,
                           uint32_t *out_id) {
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2);
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t);
  if (!inputs || !outputs) return tfc_status_no_memory("planning a step");
  inputs[0] = *value, inputs[1] = *operand;
  if (result == TFC_NONE) {
    struct tfc_ir_value between = ir->values.data[norm->outputs[0]];
    between.fetched = false;
    TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &between, &result));
  }
  outputs[0] = result;
  *value = (struct tfc_ir_input){.value = result, .variable = TFC_NONE};
  return tfc_ir_add_op(ir,
                       &(struct tfc_ir_op){.node = norm->node,
                                           .def = tfc_op_find(tfc_str_from(name)),
                                           .device = norm->device,
                                           .inputs = inputs,
                                           .input_count = 2,
                                           .outputs = outputs,
                                           .output_count = 1,
                                           .cost_us = norm->cost_us / 3},
                       out_id);
}

static tfc_status spread(struct tfc_ir *ir, uint32_t id) {
  const struct tfc_ir_op norm = ir->ops.data[id];
  struct tfc_ir_input value = norm.inputs[X], factor = {.variable = TFC_NONE};
  uint32_t last;
  TFC_RETURN_IF_ERROR(add_factor(ir, &norm, &factor.value));
  TFC_RETURN_IF_ERROR(add_step(ir, &norm, "Sub", &norm.inputs[MEAN], TFC_NONE, &value, &last));
  TFC_RETURN_IF_ERROR(add_step(ir, &norm, "Mul", &factor, TFC_NONE, &value, &last));
  TFC_RETURN_IF_ERROR(add_step(ir, &norm, "AddV2", &norm.inputs[OFFSET], norm.outputs[0], &value, &last));
  tfc_ir_replace(ir, id, last);
  return NULL;
}

static tfc_status spread_norms(struct tfc_ir *ir) {
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  tfc_status s = NULL;
  const uint32_t count = (uint32_t)ir->ops.count;
  // [ops] an ordering edge leads to it: it waits for an operation that need not compute any of its inputs
  bool *waits = NULL, any = false;
  for (uint32_t i = 0; i < count && !any; i++) any = is_norm(&ir->ops.data[i]);
  if (!any) return NULL;
  TFC_TRY(s, tfc_ir_waits(ir, &arena, &waits));
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0; i < count; i++)
    if (!waits[i] && fits(ir, &readers, &ir->ops.data[i])) TFC_TRY(s, spread(ir, i));
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"normalisations", 40, true, spread_norms}};
TFC_REWRITES(rows);
