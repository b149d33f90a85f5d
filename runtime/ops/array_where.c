// Operations on positions of elements and on sparse descriptions of tensors: Where, UnravelIndex, SparseToDense.
#include <complex.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

#define NOT_ZERO(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) out[i] = OPS_GET_##t(((const ops_##t *)x->data)[i]) != 0;                          \
    return NULL;
static tfc_status find_not_zero(const struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, bool *out) {
  int64_t n = tfc_tensor_elements(x);
  switch (x->dtype) {
    OPS_ALL(NOT_ZERO, ~)
  default: return ops_unsupported_type(ctx, x->dtype);
  }
}
static tfc_status where(struct tfc_kernel_ctx *ctx) {
  // Lists the coordinates of all elements that are not zero, in order.
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  int64_t n = tfc_tensor_elements(x), count = 0, k = 0, at[TFC_MAX_RANK] = {0};
  TFC_KERNEL_CHECK(x->shape.rank > 0, "WhereOp : Unhandled input dimensions: 0");
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n + 1, &held));
  bool *found = held->data;
  TFC_TRY(s, find_not_zero(ctx, x, found));
  for (int64_t i = 0; i < n; i++) count += found[i];
  TFC_TRY(s, tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE(count, x->shape.rank), &y));
  int64_t *out = y->data;
  for (int64_t i = 0; i < n; i++) {
    if (found[i])
      for (int d = 0; d < x->shape.rank; d++) out[k++] = at[d];
    for (int d = x->shape.rank - 1; d >= 0 && ++at[d] == x->shape.dims[d]; d--) at[d] = 0;
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_where(struct tfc_shape_ctx *ctx) {
  int rank = ctx->inputs[0]->rank;
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN, rank < 0 ? TFC_DIM_UNKNOWN : rank);
  return NULL;
}

static void put_int(struct tfc_tensor *t, int64_t i, int64_t v) {
  if (t->dtype == TFC_INT64)
    ((int64_t *)t->data)[i] = v;
  else
    ((int32_t *)t->data)[i] = (int32_t)v;
}
static tfc_status unravel_index(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *indices = ctx->inputs[0], *dims = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  int64_t n = tfc_tensor_elements(indices), rank = tfc_tensor_elements(dims), total = 1;
  TFC_KERNEL_CHECK(indices->shape.rank <= 1, "The indices can only be scalar or vector");
  TFC_KERNEL_CHECK(dims->shape.rank == 1, "The dims can only be a 1-D vector");
  for (int64_t d = 0; d < rank; d++) {
    int64_t size = tfc_tensor_int(dims, d);
    TFC_KERNEL_CHECK(size > 0, "Input dims cannot contain a dim of %lld", (long long)size);
    TFC_KERNEL_CHECK(!__builtin_mul_overflow(total, size, &total), "Input dims product is too large");
  }
  struct tfc_shape shape = indices->shape.rank == 0 ? TFC_SHAPE(rank) : TFC_SHAPE(rank, n);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, indices->dtype, &shape, &y));
  for (int64_t i = 0; i < n; i++) {
    int64_t v = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(v < total, "index is out of bound as with dims: %lld", (long long)v);
    for (int64_t d = rank - 1; d >= 0; d--) {
      int64_t size = tfc_tensor_int(dims, d);
      // Dimension 0 takes the rest; TensorFlow does so for a negative index too.
      put_int(y, d * n + i, d ? v % size : v);
      v /= size;
    }
  }
  return NULL;
}
static tfc_status shape_unravel_index(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *i = ctx->inputs[0], *d = ctx->inputs[1];
  int64_t rank = d->rank == 1 ? d->dims[0] : TFC_DIM_UNKNOWN;
  if (i->rank == 0) ctx->outputs[0] = TFC_SHAPE(rank);
  if (i->rank == 1) ctx->outputs[0] = TFC_SHAPE(rank, i->dims[0]);
  if (i->rank > 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "indices can only be scalar or vector");
  return NULL;
}

struct sparse_state {
  bool validate;
};
static tfc_status prepare_sparse(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct sparse_state, state);
  state->validate = tfc_node_attr_bool(ctx->graph, ctx->node, "validate_indices", true);
  return NULL;
}
static tfc_status sparse_to_dense(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *indices = ctx->inputs[0], *values = ctx->inputs[2], *otherwise = ctx->inputs[3];
  bool validate = ((const struct sparse_state *)ctx->state)->validate;
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  int64_t strides[TFC_MAX_RANK], last = -1;
  TFC_KERNEL_CHECK(indices->shape.rank <= 2, "sparse_indices should be a scalar, vector, or matrix");
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 1, "output_shape must be rank 1");
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[1], &shape));
  int64_t count = indices->shape.rank > 0 ? indices->shape.dims[0] : 1;
  int64_t depth = indices->shape.rank == 2 ? indices->shape.dims[1] : 1;
  TFC_KERNEL_CHECK(depth == shape.rank, "output_shape has incorrect number of elements: %d should be: %lld", shape.rank,
                   (long long)depth);
  for (int d = 0; d < shape.rank; d++) TFC_KERNEL_CHECK(shape.dims[d] >= 0, "output_shape has a negative dimension");
  bool one = values->shape.rank == 0;
  TFC_KERNEL_CHECK(values->shape.rank <= 1 && (one || tfc_tensor_elements(values) == count),
                   "sparse_values has incorrect shape, should be [] or [%lld]", (long long)count);
  TFC_KERNEL_CHECK(otherwise->shape.rank == 0, "default_value should be a scalar.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, values->dtype, &shape, &y));
  TFC_RETURN_IF_ERROR(ops_fill_with(y, 0, tfc_tensor_elements(y), otherwise, 0));
  tfc_shape_strides(&shape, strides);
  for (int64_t i = 0; i < count; i++) {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; d++) {
      int64_t v = tfc_tensor_int(indices, i * depth + d);
      TFC_KERNEL_CHECK(v >= 0 && v < shape.dims[d], "indices[%lld] is out of bounds: component %lld is %lld",
                       (long long)i, (long long)d, (long long)v);
      at += v * strides[d];
    }
    TFC_KERNEL_CHECK(!validate || at > last, "indices[%lld] is %s", (long long)i,
                     at == last ? "repeated" : "out of order. Many sparse ops require sorted indices.");
    last = at;
    TFC_RETURN_IF_ERROR(ops_copy_elements(y, at, values, one ? 0 : i, 1));
  }
  return NULL;
}
static tfc_status shape_sparse_to_dense(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 1);
  return NULL;
}
OPS_GRADIENT(SparseToDense) {
  struct tfc_output values = grad_op2(g, "GatherNd", G, X);
  g->grad_inputs[2] = values;
  struct tfc_output all =
      grad_op3(g, "Range", tfc_add_i32(g->builder, 0), grad_op1(g, "Rank", G), tfc_add_i32(g->builder, 1));
  struct tfc_output each =
      grad_op3(g, "Range", tfc_add_i32(g->builder, 0), grad_op1(g, "Rank", values), tfc_add_i32(g->builder, 1));
  g->grad_inputs[3] = g_sub(g, grad_sum(g, G, all, false), grad_sum(g, values, each, false));
  return NULL;
}

static const struct tfc_op_def array_where_rows[] = {
    {.name = "Where",
     .role = TFC_ROLE_PICKS,
     .inputs = "input: T",
     .outputs = "index: int64",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, bool} = bool",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_ALL),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_where,
     .kernel = where,
     .samples = "bool[3,4]; float[5]"},
    {.name = "UnravelIndex",
     .inputs = "indices: Tidx, dims: Tidx",
     .outputs = "output: Tidx",
     .attrs = "Tidx: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_unravel_index,
     .kernel = unravel_index,
     .samples = "int32[3]=[2,5,7], int32[2]=[3,4]"},
    {.name = "SparseToDense",
     .inputs = "sparse_indices: Tindices, output_shape: Tindices, sparse_values: T, default_value: T",
     .outputs = "dense: T",
     .attrs = "validate_indices: bool = true, T: type, Tindices: {int32, int64}",
     .host_inputs = 2,
     .shape = shape_sparse_to_dense,
     .prepare = prepare_sparse,
     .kernel = sparse_to_dense,
     .gradient = gradient_SparseToDense,
     .samples = "int32[2,2]=[0,1,2,0], int32[2]=[3,2], float[2], float[]"},
};
TFC_REGISTER_OPS(array_where_rows);
