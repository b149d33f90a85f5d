// Operations on ragged tensors: RaggedTensorToTensor, RaggedTensorToSparse, RaggedRange, RaggedGather. A ragged tensor
// consists of values and, for each ragged dimension, either where its rows begin (row_splits) or to which row each
// value belongs (value_rowids).
#include <math.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/sparse_common.h"
#include "runtime/ops/sparse_gradient.h"

static void put_int(struct tfc_tensor *t, int64_t i, int64_t v) {
  if (t->dtype == TFC_INT64)
    ((int64_t *)t->data)[i] = v;
  else
    ((int32_t *)t->data)[i] = (int32_t)v;
}
static tfc_status check_splits(const struct tfc_tensor *splits, int64_t count) {
  TFC_KERNEL_CHECK(splits->shape.rank == 1 && splits->shape.dims[0] >= 1,
                   "row splits must be a vector with an element");
  int64_t n = splits->shape.dims[0];
  TFC_KERNEL_CHECK(tfc_tensor_int(splits, 0) == 0, "First value of ragged splits must be 0.");
  for (int64_t i = 1; i < n; i++)
    TFC_KERNEL_CHECK(tfc_tensor_int(splits, i) >= tfc_tensor_int(splits, i - 1),
                     "Ragged splits must be non decreasing");
  TFC_KERNEL_CHECK(count < 0 || tfc_tensor_int(splits, n - 1) == count,
                   "Final value of ragged splits must match the length the corresponding ragged array: %lld, not %lld",
                   (long long)tfc_tensor_int(splits, n - 1), (long long)count);
  return NULL;
}

// --- RaggedTensorToTensor --------------------------------------------------------------------------------------------
enum { MOST_PARTITIONS = TFC_MAX_RANK };
// place[r] is the place of row r of one level in the dense tensor. Computes the places of the row's parts in next[]:
// the place of the row times `size`, plus the part's position in the row; -1 if the part is cut off. *most becomes the
// length of the longest row if that is greater.
static tfc_status descend(const struct tfc_tensor *part, bool splits, int64_t size, const int64_t *place, int64_t rows,
                          int64_t *next, int64_t *most) {
  int64_t n = part->shape.dims[0], k = 0;
  if (splits) {
    for (int64_t r = 0; r + 1 < n; r++) {
      int64_t begin = tfc_tensor_int(part, r), end = tfc_tensor_int(part, r + 1);
      if (end - begin > *most) *most = end - begin;
      for (int64_t j = begin; next && j < end; j++)
        next[j] = r < rows && place[r] >= 0 && j - begin < size ? place[r] * size + j - begin : -1;
    }
    return NULL;
  }
  for (int64_t j = 0; j < n; j++) {
    int64_t row = tfc_tensor_int(part, j);
    TFC_KERNEL_CHECK(row >= 0 && (j == 0 || row >= tfc_tensor_int(part, j - 1)),
                     "row ids must be ascending and not negative");
    k = j > 0 && row == tfc_tensor_int(part, j - 1) ? k + 1 : 0;
    if (k + 1 > *most) *most = k + 1;
    if (!next) continue;
    TFC_KERNEL_CHECK(row < rows, "row id %lld is not below the number of rows, %lld", (long long)row, (long long)rows);
    next[j] = place[row] >= 0 && k < size ? place[row] * size + k : -1;
  }
  return NULL;
}

static tfc_status to_tensor(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *wanted = ctx->inputs[0], *values = ctx->inputs[1], *otherwise = ctx->inputs[2];
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "row_partition_types");
  uint32_t parts = ctx->input_count - 3, first = 0;
  bool splits[MOST_PARTITIONS + 1] = {0};
  struct tfc_shape shape = {.rank = 0};
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(types && types->count == parts && parts <= MOST_PARTITIONS,
                   "row_partition_types must name all %u row partitions (at most %d)", parts, MOST_PARTITIONS);
  for (uint32_t p = 0; p < parts; p++) {
    const struct tfc_tensor *t = ctx->inputs[3 + p];
    tfc_str type = types->strings[p];
    if (p == 0 && tfc_str_is(type, "FIRST_DIM_SIZE")) {
      TFC_KERNEL_CHECK(t->shape.rank == 0, "FIRST_DIM_SIZE must be a scalar.");
      TFC_KERNEL_CHECK(parts > 1, "FIRST_DIM_SIZE needs row partitions behind it");
      first = 1;
      continue;
    }
    TFC_KERNEL_CHECK(t->shape.rank == 1, "Row partition must be a vector.");
    splits[p] = tfc_str_is(type, "ROW_SPLITS");
    TFC_KERNEL_CHECK(splits[p] || (p > 0 && tfc_str_is(type, "VALUE_ROWIDS")), "Unsupported row partition type %.*s",
                     TFC_STR_ARG(type));
    if (splits[p]) TFC_RETURN_IF_ERROR(check_splits(t, -1));
  }
  TFC_KERNEL_CHECK(values->shape.rank >= 1, "values must be at least a vector");
  int ragged = (int)(parts - first), rank = ragged + values->shape.rank;
  TFC_KERNEL_CHECK(rank <= TFC_MAX_RANK, "%d dimensions are more than %d", rank, TFC_MAX_RANK);
  int64_t rows = first ? tfc_tensor_int(ctx->inputs[3], 0) : ctx->inputs[3]->shape.dims[0] - 1;
  TFC_KERNEL_CHECK(rows >= 0, "the number of rows is %lld", (long long)rows);
  bool any = wanted->shape.rank == 0; // a scalar -1 means any shape
  TFC_KERNEL_CHECK(!any || tfc_tensor_int(wanted, 0) == -1, "if shape is a scalar, it must be -1");
  TFC_KERNEL_CHECK(any || wanted->shape.rank == 1, "shape must be a scalar or a vector");
  TFC_KERNEL_CHECK(any || wanted->shape.dims[0] == rank, "shape has %lld dimensions, the tensor has %d",
                   (long long)wanted->shape.dims[0], rank);
  for (int d = 0; d < rank; d++) {
    int64_t n = any ? -1 : tfc_tensor_int(wanted, d), have = d == 0 ? rows : 0;
    TFC_KERNEL_CHECK(n >= -1, "shape[%d] is %lld", d, (long long)n);
    if (d > ragged) {
      have = values->shape.dims[d - ragged];
      TFC_KERNEL_CHECK(n < 0 || n == have, "shape[%d] is %lld, the values have %lld", d, (long long)n, (long long)have);
    } else if (d > 0 && n < 0) {
      TFC_RETURN_IF_ERROR(
          descend(ctx->inputs[3 + first + (uint32_t)d - 1], splits[first + (uint32_t)d - 1], 0, NULL, 0, NULL, &have));
    }
    shape.dims[shape.rank++] = n < 0 ? have : n;
  }
  struct tfc_shape inner = values->shape, all;
  memmove(inner.dims, inner.dims + 1, (size_t)(inner.rank - 1) * sizeof *inner.dims);
  inner.rank--;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&inner, &otherwise->shape, &all));
  TFC_KERNEL_CHECK(tfc_shape_equal(&inner, &all), "default_value of shape %s does not fit values of shape %s",
                   tfc_shape_show(&otherwise->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, values->dtype, &shape, &y));
  int64_t width = tfc_shape_elements(&inner), total = tfc_tensor_elements(y), most = rows;
  for (uint32_t p = first; p < parts; p++) {
    const struct tfc_tensor *t = ctx->inputs[3 + p];
    int64_t n = splits[p] ? tfc_tensor_int(t, t->shape.dims[0] - 1) : t->shape.dims[0];
    if (n > most) most = n;
  }
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(2 * most + 2) * sizeof(int64_t), &held));
  int64_t *place = held->data, *next = place + most + 1, count = rows, ignored = 0;
  if (otherwise->shape.rank == 0 && total) {
    TFC_TRY(s, ops_fill_with(y, 0, total, otherwise, 0));
  } else if (total) { // the default value is broadcast to the inner shape
    int64_t n = tfc_tensor_elements(otherwise);
    struct tfc_shape b = otherwise->shape;
    for (int64_t at = 0; at < total; at++) {
      int64_t i = at % width, from = 0, step = 1;
      for (int d = inner.rank - 1; d >= 0; d--) {
        int e = d - (inner.rank - b.rank);
        int64_t x = i % inner.dims[d];
        i /= inner.dims[d];
        if (e < 0) continue;
        if (b.dims[e] != 1) from += x * step;
        step *= b.dims[e];
      }
      if (n) TFC_TRY(s, ops_copy_elements(y, at, otherwise, from, 1));
    }
  }
  for (int64_t r = 0; r < rows; r++) place[r] = r < shape.dims[0] ? r : -1;
  for (uint32_t p = first; p < parts; p++) {
    const struct tfc_tensor *t = ctx->inputs[3 + p];
    if (splits[p] && t->shape.dims[0] - 1 != count)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "row splits %u are for %lld rows, there are %lld", p,
               (long long)t->shape.dims[0] - 1, (long long)count);
    TFC_TRY(s, descend(t, splits[p], shape.dims[p - first + 1], place, count, next, &ignored));
    count = splits[p] ? tfc_tensor_int(t, t->shape.dims[0] - 1) : t->shape.dims[0];
    int64_t *swap = place;
    place = next, next = swap;
  }
  if (count != values->shape.dims[0])
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the row partitions are of %lld values, there are %lld", (long long)count,
             (long long)values->shape.dims[0]);
  for (int64_t j = 0; j < count && width; j++)
    if (place[j] >= 0) TFC_TRY(s, ops_copy_elements(y, place[j] * width, values, j * width, width));
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_to_tensor(struct tfc_shape_ctx *ctx) {
  struct tfc_shape wanted = ops_described_shape(ctx, 0), values = *ctx->inputs[1];
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "row_partition_types");
  int parts = (int)ctx->node->input_count - 3;
  ctx->outputs[0] = (struct tfc_shape){.rank = -1};
  if (!types || types->count != (uint32_t)parts || parts < 1) return NULL;
  int ragged = parts - tfc_str_is(types->strings[0], "FIRST_DIM_SIZE");
  struct tfc_shape out = {.rank = -1};
  if (values.rank >= 1 && ragged + values.rank <= TFC_MAX_RANK) {
    out = tfc_shape_unknown_of_rank(ragged + values.rank);
    for (int d = 1; d < values.rank; d++) out.dims[ragged + d] = values.dims[d];
  }
  if (ctx->inputs[0]->rank == 1 && wanted.rank >= 0) {
    if (out.rank < 0) out = tfc_shape_unknown_of_rank(wanted.rank);
    for (int d = 0; d < out.rank && d < wanted.rank; d++)
      if (wanted.dims[d] >= 0) out.dims[d] = wanted.dims[d];
  }
  ctx->outputs[0] = out;
  return NULL;
}

// --- RaggedTensorToSparse --------------------------------------------------------------------------------------------
static tfc_status to_sparse(struct tfc_kernel_ctx *ctx) {
  int ragged = (int)ctx->input_count - 1;
  const struct tfc_tensor *values = ctx->inputs[ragged];
  int rank = ragged + values->shape.rank;
  TFC_KERNEL_CHECK(values->shape.rank >= 1 && rank <= TFC_MAX_RANK,
                   "values of %d dimensions in %d ragged ones: not possible", values->shape.rank, ragged);
  int64_t dims[TFC_MAX_RANK] = {0}, width = 1, *at = NULL;
  struct tfc_tensor *y = NULL;
  for (int d = 0; d < ragged; d++)
    TFC_KERNEL_CHECK(ctx->inputs[d]->shape.rank == 1, "row splits must be a vector with an element");
  for (int d = 0; d < ragged; d++) {
    const struct tfc_tensor *t = ctx->inputs[d];
    TFC_RETURN_IF_ERROR(
        check_splits(t, d + 1 < ragged ? ctx->inputs[d + 1]->shape.dims[0] - 1 : values->shape.dims[0]));
    if (d == 0) dims[0] = t->shape.dims[0] - 1;
    for (int64_t r = 1; r < t->shape.dims[0]; r++) {
      int64_t n = tfc_tensor_int(t, r) - tfc_tensor_int(t, r - 1);
      if (n > dims[d + 1]) dims[d + 1] = n;
    }
  }
  for (int d = 1; d < values->shape.rank; d++) width *= dims[ragged + d] = values->shape.dims[d];
  int64_t rows = values->shape.dims[0], next[TFC_MAX_RANK] = {0};
  TFC_RETURN_IF_ERROR(ops_sparse_output(ctx, 0, rows * width, rank, values->dtype, &at, &y));
  TFC_RETURN_IF_ERROR(ops_sparse_shape_output(ctx, 2, dims, rank));
  for (int64_t j = 0; j < rows; j++) {
    int64_t index[TFC_MAX_RANK], child = j;
    for (int d = ragged - 1; d >= 0; d--) { // find the row of this level that contains the child
      while (tfc_tensor_int(ctx->inputs[d], next[d] + 1) <= child) next[d]++;
      index[d + 1] = child - tfc_tensor_int(ctx->inputs[d], next[d]);
      child = next[d];
    }
    index[0] = child;
    for (int64_t k = 0; k < width; k++) {
      int64_t rest = k, *to = at + (j * width + k) * rank;
      memcpy(to, index, (size_t)(ragged + 1) * sizeof *to);
      for (int d = rank - 1; d > ragged; d--) {
        to[d] = rest % dims[d];
        rest /= dims[d];
      }
    }
  }
  return ops_copy_elements(y, 0, values, 0, rows * width);
}
static tfc_status shape_to_sparse(struct tfc_shape_ctx *ctx) {
  uint32_t ragged = ctx->node->input_count - 1;
  const struct tfc_shape *values = ctx->inputs[ragged];
  int64_t rank = values->rank < 0 ? TFC_DIM_UNKNOWN : (int64_t)ragged + values->rank;
  int64_t elements = tfc_shape_elements(values); // the sparse tensor has one entry for each value
  if (elements < 0) elements = values->rank == 1 ? values->dims[0] : TFC_DIM_UNKNOWN;
  ctx->outputs[0] = TFC_SHAPE(elements, rank);
  ctx->outputs[1] = TFC_SHAPE(elements);
  ctx->outputs[2] = TFC_SHAPE(rank);
  return NULL;
}

// --- RaggedRange -----------------------------------------------------------------------------------------------------
#define WHOLE_SIZE(t)                                                                                                  \
  ((delta > 0) != (limit > start) || limit == start                                                                    \
       ? 0                                                                                                             \
       : (double)((delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit) - 1) /           \
                 (double)(delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta) +                                         \
             1)
#define REAL_SIZE(t)                                                                                                   \
  ((delta > 0 && start > limit) || (delta < 0 && start < limit) ? 0 : ceil(fabs((double)((limit - start) / delta))))
#define SIZE_f32 REAL_SIZE
#define SIZE_f64 REAL_SIZE
#define SIZE_i32 WHOLE_SIZE
#define SIZE_i64 WHOLE_SIZE
#define RANGE(t, ...)                                                                                                  \
  case OPS_DT_##t: {                                                                                                   \
    const ops_##t *a = ctx->inputs[0]->data, *b = ctx->inputs[1]->data, *c = ctx->inputs[2]->data;                     \
    int64_t n = 0;                                                                                                     \
    for (int fill = 0; fill < 2; fill++) {                                                                             \
      for (int64_t r = 0, k = 0; r < rows; r++) {                                                                      \
        ops_##t start = a[r * step[0]], limit = b[r * step[1]], delta = c[r * step[2]];                                \
        TFC_KERNEL_CHECK(delta != 0, "Requires delta != 0");                                                           \
        double size = SIZE_##t(t);                                                                                     \
        TFC_KERNEL_CHECK(size >= 0 && (double)n + size < (splits->dtype == TFC_INT32 ? 2147483647.0 : 1e15),           \
                         "Requires ((limit - start) / delta) to be small, row %lld is too long", (long long)r);        \
        if (!fill) {                                                                                                   \
          n += (int64_t)size;                                                                                          \
          put_int(splits, r + 1, n);                                                                                   \
          continue;                                                                                                    \
        }                                                                                                              \
        ops_##t##_u v = (ops_##t##_u)start;                                                                            \
        for (int64_t i = 0; i < (int64_t)size; i++, v += (ops_##t##_u)delta)                                           \
          ((ops_##t *)values->data)[k++] = (ops_##t)v;                                                                 \
      }                                                                                                                \
      if (!fill) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, ctx->inputs[0]->dtype, &TFC_SHAPE(n), &values));        \
    }                                                                                                                  \
    return NULL;                                                                                                       \
  }
static tfc_status ragged_range(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *splits = NULL, *values = NULL;
  int64_t rows = -1, step[3];
  for (int i = 0; i < 3; i++) {
    const struct tfc_shape *s = &ctx->inputs[i]->shape;
    static const char *const names[] = {"starts", "limits", "deltas"};
    TFC_KERNEL_CHECK(s->rank <= 1, "%s must be a scalar or vector", names[i]);
    step[i] = s->rank;
    if (s->rank == 0) continue;
    TFC_KERNEL_CHECK(rows < 0 || rows == s->dims[0], "starts, limits, and deltas must have the same shape");
    rows = s->dims[0];
  }
  if (rows < 0) rows = 1;
  tfc_dtype type = tfc_node_attr_type(ctx->graph, ctx->node, "Tsplits", TFC_INT64);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &TFC_SHAPE(rows + 1), &splits));
  put_int(splits, 0, 0);
  switch (ctx->inputs[0]->dtype) {
    RANGE(f32)
    RANGE(f64)
    RANGE(i32)
    RANGE(i64)
  default: return ops_unsupported_type(ctx, ctx->inputs[0]->dtype);
  }
}
static tfc_status shape_range(struct tfc_shape_ctx *ctx) {
  int64_t rows = TFC_DIM_UNKNOWN;
  bool scalars = true;
  for (int i = 0; i < 3; i++) {
    scalars &= ctx->inputs[i]->rank == 0;
    if (ctx->inputs[i]->rank == 1 && ctx->inputs[i]->dims[0] >= 0) rows = ctx->inputs[i]->dims[0];
  }
  if (scalars) rows = 1;
  ctx->outputs[0] = TFC_SHAPE(rows < 0 ? TFC_DIM_UNKNOWN : rows + 1);
  ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}

// --- RaggedGather ----------------------------------------------------------------------------------------------------
static tfc_status ragged_gather(struct tfc_kernel_ctx *ctx) {
  int ragged = (int)ctx->input_count - 2;
  const struct tfc_tensor *values = ctx->inputs[ragged], *indices = ctx->inputs[ragged + 1];
  int64_t n = tfc_tensor_elements(indices), width = 1, pieces = n, uniform = 1, *begin, *end;
  uint32_t level = 0;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(values->shape.rank >= 1, "params.rank must be nonzero");
  TFC_KERNEL_CHECK(indices->shape.rank >= 1 && indices->shape.rank - 1 + ragged + 1 == (int)ctx->output_count,
                   "OUTPUT_RAGGED_RANK must be indices.rank + PARAMS_RAGGED_RANK - 1");
  for (int d = 0; d < ragged; d++)
    TFC_RETURN_IF_ERROR(
        check_splits(ctx->inputs[d], d + 1 < ragged ? ctx->inputs[d + 1]->shape.dims[0] - 1 : values->shape.dims[0]));
  int64_t rows = ctx->inputs[0]->shape.dims[0] - 1;
  tfc_dtype type = ctx->inputs[0]->dtype;
  for (int64_t i = 0; i < n; i++)
    TFC_KERNEL_CHECK(tfc_tensor_int(indices, i) >= 0 && tfc_tensor_int(indices, i) < rows,
                     "indices[%lld] = %lld is not in [0, %lld)", (long long)i, (long long)tfc_tensor_int(indices, i),
                     (long long)rows);
  for (int d = 0; d + 1 < indices->shape.rank; d++) {
    // Each further dimension of the indices becomes one with rows of equal length.
    struct tfc_tensor *y = NULL;
    uniform *= indices->shape.dims[d];
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, level++, type, &TFC_SHAPE(uniform + 1), &y));
    for (int64_t i = 0; i <= uniform; i++) put_int(y, i, i * indices->shape.dims[d + 1]);
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(2 * n + 2) * sizeof(int64_t), &held));
  begin = held->data, end = begin + n;
  for (int64_t i = 0; i < n; i++) begin[i] = tfc_tensor_int(indices, i), end[i] = begin[i] + 1;
  for (int d = 0; d < ragged; d++) { // rows [begin, end) of this level become rows of the next
    struct tfc_tensor *y = NULL;
    int64_t at = 0, k = 0, sum = 0;
    pieces = 0;
    for (int64_t i = 0; i < n; i++) pieces += end[i] - begin[i];
    TFC_TRY(s, tfc_kernel_output(ctx, level++, type, &TFC_SHAPE(pieces + 1), &y));
    put_int(y, at++, 0);
    for (int64_t i = 0; i < n; i++) {
      for (k = begin[i]; k < end[i]; k++) {
        sum += tfc_tensor_int(ctx->inputs[d], k + 1) - tfc_tensor_int(ctx->inputs[d], k);
        put_int(y, at++, sum);
      }
      int64_t from = tfc_tensor_int(ctx->inputs[d], begin[i]);
      end[i] = tfc_tensor_int(ctx->inputs[d], end[i]);
      begin[i] = from;
    }
  }
  struct tfc_shape shape = values->shape;
  struct tfc_tensor *y = NULL;
  shape.dims[0] = 0;
  for (int64_t i = 0; i < n; i++) shape.dims[0] += end[i] - begin[i];
  for (int d = 1; d < shape.rank; d++) width *= shape.dims[d];
  TFC_TRY(s, tfc_kernel_output(ctx, level, values->dtype, &shape, &y));
  for (int64_t i = 0, to = 0; i < n; to += end[i] - begin[i], i++)
    TFC_TRY(s, ops_copy_elements(y, to * width, values, begin[i] * width, (end[i] - begin[i]) * width));
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_gather(struct tfc_shape_ctx *ctx) {
  uint32_t last = ctx->node->output_count - 1;
  for (uint32_t i = 0; i < last; i++) ctx->outputs[i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  struct tfc_shape values = *ctx->inputs[ctx->node->input_count - 2];
  if (values.rank >= 1) values.dims[0] = TFC_DIM_UNKNOWN;
  ctx->outputs[last] = values;
  return NULL;
}

static const struct tfc_op_def array_ragged_rows[] = {
    {.name = "RaggedTensorToTensor",
     .inputs = "shape: Tshape, values: T, default_value: T, row_partition_tensors: num_row_partition_tensors * Tindex",
     .outputs = "result: T",
     .attrs = "T: type, Tindex: {int64, int32}, Tshape: {int64, int32}, num_row_partition_tensors: int >= 1, "
              "row_partition_types: list(string)",
     .flags = TFC_OP_HOST,
     .shape = shape_to_tensor,
     .kernel = to_tensor,
     .gradient = ops_grad_ragged_to_tensor},
    {.name = "RaggedTensorToSparse",
     .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T",
     .outputs = "sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64",
     .attrs = "RAGGED_RANK: int >= 1, T: type, Tsplits: {int32, int64} = int64",
     .flags = TFC_OP_HOST,
     .shape = shape_to_sparse,
     .kernel = to_sparse,
     .gradient = ops_grad_ragged_to_sparse},
    {.name = "RaggedRange",
     .inputs = "starts: T, limits: T, deltas: T",
     .outputs = "rt_nested_splits: Tsplits, rt_dense_values: T",
     .attrs = "T: {bfloat16, float, double, int32, int64} = int32, Tsplits: {int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE) | TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64),
     .shape = shape_range,
     .kernel = ragged_range,
     .samples = "int32[2]=[0,5], int32[]=9, int32[2]=[2,1]"},
    {.name = "RaggedGather",
     .inputs = "params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, params_dense_values: Tvalues, indices: Tindices",
     .outputs = "output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues",
     .attrs = "Tvalues: type, Tindices: {int32, int64}, Tsplits: {int32, int64} = int64, PARAMS_RAGGED_RANK: int >= 1, "
              "OUTPUT_RAGGED_RANK: int >= 0",
     .flags = TFC_OP_HOST,
     .shape = shape_gather,
     .kernel = ragged_gather,
     .gradient = ops_grad_ragged_gather},
};
TFC_REGISTER_OPS(array_ragged_rows);
