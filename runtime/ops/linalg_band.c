// Tridiagonal matrices given by their diagonals: products and systems. Computed in double precision.
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_row.h"
#include "runtime/ops/math_types.h"
#include "runtime/ops/nn_common.h"

typedef double _Complex cplx;

// superdiagonal, diagonal, subdiagonal [..., 1, m] (the last of the first and the first of the last unused), x [..., m,
// n]
static tfc_status product(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[3];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  int last = x->shape.rank - 1;
  TFC_KERNEL_CHECK(last >= 1, "Rank of rhs must be >= 2, but is %d", x->shape.rank);
  struct tfc_shape diagonal = x->shape;
  int64_t m = x->shape.dims[last - 1], n = x->shape.dims[last], batches = 1;
  for (int d = 0; d < last - 1; d++) batches *= x->shape.dims[d];
  diagonal.dims[last - 1] = 1;
  diagonal.dims[last] = m;
  for (uint32_t i = 0; i < 3; i++)
    TFC_KERNEL_CHECK(tfc_shape_equal(&ctx->inputs[i]->shape, &diagonal), "diagonal %u has shape %s, should have %s", i,
                     tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&diagonal, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (tfc_tensor_elements(x) == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(3 * m + 2 * m * n) * sizeof(cplx), &held));
  cplx *up = held->data, *middle = up + m, *down = middle + m, *in = down + m, *out = in + m * n;
  for (int64_t b = 0; b < batches; b++) {
    for (uint32_t i = 0; i < 3; i++) ops_linalg_to_complex(ctx->inputs[i], b * m, m, up + i * m);
    ops_linalg_to_complex(x, b * m * n, m * n, in);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        cplx sum = middle[i] * in[i * n + j];
        if (i + 1 < m) sum += up[i] * in[(i + 1) * n + j];
        if (i > 0) sum += down[i] * in[(i - 1) * n + j];
        out[i * n + j] = sum;
      }
    ops_linalg_from_complex(out, y, b * m * n, m * n);
  }
  tfc_buffer_release(held);
  return NULL;
}

// Rows i and i + 1 of [0 d u v | x] in turn; with pivoting the one with the larger first element comes first, which may
// fill a second superdiagonal v. All [m], x [m, n].
static bool solve(cplx *up, cplx *middle, cplx *down, cplx *second, cplx *x, int64_t m, int64_t n, bool pivot) {
  for (int64_t i = 0; i < m; i++) second[i] = 0;
  for (int64_t i = 0; i + 1 < m; i++) {
    if (pivot && cabs(down[i + 1]) > cabs(middle[i])) {
      cplx t = middle[i];
      middle[i] = down[i + 1], down[i + 1] = t;
      t = up[i], up[i] = middle[i + 1], middle[i + 1] = t;
      second[i] = i + 2 < m ? up[i + 1] : 0;
      if (i + 2 < m) up[i + 1] = 0;
      for (int64_t j = 0; j < n; j++) t = x[i * n + j], x[i * n + j] = x[(i + 1) * n + j], x[(i + 1) * n + j] = t;
    }
    if (middle[i] == 0) return false;
    cplx factor = down[i + 1] / middle[i];
    middle[i + 1] -= factor * up[i];
    if (i + 2 < m) up[i + 1] -= factor * second[i];
    for (int64_t j = 0; j < n; j++) x[(i + 1) * n + j] -= factor * x[i * n + j];
  }
  for (int64_t i = m; i-- > 0;) {
    if (middle[i] == 0) return false;
    for (int64_t j = 0; j < n; j++) {
      cplx sum = x[i * n + j];
      if (i + 1 < m) sum -= up[i] * x[(i + 1) * n + j];
      if (i + 2 < m) sum -= second[i] * x[(i + 2) * n + j];
      x[i * n + j] = sum / middle[i];
    }
  }
  return true;
}
// diagonals [..., 3, m], rhs [..., m, n] -> [..., m, n]
static tfc_status solve_all(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *diagonals = ctx->inputs[0], *x = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  int last = x->shape.rank - 1;
  TFC_KERNEL_CHECK(last >= 1, "Expected rhs to have rank at least 2, got %d", x->shape.rank);
  struct tfc_shape want = x->shape;
  int64_t m = x->shape.dims[last - 1], n = x->shape.dims[last], batches = 1;
  for (int d = 0; d < last - 1; d++) batches *= x->shape.dims[d];
  want.dims[last - 1] = 3;
  want.dims[last] = m;
  TFC_KERNEL_CHECK(tfc_shape_equal(&diagonals->shape, &want), "diagonals have shape %s, should have %s",
                   tfc_shape_show(&diagonals->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&want, (char[TFC_SHAPE_TEXT]){0}));
  if (tfc_node_attr_bool(ctx->graph, ctx->node, "perturb_singular", false))
    return tfc_status_make(TFC_UNIMPLEMENTED, "perturb_singular is not supported");
  bool pivot = tfc_node_attr_bool(ctx->graph, ctx->node, "partial_pivoting", true);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (tfc_tensor_elements(x) == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(4 * m + m * n) * sizeof(cplx), &held));
  cplx *up = held->data, *second = up + 3 * m, *out = second + m;
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_to_complex(diagonals, b * 3 * m, 3 * m, up);
    ops_linalg_to_complex(x, b * m * n, m * n, out);
    if (!solve(up, up + m, up + 2 * m, second, out, m, n, pivot))
      for (int64_t i = 0; i < m * n; i++) out[i] = CMPLX(NAN, 0); // singular
    ops_linalg_from_complex(out, y, b * m * n, m * n);
  }
  tfc_buffer_release(held);
  return NULL;
}

static tfc_status shape_product(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[3];
  return NULL;
}
static tfc_status shape_solve(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &ctx->outputs[0]));
  return ops_with_rank_at_least(ctx, 1, 2, &ctx->outputs[0]);
}

#define TYPES                                                                                                          \
  (TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE) | TFC_TYPE_BIT(TFC_COMPLEX64) | TFC_TYPE_BIT(TFC_COMPLEX128))
static const struct tfc_op_def linalg_band_rows[] = {
    {.name = "TridiagonalMatMul",
     .inputs = "superdiag: T, maindiag: T, subdiag: T, rhs: T",
     .outputs = "output: T",
     .attrs = "T: {double, float, complex64, complex128}",
     .types = TYPES,
     .shape = shape_product,
     .cost = ops_cost_outputs,
     .kernel = product,
     .samples = "float[2,1,4], float[2,1,4], float[2,1,4], float[2,4,3]"},
    {.name = "TridiagonalSolve",
     .inputs = "diagonals: T, rhs: T",
     .outputs = "output: T",
     .attrs = "partial_pivoting: bool = true, perturb_singular: bool = false, T: {double, float, complex64, "
              "complex128}",
     .types = TYPES,
     .shape = shape_solve,
     .cost = ops_cost_outputs,
     .kernel = solve_all,
     .samples = "float[3,3]=[1,2,0,5,6,7,0,1,2], float[3,2]"},
};
TFC_REGISTER_OPS(linalg_band_rows);
