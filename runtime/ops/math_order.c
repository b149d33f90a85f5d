// Operations that order or count values: ArgMax, ArgMin, NthElement, LowerBound, UpperBound, Bucketize, Bincount,
// DenseBincount, HistogramFixedWidth.
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

static void put_int(struct tfc_tensor *t, int64_t i, int64_t v) {
  switch (t->dtype) {
  case TFC_INT64: ((int64_t *)t->data)[i] = v; break;
  case TFC_INT16:
  case TFC_UINT16: ((int16_t *)t->data)[i] = (int16_t)v; break;
  default: ((int32_t *)t->data)[i] = (int32_t)v; break;
  }
}

struct type_state {
  tfc_dtype type;
  bool flag;
  int64_t number;
};

// --- ArgMax, ArgMin ------------------------------------------------------------------------------------------------
// As in TensorFlow, the first of equal values wins, and a number wins over a NaN at the beginning.
#define ARG(t, ...)                                                                                                    \
  static int64_t arg_##t(const void *xv, int64_t n, int64_t step, bool least) {                                        \
    const ops_##t *x = xv;                                                                                             \
    int64_t best = 0;                                                                                                  \
    ops_##t##_c value = OPS_GET_##t(x[0]);                                                                             \
    for (int64_t i = 1; i < n; i++) {                                                                                  \
      const ops_##t##_c v = OPS_GET_##t(x[i * step]);                                                                  \
      if ((least ? v < value : v > value) || (value != value && v == v)) value = v, best = i;                          \
    }                                                                                                                  \
    return best;                                                                                                       \
  }
#define ARG_TYPES(M, ...) OPS_REALS(M, __VA_ARGS__) M(b8, __VA_ARGS__)
ARG_TYPES(ARG, ~)
#define ARG_ENTRY(t, ...) [OPS_DT_##t] = arg_##t,
static int64_t (*const arg_table[TFC_DTYPE_COUNT])(const void *x, int64_t n, int64_t step,
                                                   bool least) = {ARG_TYPES(ARG_ENTRY, ~)};

static tfc_status arg_extreme(struct tfc_kernel_ctx *ctx, bool least) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int axis;
  if (!arg_table[x->dtype]) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "dim must be a scalar");
  TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[1], 0), x->shape.rank, &axis));
  struct tfc_shape shape = {0};
  int64_t outer = 1, inner = 1, n = x->shape.dims[axis];
  for (int d = 0; d < x->shape.rank; d++) {
    if (d == axis) continue;
    shape.dims[shape.rank++] = x->shape.dims[d];
    *(d < axis ? &outer : &inner) *= x->shape.dims[d];
  }
  TFC_KERNEL_CHECK(n > 0, "Reduction axis %d is empty in the input", axis);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ((const struct type_state *)ctx->state)->type, &shape, &y));
  size_t size = tfc_dtype_size(x->dtype);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < inner; k++)
      put_int(y, o * inner + k,
              arg_table[x->dtype]((const char *)x->data + (size_t)(o * n * inner + k) * size, n, inner, least));
  return NULL;
}
static tfc_status arg_max(struct tfc_kernel_ctx *ctx) {
  return arg_extreme(ctx, false);
}
static tfc_status arg_min(struct tfc_kernel_ctx *ctx) {
  return arg_extreme(ctx, true);
}
static tfc_status prepare_arg(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->type = tfc_node_attr_type(ctx->graph, ctx->node, "output_type", TFC_INT64);
  return NULL;
}
static tfc_status shape_arg(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int64_t given;
  int axis;
  struct tfc_shape scalar;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &scalar));
  if (x->rank < 0) return NULL;
  if (x->rank <= 1) {
    ctx->outputs[0] = TFC_SHAPE_SCALAR;
    return NULL;
  }
  ctx->outputs[0] = tfc_shape_unknown_of_rank(x->rank - 1);
  if (!ctx->input_values || !ctx->input_values[1] || !ops_known_int(ctx, 1, &given)) return NULL;
  TFC_RETURN_IF_ERROR(ops_axis(given, x->rank, &axis));
  for (int d = 0; d < x->rank - 1; d++) ctx->outputs[0].dims[d] = x->dims[d < axis ? d : d + 1];
  return NULL;
}

// --- NthElement ------------------------------------------------------------------------------------------------------
// An element for sorting: by value, equal ones by position.
struct ranked {
  double value; // exact for every type but 64-bit integers, which use `exact`
  int64_t exact, at;
};
static int larger_first(const void *a, const void *b) {
  const struct ranked *p = a, *q = b;
  if (p->value != q->value && (p->value == p->value || q->value == q->value)) {
    if (p->value != p->value) return 1; // NaN comes last
    if (q->value != q->value) return -1;
    return p->value > q->value ? -1 : 1;
  }
  if (p->exact != q->exact) return p->exact > q->exact ? -1 : 1;
  return (p->at > q->at) - (p->at < q->at);
}
#define RANK(t, ...)                                                                                                   \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      const ops_##t##_c v = OPS_GET_##t(((const ops_##t *)x->data)[from + i]);                                         \
      out[i] = (struct ranked){(double)v, (v == v) ? RANK_EXACT_##t(v) : 0, i};                                        \
    }                                                                                                                  \
    break;
#define RANK_EXACT_f32(v) 0
#define RANK_EXACT_f64(v) 0
#define RANK_EXACT_f16(v) 0
#define RANK_EXACT_b16(v) 0
#define RANK_EXACT_i8(v) 0
#define RANK_EXACT_i16(v) 0
#define RANK_EXACT_i32(v) 0
#define RANK_EXACT_u8(v) 0
#define RANK_EXACT_u16(v) 0
#define RANK_EXACT_u32(v) 0
#define RANK_EXACT_i64(v) (int64_t)(v)
#define RANK_EXACT_u64(v) (int64_t)((v) ^ (1ull << 63))
static void rank_row(const struct tfc_tensor *x, int64_t from, int64_t n, struct ranked *out) {
  switch (x->dtype) {
    OPS_REALS(RANK, ~)
  default: break;
  }
  qsort(out, (size_t)n, sizeof *out, larger_first);
}

static tfc_status nth_element(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_buffer *held = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "N must be scalar");
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "Input must be >= 1-D");
  int64_t which = tfc_tensor_int(ctx->inputs[1], 0), n = x->shape.dims[x->shape.rank - 1];
  TFC_KERNEL_CHECK(which >= 0, "n must be non-negative but is %lld", (long long)which);
  TFC_KERNEL_CHECK(which < n, "Input must have last dimension > n = %lld", (long long)which);
  if (!(OPS_BITS(OPS_REALS) & TFC_TYPE_BIT(x->dtype))) return ops_unsupported_type(ctx, x->dtype);
  if (((const struct type_state *)ctx->state)->flag) which = n - 1 - which; // the flag is the attribute reverse
  struct tfc_shape shape = x->shape;
  shape.rank--;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n * sizeof(struct ranked), &held));
  struct ranked *order = held->data;
  int64_t rows = tfc_tensor_elements(y);
  size_t size = tfc_dtype_size(x->dtype);
  for (int64_t r = 0; r < rows; r++) {
    rank_row(x, r * n, n, order);
    memcpy((char *)y->data + (size_t)r * size, (const char *)x->data + (size_t)(r * n + order[n - 1 - which].at) * size,
           size);
  }
  tfc_buffer_release(held);
  return NULL;
}
static tfc_status prepare_nth(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->flag = tfc_node_attr_bool(ctx->graph, ctx->node, "reverse", false);
  return NULL;
}
static tfc_status shape_nth(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  if (x.rank < 0) return NULL;
  x.rank--;
  ctx->outputs[0] = x;
  return NULL;
}
OPS_GRADIENT(NthElement) { // all elements that are equal to the result share the gradient
  struct tfc_output last = tfc_add_i32(g->builder, -1);
  struct tfc_output y = grad_op2(g, "ExpandDims", Y, last), grad = grad_op2(g, "ExpandDims", G, last);
  struct tfc_output indicators = grad_cast(g, grad_op2(g, "Equal", y, X), grad_type(g, G));
  struct tfc_output count = grad_op2(g, "ExpandDims", grad_sum(g, indicators, last, false), last);
  g->grad_inputs[0] = g_mul(g, g_div(g, indicators, count), grad);
  return NULL;
}

// --- InTopK ----------------------------------------------------------------------------------------------------------
// Whether the target's prediction is among the k largest of its row; false if one of these is not finite.
static tfc_status in_top_k(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *targets = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  int64_t k = ((const struct type_state *)ctx->state)->number;
  if (ctx->input_count == 3) {
    TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "k must be 0-D");
    k = tfc_tensor_int(ctx->inputs[2], 0);
  }
  TFC_KERNEL_CHECK(x->shape.rank == 2, "predictions must be 2-dimensional");
  TFC_KERNEL_CHECK(targets->shape.rank == 1 && targets->shape.dims[0] == x->shape.dims[0],
                   "First dimension of predictions must match length of targets");
  int64_t n = x->shape.dims[1];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &targets->shape, &y));
  for (int64_t r = 0; r < x->shape.dims[0]; r++) {
    const float *row = (const float *)x->data + r * n;
    int64_t target = tfc_tensor_int(targets, r), above = 0;
    bool can_say = target >= 0 && target < n;
    for (int64_t i = 0; can_say && i < n; i++) {
      can_say = isfinite(row[i]) && isfinite(row[target]);
      above += row[i] > row[target];
    }
    ((bool *)y->data)[r] = can_say && above < k;
  }
  return NULL;
}
static tfc_status prepare_in_top_k(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->number = tfc_node_attr_int(ctx->graph, ctx->node, "k", 0);
  return NULL;
}
static tfc_status shape_in_top_k(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, targets;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &targets));
  ctx->outputs[0] = tfc_shape_unknown_of_rank(1);
  return tfc_dim_merge(x.dims[0], targets.dims[0], &ctx->outputs[0].dims[0]);
}

// --- Searching and counting ------------------------------------------------------------------------------------------
#define BOUND(t, ...)                                                                                                  \
  case OPS_DT_##t: {                                                                                                   \
    const ops_##t *s = (const ops_##t *)sorted->data + row * n;                                                        \
    const ops_##t##_c v = OPS_GET_##t(((const ops_##t *)values->data)[row * m + i]);                                   \
    while (low < high) {                                                                                               \
      int64_t middle = low + (high - low) / 2;                                                                         \
      if (upper ? !(v < OPS_GET_##t(s[middle])) : OPS_GET_##t(s[middle]) < v)                                          \
        low = middle + 1;                                                                                              \
      else                                                                                                             \
        high = middle;                                                                                                 \
    }                                                                                                                  \
    break;                                                                                                             \
  }
static tfc_status bound(struct tfc_kernel_ctx *ctx, bool upper) {
  const struct tfc_tensor *sorted = ctx->inputs[0], *values = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(sorted->shape.rank == 2 && values->shape.rank == 2, "sorted input and values must be 2-D");
  TFC_KERNEL_CHECK(sorted->shape.dims[0] == values->shape.dims[0], "Leading dim_size of both tensors must match.");
  if (!(OPS_BITS(OPS_REALS) & TFC_TYPE_BIT(sorted->dtype))) return ops_unsupported_type(ctx, sorted->dtype);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ((const struct type_state *)ctx->state)->type, &values->shape, &y));
  int64_t n = sorted->shape.dims[1], m = values->shape.dims[1];
  for (int64_t row = 0; row < values->shape.dims[0]; row++)
    for (int64_t i = 0; i < m; i++) {
      int64_t low = 0, high = n;
      switch (sorted->dtype) {
        OPS_REALS(BOUND, ~)
      default: break;
      }
      put_int(y, row * m + i, low);
    }
  return NULL;
}
static tfc_status lower_bound(struct tfc_kernel_ctx *ctx) {
  return bound(ctx, false);
}
static tfc_status upper_bound(struct tfc_kernel_ctx *ctx) {
  return bound(ctx, true);
}
static tfc_status prepare_out_type(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->type = tfc_node_attr_type(ctx->graph, ctx->node, "out_type", TFC_INT32);
  return NULL;
}
static tfc_status shape_bound(struct tfc_shape_ctx *ctx) {
  struct tfc_shape sorted;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &sorted));
  return ops_with_rank(ctx, 1, 2, &ctx->outputs[0]);
}

static tfc_status prepare_bucketize(struct tfc_prepare_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "boundaries");
  ctx->state = (void *)(uintptr_t)a;
  for (uint32_t i = 1; a && i < a->count; i++)
    if (a->floats[i] < a->floats[i - 1]) return tfc_status_make(TFC_INVALID_ARGUMENT, "Expected sorted boundaries");
  return NULL;
}
#define BUCKET(t, ...)                                                                                                 \
  case OPS_DT_##t: v = (double)((const ops_##t *)x->data)[i]; break;
static tfc_status bucketize(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct tfc_attr *boundaries = ctx->state;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &x->shape, &y));
  int64_t n = tfc_tensor_elements(x);
  for (int64_t i = 0; i < n; i++) {
    double v = 0;
    switch (x->dtype) {
      OPS_WIDE_FLOATS(BUCKET, ~)
      OPS_INTS(BUCKET, ~)
    default: return ops_unsupported_type(ctx, x->dtype);
    }
    uint32_t low = 0, high = boundaries ? boundaries->count : 0;
    while (low < high) { // find the first boundary above v
      uint32_t middle = (low + high) / 2;
      if (v < (double)(float)boundaries->floats[middle])
        high = middle;
      else
        low = middle + 1;
    }
    ((int32_t *)y->data)[i] = (int32_t)low;
  }
  return NULL;
}

#define ADD_WEIGHT(t, ...)                                                                                             \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t *p = (ops_##t *)y->data + at;                                                                              \
    *p = weights ? (ops_##t)(*p + ((const ops_##t *)weights->data)[i]) : (ops_##t)(*p + 1);                            \
    break;                                                                                                             \
  }
static tfc_status count_into(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *weights, bool binary,
                             bool negatives) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "size must be a scalar");
  int64_t size = tfc_tensor_int(ctx->inputs[1], 0);
  TFC_KERNEL_CHECK(size >= 0, "size (%lld) must be non-negative", (long long)size);
  TFC_KERNEL_CHECK(negatives || x->shape.rank <= 2, "Shape must be at most rank 2 but is rank %d", x->shape.rank);
  tfc_dtype type = ctx->inputs[2]->dtype;
  bool matrix = !negatives && x->shape.rank == 2;
  int64_t rows = matrix ? x->shape.dims[0] : 1, n = tfc_tensor_elements(x) / (rows > 0 ? rows : 1);
  struct tfc_shape shape = matrix ? TFC_SHAPE(rows, size) : TFC_SHAPE(size);
  if (weights && tfc_tensor_elements(weights) == 0) weights = NULL;
  TFC_KERNEL_CHECK(!weights || (negatives ? tfc_tensor_elements(weights) == tfc_tensor_elements(x)
                                          : tfc_shape_equal(&weights->shape, &x->shape)),
                   "`weights` must be the same shape as `arr` or a length-0 `Tensor`");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &shape, &y));
  memset(y->data, 0, y->size);
  for (int64_t i = 0; i < rows * n; i++) {
    int64_t v = tfc_tensor_int(x, i);
    // Bincount rejects them; DenseBincount of a matrix ignores them
    TFC_KERNEL_CHECK(v >= 0 || matrix, "Input arr must be non-negative!");
    if (v < 0 || v >= size) continue;
    int64_t at = i / n * size + v;
    if (binary) {
      const struct tfc_tensor *none = weights;
      weights = NULL;
      memset((char *)y->data + (size_t)at * tfc_dtype_size(type), 0, tfc_dtype_size(type));
      switch (type) {
        OPS_WIDE_FLOATS(ADD_WEIGHT, ~)
        ADD_WEIGHT(i32)
        ADD_WEIGHT(i64)
      default: return ops_unsupported_type(ctx, type);
      }
      weights = none;
      continue;
    }
    switch (type) {
      OPS_WIDE_FLOATS(ADD_WEIGHT, ~)
      ADD_WEIGHT(i32)
      ADD_WEIGHT(i64)
    default: return ops_unsupported_type(ctx, type);
    }
  }
  return NULL;
}
static tfc_status bincount(struct tfc_kernel_ctx *ctx) {
  return count_into(ctx, ctx->inputs[2], false, true);
}
static tfc_status dense_bincount(struct tfc_kernel_ctx *ctx) {
  return count_into(ctx, ctx->inputs[2], ((const struct type_state *)ctx->state)->flag, false);
}
static tfc_status prepare_dense(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->flag = tfc_node_attr_bool(ctx->graph, ctx->node, "binary_output", false);
  return NULL;
}
static tfc_status shape_bincount(struct tfc_shape_ctx *ctx) {
  int64_t size = TFC_DIM_UNKNOWN;
  if (!ops_known_int(ctx, 1, &size)) size = TFC_DIM_UNKNOWN;
  if (size < 0 && tfc_dim_known(size)) return tfc_status_make(TFC_INVALID_ARGUMENT, "size must be non-negative");
  ctx->outputs[0] = TFC_SHAPE(size);
  return NULL;
}
static tfc_status shape_dense_bincount(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(shape_bincount(ctx));
  if (x->rank > 2) return tfc_status_make(TFC_INVALID_ARGUMENT, "Shape must be at most rank 2 but is rank %d", x->rank);
  if (x->rank == 2) ctx->outputs[0] = TFC_SHAPE(x->dims[0], ctx->outputs[0].dims[0]);
  if (x->rank < 0) ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  return NULL;
}

#define HISTOGRAM(t, ...)                                                                                              \
  case OPS_DT_##t: {                                                                                                   \
    const ops_##t *v = x->data;                                                                                        \
    double low = (double)((const ops_##t *)range->data)[0], high = (double)((const ops_##t *)range->data)[1];          \
    TFC_KERNEL_CHECK(low < high, "value_range should satisfy value_range[0] < value_range[1]");                        \
    const double step = (high - low) / (double)bins;                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      TFC_KERNEL_CHECK(v[i] == v[i], "nan values are not allowed");                                                    \
      double at = floor(((double)v[i] - low) / step);                                                                  \
      put_int(y,                                                                                                       \
              at < 0               ? 0                                                                                 \
              : at >= (double)bins ? bins - 1                                                                          \
                                   : (int64_t)at,                                                                      \
              tfc_tensor_int(y, at < 0               ? 0                                                               \
                                : at >= (double)bins ? bins - 1                                                        \
                                                     : (int64_t)at) +                                                  \
                  1);                                                                                                  \
    }                                                                                                                  \
    return NULL;                                                                                                       \
  }
static tfc_status histogram(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *range = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(range->shape.rank == 1 && tfc_tensor_elements(range) == 2, "value_range should be a vector of 2");
  TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "nbins should be a scalar.");
  int64_t bins = tfc_tensor_int(ctx->inputs[2], 0), n = tfc_tensor_elements(x);
  TFC_KERNEL_CHECK(bins > 0, "nbins should be a positive number, but got '%lld'", (long long)bins);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ((const struct type_state *)ctx->state)->type, &TFC_SHAPE(bins), &y));
  memset(y->data, 0, y->size);
  switch (x->dtype) {
    OPS_WIDE_FLOATS(HISTOGRAM, ~)
    HISTOGRAM(i32)
    HISTOGRAM(i64)
  default: return ops_unsupported_type(ctx, x->dtype);
  }
}
static tfc_status prepare_histogram(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct type_state, state);
  state->type = tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_INT32);
  return NULL;
}
static tfc_status shape_histogram(struct tfc_shape_ctx *ctx) {
  int64_t bins = TFC_DIM_UNKNOWN;
  if (!ops_known_int(ctx, 2, &bins)) bins = TFC_DIM_UNKNOWN;
  ctx->outputs[0] = TFC_SHAPE(bins);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define COUNTS .flags = TFC_OP_NOT_DIFFERENTIABLE, .cost = ops_cost_inputs
static const struct tfc_op_def math_order_rows[] = {
    {.name = "ArgMax",
     .inputs = "input: T, dimension: Tidx",
     .outputs = "output: output_type",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, "
              "quint8, qint32, qint16, quint16, bool}, Tidx: {int16, int32, int64} = int32, output_type: {int16, "
              "uint16, int32, int64} = int64",
     COUNTS,
     .types = OPS_BITS(ARG_TYPES),
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .shape = shape_arg,
     .prepare = prepare_arg,
     .kernel = arg_max,
     .samples = "float[3,4], int32[]=1; int32[5], int32[]=0"},
    {.name = "ArgMin",
     .inputs = "input: T, dimension: Tidx",
     .outputs = "output: output_type",
     .attrs =
         "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8, quint8, "
         "qint32, qint16, quint16, bool}, Tidx: {int32, int64} = int32, output_type: {int32, int64} = int64",
     COUNTS,
     .types = OPS_BITS(ARG_TYPES),
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .shape = shape_arg,
     .prepare = prepare_arg,
     .kernel = arg_min,
     .samples = "float[3,4], int32[]=1; int32[5], int32[]=0"},
    {.name = "InTopK",
     .inputs = "predictions: float, targets: T",
     .outputs = "precision: bool",
     .attrs = "k: int, T: {int32, int64} = int32",
     COUNTS,
     .index_use = TFC_INDEX_TOP,
     .shape = shape_in_top_k,
     .prepare = prepare_in_top_k,
     .kernel = in_top_k,
     .samples = "float[3,4], int32[3]=[0,3,1] {k=2}"},
    {.name = "InTopKV2",
     .inputs = "predictions: float, targets: T, k: T",
     .outputs = "precision: bool",
     .attrs = "T: {int32, int64} = int32",
     COUNTS,
     .index_use = TFC_INDEX_TOP,
     .host_inputs = 4,
     .shape = shape_in_top_k,
     .prepare = prepare_in_top_k,
     .kernel = in_top_k,
     .samples = "float[3,4], int32[3]=[0,3,1], int32[]=2"},
    {.name = "NthElement",
     .inputs = "input: T, n: int32",
     .outputs = "values: T",
     .attrs = "reverse: bool = false, T: " OPS_TYPES_REAL,
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 2,
     .shape = shape_nth,
     .cost = ops_cost_inputs,
     .prepare = prepare_nth,
     .kernel = nth_element,
     .gradient = gradient_NthElement,
     .samples = "float[3,4], int32[]=2"},
    {.name = "LowerBound",
     .inputs = "sorted_inputs: T, values: T",
     .outputs = "output: out_type",
     .attrs = "T: type, out_type: {int32, int64} = int32",
     COUNTS,
     .shape = shape_bound,
     .prepare = prepare_out_type,
     .kernel = lower_bound,
     .samples = "int32[1,3]=[1,3,5], int32[1,4]"},
    {.name = "UpperBound",
     .inputs = "sorted_inputs: T, values: T",
     .outputs = "output: out_type",
     .attrs = "T: type, out_type: {int32, int64} = int32",
     COUNTS,
     .shape = shape_bound,
     .prepare = prepare_out_type,
     .kernel = upper_bound,
     .samples = "int32[1,3]=[1,3,5], int32[1,4]"},
    {.name = "Bucketize",
     .inputs = "input: T",
     .outputs = "output: int32",
     .attrs = "T: {int32, int64, float, double}, boundaries: list(float)",
     COUNTS,
     .shape = ops_shape_same,
     .prepare = prepare_bucketize,
     .kernel = bucketize,
     .samples = "float[3,4] {boundaries=[-1, 0, 1]}"},
    {.name = "Bincount",
     .inputs = "arr: int32, size: int32, weights: T",
     .outputs = "bins: T",
     .attrs = "T: {int32, int64, float, double}",
     COUNTS,
     .host_inputs = 2,
     .shape = shape_bincount,
     .kernel = bincount,
     .samples = "int32[4]=[1,0,1,3], int32[]=5, float[4]"},
    {.name = "DenseBincount",
     .inputs = "input: Tidx, size: Tidx, weights: T",
     .outputs = "output: T",
     .attrs = "Tidx: {int32, int64}, T: {int32, int64, float, double}, binary_output: bool = false",
     COUNTS,
     .host_inputs = 2,
     .shape = shape_dense_bincount,
     .prepare = prepare_dense,
     .kernel = dense_bincount,
     .samples = "int32[4]=[1,0,1,3], int32[]=5, float[4]"},
    {.name = "HistogramFixedWidth",
     .inputs = "values: T, value_range: T, nbins: int32",
     .outputs = "out: dtype",
     .attrs = "T: {int32, int64, float, double}, dtype: {int32, int64} = int32",
     COUNTS,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .shape = shape_histogram,
     .prepare = prepare_histogram,
     .kernel = histogram,
     .samples = "float[3,4], float[2]=[-1,1], int32[]=5"},
};
TFC_REGISTER_OPS(math_order_rows);
