// The operations that join tensors along one dimension or cut one into parts: Concat, ConcatV2, ConcatOffset, Split,
// SplitV, Pack, Unpack.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Returns the product of dimensions [from, to): the sizes before or after an axis.
static int64_t product(const struct tfc_shape *s, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++) n *= s->dims[d];
  return n;
}

// Copies a part [outer, part_n, inner] to position `at` of a larger tensor [outer, whole_n, inner], or back.
static tfc_status copy_part(struct tfc_kernel_ctx *ctx, struct tfc_tensor *dst, int64_t dst_n, int64_t dst_at,
                            const struct tfc_tensor *src, int64_t src_n, int64_t src_at, int64_t outer, int64_t n,
                            int64_t inner) {
  struct ops_block block = {.rank = 2,
                            .dims = {outer, n * inner},
                            .dst_strides = {dst_n * inner, 1},
                            .src_strides = {src_n * inner, 1},
                            .dst_at = dst_at * inner,
                            .src_at = src_at * inner};
  return ops_copy_block(ctx, dst, src, &block);
}

// --- Concat --------------------------------------------------------------------------------------------------------
// Parts of plain elements are joined row by row, so that the result is written in order, and the rows are shared out.
enum { MOST_PARTS = 64, PIECE_BYTES = 128 * 1024 };
struct rows_job {
  char *whole;
  const char *parts[MOST_PARTS];
  size_t bytes[MOST_PARTS], row; // of a row of each part, and of the whole
  uint32_t count;
};
static void join_rows(void *arg, int64_t begin, int64_t end) {
  const struct rows_job *j = arg;
  char *to = j->whole + (size_t)begin * j->row;
  for (int64_t r = begin; r < end; r++)
    for (uint32_t i = 0; i < j->count; to += j->bytes[i++])
      ops_copy_bytes(to, j->parts[i] + (size_t)r * j->bytes[i], j->bytes[i]);
}

static tfc_status concat_parts(struct tfc_kernel_ctx *ctx, uint32_t first, uint32_t count, int64_t given) {
  const struct tfc_tensor *const *parts = ctx->inputs + first;
  struct tfc_shape shape = parts[0]->shape;
  int axis;
  TFC_KERNEL_CHECK(given >= -shape.rank && given < shape.rank,
                   "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld", -shape.rank,
                   shape.rank, (long long)given);
  TFC_RETURN_IF_ERROR(ops_axis(given, shape.rank, &axis));
  for (uint32_t i = 1; i < count; i++) {
    const struct tfc_shape *s = &parts[i]->shape;
    bool fits = s->rank == shape.rank;
    for (int d = 0; fits && d < shape.rank; d++) fits = d == axis || s->dims[d] == shape.dims[d];
    if (!fits) {
      char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
      return tfc_status_make(TFC_INVALID_ARGUMENT, "ConcatOp : Dimension mismatch: shape[0] = %s vs. shape[%u] = %s",
                             tfc_shape_show(&parts[0]->shape, a), i, tfc_shape_show(s, b));
    }
    shape.dims[axis] += s->dims[axis];
  }
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, parts[0]->dtype, &shape, &y));
  int64_t outer = product(&shape, 0, axis), inner = product(&shape, axis + 1, shape.rank), at = 0;
  if (outer > 1 && count <= MOST_PARTS && tfc_dtype_is_plain(y->dtype) && tfc_tensor_elements(y)) {
    const size_t size = (size_t)inner * tfc_dtype_size(y->dtype);
    struct rows_job job = {.whole = y->data, .row = (size_t)shape.dims[axis] * size, .count = count};
    for (uint32_t i = 0; i < count; i++)
      job.parts[i] = parts[i]->data, job.bytes[i] = (size_t)parts[i]->shape.dims[axis] * size;
    tfc_kernel_parallel_for(ctx, outer, PIECE_BYTES / (int64_t)job.row + 1, join_rows, &job);
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    int64_t n = parts[i]->shape.dims[axis];
    TFC_RETURN_IF_ERROR(copy_part(ctx, y, shape.dims[axis], at, parts[i], n, 0, outer, n, inner));
    at += n;
  }
  return NULL;
}
static tfc_status concat(struct tfc_kernel_ctx *ctx) {
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[0]) == 1, "the axis must be a scalar");
  return concat_parts(ctx, 1, ctx->input_count - 1, tfc_tensor_int(ctx->inputs[0], 0));
}
static tfc_status concat_v2(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *axis = ctx->inputs[ctx->input_count - 1];
  TFC_KERNEL_CHECK(tfc_tensor_elements(axis) == 1, "the axis must be a scalar");
  return concat_parts(ctx, 0, ctx->input_count - 1, tfc_tensor_int(axis, 0));
}

static tfc_status concat_shape(struct tfc_shape_ctx *ctx, uint32_t first, uint32_t count, uint32_t axis_input) {
  int64_t given;
  int axis = -1, rank = TFC_RANK_UNKNOWN;
  for (uint32_t i = first; i < first + count && rank < 0; i++) rank = ctx->inputs[i]->rank;
  if (rank < 0) return NULL;
  bool known = ctx->input_values && ctx->input_values[axis_input] && ops_known_int(ctx, axis_input, &given);
  if (known) TFC_RETURN_IF_ERROR(ops_axis(given, rank, &axis));
  struct tfc_shape out = tfc_shape_unknown_of_rank(rank);
  int64_t sum = 0;
  for (uint32_t i = first; i < first + count; i++) {
    struct tfc_shape s;
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, rank, &s));
    if (!known) continue;
    sum = sum < 0 || !tfc_dim_known(s.dims[axis]) ? TFC_DIM_UNKNOWN : sum + s.dims[axis];
    s.dims[axis] = TFC_DIM_UNKNOWN;
    struct tfc_shape merged;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&out, &s, &merged));
    out = merged;
  }
  if (known) out.dims[axis] = sum;
  ctx->outputs[0] = out;
  if (rank == 1 && ctx->input_as_shape) { // the inputs are vectors of sizes: the result is a known shape
    struct tfc_shape all = TFC_SHAPE_SCALAR;
    for (uint32_t i = first; i < first + count; i++) {
      struct tfc_shape s = ops_described_shape(ctx, i);
      if (s.rank < 0 || all.rank + s.rank > TFC_MAX_RANK) return NULL;
      memcpy(&all.dims[all.rank], s.dims, (size_t)s.rank * sizeof *s.dims);
      all.rank += s.rank;
    }
    ops_set_partial(ctx, 0, &all);
  }
  return NULL;
}
static tfc_status shape_concat(struct tfc_shape_ctx *ctx) {
  return concat_shape(ctx, 1, ctx->node->input_count - 1, 0);
}
static tfc_status shape_concat_v2(struct tfc_shape_ctx *ctx) {
  return concat_shape(ctx, 0, ctx->node->input_count - 1, ctx->node->input_count - 1);
}

// Gradient: each part gets its slice of the incoming gradient.
static tfc_status concat_gradient(struct tfc_grad_ctx *g, uint32_t first, uint32_t count, uint32_t axis_input) {
  struct tfc_builder *b = g->builder;
  if (count == 1) {
    g->grad_inputs[first] = G;
    return NULL;
  }
  struct tfc_output *sizes = calloc(count + 1, sizeof *sizes);
  if (!sizes) return tfc_status_no_memory(NULL);
  bool all_static = true;
  for (uint32_t i = first; i < first + count; i++) all_static = all_static && tfc_shape_is_static(g->input_shapes[i]);
  if (all_static) {
    for (uint32_t i = 0; i < count; i++)
      sizes[i + 1] = grad_shape(g, grad_in(g, first + i), g->input_shapes[first + i], TFC_INT32);
  } else {
    for (uint32_t i = 0; i < count; i++) sizes[i + 1] = grad_in(g, first + i);
    uint32_t node = tfc_builder_add(
        b,
        &(struct tfc_node_spec){.op = "ShapeN", .inputs = sizes + 1, .input_count = count, .colocate_with = TFC_NONE});
    for (uint32_t i = 0; i < count; i++) sizes[i + 1] = (struct tfc_output){node, (int32_t)i};
  }
  struct tfc_output axis = grad_cast(g, grad_in(g, axis_input), TFC_INT32);
  sizes[0] = grad_op2(g, "FloorMod", axis, grad_op1(g, "Rank", grad_in(g, first)));
  uint32_t offsets = tfc_builder_add(
      b, &(struct tfc_node_spec){
             .op = "ConcatOffset", .inputs = sizes, .input_count = count + 1, .colocate_with = TFC_NONE});
  for (uint32_t i = 0; i < count; i++)
    g->grad_inputs[first + i] = grad_op3(g, "Slice", G, (struct tfc_output){offsets, (int32_t)i}, sizes[i + 1]);
  free(sizes);
  return NULL;
}
OPS_GRADIENT(Concat) {
  return concat_gradient(g, 1, grad_in_count(g) - 1, 0);
}
OPS_GRADIENT(ConcatV2) {
  uint32_t n = grad_in_count(g) - 1;
  return concat_gradient(g, 0, n, n);
}

static tfc_status concat_offset(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *first = ctx->inputs[1];
  int64_t at = 0, rank = tfc_tensor_elements(first);
  int axis;
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[0]) == 1, "Concat dim tensor should be a scalar");
  for (uint32_t i = 1; i < ctx->input_count; i++)
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank == 1 && tfc_tensor_elements(ctx->inputs[i]) == rank,
                     "input %u should contain %lld elements", i, (long long)rank);
  TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[0], 0), (int)rank, &axis));
  for (uint32_t i = 1; i < ctx->input_count; i++) {
    const struct tfc_tensor *s = ctx->inputs[i];
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i - 1, s->dtype, &s->shape, &y));
    for (int64_t d = 0; d < rank; d++) {
      int64_t v = d == axis ? at : 0;
      TFC_KERNEL_CHECK(d == axis || tfc_tensor_int(s, d) == tfc_tensor_int(first, d),
                       "All dimensions except %d must match. Input %u has %lld at %lld", axis, i,
                       (long long)tfc_tensor_int(s, d), (long long)d);
      if (y->dtype == TFC_INT64)
        ((int64_t *)y->data)[d] = v;
      else
        ((int32_t *)y->data)[d] = (int32_t)v;
    }
    at += tfc_tensor_int(s, axis);
  }
  return NULL;
}
static tfc_status shape_concat_offset(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = *ctx->inputs[i + 1];
  return NULL;
}

// --- Split ---------------------------------------------------------------------------------------------------------
static tfc_status split(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[1];
  int64_t count = ctx->output_count;
  int axis;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "split_dim must be a scalar but has rank %d",
                   ctx->inputs[0]->shape.rank);
  TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[0], 0), x->shape.rank, &axis));
  TFC_KERNEL_CHECK(x->shape.dims[axis] % count == 0,
                   "Number of ways to split should evenly divide the split dimension, but got split_dim %d (size = "
                   "%lld) and num_split %lld",
                   axis, (long long)x->shape.dims[axis], (long long)count);
  if (count == 1) return tfc_kernel_set_output(ctx, 0, x);
  struct tfc_shape shape = x->shape;
  int64_t n = shape.dims[axis] /= count;
  int64_t outer = product(&shape, 0, axis), inner = product(&shape, axis + 1, shape.rank);
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, x->dtype, &shape, &y));
    TFC_RETURN_IF_ERROR(copy_part(ctx, y, n, 0, x, n * count, i * n, outer, n, inner));
  }
  return NULL;
}
static tfc_status shape_split(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[1];
  int64_t given, count = ctx->node->output_count;
  int axis;
  if (x->rank < 0) return NULL;
  struct tfc_shape out = tfc_shape_unknown_of_rank(x->rank);
  if (ctx->input_values && ctx->input_values[0] && ops_known_int(ctx, 0, &given)) {
    TFC_RETURN_IF_ERROR(ops_axis(given, x->rank, &axis));
    out = *x;
    if (tfc_dim_known(out.dims[axis]) && out.dims[axis] % count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "dimension %d of size %lld does not split into %lld parts", axis,
                             (long long)out.dims[axis], (long long)count);
    out.dims[axis] = tfc_dim_known(out.dims[axis]) ? out.dims[axis] / count
                     : count == 1                  ? out.dims[axis]
                                                   : TFC_DIM_UNKNOWN;
  }
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = out;
  return NULL;
}

static tfc_status split_v(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *sizes = ctx->inputs[1];
  int64_t count = ctx->output_count, known = 0;
  int64_t *n = NULL;
  int axis, rest = -1;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[2]) == 1, "split_dim must be a scalar");
  TFC_KERNEL_CHECK(tfc_tensor_elements(sizes) == count,
                   "size_splits must have as many values as there are outputs: %lld, not %lld", (long long)count,
                   (long long)tfc_tensor_elements(sizes));
  TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[2], 0), x->shape.rank, &axis));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)count * sizeof *n, &held));
  n = held->data;
  for (int64_t i = 0; i < count; i++) {
    n[i] = tfc_tensor_int(sizes, i);
    if (n[i] < -1 || (n[i] == -1 && rest >= 0))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Split size at index %lld must be >= 0, or -1 once. Got: %lld", (long long)i,
               (long long)n[i]);
    if (n[i] == -1)
      rest = (int)i;
    else if (__builtin_add_overflow(known, n[i], &known))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the sum of the split sizes overflows");
  }
  int64_t total = x->shape.dims[axis];
  if (rest >= 0 ? known > total : known != total)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the sizes sum to %lld where dimension %d has %lld", (long long)known, axis,
             (long long)total);
  if (rest >= 0) n[rest] = total - known;
  int64_t outer = product(&x->shape, 0, axis), inner = product(&x->shape, axis + 1, x->shape.rank), at = 0;
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    struct tfc_tensor *y = NULL;
    struct tfc_shape shape = x->shape;
    shape.dims[axis] = n[i];
    TFC_TRY(s, tfc_kernel_output(ctx, i, x->dtype, &shape, &y));
    TFC_TRY(s, copy_part(ctx, y, n[i], 0, x, total, at, outer, n[i], inner));
    at += n[i];
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_split_v(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int64_t given, known = 0;
  int axis, rest = 0;
  if (x->rank < 0) return NULL;
  const struct tfc_tensor *sizes = ctx->input_values ? ctx->input_values[1] : NULL;
  bool axis_known = ctx->input_values && ctx->input_values[2] && ops_known_int(ctx, 2, &given);
  struct tfc_shape out = axis_known ? *x : tfc_shape_unknown_of_rank(x->rank);
  if (axis_known) {
    TFC_RETURN_IF_ERROR(ops_axis(given, x->rank, &axis));
    out.dims[axis] = ctx->node->output_count == 1 ? x->dims[axis] : TFC_DIM_UNKNOWN;
  }
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = out;
  if (!axis_known || !sizes) return NULL;
  if (tfc_tensor_elements(sizes) != ctx->node->output_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%lld sizes for %u outputs", (long long)tfc_tensor_elements(sizes),
                           ctx->node->output_count);
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    int64_t n = tfc_tensor_int(sizes, i);
    if (n >= 0)
      known += n;
    else
      rest++;
  }
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    int64_t n = tfc_tensor_int(sizes, i);
    if (n < 0 && rest == 1 && tfc_dim_known(x->dims[axis])) n = x->dims[axis] - known;
    ctx->outputs[i].dims[axis] = n < 0 ? TFC_DIM_UNKNOWN : n;
  }
  return NULL;
}

// Gradient: joins the incoming gradients of the parts.
static tfc_status split_gradient(struct tfc_grad_ctx *g, uint32_t axis_input, uint32_t value_input) {
  uint32_t n = tfc_builder_node(g->builder, g->node)->output_count;
  if (n == 1) {
    g->grad_inputs[value_input] = G;
    return NULL;
  }
  struct tfc_output *parts = calloc(n + 1, sizeof *parts);
  if (!parts) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < n; i++) parts[i] = g->grad_outputs[i];
  parts[n] = grad_in(g, axis_input);
  g->grad_inputs[value_input] = tfc_add(g->builder, "ConcatV2", "", parts, n + 1, NULL, 0);
  free(parts);
  return NULL;
}
OPS_GRADIENT(Split) {
  return split_gradient(g, 0, 1);
}
OPS_GRADIENT(SplitV) {
  return split_gradient(g, 2, 0);
}

// --- Pack, Unpack --------------------------------------------------------------------------------------------------
static tfc_status prepare_axis(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, int64_t, axis);
  *axis = tfc_node_attr_int(ctx->graph, ctx->node, "axis", 0);
  return NULL;
}

static tfc_status packed_shape(const struct tfc_shape *x, int64_t given, int64_t count, int *axis,
                               struct tfc_shape *out) {
  if (x->rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
  TFC_RETURN_IF_ERROR(ops_axis(given, x->rank + 1, axis));
  struct tfc_shape s = {.rank = x->rank + 1};
  for (int d = 0; d < s.rank; d++) s.dims[d] = d < *axis ? x->dims[d] : d == *axis ? count : x->dims[d - 1];
  *out = s;
  return NULL;
}
static tfc_status pack(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  int axis;
  int64_t count = ctx->input_count;
  for (uint32_t i = 1; i < ctx->input_count; i++)
    if (!tfc_shape_equal(&x->shape, &ctx->inputs[i]->shape)) {
      char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "Shapes of all inputs must match: values[0].shape = %s != "
                             "values[%u].shape = %s",
                             tfc_shape_show(&x->shape, a), i, tfc_shape_show(&ctx->inputs[i]->shape, b));
    }
  TFC_RETURN_IF_ERROR(packed_shape(&x->shape, *(const int64_t *)ctx->state, count, &axis, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  int64_t outer = product(&shape, 0, axis), inner = product(&shape, axis + 1, shape.rank);
  for (uint32_t i = 0; i < ctx->input_count; i++)
    TFC_RETURN_IF_ERROR(copy_part(ctx, y, count, i, ctx->inputs[i], 1, 0, outer, 1, inner));
  return NULL;
}
static tfc_status shape_pack(struct tfc_shape_ctx *ctx) {
  struct tfc_shape all = *ctx->inputs[0];
  uint32_t n = ctx->node->input_count;
  int axis;
  for (uint32_t i = 1; i < n; i++) {
    struct tfc_shape merged;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&all, ctx->inputs[i], &merged));
    all = merged;
  }
  if (all.rank == 0 && n <= TFC_MAX_RANK && ctx->input_as_shape) {
    // The inputs are single sizes: the result is a known shape.
    struct tfc_shape sizes = {.rank = (int32_t)n};
    for (uint32_t i = 0; i < n; i++) {
      const struct tfc_shape *p = ctx->input_as_shape[i];
      int64_t v;
      sizes.dims[i] = ops_known_int(ctx, i, &v) ? (v < 0 ? TFC_DIM_UNKNOWN : v)
                      : p && p->rank == 1       ? p->dims[0]
                                                : TFC_DIM_UNKNOWN;
    }
    ops_set_partial(ctx, 0, &sizes);
  }
  if (all.rank < 0) return NULL;
  return packed_shape(&all, tfc_node_attr_int(ctx->graph, ctx->node, "axis", 0), n, &axis, &ctx->outputs[0]);
}
OPS_GRADIENT(Pack) {
  uint32_t n = grad_in_count(g);
  struct tfc_attr attrs[2] = {tfc_attr_int("num", n), tfc_attr_int("axis", grad_attr_int(g, "axis", 0))};
  struct tfc_output x = G;
  uint32_t node = tfc_builder_add(
      g->builder,
      &(struct tfc_node_spec){
          .op = "Unpack", .inputs = &x, .input_count = 1, .attrs = attrs, .attr_count = 2, .colocate_with = TFC_NONE});
  for (uint32_t i = 0; i < n; i++) g->grad_inputs[i] = (struct tfc_output){node, (int32_t)i};
  return NULL;
}

static tfc_status unpack(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  int axis;
  TFC_RETURN_IF_ERROR(ops_axis(*(const int64_t *)ctx->state, x->shape.rank, &axis));
  int64_t count = x->shape.dims[axis];
  TFC_KERNEL_CHECK(count == ctx->output_count, "Input shape axis %d must equal %u, got %lld", axis, ctx->output_count,
                   (long long)count);
  struct tfc_shape shape = {.rank = x->shape.rank - 1};
  for (int d = 0; d < shape.rank; d++) shape.dims[d] = x->shape.dims[d < axis ? d : d + 1];
  int64_t outer = product(&x->shape, 0, axis), inner = product(&x->shape, axis + 1, x->shape.rank);
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, x->dtype, &shape, &y));
    TFC_RETURN_IF_ERROR(copy_part(ctx, y, 1, 0, x, count, i, outer, 1, inner));
  }
  return NULL;
}
static tfc_status shape_unpack(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int axis;
  if (x->rank < 0) return NULL;
  TFC_RETURN_IF_ERROR(ops_axis(tfc_node_attr_int(ctx->graph, ctx->node, "axis", 0), x->rank, &axis));
  int64_t merged;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x->dims[axis], ctx->node->output_count, &merged));
  struct tfc_shape shape = {.rank = x->rank - 1};
  for (int d = 0; d < shape.rank; d++) shape.dims[d] = x->dims[d < axis ? d : d + 1];
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[0] : NULL;
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    ctx->outputs[i] = shape;
    if (p && x->rank == 1 && p->rank == (int)ctx->node->output_count) ops_set_partial(ctx, i, &TFC_SHAPE(p->dims[i]));
  }
  return NULL;
}
OPS_GRADIENT(Unpack) {
  uint32_t n = tfc_builder_node(g->builder, g->node)->output_count;
  struct tfc_attr attr = tfc_attr_int("axis", grad_attr_int(g, "axis", 0));
  g->grad_inputs[0] = tfc_add(g->builder, "Pack", "", g->grad_outputs, n, &attr, 1);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_op_def array_concat_rows[] = {
    {.name = "Concat",
     .inputs = "concat_dim: int32, values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 2, T: type",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 1,
     .shape = shape_concat,
     .kernel = concat,
     .gradient = gradient_Concat,
     .samples = "int32[]=1, float[3,2], float[3,4]"},
    // memory.
    {.name = "ConcatV2",
     .plan_trait = TFC_PLAN_CONCAT,
     .inputs = "values: N * T, axis: Tidx",
     .outputs = "output: T",
     .attrs = "N: int >= 2, T: type, Tidx: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_concat_v2,
     .kernel = concat_v2,
     .gradient = gradient_ConcatV2,
     .samples = "float[3,2], float[3,4], int32[]=1; float[1,2], float[2,2], float[0,2], int32[]=0"},
    {.name = "ConcatOffset",
     .inputs = "concat_dim: int32, shape: N * shape_type",
     .outputs = "offset: N * shape_type",
     .attrs = "N: int >= 2, shape_type: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = ~0u,
     .host_outputs = ~0u,
     .shape = shape_concat_offset,
     .kernel = concat_offset,
     .samples = "int32[]=1, int32[2]=[3,2], int32[2]=[3,4]"},
    {.name = "Split",
     .plan_trait = TFC_PLAN_SPLIT,
     .inputs = "split_dim: int32, value: T",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1, T: type",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 1,
     .shape = shape_split,
     .kernel = split,
     .gradient = gradient_Split,
     .samples = "int32[]=1, float[3,4] {num_split=2}; int32[]=0, int32[6] {num_split=3}"},
    {.name = "SplitV",
     .plan_trait = TFC_PLAN_SPLIT_SIZES,
     .inputs = "value: T, size_splits: Tlen, split_dim: int32",
     .outputs = "output: num_split * T",
     .attrs = "num_split: int >= 1, T: type, Tlen: {int8, int32, int64} = int64",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 6,
     .shape = shape_split_v,
     .kernel = split_v,
     .gradient = gradient_SplitV,
     .samples = "float[3,4], int32[2]=[1,-1], int32[]=1 {num_split=2}"},
    {.name = "Pack",
     .inputs = "values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 1, T: type, axis: int = 0",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_pack,
     .prepare = prepare_axis,
     .kernel = pack,
     .gradient = gradient_Pack,
     .samples = "float[3], float[3]; float[3,2], float[3,2] {axis=-1}; int32[], int32[]"},
    {.name = "Unpack",
     .inputs = "value: T",
     .outputs = "output: num * T",
     .attrs = "num: int >= 0, T: type, axis: int = 0",
     .host = {"T", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_INT64)},
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_unpack,
     .prepare = prepare_axis,
     .kernel = unpack,
     .gradient = gradient_Unpack,
     .samples = "float[3,2] {num=3}; float[3,2] {num=2, axis=1}"},
};
TFC_REGISTER_OPS(array_concat_rows);
