// Qr: A = Q R, where Q has orthonormal columns and R is upper triangular, by Householder reflections.
//
// The signs are those of LAPACK: a reflection gives a column's first element the opposite sign, so R's diagonal is
// negative where the column's element was not. Real types are computed in float64, complex ones in complex128, and
// rounded once.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

#define CONJ_f64(v) (v)
#define CONJ_c128(v) conj(v)
#define REAL_f64(v) (v)
#define REAL_c128(v) creal(v)
#define IMAG_f64(v) 0.0
#define IMAG_c128(v) cimag(v)
// Replaces a [m, n] (row-major) by R. q [m, k] must be the identity and becomes Q; v [m] and scale [n] are scratch.
#define QR(t)                                                                                                          \
  static void reflect_##t(ops_##t *a, int64_t m, int64_t n, int64_t row, int64_t from, const ops_##t *v,               \
                          ops_##t scale) { /* A := (1 - scale v v*) A, columns `from` on */                            \
    for (int64_t j = from; j < n; j++) {                                                                               \
      ops_##t s = 0;                                                                                                   \
      for (int64_t i = row; i < m; i++) s += CONJ_##t(v[i]) * a[i * n + j];                                            \
      s *= scale;                                                                                                      \
      for (int64_t i = row; i < m; i++) a[i * n + j] -= s * v[i];                                                      \
    }                                                                                                                  \
  }                                                                                                                    \
  static void qr_##t(ops_##t *a, int64_t m, int64_t n, ops_##t *q, int64_t k, ops_##t *vs, ops_##t *scales) {          \
    int64_t count = m < n ? m : n;                                                                                     \
    for (int64_t c = 0; c < count; c++) {                                                                              \
      ops_##t *v = vs + c * m, first = a[c * n + c];                                                                   \
      double tail = 0;                                                                                                 \
      for (int64_t i = c + 1; i < m; i++) {                                                                            \
        double re = (double)REAL_##t(a[i * n + c]), im = (double)IMAG_##t(a[i * n + c]);                               \
        tail += re * re + im * im;                                                                                     \
      }                                                                                                                \
      double re = (double)REAL_##t(first), im = (double)IMAG_##t(first);                                               \
      scales[c] = 0;                                                                                                   \
      if (tail <= 0 && im == 0) continue; /* nothing below to be turned up */                                          \
      double beta = sqrt(re * re + im * im + tail);                                                                    \
      if (re >= 0) beta = -beta;                                                                                       \
      v[c] = 1;                                                                                                        \
      for (int64_t i = c + 1; i < m; i++) v[i] = a[i * n + c] / (first - beta);                                        \
      scales[c] = CONJ_##t((beta - first) / beta);                                                                     \
      a[c * n + c] = beta;                                                                                             \
      for (int64_t i = c + 1; i < m; i++) a[i * n + c] = 0;                                                            \
      reflect_##t(a, m, n, c, c + 1, v, scales[c]);                                                                    \
    }                                                                                                                  \
    for (int64_t c = count - 1; c >= 0; c--)                                                                           \
      if (scales[c] != 0) reflect_##t(q, m, k, c, 0, vs + c * m, CONJ_##t(scales[c]));                                 \
  }
QR(f64)
QR(c128)

// a [..., m, n] -> q [..., m, k], r [..., k, n]; k = min(m, n), or m with full_matrices
static tfc_status qr(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  const struct tfc_shape *s = &a->shape;
  struct tfc_tensor *q = NULL, *r = NULL;
  struct tfc_buffer *held = NULL;
  TFC_KERNEL_CHECK(s->rank >= 2, "Input tensor 0 must have rank >= 2, got %d", s->rank);
  int64_t m = s->dims[s->rank - 2], n = s->dims[s->rank - 1], count = m < n ? m : n, batches = 1;
  int64_t k = tfc_node_attr_bool(ctx->graph, ctx->node, "full_matrices", false) ? m : count;
  for (int d = 0; d < s->rank - 2; d++) batches *= s->dims[d];
  struct tfc_shape qs = *s, rs = *s;
  qs.dims[s->rank - 1] = k;
  rs.dims[s->rank - 2] = k;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &qs, &q));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, a->dtype, &rs, &r));
  bool is_complex = tfc_dtype_is_complex(a->dtype);
  size_t size = is_complex ? 16 : 8;
  if (batches == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(m * n + m * k + m * count + count + 1) * size, &held));
  char *matrix = held->data, *unit = matrix + (size_t)(m * n) * size, *vs = unit + (size_t)(m * k) * size;
  char *scales = vs + (size_t)(m * count) * size;
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_widen(a, b * m * n, m * n, matrix);
    memset(unit, 0, (size_t)(m * k) * size);
    for (int64_t i = 0; i < k; i++) {
      if (is_complex)
        ((ops_c128 *)unit)[i * k + i] = 1;
      else
        ((double *)unit)[i * k + i] = 1;
    }
    if (is_complex)
      qr_c128((ops_c128 *)matrix, m, n, (ops_c128 *)unit, k, (ops_c128 *)vs, (ops_c128 *)scales);
    else
      qr_f64((double *)matrix, m, n, (double *)unit, k, (double *)vs, (double *)scales);
    ops_linalg_narrow(unit, q, b * m * k, m * k);
    ops_linalg_narrow(matrix, r, b * k * n, k * n);
  }
  tfc_buffer_release(held);
  return NULL;
}

static tfc_status shape_qr(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &a));
  if (a.rank < 0) return NULL;
  int64_t m = a.dims[a.rank - 2], n = a.dims[a.rank - 1];
  int64_t k = tfc_node_attr_bool(ctx->graph, ctx->node, "full_matrices", false) ? m : TFC_DIM_UNKNOWN;
  if (k < 0 && ((m >= 0 && n >= 0) || m == 0 || n == 0)) k = m == 0 || n == 0 ? 0 : m < n ? m : n;
  ctx->outputs[0] = ctx->outputs[1] = a;
  ctx->outputs[0].dims[a.rank - 1] = k;
  ctx->outputs[1].dims[a.rank - 2] = k;
  return NULL;
}
static void cost_qr(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *a = &inputs[0];
  double k = a->rank < 2
                 ? 0
                 : (double)(a->dims[a->rank - 1] < a->dims[a->rank - 2] ? a->dims[a->rank - 1] : a->dims[a->rank - 2]);
  out->flops = 4 * (double)tfc_shape_elements(a) * k;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

// --- Gradient --------------------------------------------------------------------------------------------------------
// The gradient of Qr follows Roberts and Roberts, "QR and LQ decomposition matrix backpropagation algorithms" (2020).
static struct tfc_output product(struct tfc_grad_ctx *g, struct tfc_output a, bool adj_a, struct tfc_output b,
                                 bool adj_b) {
  struct tfc_attr attrs[2] = {tfc_attr_bool("adj_x", adj_a), tfc_attr_bool("adj_y", adj_b)};
  return tfc_add(g->builder, "BatchMatMulV2", "", (struct tfc_output[]){a, b}, 2, attrs, 2);
}
static struct tfc_output adjoint(struct tfc_grad_ctx *g, struct tfc_output x, int rank) {
  int64_t order[TFC_MAX_RANK];
  for (int d = 0; d < rank; d++) order[d] = d;
  order[rank - 1] = rank - 2, order[rank - 2] = rank - 1;
  return grad_op2(g, "ConjugateTranspose", x, grad_ints(g, TFC_INT32, order, (uint32_t)rank));
}
static struct tfc_output times_inverse_adjoint(struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output r,
                                               int rank) {
  struct tfc_attr lower = tfc_attr_bool("lower", false);
  struct tfc_output in[2] = {r, adjoint(g, x, rank)};
  return adjoint(g, tfc_add(g->builder, "MatrixTriangularSolve", "", in, 2, &lower, 1), rank);
}
// For m >= n, computes dA from Q, R and their gradients.
static struct tfc_output deep(struct tfc_grad_ctx *g, struct tfc_output q, struct tfc_output r, struct tfc_output dq,
                              struct tfc_output dr, int rank) {
  struct tfc_output qdq = product(g, q, true, dq, false), rdr = product(g, r, false, dr, true);
  struct tfc_output skew = g_add(g, g_sub(g, qdq, adjoint(g, qdq, rank)), g_sub(g, rdr, adjoint(g, rdr, rank)));
  struct tfc_output lower = grad_op3(g, "MatrixBandPart", skew, grad_int(g, TFC_INT64, -1), grad_int(g, TFC_INT64, 0));
  struct tfc_output a = product(g, q, false, g_add(g, dr, times_inverse_adjoint(g, lower, r, rank)), false);
  struct tfc_output b = times_inverse_adjoint(g, g_sub(g, dq, product(g, q, false, qdq, false)), r, rank);
  struct tfc_output sum = g_add(g, a, b);
  tfc_dtype type = grad_type(g, q);
  if (!tfc_dtype_is_complex(type)) return sum;
  struct tfc_output m = g_sub(g, rdr, adjoint(g, qdq, rank)); // the imaginary part of its diagonal is used
  struct tfc_output diagonal =
      grad_op2(g, "MatrixSetDiag", grad_op1(g, "ZerosLike", m), grad_op1(g, "MatrixDiagPart", m));
  struct tfc_attr real = tfc_attr_type("Tout", type == TFC_COMPLEX64 ? TFC_FLOAT : TFC_DOUBLE);
  struct tfc_output re = tfc_add(g->builder, "Real", "", &diagonal, 1, &real, 1);
  struct tfc_output correction = g_sub(g, diagonal, grad_cast(g, re, type));
  return g_add(g, sum, times_inverse_adjoint(g, product(g, q, false, adjoint(g, correction, rank), false), r, rank));
}
// x[..., :, from:to]
static struct tfc_output columns(struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *shape,
                                 int64_t from, int64_t to) {
  int64_t begin[TFC_MAX_RANK] = {0}, size[TFC_MAX_RANK];
  for (int d = 0; d < shape->rank; d++) size[d] = -1;
  begin[shape->rank - 1] = from, size[shape->rank - 1] = to - from;
  return grad_op3(g, "Slice", x, grad_ints(g, TFC_INT32, begin, (uint32_t)shape->rank),
                  grad_ints(g, TFC_INT32, size, (uint32_t)shape->rank));
}
OPS_GRADIENT(Qr) {
  const struct tfc_shape *a = g->input_shapes[0], *qs = g->output_shapes[0], *rs = g->output_shapes[1];
  int rank = rs->rank;
  if (rank < 2 || rs->dims[rank - 2] < 0 || rs->dims[rank - 1] < 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "QrGrad not implemented with dynamic shapes.");
  if (rs->dims[rank - 2] > rs->dims[rank - 1] && qs->dims[rank - 2] == qs->dims[rank - 1])
    return tfc_status_make(TFC_UNIMPLEMENTED, "QrGrad not implemented when nrows > ncols and full_matrices is true.");
  struct tfc_output q = grad_out(g, 0), r = grad_out(g, 1), dq = g->grad_outputs[0], dr = g->grad_outputs[1];
  int64_t rows = qs->dims[rank - 2], n = rs->dims[rank - 1];
  if (rows >= n) {
    g->grad_inputs[0] = deep(g, q, r, dq, dr, rank);
    return NULL;
  }
  struct tfc_output y = columns(g, X, a, rows, n), u = columns(g, r, rs, 0, rows); // A = [X, Y], R = [U, V]
  struct tfc_output dv = columns(g, dr, rs, rows, n), du = columns(g, dr, rs, 0, rows);
  struct tfc_output dx = deep(g, q, u, g_add(g, dq, product(g, y, false, dv, true)), du, rank);
  g->grad_inputs[0] =
      grad_concat(g, (struct tfc_output[]){dx, product(g, q, false, dv, false)}, 2, tfc_add_i32(g->builder, rank - 1));
  return NULL;
}

static const struct tfc_op_def linalg_qr_rows[] = {
    {.name = "Qr",
     .inputs = "input: T",
     .outputs = "q: T, r: T",
     .attrs = "full_matrices: bool = false, T: {double, float, half, complex64, complex128}",
     .types = OPS_BITS(OPS_FLOATS_COMPLEX) & ~TFC_TYPE_BIT(TFC_BFLOAT16),
     .shape = shape_qr,
     .cost = cost_qr,
     .kernel = qr,
     .gradient = gradient_Qr,
     .samples = "double[3,2]=[2,0.5,0.5,1,3,-1]; float[2,3,4]; double[2,4] {full_matrices=true}"},
};
TFC_REGISTER_OPS(linalg_qr_rows);
