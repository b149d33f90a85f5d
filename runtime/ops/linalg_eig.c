// Eig: eigenvalues and eigenvectors of any square matrix, as complex numbers, by the Schur form. Eigenvalues ascend by
// absolute value; eigenvectors have unit length.
#include <complex.h>
#include <float.h>
#include <math.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_eig.h"
#include "runtime/ops/linalg_grad.h"
#include "runtime/ops/linalg_schur.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"

typedef double _Complex cplx;

// Column k of x [n, n] becomes the eigenvector of t (upper triangular) for t[k, k], not normalised.
static void triangular_vectors(int64_t n, const cplx *t, cplx *x) {
  double norm = 0;
  for (int64_t i = 0; i < n * n; i++) norm += creal(t[i]) * creal(t[i]) + cimag(t[i]) * cimag(t[i]);
  norm = sqrt(norm);
  for (int64_t k = n - 1; k >= 0; k--) {
    for (int64_t i = k; i < n; i++) x[i * n + k] = i == k;
    for (int64_t i = k - 1; i >= 0; i--) {
      cplx sum = -t[i * n + k], apart = t[i * n + i] - t[k * n + k];
      for (int64_t j = i + 1; j < k; j++) sum -= t[i * n + j] * x[j * n + k];
      x[i * n + k] = sum / (apart == 0 ? DBL_EPSILON * norm : apart);
    }
  }
}

static void exchange(int64_t n, cplx *values, cplx *v, int64_t i, int64_t k) {
  cplx t = values[i];
  values[i] = values[k], values[k] = t;
  for (int64_t r = 0; r < n; r++) t = v[r * n + i], v[r * n + i] = v[r * n + k], v[r * n + k] = t;
}
// Sorts the eigenvalues by absolute value, as the solver that TensorFlow uses for complex matrices does. (Its solver
// for real matrices gives them in no order.)
static void sort(int64_t n, cplx *values, cplx *v) {
  for (int64_t i = 0; i < n; i++) {
    int64_t least = i;
    for (int64_t k = i + 1; k < n; k++)
      if (cabs(values[k]) < cabs(values[least])) least = k;
    if (least != i) exchange(n, values, v, i, least);
  }
}
// Puts the results of a real matrix into their exact form: eigenvalues and vectors are real, or they are conjugate
// pairs in neighbouring places, the one above the real axis first.
static void pair(int64_t n, cplx *values, cplx *v) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, cabs(values[i]));
  const double tiny = 64 * (double)n * DBL_EPSILON * most;
  for (int64_t i = 0; i < n; i++) {
    if (fabs(cimag(values[i])) <= tiny) {
      cplx turn = 1;
      double largest = 0;
      for (int64_t r = 0; r < n; r++)
        if (cabs(v[r * n + i]) > largest * 1.000001) largest = cabs(v[r * n + i]), turn = conj(v[r * n + i]) / largest;
      if (creal(turn) < 0) turn = -turn;
      for (int64_t r = 0; r < n; r++) v[r * n + i] = creal(v[r * n + i] * turn);
      values[i] = creal(values[i]);
      continue;
    }
    int64_t other = -1;
    for (int64_t k = i + 1; k < n; k++)
      if (other < 0 || cabs(values[k] - conj(values[i])) < cabs(values[other] - conj(values[i]))) other = k;
    if (other < 0) return; // rounding made one of them real
    if (other != i + 1) exchange(n, values, v, i + 1, other);
    if (cimag(values[i]) < 0) exchange(n, values, v, i, i + 1);
    values[i + 1] = conj(values[i]);
    for (int64_t r = 0; r < n; r++) v[r * n + i + 1] = conj(v[r * n + i]);
    i++;
  }
}

// t holds the matrix; u and x [n, n] are scratch; v gets the eigenvectors.
static bool eigen(int64_t n, cplx *t, cplx *u, cplx *x, cplx *values, cplx *v) {
  if (!ops_linalg_schur(n, t, u)) return false;
  for (int64_t i = 0; i < n; i++) values[i] = t[i * (n + 1)];
  triangular_vectors(n, t, x);
  for (int64_t c = 0; c < n; c++) {
    double length = 0;
    for (int64_t i = 0; i < n; i++) {
      cplx sum = 0;
      for (int64_t k = 0; k <= c; k++) sum += u[i * n + k] * x[k * n + c];
      v[i * n + c] = sum;
      length += creal(sum) * creal(sum) + cimag(sum) * cimag(sum);
    }
    for (int64_t i = 0; i < n && length > 0; i++) v[i * n + c] /= sqrt(length);
  }
  sort(n, values, v);
  return true;
}

// input [..., n, n] -> e [..., n], v [..., n, n]
static tfc_status eig(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  const struct tfc_shape *shape = &a->shape;
  const int last = shape->rank - 1;
  struct tfc_tensor *e = NULL, *v = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(shape->rank >= 2, "Input tensor 0 must have rank >= 2, got %d", shape->rank);
  const int64_t n = shape->dims[last];
  TFC_KERNEL_CHECK(n == shape->dims[last - 1], "Input matrix must be square.");
  const bool vectors = tfc_node_attr_bool(ctx->graph, ctx->node, "compute_v", true);
  const tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_KERNEL_CHECK((type == TFC_COMPLEX128) == (a->dtype == TFC_DOUBLE || a->dtype == TFC_COMPLEX128),
                   "eigenvalues of %s cannot be %s", tfc_dtype_name(a->dtype), tfc_dtype_name(type));
  struct tfc_shape values = *shape, none = TFC_SHAPE(0);
  values.rank--;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &values, &e));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, type, vectors ? shape : &none, &v));
  if (tfc_tensor_elements(a) == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(4 * n * n + n) * sizeof(cplx), &held));
  cplx *t = held->data, *u = t + n * n, *x = u + n * n, *vs = x + n * n, *es = vs + n * n;
  for (int64_t b = 0; b < tfc_tensor_elements(e) / n; b++) {
    ops_linalg_to_complex(a, b * n * n, n * n, t);
    if (n == 1 && tfc_dtype_is_complex(a->dtype)) { // the only element is the eigenvalue, even if it is not finite
      es[0] = t[0];
      vs[0] = 1;
    } else if (!eigen(n, t, u, x, es, vs)) {
      s = tfc_status_make(TFC_INVALID_ARGUMENT,
                          "Eigen decomposition was not successful. The input might not be valid.");
      break;
    }
    if (!tfc_dtype_is_complex(a->dtype)) pair(n, es, vs);
    ops_linalg_from_complex(es, e, b * n, n);
    if (vectors) ops_linalg_from_complex(vs, v, b * n * n, n * n);
  }
  tfc_buffer_release(held);
  return s;
}
tfc_status ops_linalg_shape_eig(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &a));
  bool vectors = tfc_node_attr_bool(ctx->graph, ctx->node, "compute_v", true);
  if (!vectors) ctx->outputs[1] = TFC_SHAPE(0);
  if (a.rank < 0) return NULL;
  int64_t n;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[a.rank - 1], a.dims[a.rank - 2], &n));
  a.dims[a.rank - 1] = a.dims[a.rank - 2] = n;
  if (vectors) ctx->outputs[1] = a;
  a.rank--;
  ctx->outputs[0] = a;
  return NULL;
}

// The gradient is v*⁻¹ (diag(ge) + f̄ ∘ (v* gv - v* v diag(Re(v* gv)))) v*, where f is 1 / (e_i - e_j) off the
// diagonal.
OPS_GRADIENT(Eig) {
  struct tfc_output v = grad_out(g, 1), inside = grad_op1(g, "MatrixDiag", G);
  if (grad_attr_bool(g, "compute_v", true)) {
    struct tfc_output e = Y, rows = grad_op2(g, "ExpandDims", e, tfc_add_i32(g->builder, -2));
    struct tfc_output apart = g_sub(g, rows, grad_op2(g, "ExpandDims", e, tfc_add_i32(g->builder, -1)));
    struct tfc_output f = g_add(g, g_mul(g, apart, apart), grad_const(g, apart, 1e-20));
    f = g_mul(g, apart, grad_op1(g, "Reciprocal", f));
    f = grad_op1(g, "Conj", grad_op2(g, "MatrixSetDiag", f, grad_op1(g, "ZerosLike", e)));
    struct tfc_output transposed = grad_matmul(g, v, true, g->grad_outputs[1], false);
    struct tfc_attr real[2] = {tfc_attr_type("T", grad_type(g, v)),
                               tfc_attr_type("Tout", grad_type(g, v) == TFC_COMPLEX64 ? TFC_FLOAT : TFC_DOUBLE)};
    struct tfc_output part = tfc_add(g->builder, "Real", "", &transposed, 1, real, 2);
    part = grad_op1(g, "MatrixDiag", grad_op1(g, "MatrixDiagPart", grad_cast(g, part, grad_type(g, v))));
    struct tfc_output own = grad_matmul(g, grad_matmul(g, v, true, v, false), false, part, false);
    inside = g_add(g, inside, g_mul(g, f, g_sub(g, transposed, own)));
  } else {
    struct tfc_attr attrs[2] = {tfc_attr_bool("compute_v", true), tfc_attr_type("Tout", grad_type(g, Y))};
    v = tfc_add(g->builder, "Eig", "", (struct tfc_output[]){X}, 1, attrs, 2);
    v.index = 1;
  }
  struct tfc_output vt = grad_adjoint(g, v);
  struct tfc_output ga = grad_op2(g, "MatrixSolve", vt, grad_matmul(g, inside, false, vt, false));
  g->grad_inputs[0] = grad_cast(g, ga, grad_type(g, X));
  return NULL;
}

static const struct tfc_op_def linalg_eig_rows[] = {
    {.name = "Eig",
     .inputs = "input: T",
     .outputs = "e: Tout, v: Tout",
     .attrs = "compute_v: bool = true, T: {float, double, complex64, complex128}, Tout: {complex64, complex128}",
     .types = OPS_BITS(OPS_WIDE_FLOATS) | OPS_BITS(OPS_COMPLEX),
     .shape = ops_linalg_shape_eig,
     .cost = ops_cost_cubic,
     .kernel = eig,
     .gradient = gradient_Eig,
     .samples = "double[2,2]=[2,0.5,0.25,1] {Tout=complex128}; double[3,3]=[2,0.5,0.5,1,3,0.25,0.5,1,4] "
                "{compute_v=false, Tout=complex128}"},
};
TFC_REGISTER_OPS(linalg_eig_rows);
