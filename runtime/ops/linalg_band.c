// TridiagonalMatMul and TridiagonalSolve for tridiagonal matrices that are given by their diagonals. They compute in
// double precision.
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/linalg_grad.h"
#include "runtime/ops/linalg_wide.h"
#include "runtime/ops/row.h"

typedef double _Complex cplx;

// Inputs: superdiagonal, diagonal, subdiagonal [..., 1, m]; x [..., m, n]. The last element of the superdiagonal and
// the first of the subdiagonal are not used.
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

// Eliminates row after row: rows i and i + 1 of [d u v | x]. With pivoting, the row with the larger first element comes
// first, which may fill a second superdiagonal v. All diagonals are [m], x is [m, n]. Returns false if the matrix is
// singular.
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
// --- Systems that may be singular -----------------------------------------------------------------------------------
// The same algorithm as LAPACK's xLAGTF and xLAGTS: a pivot that is too close to 0 is moved away from it. Which ones
// are too close depends on rounding, so everything is rounded to the type of the tensors.
struct precision {
  bool single;
  double epsilon, least; // least: 1 / least does not overflow
};
static cplx rounded(const struct precision *p, cplx x) {
  return p->single ? CMPLX((float)creal(x), (float)cimag(x)) : x;
}
static double size_of(const struct precision *p, cplx x) {
  return creal(rounded(p, cabs(x)));
}
// Divides the row by the pivot or, if the result would overflow, by a number near the pivot.
static void divide_row(const struct precision *p, double perturb, cplx pivot, cplx *row, int64_t n) {
  double size = size_of(p, pivot), most = 0;
  for (int64_t j = 0; j < n; j++) most = fmax(most, size_of(p, row[j]));
  perturb = copysign(fmax(fabs(perturb), p->least), creal(pivot));
  for (bool stop = false; size < 1 && !stop; size = size_of(p, pivot)) {
    bool tiny = size < p->least;
    if (tiny ? size == 0 || most * p->least > size : most > size / p->least) {
      pivot = rounded(p, pivot + perturb);
      perturb *= 2;
    } else {
      stop = true;
      if (!tiny) break;
      pivot = rounded(p, pivot / p->least);
      for (int64_t j = 0; j < n; j++) row[j] = rounded(p, row[j] / p->least);
    }
  }
  cplx inverse = rounded(p, 1 / pivot);
  for (int64_t j = 0; j < n; j++) row[j] = rounded(p, row[j] * inverse);
}
// x[to] = x[to] - factor * x[from]
static void take_off(const struct precision *p, cplx *to, cplx factor, const cplx *from, int64_t n) {
  for (int64_t j = 0; j < n; j++) to[j] = rounded(p, to[j] - rounded(p, factor * from[j]));
}
// Takes the same arrays as solve; afterwards middle, up and second are the triangular factor.
static void solve_perturbed(const struct precision *p, cplx *up, cplx *middle, const cplx *down, cplx *second, cplx *x,
                            int64_t m, int64_t n) {
  double largest = fmax(size_of(p, middle[0]), m > 1 ? size_of(p, up[0]) : 0);
  double scale = m > 1 ? creal(rounded(p, size_of(p, middle[0]) + size_of(p, up[0]))) : 0;
  for (int64_t i = 0; i < m; i++) second[i] = 0;
  for (int64_t k = 0; k + 1 < m; k++) {
    cplx below = down[k + 1], own = middle[k + 1], right = k + 2 < m ? up[k + 1] : 0;
    double next = creal(rounded(p, size_of(p, below) + size_of(p, own)));
    if (k + 2 < m) next = creal(rounded(p, next + size_of(p, right)));
    if (below == 0) {
      scale = next;
    } else if (creal(rounded(p, size_of(p, below) / next)) <=
               (middle[k] == 0 ? 0 : creal(rounded(p, size_of(p, middle[k]) / scale)))) {
      cplx factor = rounded(p, below / middle[k]);
      scale = next;
      middle[k + 1] = rounded(p, own - rounded(p, factor * up[k]));
      take_off(p, x + (k + 1) * n, factor, x + k * n, n);
    } else { // the rows are exchanged
      cplx factor = rounded(p, middle[k] / below);
      middle[k] = below;
      middle[k + 1] = rounded(p, up[k] - rounded(p, factor * own));
      up[k] = own;
      if (k + 2 < m) second[k] = right, up[k + 1] = rounded(p, -factor * right);
      for (int64_t j = 0; j < n; j++) {
        cplx upper = x[k * n + j], lower = x[(k + 1) * n + j];
        x[(k + 1) * n + j] = rounded(p, upper - rounded(p, factor * lower));
        x[k * n + j] = lower;
      }
    }
    if (k + 2 < m) largest = fmax(largest, fmax(size_of(p, middle[k]), fmax(size_of(p, up[k]), size_of(p, second[k]))));
  }
  largest = fmax(largest, size_of(p, middle[m - 1]));
  double perturb = creal(rounded(p, p->epsilon * largest));
  for (int64_t k = m; k-- > 0;) {
    if (k + 1 < m) take_off(p, x + k * n, up[k], x + (k + 1) * n, n);
    if (k + 2 < m) take_off(p, x + k * n, second[k], x + (k + 2) * n, n);
    divide_row(p, perturb, middle[k], x + k * n, n);
  }
}

// Inputs: diagonals [..., 3, m], rhs [..., m, n]; output [..., m, n].
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
  bool perturb = tfc_node_attr_bool(ctx->graph, ctx->node, "perturb_singular", false);
  bool pivot = tfc_node_attr_bool(ctx->graph, ctx->node, "partial_pivoting", true);
  TFC_KERNEL_CHECK(pivot || !perturb, "Setting perturb_singular requires also setting partial_pivoting.");
  struct precision precision = {x->dtype == TFC_FLOAT || x->dtype == TFC_COMPLEX64, 0x1p-52, 0x1p-1022};
  if (precision.single) precision.epsilon = 0x1p-23, precision.least = 0x1p-126;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (tfc_tensor_elements(x) == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(4 * m + m * n) * sizeof(cplx), &held));
  cplx *up = held->data, *second = up + 3 * m, *out = second + m;
  for (int64_t b = 0; b < batches; b++) {
    ops_linalg_to_complex(diagonals, b * 3 * m, 3 * m, up);
    ops_linalg_to_complex(x, b * m * n, m * n, out);
    if (perturb)
      solve_perturbed(&precision, up, up + m, up + 2 * m, second, out, m, n);
    else if (!solve(up, up + m, up + 2 * m, second, out, m, n, pivot))
      // singular: real types get NaN; complex types get 0, because TensorFlow has no complex NaN.
      for (int64_t i = 0; i < m * n; i++) out[i] = tfc_dtype_is_complex(y->dtype) ? 0 : CMPLX(NAN, 0);
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

// --- Gradients -------------------------------------------------------------------------------------------------------
// Moves rows up: row i becomes row i + 1 of x, the last one 0; `before`: row i becomes row i - 1, the first one 0.
// `row` has the shape of a diagonal, [..., 1, m].
static struct tfc_output next_row(struct tfc_grad_ctx *g, struct tfc_output row, struct tfc_output x, bool before) {
  struct tfc_output none = grad_zeros_like(g, row), one = grad_ones_like(g, row);
  struct tfc_output in[4] = {before ? none : one, none, before ? one : none, x};
  return tfc_add(g->builder, "TridiagonalMatMul", "", in, 4, NULL, 0);
}
// Returns the diagonal [..., 1, m] of a bᵀ, for a and b [..., m, n]: sums of products of their rows.
static struct tfc_output diagonal_of(struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "ExpandDims", grad_sum(g, g_mul(g, a, b), tfc_add_i32(g->builder, -1), false),
                  tfc_add_i32(g->builder, -2));
}
OPS_GRADIENT(TridiagonalMatMul) {
  const struct tfc_output x = grad_conj(g, grad_in(g, 3));
  struct tfc_output columns[3];
  for (uint32_t i = 0; i < 3; i++) columns[i] = g_mul(g, grad_adjoint(g, grad_in(g, i)), G);
  g->grad_inputs[0] = diagonal_of(g, next_row(g, X, x, false), G);
  g->grad_inputs[1] = diagonal_of(g, x, G);
  g->grad_inputs[2] = diagonal_of(g, next_row(g, X, x, true), G);
  g->grad_inputs[3] =
      g_add(g, g_add(g, next_row(g, X, columns[0], true), columns[1]), next_row(g, X, columns[2], false));
  return NULL;
}
// In the transposed system the superdiagonal and the subdiagonal change places, each moved by one. The element that the
// move brings in from the other end is not used.
OPS_GRADIENT(TridiagonalSolve) {
  struct tfc_builder *b = g->builder;
  struct tfc_output axis = tfc_add_i32(b, -2), last = tfc_add_i32(b, -1), rows[3];
  for (int i = 0; i < 3; i++) rows[i] = grad_op3(g, "GatherV2", X, grad_ints(g, TFC_INT32, (int64_t[]){i}, 1), axis);
  const struct tfc_output transposed[3] = {grad_op3(g, "Roll", rows[2], tfc_add_i32(b, -1), last), rows[1],
                                           grad_op3(g, "Roll", rows[0], tfc_add_i32(b, 1), last)};
  const struct tfc_attr attrs[2] = {grad_copied_attr(g, "partial_pivoting"), grad_copied_attr(g, "perturb_singular")};
  const struct tfc_output in[2] = {grad_concat(g, transposed, 3, axis), G};
  const struct tfc_output x = tfc_add(b, "TridiagonalSolve", "", in, 2, attrs, 2);
  const struct tfc_output diagonals[3] = {diagonal_of(g, x, next_row(g, rows[1], Y, false)), diagonal_of(g, x, Y),
                                          diagonal_of(g, x, next_row(g, rows[1], Y, true))};
  g->grad_inputs[0] = g_neg(g, grad_concat(g, diagonals, 3, axis));
  g->grad_inputs[1] = x;
  return NULL;
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
     .gradient = gradient_TridiagonalMatMul,
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
     .gradient = gradient_TridiagonalSolve,
     .samples = "float[3,3]=[1,2,0,5,6,7,0,1,2], float[3,2]"},
};
TFC_REGISTER_OPS(linalg_band_rows);
