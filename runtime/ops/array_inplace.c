// Empty, and the operations that overwrite rows of a tensor: InplaceUpdate, InplaceAdd, InplaceSub. They copy the
// input, unless nothing else reads it any more.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

static tfc_status empty(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 1, "shape must be a vector of int32, got shape %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  tfc_dtype dtype = tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_FLOAT);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, dtype, &shape, &y));
  ops_fill_zero(y); // also without `init`, so that nothing can depend on what the memory held before
  return NULL;
}

enum change { UPDATE, ADD, SUBTRACT };
#define CHANGE(t, ...)                                                                                                 \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *to = (ops_##t *)y->data + at;                                                                             \
    const ops_##t *from = (const ops_##t *)v->data + r * width;                                                        \
    for (int64_t k = 0; k < width; k++) {                                                                              \
      ops_##t##_u a = (ops_##t##_u)OPS_GET_##t(to[k]), b = (ops_##t##_u)OPS_GET_##t(from[k]);                          \
      to[k] = change == ADD ? OPS_PUT_##t(a + b) : OPS_PUT_##t(a - b);                                                 \
    }                                                                                                                  \
    break;                                                                                                             \
  }
// x [n, ...], i [k], v [k, ...]
static tfc_status change_rows(struct tfc_kernel_ctx *ctx, enum change change) {
  const struct tfc_tensor *x = ctx->inputs[0], *rows = ctx->inputs[1], *v = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  int64_t width = 1;
  TFC_KERNEL_CHECK(x->shape.rank >= 1 && v->shape.rank == x->shape.rank, "x and v should have the same rank >= 1");
  TFC_KERNEL_CHECK(rows->shape.rank == 1 && rows->shape.dims[0] == v->shape.dims[0],
                   "i must be a vector of as many rows as v has");
  for (int d = 1; d < x->shape.rank; d++) {
    TFC_KERNEL_CHECK(x->shape.dims[d] == v->shape.dims[d], "x and v should match in all dimensions but the first");
    width *= x->shape.dims[d];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (y->data != x->data) TFC_RETURN_IF_ERROR(ops_copy_elements(y, 0, x, 0, tfc_tensor_elements(x)));
  for (int64_t r = 0, n = x->shape.dims[0]; r < rows->shape.dims[0]; r++) {
    int64_t row = tfc_tensor_int(rows, r);
    TFC_KERNEL_CHECK(n > 0, "i[%lld] = %lld, x has no rows", (long long)r, (long long)row);
    row = (row % n + n) % n; // as in TensorFlow, an index out of range wraps around
    int64_t at = row * width;
    if (change == UPDATE) {
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, at, v, r * width, width));
      continue;
    }
    switch (y->dtype) {
      OPS_NUMBERS(CHANGE, ~)
    default: return ops_unsupported_type(ctx, y->dtype);
    }
  }
  return NULL;
}
static tfc_status update(struct tfc_kernel_ctx *ctx) {
  return change_rows(ctx, UPDATE);
}
static tfc_status add(struct tfc_kernel_ctx *ctx) {
  return change_rows(ctx, ADD);
}
static tfc_status subtract(struct tfc_kernel_ctx *ctx) {
  return change_rows(ctx, SUBTRACT);
}
static tfc_status shape_empty(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}

#define ROWS_ROW(run, list)                                                                                            \
  .inputs = "x: T, i: int32, v: T", .outputs = "y: T", .attrs = "T: type", .flags = TFC_OP_INPLACE_FIRST,              \
  .types = list, .host_inputs = 1 << 1, .shape = ops_shape_same, .cost = ops_cost_moved, .kernel = run,                \
  .samples = "float[4,3], int32[2]=[0,3], float[2,3]"
static const struct tfc_op_def array_inplace_rows[] = {
    {.name = "Empty",
     .inputs = "shape: int32",
     .outputs = "output: dtype",
     .attrs = "dtype: type, init: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .shape = shape_empty,
     .cost = ops_cost_moved,
     .kernel = empty},
    {.name = "InplaceUpdate", ROWS_ROW(update, 0), .host = {"T", TFC_INT32_BIT}},
    {.name = "InplaceAdd", ROWS_ROW(add, OPS_BITS(OPS_NUMBERS)), .host = {"T", TFC_INT32_BIT}},
    {.name = "InplaceSub", ROWS_ROW(subtract, OPS_BITS(OPS_NUMBERS)), .host = {"T", TFC_INT32_BIT}},
};
TFC_REGISTER_OPS(array_inplace_rows);
