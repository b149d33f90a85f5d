// MatrixSquareRoot and MatrixLogarithm: the principal ones, by the Schur form.
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_grad.h"
#include "runtime/ops/linalg_schur.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"

typedef double _Complex cplx;

// Computes r with r r = t, where both are upper triangular (Björck and Hammarling 1983).
static void triangular_root(int64_t n, const cplx *t, cplx *r) {
  memset(r, 0, (size_t)(n * n) * sizeof *r);
  for (int64_t j = 0; j < n; j++) {
    r[j * n + j] = csqrt(t[j * n + j]);
    for (int64_t i = j - 1; i >= 0; i--) {
      cplx sum = t[i * n + j];
      for (int64_t k = i + 1; k < j; k++) sum -= r[i * n + k] * r[k * n + j];
      r[i * n + j] = sum / (r[i * n + i] + r[j * n + j]);
    }
  }
}

// Computes the logarithm of t, upper triangular, in y. Takes square roots until t is near the identity, where log(1 +
// x) = Σ w x / (1 + p x) over the points p and weights w of Gauss-Legendre quadrature on [0, 1] (Higham, "Functions of
// Matrices", 11.4); then doubles once for each root. `work` [n, n].
static void triangular_logarithm(int64_t n, cplx *t, cplx *y, cplx *work) {
  static const double points[8] = {0.019855071751231884, 0.10166676129318663, 0.2372337950418355, 0.40828267875217510,
                                   0.59171732124782490,  0.7627662049581645,  0.8983332387068134, 0.98014492824876812};
  static const double weights[8] = {0.050614268145188130, 0.11119051722668724, 0.15685332293894364,
                                    0.18134189168918099,  0.18134189168918099, 0.15685332293894364,
                                    0.11119051722668724,  0.050614268145188130};
  enum { MOST_ROOTS = 100 };
  double scale = 1;
  for (int roots = 0; roots < MOST_ROOTS; roots++, scale *= 2) {
    double norm = 0;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = i; j < n; j++) norm = fmax(norm, cabs(t[i * n + j] - (i == j)));
    if (!(norm * (double)n > 0.25)) break;
    triangular_root(n, t, work);
    memcpy(t, work, (size_t)(n * n) * sizeof *t);
  }
  for (int64_t i = 0; i < n; i++) t[i * n + i] -= 1; // t becomes x
  memset(y, 0, (size_t)(n * n) * sizeof *y);
  for (int k = 0; k < 8; k++)
    for (int64_t j = 0; j < n; j++) // column j of (1 + p x)⁻¹ x, by back substitution
      for (int64_t i = j; i >= 0; i--) {
        cplx sum = t[i * n + j];
        for (int64_t m = i + 1; m <= j; m++) sum -= points[k] * t[i * n + m] * work[m * n + j];
        work[i * n + j] = sum / (1 + points[k] * t[i * n + i]);
        y[i * n + j] += weights[k] * scale * work[i * n + j];
      }
}

// Computes a = u f(t) u*; `work` [n, n].
static void back(int64_t n, const cplx *u, const cplx *f, cplx *work, cplx *a) {
  memset(work, 0, (size_t)(n * n) * sizeof *work);
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++)
      for (int64_t j = k; j < n; j++) work[i * n + j] += u[i * n + k] * f[k * n + j];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t k = 0; k < n; k++) a[i * n + j] += work[i * n + k] * conj(u[j * n + k]);
}

// Sets the result for a real matrix to NaN if it has imaginary parts that are more than rounding: then no real result
// exists.
static void check_real(int64_t n, cplx *a) {
  double real = 0, other = 0;
  for (int64_t i = 0; i < n * n; i++) {
    real = fmax(real, fabs(creal(a[i])));
    other = fmax(other, fabs(cimag(a[i])));
  }
  for (int64_t i = 0; i < n * n && other > 1e-6 * real; i++) a[i] = NAN;
}

static tfc_status of_matrices(struct tfc_kernel_ctx *ctx, bool root) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const int rank = x->shape.rank;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  TFC_KERNEL_CHECK(rank >= 2, "Input tensor 0 must have rank >= 2, got %d", rank);
  const int64_t n = x->shape.dims[rank - 1], all = tfc_tensor_elements(x);
  TFC_KERNEL_CHECK(n == x->shape.dims[rank - 2], "Input matrix must be square.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (all == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(4 * n * n) * sizeof(cplx), &held));
  cplx *t = held->data, *u = t + n * n, *f = u + n * n, *work = f + n * n;
  for (int64_t at = 0; at < all; at += n * n) {
    ops_linalg_to_complex(x, at, n * n, t);
    if (!ops_linalg_schur(n, t, u)) {
      for (int64_t i = 0; i < n * n; i++) t[i] = CMPLX(NAN, NAN);
    } else if (root) {
      triangular_root(n, t, f);
      back(n, u, f, work, t);
      if (!tfc_dtype_is_complex(x->dtype)) check_real(n, t);
    } else {
      triangular_logarithm(n, t, f, work);
      back(n, u, f, work, t);
    }
    ops_linalg_from_complex(t, y, at, n * n);
  }
  tfc_buffer_release(held);
  return NULL;
}
static tfc_status square_root(struct tfc_kernel_ctx *ctx) {
  return of_matrices(ctx, true);
}
static tfc_status logarithm(struct tfc_kernel_ctx *ctx) {
  return of_matrices(ctx, false);
}
static tfc_status shape_square(struct tfc_shape_ctx *ctx) {
  return ops_with_square(ctx, 0, &ctx->outputs[0]);
}

// Returns the Kronecker product of a and b, both [..., n, n]: [..., n n, n n].
static struct tfc_output kronecker(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b,
                                   struct tfc_output shape) {
  struct tfc_output left = grad_op2(g, "ExpandDims", grad_op2(g, "ExpandDims", a, tfc_add_i32(g->builder, -2)),
                                    tfc_add_i32(g->builder, -1)); // [..., n, 1, n, 1]
  struct tfc_output right = grad_op2(g, "ExpandDims", grad_op2(g, "ExpandDims", b, tfc_add_i32(g->builder, -3)),
                                     tfc_add_i32(g->builder, -2)); // [..., 1, n, 1, n]
  return g_reshape(g, g_mul(g, left, right), shape);
}
// The gradient follows from r dr + dr r = da, which is (1 ⊗ rᵀ + r ⊗ 1) vec(drᵀ) = vec(daᵀ).
OPS_GRADIENT(MatrixSquareRoot) {
  struct tfc_builder *b = g->builder;
  struct tfc_output r = Y, shape = grad_op1(g, "Shape", r), axis = tfc_add_i32(b, 0);
  struct tfc_output outer = grad_range(g, shape, 0, -2), n = grad_range(g, shape, -1, INT64_MAX),
                    square = g_mul(g, n, n);
  struct tfc_output large = grad_concat(g, (struct tfc_output[]){outer, square, square}, 3, axis);
  struct tfc_output column =
      grad_concat(g, (struct tfc_output[]){outer, square, tfc_add_i32_vector(b, (int32_t[]){1}, 1)}, 3, axis);
  struct tfc_output unit = grad_op2(g, "MatrixSetDiag", grad_op1(g, "ZerosLike", r),
                                    grad_op1(g, "OnesLike", grad_op1(g, "MatrixDiagPart", r)));
  struct tfc_output sum =
      g_add(g, kronecker(g, unit, grad_swapped(g, "Transpose", r), large), kronecker(g, r, unit, large));
  struct tfc_output vec = g_reshape(g, grad_swapped(g, "Transpose", G), column);
  g->grad_inputs[0] = grad_swapped(g, "Transpose", g_reshape(g, grad_op2(g, "MatrixSolve", sum, vec), shape));
  return NULL;
}

static const struct tfc_op_def linalg_function_rows[] = {
    {.name = "MatrixSquareRoot",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {double, float, half, complex64, complex128}",
     .types = OPS_BITS(OPS_WIDE_FLOATS) | OPS_BITS(OPS_COMPLEX),
     .shape = shape_square,
     .cost = ops_cost_cubic,
     .kernel = square_root,
     .gradient = gradient_MatrixSquareRoot,
     .samples = "double[2,2]=[2,0.5,0.25,1]; double[1,3,3]=[4,0.5,0.5,1,3,0.25,0.5,1,4]"},
    {.name = "MatrixLogarithm",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: {complex64, complex128}",
     .types = OPS_BITS(OPS_COMPLEX),
     .shape = shape_square,
     .cost = ops_cost_cubic,
     .kernel = logarithm,
     .samples = "complex128[2,2]"},
};
TFC_REGISTER_OPS(linalg_function_rows);
