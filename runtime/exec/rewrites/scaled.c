// On devices that launch kernels, an optimizer update multiplies its gradient by a number itself, if an operation did
// nothing else: clipping by a norm scales the gradients of all variables, each by an operation of its own. The product
// is rounded as that operation rounds it, so the results are bit-identical.
#include "runtime/exec/rewrites/scaled.h"

#include <string.h>

#include "runtime/ops/training_apply.h"
#include "runtime/ops/training_scaled.h"

static const struct tfc_op_def scaled_def = {.name = "_ScaledUpdate",
                                             .inputs = "update: M * float, scale: float",
                                             .outputs = "var: Ref(float)",
                                             .attrs = "M: int",
                                             .flags = TFC_OP_UPDATE};

uint32_t tfc_rewrites_gradient(const struct tfc_ir_op *op) {
  if (!op->def) return TFC_NONE;
  if (op->def == &scaled_def) return ((const struct tfc_scaled_update *)op->state)->gradient;
  return op->prepared ? TFC_NONE : tfc_apply_gradient(op->def);
}

// Whether input `k` of a product is a number that can be an input of the update.
static bool is_number(const struct tfc_ir *ir, const struct tfc_ir_op *product, uint32_t k) {
  const struct tfc_ir_input *in = &product->inputs[k];
  if (in->value == TFC_NONE || in->variable != TFC_NONE) return false;
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  return v->kind != TFC_IR_VARIABLE && v->dtype == TFC_FLOAT && tfc_shape_is_static(tfc_ir_shape(ir, in)) &&
         tfc_shape_elements(tfc_ir_shape(ir, in)) == 1;
}

// Finds the product that scales the gradient of an update, if the update can do that itself. *out_whole: the number of
// the product's input that is the gradient. TFC_NONE: there is no such product.
static uint32_t product_of(const struct tfc_ir *ir, const struct tfc_ir_readers *readers,
                           const struct tfc_ir_op *update, uint32_t *out_whole) {
  const uint32_t gradient = tfc_rewrites_gradient(update);
  if (gradient >= update->input_count || update->def == &scaled_def) return TFC_NONE;
  const struct tfc_ir_input *in = &update->inputs[gradient];
  if (in->value == TFC_NONE || in->view) return TFC_NONE;
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  if (v->kind != TFC_IR_OP || v->op == TFC_NONE || v->fetched || !v->planned || v->alias != TFC_NONE ||
      v->dtype != TFC_FLOAT || readers->begin[in->value + 1] - readers->begin[in->value] != 1)
    return TFC_NONE;
  const struct tfc_ir_op *product = &ir->ops.data[v->op];
  if (product->dead || product->joint || product->prepared || product->wanted || product->device != update->device ||
      !product->def || product->def->plan_trait != TFC_PLAN_MULTIPLY || product->input_count != 2)
    return TFC_NONE;
  for (uint32_t k = 0; k < 2; k++) {
    const struct tfc_ir_input *whole = &product->inputs[k];
    if (whole->value == TFC_NONE || whole->variable != TFC_NONE || !is_number(ir, product, !k)) continue;
    const struct tfc_ir_value *g = &ir->values.data[whole->value];
    if (g->kind != TFC_IR_OP || g->dtype != TFC_FLOAT || !tfc_shape_equal(tfc_ir_shape(ir, whole), &v->shape)) continue;
    *out_whole = k;
    return v->op;
  }
  return TFC_NONE;
}

static tfc_status scale(struct tfc_ir *ir, uint32_t id, uint32_t product_id, uint32_t whole) {
  struct tfc_ir_op *op = &ir->ops.data[id];
  const struct tfc_ir_op *product = &ir->ops.data[product_id];
  struct tfc_scaled_update *state = TFC_ARENA_NEW(&ir->arena, struct tfc_scaled_update);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op->input_count + 1);
  if (!state || !inputs) return tfc_status_no_memory("planning a step");
  *state = (struct tfc_scaled_update){op->def, tfc_rewrites_gradient(op), op->input_count};
  memcpy(inputs, op->inputs, op->input_count * sizeof *inputs);
  inputs[state->gradient] = product->inputs[whole];
  inputs[state->scale] = product->inputs[!whole];
  op->def = &scaled_def;
  op->inputs = inputs;
  op->input_count++;
  op->prepared = true;
  op->state = state;
  tfc_ir_replace(ir, product_id, id);
  return NULL;
}

static bool takes_scales(const struct tfc_device_driver *driver) {
  return !driver->host_kernels && driver->has_kernel;
}

static tfc_status scale_gradients(struct tfc_ir *ir) {
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  tfc_status s = NULL;
  const uint32_t count = (uint32_t)ir->ops.count;
  // [ops] an ordering edge begins there; the update's may not, because it ends later
  bool *leads = NULL, any = false;
  for (uint32_t d = 0; d < ir->device_count; d++) any |= takes_scales(ir->devices[d]->driver);
  if (!any) return NULL;
  leads = TFC_ARENA_ARRAY(&arena, bool, count + 1);
  if (!leads) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (size_t e = 0; e < ir->edges.count; e++) leads[ir->edges.data[e].from] = true;
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || !op->def || !(op->def->flags & TFC_OP_UPDATE)) continue;
    const struct tfc_device_driver *driver = ir->devices[op->device]->driver;
    if (!takes_scales(driver) || !driver->has_kernel(op->def, TFC_FLOAT)) continue;
    uint32_t whole = 0;
    const uint32_t product = product_of(ir, &readers, op, &whole);
    if (product != TFC_NONE && !leads[product]) TFC_TRY(s, scale(ir, i, product, whole));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"scaled gradients", 62, true, scale_gradients}};
TFC_REWRITES(rows);
