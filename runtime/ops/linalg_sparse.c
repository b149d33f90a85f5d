// SparseTensorDenseMatMul: multiplies a sparse matrix, given by coordinates and values, by a dense one.
#include <complex.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

struct sparse_state {
  bool adj_a, adj_b;
};
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct sparse_state, state);
  state->adj_a = tfc_node_attr_bool(ctx->graph, ctx->node, "adjoint_a", false);
  state->adj_b = tfc_node_attr_bool(ctx->graph, ctx->node, "adjoint_b", false);
  return NULL;
}

#define CONJ_f32(v) (v)
#define CONJ_f64(v) (v)
#define CONJ_f16(v) (v)
#define CONJ_b16(v) (v)
#define CONJ_i32(v) (v)
#define CONJ_c64(v) conjf(v)
#define CONJ_c128(v) conj(v)
// Adds v times row `from` of b (or b's column, conjugated) to row `to` of y.
#define ADD_ROW(t, ...)                                                                                                \
  case OPS_DT_##t: {                                                                                                   \
    const ops_##t##_u a = (ops_##t##_u)OPS_GET_##t(((const ops_##t *)values->data)[i]);                                \
    const ops_##t##_u v = state->adj_a ? CONJ_##t(a) : a;                                                              \
    const ops_##t *row = b->data;                                                                                      \
    ops_##t *out = (ops_##t *)y->data + to * n;                                                                        \
    for (int64_t j = 0; j < n; j++) {                                                                                  \
      const ops_##t##_u w = state->adj_b ? CONJ_##t((ops_##t##_u)OPS_GET_##t(row[j * b->shape.dims[1] + from]))        \
                                         : (ops_##t##_u)OPS_GET_##t(row[from * n + j]);                                \
      out[j] = OPS_PUT_##t((ops_##t##_u)OPS_GET_##t(out[j]) + v * w);                                                  \
    }                                                                                                                  \
    break;                                                                                                             \
  }
static tfc_status multiply(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *indices = ctx->inputs[0], *values = ctx->inputs[1], *shape = ctx->inputs[2],
                          *b = ctx->inputs[3];
  const struct sparse_state *state = ctx->state;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(b->shape.rank == 2, "Tensor 'b' is not a matrix");
  TFC_KERNEL_CHECK(shape->shape.rank == 1 && tfc_tensor_elements(shape) == 2, "Tensor 'a_shape' must have 2 elements");
  TFC_KERNEL_CHECK(values->shape.rank == 1, "Tensor 'a_values' is not a vector");
  TFC_KERNEL_CHECK(indices->shape.rank == 2 && indices->shape.dims[0] == tfc_tensor_elements(values) &&
                       indices->shape.dims[1] == 2,
                   "Tensor 'a_indices' must have shape [%lld, 2]", (long long)tfc_tensor_elements(values));
  int64_t rows = tfc_tensor_int(shape, state->adj_a), inner = tfc_tensor_int(shape, !state->adj_a);
  int64_t n = b->shape.dims[state->adj_b ? 0 : 1], count = tfc_tensor_elements(values);
  TFC_KERNEL_CHECK(rows >= 0 && inner >= 0, "'a_shape' must not be negative");
  TFC_KERNEL_CHECK(b->shape.dims[state->adj_b ? 1 : 0] == inner,
                   "Cannot multiply A and B because inner dimension does not match: %lld vs. %lld.", (long long)inner,
                   (long long)b->shape.dims[state->adj_b ? 1 : 0]);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, b->dtype, &TFC_SHAPE(rows, n), &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  memset(y->data, 0, y->size);
  for (int64_t i = 0; i < count; i++) {
    int64_t to = tfc_tensor_int(indices, 2 * i + state->adj_a), from = tfc_tensor_int(indices, 2 * i + !state->adj_a);
    TFC_KERNEL_CHECK(to >= 0 && to < rows && from >= 0 && from < inner,
                     "a_indices[%lld] is out of bounds: (%lld, %lld)", (long long)i, (long long)to, (long long)from);
    switch (b->dtype) {
      OPS_FLOATS_COMPLEX(ADD_ROW, ~)
      ADD_ROW(i32)
    default: return ops_unsupported_type(ctx, b->dtype);
    }
  }
  return NULL;
}
static tfc_status shape_multiply(struct tfc_shape_ctx *ctx) {
  struct tfc_shape b, a = ops_described_shape(ctx, 2);
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 2, &b));
  bool adj_a = tfc_node_attr_bool(ctx->graph, ctx->node, "adjoint_a", false);
  bool adj_b = tfc_node_attr_bool(ctx->graph, ctx->node, "adjoint_b", false);
  if (a.rank >= 0 && a.rank != 2) return tfc_status_make(TFC_INVALID_ARGUMENT, "a_shape must have 2 elements");
  int64_t rows = a.rank == 2 ? a.dims[adj_a ? 1 : 0] : TFC_DIM_UNKNOWN, merged;
  if (a.rank == 2) TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[adj_a ? 0 : 1], b.dims[adj_b ? 1 : 0], &merged));
  ctx->outputs[0] = TFC_SHAPE(rows, b.dims[adj_b ? 0 : 1]);
  return NULL;
}
static void cost_multiply(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                          const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  double columns = outputs[0].rank == 2 ? (double)outputs[0].dims[1] : 0;
  out->flops = 2 * (double)tfc_shape_elements(&inputs[1]) * columns;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

// The gradient of a value is G times the adjoint of B at the value's position: the product of one row of each.
OPS_GRADIENT(SparseTensorDenseMatMul) {
  struct tfc_builder *b = g->builder;
  bool adj_a = grad_attr_bool(g, "adjoint_a", false), adj_b = grad_attr_bool(g, "adjoint_b", false);
  struct tfc_output indices = X, dense = grad_in(g, 3), swap = tfc_add_i32_vector(b, (int32_t[]){1, 0}, 2);
  struct tfc_attr adjoint = tfc_attr_bool("adjoint_a", !adj_a);
  struct tfc_output in[4] = {indices, grad_in(g, 1), grad_in(g, 2), G};
  struct tfc_output gb = tfc_add(b, "SparseTensorDenseMatMul", "", in, 4, &adjoint, 1);
  g->grad_inputs[3] = adj_b ? grad_op2(g, "ConjugateTranspose", gb, swap) : gb;
  struct tfc_output zero = tfc_add_i32(b, 0), one = tfc_add_i32(b, 1);
  struct tfc_output rows = grad_op3(g, "GatherV2", indices, zero, one),
                    columns = grad_op3(g, "GatherV2", indices, one, one);
  struct tfc_output pa = grad_op3(g, "GatherV2", G, adj_a ? columns : rows, zero);
  struct tfc_output pb =
      grad_op3(g, "GatherV2", adj_b ? grad_op2(g, "Transpose", dense, swap) : dense, adj_a ? rows : columns, zero);
  struct tfc_output last = tfc_add_i32(b, -1), before = tfc_add_i32(b, -2);
  struct tfc_attr attrs[2] = {tfc_attr_bool("adj_x", adj_a), tfc_attr_bool("adj_y", adj_a == adj_b)};
  struct tfc_output xy[2] = {grad_op2(g, "ExpandDims", pa, adj_a ? last : before),
                             grad_op2(g, "ExpandDims", pb, adj_a != adj_b ? last : before)};
  struct tfc_output products = tfc_add(b, "BatchMatMulV2", "", xy, 2, attrs, 2);
  g->grad_inputs[1] = g_reshape(g, products, tfc_add_i32_vector(b, (int32_t[]){-1}, 1));
  return NULL;
}

static const struct tfc_op_def linalg_sparse_rows[] = {
    {.name = "SparseTensorDenseMatMul",
     .inputs = "a_indices: Tindices, a_values: T, a_shape: int64, b: T",
     .outputs = "product: T",
     .attrs = "T: type, Tindices: {int32, int64} = int64, adjoint_a: bool = false, adjoint_b: bool = false",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 4,
     .shape = shape_multiply,
     .cost = cost_multiply,
     .prepare = prepare,
     .kernel = multiply,
     .gradient = gradient_SparseTensorDenseMatMul,
     .samples = "int64[2,2]=[0,1,2,0], float[2], int64[2]=[3,2], float[2,4]"},
};
TFC_REGISTER_OPS(linalg_sparse_rows);
