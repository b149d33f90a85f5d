// Parameters and results of function bodies.
#include "runtime/ops/kernel.h"

// The function's caller feeds the value of a parameter; here, only _output_shapes says anything about its shape.
static tfc_status arg_shape(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "_output_shapes");
  if (a && a->kind == TFC_ATTR_LIST_SHAPE && a->count == 1) ctx->outputs[0] = a->shapes[0];
  return NULL;
}

static const struct tfc_op_def rows[] = {
    {.name = "_Arg",
     .role = TFC_ROLE_PARAMETER,
     .inputs = "",
     .outputs = "output: T",
     .attrs = "T: type, index: int >= 0",
     .flags = TFC_OP_PLACEHOLDER,
     .shape = arg_shape},
    {.name = "_DeviceArg",
     .inputs = "",
     .outputs = "output: T",
     .attrs = "T: type, index: int >= 0",
     .flags = TFC_OP_PLACEHOLDER,
     .shape = arg_shape},
    {.name = "_Retval",
     .role = TFC_ROLE_RESULT,
     .inputs = "input: T",
     .outputs = "",
     .attrs = "T: type, index: int >= 0"},
    {.name = "_DeviceRetval", .inputs = "input: T", .outputs = "", .attrs = "T: type, index: int >= 0"},
};
TFC_REGISTER_OPS(rows);
