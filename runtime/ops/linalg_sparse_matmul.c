// SparseMatMul: multiplies two matrices, one of which is declared to have many zeros. The result is that of MatMul in
// float32, whatever was declared, except that a zero times infinity or NaN counts as 0.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/blas.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Returns the matrix as floats: its own data, or a converted copy *own, which the caller frees.
static const float *floats_of(const struct tfc_tensor *t, float **own) {
  *own = NULL;
  if (t->dtype == TFC_FLOAT) return t->data;
  int64_t n = tfc_tensor_elements(t);
  float *f = malloc(((size_t)n + 1) * sizeof *f);
  for (int64_t i = 0; f && i < n; i++) f[i] = tfc_bfloat16_to_float(((const uint16_t *)t->data)[i]);
  return *own = f;
}

static bool all_finite(const float *x, int64_t n) {
  bool all = true;
  for (int64_t i = 0; i < n; i++) all &= isfinite(x[i]) != 0;
  return all;
}
// The same product, but zeros of the sparse operand are skipped, so that zero times infinity adds nothing.
static void without_zeros(const float *a, int64_t a_row, int64_t a_step, const float *b, int64_t b_step,
                          int64_t b_column, int64_t m, int64_t k, int64_t n, bool zeros_of_a, float *y) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t z = 0; z < k; z++) {
        const float p = a[i * a_row + z * a_step], q = b[z * b_step + j * b_column];
        if ((zeros_of_a ? p : q) != 0) sum += p * q;
      }
      y[i * n + j] = sum;
    }
}

// a [m, k] (or [k, m] transposed), b [k, n] (or [n, k]) -> [m, n]
static tfc_status sparse_matmul(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  bool ta = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false);
  bool tb = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false);
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(a->shape.rank == 2, "a is not a matrix");
  TFC_KERNEL_CHECK(b->shape.rank == 2, "b is not a matrix");
  int64_t m = a->shape.dims[ta], k = a->shape.dims[!ta], n = b->shape.dims[!tb];
  TFC_KERNEL_CHECK(b->shape.dims[tb] == k, "Matrix size incompatible: a: %s, b: %s",
                   tfc_shape_show(&a->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&b->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE(m, n), &y));
  if (m == 0 || n == 0) return NULL;
  if (k == 0) {
    memset(y->data, 0, y->size);
    return NULL;
  }
  float *own[2];
  const float *fa = floats_of(a, &own[0]), *fb = floats_of(b, &own[1]);
  tfc_status s = fa && fb ? NULL : tfc_status_no_memory(NULL);
  const bool sparse_a = tfc_node_attr_bool(ctx->graph, ctx->node, "a_is_sparse", false);
  const bool sparse_b = tfc_node_attr_bool(ctx->graph, ctx->node, "b_is_sparse", false);
  const int64_t a_row = a->shape.dims[1], b_row = b->shape.dims[1];
  if (!s && (sparse_a || sparse_b) && !(sparse_a ? all_finite(fb, k * n) : all_finite(fa, m * k)))
    without_zeros(fa, ta ? 1 : a_row, ta ? a_row : 1, fb, tb ? 1 : b_row, tb ? b_row : 1, m, k, n, sparse_a, y->data);
  else if (!s)
    ops_sgemm(ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, fa,
              (int)a->shape.dims[1], fb, (int)b->shape.dims[1], 0, y->data, (int)n);
  free(own[0]);
  free(own[1]);
  return s;
}
static tfc_status shape_product(struct tfc_shape_ctx *ctx) {
  bool ta = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_a", false);
  bool tb = tfc_node_attr_bool(ctx->graph, ctx->node, "transpose_b", false);
  struct tfc_shape a, b;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &b));
  if (a.dims[!ta] >= 0 && b.dims[tb] >= 0 && a.dims[!ta] != b.dims[tb])
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Dimensions must be equal, but are %lld and %lld",
                           (long long)a.dims[!ta], (long long)b.dims[tb]);
  ctx->outputs[0] = TFC_SHAPE(a.dims[ta], b.dims[!tb]);
  return NULL;
}
static void cost_product(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                         const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  bool ta = tfc_node_attr_bool(g, n, "transpose_a", false);
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = 2 * (double)tfc_shape_elements(&outputs[0]) * (double)inputs[0].dims[!ta];
}

// Returns the product x y in float32, with tx and ty for transposed operands.
static struct tfc_output times(const struct tfc_grad_ctx *g, struct tfc_output x, bool tx, struct tfc_output y,
                               bool ty) {
  struct tfc_attr attrs[] = {tfc_attr_bool("transpose_a", tx), tfc_attr_bool("transpose_b", ty)};
  return tfc_add(g->builder, "MatMul", NULL, TFC_OUTPUTS(x, y), attrs, 2);
}
static tfc_status gradient(struct tfc_grad_ctx *g) {
  bool ta = grad_attr_bool(g, "transpose_a", false), tb = grad_attr_bool(g, "transpose_b", false);
  struct tfc_output grad = g->grad_outputs[0], in[2], out[2];
  for (uint32_t i = 0; i < 2; i++) {
    in[i] = grad_in(g, i);
    if (grad_in_type(g, i) != TFC_FLOAT) in[i] = grad_cast(g, in[i], TFC_FLOAT);
  }
  out[0] = ta ? times(g, in[1], tb, grad, true) : times(g, grad, false, in[1], !tb);
  out[1] = tb ? times(g, grad, true, in[0], ta) : times(g, in[0], !ta, grad, false);
  for (uint32_t i = 0; i < 2; i++) {
    tfc_dtype type = grad_in_type(g, i);
    g->grad_inputs[i] = type == TFC_FLOAT ? out[i] : grad_cast(g, out[i], type);
  }
  return grad_status(g);
}

static const struct tfc_op_def linalg_sparse_matmul_rows[] = {
    {.name = "SparseMatMul",
     .inputs = "a: Ta, b: Tb",
     .outputs = "product: float",
     .attrs = "transpose_a: bool = false, transpose_b: bool = false, a_is_sparse: bool = false, b_is_sparse: bool = "
              "false, Ta: {float, bfloat16} = float, Tb: {float, bfloat16} = float",
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_BFLOAT16),
     .shape = shape_product,
     .cost = cost_product,
     .kernel = sparse_matmul,
     .gradient = gradient,
     .samples = "float[3,4], float[4,2]; float[4,3], float[2,4] {transpose_a=true, transpose_b=true}"},
};
TFC_REGISTER_OPS(linalg_sparse_matmul_rows);
