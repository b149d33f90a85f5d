// SparseBincount and RaggedBincount: how often each number occurs in each row, or the sum of its weights.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/math_row.h"
#include "runtime/ops/sparse_common.h"

struct count {
  const struct tfc_tensor *values, *weights; // weights: as many, or none
  struct tfc_tensor *y;                      // [size] or [rows, size]
  int64_t size;
  bool binary;
};
#define ADD_ONE(t, ...)                                                                                                \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *y = (ops_##t *)c->y->data + at;                                                                           \
    if (c->binary)                                                                                                     \
      *y = OPS_PUT_##t(1);                                                                                             \
    else                                                                                                               \
      *y = OPS_PUT_##t(OPS_GET_##t(*y) +                                                                               \
                       (weighted ? OPS_GET_##t(((const ops_##t *)c->weights->data)[i]) : (ops_##t##_c)1));             \
    return NULL;                                                                                                       \
  }
static tfc_status count_one(const struct tfc_kernel_ctx *ctx, const struct count *c, int64_t row, int64_t i) {
  int64_t value = tfc_tensor_int(c->values, i), at = row * c->size + value;
  bool weighted = tfc_tensor_elements(c->weights) > 0;
  TFC_KERNEL_CHECK(value >= 0, "Input must be non-negative, got %lld", (long long)value);
  if (value >= c->size) return NULL;
  switch (c->y->dtype) {
    OPS_REALS(ADD_ONE, ~)
  default: return ops_unsupported_type(ctx, c->y->dtype);
  }
}
static tfc_status start(struct tfc_kernel_ctx *ctx, uint32_t values, int64_t rows, struct count *c) {
  const struct tfc_tensor *size = ctx->inputs[values + (ctx->input_count == 5 ? 2 : 1)];
  *c = (struct count){.values = ctx->inputs[values], .weights = ctx->inputs[ctx->input_count - 1]};
  TFC_KERNEL_CHECK(tfc_tensor_elements(size) == 1, "Shape must be rank 0: size");
  c->size = tfc_tensor_int(size, 0);
  c->binary = tfc_node_attr_bool(ctx->graph, ctx->node, "binary_output", false);
  TFC_KERNEL_CHECK(c->size >= 0, "size (%lld) must be non-negative", (long long)c->size);
  int64_t n = tfc_tensor_elements(c->weights);
  TFC_KERNEL_CHECK(n == 0 || n == tfc_tensor_elements(c->values),
                   "`weights` must be the same shape as `values` or a length-0 `Tensor`");
  struct tfc_shape shape = rows < 0 ? TFC_SHAPE(c->size) : TFC_SHAPE(rows, c->size);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, c->weights->dtype, &shape, &c->y));
  ops_fill_zero(c->y);
  return NULL;
}
// indices [n, 1 or 2], values [n], dense_shape
static tfc_status sparse_bincount(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct count c;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  TFC_KERNEL_CHECK(x.rank == 1 || x.rank == 2, "Input must have rank 1 or 2, it has %d", x.rank);
  TFC_RETURN_IF_ERROR(start(ctx, 1, x.rank == 2 ? x.dims[0] : -1, &c));
  for (int64_t i = 0; i < x.count; i++) TFC_RETURN_IF_ERROR(count_one(ctx, &c, x.rank == 2 ? x.at[2 * i] : 0, i));
  return NULL;
}
// splits [rows + 1], values [n]
static tfc_status ragged_bincount(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *splits = ctx->inputs[0];
  struct count c;
  int64_t rows = tfc_tensor_elements(splits) - 1, n = tfc_tensor_elements(ctx->inputs[1]);
  const int64_t *ends = splits->data;
  TFC_KERNEL_CHECK(splits->shape.rank == 1 && rows >= 0, "Splits must be a non-empty vector");
  TFC_KERNEL_CHECK(ends[0] == 0 && ends[rows] == n, "Splits must start with 0 and end with the number of values, %lld",
                   (long long)n);
  TFC_RETURN_IF_ERROR(start(ctx, 1, rows, &c));
  for (int64_t row = 0; row < rows; row++) {
    TFC_KERNEL_CHECK(ends[row + 1] >= ends[row] && ends[row + 1] <= n, "Splits must not fall");
    for (int64_t i = ends[row]; i < ends[row + 1]; i++) TFC_RETURN_IF_ERROR(count_one(ctx, &c, row, i));
  }
  return NULL;
}
static tfc_status shape_counts(struct tfc_shape_ctx *ctx, bool sparse) {
  int64_t size, rows = TFC_DIM_UNKNOWN;
  const struct tfc_shape *first = ctx->inputs[sparse ? 2 : 0];
  if (!ops_known_int(ctx, sparse ? 3 : 2, &size)) size = TFC_DIM_UNKNOWN;
  if (size < TFC_DIM_UNKNOWN) return tfc_status_make(TFC_INVALID_ARGUMENT, "size must be non-negative");
  if (!sparse && first->rank == 1 && first->dims[0] > 0) rows = first->dims[0] - 1;
  if (sparse && (first->rank != 1 || first->dims[0] < 0)) return NULL;
  if (sparse && first->dims[0] == 2) {
    struct tfc_shape dims = ops_described_shape(ctx, 2);
    if (dims.rank == 2) rows = dims.dims[0];
  }
  ctx->outputs[0] = sparse && first->dims[0] == 1 ? TFC_SHAPE(size) : TFC_SHAPE(rows, size);
  return NULL;
}
static tfc_status shape_sparse(struct tfc_shape_ctx *ctx) {
  return shape_counts(ctx, true);
}
static tfc_status shape_ragged(struct tfc_shape_ctx *ctx) {
  return shape_counts(ctx, false);
}

#define ROW                                                                                                            \
  .outputs = "output: T",                                                                                              \
  .attrs = "Tidx: {int32, int64}, T: {int32, int64, float, double}, binary_output: bool = false",                      \
  .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE
static const struct tfc_op_def sparse_count_rows[] = {
    {.name = "SparseBincount",
     .inputs = "indices: int64, values: Tidx, dense_shape: int64, size: Tidx, weights: T",
     ROW,
     .shape = shape_sparse,
     .kernel = sparse_bincount},
    {.name = "RaggedBincount",
     .inputs = "splits: int64, values: Tidx, size: Tidx, weights: T",
     ROW,
     .shape = shape_ragged,
     .kernel = ragged_bincount},
};
TFC_REGISTER_OPS(sparse_count_rows);
