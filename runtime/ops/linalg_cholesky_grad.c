// CholeskyGrad: for A = L L', turns the gradient of L into the gradient of A. Let P be the lower triangle of L' dL,
// with its diagonal halved; the result is the symmetric part of inv(L)' P inv(L) (Murray, "Differentiation of the
// Cholesky decomposition", 2016).
#include <string.h>

#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// l, g and the scratch space `work` are [n, n]; the result replaces g.
static void pull_back(const double *l, double *g, double *work, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j <= i; j++) {
      double sum = 0;
      for (int64_t k = i; k < n; k++) sum += l[k * n + i] * g[k * n + j];
      work[i * n + j] = i == j ? sum / 2 : sum;
    }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++) work[i * n + j] = 0;
  for (int64_t i = n; i-- > 0;) // solves L' X = P, from the last row up
    for (int64_t j = 0; j < n; j++) {
      double x = work[i * n + j];
      for (int64_t k = i + 1; k < n; k++) x -= l[k * n + i] * work[k * n + j];
      work[i * n + j] = x / l[i * n + i];
    }
  for (int64_t j = n; j-- > 0;) // solves S L = X, from the last column
    for (int64_t i = 0; i < n; i++) {
      double x = work[i * n + j];
      for (int64_t k = j + 1; k < n; k++) x -= work[i * n + k] * l[k * n + j];
      work[i * n + j] = x / l[j * n + j];
    }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) g[i * n + j] = (work[i * n + j] + work[j * n + i]) / 2;
}

static tfc_status cholesky_grad(struct tfc_kernel_ctx *ctx) { // inputs: l, grad
  const struct tfc_tensor *l = ctx->inputs[0], *grad = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  const int rank = l->shape.rank;
  TFC_KERNEL_CHECK(rank >= 2 && l->shape.dims[rank - 1] == l->shape.dims[rank - 2], "Input must be square: %s",
                   tfc_shape_show(&l->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(tfc_shape_equal(&l->shape, &grad->shape), "Inputs must have the same shape");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, l, &y));
  const int64_t n = l->shape.dims[rank - 1], total = tfc_tensor_elements(l);
  if (total == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(3 * n * n) * sizeof(double), &held));
  double *wide_l = held->data, *wide_g = wide_l + n * n, *work = wide_g + n * n;
  for (int64_t at = 0; at < total; at += n * n) {
    ops_linalg_widen(l, at, n * n, wide_l);
    ops_linalg_widen(grad, at, n * n, wide_g);
    pull_back(wide_l, wide_g, work, n);
    ops_linalg_narrow(wide_g, y, at, n * n);
  }
  tfc_buffer_release(held);
  return NULL;
}
static tfc_status shape_gradient(struct tfc_shape_ctx *ctx) {
  struct tfc_shape *y = &ctx->outputs[0];
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 2, y));
  if (y->rank < 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(y->dims[y->rank - 2], y->dims[y->rank - 1], &y->dims[y->rank - 1]));
  y->dims[y->rank - 2] = y->dims[y->rank - 1];
  return NULL;
}

#define ROW                                                                                                            \
  .inputs = "l: T, grad: T", .outputs = "output: T", .types = OPS_BITS(OPS_FLOATS) & ~TFC_TYPE_BIT(TFC_BFLOAT16),      \
  .shape = shape_gradient, .cost = ops_cost_cubic, .kernel = cholesky_grad
static const struct tfc_op_def linalg_cholesky_grad_rows[] = {
    {.name = "CholeskyGrad",
     .attrs = "T: {half, float, double}",
     ROW,
     .samples = "double[2,2]=[2,0,0.5,1], double[2,2]"},
    {.name = "BatchCholeskyGrad", .attrs = "T: {float, double}", ROW},
};
TFC_REGISTER_OPS(linalg_cholesky_grad_rows);
