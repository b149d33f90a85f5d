// The operations that pick slices by index (Gather, GatherV2, GatherNd) and those that write them (ScatterNd,
// TensorScatter*).
#include "runtime/ops/array_gather.h"

#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/array_index.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/rows_ahead.h"

static int64_t product(const struct tfc_shape *s, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++) n *= s->dims[d];
  return n;
}

// --- Gather --------------------------------------------------------------------------------------------------------
struct gather_job {
  struct ops_gather g;
  _Atomic int64_t bad; // the first index out of range, or -1
  _Atomic(tfc_status) failed;
};
// Returns the number of the index by which slice k of y is made; *out_from: the slice of params that index 0 names. k
// numbers [batch, outer, index].
static inline int64_t index_of(const struct ops_gather *g, int64_t k, int64_t *out_from) {
  *out_from = 0;
  if (g->batches * g->outer == 1) return k;
  const int64_t row = k / g->count;
  *out_from = row * g->axis;
  return row / g->outer * g->count + k % g->count;
}
// Brings the slice to the cache from which slice k is made.
static void bring_slice(const struct ops_gather *g, int64_t k, size_t bytes) {
  int64_t from;
  const int64_t at = ops_index_at(g->indices, index_of(g, k, &from));
  if (at < 0 || at >= g->axis) return;
  ops_bring_row((const char *)g->params->data + (size_t)(from + at) * bytes, bytes);
}
static void gather_piece(void *arg, int64_t begin, int64_t end) {
  struct gather_job *j = arg;
  const struct ops_gather *g = &j->g;
  const bool plain = tfc_dtype_is_plain(g->y->dtype);
  const size_t bytes = (size_t)g->inner * tfc_dtype_size(g->y->dtype);
  for (int64_t k = begin; plain && k < end && k < begin + OPS_ROWS_AHEAD; k++) bring_slice(g, k, bytes);
  for (int64_t k = begin; k < end; k++) {
    int64_t from;
    const int64_t mine = index_of(g, k, &from), at = ops_index_at(g->indices, mine);
    if (plain && k + OPS_ROWS_AHEAD < end) bring_slice(g, k + OPS_ROWS_AHEAD, bytes);
    if (at < 0 || at >= g->axis) {
      int64_t seen = atomic_load_explicit(&j->bad, memory_order_relaxed);
      while ((seen < 0 || mine < seen) && !atomic_compare_exchange_weak(&j->bad, &seen, mine)) {
      }
      continue;
    }
    if (plain) {
      ops_copy_bytes((char *)g->y->data + (size_t)k * bytes,
                     (const char *)g->params->data + (size_t)(from + at) * bytes, bytes);
      continue;
    }
    tfc_status s = ops_copy_elements(g->y, k * g->inner, g->params, (from + at) * g->inner, g->inner);
    tfc_status none = NULL; // the first failure is kept
    if (s && !atomic_compare_exchange_strong(&j->failed, &none, s)) tfc_status_free(s);
  }
}

tfc_status ops_gather_run(struct tfc_kernel_ctx *ctx, const struct ops_gather *gather) {
  struct gather_job job = {.g = *gather, .bad = -1};
  const int64_t total = gather->batches * gather->outer * gather->count;
  if (total == 0) return NULL;
  tfc_kernel_parallel_for(ctx, total, OPS_GRAIN_CHEAP / (gather->inner + 1) + 1, gather_piece, &job);
  if (job.failed) return job.failed;
  const int64_t bad = job.bad;
  return bad < 0 ? NULL : ops_bad_index(gather->indices, bad, gather->axis);
}

static tfc_status gather_along(struct tfc_kernel_ctx *ctx, int64_t given_axis, int64_t batch_dims) {
  const struct tfc_tensor *params = ctx->inputs[0], *indices = ctx->inputs[1];
  const struct tfc_shape *ps = &params->shape, *is = &indices->shape;
  int axis;
  TFC_KERNEL_CHECK(ps->rank >= 1, "params must be at least 1 dimensional");
  TFC_RETURN_IF_ERROR(ops_axis(given_axis, ps->rank, &axis));
  if (batch_dims < 0) batch_dims += is->rank;
  TFC_KERNEL_CHECK(batch_dims >= 0 && batch_dims <= is->rank && batch_dims < ps->rank,
                   "batch_dims (%lld) must be at most the rank of the indices (%d) and less than that of params (%d)",
                   (long long)batch_dims, is->rank, ps->rank);
  TFC_KERNEL_CHECK(axis >= batch_dims, "batch_dims (%lld) must be less than or equal to axis (%d).",
                   (long long)batch_dims, axis);
  int b = (int)batch_dims;
  for (int d = 0; d < b; d++)
    TFC_KERNEL_CHECK(ps->dims[d] == is->dims[d], "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", d,
                     (long long)ps->dims[d], d, (long long)is->dims[d]);
  struct tfc_shape shape = {0};
  TFC_KERNEL_CHECK(ps->rank - 1 + is->rank - b <= TFC_MAX_RANK, "the result has too many dimensions");
  for (int d = 0; d < axis; d++) shape.dims[shape.rank++] = ps->dims[d];
  for (int d = b; d < is->rank; d++) shape.dims[shape.rank++] = is->dims[d];
  for (int d = axis + 1; d < ps->rank; d++) shape.dims[shape.rank++] = ps->dims[d];
  struct ops_gather gather = {.params = params,
                              .indices = indices,
                              .batches = product(ps, 0, b),
                              .outer = product(ps, b, axis),
                              .count = product(is, b, is->rank),
                              .axis = ps->dims[axis],
                              .inner = product(ps, axis + 1, ps->rank)};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, params->dtype, &shape, &gather.y));
  return ops_gather_run(ctx, &gather);
}
static tfc_status prepare_batch_dims(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, int64_t, batch_dims);
  *batch_dims = tfc_node_attr_int(ctx->graph, ctx->node, "batch_dims", 0);
  return NULL;
}
static tfc_status gather(struct tfc_kernel_ctx *ctx) {
  return gather_along(ctx, 0, 0);
}
static tfc_status gather_v2(struct tfc_kernel_ctx *ctx) {
  TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "axis must be scalar");
  return gather_along(ctx, tfc_tensor_int(ctx->inputs[2], 0), *(const int64_t *)ctx->state);
}

static tfc_status gather_shape(struct tfc_shape_ctx *ctx, bool axis_known, int64_t given_axis, int64_t batch_dims) {
  const struct tfc_shape *p = ctx->inputs[0], *i = ctx->inputs[1];
  int axis;
  if (p->rank < 0 || i->rank < 0) return NULL;
  if (batch_dims < 0) batch_dims += i->rank;
  int b = (int)batch_dims, rank = p->rank - 1 + i->rank - b;
  if (p->rank < 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "params must be at least 1 dimensional");
  if (b < 0 || b > i->rank || b >= p->rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "batch_dims %d does not fit ranks %d and %d", b, p->rank, i->rank);
  if (rank > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "the result has too many dimensions");
  ctx->outputs[0] = tfc_shape_unknown_of_rank(rank);
  if (!axis_known) return NULL;
  TFC_RETURN_IF_ERROR(ops_axis(given_axis, p->rank, &axis));
  if (axis < b) return tfc_status_make(TFC_INVALID_ARGUMENT, "batch_dims %d is greater than axis %d", b, axis);
  struct tfc_shape out = TFC_SHAPE_SCALAR;
  for (int d = 0; d < axis; d++) {
    out.dims[out.rank] = p->dims[d];
    if (d < b) TFC_RETURN_IF_ERROR(tfc_dim_merge(p->dims[d], i->dims[d], &out.dims[out.rank]));
    out.rank++;
  }
  for (int d = b; d < i->rank; d++) out.dims[out.rank++] = i->dims[d];
  for (int d = axis + 1; d < p->rank; d++) out.dims[out.rank++] = p->dims[d];
  ctx->outputs[0] = out;
  // If the gathered elements are sizes of a known shape and the indices are known, the result is known too.
  const struct tfc_shape *known = ctx->input_as_shape ? ctx->input_as_shape[0] : NULL;
  int64_t at[TFC_MAX_RANK];
  int n;
  if (known && known->rank >= 0 && p->rank == 1 && i->rank <= 1 && ctx->input_values && ctx->input_values[1] &&
      ops_known_ints(ctx, 1, at, TFC_MAX_RANK, &n)) {
    struct tfc_shape part = {.rank = n};
    for (int k = 0; k < n; k++) {
      if (at[k] < 0 || at[k] >= known->rank) return NULL;
      part.dims[k] = known->dims[at[k]];
    }
    ops_set_partial(ctx, 0, &part);
  }
  return NULL;
}
static tfc_status shape_gather(struct tfc_shape_ctx *ctx) {
  return gather_shape(ctx, true, 0, 0);
}
static tfc_status shape_gather_v2(struct tfc_shape_ctx *ctx) {
  int64_t axis = 0;
  bool known = ctx->input_values && ctx->input_values[2] && ops_known_int(ctx, 2, &axis);
  return gather_shape(ctx, known, axis, tfc_node_attr_int(ctx->graph, ctx->node, "batch_dims", 0));
}

// Computes the gradient for axis 0, which consists of rows and their indices.
static void rows_gradient(struct tfc_grad_ctx *g) {
  struct tfc_builder *b = g->builder;
  struct tfc_output indices = grad_in(g, 1), shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32);
  struct tfc_output all = tfc_add_i32_vector(b, (int32_t[]){-1}, 1), zero = tfc_add_i32(b, 0);
  struct tfc_output size = g_reshape(g, grad_op1(g, "Size", indices), tfc_add_i32_vector(b, (int32_t[]){1}, 1));
  struct tfc_output values_shape[2] = {size, grad_range(g, shape, 1, INT64_MAX)};
  struct tfc_output values = g_reshape(g, G, grad_concat(g, values_shape, 2, zero));
  grad_set_indexed(g, 0, values, g_reshape(g, indices, all), shape);
}
OPS_GRADIENT(Gather) {
  rows_gradient(g);
  return NULL;
}
// Whether `x` is a constant with one element; *out is its value. GatherV2's gradient uses it for the axis: for an axis
// other than 0, the axis is moved to the front (behind the batch dimensions), the rows are summed by index, and the
// axis is moved back.
static bool constant_int(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t *out) {
  const struct tfc_node *n = tfc_builder_node(g->builder, x.node);
  if (!tfc_str_is(n->op, "Const")) return false;
  const struct tfc_attr *v = tfc_builder_attr(g->builder, x.node, "value");
  if (!v || v->kind != TFC_ATTR_TENSOR || tfc_tensor_elements(v->tensor) != 1) return false;
  *out = tfc_tensor_int(v->tensor, 0);
  return true;
}
OPS_GRADIENT(GatherV2) {
  struct tfc_builder *b = g->builder;
  int64_t axis_value = 0, batch = grad_attr_int(g, "batch_dims", 0);
  const struct tfc_shape *ps = g->input_shapes[0], *is = g->input_shapes[1];
  bool known = constant_int(g, grad_in(g, 2), &axis_value);
  if (batch < 0) {
    if (is->rank < 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "batch_dims is negative and the rank of the indices is not known");
    batch += is->rank;
  }
  if (known && axis_value < 0 && ps->rank >= 0) axis_value += ps->rank;
  if (known && axis_value == 0) {
    rows_gradient(g);
    return NULL;
  }
  struct tfc_output zero = tfc_add_i32(b, 0), one = tfc_add_i32(b, 1), all = tfc_add_i32_vector(b, (int32_t[]){-1}, 1);
  struct tfc_output shape = grad_shape(g, X, ps, TFC_INT32), indices = grad_in(g, 1);
  struct tfc_output rank = grad_op1(g, "Rank", X);
  struct tfc_output axis = known && axis_value >= 0
                               ? tfc_add_i32(b, (int32_t)axis_value)
                               : grad_op2(g, "FloorMod", grad_cast(g, grad_in(g, 2), TFC_INT32), rank);
  struct tfc_output batches = tfc_add_i32(b, (int32_t)batch), next = g_add(g, axis, one);
  // values [outer…, indices, inner…]
  struct tfc_output outer_axes = grad_op3(g, "Range", zero, axis, one),
                    inner_axes = grad_op3(g, "Range", next, rank, one);
  struct tfc_output parts[4] = {grad_op3(g, "GatherV2", shape, outer_axes, zero), all,
                                grad_op3(g, "GatherV2", shape, inner_axes, zero)};
  struct tfc_output values = g_reshape(g, G, grad_concat(g, parts, 3, zero));
  struct tfc_output axis_vector = g_reshape(g, axis, tfc_add_i32_vector(b, (int32_t[]){1}, 1));
  struct tfc_output forward[4] = {grad_op3(g, "Range", zero, batches, one), axis_vector,
                                  grad_op3(g, "Range", batches, axis, one), inner_axes};
  struct tfc_output perm = grad_concat(g, forward, 4, zero);
  struct tfc_output transposed = grad_op2(g, "Transpose", values, perm); // [batch…, indices, rest…]
  struct tfc_output transposed_shape = grad_op3(g, "GatherV2", shape, perm, zero), sum;
  struct tfc_output axis_size = grad_op3(g, "GatherV2", shape, axis, zero);
  if (batch == 0) {
    sum = grad_op3(g, "UnsortedSegmentSum", transposed, g_reshape(g, indices, all), axis_size);
  } else {
    // The indices of all batches become one list: those of a batch are shifted by the sizes of all batches before it.
    struct tfc_output vector = tfc_add_i32_vector(b, (int32_t[]){0}, 1);
    struct tfc_output count = grad_op2(g, "Prod", grad_range(g, shape, 0, batch), vector);
    struct tfc_output flat[2] = {count, tfc_add_i32(b, -1)};
    tfc_dtype type = grad_type(g, indices);
    struct tfc_output starts = grad_op3(g, "Range", zero, count, one);
    starts = grad_cast(g, g_mul(g, starts, axis_size), type);
    starts = g_reshape(g, starts, tfc_add_i32_vector(b, (int32_t[]){-1, 1}, 2));
    struct tfc_output shifted = g_add(g, g_reshape(g, indices, grad_pack(g, flat, 2, 0)), starts);
    struct tfc_output rest = grad_op3(g, "GatherV2", transposed_shape,
                                      grad_op3(g, "Range", tfc_add_i32(b, (int32_t)batch + 1), rank, one), zero);
    struct tfc_output rows[2] = {all, rest};
    struct tfc_output rows_of = g_reshape(g, transposed, grad_concat(g, rows, 2, zero));
    sum = grad_op3(g, "UnsortedSegmentSum", rows_of, g_reshape(g, shifted, all), g_mul(g, count, axis_size));
  }
  sum = g_reshape(g, sum, transposed_shape);
  g->grad_inputs[0] = grad_op2(g, "Transpose", sum, grad_op1(g, "InvertPermutation", perm));
  return NULL;
}

// --- GatherNd, ScatterNd -------------------------------------------------------------------------------------------
// Indices [..., depth] select slices of `slice` elements; step[d] is the distance, in elements, between neighbours in
// dimension d.
struct nd_plan {
  int64_t count, depth, slice;
  int64_t dims[TFC_MAX_RANK], step[TFC_MAX_RANK];
  struct tfc_shape outer; // the shape of the indices without the last dimension
};
static tfc_status plan_nd(const struct tfc_shape *tensor, const struct tfc_shape *indices, struct nd_plan *out) {
  TFC_KERNEL_CHECK(indices->rank >= 1, "indices must be at least a vector");
  struct nd_plan p = {.depth = indices->dims[indices->rank - 1], .outer = *indices};
  p.outer.rank--;
  TFC_KERNEL_CHECK(p.depth <= tensor->rank, "index innermost dimension length must be <= params rank; saw: %lld vs. %d",
                   (long long)p.depth, tensor->rank);
  p.count = product(indices, 0, indices->rank - 1);
  p.slice = product(tensor, (int)p.depth, tensor->rank);
  int64_t step = p.slice;
  for (int d = (int)p.depth - 1; d >= 0; d--) {
    p.dims[d] = tensor->dims[d];
    p.step[d] = step;
    step *= tensor->dims[d];
  }
  *out = p;
  return NULL;
}
// Returns the first element of slice i, or -1 if an index is out of range.
static int64_t nd_offset(const struct nd_plan *p, const struct tfc_tensor *indices, int64_t i) {
  int64_t at = 0;
  for (int64_t d = 0; d < p->depth; d++) {
    int64_t v = tfc_tensor_int(indices, i * p->depth + d);
    if (v < 0 || v >= p->dims[d]) return -1;
    at += v * p->step[d];
  }
  return at;
}
static tfc_status gather_nd(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *params = ctx->inputs[0], *indices = ctx->inputs[1];
  struct nd_plan p;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(params->shape.rank >= 1, "params must be at least a vector");
  TFC_RETURN_IF_ERROR(plan_nd(&params->shape, &indices->shape, &p));
  struct tfc_shape shape = p.outer;
  TFC_KERNEL_CHECK(shape.rank + params->shape.rank - (int)p.depth <= TFC_MAX_RANK,
                   "the result has too many dimensions");
  for (int d = (int)p.depth; d < params->shape.rank; d++) shape.dims[shape.rank++] = params->shape.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, params->dtype, &shape, &y));
  TFC_KERNEL_CHECK(p.count == 0 || p.slice == 0 || tfc_tensor_elements(params) > 0,
                   "Requested more than 0 entries, but params is empty.");
  int64_t bad = -1; // the last index out of range, because TensorFlow names that one
  for (int64_t i = 0; i < p.count; i++) {
    int64_t at = nd_offset(&p, indices, i);
    if (at < 0)
      bad = i;
    else
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, i * p.slice, params, at, p.slice));
  }
  return bad < 0 ? NULL : ops_bad_slice(indices, bad, "param shape", &params->shape);
}
static tfc_status shape_gather_nd(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *p = ctx->inputs[0], *i = ctx->inputs[1];
  if (p->rank < 0 || i->rank < 1 || !tfc_dim_known(i->dims[i->rank - 1])) {
    if (i->rank == 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "indices must be at least a vector");
    return NULL;
  }
  int64_t depth = i->dims[i->rank - 1];
  if (depth > p->rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "indices.shape[-1] must be <= params.rank, but saw %lld and %d",
                           (long long)depth, p->rank);
  if (i->rank - 1 + p->rank - depth > TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  struct tfc_shape out = *i;
  out.rank--;
  for (int d = (int)depth; d < p->rank; d++) out.dims[out.rank++] = p->dims[d];
  ctx->outputs[0] = out;
  return NULL;
}
OPS_GRADIENT(GatherNd) {
  struct tfc_output indices = grad_in(g, 1);
  const struct tfc_shape *is = g->input_shapes[1];
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], grad_type(g, indices));
  if (is->rank == 2 && is->dims[1] == 1)
    grad_set_indexed(g, 0, G, g_reshape(g, indices, tfc_add_i32_vector(g->builder, (int32_t[]){-1}, 1)), shape);
  else
    g->grad_inputs[0] = grad_op3(g, "ScatterNd", indices, G, shape);
  return NULL;
}

enum scatter { SCATTER_SET, SCATTER_ADD, SCATTER_SUB, SCATTER_MAX, SCATTER_MIN };
#define SCATTER_LOOP(t, ...)                                                                                           \
  static void scatter_##t(enum scatter how, void *yv, const void *xv, int64_t n) {                                     \
    ops_##t *y = yv;                                                                                                   \
    const ops_##t *x = xv;                                                                                             \
    typedef ops_##t##_u U;                                                                                             \
    if (how == SCATTER_ADD)                                                                                            \
      for (int64_t i = 0; i < n; i++) y[i] = OPS_PUT_##t((U)OPS_GET_##t(y[i]) + (U)OPS_GET_##t(x[i]));                 \
    else                                                                                                               \
      for (int64_t i = 0; i < n; i++) y[i] = OPS_PUT_##t((U)OPS_GET_##t(y[i]) - (U)OPS_GET_##t(x[i]));                 \
  }
#define EXTREME_LOOP(t, ...)                                                                                           \
  static void extreme_##t(enum scatter how, void *yv, const void *xv, int64_t n) {                                     \
    ops_##t *y = yv;                                                                                                   \
    const ops_##t *x = xv;                                                                                             \
    if (how == SCATTER_MAX)                                                                                            \
      for (int64_t i = 0; i < n; i++) y[i] = OPS_GET_##t(y[i]) < OPS_GET_##t(x[i]) ? x[i] : y[i];                      \
    else                                                                                                               \
      for (int64_t i = 0; i < n; i++) y[i] = OPS_GET_##t(x[i]) < OPS_GET_##t(y[i]) ? x[i] : y[i];                      \
  }
OPS_NUMBERS(SCATTER_LOOP, ~)
OPS_REALS(EXTREME_LOOP, ~)
static void scatter_b8(enum scatter how, void *yv, const void *xv, int64_t n) { // the sum of booleans is "or"
  (void)how;
  for (int64_t i = 0; i < n; i++) ((bool *)yv)[i] |= ((const bool *)xv)[i];
}
#define SCATTER_ENTRY(t, ...) [OPS_DT_##t] = scatter_##t,
#define EXTREME_ENTRY(t, ...) [OPS_DT_##t] = extreme_##t,
typedef void scatter_fn(enum scatter how, void *y, const void *x, int64_t n);
static scatter_fn *const scatter_table[TFC_DTYPE_COUNT] = {OPS_ALL(SCATTER_ENTRY, ~)};
static scatter_fn *const extreme_table[TFC_DTYPE_COUNT] = {OPS_REALS(EXTREME_ENTRY, ~)};

// Applies the updates to y in their order.
static tfc_status scatter_into(struct tfc_kernel_ctx *ctx, struct tfc_tensor *y, const struct tfc_tensor *indices,
                               const struct tfc_tensor *updates, enum scatter how) {
  struct nd_plan p;
  TFC_RETURN_IF_ERROR(plan_nd(&y->shape, &indices->shape, &p));
  struct tfc_shape wanted = p.outer;
  for (int d = (int)p.depth; d < y->shape.rank && wanted.rank < TFC_MAX_RANK; d++)
    wanted.dims[wanted.rank++] = y->shape.dims[d];
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  if (!tfc_shape_equal(&wanted, &updates->shape))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "updates must have shape %s, not %s", tfc_shape_show(&wanted, a),
                           tfc_shape_show(&updates->shape, b));
  scatter_fn *fn = how == SCATTER_SET ? NULL : how <= SCATTER_SUB ? scatter_table[y->dtype] : extreme_table[y->dtype];
  if (how != SCATTER_SET && (!fn || (y->dtype == TFC_BOOL && how == SCATTER_SUB)))
    return ops_unsupported_type(ctx, y->dtype);
  size_t size = tfc_dtype_size(y->dtype);
  for (int64_t i = 0; i < p.count; i++) {
    int64_t at = nd_offset(&p, indices, i);
    if (at < 0) return ops_bad_slice(indices, i, "shape", &y->shape);
    if (how == SCATTER_SET)
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, at, updates, i * p.slice, p.slice));
    else
      fn(how, (char *)y->data + (size_t)at * size, (const char *)updates->data + (size_t)(i * p.slice) * size, p.slice);
  }
  return NULL;
}

static tfc_status check_updates(const struct tfc_tensor *updates) {
  TFC_KERNEL_CHECK(updates->shape.rank >= 1, "Updates shape must have rank at least one. Found:[]");
  return NULL;
}

static tfc_status scatter_nd(struct tfc_kernel_ctx *ctx) { // adds the updates to zeros
  const struct tfc_tensor *indices = ctx->inputs[0], *updates = ctx->inputs[1];
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(check_updates(updates));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[2], &shape));
  for (int d = 0; d < shape.rank; d++)
    TFC_KERNEL_CHECK(shape.dims[d] >= 0, "shape must have non-negative dimensions, got %lld", (long long)shape.dims[d]);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, updates->dtype, &shape, &y));
  ops_fill_zero(y);
  return scatter_into(ctx, y, indices, updates, updates->dtype == TFC_STRING ? SCATTER_SET : SCATTER_ADD);
}
static tfc_status shape_scatter_nd(struct tfc_shape_ctx *ctx) {
  struct tfc_shape vector;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 1, &vector));
  ctx->outputs[0] = ops_described_shape(ctx, 2);
  return NULL;
}
OPS_GRADIENT(ScatterNd) {
  g->grad_inputs[1] = grad_op2(g, "GatherNd", G, X);
  return NULL;
}

static tfc_status tensor_scatter(struct tfc_kernel_ctx *ctx, enum scatter how) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(check_updates(ctx->inputs[2]));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (y->data != x->data) TFC_RETURN_IF_ERROR(ops_copy_elements(y, 0, x, 0, tfc_tensor_elements(x)));
  return scatter_into(ctx, y, ctx->inputs[1], ctx->inputs[2], how);
}
static tfc_status tensor_scatter_update(struct tfc_kernel_ctx *ctx) {
  return tensor_scatter(ctx, SCATTER_SET);
}
static tfc_status tensor_scatter_add(struct tfc_kernel_ctx *ctx) {
  return tensor_scatter(ctx, SCATTER_ADD);
}
static tfc_status tensor_scatter_sub(struct tfc_kernel_ctx *ctx) {
  return tensor_scatter(ctx, SCATTER_SUB);
}
static tfc_status tensor_scatter_max(struct tfc_kernel_ctx *ctx) {
  return tensor_scatter(ctx, SCATTER_MAX);
}
static tfc_status tensor_scatter_min(struct tfc_kernel_ctx *ctx) {
  return tensor_scatter(ctx, SCATTER_MIN);
}

OPS_GRADIENT(TensorScatterUpdate) {
  g->grad_inputs[2] = grad_op2(g, "GatherNd", G, grad_in(g, 1));
  g->grad_inputs[0] = grad_op3(g, "TensorScatterUpdate", G, grad_in(g, 1), grad_op1(g, "ZerosLike", grad_in(g, 2)));
  return NULL;
}
OPS_GRADIENT(TensorScatterAdd) {
  g->grad_inputs[2] = grad_op2(g, "GatherNd", G, grad_in(g, 1));
  g->grad_inputs[0] = G;
  return NULL;
}
OPS_GRADIENT(TensorScatterSub) {
  g->grad_inputs[2] = g_neg(g, grad_op2(g, "GatherNd", G, grad_in(g, 1)));
  g->grad_inputs[0] = G;
  return NULL;
}
OPS_GRADIENT(TensorScatterExtreme) { // all elements that are equal to the result share the gradient
  struct tfc_output indices = grad_in(g, 1), updates = grad_in(g, 2);
  tfc_dtype type = grad_type(g, G);
  struct tfc_output of_x = grad_cast(g, grad_op2(g, "Equal", X, Y), type);
  struct tfc_output of_y = grad_cast(g, grad_op2(g, "Equal", updates, grad_op2(g, "GatherNd", Y, indices)), type);
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], grad_type(g, indices));
  struct tfc_output all = g_add(g, of_x, grad_op3(g, "ScatterNd", indices, of_y, shape));
  g->grad_inputs[0] = g_div(g, g_mul(g, G, of_x), all);
  g->grad_inputs[2] = g_mul(g, grad_op2(g, "GatherNd", g_div(g, G, all), indices), of_y);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define TENSOR_SCATTER(run, grad)                                                                                      \
  .shape = ops_shape_same, .kernel = run, .gradient = gradient_##grad,                                                 \
  .samples = "float[5,2], int32[3,1]=[0,3,0], float[3,2]; float[5,2], int32[2,2]=[0,1,4,0], float[2]"

static const struct tfc_op_def array_gather_rows[] = {
    {.name = "Gather",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "validate_indices: bool = true, Tparams: type, Tindices: {int32, int64}",
     .index_use = TFC_INDEX_ROWS,
     .shape = shape_gather,
     .cost = ops_cost_moved,
     .kernel = gather,
     .gradient = gradient_Gather,
     .samples = "float[5,3], int32[4]=[0,4,2,2]"},
    {.name = "GatherV2",
     .inputs = "params: Tparams, indices: Tindices, axis: Taxis",
     .outputs = "output: Tparams",
     .attrs = "batch_dims: int = 0, Tparams: type, Tindices: {int16, int32, int64}, Taxis: {int32, int64}",
     .index_use = TFC_INDEX_ROWS,
     .host_inputs = 4,
     .shape = shape_gather_v2,
     .cost = ops_cost_moved,
     .prepare = prepare_batch_dims,
     .kernel = gather_v2,
     .gradient = gradient_GatherV2,
     .samples = "float[5,3], int32[4]=[0,4,2,2], int32[]=0; float[3,5,2], int32[2,2]=[0,4,2,2], int32[]=1; float[2,5], "
                "int32[2,3]=[0,4,2,2,1,1], int32[]=1 {batch_dims=1}"},
    {.name = "GatherNd",
     .inputs = "params: Tparams, indices: Tindices",
     .outputs = "output: Tparams",
     .attrs = "Tparams: type, Tindices: {int16, int32, int64}",
     .shape = shape_gather_nd,
     .cost = ops_cost_moved,
     .kernel = gather_nd,
     .gradient = gradient_GatherNd,
     .samples = "float[5,3], int32[2,2]=[0,1,4,2]; float[5,3], int32[3,1]=[0,4,4]"},
    {.name = "ScatterNd",
     .inputs = "indices: Tindices, updates: T, shape: Tindices",
     .outputs = "output: T",
     .attrs = "T: type, Tindices: {int16, int32, int64}",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 4,
     .shape = shape_scatter_nd,
     .kernel = scatter_nd,
     .gradient = gradient_ScatterNd,
     .samples = "int32[3,1]=[0,3,0], float[3,2], int32[2]=[5,2]"},
    {.name = "TensorScatterUpdate",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type, Tindices: {int16, int32, int64, uint16}",
     TENSOR_SCATTER(tensor_scatter_update, TensorScatterUpdate),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "TensorScatterAdd",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type, Tindices: {int32, int64}",
     TENSOR_SCATTER(tensor_scatter_add, TensorScatterAdd),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "ScatterNdNonAliasingAdd",
     .inputs = "input: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64, bool}, Tindices: {int32, int64}",
     TENSOR_SCATTER(tensor_scatter_add, TensorScatterAdd),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "TensorScatterSub",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type, Tindices: {int32, int64}",
     TENSOR_SCATTER(tensor_scatter_sub, TensorScatterSub),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "TensorScatterMax",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type, Tindices: {int32, int64}",
     TENSOR_SCATTER(tensor_scatter_max, TensorScatterExtreme),
     .host = {"T", TFC_INT32_BIT}},
    {.name = "TensorScatterMin",
     .inputs = "tensor: T, indices: Tindices, updates: T",
     .outputs = "output: T",
     .attrs = "T: type, Tindices: {int32, int64}",
     TENSOR_SCATTER(tensor_scatter_min, TensorScatterExtreme),
     .host = {"T", TFC_INT32_BIT}},
};
TFC_REGISTER_OPS(array_gather_rows);
