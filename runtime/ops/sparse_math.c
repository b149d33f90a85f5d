// Arithmetic on sparse tensors: SparseReduceSum and SparseReduceMax, with dense and with sparse results, SparseAdd,
// SparseSoftmax, SparseDenseCwise…, SparseTensorDenseAdd, SparseSparseMaximum and -Minimum, and the kernel of
// SparseAdd's gradient.
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/sparse_common.h"
#include "runtime/ops/sparse_gradient.h"

// --- Reductions ------------------------------------------------------------------------------------------------------
// Combine x.values[i] with y[to]; the first value of an element of y replaces it.
#define SUM(t, ...)                                                                                                    \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *out = (ops_##t *)y->data + to;                                                                            \
    *out =                                                                                                             \
        OPS_PUT_##t((ops_##t##_u)OPS_GET_##t(*out) + (ops_##t##_u)OPS_GET_##t(((const ops_##t *)x.values->data)[i]));  \
  } break;
#define MAX(t, ...)                                                                                                    \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *out = (ops_##t *)y->data + to, v = ((const ops_##t *)x.values->data)[i];                                  \
    if (!seen[to] || OPS_GET_##t(*out) < OPS_GET_##t(v)) *out = v;                                                     \
  } break;
#define MAX_SEEN(t, ...)                                                                                               \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *out = (ops_##t *)y->data + to, v = ((const ops_##t *)x.values->data)[i];                                  \
    if (OPS_GET_##t(*out) < OPS_GET_##t(v)) *out = v;                                                                  \
  } break;
static tfc_status reduce(struct tfc_kernel_ctx *ctx, bool max) {
  const struct tfc_tensor *axes = ctx->inputs[3];
  struct ops_sparse x;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  bool keep = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false), gone[TFC_MAX_RANK] = {0};
  TFC_KERNEL_CHECK(axes->shape.rank <= 1, "Expected reduction_axes to be a scalar or a vector");
  int64_t n = tfc_tensor_elements(axes);
  for (int64_t i = 0; i < n; i++) {
    int64_t axis = tfc_tensor_int(axes, i);
    TFC_KERNEL_CHECK(axis >= -x.rank && axis < x.rank,
                     "Invalid reduction dimension %lld, for input with %d dimensions.", (long long)axis, x.rank);
    gone[axis < 0 ? axis + x.rank : axis] = true;
  }
  struct tfc_shape shape = {.rank = 0};
  int64_t steps[TFC_MAX_RANK] = {0}, step = 1;
  for (int d = 0; d < x.rank; d++) {
    if (!gone[d] || keep) shape.dims[shape.rank++] = gone[d] ? 1 : x.dims[d];
  }
  for (int d = x.rank - 1; d >= 0; d--) {
    if (gone[d]) continue;
    steps[d] = step;
    step *= x.dims[d];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x.values->dtype, &shape, &y));
  ops_fill_zero(y);
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)tfc_tensor_elements(y) + (size_t)x.count * 8 + 16, &held));
  int64_t *order = held->data;
  bool *seen = (bool *)(order + x.count);
  memset(seen, 0, (size_t)tfc_tensor_elements(y));
  ops_sparse_order(x.at, x.count, x.rank, order);
  for (int64_t k = 0; k < x.count; k++) {
    int64_t i = order[k], to = 0;
    for (int d = 0; d < x.rank; d++) to += x.at[i * x.rank + d] * steps[d];
    if (max) switch (y->dtype) {
        OPS_REALS(MAX, ~)
      default: s = ops_unsupported_type(ctx, y->dtype); goto out;
      }
    else
      switch (y->dtype) {
        OPS_NUMBERS(SUM, ~)
      default: s = ops_unsupported_type(ctx, y->dtype); goto out;
      }
    seen[to] = true;
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status reduce_sum(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, false);
}
static tfc_status reduce_max(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, true);
}
// The same reductions with a sparse result: one element for each index over the dimensions that stay, in row-major
// order.
struct reduced {
  int64_t to, rank, element; // to: index of the result's element; rank: the element's place in row-major order
};
static int compare_reduced(const void *a, const void *b) {
  const struct reduced *p = a, *q = b;
  if (p->to != q->to) return p->to < q->to ? -1 : 1;
  return p->rank < q->rank ? -1 : p->rank > q->rank;
}
static tfc_status reduce_sparse(struct tfc_kernel_ctx *ctx, bool max) {
  const struct tfc_tensor *axes = ctx->inputs[3];
  struct ops_sparse x;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int64_t *at = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  bool keep = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false), gone[TFC_MAX_RANK] = {0};
  TFC_KERNEL_CHECK(axes->shape.rank <= 1, "Expected reduction_axes to be a scalar or a vector");
  for (int64_t i = 0, n = tfc_tensor_elements(axes); i < n; i++) {
    int64_t axis = tfc_tensor_int(axes, i);
    TFC_KERNEL_CHECK(axis >= -x.rank && axis < x.rank,
                     "Invalid reduction dimension %lld, for input with %d dimensions.", (long long)axis, x.rank);
    gone[axis < 0 ? axis + x.rank : axis] = true;
  }
  int64_t dims[TFC_MAX_RANK], steps[TFC_MAX_RANK] = {0}, step = 1, count = 0;
  int rank = 0;
  for (int d = 0; d < x.rank; d++)
    if (!gone[d] || keep) dims[rank++] = gone[d] ? 1 : x.dims[d];
  for (int d = x.rank - 1; d >= 0; d--) {
    if (gone[d]) continue;
    steps[d] = step;
    if (__builtin_mul_overflow(step, x.dims[d], &step))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the shape is too large");
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)x.count * (sizeof(struct reduced) + 8) + 16, &held));
  struct reduced *all = held->data;
  int64_t *order = (int64_t *)(all + x.count);
  ops_sparse_order(x.at, x.count, x.rank, order);
  for (int64_t k = 0; k < x.count; k++) {
    int64_t to = 0;
    for (int d = 0; d < x.rank; d++) to += x.at[order[k] * x.rank + d] * steps[d];
    all[k] = (struct reduced){to, k, order[k]};
  }
  qsort(all, (size_t)x.count, sizeof *all, compare_reduced);
  for (int64_t k = 0; k < x.count; k++) count += k == 0 || all[k].to != all[k - 1].to;
  TFC_TRY(s, ops_sparse_output(ctx, 0, count, rank, x.values->dtype, &at, &y));
  TFC_TRY(s, ops_sparse_shape_output(ctx, 2, dims, rank));
  ops_fill_zero(y);
  for (int64_t k = 0, to = -1; k < x.count; k++) {
    int64_t i = all[k].element;
    if (k == 0 || all[k].to != all[k - 1].to) { // the first element with this index
      to++;
      for (int d = 0, e = 0; d < x.rank; d++)
        if (!gone[d] || keep) at[to * rank + e++] = gone[d] ? 0 : x.at[i * x.rank + d];
      TFC_TRY(s, ops_copy_elements(y, to, x.values, i, 1));
      continue;
    }
    if (max) switch (y->dtype) {
        OPS_REALS(MAX_SEEN, ~)
      default: s = ops_unsupported_type(ctx, y->dtype); goto out;
      }
    else
      switch (y->dtype) {
        OPS_NUMBERS(SUM, ~)
      default: s = ops_unsupported_type(ctx, y->dtype); goto out;
      }
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status reduce_sum_sparse(struct tfc_kernel_ctx *ctx) {
  return reduce_sparse(ctx, false);
}
static tfc_status reduce_max_sparse(struct tfc_kernel_ctx *ctx) {
  return reduce_sparse(ctx, true);
}
static tfc_status shape_reduce_sparse(struct tfc_shape_ctx *ctx) { // TensorFlow infers no more
  for (uint32_t i = 0; i < 3; i++) ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
  return NULL;
}
static tfc_status shape_reduce(struct tfc_shape_ctx *ctx) {
  struct tfc_shape dims = ops_described_shape(ctx, 2), out = {.rank = 0};
  int64_t axes[TFC_MAX_RANK];
  int n = 0;
  bool keep = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false), gone[TFC_MAX_RANK] = {0};
  ctx->outputs[0] = (struct tfc_shape){.rank = -1};
  if (dims.rank < 0 || !ops_known_ints(ctx, 3, axes, TFC_MAX_RANK, &n)) return NULL;
  for (int i = 0; i < n; i++) {
    if (axes[i] < -dims.rank || axes[i] >= dims.rank)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid reduction dimension %lld, for input with %d dimensions.",
                             (long long)axes[i], dims.rank);
    gone[axes[i] < 0 ? axes[i] + dims.rank : axes[i]] = true;
  }
  for (int d = 0; d < dims.rank; d++) {
    if (!gone[d] || keep) out.dims[out.rank++] = gone[d] ? 1 : dims.dims[d];
  }
  ctx->outputs[0] = out;
  return NULL;
}
// --- Element by element with a sparse tensor -------------------------------------------------------------------------
enum pairing { ADD, MAXIMUM, MINIMUM };
// The cases of `combine` below: each writes the combined value v to out[n], and returns whether the result has this
// element. It lacks a sum that is below the threshold (TensorFlow has a threshold only for the sum of two tensors).
#define COMBINE(t, ...)                                                                                                \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t##_c p = i < 0 ? 0 : OPS_GET_##t(((const ops_##t *)a->data)[i]);                                            \
    ops_##t##_c q = j < 0 ? 0 : OPS_GET_##t(((const ops_##t *)b->data)[j]), v;                                         \
    COMBINED_##t;                                                                                                      \
    ((ops_##t *)out)[n] = OPS_PUT_##t(v);                                                                              \
    if (pairing != ADD) return true;                                                                                   \
    if (i < 0 || j < 0) ((ops_##t *)out)[n] = OPS_PUT_##t(j < 0 ? p : q);                                              \
    return i < 0 || j < 0 || threshold <= MAGNITUDE_##t(v);                                                            \
  }
#define REAL_COMBINED(t)                                                                                               \
  v = pairing == ADD       ? (ops_##t##_c)((ops_##t##_u)p + (ops_##t##_u)q)                                            \
      : pairing == MAXIMUM ? (p < q ? q : p)                                                                           \
                           : (q < p ? q : p)
#define COMBINED_f32 REAL_COMBINED(f32)
#define COMBINED_f64 REAL_COMBINED(f64)
#define COMBINED_f16 REAL_COMBINED(f16)
#define COMBINED_b16 REAL_COMBINED(b16)
#define COMBINED_i8 REAL_COMBINED(i8)
#define COMBINED_i16 REAL_COMBINED(i16)
#define COMBINED_i32 REAL_COMBINED(i32)
#define COMBINED_i64 REAL_COMBINED(i64)
#define COMBINED_u8 REAL_COMBINED(u8)
#define COMBINED_u16 REAL_COMBINED(u16)
#define COMBINED_u32 REAL_COMBINED(u32)
#define COMBINED_u64 REAL_COMBINED(u64)
#define COMBINED_c64 v = p + q
#define COMBINED_c128 v = p + q
#define MAGNITUDE_f32(v) fabs((double)(v))
#define MAGNITUDE_f64(v) fabs(v)
#define MAGNITUDE_f16(v) fabs((double)(v))
#define MAGNITUDE_b16(v) fabs((double)(v))
#define MAGNITUDE_i8(v) fabs((double)(v))
#define MAGNITUDE_i16(v) fabs((double)(v))
#define MAGNITUDE_i32(v) fabs((double)(v))
#define MAGNITUDE_i64(v) fabs((double)(v))
#define MAGNITUDE_u8(v) ((double)(v))
#define MAGNITUDE_u16(v) ((double)(v))
#define MAGNITUDE_u32(v) ((double)(v))
#define MAGNITUDE_u64(v) ((double)(v))
#define MAGNITUDE_c64(v) (double)cabsf(v)
#define MAGNITUDE_c128(v) cabs(v)
static bool combine(const struct tfc_tensor *a, int64_t i, const struct tfc_tensor *b, int64_t j, enum pairing pairing,
                    double threshold, void *out, int64_t n) {
  switch (a->dtype) {
    OPS_NUMBERS(COMBINE, ~)
  default: return false;
  }
}

static tfc_status unite(struct tfc_kernel_ctx *ctx, enum pairing pairing) {
  struct ops_sparse a, b;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  double threshold = 0;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, pairing != ADD, &a));
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 3, 4, 5, pairing != ADD, &b));
  TFC_KERNEL_CHECK(a.rank == b.rank, "Operands' ranks do not match: got %d and %d", a.rank, b.rank);
  for (int d = 0; d < a.rank; d++)
    TFC_KERNEL_CHECK(a.dims[d] == b.dims[d], "Operands' shapes do not match: got %lld and %lld for dimension %d",
                     (long long)a.dims[d], (long long)b.dims[d], d);
  if (pairing == ADD) {
    TFC_KERNEL_CHECK(ctx->inputs[6]->shape.rank == 0, "The magnitude threshold must be a scalar: got shape %s",
                     tfc_shape_show(&ctx->inputs[6]->shape, (char[TFC_SHAPE_TEXT]){0}));
    const struct tfc_tensor *t = ctx->inputs[6];
    threshold = t->dtype == TFC_FLOAT      ? (double)*(const float *)t->data
                : t->dtype == TFC_DOUBLE   ? *(const double *)t->data
                : t->dtype == TFC_HALF     ? (double)tfc_half_to_float(*(const uint16_t *)t->data)
                : t->dtype == TFC_BFLOAT16 ? (double)tfc_bfloat16_to_float(*(const uint16_t *)t->data)
                                           : (double)tfc_tensor_int(t, 0);
  }
  size_t size = tfc_dtype_size(a.values->dtype), most = (size_t)(a.count + b.count) + 1;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, most * (size + (size_t)a.rank * 8), &held));
  int64_t *at = held->data, n = 0;
  char *values = (char *)(at + most * (size_t)a.rank);
  for (int64_t i = 0, j = 0; i < a.count || j < b.count;) {
    int c = i == a.count ? 1 : j == b.count ? -1 : ops_sparse_compare(a.at + i * a.rank, b.at + j * b.rank, a.rank);
    const int64_t *index = c <= 0 ? a.at + i * a.rank : b.at + j * b.rank;
    bool keep = combine(a.values, c <= 0 ? i : -1, b.values, c >= 0 ? j : -1, pairing, threshold, values, n);
    if (a.rank) memcpy(at + n * a.rank, index, (size_t)a.rank * sizeof *at);
    i += c <= 0, j += c >= 0, n += keep;
  }
  int64_t *to = NULL;
  TFC_TRY(s, ops_sparse_output(ctx, 0, n, a.rank, a.values->dtype, &to, &y));
  if (n && a.rank) memcpy(to, at, (size_t)(n * a.rank) * sizeof *to);
  if (n) memcpy(y->data, values, (size_t)n * size);
  if (pairing == ADD) TFC_TRY(s, ops_sparse_shape_output(ctx, 2, a.dims, a.rank));
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status add(struct tfc_kernel_ctx *ctx) {
  return unite(ctx, ADD);
}
static tfc_status maximum(struct tfc_kernel_ctx *ctx) {
  return unite(ctx, MAXIMUM);
}
static tfc_status minimum(struct tfc_kernel_ctx *ctx) {
  return unite(ctx, MINIMUM);
}
static tfc_status shape_add(struct tfc_shape_ctx *ctx) {
  return ops_shape_sparse(ctx, 0, 2, true);
}
static tfc_status shape_union(struct tfc_shape_ctx *ctx) {
  return ops_shape_sparse(ctx, 0, 2, false);
}
OPS_GRADIENT(SparseAdd) {
  struct tfc_output in[4] = {g->grad_outputs[1], X, grad_in(g, 3), grad_out(g, 0)};
  struct tfc_output back = tfc_add(g->builder, "SparseAddGrad", "", in, 4, NULL, 0);
  g->grad_inputs[1] = back;
  g->grad_inputs[4] = (struct tfc_output){back.node, 1};
  return NULL;
}
static tfc_status add_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *grad = ctx->inputs[0], *sum = ctx->inputs[3];
  TFC_KERNEL_CHECK(grad->shape.rank == 1, "Expected the gradient to be a vector but received shape %s",
                   tfc_shape_show(&grad->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (int k = 1; k < 4; k++)
    TFC_KERNEL_CHECK(ctx->inputs[k]->shape.rank == 2 && ctx->inputs[k]->shape.dims[1] == sum->shape.dims[1],
                     "Input indices should be matrices of equally many columns but received shape %s",
                     tfc_shape_show(&ctx->inputs[k]->shape, (char[TFC_SHAPE_TEXT]){0}));
  int rank = (int)sum->shape.dims[1];
  int64_t n = sum->shape.dims[0];
  TFC_KERNEL_CHECK(grad->shape.dims[0] == n,
                   "# elements of backprop_val_grad and # rows of sum_indices should match: got %lld and %lld",
                   (long long)grad->shape.dims[0], (long long)n);
  for (uint32_t k = 0; k < 2; k++) {
    const struct tfc_tensor *at = ctx->inputs[1 + k];
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, k, grad->dtype, &TFC_SHAPE(at->shape.dims[0]), &y));
    ops_fill_zero(y);
    for (int64_t i = 0, j = 0; i < at->shape.dims[0] && j < n;) {
      int c = ops_sparse_compare((const int64_t *)at->data + i * rank, (const int64_t *)sum->data + j * rank, rank);
      if (c == 0) TFC_RETURN_IF_ERROR(ops_copy_elements(y, i, grad, j, 1));
      i += c <= 0, j += c >= 0;
    }
  }
  return NULL;
}
static tfc_status shape_add_grad(struct tfc_shape_ctx *ctx) {
  for (uint32_t k = 0; k < 2; k++) {
    struct tfc_shape at;
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1 + k, 2, &at));
    ctx->outputs[k] = TFC_SHAPE(at.dims[0]);
  }
  return NULL;
}

// --- SparseSoftmax ---------------------------------------------------------------------------------------------------
#define SOFTMAX(t, ...)                                                                                                \
  case OPS_DT_##t: {                                                                                                   \
    const ops_##t *from = x.values->data;                                                                              \
    ops_##t##_c max = OPS_GET_##t(from[order[begin]]), sum = 0;                                                        \
    for (int64_t i = begin; i < end; i++) {                                                                            \
      const ops_##t##_c v = OPS_GET_##t(from[order[i]]);                                                               \
      max = v > max ? v : max;                                                                                         \
    }                                                                                                                  \
    for (int64_t i = begin; i < end; i++) {                                                                            \
      ops_##t##_c e = OPS_ROUND_##t((ops_##t##_c)exp((double)(OPS_GET_##t(from[order[i]]) - max)));                    \
      ((ops_##t *)y->data)[i] = OPS_PUT_##t(e);                                                                        \
      sum += e;                                                                                                        \
    }                                                                                                                  \
    sum = OPS_ROUND_##t(sum);                                                                                          \
    for (int64_t i = begin; i < end; i++)                                                                              \
      ((ops_##t *)y->data)[i] = OPS_PUT_##t(OPS_GET_##t(((ops_##t *)y->data)[i]) / sum);                               \
  } break;
// Computes Softmax over each row of the last dimension. The results are in row-major order, whatever the input's order
// was.
static tfc_status softmax(struct tfc_kernel_ctx *ctx) {
  struct ops_sparse x;
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, false, &x));
  TFC_KERNEL_CHECK(x.rank >= 2, "Input should have rank >= 2, but received rank %d", x.rank);
  for (int d = 0; d < x.rank; d++)
    TFC_KERNEL_CHECK(x.dims[d] >= 0, "Expected shape dimensions to be non-negative, got %lld", (long long)x.dims[d]);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x.values->dtype, &x.values->shape, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)x.count * sizeof(int64_t), &held));
  int64_t *order = held->data;
  tfc_status s = NULL;
  ops_sparse_order(x.at, x.count, x.rank, order);
  for (int64_t begin = 0, end; begin < x.count && !s; begin = end) {
    end = begin + 1;
    while (end < x.count &&
           ops_sparse_compare(x.at + order[begin] * x.rank, x.at + order[end] * x.rank, x.rank - 1) == 0)
      end++;
    switch (y->dtype) {
      OPS_FLOATS(SOFTMAX, ~)
    default: s = ops_unsupported_type(ctx, y->dtype);
    }
  }
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_values(struct tfc_shape_ctx *ctx) {
  struct tfc_shape at;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &at));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &ctx->outputs[0]));
  if (ctx->outputs[0].dims[0] < 0) ctx->outputs[0].dims[0] = at.dims[0];
  return NULL;
}

// --- Element by element with a dense tensor --------------------------------------------------------------------------
enum cwise { CWISE_ADD, CWISE_MUL, CWISE_DIV };
#define CWISE(t, ...)                                                                                                  \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t##_u p = (ops_##t##_u)OPS_GET_##t(((const ops_##t *)x.values->data)[i]);                                    \
    ops_##t##_u q = (ops_##t##_u)OPS_GET_##t(((const ops_##t *)dense->data)[from]);                                    \
    ops_##t *out = (ops_##t *)y->data + i;                                                                             \
    if (what == CWISE_DIV) {                                                                                           \
      WHOLE_##t(TFC_KERNEL_CHECK(q != 0, "Integer division by zero"));                                                 \
      *out = OPS_PUT_##t(DIVIDED_##t);                                                                                 \
    } else {                                                                                                           \
      *out = OPS_PUT_##t(what == CWISE_ADD ? p + q : p * q);                                                           \
    }                                                                                                                  \
  } break;
#define WHOLE_f32(check) (void)0
#define WHOLE_f64(check) (void)0
#define WHOLE_f16(check) (void)0
#define WHOLE_b16(check) (void)0
#define WHOLE_i8(check) check
#define WHOLE_i16(check) check
#define WHOLE_i32(check) check
#define WHOLE_i64(check) check
#define WHOLE_u8(check) check
#define WHOLE_u16(check) check
#define WHOLE_u32(check) check
#define WHOLE_u64(check) check
#define SIGNED_DIVIDED(t) ((ops_##t##_c)q == -1 ? 0 - p : (ops_##t##_u)((ops_##t##_c)p / (ops_##t##_c)q))
#define DIVIDED_f32 (p / q)
#define DIVIDED_f64 (p / q)
#define DIVIDED_f16 (p / q)
#define DIVIDED_b16 (p / q)
#define DIVIDED_i8 SIGNED_DIVIDED(i8)
#define DIVIDED_i16 SIGNED_DIVIDED(i16)
#define DIVIDED_i32 SIGNED_DIVIDED(i32)
#define DIVIDED_i64 SIGNED_DIVIDED(i64)
#define DIVIDED_u8 (p / q)
#define DIVIDED_u16 (p / q)
#define DIVIDED_u32 (p / q)
#define DIVIDED_u64 (p / q)
static tfc_status cwise(struct tfc_kernel_ctx *ctx, enum cwise what) {
  struct ops_sparse x;
  const struct tfc_tensor *dense = ctx->inputs[3];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(ops_sparse_input(ctx, 0, 1, 2, true, &x));
  int more = x.rank - dense->shape.rank;
  TFC_KERNEL_CHECK(more >= 0, "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes");
  for (int d = more; d < x.rank; d++)
    TFC_KERNEL_CHECK(
        dense->shape.dims[d - more] == x.dims[d] || dense->shape.dims[d - more] == 1,
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: %lld and %lld "
        "in dimension %d",
        (long long)x.dims[d], (long long)dense->shape.dims[d - more], d);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x.values, &y));
  for (int64_t i = 0; i < x.count; i++) {
    int64_t from = 0;
    for (int d = more; d < x.rank; d++) {
      int64_t n = dense->shape.dims[d - more];
      from = from * n + (n == 1 ? 0 : x.at[i * x.rank + d]);
    }
    switch (y->dtype) {
      OPS_REALS(CWISE, ~)
    default: return ops_unsupported_type(ctx, y->dtype);
    }
  }
  return NULL;
}
static tfc_status cwise_add(struct tfc_kernel_ctx *ctx) {
  return cwise(ctx, CWISE_ADD);
}
static tfc_status cwise_mul(struct tfc_kernel_ctx *ctx) {
  return cwise(ctx, CWISE_MUL);
}
static tfc_status cwise_div(struct tfc_kernel_ctx *ctx) {
  return cwise(ctx, CWISE_DIV);
}
#define DENSE_ADD(t, ...)                                                                                              \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *out = (ops_##t *)y->data + to;                                                                            \
    *out = OPS_PUT_##t((ops_##t##_u)OPS_GET_##t(*out) + (ops_##t##_u)OPS_GET_##t(((const ops_##t *)v->data)[i]));      \
  } break;
static tfc_status dense_add(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *at = ctx->inputs[0], *v = ctx->inputs[1], *dims = ctx->inputs[2], *b = ctx->inputs[3];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(at->shape.rank == 2 && v->shape.rank == 1 && dims->shape.rank == 1 &&
                       at->shape.dims[0] == v->shape.dims[0] && at->shape.dims[1] == dims->shape.dims[0],
                   "Input a_indices should be a matrix, a_values and a_shape vectors that fit it");
  int rank = (int)dims->shape.dims[0];
  TFC_KERNEL_CHECK(rank == b->shape.rank, "Two operands have different ranks: received %lld and %d",
                   (long long)dims->shape.dims[0], b->shape.rank);
  for (int d = 0; d < rank; d++)
    TFC_KERNEL_CHECK(tfc_tensor_int(dims, d) == b->shape.dims[d],
                     "Dimension %d does not equal (no broadcasting is supported): sparse side %lld vs dense side %lld",
                     d, (long long)tfc_tensor_int(dims, d), (long long)b->shape.dims[d]);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, b->dtype, &b->shape, &y));
  if (y->data != b->data) TFC_RETURN_IF_ERROR(ops_copy_elements(y, 0, b, 0, tfc_tensor_elements(b)));
  for (int64_t i = 0; i < v->shape.dims[0]; i++) {
    int64_t to = 0;
    for (int d = 0; d < rank; d++) {
      int64_t x = tfc_tensor_int(at, i * rank + d);
      TFC_KERNEL_CHECK(x >= 0 && x < b->shape.dims[d], "Sparse tensor has some invalid index on dimension %d: %lld", d,
                       (long long)x);
      to = to * b->shape.dims[d] + x;
    }
    switch (y->dtype) {
      OPS_NUMBERS(DENSE_ADD, ~)
    default: return ops_unsupported_type(ctx, y->dtype);
    }
  }
  return NULL;
}
static tfc_status shape_dense(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[3];
  return NULL;
}
OPS_GRADIENT(SparseTensorDenseAdd) {
  g->grad_inputs[1] = grad_op2(g, "GatherNd", G, X);
  g->grad_inputs[3] = G;
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define SPARSE "int64[3,2]=[0,1,1,0,2,3], float[3], int64[2]=[3,4]"
#define CWISE_ROW(run)                                                                                                 \
  .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T", .outputs = "output: T",                      \
  .attrs = "T: " OPS_TYPES_NUMBER, .flags = TFC_OP_HOST, .types = OPS_BITS(OPS_REALS), .shape = shape_values,          \
  .kernel = run, .samples = SPARSE ", float[3,4]; " SPARSE ", float[4]"
#define UNION_ROW(run)                                                                                                 \
  .inputs = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64",            \
  .outputs = "output_indices: int64, output_values: T", .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,              \
  .types = OPS_BITS(OPS_REALS), .shape = shape_union, .kernel = run,                                                   \
  .samples = SPARSE ", int64[2,2]=[0,0,1,0], float[2], int64[2]=[3,4]"
static const struct tfc_op_def sparse_math_rows[] = {
    {.name = "SparseReduceSum",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_NUMBER,
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_reduce,
     .kernel = reduce_sum,
     .gradient = ops_grad_sparse_reduce_sum,
     .samples = SPARSE ", int32[1]=[1]; " SPARSE ", int32[1]=[0] {keep_dims=true}"},
    {.name = "SparseReduceMax",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_REAL,
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_reduce,
     .kernel = reduce_max,
     .samples = SPARSE ", int32[1]=[1]"},
    {.name = "SparseReduceSumSparse",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
     .outputs = "output_indices: int64, output_values: T, output_shape: int64",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_NUMBER,
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_reduce_sparse,
     .kernel = reduce_sum_sparse,
     .samples = SPARSE ", int32[1]=[1]; " SPARSE ", int32[1]=[0] {keep_dims=true}"},
    {.name = "SparseReduceMaxSparse",
     .inputs = "input_indices: int64, input_values: T, input_shape: int64, reduction_axes: int32",
     .outputs = "output_indices: int64, output_values: T, output_shape: int64",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_REAL,
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_reduce_sparse,
     .kernel = reduce_max_sparse,
     .samples = SPARSE ", int32[1]=[1]"},
    {.name = "SparseAdd",
     .inputs = "a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, b_shape: int64, thresh: "
               "Treal",
     .outputs = "sum_indices: int64, sum_values: T, sum_shape: int64",
     .attrs = "T: " OPS_TYPES_NUMBER ", Treal: " OPS_TYPES_REAL,
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_add,
     .kernel = add,
     .gradient = gradient_SparseAdd,
     .samples = SPARSE ", int64[2,2]=[0,0,1,0], float[2], int64[2]=[3,4], float[]=0"},
    {.name = "SparseAddGrad",
     .inputs = "backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64",
     .outputs = "a_val_grad: T, b_val_grad: T",
     .attrs = "T: " OPS_TYPES_NUMBER,
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_add_grad,
     .kernel = add_grad,
     .samples = "float[2], int64[1,2]=[0,1], int64[1,2]=[1,0], int64[2,2]=[0,1,1,0]"},
    {.name = "SparseSoftmax",
     .inputs = "sp_indices: int64, sp_values: T, sp_shape: int64",
     .outputs = "output: T",
     .attrs = "T: {half, float, double}",
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_FLOATS) & ~TFC_TYPE_BIT(TFC_BFLOAT16),
     .shape = shape_values,
     .kernel = softmax,
     .gradient = ops_grad_sparse_softmax,
     .samples = SPARSE},
    {.name = "SparseSparseMaximum", UNION_ROW(maximum), .attrs = "T: " OPS_TYPES_REAL},
    {.name = "SparseSparseMinimum", UNION_ROW(minimum), .attrs = "T: " OPS_TYPES_NUMBER},
    {.name = "SparseDenseCwiseAdd", CWISE_ROW(cwise_add)},
    {.name = "SparseDenseCwiseMul", CWISE_ROW(cwise_mul), .gradient = ops_grad_sparse_dense_mul},
    {.name = "SparseDenseCwiseDiv", CWISE_ROW(cwise_div), .gradient = ops_grad_sparse_dense_div},
    {.name = "SparseTensorDenseAdd",
     .inputs = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER ", Tindices: {int32, int64}",
     .flags = TFC_OP_HOST,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_dense,
     .kernel = dense_add,
     .gradient = gradient_SparseTensorDenseAdd,
     .samples = SPARSE ", float[3,4]"},
};
TFC_REGISTER_OPS(sparse_math_rows);
