// Operations that make a tensor by a rule (Fill, ZerosLike, OnesLike, Range, LinSpace, OneHot), and the operations that
// broadcast.
#include <limits.h>
#include <math.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// --- Fill, ZerosLike, OnesLike -------------------------------------------------------------------------------------
static tfc_status dims_of(const struct tfc_tensor *t, struct tfc_shape *out) {
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(t, out));
  for (int d = 0; d < out->rank; d++)
    TFC_KERNEL_CHECK(out->dims[d] >= 0, "dimension %d is negative: %lld", d, (long long)out->dims[d]);
  return NULL;
}

static tfc_status fill(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *value = ctx->inputs[1];
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(dims_of(ctx->inputs[0], &shape));
  TFC_KERNEL_CHECK(tfc_tensor_elements(value) == 1, "value must be a scalar");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, value->dtype, &shape, &y));
  return ops_fill_with(y, 0, tfc_tensor_elements(y), value, 0);
}
static tfc_status shape_fill(struct tfc_shape_ctx *ctx) {
  struct tfc_shape vector;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &vector));
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}
OPS_GRADIENT(Fill) {
  struct tfc_output all =
      grad_op3(g, "Range", tfc_add_i32(g->builder, 0), grad_op1(g, "Rank", G), tfc_add_i32(g->builder, 1));
  g->grad_inputs[1] = grad_sum(g, G, all, false);
  return NULL;
}

static tfc_status zeros_like(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  if (ctx->inputs[0]->dtype == TFC_RESOURCE) return ops_unsupported_type(ctx, ctx->inputs[0]->dtype);
  if (ctx->inputs[0]->dtype == TFC_VARIANT) { // zeros with the types and shapes of what the lists or optionals hold
    struct tfc_tensor zeros = {0};
    TFC_RETURN_IF_ERROR(tfc_variant_zeros_like(ctx, ctx->inputs[0], &zeros));
    return tfc_data_output(ctx, 0, &zeros);
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[0], &y));
  ops_fill_zero(y);
  return NULL;
}

#define PUT_ONE(t, ...)                                                                                                \
  case OPS_DT_##t: *(ops_##t *)one = OPS_PUT_##t(1); break;
static tfc_status ones_like(struct tfc_kernel_ctx *ctx) {
  _Alignas(16) char one[16] = {0};
  struct tfc_tensor *y = NULL, source = {.dtype = ctx->inputs[0]->dtype, .data = one};
  switch (source.dtype) {
    OPS_ALL(PUT_ONE, ~)
  default: return ops_unsupported_type(ctx, source.dtype);
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[0], &y));
  return ops_fill_with(y, 0, tfc_tensor_elements(y), &source, 0);
}

// --- Range, LinSpace -----------------------------------------------------------------------------------------------
// Counts the values in [start, limit) in steps of delta; for floats as TensorFlow does: ceil |(limit - start) / delta|.
#define RANGE(t, ...)                                                                                                  \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t##_c a = OPS_GET_##t(*(const ops_##t *)start->data), b = OPS_GET_##t(*(const ops_##t *)limit->data);        \
    ops_##t##_c by = OPS_GET_##t(*(const ops_##t *)delta->data);                                                       \
    TFC_KERNEL_CHECK(by != 0, "Requires delta != 0");                                                                  \
    if (by > 0)                                                                                                        \
      TFC_KERNEL_CHECK(!(a > b), "Requires start <= limit when delta > 0");                                            \
    else                                                                                                               \
      TFC_KERNEL_CHECK(!(a < b), "Requires start >= limit when delta < 0");                                            \
    RANGE_COUNT_##t(a, b, by);                                                                                         \
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, start->dtype, &TFC_SHAPE(n), &y));                                   \
    ops_##t *out = y->data;                                                                                            \
    ops_##t##_u v = (ops_##t##_u)a;                                                                                    \
    for (int64_t i = 0; i < n; i++, v += (ops_##t##_u)by) out[i] = OPS_PUT_##t(v);                                     \
    return NULL;                                                                                                       \
  }
#define RANGE_COUNT_FLOAT(a, b, by)                                                                                    \
  double steps = ceil(fabs(((double)b - (double)a) / (double)by));                                                     \
  TFC_KERNEL_CHECK(steps < 9e15, "Requires ((limit - start) / delta) to fit int64");                                   \
  int64_t n = (int64_t)steps
// Distances are unsigned, so that they cannot overflow.
#define RANGE_COUNT_INT(a, b, by)                                                                                      \
  uint64_t distance = by > 0 ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b;                                  \
  uint64_t step = by > 0 ? (uint64_t)by : 0 - (uint64_t)by;                                                            \
  int64_t n = distance ? (int64_t)((distance - 1) / step + 1) : 0
#define RANGE_COUNT_f32 RANGE_COUNT_FLOAT
#define RANGE_COUNT_f64 RANGE_COUNT_FLOAT
#define RANGE_COUNT_f16 RANGE_COUNT_FLOAT
#define RANGE_COUNT_b16 RANGE_COUNT_FLOAT
#define RANGE_COUNT_i8 RANGE_COUNT_INT
#define RANGE_COUNT_i16 RANGE_COUNT_INT
#define RANGE_COUNT_i32 RANGE_COUNT_INT
#define RANGE_COUNT_i64 RANGE_COUNT_INT
#define RANGE_COUNT_u16 RANGE_COUNT_INT
#define RANGE_COUNT_u32 RANGE_COUNT_INT
#define RANGE_TYPES(M, ...)                                                                                            \
  OPS_FLOATS(M, __VA_ARGS__) OPS_SIGNED(M, __VA_ARGS__) M(u16, __VA_ARGS__) M(u32, __VA_ARGS__)
static tfc_status range(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *start = ctx->inputs[0], *limit = ctx->inputs[1], *delta = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  for (int i = 0; i < 3; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == 1, "start, limit and delta must be scalars");
  switch (start->dtype) {
    RANGE_TYPES(RANGE, ~)
  default: return ops_unsupported_type(ctx, start->dtype);
  }
}
static tfc_status check_three_scalars(struct tfc_shape_ctx *ctx) {
  struct tfc_shape unused;
  for (uint32_t i = 0; i < 3; i++) TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 0, &unused));
  return NULL;
}
static tfc_status shape_range(struct tfc_shape_ctx *ctx) {
  int64_t v[3];
  TFC_RETURN_IF_ERROR(check_three_scalars(ctx));
  bool known = true;
  const struct tfc_tensor *const *values = ctx->input_values;
  ctx->outputs[0] = tfc_shape_unknown_of_rank(1);
  if (values && values[0] && !tfc_dtype_is_integer(values[0]->dtype)) {
    double f[3];
    for (int i = 0; i < 3; i++) {
      const struct tfc_tensor *t = values[i];
      if (!t || tfc_tensor_elements(t) != 1) return NULL;
      f[i] = t->dtype == TFC_FLOAT    ? (double)*(const float *)t->data
             : t->dtype == TFC_DOUBLE ? *(const double *)t->data
             : t->dtype == TFC_HALF   ? (double)tfc_half_to_float(*(const uint16_t *)t->data)
                                      : (double)tfc_bfloat16_to_float(*(const uint16_t *)t->data);
    }
    double n = ceil(fabs((f[1] - f[0]) / f[2]));
    if (n >= 0 && n < 9e15) ctx->outputs[0].dims[0] = (int64_t)n;
    return NULL;
  }
  for (uint32_t i = 0; i < 3; i++) known = known && ops_known_int(ctx, i, &v[i]);
  if (!known || v[2] == 0) return NULL;
  if (v[2] > 0 ? v[0] > v[1] : v[0] < v[1])
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a range from %lld to %lld by %lld", (long long)v[0], (long long)v[1],
                           (long long)v[2]);
  uint64_t distance = v[2] > 0 ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
  uint64_t step = v[2] > 0 ? (uint64_t)v[2] : 0 - (uint64_t)v[2];
  ctx->outputs[0].dims[0] = distance ? (int64_t)((distance - 1) / step + 1) : 0;
  return NULL;
}

#define LINSPACE(t, ...)                                                                                               \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t##_c a = OPS_GET_##t(*(const ops_##t *)start->data), b = OPS_GET_##t(*(const ops_##t *)stop->data);         \
    ops_##t *out = y->data;                                                                                            \
    out[0] = OPS_PUT_##t(a);                                                                                           \
    if (n > 1) {                                                                                                       \
      ops_##t##_c step = (b - a) / (ops_##t##_c)(n - 1);                                                               \
      for (int64_t i = 1; i < n - 1; i++) out[i] = OPS_PUT_##t(a + step * (ops_##t##_c)i);                             \
      out[n - 1] = OPS_PUT_##t(b);                                                                                     \
    }                                                                                                                  \
    return NULL;                                                                                                       \
  }
static tfc_status linspace(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *start = ctx->inputs[0], *stop = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  for (int i = 0; i < 3; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == 1, "start, stop and num must be scalars");
  int64_t n = tfc_tensor_int(ctx->inputs[2], 0);
  TFC_KERNEL_CHECK(n > 0, "Requires num > 0: %lld", (long long)n);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, start->dtype, &TFC_SHAPE(n), &y));
  switch (start->dtype) {
    OPS_FLOATS(LINSPACE, ~)
  default: return ops_unsupported_type(ctx, start->dtype);
  }
}
static tfc_status shape_linspace(struct tfc_shape_ctx *ctx) {
  int64_t n;
  TFC_RETURN_IF_ERROR(check_three_scalars(ctx));
  ctx->outputs[0] = tfc_shape_unknown_of_rank(1);
  if (ops_known_int(ctx, 2, &n)) {
    if (n <= 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "Requires num > 0: %lld", (long long)n);
    ctx->outputs[0].dims[0] = n;
  }
  return NULL;
}

// --- OneHot --------------------------------------------------------------------------------------------------------
static tfc_status prepare_axis(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, int64_t, axis);
  *axis = tfc_node_attr_int(ctx->graph, ctx->node, "axis", -1);
  return NULL;
}
static tfc_status one_hot_shape(const struct tfc_shape *indices, int64_t depth, int64_t axis, struct tfc_shape *out) {
  if (indices->rank + 1 > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  if (axis < -1 || axis > indices->rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Expected axis to be -1 or between [0, %d). But received: %lld",
                           indices->rank + 1, (long long)axis);
  int at = (int)(axis < 0 ? indices->rank : axis);
  out->rank = indices->rank + 1;
  for (int d = 0; d < out->rank; d++) out->dims[d] = d < at ? indices->dims[d] : d == at ? depth : indices->dims[d - 1];
  return NULL;
}
static tfc_status one_hot(struct tfc_kernel_ctx *ctx) { // y [outer, depth, inner]
  const struct tfc_tensor *indices = ctx->inputs[0], *on = ctx->inputs[2], *off = ctx->inputs[3];
  int64_t axis = *(const int64_t *)ctx->state;
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape;
  for (int i = 1; i < 4; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 0, "depth, on_value and off_value must be scalars");
  int64_t depth = tfc_tensor_int(ctx->inputs[1], 0);
  TFC_KERNEL_CHECK(depth >= 0, "depth must be non-negative, got: %lld", (long long)depth);
  TFC_RETURN_IF_ERROR(one_hot_shape(&indices->shape, depth, axis, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, on->dtype, &shape, &y));
  int64_t inner = 1, n = tfc_tensor_elements(indices);
  for (int d = axis < 0 ? shape.rank : (int)axis + 1; d < shape.rank; d++) inner *= shape.dims[d];
  TFC_RETURN_IF_ERROR(ops_fill_with(y, 0, tfc_tensor_elements(y), off, 0));
  for (int64_t i = 0; i < n; i++) {
    int64_t hot = tfc_tensor_int(indices, i);
    if (hot < 0 || hot >= depth) continue;
    TFC_RETURN_IF_ERROR(ops_copy_elements(y, (i / inner * depth + hot) * inner + i % inner, on, 0, 1));
  }
  return NULL;
}
static tfc_status shape_one_hot(struct tfc_shape_ctx *ctx) {
  int64_t depth = TFC_DIM_UNKNOWN;
  if (ctx->inputs[0]->rank < 0) return NULL;
  if (!ops_known_int(ctx, 1, &depth)) depth = TFC_DIM_UNKNOWN;
  return one_hot_shape(ctx->inputs[0], depth, tfc_node_attr_int(ctx->graph, ctx->node, "axis", -1), &ctx->outputs[0]);
}

// --- Broadcasting --------------------------------------------------------------------------------------------------
static tfc_status broadcast_to(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_shape shape, joined;
  struct tfc_tensor *y = NULL;
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 1, "shape must be a vector of {int32,int64}, got shape %s",
                   tfc_shape_show(&ctx->inputs[1]->shape, a));
  TFC_RETURN_IF_ERROR(dims_of(ctx->inputs[1], &shape));
  tfc_status s = tfc_shape_broadcast(&x->shape, &shape, &joined);
  if (s || !tfc_shape_equal(&joined, &shape)) {
    tfc_status_free(s);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s", tfc_shape_show(&x->shape, a),
                           tfc_shape_show(&shape, b));
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  struct ops_block block = {.rank = shape.rank};
  int64_t strides[TFC_MAX_RANK];
  tfc_shape_strides(&shape, block.dst_strides);
  tfc_shape_strides(&x->shape, strides);
  for (int d = 0; d < shape.rank; d++) {
    int e = d - (shape.rank - x->shape.rank);
    block.dims[d] = shape.dims[d];
    block.src_strides[d] = e < 0 || x->shape.dims[e] == 1 ? 0 : strides[e];
  }
  return ops_copy_block(ctx, y, x, &block);
}
static tfc_status shape_broadcast_to(struct tfc_shape_ctx *ctx) {
  struct tfc_shape to = ops_described_shape(ctx, 1), joined;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &joined));
  const struct tfc_shape *x = ctx->inputs[0];
  ctx->outputs[0] = to;
  if (to.rank < 0 || x->rank < 0) return NULL;
  if (x->rank > to.rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Rank of input (%d) must be no greater than rank of output shape (%d)",
                           x->rank, to.rank);
  for (int d = 0; d < x->rank; d++) { // dimensions greater than 1 keep their size
    int64_t *want = &ctx->outputs[0].dims[d + to.rank - x->rank];
    if (tfc_dim_known(x->dims[d]) && x->dims[d] > 1) TFC_RETURN_IF_ERROR(tfc_dim_merge(x->dims[d], *want, want));
    if (x->dims[d] == 0 && tfc_dim_known(*want) && *want != 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a dimension of 0 cannot become %lld", (long long)*want);
  }
  return NULL;
}
OPS_GRADIENT(BroadcastTo) {
  tfc_dtype type = grad_type(g, grad_in(g, 1));
  struct tfc_output from = grad_shape(g, X, g->input_shapes[0], type);
  struct tfc_output axes = grad_op2(g, "BroadcastGradientArgs", grad_in(g, 1), from);
  g->grad_inputs[0] = g_reshape(g, grad_sum(g, G, (struct tfc_output){axes.node, 1}, true), from);
  return NULL;
}

static tfc_status put_ints(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_dtype type, const int64_t *v, int n) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, type, &TFC_SHAPE(n), &y));
  for (int k = 0; k < n; k++) {
    if (type == TFC_INT64)
      ((int64_t *)y->data)[k] = v[k];
    else
      ((int32_t *)y->data)[k] = (int32_t)v[k];
  }
  return NULL;
}
// Sizes may also be -1, for an unknown one. Here they are plain numbers and are joined by the same rule.
static tfc_status broadcast_args(struct tfc_kernel_ctx *ctx) {
  int64_t joined[TFC_MAX_RANK], size[2];
  for (int i = 0; i < 2; i++) {
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 1, "In[%d] must be a vector.", i);
    size[i] = ctx->inputs[i]->shape.dims[0];
  }
  int64_t n = size[0] > size[1] ? size[0] : size[1];
  TFC_KERNEL_CHECK(n <= TFC_MAX_RANK, "shapes of more than %d dimensions", TFC_MAX_RANK);
  for (int64_t d = 0; d < n; d++) {
    int64_t at[2] = {d - (n - size[0]), d - (n - size[1])};
    int64_t a = at[0] < 0 ? 1 : tfc_tensor_int(ctx->inputs[0], at[0]);
    int64_t b = at[1] < 0 ? 1 : tfc_tensor_int(ctx->inputs[1], at[1]);
    TFC_KERNEL_CHECK(a == b || a == 1 || b == 1, "Incompatible shapes: %lld and %lld in dimension %lld", (long long)a,
                     (long long)b, (long long)d);
    joined[d] = a == 1 ? b : a;
  }
  return put_ints(ctx, 0, ctx->inputs[0]->dtype, joined, (int)n);
}
static tfc_status shape_broadcast_args(struct tfc_shape_ctx *ctx) {
  for (int i = 0; i < 2; i++)
    if (ctx->inputs[i]->rank >= 0 && ctx->inputs[i]->rank != 1)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "In[%d] must be a vector, but has rank %d", i, ctx->inputs[i]->rank);
  struct tfc_shape a = ops_described_shape(ctx, 0), b = ops_described_shape(ctx, 1), joined;
  ctx->outputs[0] = tfc_shape_unknown_of_rank(1);
  if (a.rank < 0 || b.rank < 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&a, &b, &joined));
  ctx->outputs[0].dims[0] = joined.rank;
  if (tfc_shape_is_static(&a) && tfc_shape_is_static(&b)) ops_set_partial(ctx, 0, &joined);
  return NULL;
}

// Axes along which each shape was repeated to reach the common one: there, gradients are summed. A dimension
// that is 1 in both shapes is in both lists if the shapes differ anywhere (TensorFlow's answer; summing over them
// changes nothing).
static tfc_status broadcast_gradient_args(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape s[2], joined;
  int64_t axes[2][TFC_MAX_RANK];
  int count[2] = {0, 0};
  for (int k = 0; k < 2; k++) {
    TFC_KERNEL_CHECK(ctx->inputs[k]->shape.rank == 1, "In[%d] must be a vector.", k);
    TFC_RETURN_IF_ERROR(dims_of(ctx->inputs[k], &s[k]));
  }
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(&s[0], &s[1], &joined));
  if (!tfc_shape_equal(&s[0], &s[1]))
    for (int d = 0; d < joined.rank; d++) {
      int64_t n[2];
      for (int k = 0; k < 2; k++) {
        int e = d - (joined.rank - s[k].rank);
        n[k] = e < 0 ? 1 : s[k].dims[e];
      }
      for (int k = 0; k < 2; k++)
        if (n[k] == 1) axes[k][count[k]++] = d;
    }
  for (uint32_t k = 0; k < 2; k++) TFC_RETURN_IF_ERROR(put_ints(ctx, k, ctx->inputs[0]->dtype, axes[k], count[k]));
  return NULL;
}
static tfc_status shape_two_vectors(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ctx->outputs[1] = tfc_shape_unknown_of_rank(1);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define LIKE .flags = TFC_OP_NOT_DIFFERENTIABLE, .shape = ops_shape_same
static const struct tfc_op_def array_fill_rows[] = {
    {.name = "Fill",
     .inputs = "dims: index_type, value: T",
     .outputs = "output: T",
     .attrs = "T: type, index_type: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_fill,
     .kernel = fill,
     .gradient = gradient_Fill,
     .samples = "int32[2]=[2,3], float[]; int64[0]=[], int32[]"},
    {.name = "ZerosLike",
     .role = TFC_ROLE_OF_SHAPE,
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     LIKE,
     .host = {"T", TFC_INT32_BIT},
     .kernel = zeros_like,
     .samples = "float[3,4]; int32[2]; bool[]"},
    {.name = "OnesLike",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
              "complex128, bool}",
     LIKE,
     .host = {"T", TFC_INT32_BIT},
     .kernel = ones_like,
     .samples = "float[3,4]; int32[2]; half[2]"},
    {.name = "Range",
     .inputs = "start: Tidx, limit: Tidx, delta: Tidx",
     .outputs = "output: Tidx",
     .attrs = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(RANGE_TYPES),
     .host = {"Tidx", TFC_INT32_BIT},
     .host_inputs = 7,
     .host_outputs = 1,
     .shape = shape_range,
     .kernel = range,
     .samples = "int32[]=0, int32[]=7, int32[]=2"},
    {.name = "LinSpace",
     .inputs = "start: T, stop: T, num: Tidx",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_FLOATS),
     .host_inputs = 7,
     .host_outputs = 1,
     .shape = shape_linspace,
     .kernel = linspace,
     .samples = "float[], float[], int32[]=5"},
    {.name = "OneHot",
     .inputs = "indices: TI, depth: int32, on_value: T, off_value: T",
     .outputs = "output: T",
     .attrs = "axis: int = -1, T: type, TI: {uint8, int8, int32, int64} = int64",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .index_use = TFC_INDEX_ONE_HOT,
     .host_inputs = 2,
     .shape = shape_one_hot,
     .prepare = prepare_axis,
     .kernel = one_hot,
     .samples = "int32[4], int32[]=3, float[], float[]; int64[2,2], int32[]=3, float[], float[] "
                "{axis=0}"},
    {.name = "BroadcastTo",
     .role = TFC_ROLE_REPEATS,
     .inputs = "input: T, shape: Tidx",
     .outputs = "output: T",
     .attrs = "T: type, Tidx: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_broadcast_to,
     .kernel = broadcast_to,
     .gradient = gradient_BroadcastTo,
     .samples = "float[3,1], int32[3]=[2,3,4]; float[], int32[1]=[5]"},
    {.name = "BroadcastArgs",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T",
     .attrs = "T: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 3,
     .host_outputs = 1,
     .shape = shape_broadcast_args,
     .kernel = broadcast_args,
     .samples = "int32[2]=[2,1], int32[3]=[4,1,3]"},
    {.name = "BroadcastGradientArgs",
     .inputs = "s0: T, s1: T",
     .outputs = "r0: T, r1: T",
     .attrs = "T: {int32, int64} = int32",
     .flags = TFC_OP_ABOUT_INPUTS | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 3,
     .host_outputs = 3,
     .shape = shape_two_vectors,
     .kernel = broadcast_gradient_args,
     .samples = "int32[2]=[2,1], int32[3]=[4,1,3]"},
};
TFC_REGISTER_OPS(array_fill_rows);
