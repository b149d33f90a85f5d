// A leaky rectifier, whose slope is an attribute, becomes an element-wise operation on two operands, the second of
// which is a constant: x > 0 ? x : x * slope. So it can be a step of a chain (chains.c), and with that a part of the
// convolution or product that makes x (finishes.c). The results are bit-identical: the loop rounds as the kernel does.
#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/ops/kernel.h"
#include "runtime/ops/nn_leaky.h"

enum { GRAIN = 32768 };

struct work {
  const struct tfc_tensor *x, *slope;
  float *y;
};
static void run_range(void *arg, int64_t begin, int64_t end) {
  const struct work *w = arg;
  tfc_leaky_relu_loops.binary[TFC_FLOAT]((const float *)w->x->data + begin, 1, w->slope->data, 0, w->y + begin,
                                         end - begin);
}

// Runs where no chain takes the operation.
static tfc_status run(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[0], &y));
  struct work w = {ctx->inputs[0], ctx->inputs[1], y->data};
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(y), GRAIN, run_range, &w);
  return NULL;
}

static const struct tfc_op_def leaky_def = {.name = "_LeakyRelu",
                                            .inputs = "features: float, slope: float",
                                            .outputs = "activations: float",
                                            .attrs = "",
                                            .flags = TFC_OP_INPLACE,
                                            .kernel = run,
                                            .elementwise = &tfc_leaky_relu_loops};

static bool is_leaky(const struct tfc_ir_op *op) {
  return !op->dead && !op->joint && !op->prepared && op->def && op->def->plan_trait == TFC_PLAN_RECTIFY_LEAKY;
}

static bool fits(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  if (!is_leaky(op) || !ir->devices[op->device]->driver->host_kernels) return false;
  if (op->input_count != 1 || op->output_count != 1 || op->outputs[0] == TFC_NONE) return false;
  const struct tfc_ir_value *y = &ir->values.data[op->outputs[0]];
  return y->dtype == TFC_FLOAT && y->planned && y->alias == TFC_NONE && tfc_shape_is_static(&y->shape);
}

static tfc_status give_operands(struct tfc_ir *ir) {
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    if (!fits(ir, &ir->ops.data[i])) continue;
    const uint32_t node = ir->ops.data[i].node;
    struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2);
    void *slope;
    if (!inputs) return tfc_status_no_memory("planning a step");
    inputs[0] = ir->ops.data[i].inputs[0];
    inputs[1] = (struct tfc_ir_input){.variable = TFC_NONE};
    TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &(struct tfc_ir_tensor){{node, 0}, TFC_FLOAT, TFC_SHAPE_SCALAR}, &slope,
                                            &inputs[1].value));
    *(float *)slope = (float)tfc_node_attr_float(ir->graph, &ir->graph->nodes[node], "alpha", 0.2);
    struct tfc_ir_op *op = &ir->ops.data[i];
    op->def = &leaky_def;
    op->inputs = inputs, op->input_count = 2;
  }
  return NULL;
}

static const struct tfc_rewrite rows[] = {{"leaky rectifiers", 42, true, give_operands}};
TFC_REWRITES(rows);
