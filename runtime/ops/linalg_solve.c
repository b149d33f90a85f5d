// Operations on square matrices: Cholesky, MatrixDeterminant, MatrixInverse, MatrixSolve, MatrixTriangularSolve,
// BandedTriangularSolve; and Cross.
//
// Real types are computed in float64, complex ones in complex128, and rounded once. LU has partial pivoting.
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Algorithms ----------------------------------------------------------------------------------------------------
#define CONJ_f64(v) (v)
#define CONJ_c128(v) conj(v)
#define ABS_f64(v) fabs(v)
#define ABS_c128(v) cabs(v)
#define REAL_f64(v) (v)
#define REAL_c128(v) creal(v)
// All matrices are row-major.
// cholesky: replaces a [n, n] by its lower factor; returns false if a is not positive definite.
// factor: replaces a by L (with a unit diagonal) and U; perm becomes the order of the rows and *sign the sign of that
// permutation; returns false if a is singular.
// solve_triangle: replaces x [n, m] by T⁻¹ x, where T is the lower or upper triangle of op(a); returns false if T's
// diagonal has a zero.
#define ALGORITHMS(t)                                                                                                  \
  static bool cholesky_##t(ops_##t *a, int64_t n) {                                                                    \
    for (int64_t j = 0; j < n; j++) {                                                                                  \
      double d = (double)REAL_##t(a[j * n + j]);                                                                       \
      for (int64_t k = 0; k < j; k++) d -= (double)REAL_##t(a[j * n + k] * CONJ_##t(a[j * n + k]));                    \
      if (d <= 0) return false; /* NaN goes on */                                                                      \
      d = sqrt(d);                                                                                                     \
      a[j * n + j] = d;                                                                                                \
      for (int64_t i = j + 1; i < n; i++) {                                                                            \
        ops_##t s = a[i * n + j];                                                                                      \
        for (int64_t k = 0; k < j; k++) s -= a[i * n + k] * CONJ_##t(a[j * n + k]);                                    \
        a[i * n + j] = s / d;                                                                                          \
      }                                                                                                                \
      for (int64_t i = 0; i < j; i++) a[i * n + j] = 0;                                                                \
    }                                                                                                                  \
    return true;                                                                                                       \
  }                                                                                                                    \
  static bool factor_##t(ops_##t *a, int64_t n, int64_t *perm, int *sign) {                                            \
    bool regular = true;                                                                                               \
    *sign = 1;                                                                                                         \
    for (int64_t i = 0; i < n; i++) perm[i] = i;                                                                       \
    for (int64_t k = 0; k < n; k++) {                                                                                  \
      int64_t best = k;                                                                                                \
      for (int64_t i = k + 1; i < n; i++)                                                                              \
        if (ABS_##t(a[i * n + k]) > ABS_##t(a[best * n + k])) best = i;                                                \
      if (best != k) {                                                                                                 \
        for (int64_t j = 0; j < n; j++) {                                                                              \
          ops_##t v = a[k * n + j];                                                                                    \
          a[k * n + j] = a[best * n + j];                                                                              \
          a[best * n + j] = v;                                                                                         \
        }                                                                                                              \
        int64_t p = perm[k];                                                                                           \
        perm[k] = perm[best];                                                                                          \
        perm[best] = p;                                                                                                \
        *sign = -*sign;                                                                                                \
      }                                                                                                                \
      if (k == 0 && a[0] != a[0]) regular = false; /* NaN goes on */                                                   \
      if (a[k * n + k] == 0) {                                                                                         \
        regular = false;                                                                                               \
        continue;                                                                                                      \
      }                                                                                                                \
      for (int64_t i = k + 1; i < n; i++) {                                                                            \
        ops_##t f = a[i * n + k] /= a[k * n + k];                                                                      \
        if (f != 0)                                                                                                    \
          for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];                                        \
      }                                                                                                                \
    }                                                                                                                  \
    return regular;                                                                                                    \
  }                                                                                                                    \
  static bool solve_triangle_##t(const ops_##t *a, int64_t n, ops_##t *x, int64_t m, bool lower, bool adjoint,         \
                                 bool unit) {                                                                          \
    bool forward = lower != adjoint, regular = true;                                                                   \
    for (int64_t step = 0; step < n; step++) {                                                                         \
      int64_t i = forward ? step : n - 1 - step;                                                                       \
      for (int64_t k = forward ? 0 : i + 1; k < (forward ? i : n); k++) {                                              \
        ops_##t f = adjoint ? CONJ_##t(a[k * n + i]) : a[i * n + k];                                                   \
        for (int64_t j = 0; j < m; j++) x[i * m + j] -= f * x[k * m + j];                                              \
      }                                                                                                                \
      if (unit) continue;                                                                                              \
      ops_##t d = adjoint ? CONJ_##t(a[i * n + i]) : a[i * n + i];                                                     \
      if (d == 0) regular = false;                                                                                     \
      for (int64_t j = 0; j < m; j++) x[i * m + j] /= d;                                                               \
    }                                                                                                                  \
    return regular;                                                                                                    \
  }                                                                                                                    \
  /* x [n, m] becomes op(a)⁻¹ b: it is op(a) that is factored, which tells where it is singular */                  \
  static bool solve_##t(ops_##t *a, int64_t n, const ops_##t *b, ops_##t *x, int64_t m, bool adjoint, int64_t *perm) { \
    int sign;                                                                                                          \
    for (int64_t i = 0; adjoint && i < n; i++)                                                                         \
      for (int64_t j = 0; j <= i; j++) {                                                                               \
        ops_##t v = CONJ_##t(a[i * n + j]);                                                                            \
        a[i * n + j] = CONJ_##t(a[j * n + i]);                                                                         \
        a[j * n + i] = v;                                                                                              \
      }                                                                                                                \
    if (!factor_##t(a, n, perm, &sign)) return false;                                                                  \
    for (int64_t i = 0; i < n; i++) memcpy(x + i * m, b + perm[i] * m, (size_t)m * sizeof *x);                         \
    solve_triangle_##t(a, n, x, m, true, false, true);                                                                 \
    return solve_triangle_##t(a, n, x, m, false, false, false);                                                        \
  }
ALGORITHMS(f64)
ALGORITHMS(c128)

// --- Kernels -----------------------------------------------------------------------------------------------------
struct solve_state {
  bool adjoint, lower;
};
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct solve_state, state);
  state->adjoint = tfc_node_attr_bool(ctx->graph, ctx->node, "adjoint", false);
  state->lower = tfc_node_attr_bool(ctx->graph, ctx->node, "lower", true);
  return NULL;
}

static tfc_status check_square(const struct tfc_tensor *a, int64_t *n, int64_t *batches) {
  const struct tfc_shape *s = &a->shape;
  char text[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(s->rank >= 2, "Input must have rank >= 2, got %d", s->rank);
  *n = s->dims[s->rank - 1];
  TFC_KERNEL_CHECK(s->dims[s->rank - 2] == *n, "Input must be square, its shape is %s", tfc_shape_show(s, text));
  *batches = 1;
  for (int d = 0; d < s->rank - 2; d++) *batches *= s->dims[d];
  return NULL;
}

enum square { SQUARE_CHOLESKY, SQUARE_DETERMINANT, SQUARE_INVERSE };
static tfc_status square(struct tfc_kernel_ctx *ctx, enum square what) {
  const struct tfc_tensor *a = ctx->inputs[0];
  const struct solve_state *state = ctx->state;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int64_t n = 0, batches = 0;
  if (!(OPS_BITS(OPS_FLOATS_COMPLEX) & TFC_TYPE_BIT(a->dtype))) return ops_unsupported_type(ctx, a->dtype);
  TFC_RETURN_IF_ERROR(check_square(a, &n, &batches));
  struct tfc_shape shape = a->shape;
  if (what == SQUARE_DETERMINANT) shape.rank -= 2;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &shape, &y));
  bool is_complex = tfc_dtype_is_complex(a->dtype);
  size_t size = is_complex ? 16 : 8;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(3 * n * n + 2 * n + 2) * size, &held));
  char *m = held->data, *unit = m + (size_t)(n * n) * size, *x = unit + (size_t)(n * n) * size;
  char *work = x + (size_t)(n * n) * size;
  int64_t *perm = (int64_t *)(work + (size_t)(n + 1) * size);
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_widen(a, b * n * n, n * n, m);
    if (what == SQUARE_CHOLESKY) {
      bool ok = is_complex ? cholesky_c128((ops_c128 *)m, n) : cholesky_f64((double *)m, n);
      for (int64_t i = 0; !ok && i < n; i++) // not positive definite: the result is NaN, as in TensorFlow
        for (int64_t j = 0; j < n; j++)
          if (is_complex)
            ((ops_c128 *)m)[i * n + j] = j > i ? 0 : CMPLX(NAN, 0);
          else
            ((double *)m)[i * n + j] = j > i ? 0 : NAN;
      ops_linalg_narrow(m, y, b * n * n, n * n);
    } else if (what == SQUARE_DETERMINANT) {
      int sign = 1;
      double _Complex product = 1;
      if (is_complex)
        factor_c128((ops_c128 *)m, n, perm, &sign);
      else
        factor_f64((double *)m, n, perm, &sign);
      double real_product = sign, logarithm = 0;
      for (int64_t i = 0; i < n; i++) {
        if (is_complex)
          product *= ((ops_c128 *)m)[i * n + i];
        else
          real_product *= ((double *)m)[i * n + i];
        logarithm += log(is_complex ? cabs(((ops_c128 *)m)[i * n + i]) : fabs(((double *)m)[i * n + i]));
      }
      product *= sign;
      // TensorFlow computes the determinant from its logarithm; if that is not finite, the sign is lost.
      if (isnan(logarithm)) product = real_product = 0;
      if (isinf(logarithm) && logarithm > 0) product = real_product = NAN;
      ops_linalg_narrow(is_complex ? (const void *)&product : (const void *)&real_product, y, b, 1);
    } else {
      memset(unit, 0, (size_t)(n * n) * size);
      for (int64_t i = 0; i < n; i++) {
        if (is_complex)
          ((ops_c128 *)unit)[i * n + i] = 1;
        else
          ((double *)unit)[i * n + i] = 1;
      }
      bool ok = is_complex ? solve_c128((ops_c128 *)m, n, (ops_c128 *)unit, (ops_c128 *)x, n, state->adjoint, perm)
                           : solve_f64((double *)m, n, (double *)unit, (double *)x, n, state->adjoint, perm);
      if (!ok) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Input is not invertible.");
      ops_linalg_narrow(x, y, b * n * n, n * n);
    }
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status cholesky(struct tfc_kernel_ctx *ctx) {
  return square(ctx, SQUARE_CHOLESKY);
}
static tfc_status determinant(struct tfc_kernel_ctx *ctx) {
  return square(ctx, SQUARE_DETERMINANT);
}
static tfc_status inverse(struct tfc_kernel_ctx *ctx) {
  return square(ctx, SQUARE_INVERSE);
}

// Returns which matrix of the operand belongs to matrix i of the common batch shape, to which the operand's batch
// dimensions are broadcast.
static int64_t batch_index(const struct tfc_shape *batch, const struct tfc_shape *operand, int64_t i) {
  int64_t at = 0, step = 1;
  for (int d = batch->rank - 1; d >= 0; d--) {
    int e = d - (batch->rank - operand->rank);
    int64_t x = i % batch->dims[d];
    i /= batch->dims[d];
    if (e < 0) continue;
    if (operand->dims[e] != 1) at += x * step;
    step *= operand->dims[e];
  }
  return at;
}

// Writes a triangular matrix that is given by its bands [count, n] as the whole matrix [n, n]. The diagonal is the
// first band of a lower matrix and the last of an upper one. Element j of every band belongs to row j of the matrix.
static void spread_bands(const char *bands, int64_t count, int64_t n, bool lower, size_t size, char *matrix) {
  memset(matrix, 0, (size_t)(n * n) * size);
  for (int64_t k = 0; k < count; k++)
    for (int64_t j = 0; j < n; j++) {
      const int64_t column = lower ? j - k : j + count - 1 - k;
      if (column >= 0 && column < n)
        memcpy(matrix + (size_t)(j * n + column) * size, bands + (size_t)(k * n + j) * size, size);
    }
}

enum system { SYSTEM_SQUARE, SYSTEM_TRIANGULAR, SYSTEM_BANDED };
static tfc_status solve_system(struct tfc_kernel_ctx *ctx, enum system what) {
  const bool triangular = what != SYSTEM_SQUARE, banded = what == SYSTEM_BANDED;
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  const struct solve_state *state = ctx->state;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int64_t n = 0, batches = 0;
  if (!(OPS_BITS(OPS_FLOATS_COMPLEX) & TFC_TYPE_BIT(a->dtype))) return ops_unsupported_type(ctx, a->dtype);
  if (banded) {
    TFC_KERNEL_CHECK(a->shape.rank >= 2 && a->shape.dims[a->shape.rank - 2] > 0, "In[0] must have bands: %s",
                     tfc_shape_show(&a->shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_KERNEL_CHECK(tfc_tensor_elements(a) > 0 && tfc_tensor_elements(b) > 0, "In[%d] must not be an empty tensor: %s",
                     tfc_tensor_elements(a) > 0,
                     tfc_shape_show(tfc_tensor_elements(a) > 0 ? &b->shape : &a->shape, (char[TFC_SHAPE_TEXT]){0}));
    n = a->shape.dims[a->shape.rank - 1];
  } else {
    TFC_RETURN_IF_ERROR(check_square(a, &n, &batches));
  }
  const int64_t bands = banded ? a->shape.dims[a->shape.rank - 2] : 0;
  TFC_KERNEL_CHECK(b->shape.rank >= 2 && b->shape.dims[b->shape.rank - 2] == n,
                   "Input matrix and rhs are incompatible: %lld rows", (long long)n);
  int64_t m = b->shape.dims[b->shape.rank - 1];
  struct tfc_shape ba = a->shape, bb = b->shape, batch, shape;
  ba.rank -= 2;
  bb.rank -= 2;
  TFC_KERNEL_CHECK(triangular || tfc_shape_equal(&ba, &bb), "All input tensors must have the same outer dimensions");
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&ba, &bb, &batch));
  shape = batch;
  shape.dims[shape.rank++] = n;
  shape.dims[shape.rank++] = m;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &shape, &y));
  bool is_complex = tfc_dtype_is_complex(a->dtype);
  size_t size = is_complex ? 16 : 8;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(n * n + 2 * n * m + 2 * n + 2 + bands * n) * size, &held));
  char *matrix = held->data, *rhs = matrix + (size_t)(n * n) * size, *x = rhs + (size_t)(n * m) * size;
  char *work = x + (size_t)(n * m) * size;
  int64_t *perm = (int64_t *)(work + (size_t)(n + 1) * size);
  char *band = work + (size_t)(2 * n + 2) * size;
  batches = tfc_shape_elements(&batch);
  for (int64_t i = 0; i < batches; i++) {
    if (banded) {
      ops_linalg_widen(a, batch_index(&batch, &ba, i) * bands * n, bands * n, band);
      spread_bands(band, bands, n, state->lower, size, matrix);
    } else {
      ops_linalg_widen(a, batch_index(&batch, &ba, i) * n * n, n * n, matrix);
    }
    ops_linalg_widen(b, batch_index(&batch, &bb, i) * n * m, n * m, rhs);
    bool ok;
    if (triangular) {
      ok = is_complex
               ? solve_triangle_c128((ops_c128 *)matrix, n, (ops_c128 *)rhs, m, state->lower, state->adjoint, false)
               : solve_triangle_f64((double *)matrix, n, (double *)rhs, m, state->lower, state->adjoint, false);
      ops_linalg_narrow(rhs, y, i * n * m, n * m);
    } else {
      ok = is_complex ? solve_c128((ops_c128 *)matrix, n, (ops_c128 *)rhs, (ops_c128 *)x, m, state->adjoint, perm)
                      : solve_f64((double *)matrix, n, (double *)rhs, (double *)x, m, state->adjoint, perm);
      ops_linalg_narrow(x, y, i * n * m, n * m);
    }
    if (!ok && (!triangular || banded)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Input matrix is not invertible.");
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status matrix_solve(struct tfc_kernel_ctx *ctx) {
  return solve_system(ctx, SYSTEM_SQUARE);
}
static tfc_status triangular_solve(struct tfc_kernel_ctx *ctx) {
  return solve_system(ctx, SYSTEM_TRIANGULAR);
}
static tfc_status banded_solve(struct tfc_kernel_ctx *ctx) {
  return solve_system(ctx, SYSTEM_BANDED);
}

// --- Shapes and costs ------------------------------------------------------------------------------------------------
static tfc_status shape_square(struct tfc_shape_ctx *ctx) {
  return ops_with_square(ctx, 0, &ctx->outputs[0]);
}
static tfc_status shape_determinant(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a;
  TFC_RETURN_IF_ERROR(ops_with_square(ctx, 0, &a));
  if (a.rank >= 2) a.rank -= 2;
  ctx->outputs[0] = a;
  return NULL;
}
static tfc_status shape_solve(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a, b, batch;
  TFC_RETURN_IF_ERROR(ops_with_square(ctx, 0, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 2, &b));
  const bool same = !tfc_str_ends(ctx->node->op, "TriangularSolve"); // MatrixSolve does not broadcast
  if ((a.rank < 0 && b.rank < 0) || (!same && (a.rank < 0 || b.rank < 0))) return NULL;
  if (a.rank < 0) a = tfc_shape_unknown_of_rank(b.rank);
  if (b.rank < 0) b = tfc_shape_unknown_of_rank(a.rank);
  int64_t n, m = b.dims[b.rank - 1];
  TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[a.rank - 1], b.dims[b.rank - 2], &n));
  a.rank -= 2;
  b.rank -= 2;
  if (same)
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&a, &b, &batch));
  else
    TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&a, &b, &batch));
  batch.dims[batch.rank++] = n;
  batch.dims[batch.rank++] = m;
  ctx->outputs[0] = batch;
  return NULL;
}

// --- Gradients -----------------------------------------------------------------------------------------------------
static struct tfc_output product(struct tfc_grad_ctx *g, struct tfc_output a, bool adj_a, struct tfc_output b,
                                 bool adj_b) {
  struct tfc_attr attrs[2] = {tfc_attr_bool("adj_x", adj_a), tfc_attr_bool("adj_y", adj_b)};
  return tfc_add(g->builder, "BatchMatMulV2", "", (struct tfc_output[]){a, b}, 2, attrs, 2);
}
static struct tfc_output band_part(struct tfc_grad_ctx *g, struct tfc_output x, int64_t lower, int64_t upper) {
  return grad_op3(g, "MatrixBandPart", x, grad_int(g, TFC_INT64, lower), grad_int(g, TFC_INT64, upper));
}
static struct tfc_output adjoint_of(struct tfc_grad_ctx *g, struct tfc_output x) {
  // Exchanges the last two dimensions and conjugates.
  struct tfc_builder *b = g->builder;
  struct tfc_output rank = grad_op1(g, "Rank", x), one = tfc_add_i32(b, 1), two = tfc_add_i32(b, 2);
  struct tfc_output less_one = g_sub(g, rank, one), less_two = g_sub(g, rank, two);
  struct tfc_output parts[2] = {grad_op3(g, "Range", tfc_add_i32(b, 0), less_two, one),
                                grad_pack(g, (struct tfc_output[]){less_one, less_two}, 2, 0)};
  return grad_op2(g, "ConjugateTranspose", x, grad_concat(g, parts, 2, tfc_add_i32(b, 0)));
}
OPS_GRADIENT(MatrixInverse) { // -Y' (G Y'); with the attribute adjoint -Y (G' Y)
  bool adjoint = grad_attr_bool(g, "adjoint", false);
  g->grad_inputs[0] = g_neg(g, product(g, Y, !adjoint, product(g, G, adjoint, Y, !adjoint), false));
  return NULL;
}
OPS_GRADIENT(MatrixDeterminant) {
  struct tfc_attr adjoint = tfc_attr_bool("adjoint", true);
  struct tfc_output inverse_adjoint =
      tfc_add(g->builder, "MatrixInverse", "", &(struct tfc_output){X.node, X.index}, 1, &adjoint, 1);
  struct tfc_output shape[2] = {grad_shape(g, Y, g->output_shapes[0], TFC_INT32),
                                tfc_add_i32_vector(g->builder, (int32_t[]){1, 1}, 2)};
  struct tfc_output factor = g_reshape(g, g_mul(g, G, Y), grad_concat(g, shape, 2, tfc_add_i32(g->builder, 0)));
  g->grad_inputs[0] = g_mul(g, factor, inverse_adjoint);
  return NULL;
}
OPS_GRADIENT(Cholesky) {
  struct tfc_output l = Y;
  struct tfc_output diagonal = grad_op1(g, "OnesLike", grad_op1(g, "MatrixDiagPart", l));
  struct tfc_output unit = grad_op1(g, "MatrixDiag", diagonal);
  struct tfc_output l_inverse = grad_op2(g, "MatrixTriangularSolve", l, unit);
  struct tfc_output middle = product(g, l, true, G, false);
  struct tfc_output half = g_mul(g, grad_const(g, l, 0.5), grad_op1(g, "MatrixDiagPart", middle));
  middle = band_part(g, grad_op2(g, "MatrixSetDiag", middle, half), -1, 0);
  struct tfc_output ga = product(g, product(g, l_inverse, true, middle, false), false, l_inverse, false);
  ga = g_add(g, ga, adjoint_of(g, ga));
  g->grad_inputs[0] = g_mul(g, ga, grad_const(g, l, 0.5));
  return NULL;
}
static struct tfc_output minus_outer(struct tfc_grad_ctx *g, struct tfc_output gb, bool adjoint) {
  return g_neg(g, adjoint ? product(g, Y, false, gb, true) : product(g, gb, false, Y, true));
}
OPS_GRADIENT(MatrixSolve) {
  bool adjoint = grad_attr_bool(g, "adjoint", false);
  struct tfc_attr attr = tfc_attr_bool("adjoint", !adjoint);
  struct tfc_output in[2] = {X, G};
  g->grad_inputs[1] = tfc_add(g->builder, "MatrixSolve", "", in, 2, &attr, 1);
  g->grad_inputs[0] = minus_outer(g, g->grad_inputs[1], adjoint);
  return NULL;
}
OPS_GRADIENT(MatrixTriangularSolve) {
  bool adjoint = grad_attr_bool(g, "adjoint", false), lower = grad_attr_bool(g, "lower", true);
  struct tfc_attr attrs[2] = {tfc_attr_bool("adjoint", !adjoint), tfc_attr_bool("lower", lower)};
  struct tfc_output in[2] = {X, G};
  struct tfc_output gb = tfc_add(g->builder, "MatrixTriangularSolve", "", in, 2, attrs, 2);
  struct tfc_output ga = minus_outer(g, gb, adjoint);
  ga = lower ? band_part(g, ga, -1, 0) : band_part(g, ga, 0, -1);
  g->grad_inputs[0] = ga;
  g->grad_inputs[1] = gb;
  const struct tfc_shape *sa = g->input_shapes[0], *sb = g->input_shapes[1];
  struct tfc_shape ba = *sa, bb = *sb;
  ba.rank -= 2;
  bb.rank -= 2;
  if (ba.rank >= 0 && bb.rank >= 0 && tfc_shape_is_static(&ba) && tfc_shape_equal(&ba, &bb)) return NULL;
  struct tfc_output shapes[2] = {grad_shape(g, X, sa, TFC_INT32), grad_shape(g, grad_in(g, 1), sb, TFC_INT32)};
  struct tfc_output axes =
      grad_op2(g, "BroadcastGradientArgs", grad_range(g, shapes[0], 0, -2), grad_range(g, shapes[1], 0, -2));
  for (int i = 0; i < 2; i++) {
    struct tfc_output sum = grad_sum(g, g->grad_inputs[i], (struct tfc_output){axes.node, i}, false);
    g->grad_inputs[i] = g_reshape(g, sum, shapes[i]);
  }
  return NULL;
}

// --- Cross -----------------------------------------------------------------------------------------------------------
#define CROSS(t, ...)                                                                                                  \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      ops_##t##_u u[3], v[3];                                                                                          \
      for (int k = 0; k < 3; k++) {                                                                                    \
        u[k] = (ops_##t##_u)OPS_GET_##t(((const ops_##t *)a->data)[3 * i + k]);                                        \
        v[k] = (ops_##t##_u)OPS_GET_##t(((const ops_##t *)b->data)[3 * i + k]);                                        \
      }                                                                                                                \
      for (int k = 0; k < 3; k++) {                                                                                    \
        int p = (k + 1) % 3, q = (k + 2) % 3;                                                                          \
        ((ops_##t *)y->data)[3 * i + k] = OPS_PUT_##t(ROUND_##t(u[p] * v[q]) - ROUND_##t(u[q] * v[p]));                \
      }                                                                                                                \
    }                                                                                                                  \
    return NULL;
#define ROUND_f32(v) (v)
#define ROUND_f64(v) (v)
#define ROUND_f16(v) OPS_ROUND_f16(v)
#define ROUND_b16(v) OPS_ROUND_b16(v)
#define ROUND_i8(v) (v)
#define ROUND_i16(v) (v)
#define ROUND_i32(v) (v)
#define ROUND_i64(v) (v)
#define ROUND_u8(v) (v)
#define ROUND_u16(v) (v)
#define ROUND_u32(v) (v)
#define ROUND_u64(v) (v)
static tfc_status cross(struct tfc_kernel_ctx *ctx) { // for vectors of 3 elements
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(tfc_shape_equal(&a->shape, &b->shape), "Both inputs must be of same shape");
  TFC_KERNEL_CHECK(a->shape.rank >= 1 && a->shape.dims[a->shape.rank - 1] == 3,
                   "Cross-products are only defined for 3-element vectors.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, a, &y));
  int64_t n = tfc_tensor_elements(a) / 3;
  switch (a->dtype) {
    OPS_REALS(CROSS, ~)
  default: return ops_unsupported_type(ctx, a->dtype);
  }
}
static tfc_status shape_cross(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(ops_shape_merged(ctx));
  struct tfc_shape *s = &ctx->outputs[0];
  if (s->rank < 0) return NULL;
  if (s->rank < 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "vectors are needed, not scalars");
  int64_t three;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(s->dims[s->rank - 1], 3, &three));
  s->dims[s->rank - 1] = three;
  return NULL;
}
OPS_GRADIENT(Cross) {
  g->grad_inputs[0] = grad_op2(g, "Cross", grad_in(g, 1), G);
  g->grad_inputs[1] = grad_op2(g, "Cross", G, X);
  return NULL;
}

// The gradient of B solves the adjoint system with G. The gradient of A's bands consists of the bands of -dB X' or,
// with the attribute adjoint, of -X dB'.
OPS_GRADIENT(BandedTriangularSolve) {
  const bool lower = grad_attr_bool(g, "lower", true), adjoint = grad_attr_bool(g, "adjoint", false);
  struct tfc_attr attrs[2] = {tfc_attr_bool("lower", lower), tfc_attr_bool("adjoint", !adjoint)};
  struct tfc_output in[2] = {X, G}, gb = tfc_add(g->builder, "BandedTriangularSolve", "", in, 2, attrs, 2);
  struct tfc_output left = adjoint ? Y : gb, right = adjoint ? gb : Y;
  struct tfc_attr adj = tfc_attr_bool("adj_y", true);
  struct tfc_output pair[2] = {left, right};
  struct tfc_output full = grad_op1(g, "Neg", tfc_add(g->builder, "BatchMatMulV2", "", pair, 2, &adj, 1));
  struct tfc_output none = tfc_add_i32(g->builder, 0);
  struct tfc_output most = grad_op2(g, "Sub", grad_item(g, grad_op1(g, "Shape", X), -2), tfc_add_i32(g->builder, 1));
  struct tfc_output ends[2] = {lower ? grad_op1(g, "Neg", most) : none, lower ? none : most};
  struct tfc_attr align = tfc_attr_string("align", TFC_STR("LEFT_RIGHT"));
  struct tfc_output band[3] = {full, grad_pack(g, ends, 2, 0), grad_const(g, X, 0)};
  g->grad_inputs[0] = tfc_add(g->builder, "MatrixDiagPartV3", "", band, 3, &align, 1);
  g->grad_inputs[1] = gb;
  return NULL;
}
static tfc_status shape_banded(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a, b, joined;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 2, &b));
  if (a.rank < 0 || b.rank < 0) return NULL;
  int64_t n, m = b.dims[b.rank - 1];
  TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[a.rank - 1], b.dims[b.rank - 2], &n));
  a.rank -= 2, b.rank -= 2;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&a, &b, &joined));
  joined.dims[joined.rank++] = n;
  joined.dims[joined.rank++] = m;
  ctx->outputs[0] = joined;
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ROW(s, run, grad)                                                                                              \
  .types = OPS_BITS(OPS_FLOATS_COMPLEX), .shape = s, .cost = ops_cost_cubic, .prepare = prepare, .kernel = run,        \
  .gradient = gradient_##grad
#define SPD "double[2,2]=[2,0.5,0.5,1]; float[3,3]=[4,1,0,1,3,0.5,0,0.5,2]"
static const struct tfc_op_def linalg_solve_rows[] = {
    {.name = "Cholesky",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {double, float, half, complex64, complex128}",
     ROW(shape_square, cholesky, Cholesky),
     .samples = SPD},
    {.name = "MatrixDeterminant",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {half, float, double, complex64, complex128}",
     ROW(shape_determinant, determinant, MatrixDeterminant),
     .samples = SPD},
    {.name = "MatrixInverse",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "adjoint: bool = false, T: {double, float, half, complex64, complex128}",
     ROW(shape_square, inverse, MatrixInverse),
     .samples = SPD},
    {.name = "MatrixSolve",
     .inputs = "matrix: T, rhs: T",
     .outputs = "output: T",
     .attrs = "adjoint: bool = false, T: {double, float, half, complex64, complex128}",
     ROW(shape_solve, matrix_solve, MatrixSolve),
     .samples = "double[2,2]=[2,0.5,0.5,1], double[2,3]"},
    {.name = "MatrixTriangularSolve",
     .inputs = "matrix: T, rhs: T",
     .outputs = "output: T",
     .attrs = "lower: bool = true, adjoint: bool = false, T: {bfloat16, double, float, half, complex64, complex128}",
     ROW(shape_solve, triangular_solve, MatrixTriangularSolve),
     .samples = "double[2,2]=[2,0.5,0.5,1], double[2,3]; float[2,2]=[2,0.5,0.5,1], float[2,3] {lower=false}"},
    {.name = "BandedTriangularSolve",
     .inputs = "matrix: T, rhs: T",
     .outputs = "output: T",
     .attrs = "lower: bool = true, adjoint: bool = false, T: {double, float, half, complex64, complex128}",
     .types = OPS_BITS(OPS_FLOATS_COMPLEX),
     .shape = shape_banded,
     .cost = ops_cost_cubic,
     .prepare = prepare,
     .kernel = banded_solve,
     .gradient = gradient_BandedTriangularSolve,
     .samples = "double[2,4]=[2,3,2,1,0.5,0.25,1,2], double[4,3]"},
    {.name = "BatchCholesky",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {double, float}",
     ROW(shape_square, cholesky, Cholesky)},
    {.name = "BatchMatrixDeterminant",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {float, double, complex64, complex128}",
     ROW(shape_determinant, determinant, MatrixDeterminant)},
    {.name = "BatchMatrixInverse",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "adjoint: bool = false, T: {double, float}",
     ROW(shape_square, inverse, MatrixInverse)},
    {.name = "BatchMatrixSolve",
     .inputs = "matrix: T, rhs: T",
     .outputs = "output: T",
     .attrs = "adjoint: bool = false, T: {double, float}",
     ROW(shape_solve, matrix_solve, MatrixSolve)},
    {.name = "BatchMatrixTriangularSolve",
     .inputs = "matrix: T, rhs: T",
     .outputs = "output: T",
     .attrs = "lower: bool = true, adjoint: bool = false, T: {double, float}",
     ROW(shape_solve, triangular_solve, MatrixTriangularSolve)},
    {.name = "Cross",
     .inputs = "a: T, b: T",
     .outputs = "product: T",
     .attrs = "T: " OPS_TYPES_REAL,
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_cross,
     .cost = ops_cost_outputs,
     .kernel = cross,
     .gradient = gradient_Cross,
     .samples = "float[4,3], float[4,3]; int32[3], int32[3]"},
};
TFC_REGISTER_OPS(linalg_solve_rows);
