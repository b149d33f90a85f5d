// Operations that pick rows by index and combine those of each segment (SparseSegmentSum, Mean, SqrtN, with and without
// the number of segments), and their gradients.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/segment_rows.h"

enum norm { NORM_NONE, NORM_MEAN, NORM_ROOT };

static double weight(enum norm norm, int64_t count) {
  return norm == NORM_NONE ? 1 : norm == NORM_MEAN ? (double)count : sqrt((double)count);
}

// 16-bit floats are summed in float32.
#define TO_FLOAT(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) out[i] = (float)OPS_GET_##t(((const ops_##t *)x)[i]);                              \
    break;
static void to_float(tfc_dtype t, const void *x, float *out, int64_t n) {
  switch (t) {
    OPS_FLOATS(TO_FLOAT, ~)
  default: break;
  }
}
#define FROM_FLOAT(t, ...)                                                                                             \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)out)[i] = OPS_PUT_##t(x[i]);                                           \
    break;
static void from_float(tfc_dtype t, const float *x, void *out, int64_t n) {
  switch (t) {
    OPS_FLOATS(FROM_FLOAT, ~)
  default: break;
  }
}

static tfc_status reduce(struct tfc_kernel_ctx *ctx, enum norm norm) {
  const struct tfc_tensor *x = ctx->inputs[0], *indices = ctx->inputs[1], *ids = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  bool narrow = x->dtype == TFC_HALF || x->dtype == TFC_BFLOAT16;
  ops_combine_fn *add = ops_combine_loop(OPS_COMBINE_SUM, narrow ? TFC_FLOAT : x->dtype);
  if (!add || tfc_dtype_is_complex(x->dtype)) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(indices->shape.rank == 1 && ids->shape.rank == 1 &&
                       tfc_tensor_elements(indices) == tfc_tensor_elements(ids),
                   "segment_ids and indices should be vectors of the same size.");
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "input must be at least rank 1");
  int64_t count = tfc_tensor_elements(ids), inner = 1, last = -1, segments = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t id = tfc_tensor_int(ids, i), at = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(id >= 0, "segment ids must be >= 0");
    TFC_KERNEL_CHECK(id >= last, "segment ids are not increasing");
    TFC_KERNEL_CHECK(at >= 0 && at < x->shape.dims[0], "Segment id %lld, index %lld out of range [0, %lld)",
                     (long long)id, (long long)at, (long long)x->shape.dims[0]);
    last = id;
  }
  segments = last + 1;
  if (ctx->input_count == 4) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[3]) == 1, "num_segments should be a scalar");
    segments = tfc_tensor_int(ctx->inputs[3], 0);
    TFC_KERNEL_CHECK(segments > last, "segment ids must be < num_segments");
  }
  struct tfc_shape shape = x->shape;
  shape.dims[0] = segments;
  for (int d = 1; d < shape.rank; d++) inner *= shape.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  memset(y->data, 0, y->size);
  if (narrow) TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)inner * 8 + 8, &held));
  size_t bytes = (size_t)inner * tfc_dtype_size(x->dtype);
  for (int64_t begin = 0, end; begin < count; begin = end) {
    int64_t id = tfc_tensor_int(ids, begin);
    char *row = (char *)y->data + (size_t)id * bytes;
    float *sum = held ? held->data : NULL, *one = sum ? sum + inner : NULL;
    if (narrow) memset(sum, 0, (size_t)inner * 4);
    for (end = begin; end < count && tfc_tensor_int(ids, end) == id; end++) {
      const char *from = (const char *)x->data + (size_t)tfc_tensor_int(indices, end) * bytes;
      if (narrow) to_float(x->dtype, from, one, inner);
      add(narrow ? (void *)sum : row, narrow ? (const void *)one : from, inner);
    }
    if (norm != NORM_NONE)
      ops_scale_rows(narrow ? TFC_FLOAT : x->dtype, narrow ? (void *)sum : row, inner, weight(norm, end - begin), true);
    if (narrow) from_float(x->dtype, sum, row, inner);
  }
  tfc_buffer_release(held);
  return s;
}
static tfc_status sparse_sum(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, NORM_NONE);
}
static tfc_status sparse_mean(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, NORM_MEAN);
}
static tfc_status sparse_sqrt_n(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, NORM_ROOT);
}

static tfc_status shape_reduce(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, v;
  int64_t n = TFC_DIM_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &v));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &v));
  if (x.rank < 0) return NULL;
  if (ctx->node->input_count == 4 && !ops_known_int(ctx, 3, &n)) n = TFC_DIM_UNKNOWN;
  x.dims[0] = n;
  ctx->outputs[0] = x;
  return NULL;
}

// --- Gradients' kernels ----------------------------------------------------------------------------------------------
static int compare_ints(const void *a, const void *b) {
  int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
  return (p > q) - (p < q);
}
// y[indices[i]] += grad[ids[i]] / the segment's divisor (1, n or √n). `compact`: y has only the rows that occur, in
// order of their indices.
static tfc_status spread(struct tfc_kernel_ctx *ctx, enum norm norm, bool compact) {
  const struct tfc_tensor *x = ctx->inputs[0], *indices = ctx->inputs[1], *ids = ctx->inputs[2];
  struct tfc_tensor *y = NULL, *unique = NULL;
  struct tfc_buffer *held = NULL, *sums = NULL;
  tfc_status s = NULL;
  if (!tfc_dtype_is_floating(x->dtype)) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(ctx->inputs[3]->shape.rank == 0, "output_dim0 should be a scalar.");
  int64_t rows = tfc_tensor_int(ctx->inputs[3], 0), count = tfc_tensor_elements(ids), inner = 1, kept = rows;
  TFC_KERNEL_CHECK(rows >= 0, "output_dim0 must be non-negative, is %lld", (long long)rows);
  TFC_KERNEL_CHECK(x->shape.rank >= 1 && indices->shape.rank == 1 && ids->shape.rank == 1 &&
                       tfc_tensor_elements(indices) == count,
                   "segment_ids and indices should be vectors of the same size.");
  int64_t segments = x->shape.dims[0];
  for (int d = 1; d < x->shape.rank; d++) inner *= x->shape.dims[d];
  bool wide = x->dtype == TFC_DOUBLE;
  size_t size = wide ? 8 : 4;
  TFC_TRY(s, tfc_kernel_scratch(ctx, ((size_t)segments + (size_t)count) * 8 + 8, &held));
  int64_t *members = held->data, *sorted = members + segments;
  memset(members, 0, (size_t)segments * 8);
  for (int64_t i = 0; i < count; i++) {
    int64_t id = tfc_tensor_int(ids, i), at = tfc_tensor_int(indices, i);
    if (id < 0 || id >= segments)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Segment id %lld out of range [0, %lld)", (long long)id, (long long)segments);
    if (rows && (at < 0 || at >= rows)) // if y has no rows, indices do not matter
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Index %lld out of range [0, %lld)", (long long)at, (long long)rows);
    members[id]++;
    sorted[i] = at;
  }
  if (compact) {
    qsort(sorted, (size_t)count, sizeof *sorted, compare_ints);
    kept = 0;
    for (int64_t i = 0; i < count && rows; i++)
      if (i == 0 || sorted[i] != sorted[i - 1]) sorted[kept++] = sorted[i];
    TFC_TRY(s, tfc_kernel_output(ctx, 1, indices->dtype, &TFC_SHAPE(kept), &unique));
    for (int64_t i = 0; i < kept; i++) {
      if (unique->dtype == TFC_INT64)
        ((int64_t *)unique->data)[i] = sorted[i];
      else
        ((int32_t *)unique->data)[i] = (int32_t)sorted[i];
    }
  }
  struct tfc_shape shape = x->shape;
  shape.dims[0] = kept;
  TFC_TRY(s, tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  if (kept == 0) goto out;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(kept * inner + inner) * size + 8, &sums));
  memset(sums->data, 0, (size_t)(kept * inner) * size);
  float *row = (float *)sums->data + kept * inner; // used for all types except float64
  for (int64_t i = 0; i < count; i++) {
    int64_t id = tfc_tensor_int(ids, i), at = tfc_tensor_int(indices, i);
    if (compact) at = (int64_t *)bsearch(&at, sorted, (size_t)kept, sizeof *sorted, compare_ints) - sorted;
    double scale = norm == NORM_NONE ? 1 : 1 / weight(norm, members[id]);
    if (wide) {
      const double *from = (const double *)x->data + id * inner;
      double *to = (double *)sums->data + at * inner;
      for (int64_t k = 0; k < inner; k++) to[k] += from[k] * scale;
    } else {
      float *to = (float *)sums->data + at * inner, factor = (float)scale;
      to_float(x->dtype, (const char *)x->data + (size_t)(id * inner) * tfc_dtype_size(x->dtype), row, inner);
      for (int64_t k = 0; k < inner; k++) to[k] += row[k] * factor;
    }
  }
  if (wide)
    memcpy(y->data, sums->data, y->size);
  else
    from_float(x->dtype, sums->data, y->data, kept * inner);
out:
  tfc_buffer_release(held);
  tfc_buffer_release(sums);
  return s;
}
static tfc_status spread_sum(struct tfc_kernel_ctx *ctx) {
  return spread(ctx, NORM_NONE, false);
}
static tfc_status spread_mean(struct tfc_kernel_ctx *ctx) {
  return spread(ctx, NORM_MEAN, false);
}
static tfc_status spread_sqrt_n(struct tfc_kernel_ctx *ctx) {
  return spread(ctx, NORM_ROOT, false);
}
static tfc_status spread_sum_v2(struct tfc_kernel_ctx *ctx) {
  return spread(ctx, NORM_NONE, true);
}
static tfc_status spread_mean_v2(struct tfc_kernel_ctx *ctx) {
  return spread(ctx, NORM_MEAN, true);
}
static tfc_status spread_sqrt_n_v2(struct tfc_kernel_ctx *ctx) {
  return spread(ctx, NORM_ROOT, true);
}
static tfc_status shape_spread(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  int64_t n = TFC_DIM_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 0, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  if (ctx->node->output_count == 2) ctx->outputs[1] = tfc_shape_unknown_of_rank(1);
  if (x.rank < 0) return NULL;
  if (ctx->node->output_count == 2 || !ops_known_int(ctx, 3, &n)) n = TFC_DIM_UNKNOWN;
  x.dims[0] = n;
  ctx->outputs[0] = x;
  return NULL;
}

// --- Gradients -----------------------------------------------------------------------------------------------------
static tfc_status sparse_gradient(struct tfc_grad_ctx *g, const char *op, const char *op_v2) {
  bool rows = grad_attr_bool(g, "sparse_gradient", false);
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32);
  struct tfc_output in[4] = {G, grad_in(g, 1), grad_in(g, 2), grad_item(g, shape, 0)};
  struct tfc_output out = tfc_add(g->builder, rows ? op_v2 : op, "", in, 4, NULL, 0);
  if (rows)
    grad_set_indexed(g, 0, out, (struct tfc_output){out.node, 1}, shape);
  else
    g->grad_inputs[0] = out;
  return NULL;
}
OPS_GRADIENT(Sum) {
  return sparse_gradient(g, "SparseSegmentSumGrad", "SparseSegmentSumGradV2");
}
OPS_GRADIENT(Mean) {
  return sparse_gradient(g, "SparseSegmentMeanGrad", "SparseSegmentMeanGradV2");
}
OPS_GRADIENT(SqrtN) {
  return sparse_gradient(g, "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2");
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define REDUCE(run, grad)                                                                                              \
  .shape = shape_reduce, .cost = ops_cost_moved, .kernel = run, .gradient = gradient_##grad,                           \
  .samples = "float[4,3], int32[3]=[0,3,1], int32[3]=[0,0,2]"
#define REDUCE_NUM(run, grad)                                                                                          \
  .host_inputs = 8, .shape = shape_reduce, .cost = ops_cost_moved, .kernel = run, .gradient = gradient_##grad,         \
  .samples = "float[4,3], int32[3]=[0,3,1], int32[3]=[0,0,2], int32[]=4"
#define SPREAD(run)                                                                                                    \
  .host_inputs = 8, .shape = shape_spread, .cost = ops_cost_moved, .kernel = run,                                      \
  .samples = "float[3,2], int32[3]=[0,3,1], int32[3]=[0,0,2], int32[]=4"
static const struct tfc_op_def segment_sparse_rows[] = {
    {.name = "SparseSegmentSum",
     .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_REAL
              ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false",
     REDUCE(sparse_sum, Sum),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "SparseSegmentMean",
     .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT
              ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false",
     REDUCE(sparse_mean, Mean)},
    {.name = "SparseSegmentSqrtN",
     .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT
              ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false",
     REDUCE(sparse_sqrt_n, SqrtN)},
    {.name = "SparseSegmentSumWithNumSegments",
     .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_REAL ", Tidx: {int32, int64} = int32, Tnumsegments: {int32, int64} = int32, Tsegmentids: "
              "{int32, int64} = int32, sparse_gradient: bool = false",
     REDUCE_NUM(sparse_sum, Sum),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "SparseSegmentMeanWithNumSegments",
     .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tnumsegments: {int32, int64} = int32, "
              "Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false",
     REDUCE_NUM(sparse_mean, Mean)},
    {.name = "SparseSegmentSqrtNWithNumSegments",
     .inputs = "data: T, indices: Tidx, segment_ids: Tsegmentids, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tnumsegments: {int32, int64} = int32, "
              "Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false",
     REDUCE_NUM(sparse_sqrt_n, SqrtN)},
    {.name = "SparseSegmentSumGrad",
     .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32",
     SPREAD(spread_sum)},
    {.name = "SparseSegmentMeanGrad",
     .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32",
     SPREAD(spread_mean)},
    {.name = "SparseSegmentSqrtNGrad",
     .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32",
     SPREAD(spread_sqrt_n)},
    {.name = "SparseSegmentSumGradV2",
     .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",
     .outputs = "output: T, sorted_unique_indices: Tidx",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32",
     SPREAD(spread_sum_v2)},
    {.name = "SparseSegmentMeanGradV2",
     .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",
     .outputs = "output: T, sorted_unique_indices: Tidx",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32",
     SPREAD(spread_mean_v2)},
    {.name = "SparseSegmentSqrtNGradV2",
     .inputs = "grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32",
     .outputs = "output: T, sorted_unique_indices: Tidx",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32",
     SPREAD(spread_sqrt_n_v2)},
};
TFC_REGISTER_OPS(segment_sparse_rows);
