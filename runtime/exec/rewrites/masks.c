// On devices that launch kernels, a comparison whose result only chooses between values and zeros (dropout, forward and
// backward) becomes an element-wise operation on floats, as do the choices:
//
//   mask = a >= b ? 1 : 0        result = mask ? x : 0
//
// So both can be steps of chains. Each chain compares again instead of reading the result of the comparison (the chains
// do so with operations that are cheap). The results are bit-identical.
#include <string.h>

#include "runtime/exec/rewrites/rewrite.h"

static void at_least(const void *av, int64_t a_step, const void *bv, int64_t b_step, void *yv, int64_t n) {
  const float *a = av, *b = bv;
  float *y = yv;
  for (int64_t i = 0; i < n; i++) y[i] = a[i * a_step] >= b[i * b_step] ? 1.0f : 0.0f;
}
static void keep(const void *mask, int64_t mask_step, const void *xv, int64_t x_step, void *yv, int64_t n) {
  const float *m = mask, *x = xv;
  float *y = yv;
  for (int64_t i = 0; i < n; i++) y[i] = m[i * mask_step] != 0 ? x[i * x_step] : 0.0f;
}
static tfc_binary_loop *const at_least_loops[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = at_least};
static tfc_binary_loop *const keep_loops[TFC_DTYPE_COUNT] = {[TFC_FLOAT] = keep};

static const struct tfc_op_def at_least_def = {.name = "_AtLeast",
                                               .inputs = "x: float, y: float",
                                               .outputs = "mask: float",
                                               .flags = TFC_OP_INPLACE,
                                               .broadcasts = true,
                                               .is_cheap = true,
                                               .elementwise =
                                                   &(const struct tfc_elementwise){.binary = at_least_loops}};
static const struct tfc_op_def keep_def = {.name = "_Keep",
                                           .inputs = "mask: float, x: float",
                                           .outputs = "y: float",
                                           .flags = TFC_OP_INPLACE,
                                           .broadcasts = true,
                                           .elementwise = &(const struct tfc_elementwise){.binary = keep_loops}};

static bool is_plain(const struct tfc_ir *ir, const struct tfc_ir_op *op, tfc_plan_trait trait, uint32_t inputs) {
  if (op->dead || op->joint || op->prepared || op->wanted || !op->def || op->def->plan_trait != trait) return false;
  if (op->input_count != inputs || op->output_count != 1 || op->outputs[0] == TFC_NONE) return false;
  const struct tfc_ir_value *y = &ir->values.data[op->outputs[0]];
  return tfc_ir_launches(ir, op->device, NULL) && !op->host.all && y->planned && y->alias == TFC_NONE &&
         tfc_shape_is_static(&y->shape);
}

static bool is_float(const struct tfc_ir *ir, const struct tfc_ir_input *in) {
  return in->value != TFC_NONE && ir->values.data[in->value].dtype == TFC_FLOAT &&
         tfc_shape_is_static(tfc_ir_shape(ir, in));
}

static bool is_zero(const struct tfc_ir *ir, const struct tfc_ir_input *in) {
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  if (v->kind != TFC_IR_CONST || v->dtype != TFC_FLOAT) return false;
  for (int64_t i = 0; i < tfc_tensor_elements(v->constant); i++)
    if (((const uint32_t *)v->constant->data)[i]) return false; // -0 has a bit
  return true;
}

// Whether the operation chooses between x where `mask` is true, and zeros: an input of the result's shape each.
static bool keeps(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t mask) {
  if (!is_plain(ir, op, TFC_PLAN_SELECT, 3) || op->inputs[0].value != mask || op->inputs[1].value == mask) return false;
  const struct tfc_shape *y = &ir->values.data[op->outputs[0]].shape;
  return ir->values.data[op->outputs[0]].dtype == TFC_FLOAT && is_float(ir, &op->inputs[1]) &&
         op->inputs[2].value != TFC_NONE && is_zero(ir, &op->inputs[2]) &&
         tfc_shape_equal(tfc_ir_shape(ir, &op->inputs[0]), y) && tfc_shape_equal(tfc_ir_shape(ir, &op->inputs[1]), y);
}

static bool fits(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, const struct tfc_ir_op *op) {
  if (!is_plain(ir, op, TFC_PLAN_AT_LEAST, 2) || !is_float(ir, &op->inputs[0]) || !is_float(ir, &op->inputs[1]))
    return false;
  const uint32_t v = op->outputs[0];
  bool all = !ir->values.data[v].fetched && readers->begin[v] < readers->begin[v + 1];
  for (uint32_t r = readers->begin[v]; r < readers->begin[v + 1] && all; r++) {
    const struct tfc_ir_op *reader = &ir->ops.data[readers->ops[r]];
    all = reader->device == op->device && keeps(ir, reader, v);
  }
  return all;
}

static tfc_status become_floats(struct tfc_ir *ir) {
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  tfc_status s = NULL;
  if (!tfc_ir_any_launches(ir, NULL)) return NULL;
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    struct tfc_ir_op *op = &ir->ops.data[i];
    if (!fits(ir, &readers, op)) continue;
    const uint32_t v = op->outputs[0];
    op->def = &at_least_def;
    ir->values.data[v].dtype = TFC_FLOAT;
    ir->values.data[v].bytes *= sizeof(float);
    for (uint32_t r = readers.begin[v]; r < readers.begin[v + 1]; r++) {
      ir->ops.data[readers.ops[r]].def = &keep_def;
      ir->ops.data[readers.ops[r]].input_count = 2;
    }
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"masks", 45, true, become_floats}};
TFC_REWRITES(rows);
