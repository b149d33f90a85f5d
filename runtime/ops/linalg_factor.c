// Lu, LogMatrixDeterminant and MatrixSolveLs, which factor a matrix.
//
// Everything is computed in complex128 (real matrices keep imaginary parts of 0) and rounded once.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_grad.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/math_elementwise.h"

typedef double _Complex cplx;

// Replaces a [n, n] by L (with a unit diagonal) and U; perm becomes the order of the rows. Returns the sign of that
// permutation, or 0 if a is singular.
static int factor(cplx *a, int64_t n, int64_t *perm) {
  int sign = 1;
  for (int64_t i = 0; i < n; i++) perm[i] = i;
  for (int64_t k = 0; k < n; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; i++)
      if (cabs(a[i * n + k]) > cabs(a[best * n + k])) best = i;
    if (best != k) {
      for (int64_t j = 0; j < n; j++) {
        cplx v = a[k * n + j];
        a[k * n + j] = a[best * n + j];
        a[best * n + j] = v;
      }
      int64_t p = perm[k];
      perm[k] = perm[best];
      perm[best] = p;
      sign = -sign;
    }
    if (a[k * n + k] == 0) return 0;
    for (int64_t i = k + 1; i < n; i++) {
      cplx f = a[i * n + k] /= a[k * n + k];
      for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= f * a[k * n + j];
    }
  }
  return sign;
}

static tfc_status square(const struct tfc_tensor *a, int64_t *n, int64_t *batches) {
  const struct tfc_shape *s = &a->shape;
  TFC_KERNEL_CHECK(s->rank >= 2, "Input must have rank >= 2, got %d", s->rank);
  *n = s->dims[s->rank - 1];
  TFC_KERNEL_CHECK(s->dims[s->rank - 2] == *n, "Input matrix must be square.");
  *batches = 1;
  for (int d = 0; d < s->rank - 2; d++) *batches *= s->dims[d];
  return NULL;
}

// a [..., n, n] -> lu [..., n, n], p [..., n]
static tfc_status lu(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  struct tfc_tensor *y = NULL, *p = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int64_t n = 0, batches = 0;
  TFC_RETURN_IF_ERROR(square(a, &n, &batches));
  struct tfc_shape order = a->shape;
  order.rank--;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &a->shape, &y));
  tfc_dtype index = tfc_node_attr_type(ctx->graph, ctx->node, "output_idx_type", TFC_INT32);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, index, &order, &p));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(n * n + n + 1) * sizeof(cplx), &held));
  cplx *m = held->data;
  int64_t *perm = (int64_t *)(m + n * n);
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_to_complex(a, b * n * n, n * n, m);
    if (!factor(m, n, perm)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Input is not invertible.");
    ops_linalg_from_complex(m, y, b * n * n, n * n);
    for (int64_t i = 0; i < n; i++) {
      if (index == TFC_INT32)
        ((int32_t *)p->data)[b * n + i] = (int32_t)perm[i];
      else
        ((int64_t *)p->data)[b * n + i] = perm[i];
    }
  }
out:
  tfc_buffer_release(held);
  return s;
}

// a [..., n, n] -> the determinant's sign (or phase) [...], the logarithm of its size [...]
static tfc_status log_determinant(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0];
  struct tfc_tensor *phase = NULL, *size = NULL;
  struct tfc_buffer *held = NULL;
  int64_t n = 0, batches = 0;
  TFC_RETURN_IF_ERROR(square(a, &n, &batches));
  struct tfc_shape shape = a->shape;
  shape.rank -= 2;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &shape, &phase));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, a->dtype, &shape, &size));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(n * n + n + 1) * sizeof(cplx), &held));
  cplx *m = held->data;
  int64_t *perm = (int64_t *)(m + n * n);
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_to_complex(a, b * n * n, n * n, m);
    cplx sign = factor(m, n, perm), sum = 0;
    for (int64_t i = 0; i < n && sign != 0; i++) {
      double length = cabs(m[i * n + i]);
      sign *= m[i * n + i] / length;
      sum += log(length);
    }
    if (!isfinite(creal(sum))) sign = 0; // as in TensorFlow, the sign is 0 if the determinant is not finite
    if (sign == 0 && !(creal(sum) > 0)) sum = -INFINITY;
    ops_linalg_from_complex(&sign, phase, b, 1);
    ops_linalg_from_complex(&sum, size, b, 1);
  }
  tfc_buffer_release(held);
  return NULL;
}

// --- Least squares ---------------------------------------------------------------------------------------------------
// Replaces g [k, k], Hermitian, by its lower Cholesky factor. Returns false if it is not positive definite.
static bool cholesky(cplx *g, int64_t k) {
  for (int64_t j = 0; j < k; j++) {
    double d = creal(g[j * k + j]);
    for (int64_t i = 0; i < j; i++) d -= creal(g[j * k + i] * conj(g[j * k + i]));
    if (!(d > 0)) return false;
    g[j * k + j] = sqrt(d);
    for (int64_t i = j + 1; i < k; i++) {
      cplx s = g[i * k + j];
      for (int64_t l = 0; l < j; l++) s -= g[i * k + l] * conj(g[j * k + l]);
      g[i * k + j] = s / g[j * k + j];
    }
  }
  return true;
}
// Replaces x [k, r] by (L L*)^-1 x.
static void cholesky_solve(const cplx *l, int64_t k, cplx *x, int64_t r) {
  for (int64_t c = 0; c < r; c++) {
    for (int64_t i = 0; i < k; i++) {
      for (int64_t j = 0; j < i; j++) x[i * r + c] -= l[i * k + j] * x[j * r + c];
      x[i * r + c] /= l[i * k + i];
    }
    for (int64_t i = k - 1; i >= 0; i--) {
      for (int64_t j = i + 1; j < k; j++) x[i * r + c] -= conj(l[j * k + i]) * x[j * r + c];
      x[i * r + c] /= l[i * k + i];
    }
  }
}
// Solves a x = b for a [m, n], b [m, r], x [n, r] by the normal equations; if n > m, by a a* z = b and x = a* z. l2 is
// added to the diagonal. g [k, k] and t [k, r], k = min(m, n), are scratch. False: the matrix is not positive definite.
static bool by_gramian(const cplx *a, int64_t m, int64_t n, const cplx *b, int64_t r, double l2, cplx *g, cplx *t,
                       cplx *x) {
  int64_t k = m < n ? m : n;
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; j < k; j++) {
      cplx s = i == j ? l2 : 0;
      if (m >= n)
        for (int64_t c = 0; c < m; c++) s += conj(a[c * n + i]) * a[c * n + j];
      else
        for (int64_t c = 0; c < n; c++) s += a[i * n + c] * conj(a[j * n + c]);
      g[i * k + j] = s;
    }
  if (!cholesky(g, k)) return false;
  if (m >= n) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t c = 0; c < r; c++) {
        x[i * r + c] = 0;
        for (int64_t j = 0; j < m; j++) x[i * r + c] += conj(a[j * n + i]) * b[j * r + c];
      }
    cholesky_solve(g, k, x, r);
    return true;
  }
  memcpy(t, b, (size_t)(m * r) * sizeof *t);
  cholesky_solve(g, k, t, r);
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < r; c++) {
      x[i * r + c] = 0;
      for (int64_t j = 0; j < m; j++) x[i * r + c] += conj(a[j * n + i]) * t[j * r + c];
    }
  return true;
}
// Finds the shortest least-squares solution x [n, r] from A = Q R, where R has full row rank and Q [m, rank] spans A's
// columns. Each step takes the longest remaining column and subtracts its direction from the others, until nothing
// remains. With k = min(m, n), q has room for [m + 1, k], of which the last row is working memory, and right for [k,
// n].
static void by_orthogonal(cplx *a, int64_t m, int64_t n, const cplx *b, int64_t r, cplx *q, cplx *right, cplx *x) {
  int64_t rank = 0, most = m < n ? m : n;
  double longest = 0;
  memset(x, 0, (size_t)(n * r) * sizeof *x);
  cplx *work = right; // [rank, n]: R with columns in A's order
  for (; rank < most; rank++) {
    int64_t best = 0;
    double top = -1;
    for (int64_t j = 0; j < n; j++) {
      double length = 0;
      for (int64_t i = 0; i < m; i++) length += creal(a[i * n + j] * conj(a[i * n + j]));
      if (length > top) top = length, best = j;
    }
    if (rank == 0) longest = top;
    if (!(top > 1e-24 * longest)) break;
    for (int64_t i = 0; i < m; i++) q[i * most + rank] = a[i * n + best] / sqrt(top);
    for (int64_t p = 0; p < rank; p++) {
      cplx dot = 0;
      for (int64_t i = 0; i < m; i++) dot += conj(q[i * most + p]) * q[i * most + rank];
      for (int64_t i = 0; i < m; i++) q[i * most + rank] -= dot * q[i * most + p];
    }
    double length = 0;
    for (int64_t i = 0; i < m; i++) length += creal(q[i * most + rank] * conj(q[i * most + rank]));
    for (int64_t i = 0; i < m; i++) q[i * most + rank] /= sqrt(length);
    for (int64_t j = 0; j < n; j++) {
      cplx dot = 0;
      for (int64_t i = 0; i < m; i++) dot += conj(q[i * most + rank]) * a[i * n + j];
      work[rank * n + j] = dot;
      for (int64_t i = 0; i < m; i++) a[i * n + j] -= dot * q[i * most + rank];
    }
  }
  // x = R* (R R*)^-1 Q* b. R R* is written over a, which is no longer needed; Q* b lies behind Q.
  cplx *gram = a;
  for (int64_t i = 0; i < rank; i++)
    for (int64_t j = 0; j < rank; j++) {
      cplx s = 0;
      for (int64_t c = 0; c < n; c++) s += work[i * n + c] * conj(work[j * n + c]);
      gram[i * rank + j] = s;
    }
  if (rank == 0 || !cholesky(gram, rank)) return;
  for (int64_t c = 0; c < r; c++) {
    cplx *column = q + m * most; // [rank]
    for (int64_t i = 0; i < rank; i++) {
      column[i] = 0;
      for (int64_t j = 0; j < m; j++) column[i] += conj(q[j * most + i]) * b[j * r + c];
    }
    cholesky_solve(gram, rank, column, 1);
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < rank; i++) x[j * r + c] += conj(work[i * n + j]) * column[i];
  }
}

// a [..., m, n], b [..., m, r], l2 [] -> x [..., n, r]
static tfc_status solve_ls(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1], *l2 = ctx->inputs[2];
  const struct tfc_shape *sa = &a->shape, *sb = &b->shape;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(sa->rank >= 2 && sb->rank == sa->rank, "Input matrix and rhs must have the same rank >= 2");
  TFC_KERNEL_CHECK(l2->shape.rank == 0, "Input l2_regularizer must be scalar.");
  double regularizer = *(const double *)l2->data;
  TFC_KERNEL_CHECK(regularizer >= 0, "Input l2_regularizer must be >= 0.");
  int last = sa->rank - 1;
  int64_t m = sa->dims[last - 1], n = sa->dims[last], r = sb->dims[last], batches = 1, k = m < n ? m : n;
  for (int d = 0; d < last - 1; d++) {
    TFC_KERNEL_CHECK(sa->dims[d] == sb->dims[d], "All input tensors must have the same outer dimensions.");
    batches *= sa->dims[d];
  }
  TFC_KERNEL_CHECK(sb->dims[last - 1] == m, "Input matrix and rhs are incompatible.");
  bool fast = tfc_node_attr_bool(ctx->graph, ctx->node, "fast", true);
  struct tfc_shape shape = *sb;
  shape.dims[last - 1] = n;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &shape, &y));
  if (tfc_tensor_elements(y) == 0) return NULL;
  size_t elements = (size_t)(m * n + k * k + m * r + n * r + m * k + k + k * n + k * r + 1);
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, elements * sizeof(cplx), &held));
  cplx *matrix = held->data, *rhs = matrix + m * n + k * k, *x = rhs + m * r, *q = x + n * r;
  cplx *right = q + m * k + k, *t = right + k * n;
  for (int64_t i = 0; i < batches; i++) {
    ops_linalg_to_complex(a, i * m * n, m * n, matrix);
    ops_linalg_to_complex(b, i * m * r, m * r, rhs);
    if (!fast)
      by_orthogonal(matrix, m, n, rhs, r, q, right, x);
    else if (!by_gramian(matrix, m, n, rhs, r, regularizer, matrix + m * n, t, x))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger "
               "l2_regularizer > 0.");
    ops_linalg_from_complex(x, y, i * n * r, n * r);
  }
out:
  tfc_buffer_release(held);
  return s;
}

// --- Shapes and costs ------------------------------------------------------------------------------------------------
static tfc_status shape_lu(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a;
  TFC_RETURN_IF_ERROR(ops_with_square(ctx, 0, &a));
  ctx->outputs[0] = a;
  if (a.rank >= 0) a.rank--;
  ctx->outputs[1] = a;
  return NULL;
}
static tfc_status shape_log_determinant(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a;
  TFC_RETURN_IF_ERROR(ops_with_square(ctx, 0, &a));
  if (a.rank >= 0) a.rank -= 2;
  ctx->outputs[0] = ctx->outputs[1] = a;
  return NULL;
}
static tfc_status shape_solve_ls(struct tfc_shape_ctx *ctx) {
  struct tfc_shape a, b;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 2, &a));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 1, 2, &b));
  if (a.rank < 0 && b.rank < 0) return NULL;
  if (a.rank < 0) a = tfc_shape_unknown_of_rank(b.rank);
  if (b.rank < 0) b = tfc_shape_unknown_of_rank(a.rank);
  if (a.rank != b.rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "matrix and rhs must have the same rank");
  int64_t m;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[a.rank - 2], b.dims[b.rank - 2], &m));
  for (int d = 0; d < a.rank - 2; d++) TFC_RETURN_IF_ERROR(tfc_dim_merge(a.dims[d], b.dims[d], &b.dims[d]));
  b.dims[b.rank - 2] = a.dims[a.rank - 1];
  ctx->outputs[0] = b;
  return NULL;
}

// --- Gradients -------------------------------------------------------------------------------------------------------
OPS_GRADIENT(LogMatrixDeterminant) {
  struct tfc_attr adjoint = tfc_attr_bool("adjoint", true);
  struct tfc_output inverse = tfc_add(g->builder, "MatrixInverse", "", (struct tfc_output[]){X}, 1, &adjoint, 1);
  struct tfc_output shape[2] = {grad_shape(g, grad_out(g, 1), g->output_shapes[1], TFC_INT32),
                                tfc_add_i32_vector(g->builder, (int32_t[]){1, 1}, 2)};
  struct tfc_output factors = g_reshape(g, g->grad_outputs[1], grad_concat(g, shape, 2, tfc_add_i32(g->builder, 0)));
  g->grad_inputs[0] = g_mul(g, factors, inverse);
  return NULL;
}
static struct tfc_output solve_by_factor(struct tfc_grad_ctx *g, struct tfc_output l, struct tfc_output x) {
  struct tfc_attr forward[2] = {tfc_attr_bool("lower", true), tfc_attr_bool("adjoint", false)};
  struct tfc_attr backward[2] = {tfc_attr_bool("lower", true), tfc_attr_bool("adjoint", true)};
  struct tfc_output t = tfc_add(g->builder, "MatrixTriangularSolve", "", (struct tfc_output[]){l, x}, 2, forward, 2);
  return tfc_add(g->builder, "MatrixTriangularSolve", "", (struct tfc_output[]){l, t}, 2, backward, 2);
}
OPS_GRADIENT(MatrixSolveLs) {
  const struct tfc_shape *s = g->input_shapes[0];
  struct tfc_output a = X, b = grad_in(g, 1), x = Y;
  if (!grad_attr_bool(g, "fast", true))
    return tfc_status_make(TFC_UNIMPLEMENTED, "MatrixSolveLs has no gradient with fast=false");
  if (s->rank < 2 || s->dims[s->rank - 1] < 0 || s->dims[s->rank - 2] < 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of MatrixSolveLs needs the number of rows and columns");
  bool tall = s->dims[s->rank - 2] >= s->dims[s->rank - 1];
  struct tfc_output gramian = grad_matmul(g, a, tall, a, !tall);
  struct tfc_output diagonal = grad_op1(g, "OnesLike", grad_op1(g, "MatrixDiagPart", gramian));
  struct tfc_output l2 = grad_cast(g, grad_in(g, 2), grad_type(g, a));
  gramian = g_add(g, gramian, g_mul(g, l2, grad_op1(g, "MatrixDiag", diagonal)));
  struct tfc_output l = grad_op1(g, "Cholesky", gramian);
  if (tall) {
    struct tfc_output z = solve_by_factor(g, l, G), xz = grad_matmul(g, x, false, z, true);
    struct tfc_output both = g_add(g, xz, grad_swapped(g, "Transpose", xz));
    g->grad_inputs[0] = g_add(g, g_neg(g, grad_matmul(g, a, false, both, false)), grad_matmul(g, b, false, z, true));
    g->grad_inputs[1] = grad_matmul(g, a, false, z, false);
    return NULL;
  }
  struct tfc_output gb = solve_by_factor(g, l, grad_matmul(g, a, false, G, false)), t = solve_by_factor(g, l, b);
  struct tfc_output first = g_neg(g, grad_matmul(g, gb, false, grad_matmul(g, t, true, a, false), false));
  struct tfc_output second = grad_matmul(g, t, false, g_sub(g, G, grad_matmul(g, a, true, gb, false)), true);
  g->grad_inputs[0] = g_add(g, first, second);
  g->grad_inputs[1] = gb;
  return NULL;
}

// --- Rows ------------------------------------------------------------------------------------------------------------
#define ROW(s, run) .types = OPS_BITS(OPS_FLOATS_COMPLEX), .shape = s, .cost = ops_cost_cubic, .kernel = run
#define SPD "double[2,2]=[2,0.5,0.5,1]; float[3,3]=[4,1,0,1,3,0.5,0,0.5,2]"
static const struct tfc_op_def linalg_factor_rows[] = {
    {.name = "Lu",
     .inputs = "input: T",
     .outputs = "lu: T, p: output_idx_type",
     .attrs = "T: {double, float, half, complex64, complex128}, output_idx_type: {int32, int64} = int32",
     ROW(shape_lu, lu),
     .samples = SPD},
    {.name = "LogMatrixDeterminant",
     .inputs = "input: T",
     .outputs = "sign: T, log_abs_determinant: T",
     .attrs = "T: {half, float, double, complex64, complex128}",
     ROW(shape_log_determinant, log_determinant),
     .gradient = gradient_LogMatrixDeterminant,
     .samples = SPD},
    {.name = "MatrixSolveLs",
     .inputs = "matrix: T, rhs: T, l2_regularizer: double",
     .outputs = "output: T",
     .attrs = "T: {double, float, half, complex64, complex128}, fast: bool = true",
     ROW(shape_solve_ls, solve_ls),
     .host_inputs = 1 << 2,
     .gradient = gradient_MatrixSolveLs,
     .samples = "double[3,2]=[2,0.5,0.5,1,1,2], double[3,2], double[]=0.5; "
                "double[2,3]=[2,0.5,0.5,1,1,2], double[2,2], double[]=0.25"},
    {.name = "BatchMatrixSolveLs",
     .inputs = "matrix: T, rhs: T, l2_regularizer: double",
     .outputs = "output: T",
     .attrs = "T: {double, float}, fast: bool = true",
     ROW(shape_solve_ls, solve_ls),
     .host_inputs = 1 << 2,
     .gradient = gradient_MatrixSolveLs},
};
TFC_REGISTER_OPS(linalg_factor_rows);
