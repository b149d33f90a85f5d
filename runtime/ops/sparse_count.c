// Operations that count how often each number occurs in each row, or sum its weights: SparseBincount and RaggedBincount
// give a dense tensor, DenseCountSparseOutput and similar ops give a sparse one.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/sparse_common.h"

struct count {
  const struct tfc_tensor *values, *weights; // weights: as many as values, or none
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
  TFC_KERNEL_CHECK(size->shape.rank == 0, "Shape must be rank 0: size");
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
// Inputs: indices [n, 1 or 2], values [n], dense_shape.
static tfc_status sparse_bincount(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct count c;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  TFC_KERNEL_CHECK(x.rank == 1 || x.rank == 2, "Input must have rank 1 or 2, it has %d", x.rank);
  TFC_RETURN_IF_ERROR(start(ctx, 1, x.rank == 2 ? x.dims[0] : -1, &c));
  for (int64_t i = 0; i < x.count; i++) TFC_RETURN_IF_ERROR(count_one(ctx, &c, x.rank == 2 ? x.at[2 * i] : 0, i));
  return NULL;
}
// Inputs: splits [rows + 1], values [n].
static tfc_status ragged_bincount(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *splits = ctx->inputs[0];
  struct count c;
  int64_t rows = tfc_tensor_elements(splits) - 1, n = tfc_tensor_elements(ctx->inputs[1]);
  const int64_t *ends = splits->data;
  TFC_KERNEL_CHECK(splits->shape.rank == 1 && rows >= 0, "Splits must be a non-empty vector");
  TFC_KERNEL_CHECK(ends[0] == 0 && ends[rows] == n, "Splits must start with 0 and end with the number of values, %lld",
                   (long long)n);
  TFC_RETURN_IF_ERROR(start(ctx, 1, rows, &c));
  for (int64_t row = 0, i = 0; row < rows; row++) // a row whose end is before that of the last row is empty
    for (; i < ends[row + 1] && i < n; i++) TFC_RETURN_IF_ERROR(count_one(ctx, &c, row, i));
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

// --- Sparse results --------------------------------------------------------------------------------------------------
struct seen {
  int64_t row, value, at; // at: the element's position in values
};
static int by_row(const void *a, const void *b) {
  const struct seen *x = a, *y = b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}
#define ADD_SEEN(t, ...)                                                                                               \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *to = (ops_##t *)y->data + k;                                                                              \
    const ops_##t##_c had = first ? 0 : OPS_GET_##t(*to);                                                              \
    const ops_##t##_c more = weights ? OPS_GET_##t(((const ops_##t *)weights->data)[at]) : (ops_##t##_c)1;             \
    *to = OPS_PUT_##t(binary ? (ops_##t##_c)1 : had + more);                                                           \
    break;                                                                                                             \
  }
static void add_seen(struct tfc_tensor *y, int64_t k, bool first, bool binary, const struct tfc_tensor *weights,
                     int64_t at) {
  switch (y->dtype) {
    OPS_REALS(ADD_SEEN, ~)
  default: break;
  }
}
// `seen` [n] holds the values and their rows; values from maxlength on are not counted. rows < 0: the result is a
// vector.
static tfc_status sparse_counts(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *weights, int64_t rows,
                                struct seen *seen, int64_t n) {
  const int64_t least = tfc_node_attr_int(ctx->graph, ctx->node, "minlength", -1);
  const int64_t most = tfc_node_attr_int(ctx->graph, ctx->node, "maxlength", -1);
  const bool binary = tfc_node_attr_bool(ctx->graph, ctx->node, "binary_output", false), weighted = !binary;
  int64_t *at = NULL, count = 0, distinct = 0, largest = 0;
  struct tfc_tensor *y = NULL;
  for (int64_t i = 0; i < n; i++) {
    if (most >= 0 && seen[i].value >= most) continue;
    if (seen[i].value > largest) largest = seen[i].value;
    seen[count++] = seen[i];
  }
  qsort(seen, (size_t)count, sizeof *seen, by_row);
  for (int64_t i = 0; i < count; i++)
    distinct += i == 0 || seen[i].row != seen[i - 1].row || seen[i].value != seen[i - 1].value;
  const int rank = rows < 0 ? 1 : 2;
  const int64_t size = most >= 0 ? most : largest + 1 > least ? largest + 1 : least;
  TFC_RETURN_IF_ERROR(
      ops_sparse_output(ctx, 0, distinct, rank, ctx->graph->output_dtypes[ctx->node->output_begin + 1], &at, &y));
  for (int64_t i = 0, k = -1; i < count; i++) {
    const bool first = i == 0 || seen[i].row != seen[i - 1].row || seen[i].value != seen[i - 1].value;
    k += first;
    if (first && rank == 2) at[2 * k] = seen[i].row;
    at[rank * k + rank - 1] = seen[i].value;
    add_seen(y, k, first, binary, weighted && tfc_tensor_elements(weights) > 0 ? weights : NULL, seen[i].at);
  }
  return ops_sparse_shape_output(ctx, 2, rank == 1 ? &size : (const int64_t[]){rows, size}, rank);
}
static tfc_status check_weights(const struct tfc_tensor *weights, const struct tfc_tensor *values) {
  TFC_KERNEL_CHECK(tfc_tensor_elements(weights) == 0 || tfc_shape_equal(&weights->shape, &values->shape),
                   "Weights and values must have the same shape. Weight shape: %s; values shape: %s",
                   tfc_shape_show(&weights->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}
// Lists the elements of `values`; the caller fills in their rows and frees the list.
static tfc_status see(const struct tfc_tensor *values, struct seen **out) {
  int64_t n = tfc_tensor_elements(values);
  for (int64_t i = 0; i < n; i++)
    TFC_KERNEL_CHECK(tfc_tensor_int(values, i) >= 0, "Input values must all be non-negative");
  struct seen *seen = calloc((size_t)n + 1, sizeof *seen);
  if (!seen) return tfc_status_no_memory(NULL);
  for (int64_t i = 0; i < n; i++) seen[i] = (struct seen){0, tfc_tensor_int(values, i), i};
  *out = seen;
  return NULL;
}
// Inputs: values [n] or [rows, n], weights.
static tfc_status dense_count(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *values = ctx->inputs[0];
  struct seen *seen = NULL;
  int rank = values->shape.rank;
  TFC_KERNEL_CHECK(rank == 1 || rank == 2, "Input must be a 1 or 2-dimensional tensor. Got: %s",
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(rank == 1 || values->shape.dims[0] > 0, "Invalid input: Shapes dimension cannot be 0.");
  TFC_RETURN_IF_ERROR(check_weights(ctx->inputs[1], values));
  TFC_RETURN_IF_ERROR(see(values, &seen));
  int64_t n = tfc_tensor_elements(values);
  for (int64_t i = 0; rank == 2 && i < n; i++) seen[i].row = i / values->shape.dims[1];
  tfc_status s = sparse_counts(ctx, ctx->inputs[1], rank == 1 ? -1 : values->shape.dims[0], seen, n);
  free(seen);
  return s;
}
// Inputs: indices [n, 1 or 2], values [n], dense_shape, weights.
static tfc_status sparse_count(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct seen *seen = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  TFC_KERNEL_CHECK(x.rank == 1 || x.rank == 2, "Input must have rank 1 or 2, it has %d", x.rank);
  TFC_RETURN_IF_ERROR(check_weights(ctx->inputs[3], ctx->inputs[1]));
  TFC_RETURN_IF_ERROR(see(ctx->inputs[1], &seen));
  for (int64_t i = 0; x.rank == 2 && i < x.count; i++) seen[i].row = x.at[2 * i];
  tfc_status s = sparse_counts(ctx, ctx->inputs[3], x.rank == 1 ? -1 : x.dims[0], seen, x.count);
  free(seen);
  return s;
}
// Inputs: splits [rows + 1], values [n], weights.
static tfc_status ragged_count(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *splits = ctx->inputs[0], *values = ctx->inputs[1];
  struct seen *seen = NULL;
  const int64_t *ends = splits->data, rows = tfc_tensor_elements(splits) - 1, n = tfc_tensor_elements(values);
  TFC_KERNEL_CHECK(rows >= 1, "Must provide at least 2 elements for the splits argument");
  TFC_KERNEL_CHECK(ends[0] == 0 && ends[rows] == n, "Splits must start with 0 and end with the number of values, %lld",
                   (long long)n);
  TFC_RETURN_IF_ERROR(check_weights(ctx->inputs[2], values));
  TFC_RETURN_IF_ERROR(see(values, &seen));
  for (int64_t row = 0, i = 0; row < rows; row++) // a row whose end is before that of the last row is empty
    for (; i < ends[row + 1] && i < n; i++) seen[i].row = row;
  tfc_status s = sparse_counts(ctx, ctx->inputs[2], rows, seen, n);
  free(seen);
  return s;
}
static tfc_status shape_sparse_counts(struct tfc_shape_ctx *ctx) {
  // The rank is that of the values or, for a sparse input, the length of its shape; ragged rows have rank 2.
  const bool sparse = ctx->node->input_count == 4, ragged = ctx->node->input_count == 3;
  int64_t rank = ragged                      ? 2
                 : !sparse                   ? (ctx->inputs[0]->rank >= 0 ? ctx->inputs[0]->rank : TFC_DIM_UNKNOWN)
                 : ctx->inputs[2]->rank == 1 ? ctx->inputs[2]->dims[0]
                                             : TFC_DIM_UNKNOWN;
  if (sparse && ctx->inputs[0]->rank == 2) TFC_RETURN_IF_ERROR(tfc_dim_merge(rank, ctx->inputs[0]->dims[1], &rank));
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, rank);
  ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[2] = TFC_SHAPE(rank);
  return NULL;
}

#define COUNTS                                                                                                         \
  .outputs = "output_indices: int64, output_values: output_type, output_dense_shape: int64",                           \
  .attrs = "T: {int32, int64}, minlength: int >= -1 = -1, maxlength: int >= -1 = -1, binary_output: bool, "            \
           "output_type: {int32, int64, float, double}",                                                               \
  .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = shape_sparse_counts
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
    {.name = "DenseCountSparseOutput",
     .inputs = "values: T, weights: output_type",
     COUNTS,
     .kernel = dense_count,
     .samples = "int32[2,4]=[1,0,3,1,2,2,5,0], float[2,4] {binary_output=false}"},
    {.name = "SparseCountSparseOutput",
     .inputs = "indices: int64, values: T, dense_shape: int64, weights: output_type",
     COUNTS,
     .kernel = sparse_count},
    {.name = "RaggedCountSparseOutput",
     .inputs = "splits: int64, values: T, weights: output_type",
     COUNTS,
     .kernel = ragged_count},
};
TFC_REGISTER_OPS(sparse_count_rows);
