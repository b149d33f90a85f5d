// Operations that take sparse tensors apart and put them together: SparseReshape, SparseReorder, SparseFillEmptyRows,
// SparseConcat, SparseSplit, SparseSlice, and the kernels of their gradients.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/sparse_common.h"

// Copies elements order[0 … count) of `from`.
static tfc_status take(struct tfc_tensor *to, const struct tfc_tensor *from, const int64_t *order, int64_t count) {
  for (int64_t i = 0; i < count; i++) TFC_RETURN_IF_ERROR(ops_copy_elements(to, i, from, order[i], 1));
  return NULL;
}

// --- SparseReshape -------------------------------------------------------------------------------------------------
static tfc_status reshape(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  const struct tfc_tensor *wanted = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, TFC_NONE, 1, false, &x));
  TFC_KERNEL_CHECK(wanted->shape.rank == 1, "Target shape should be a vector but received shape %s",
                   tfc_shape_show(&wanted->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(wanted->shape.dims[0] <= TFC_MAX_RANK, "%lld dimensions are more than %d",
                   (long long)wanted->shape.dims[0], TFC_MAX_RANK);
  int rank = (int)wanted->shape.dims[0], unknown = -1;
  int64_t dims[TFC_MAX_RANK], total = 1, known = 1;
  for (int d = 0; d < x.rank; d++)
    TFC_KERNEL_CHECK(x.dims[d] >= 0 && !__builtin_mul_overflow(total, x.dims[d], &total),
                     "the input shape's dimension %d, %lld, is negative or too large", d, (long long)x.dims[d]);
  for (int d = 0; d < rank; d++) {
    dims[d] = ((const int64_t *)wanted->data)[d];
    if (dims[d] == -1) {
      TFC_KERNEL_CHECK(unknown < 0, "only one output dimension may be -1, not both %d and %d", unknown, d);
      unknown = d;
      continue;
    }
    TFC_KERNEL_CHECK(dims[d] >= 0, "size %d must be non-negative, not %lld", d, (long long)dims[d]);
    TFC_KERNEL_CHECK(!__builtin_mul_overflow(known, dims[d], &known), "the requested shape is too large");
  }
  if (unknown >= 0) {
    TFC_KERNEL_CHECK(known > 0, "reshape cannot infer the missing input size for an empty tensor unless all specified "
                                "input sizes are non-zero");
    TFC_KERNEL_CHECK(total % known == 0,
                     "Input to reshape is a SparseTensor with %lld dense values, but the requested shape requires a "
                     "multiple of %lld",
                     (long long)total, (long long)known);
    dims[unknown] = total / known;
    known = total;
  }
  TFC_KERNEL_CHECK(known == total,
                   "Input to reshape is a tensor with %lld dense values, but the requested shape has %lld",
                   (long long)total, (long long)known);
  int64_t *at = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_output(ctx, 0, x.count, rank, TFC_INT64, &at, NULL));
  TFC_RETURN_IF_ERROR(ops_sparse_shape_output(ctx, 1, dims, rank));
  if (rank == x.rank && memcmp(dims, x.dims, (size_t)rank * sizeof *dims) == 0) {
    // Done even if indices are outside of the shape.
    if (x.count && rank) memcpy(at, x.at, (size_t)(x.count * rank) * sizeof *at);
    return NULL;
  }
  TFC_KERNEL_CHECK(total > 0 || x.count == 0, "a tensor without elements cannot have %lld values", (long long)x.count);
  for (int64_t i = 0; i < x.count; i++) {
    int64_t id = 0;
    for (int d = 0; d < x.rank; d++)
      id = (int64_t)((uint64_t)id * (uint64_t)x.dims[d] + (uint64_t)x.at[i * x.rank + d]);
    for (int d = rank - 1; d > 0; d--) {
      at[i * rank + d] = id % dims[d];
      id /= dims[d];
    }
    if (rank) at[i * rank] = id; // an element outside of the shape stays outside
  }
  return NULL;
}
static tfc_status shape_reshape(struct tfc_shape_ctx *ctx) {
  struct tfc_shape at, old, wanted;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &at));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &old));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &wanted));
  ctx->outputs[0] = TFC_SHAPE(at.dims[0], wanted.dims[0]);
  ctx->outputs[1] = TFC_SHAPE(wanted.dims[0]);
  return NULL;
}

// --- SparseReorder -------------------------------------------------------------------------------------------------
static tfc_status reorder(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int64_t *at = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, false, &x));
  TFC_RETURN_IF_ERROR(ops_sparse_output(ctx, 0, x.count, x.rank, x.values->dtype, &at, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(x.count + 1) * sizeof(int64_t), &held));
  int64_t *order = held->data;
  ops_sparse_order(x.at, x.count, x.rank, order);
  for (int64_t i = 0; i < x.count; i++)
    for (int d = 0; d < x.rank; d++) at[i * x.rank + d] = x.at[order[i] * x.rank + d];
  s = take(y, x.values, order, x.count);
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_reorder(struct tfc_shape_ctx *ctx) {
  struct tfc_shape at, values, dims;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &at));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &values));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &dims));
  ctx->outputs[0] = at;
  ctx->outputs[1] = values;
  return NULL;
}
OPS_GRADIENT(SparseReorder) { // gradients go back to the values' old positions
  struct tfc_output n = grad_item(g, grad_op1(g, "Shape", X), 0);
  struct tfc_output places = grad_op3(g, "Range", tfc_add_i32(g->builder, 0), n, tfc_add_i32(g->builder, 1));
  struct tfc_output again = grad_op3(g, "SparseReorder", X, places, grad_in(g, 2));
  struct tfc_output order = {again.node, 1};
  struct tfc_output back = grad_op1(g, "InvertPermutation", order);
  g->grad_inputs[1] = grad_op3(g, "GatherV2", g->grad_outputs[1], back, tfc_add_i32(g->builder, 0));
  return NULL;
}

// --- SparseFillEmptyRows -------------------------------------------------------------------------------------------
// `ragged`: the indices are a vector that has only rows.
static tfc_status fill_rows(struct tfc_kernel_ctx *ctx, struct ops_sparse x, bool ragged) {
  const struct tfc_tensor *otherwise = ctx->inputs[3];
  struct tfc_tensor *y = NULL, *empty = NULL, *map = NULL, *kept = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int64_t *at = NULL, rows = x.dims[0], count = 0;
  TFC_KERNEL_CHECK(otherwise->shape.rank == 0, "default_value must be a scalar, saw: %s",
                   tfc_shape_show(&otherwise->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(rows >= 0, "dense_shape[0] is %lld", (long long)rows);
  TFC_KERNEL_CHECK(rows > 0 || x.count == 0,
                   "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %lld", (long long)x.count);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, TFC_BOOL, &TFC_SHAPE(rows), &empty));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 3, TFC_INT64, &TFC_SHAPE(x.count), &map));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, ((size_t)rows + 1) * sizeof(int64_t), &held));
  int64_t *next = held->data; // where the next element of each row goes
  bool *none = empty->data;
  memset(next, 0, (size_t)rows * sizeof *next);
  for (int64_t i = 0; i < x.count; i++) {
    int64_t row = x.at[i * x.rank];
    if (row < 0 || row >= rows)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "indices(%lld, 0) is invalid: %lld >= %lld", (long long)i, (long long)row,
               (long long)rows);
    next[row]++;
  }
  for (int64_t row = 0; row < rows; row++) {
    int64_t n = next[row];
    none[row] = n == 0;
    next[row] = count;
    count += n ? n : 1;
  }
  if (ragged) {
    TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(count), &kept));
    TFC_TRY(s, tfc_kernel_output(ctx, 1, x.values->dtype, &TFC_SHAPE(count), &y));
    at = kept->data;
  } else {
    TFC_TRY(s, ops_sparse_output(ctx, 0, count, x.rank, x.values->dtype, &at, &y));
  }
  for (int64_t row = 0; row < rows; row++) {
    if (!none[row]) continue;
    int64_t to = next[row];
    memset(at + to * x.rank, 0, (size_t)x.rank * sizeof *at);
    at[to * x.rank] = row;
    TFC_TRY(s, ops_copy_elements(y, to, otherwise, 0, 1));
  }
  for (int64_t i = 0; i < x.count; i++) {
    int64_t to = next[x.at[i * x.rank]]++;
    memcpy(at + to * x.rank, x.at + i * x.rank, (size_t)x.rank * sizeof *at);
    TFC_TRY(s, ops_copy_elements(y, to, x.values, i, 1));
    ((int64_t *)map->data)[i] = to;
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status fill(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, false, &x));
  TFC_KERNEL_CHECK(x.rank > 0, "Dense shape cannot be empty.");
  return fill_rows(ctx, x, false);
}
// Inputs: value_rowids, values, nrows, default_value.
static tfc_status fill_ragged(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *rows = ctx->inputs[0], *values = ctx->inputs[1], *count = ctx->inputs[2];
  TFC_KERNEL_CHECK(rows->shape.rank == 1, "value_rowids must be a vector, saw: %s",
                   tfc_shape_show(&rows->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(values->shape.rank == 1 && values->shape.dims[0] == rows->shape.dims[0],
                   "values must be a vector as long as value_rowids, saw: %s",
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(count->shape.rank == 0, "nrows must be a scalar, saw: %s",
                   tfc_shape_show(&count->shape, (char[TFC_SHAPE_TEXT]){0}));
  return fill_rows(ctx, (struct ops_sparse){rows->data, rows->shape.dims[0], 1, values, count->data}, true);
}
static tfc_status shape_fill_ragged(struct tfc_shape_ctx *ctx) {
  struct tfc_shape rows, values, scalar;
  int64_t count = TFC_DIM_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &rows));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &values));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 0, &scalar));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 0, &scalar));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(rows.dims[0], values.dims[0], &rows.dims[0]));
  if (!ops_known_int(ctx, 2, &count) || count < 0) count = TFC_DIM_UNKNOWN;
  ctx->outputs[0] = ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[2] = TFC_SHAPE(count);
  ctx->outputs[3] = TFC_SHAPE(rows.dims[0]);
  return NULL;
}
OPS_GRADIENT(RaggedFillEmptyRows) {
  struct tfc_output back = grad_op2(g, "RaggedFillEmptyRowsGrad", grad_out(g, 3), g->grad_outputs[1]);
  g->grad_inputs[1] = back;
  g->grad_inputs[3] = (struct tfc_output){back.node, 1};
  return NULL;
}
static tfc_status shape_fill(struct tfc_shape_ctx *ctx) {
  struct tfc_shape at, values, dims, scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &at));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &values));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &dims));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 0, &scalar));
  struct tfc_shape dense = ops_described_shape(ctx, 2);
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, at.dims[1] >= 0 ? at.dims[1] : dims.dims[0]);
  ctx->outputs[1] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[2] = TFC_SHAPE(dense.rank > 0 ? dense.dims[0] : TFC_DIM_UNKNOWN);
  TFC_RETURN_IF_ERROR(tfc_dim_merge(at.dims[0], values.dims[0], &at.dims[0]));
  ctx->outputs[3] = TFC_SHAPE(at.dims[0]);
  return NULL;
}
OPS_GRADIENT(SparseFillEmptyRows) {
  struct tfc_output back = grad_op2(g, "SparseFillEmptyRowsGrad", grad_out(g, 3), g->grad_outputs[1]);
  g->grad_inputs[1] = back;
  g->grad_inputs[3] = (struct tfc_output){back.node, 1};
  return NULL;
}
#define ADD_UNVISITED(t, ...)                                                                                          \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t##_u sum = 0;                                                                                               \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      if (!visited[i]) sum += (ops_##t##_u)OPS_GET_##t(((const ops_##t *)grad->data)[i]);                              \
    *(ops_##t *)rest->data = OPS_PUT_##t(sum);                                                                         \
  } break;
static tfc_status fill_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *map = ctx->inputs[0], *grad = ctx->inputs[1];
  struct tfc_tensor *y = NULL, *rest = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(map->shape.rank == 1, "reverse_index_map must be a vector, saw: %s",
                   tfc_shape_show(&map->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(grad->shape.rank == 1, "grad_values must be a vector, saw: %s",
                   tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t count = map->shape.dims[0], n = grad->shape.dims[0];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, grad->dtype, &TFC_SHAPE(count), &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, grad->dtype, &TFC_SHAPE(), &rest));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n + 1, &held));
  bool *visited = held->data;
  memset(visited, 0, (size_t)n);
  for (int64_t i = 0; i < count; i++) {
    int64_t from = ((const int64_t *)map->data)[i];
    if (from < 0 || from >= n)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Elements in reverse index must be in [0, %lld) but got %lld", (long long)n,
               (long long)from);
    TFC_TRY(s, ops_copy_elements(y, i, grad, from, 1));
    visited[from] = true;
  }
  switch (grad->dtype) {
    OPS_NUMBERS(ADD_UNVISITED, ~)
  default: s = ops_unsupported_type(ctx, grad->dtype);
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_fill_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape map, grad;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &map));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &grad));
  ctx->outputs[0] = map;
  ctx->outputs[1] = TFC_SHAPE();
  return NULL;
}

// --- SparseConcat ----------------------------------------------------------------------------------------------------
static tfc_status concat(struct tfc_kernel_ctx *ctx) {
  uint32_t parts = ctx->input_count / 3;
  int64_t axis = tfc_node_attr_int(ctx->graph, ctx->node, "concat_dim", 0), dims[TFC_MAX_RANK], count = 0, *to = NULL;
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  struct ops_sparse x = {0}, part;
  tfc_status s = NULL;
  for (uint32_t p = 0; p < parts; p++) {
    TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, p, parts + p, 2 * parts + p, false, &part));
    if (p == 0) {
      x = part;
      TFC_KERNEL_CHECK(axis >= -x.rank && axis < x.rank, "Concat dimension must be in range [%d, %d), got %lld",
                       -x.rank, x.rank, (long long)axis);
      if (axis < 0) axis += x.rank;
      for (int d = 0; d < x.rank; d++) dims[d] = d == axis ? 0 : x.dims[d];
    }
    TFC_KERNEL_CHECK(part.rank == x.rank,
                     "Ranks of all input tensors must match: expected %d but got %d at position %u", x.rank, part.rank,
                     p);
    for (int d = 0; d < x.rank; d++) {
      if (d == axis)
        TFC_KERNEL_CHECK(part.dims[d] >= 0 && !__builtin_add_overflow(dims[d], part.dims[d], &dims[d]),
                         "Encountered overflow from large input shape.");
      else
        TFC_KERNEL_CHECK(part.dims[d] == x.dims[d],
                         "Input shapes must match: expected %lld for dimension %d but got %lld at position %u",
                         (long long)x.dims[d], d, (long long)part.dims[d], p);
    }
    count += part.count;
  }
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(count * (x.rank + 2) + 1) * sizeof(int64_t), &held));
  int64_t *at = held->data, *order = at + count * x.rank, *source = order + count, n = 0, shift = 0;
  for (uint32_t p = 0; p < parts; p++) {
    TFC_TRY(s, ops_sparse_input(ctx, p, parts + p, 2 * parts + p, false, &part));
    for (int64_t i = 0; i < part.count; i++, n++) {
      for (int d = 0; d < x.rank; d++) at[n * x.rank + d] = part.at[i * x.rank + d] + (d == axis ? shift : 0);
      source[n] = (int64_t)p << 40 | i;
    }
    shift += part.dims[axis];
  }
  ops_sparse_order(at, count, x.rank, order);
  TFC_TRY(s, ops_sparse_output(ctx, 0, count, x.rank, x.values->dtype, &to, &y));
  for (int64_t i = 0; i < count; i++) {
    memcpy(to + i * x.rank, at + order[i] * x.rank, (size_t)x.rank * sizeof *to);
    int64_t from = source[order[i]];
    TFC_TRY(s, ops_copy_elements(y, i, ctx->inputs[parts + (uint32_t)(from >> 40)], from & ((1LL << 40) - 1), 1));
  }
  TFC_TRY(s, ops_sparse_shape_output(ctx, 2, dims, x.rank));
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_concat(struct tfc_shape_ctx *ctx) {
  uint32_t n = ctx->node->input_count / 3;
  int64_t rows = 0;
  TFC_RETURN_IF_ERROR(ops_shape_sparse(ctx, 0, 2 * n, true));
  for (uint32_t i = 0; i < n && rows >= 0; i++) {
    const struct tfc_shape *at = ctx->inputs[i], *values = ctx->inputs[n + i];
    int64_t own = at->rank == 2 ? at->dims[0] : TFC_DIM_UNKNOWN;
    if (values->rank == 1) TFC_RETURN_IF_ERROR(tfc_dim_merge(own, values->dims[0], &own));
    rows = own >= 0 ? rows + own : TFC_DIM_UNKNOWN;
  }
  ctx->outputs[0].dims[0] = ctx->outputs[1].dims[0] = rows;
  return NULL;
}

// --- SparseSplit -----------------------------------------------------------------------------------------------------
static tfc_status split(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "split_dim should be a scalar");
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 1, 2, 3, true, &x));
  int64_t axis = tfc_tensor_int(ctx->inputs[0], 0), parts = ctx->output_count / 3, dims[TFC_MAX_RANK], from = 0;
  TFC_KERNEL_CHECK(axis >= -x.rank && axis < x.rank, "Input axis should be in range [%d, %d), got %lld", -x.rank,
                   x.rank, (long long)axis);
  if (axis < 0) axis += x.rank;
  TFC_KERNEL_CHECK(parts >= 1 && parts <= x.dims[axis],
                   "Input num_split should be between 1 and the splitting dimension size (%lld), got %lld",
                   (long long)x.dims[axis], (long long)parts);
  for (int d = 0; d < x.rank; d++) dims[d] = x.dims[d];
  for (int64_t p = 0; p < parts; p++) {
    int64_t size = x.dims[axis] / parts + (p < x.dims[axis] % parts), n = 0, *at = NULL;
    struct tfc_tensor *y = NULL, *places = NULL;
    for (int64_t i = 0; i < x.count; i++) n += x.at[i * x.rank + axis] >= from && x.at[i * x.rank + axis] < from + size;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, (uint32_t)p, TFC_INT64, &TFC_SHAPE(n, x.rank), &places));
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, (uint32_t)(parts + p), x.values->dtype, &TFC_SHAPE(n), &y));
    at = places->data;
    n = 0;
    for (int64_t i = 0; i < x.count; i++) {
      int64_t v = x.at[i * x.rank + axis];
      if (v < from || v >= from + size) continue;
      memcpy(at + n * x.rank, x.at + i * x.rank, (size_t)x.rank * sizeof *at);
      at[n * x.rank + axis] -= from;
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, n++, x.values, i, 1));
    }
    dims[axis] = size;
    TFC_RETURN_IF_ERROR(ops_sparse_shape_output(ctx, (uint32_t)(2 * parts + p), dims, x.rank));
    from += size;
  }
  return NULL;
}
static tfc_status shape_split(struct tfc_shape_ctx *ctx) {
  struct tfc_shape dims;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 1, &dims));
  uint32_t parts = ctx->node->output_count / 3;
  for (uint32_t p = 0; p < parts; p++) {
    ctx->outputs[p] = TFC_SHAPE(TFC_DIM_UNKNOWN, dims.dims[0]);
    ctx->outputs[parts + p] = TFC_SHAPE(TFC_DIM_UNKNOWN);
    ctx->outputs[2 * parts + p] = TFC_SHAPE(dims.dims[0]);
  }
  return NULL;
}

// --- SparseSlice -----------------------------------------------------------------------------------------------------
static bool within(const int64_t *at, const int64_t *start, const int64_t *size, int rank) {
  for (int d = 0; d < rank; d++)
    if (at[d] < start[d] || at[d] - start[d] >= size[d]) return false;
  return true;
}
static tfc_status slice(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, false, &x));
  for (uint32_t i = 3; i < 5; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 1 && ctx->inputs[i]->shape.dims[0] == x.rank,
                     "Input start and size should be vectors of length %d but received shape %s", x.rank,
                     tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
  const int64_t *start = ctx->inputs[3]->data, *size = ctx->inputs[4]->data;
  int64_t dims[TFC_MAX_RANK], n = 0, *at = NULL;
  struct tfc_tensor *y = NULL;
  for (int d = 0; d < x.rank; d++) {
    TFC_KERNEL_CHECK(x.dims[d] >= 0, "Expected shape dimensions to be non-negative, got %lld", (long long)x.dims[d]);
    TFC_KERNEL_CHECK(size[d] >= 0, "Expected a non-negative size, got %lld", (long long)size[d]);
  }
  for (int d = 0; d < x.rank; d++) {
    int64_t left = start[d] < x.dims[d] ? x.dims[d] - start[d] : 0;
    dims[d] = size[d] < left ? size[d] : left;
  }
  for (int64_t i = 0; i < x.count; i++) n += within(x.at + i * x.rank, start, size, x.rank);
  TFC_RETURN_IF_ERROR(ops_sparse_output(ctx, 0, n, x.rank, x.values->dtype, &at, &y));
  TFC_RETURN_IF_ERROR(ops_sparse_shape_output(ctx, 2, dims, x.rank));
  n = 0;
  for (int64_t i = 0; i < x.count; i++) {
    if (!within(x.at + i * x.rank, start, size, x.rank)) continue;
    for (int d = 0; d < x.rank; d++) at[n * x.rank + d] = x.at[i * x.rank + d] - start[d];
    TFC_RETURN_IF_ERROR(ops_copy_elements(y, n++, x.values, i, 1));
  }
  return NULL;
}
static tfc_status shape_slice(struct tfc_shape_ctx *ctx) {
  return ops_shape_sparse(ctx, 0, 2, true);
}
OPS_GRADIENT(SparseSlice) {
  struct tfc_output in[4] = {g->grad_outputs[1], X, grad_in(g, 3), grad_out(g, 0)};
  g->grad_inputs[1] = tfc_add(g->builder, "SparseSliceGrad", "", in, 4, NULL, 0);
  return NULL;
}
// Elements that were cut away get zeros.
static tfc_status slice_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *grad = ctx->inputs[0], *at = ctx->inputs[1], *start = ctx->inputs[2], *kept = ctx->inputs[3];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(grad->shape.rank == 1, "Input backprop_val_grad should be a vector but received shape %s",
                   tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(at->shape.rank == 2 && kept->shape.rank == 2 && at->shape.dims[1] == kept->shape.dims[1],
                   "The input and output should have the same ndims");
  TFC_KERNEL_CHECK(start->shape.rank == 1 && start->shape.dims[0] == at->shape.dims[1],
                   "The input_start should be a vector with one element for each dimension");
  TFC_KERNEL_CHECK(kept->shape.dims[0] == grad->shape.dims[0] && kept->shape.dims[0] <= at->shape.dims[0],
                   "# rows of output_indices should be not greater than that of input_indices and the same as that of "
                   "backprop_val_grad");
  int rank = (int)at->shape.dims[1];
  int64_t n = kept->shape.dims[0], j = 0;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, grad->dtype, &TFC_SHAPE(at->shape.dims[0]), &y));
  memset(y->data, 0, y->size);
  for (int64_t i = 0; i < at->shape.dims[0] && j < n; i++) {
    bool same = true;
    for (int d = 0; d < rank; d++)
      same &= ((const int64_t *)at->data)[i * rank + d] ==
              ((const int64_t *)kept->data)[j * rank + d] + ((const int64_t *)start->data)[d];
    if (same) TFC_RETURN_IF_ERROR(ops_copy_elements(y, i, grad, j++, 1));
  }
  TFC_KERNEL_CHECK(j == n, "Elements of backprop_val_grad aren't all propagated. Num elements:%lld, used: %lld",
                   (long long)n, (long long)j);
  return NULL;
}
static tfc_status shape_slice_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape at;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &at));
  ctx->outputs[0] = TFC_SHAPE(at.dims[0]);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define AT "int64[3,2]=[0,1,2,0,2,3]"
#define FILL_GRAD(op)                                                                                                  \
  {                                                                                                                    \
    .name = op, .inputs = "reverse_index_map: int64, grad_values: T", .outputs = "d_values: T, d_default_value: T",    \
    .attrs = "T: type", .flags = TFC_OP_HOST, .types = OPS_BITS(OPS_NUMBERS), .shape = shape_fill_grad,                \
    .kernel = fill_grad, .samples = "int64[2]=[0,2], float[4]"                                                         \
  }
static const struct tfc_op_def sparse_layout_rows[] = {
    {.name = "SparseReshape",
     .inputs = "input_indices: int64, input_shape: int64, new_shape: int64",
     .outputs = "output_indices: int64, output_shape: int64",
     .attrs = "",
     .flags = TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_HOST,
     .shape = shape_reshape,
     .kernel = reshape,
     .samples = AT ", int64[2]=[3,4], int64[3]=[2,-1,2]"},
    {.name = "SparseReorder",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64",
     .outputs = "output_indices: int64, output_values: T",
     .attrs = "T: type",
     .flags = TFC_OP_HOST,
     .shape = shape_reorder,
     .kernel = reorder,
     .gradient = gradient_SparseReorder,
     .samples = "int64[3,2]=[2,0,0,1,2,3], float[3], int64[2]=[3,4]"},
    {.name = "SparseFillEmptyRows",
     .inputs = "indices: int64, values: T, dense_shape: int64, default_value: T",
     .outputs = "output_indices: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
     .attrs = "T: type",
     .flags = TFC_OP_HOST,
     .shape = shape_fill,
     .kernel = fill,
     .gradient = gradient_SparseFillEmptyRows,
     .samples = AT ", float[3], int64[2]=[4,4], float[]=1"},
    {.name = "RaggedFillEmptyRows",
     .inputs = "value_rowids: int64, values: T, nrows: int64, default_value: T",
     .outputs = "output_value_rowids: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64",
     .attrs = "T: type",
     .flags = TFC_OP_HOST,
     .shape = shape_fill_ragged,
     .kernel = fill_ragged,
     .gradient = gradient_RaggedFillEmptyRows,
     .samples = "int64[3]=[0,2,2], float[3], int64[]=4, float[]=1"},
    FILL_GRAD("RaggedFillEmptyRowsGrad"),
    FILL_GRAD("SparseFillEmptyRowsGrad"),
    {.name = "SparseConcat",
     .inputs = "indices: N * int64, values: N * T, shapes: N * int64",
     .outputs = "output_indices: int64, output_values: T, output_shape: int64",
     .attrs = "concat_dim: int, N: int >= 2, T: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, // as in TensorFlow
     .shape = shape_concat,
     .kernel = concat},
    {.name = "SparseSplit",
     .inputs = "split_dim: int64, indices: int64, values: T, shape: int64",
     .outputs = "output_indices: num_split * int64, output_values: num_split * T, output_shape: num_split * int64",
     .attrs = "num_split: int >= 1, T: type",
     .flags = TFC_OP_HOST,
     .shape = shape_split,
     .kernel = split,
     .samples = "int64[]=1, " AT ", float[3], int64[2]=[3,4] {num_split=2}"},
    {.name = "SparseSlice",
     .inputs = "indices: int64, values: T, shape: int64, start: int64, size: int64",
     .outputs = "output_indices: int64, output_values: T, output_shape: int64",
     .attrs = "T: type",
     .flags = TFC_OP_HOST,
     .shape = shape_slice,
     .kernel = slice,
     .gradient = gradient_SparseSlice,
     .samples = AT ", float[3], int64[2]=[3,4], int64[2]=[1,0], int64[2]=[2,2]"},
    {.name = "SparseSliceGrad",
     .inputs = "backprop_val_grad: T, input_indices: int64, input_start: int64, output_indices: int64",
     .outputs = "val_grad: T",
     .attrs = "T: " OPS_TYPES_NUMBER,
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_slice_grad,
     .kernel = slice_grad,
     .samples = "float[1], " AT ", int64[2]=[1,0], int64[1,2]=[1,0]"},
};
TFC_REGISTER_OPS(sparse_layout_rows);
