// Svd and SelfAdjointEigV2 by Jacobi rotations: pairs of columns are rotated until all are orthogonal (Hestenes 1958),
// or a Hermitian matrix is rotated until it is diagonal.
//
// Real matrices are computed as complex ones whose imaginary parts stay 0, in complex128, and rounded once. Vectors
// have unit length; their signs (phases) are as the rotations leave them.
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_eig.h"
#include "runtime/ops/linalg_grad.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"

typedef double _Complex cplx;
enum { SWEEPS = 60 };

static double norm2(cplx v) {
  return creal(v) * creal(v) + cimag(v) * cimag(v);
}

// The rotation that makes two columns orthogonal, from their squared lengths alpha and beta and their inner product.
struct rotation {
  double c, s;
  cplx phase; // the conjugate of the inner product's phase
};
static struct rotation rotation_of(double alpha, double beta, cplx product) {
  double size = cabs(product), zeta = (beta - alpha) / (2 * size);
  double t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + sqrt(1 + zeta * zeta)), c = 1 / sqrt(1 + t * t);
  return (struct rotation){c, c * t, conj(product) / size};
}
// Rotates columns p and q of x [rows, n].
static void turn(cplx *x, int64_t rows, int64_t n, int64_t p, int64_t q, struct rotation r) {
  for (int64_t i = 0; i < rows; i++) {
    cplx a = x[i * n + p], b = r.phase * x[i * n + q];
    x[i * n + p] = r.c * a - r.s * b;
    x[i * n + q] = r.s * a + r.c * b;
  }
}

// Replaces the columns of u [m, k], from `from` on, by unit vectors that are orthogonal to all columns before them.
static void complete(cplx *u, int64_t m, int64_t k, int64_t from) {
  for (int64_t c = from; c < k; c++) {
    double best = 0;
    for (int64_t e = 0; e < m && best < 0.5; e++) { // some unit vector is far enough from the span of those columns
      for (int64_t i = 0; i < m; i++) u[i * k + c] = i == e;
      for (int pass = 0; pass < 2; pass++)
        for (int64_t p = 0; p < c; p++) {
          cplx dot = 0;
          for (int64_t i = 0; i < m; i++) dot += conj(u[i * k + p]) * u[i * k + c];
          for (int64_t i = 0; i < m; i++) u[i * k + c] -= dot * u[i * k + p];
        }
      double length = 0;
      for (int64_t i = 0; i < m; i++) length += norm2(u[i * k + c]);
      best = length * (double)m; // the largest of m residuals is at least (m - c) / m
      if (best >= 0.5)
        for (int64_t i = 0; i < m; i++) u[i * k + c] /= sqrt(length);
    }
  }
}

// Replaces w [m, n], m >= n, by U S; v [n, n] becomes the right singular vectors, s the singular values, and order [n]
// their descending order.
static void svd_columns(cplx *w, int64_t m, int64_t n, cplx *v, double *s, int64_t *order) {
  memset(v, 0, (size_t)(n * n) * sizeof *v);
  for (int64_t i = 0; i < n; i++) v[i * n + i] = 1;
  bool rotated = true;
  for (int sweep = 0; sweep < SWEEPS && rotated; sweep++) {
    rotated = false;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        double alpha = 0, beta = 0;
        cplx product = 0;
        for (int64_t i = 0; i < m; i++) {
          alpha += norm2(w[i * n + p]);
          beta += norm2(w[i * n + q]);
          product += conj(w[i * n + p]) * w[i * n + q];
        }
        if (!(cabs(product) > 1e-16 * sqrt(alpha * beta)) || !(cabs(product) > DBL_MIN)) continue;
        struct rotation r = rotation_of(alpha, beta, product);
        turn(w, m, n, p, q, r);
        turn(v, n, n, p, q, r);
        rotated = true;
      }
  }
  for (int64_t c = 0; c < n; c++) {
    double length = 0;
    for (int64_t i = 0; i < m; i++) length += norm2(w[i * n + c]);
    s[c] = sqrt(length);
    order[c] = c;
  }
  for (int64_t i = 1; i < n; i++)
    for (int64_t j = i; j > 0 && s[order[j]] > s[order[j - 1]]; j--) {
      int64_t t = order[j];
      order[j] = order[j - 1];
      order[j - 1] = t;
    }
}

// a [..., m, n] -> s [..., k], u [..., m, k or m], v [..., n, k or n]
static tfc_status svd(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  const struct tfc_shape *shape = &a->shape;
  struct tfc_tensor *s = NULL, *u = NULL, *v = NULL;
  struct tfc_buffer *held = NULL;
  TFC_KERNEL_CHECK(shape->rank >= 2, "Input tensor 0 must have rank >= 2, got %d", shape->rank);
  bool vectors = tfc_node_attr_bool(ctx->graph, ctx->node, "compute_uv", true);
  bool full = tfc_node_attr_bool(ctx->graph, ctx->node, "full_matrices", false);
  int last = shape->rank - 1;
  int64_t m = shape->dims[last - 1], n = shape->dims[last], k = m < n ? m : n, batches = 1;
  int64_t us = full ? m : k, vs = full ? n : k, tall = m < n ? n : m;
  for (int d = 0; d < last - 1; d++) batches *= shape->dims[d];
  struct tfc_shape ss = *shape, ushape = *shape, vshape = *shape, none = TFC_SHAPE(0);
  ss.rank--;
  ss.dims[last - 1] = k;
  ushape.dims[last] = us;
  vshape.dims[last - 1] = n;
  vshape.dims[last] = vs;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &ss, &s));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, a->dtype, vectors ? &ushape : &none, &u));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2, a->dtype, vectors ? &vshape : &none, &v));
  if (batches == 0) return NULL;
  size_t need = (size_t)(m * n + tall * k + k * k + m * us + n * vs + 2 * k + 1) * sizeof(cplx);
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, need, &held));
  cplx *matrix = held->data, *w = matrix + m * n, *right = w + tall * k, *uu = right + k * k, *vv = uu + m * us;
  double *sizes = (double *)(vv + n * vs);
  int64_t *order = (int64_t *)(sizes + k);
  cplx *column = (cplx *)(order + k); // a singular value, before it is stored in the type of the output
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_to_complex(a, b * m * n, m * n, matrix);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        if (m < n)
          w[j * k + i] = conj(matrix[i * n + j]);
        else
          w[i * k + j] = matrix[i * n + j];
      }
    svd_columns(w, tall, k, right, sizes, order);
    for (int64_t c = 0; c < k; c++) {
      cplx value = sizes[order[c]];
      memcpy(column, &value, sizeof value);
      ops_linalg_from_complex(column, s, b * k + c, 1);
    }
    if (!vectors) continue;
    // The longer side's vectors are w's columns, normalised; the other side's are in `right`.
    cplx *long_side = m < n ? vv : uu, *short_side = m < n ? uu : vv;
    int64_t long_width = m < n ? vs : us, short_width = m < n ? us : vs, rank = 0;
    for (int64_t c = 0; c < k; c++) {
      int64_t from = order[c];
      if (sizes[from] > 0 || isnan(sizes[from])) rank = c + 1;
      for (int64_t i = 0; i < tall; i++)
        long_side[i * long_width + c] = sizes[from] > 0 || isnan(sizes[from]) ? w[i * k + from] / sizes[from] : 0;
      for (int64_t i = 0; i < k; i++) short_side[i * short_width + c] = right[i * k + from];
    }
    complete(long_side, tall, long_width, rank);
    ops_linalg_from_complex(uu, u, b * m * us, m * us);
    ops_linalg_from_complex(vv, v, b * n * vs, n * vs);
  }
  tfc_buffer_release(held);
  return NULL;
}

// Makes h [n, n], Hermitian, diagonal; the columns of v [n, n] become its eigenvectors.
static void diagonalize(cplx *h, int64_t n, cplx *v) {
  double total = 0;
  memset(v, 0, (size_t)(n * n) * sizeof *v);
  for (int64_t i = 0; i < n; i++) v[i * n + i] = 1;
  for (int64_t i = 0; i < n * n; i++) total += norm2(h[i]);
  for (int sweep = 0; sweep < SWEEPS; sweep++) {
    double off = 0;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) off += norm2(h[p * n + q]);
    if (!(off > 1e-34 * total)) return;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) {
        cplx product = h[p * n + q];
        if (!(cabs(product) > DBL_MIN)) continue;
        struct rotation r = rotation_of(creal(h[p * n + p]), creal(h[q * n + q]), product);
        turn(h, n, n, p, q, r);
        for (int64_t j = 0; j < n; j++) { // then the rows, by the adjoint rotation
          cplx a = h[p * n + j], b = conj(r.phase) * h[q * n + j];
          h[p * n + j] = r.c * a - r.s * b;
          h[q * n + j] = r.s * a + r.c * b;
        }
        h[p * n + q] = h[q * n + p] = 0;
        turn(v, n, n, p, q, r);
      }
  }
}

// a [..., n, n], of which only the lower triangle is read -> e [..., n] ascending, v [..., n, n]
static tfc_status self_adjoint_eig(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  const struct tfc_shape *shape = &a->shape;
  struct tfc_tensor *e = NULL, *v = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int last = shape->rank - 1;
  TFC_KERNEL_CHECK(shape->rank >= 2, "Input tensor 0 must have rank >= 2, got %d", shape->rank);
  int64_t n = shape->dims[last], batches = 1;
  TFC_KERNEL_CHECK(n == shape->dims[last - 1], "Input matrix must be square.");
  bool vectors = tfc_node_attr_bool(ctx->graph, ctx->node, "compute_v", true);
  for (int d = 0; d < last - 1; d++) batches *= shape->dims[d];
  struct tfc_shape es = *shape, none = TFC_SHAPE(0);
  es.rank--;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &es, &e));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, a->dtype, vectors ? shape : &none, &v));
  if (batches == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(3 * n * n + 2 * n + 1) * sizeof(cplx), &held));
  cplx *h = held->data, *vs = h + n * n, *sorted = vs + n * n, *values = sorted + n * n;
  int64_t *order = (int64_t *)(values + n);
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_to_complex(a, b * n * n, n * n, h);
    for (int64_t i = 0; i < n; i++) { // only the lower triangle is read
      for (int64_t j = 0; j <= i && !s; j++)
        if (!isfinite(creal(h[i * n + j])) || !isfinite(cimag(h[i * n + j])))
          s = tfc_status_make(TFC_INVALID_ARGUMENT, "Self-adjoint eigen decomposition was not successful. The input "
                                                    "might not be valid.");
      h[i * n + i] = creal(h[i * n + i]);
      for (int64_t j = i + 1; j < n; j++) h[i * n + j] = conj(h[j * n + i]);
    }
    if (s) break;
    diagonalize(h, n, vs);
    for (int64_t i = 0; i < n; i++) {
      order[i] = i;
      for (int64_t j = i; j > 0 && creal(h[order[j] * (n + 1)]) < creal(h[order[j - 1] * (n + 1)]); j--) {
        int64_t t = order[j];
        order[j] = order[j - 1];
        order[j - 1] = t;
      }
    }
    for (int64_t c = 0; c < n; c++) {
      values[c] = creal(h[order[c] * (n + 1)]);
      for (int64_t i = 0; i < n; i++) sorted[i * n + c] = vs[i * n + order[c]];
    }
    ops_linalg_from_complex(values, e, b * n, n);
    if (vectors) ops_linalg_from_complex(sorted, v, b * n * n, n * n);
  }
  tfc_buffer_release(held);
  return s;
}

// --- Shapes and costs ------------------------------------------------------------------------------------------------
static tfc_status shape_svd(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &a));
  bool vectors = tfc_node_attr_bool(ctx->graph, ctx->node, "compute_uv", true);
  bool full = tfc_node_attr_bool(ctx->graph, ctx->node, "full_matrices", false);
  if (!vectors) ctx->outputs[1] = ctx->outputs[2] = TFC_SHAPE(0);
  if (a.rank < 0) return NULL;
  int64_t m = a.dims[a.rank - 2], n = a.dims[a.rank - 1];
  int64_t k = m == 0 || n == 0 ? 0 : m < 0 || n < 0 ? TFC_DIM_UNKNOWN : m < n ? m : n;
  struct tfc_shape s = a, u = a, v = a;
  s.rank--;
  s.dims[s.rank - 1] = k;
  u.dims[u.rank - 1] = full ? m : k;
  v.dims[v.rank - 2] = n;
  v.dims[v.rank - 1] = full ? n : k;
  ctx->outputs[0] = s;
  if (vectors) ctx->outputs[1] = u, ctx->outputs[2] = v;
  return NULL;
}
static void cost_spectral(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                          const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *a = &inputs[0];
  out->flops = a->rank < 2 ? 0 : 50 * (double)tfc_shape_elements(a) * (double)a->dims[a->rank - 1];
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

// --- Gradients (Giles 2008, "Collected matrix derivative results") ---------------------------------------------------
static struct tfc_output safe_reciprocal(struct tfc_grad_ctx *g, struct tfc_output x) {
  return g_mul(g, x, grad_op1(g, "Reciprocal", g_add(g, g_mul(g, x, x), grad_const(g, x, 1e-20))));
}
// 1 / (x_i - x_j), 0 on the diagonal
static struct tfc_output differences(struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output like) {
  struct tfc_output rows = grad_op2(g, "ExpandDims", x, tfc_add_i32(g->builder, -2));
  struct tfc_output columns = grad_op2(g, "ExpandDims", x, tfc_add_i32(g->builder, -1));
  return grad_op2(g, "MatrixSetDiag", safe_reciprocal(g, g_sub(g, rows, columns)), grad_op1(g, "ZerosLike", like));
}
OPS_GRADIENT(SelfAdjointEigV2) {
  struct tfc_output e = Y, v = grad_out(g, 1), inside = grad_op1(g, "MatrixDiag", G);
  if (grad_attr_bool(g, "compute_v", true)) {
    struct tfc_output transposed = grad_matmul(g, v, true, g->grad_outputs[1], false);
    inside = g_add(g, inside, g_mul(g, differences(g, e, e), transposed));
  } else {
    struct tfc_attr vectors = tfc_attr_bool("compute_v", true);
    v = tfc_add(g->builder, "SelfAdjointEigV2", "", (struct tfc_output[]){X}, 1, &vectors, 1);
    v.index = 1;
  }
  struct tfc_output ga = grad_matmul(g, v, false, grad_matmul(g, inside, false, v, true), false);
  // The operation reads only the lower triangle of its input, so only that has a gradient.
  ga = grad_band(g, g_add(g, ga, grad_adjoint(g, ga)), -1, 0);
  struct tfc_output half = g_mul(g, grad_const(g, ga, 0.5), grad_op1(g, "MatrixDiagPart", ga));
  g->grad_inputs[0] = grad_op2(g, "MatrixSetDiag", ga, half);
  return NULL;
}
// x[..., from:to] of the last dimension
static struct tfc_output columns_of(struct tfc_grad_ctx *g, struct tfc_output x, int rank, int64_t from, int64_t to) {
  int64_t begin[TFC_MAX_RANK] = {0}, size[TFC_MAX_RANK];
  for (int d = 0; d < rank; d++) size[d] = -1;
  begin[rank - 1] = from;
  size[rank - 1] = to - from;
  return grad_op3(g, "Slice", x, grad_ints(g, TFC_INT32, begin, (uint32_t)rank),
                  grad_ints(g, TFC_INT32, size, (uint32_t)rank));
}
OPS_GRADIENT(Svd) {
  const struct tfc_shape *shape = g->input_shapes[0];
  tfc_dtype type = grad_type(g, X);
  struct tfc_output gs = grad_op1(g, "MatrixDiag", G);
  if (!grad_attr_bool(g, "compute_uv", true)) {
    struct tfc_attr vectors = tfc_attr_bool("compute_uv", true);
    struct tfc_output full = tfc_add(g->builder, "Svd", "", (struct tfc_output[]){X}, 1, &vectors, 1);
    struct tfc_output u = {full.node, 1}, v = {full.node, 2};
    g->grad_inputs[0] = grad_matmul(g, u, false, grad_matmul(g, gs, false, v, true), false);
    return NULL;
  }
  int rank = shape->rank;
  int64_t m = rank < 2 ? -1 : shape->dims[rank - 2], n = rank < 2 ? -1 : shape->dims[rank - 1];
  bool all = grad_attr_bool(g, "full_matrices", false);
  if (m < 0 || n < 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of Svd needs the number of rows and columns");
  if (all && (m - n > 1 || n - m > 1))
    return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of Svd with full_matrices needs |rows - columns| <= 1");
  struct tfc_output s = Y, u = grad_out(g, 1), v = grad_out(g, 2), gu = g->grad_outputs[1], gv = g->grad_outputs[2];
  bool swapped = m > n; // then the gradient is computed for the adjoint matrix
  if (swapped) {
    struct tfc_output t = u;
    u = v, v = t;
    t = gu, gu = gv, gv = t;
    int64_t k = m;
    m = n, n = k;
  }
  struct tfc_output s_mat = grad_op1(g, "MatrixDiag", s), f = differences(g, grad_op1(g, "Square", s), s);
  struct tfc_output v1 = columns_of(g, v, rank, 0, m), gv1 = columns_of(g, gv, rank, 0, m);
  struct tfc_output vgv = grad_matmul(g, v1, true, gv1, false);
  struct tfc_output fu = g_mul(g, f, grad_matmul(g, u, true, gu, false)), fv = g_mul(g, f, vgv);
  struct tfc_output middle = g_add(g, gs, grad_matmul(g, g_add(g, fu, grad_adjoint(g, fu)), false, s_mat, false));
  middle = g_add(g, middle, grad_matmul(g, s_mat, false, g_add(g, fv, grad_adjoint(g, fv)), false));
  struct tfc_output ga = grad_matmul(g, u, false, grad_matmul(g, middle, false, v1, true), false);
  struct tfc_output s_inverse = grad_op1(g, "MatrixDiag", safe_reciprocal(g, s));
  if (m != n) {
    struct tfc_output gv1t = grad_adjoint(g, gv1), cross = grad_matmul(g, gv1t, false, v1, false);
    struct tfc_output second = g_sub(g, gv1t, grad_matmul(g, cross, false, v1, true));
    if (all) {
      struct tfc_output v2 = columns_of(g, v, rank, m, n), gv2 = columns_of(g, gv, rank, m, n);
      second = g_sub(g, second, grad_matmul(g, grad_matmul(g, v1, true, gv2, false), false, v2, true));
    }
    ga = g_add(g, ga, grad_matmul(g, grad_matmul(g, u, false, s_inverse, false), false, second, false));
  }
  if (tfc_dtype_is_complex(type)) {
    struct tfc_output l = grad_op1(g, "MatrixDiag", grad_op1(g, "MatrixDiagPart", vgv));
    struct tfc_output third = grad_matmul(g, s_inverse, false, g_sub(g, grad_adjoint(g, l), l), false);
    third = grad_matmul(g, u, false, grad_matmul(g, third, false, v1, true), false);
    ga = g_add(g, ga, g_mul(g, grad_const(g, third, 0.5), third));
  }
  g->grad_inputs[0] = swapped ? grad_adjoint(g, ga) : ga;
  return NULL;
}

// --- Rows ------------------------------------------------------------------------------------------------------------
static const struct tfc_op_def linalg_spectral_rows[] = {
    {.name = "Svd",
     .inputs = "input: T",
     .outputs = "s: T, u: T, v: T",
     .attrs = "compute_uv: bool = true, full_matrices: bool = false, T: {double, float, half, complex64, complex128}",
     .types = OPS_BITS(OPS_FLOATS_COMPLEX),
     .shape = shape_svd,
     .cost = cost_spectral,
     .kernel = svd,
     .gradient = gradient_Svd,
     .samples = "double[3,3]=[2,0.5,0.5,1,3,0.25,0.5,1,4] {compute_uv=false}"},
    {.name = "SelfAdjointEigV2",
     .inputs = "input: T",
     .outputs = "e: T, v: T",
     .attrs = "compute_v: bool = true, T: {double, float, half, complex64, complex128}",
     .types = OPS_BITS(OPS_FLOATS_COMPLEX),
     .shape = ops_linalg_shape_eig,
     .cost = cost_spectral,
     .kernel = self_adjoint_eig,
     .gradient = gradient_SelfAdjointEigV2,
     .samples = "double[2,2]=[2,0.5,0.5,1] {compute_v=false}"},
    {.name = "BatchSvd",
     .inputs = "input: T",
     .outputs = "s: T, u: T, v: T",
     .attrs = "compute_uv: bool = true, full_matrices: bool = false, T: {double, float, complex64, complex128}",
     .types = OPS_BITS(OPS_FLOATS_COMPLEX),
     .shape = shape_svd,
     .cost = cost_spectral,
     .kernel = svd,
     .gradient = gradient_Svd},
    {.name = "BatchSelfAdjointEigV2",
     .inputs = "input: T",
     .outputs = "e: T, v: T",
     .attrs = "compute_v: bool = true, T: {double, float}",
     .types = OPS_BITS(OPS_FLOATS_COMPLEX),
     .shape = ops_linalg_shape_eig,
     .cost = cost_spectral,
     .kernel = self_adjoint_eig,
     .gradient = gradient_SelfAdjointEigV2},
};
TFC_REGISTER_OPS(linalg_spectral_rows);
