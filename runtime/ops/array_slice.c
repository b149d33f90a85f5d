// Slice, StridedSlice and its gradient, and the operations that assign to slices of tensors.
#include "runtime/ops/array_slice.h"

#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// --- Strided slices ------------------------------------------------------------------------------------------------
struct ops_slice_masks ops_slice_masks_of(const struct tfc_graph *graph, const struct tfc_node *node) {
  return (struct ops_slice_masks){
      tfc_node_attr_int(graph, node, "begin_mask", 0), tfc_node_attr_int(graph, node, "end_mask", 0),
      tfc_node_attr_int(graph, node, "ellipsis_mask", 0), tfc_node_attr_int(graph, node, "new_axis_mask", 0),
      tfc_node_attr_int(graph, node, "shrink_axis_mask", 0)};
}

static tfc_status resolve_dimension(int64_t n, bool begin_known, int64_t b, bool end_known, int64_t e, int64_t stride,
                                    bool open_begin, bool open_end, bool shrink, int d, int64_t *begin, int64_t *size) {
  if (stride == 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "strides[%d] must be non-zero", d);
  *begin = 0;
  *size = TFC_DIM_UNKNOWN;
  if (shrink) {
    if (stride <= 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "only stride 1 allowed on non-range indexing.");
    *size = 1;
    if (!begin_known || n < 0) {
      *begin = begin_known ? b : 0;
      return NULL;
    }
    *begin = b < 0 ? b + n : b;
    if (*begin < 0 || *begin >= n)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "slice index %lld of dimension %d out of bounds.", (long long)b, d);
    return NULL;
  }
  if (n < 0) { // what is known without the dimension's size: a slice of all of it, or constant bounds
    bool whole = open_begin && open_end && (stride == 1 || stride == -1);
    if (whole) {
      *size = n; // keeps the symbol of an unknown size
    } else if (stride > 0 && end_known && !open_end && e >= 0 && (open_begin || (begin_known && b >= 0))) {
      int64_t from = open_begin ? 0 : b;
      if (e <= from) *size = 0;
    } else if (stride > 0 && begin_known && end_known && !open_begin && !open_end && b < 0 && e < 0 && e <= b) {
      *size = 0;
    }
    return NULL;
  }
  if ((!begin_known && !open_begin) || (!end_known && !open_end)) return NULL;
  int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? n : n - 1; // bounds that begin and end are clamped to
  int64_t from, to;
  if (open_begin) {
    from = stride > 0 ? low : high;
  } else {
    from = b < 0 ? b + n : b;
    from = from < low ? low : from > high ? high : from;
  }
  if (open_end) {
    to = stride > 0 ? high : low;
  } else {
    to = e < 0 ? e + n : e;
    to = to < low ? low : to > high ? high : to;
  }
  int64_t distance = to - from;
  *begin = from;
  *size = distance == 0 || (distance < 0) != (stride < 0) ? 0 : distance / stride + (distance % stride != 0);
  return NULL;
}

// begin, end and strides hold `count` values each. begin and end may be NULL (unknown); sizes that depend on them are
// then unknown.
static tfc_status resolve_slice(const struct tfc_shape *input, int count, const int64_t *begin, const int64_t *end,
                                const int64_t *strides, const struct ops_slice_masks *masks, struct ops_slice *out) {
  struct ops_slice s = {.processing = {.rank = input->rank}};
  int consumed = 0, ellipses = 0, at = 0; // `at`: the current dimension of the input
  if (count > 32) return tfc_status_make(TFC_INVALID_ARGUMENT, "a slice of %d dimensions", count);
  for (int i = 0; i < count; i++) {
    if (masks->ellipsis >> i & 1) {
      ellipses++;
    } else if (!(masks->new_axis >> i & 1)) {
      consumed++;
    }
  }
  // This counts bits beyond the last index too.
  if (masks->ellipsis & (masks->ellipsis - 1))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Multiple ellipses in slice spec not allowed");
  if (consumed > input->rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Index out of range using input dim %d; input has only %d dims",
                           input->rank, input->rank);
  bool full_rest = ellipses == 0; // dimensions behind the last index are then taken whole
  for (int i = 0; i < count + (full_rest ? 1 : 0); i++) {
    if (i == count || masks->ellipsis >> i & 1) {
      for (int k = input->rank - consumed; k > 0; k--, at++) {
        if (s.shape.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
        s.stride[at] = 1;
        s.processing.dims[at] = s.shape.dims[s.shape.rank++] = input->dims[at];
      }
      continue;
    }
    if (masks->new_axis >> i & 1) {
      if (s.shape.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
      s.shape.dims[s.shape.rank++] = 1;
      continue;
    }
    bool shrink = masks->shrink_axis >> i & 1;
    s.stride[at] = strides[i];
    TFC_RETURN_IF_ERROR(resolve_dimension(input->dims[at], begin != NULL, begin ? begin[i] : 0, end != NULL,
                                          end ? end[i] : 0, strides[i], masks->begin >> i & 1, masks->end >> i & 1,
                                          shrink, at, &s.begin[at], &s.processing.dims[at]));
    if (!shrink) {
      if (s.shape.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
      s.shape.dims[s.shape.rank++] = s.processing.dims[at];
    }
    at++;
  }
  *out = s;
  return NULL;
}

tfc_status ops_slice_of_tensors(const struct tfc_shape *input, const struct tfc_tensor *begin,
                                const struct tfc_tensor *end, const struct tfc_tensor *strides,
                                const struct ops_slice_masks *masks, struct ops_slice *out) {
  int64_t b[32], e[32], s[32], n = tfc_tensor_elements(strides);
  TFC_KERNEL_CHECK(begin->shape.rank == 1 && end->shape.rank == 1 && strides->shape.rank == 1 &&
                       tfc_tensor_elements(begin) == n && tfc_tensor_elements(end) == n && n <= 32,
                   "Expected begin, end, and strides to be 1D equal size tensors");
  for (int64_t i = 0; i < n; i++) {
    b[i] = tfc_tensor_int(begin, i);
    e[i] = tfc_tensor_int(end, i);
    s[i] = tfc_tensor_int(strides, i);
  }
  return resolve_slice(input, (int)n, b, e, s, masks, out);
}

// Describes the copy between the slice of `whole` and a dense tensor of the slice's shape.
static struct ops_block slice_block(const struct tfc_shape *whole, const struct ops_slice *s, bool into_whole) {
  struct ops_block b = {.rank = whole->rank};
  int64_t strides[TFC_MAX_RANK], dense[TFC_MAX_RANK], at = 0;
  tfc_shape_strides(whole, strides);
  tfc_shape_strides(&s->processing, dense);
  for (int d = 0; d < whole->rank; d++) {
    int64_t step = strides[d] * s->stride[d];
    b.dims[d] = s->processing.dims[d];
    at += s->begin[d] * strides[d];
    b.src_strides[d] = into_whole ? dense[d] : step;
    b.dst_strides[d] = into_whole ? step : dense[d];
  }
  b.src_at = into_whole ? 0 : at;
  b.dst_at = into_whole ? at : 0;
  return b;
}

static tfc_status prepare_masks(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct ops_slice_masks, masks);
  *masks = ops_slice_masks_of(ctx->graph, ctx->node);
  return NULL;
}

static tfc_status strided_slice(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct ops_slice s;
  TFC_RETURN_IF_ERROR(ops_slice_of_tensors(&x->shape, ctx->inputs[1], ctx->inputs[2], ctx->inputs[3], ctx->state, &s));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &s.shape, &y));
  struct ops_block block = slice_block(&x->shape, &s, false);
  return ops_copy_block(ctx, y, x, &block);
}

// Infers the slice of `input` as far as begin, end and strides (inputs i, i + 1, i + 2) are known.
static tfc_status infer_slice(struct tfc_shape_ctx *ctx, const struct tfc_shape *input, uint32_t i,
                              struct ops_slice *out, bool *out_known) {
  const struct tfc_tensor *const *v = ctx->input_values;
  int64_t b[32], e[32], s[32];
  int n = -1, m;
  *out_known = false;
  if (!v || !v[i + 2] || input->rank < 0 || !ops_known_ints(ctx, i + 2, s, 32, &n)) return NULL;
  bool begin_known = ops_known_ints(ctx, i, b, 32, &m) && m == n,
       end_known = ops_known_ints(ctx, i + 1, e, 32, &m) && m == n;
  struct ops_slice_masks masks = ops_slice_masks_of(ctx->graph, ctx->node);
  TFC_RETURN_IF_ERROR(resolve_slice(input, n, begin_known ? b : NULL, end_known ? e : NULL, s, &masks, out));
  *out_known = true;
  return NULL;
}

static tfc_status shape_strided_slice(struct tfc_shape_ctx *ctx) {
  struct ops_slice s;
  bool known;
  TFC_RETURN_IF_ERROR(infer_slice(ctx, ctx->inputs[0], 1, &s, &known));
  if (!known) return NULL;
  ctx->outputs[0] = s.shape;
  // If the input is a vector of known sizes, the slice of it is known too.
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[0] : NULL;
  if (p && p->rank >= 0 && ctx->inputs[0]->rank == 1 && tfc_dim_known(s.processing.dims[0]) && s.shape.rank <= 1 &&
      ctx->input_values && ctx->input_values[1]) {
    struct tfc_shape part = {.rank = (int32_t)s.processing.dims[0]};
    for (int64_t k = 0; k < s.processing.dims[0]; k++) {
      int64_t from = s.begin[0] + k * s.stride[0];
      if (from < 0 || from >= p->rank) return NULL;
      part.dims[k] = p->dims[from];
    }
    ops_set_partial(ctx, 0, &part);
  }
  return NULL;
}

static void grad_masks(struct tfc_grad_ctx *g, struct tfc_attr attrs[5]) {
  static const char *const names[5] = {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"};
  for (int i = 0; i < 5; i++) attrs[i] = tfc_attr_int(names[i], grad_attr_int(g, names[i], 0));
}
OPS_GRADIENT(StridedSlice) {
  tfc_dtype type = grad_type(g, grad_in(g, 1));
  struct tfc_output in[5] = {grad_shape(g, X, g->input_shapes[0], type), grad_in(g, 1), grad_in(g, 2), grad_in(g, 3),
                             G};
  struct tfc_attr attrs[5];
  grad_masks(g, attrs);
  g->grad_inputs[0] = tfc_add(g->builder, "StridedSliceGrad", "", in, 5, attrs, 5);
  return NULL;
}
OPS_GRADIENT(StridedSliceGrad) {
  struct tfc_output in[4] = {G, grad_in(g, 1), grad_in(g, 2), grad_in(g, 3)};
  struct tfc_attr attrs[5];
  grad_masks(g, attrs);
  g->grad_inputs[4] = tfc_add(g->builder, "StridedSlice", "", in, 4, attrs, 5);
  return NULL;
}

static tfc_status strided_slice_grad(struct tfc_kernel_ctx *ctx) { // writes dy into a tensor of zeros
  const struct tfc_tensor *dy = ctx->inputs[4];
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  struct ops_slice s;
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[0], &shape));
  TFC_RETURN_IF_ERROR(ops_slice_of_tensors(&shape, ctx->inputs[1], ctx->inputs[2], ctx->inputs[3], ctx->state, &s));
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(tfc_shape_equal(&dy->shape, &s.shape), "shape of dy was %s instead of %s",
                   tfc_shape_show(&dy->shape, a), tfc_shape_show(&s.shape, b));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, dy->dtype, &shape, &y));
  if (tfc_tensor_elements(dy) != tfc_tensor_elements(y)) ops_fill_zero(y);
  struct ops_block block = slice_block(&shape, &s, true);
  return ops_copy_block(ctx, y, dy, &block);
}
static tfc_status shape_strided_slice_grad(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ops_described_shape(ctx, 0);
  return NULL;
}

// --- Assignment ----------------------------------------------------------------------------------------------------
// Writes `value`, broadcast to the slice's shape, into the slice of `target`, which has the input's shape.
static tfc_status assign_slice(struct tfc_kernel_ctx *ctx, struct tfc_tensor *target, const struct ops_slice *slice,
                               const struct tfc_tensor *value) {
  struct tfc_shape joined;
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  tfc_status s = tfc_shape_broadcast(&value->shape, &slice->shape, &joined);
  if (s || !tfc_shape_equal(&joined, &slice->shape)) {
    tfc_status_free(s);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot assign a value of shape %s to a slice of shape %s",
                           tfc_shape_show(&value->shape, a), tfc_shape_show(&slice->shape, b));
  }
  struct ops_block block = slice_block(&target->shape, slice, true);
  if (!tfc_shape_equal(&value->shape, &slice->shape)) {
    // The strides of the value are broadcast to the slice's shape and then assigned to the dimensions of the target; a
    // shrunk dimension has only one index.
    int64_t strides[TFC_MAX_RANK], over[TFC_MAX_RANK];
    tfc_shape_strides(&value->shape, strides);
    for (int d = 0; d < slice->shape.rank; d++) {
      int e = d - (slice->shape.rank - value->shape.rank);
      over[d] = e < 0 || value->shape.dims[e] == 1 ? 0 : strides[e];
    }
    if (slice->shape.rank != target->shape.rank)
      return tfc_status_make(TFC_UNIMPLEMENTED, "broadcasting into a slice with shrunk or new axes");
    for (int d = 0; d < target->shape.rank; d++) block.src_strides[d] = over[d];
  }
  return ops_copy_block(ctx, target, value, &block);
}

static tfc_status tensor_update(struct tfc_kernel_ctx *ctx) { // a copy of the input with a slice replaced
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct ops_slice s;
  TFC_RETURN_IF_ERROR(ops_slice_of_tensors(&x->shape, ctx->inputs[1], ctx->inputs[2], ctx->inputs[3], ctx->state, &s));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  if (y->data != x->data) TFC_RETURN_IF_ERROR(ops_copy_elements(y, 0, x, 0, tfc_tensor_elements(x)));
  return assign_slice(ctx, y, &s, ctx->inputs[4]);
}
OPS_GRADIENT(TensorStridedSliceUpdate) {
  struct tfc_output in[5] = {G, grad_in(g, 1), grad_in(g, 2), grad_in(g, 3)};
  struct tfc_attr attrs[5];
  grad_masks(g, attrs);
  struct tfc_output dy = tfc_add(g->builder, "StridedSlice", "", in, 4, attrs, 5);
  in[4] = grad_op1(g, "ZerosLike", dy);
  g->grad_inputs[0] = tfc_add(g->builder, "TensorStridedSliceUpdate", "", in, 5, attrs, 5);
  tfc_dtype type = grad_type(g, grad_in(g, 1));
  struct tfc_output value_shape = grad_shape(g, grad_in(g, 4), g->input_shapes[4], type);
  struct tfc_output axes = grad_op2(g, "BroadcastGradientArgs", grad_shape(g, dy, NULL, type), value_shape);
  g->grad_inputs[4] = g_reshape(g, grad_sum(g, dy, (struct tfc_output){axes.node, 1}, true), value_shape);
  return NULL;
}

// --- Slice ---------------------------------------------------------------------------------------------------------
static tfc_status slice(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *begin = ctx->inputs[1], *size = ctx->inputs[2];
  struct ops_slice s = {.shape = {.rank = x->shape.rank}};
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(begin->shape.rank == 1 && size->shape.rank == 1 && tfc_tensor_elements(begin) == x->shape.rank &&
                       tfc_tensor_elements(size) == x->shape.rank,
                   "Expected begin and size arguments to be 1-D tensors of size %d", x->shape.rank);
  bool whole = true;
  for (int d = 0; d < x->shape.rank; d++) {
    int64_t n = x->shape.dims[d], from = tfc_tensor_int(begin, d), take = tfc_tensor_int(size, d);
    TFC_KERNEL_CHECK(from >= 0 && from <= n, "Expected begin[%d] in [0, %lld], but got %lld", d, (long long)n,
                     (long long)from);
    if (take == -1) take = n - from;
    TFC_KERNEL_CHECK(take >= 0 && take <= n - from, "Expected size[%d] in [0, %lld], but got %lld", d,
                     (long long)(n - from), (long long)take);
    s.begin[d] = from;
    s.stride[d] = 1;
    s.shape.dims[d] = take;
    whole = whole && take == n;
  }
  if (whole) return tfc_kernel_set_output(ctx, 0, x);
  s.processing = s.shape;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &s.shape, &y));
  struct ops_block block = slice_block(&x->shape, &s, false);
  return ops_copy_block(ctx, y, x, &block);
}
static tfc_status shape_slice(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int64_t b[TFC_MAX_RANK];
  int n = 0;
  int rank = x->rank;
  for (uint32_t i = 1; i < 3 && rank < 0; i++)
    if (ctx->inputs[i]->rank == 1 && tfc_dim_known(ctx->inputs[i]->dims[0])) rank = (int)ctx->inputs[i]->dims[0];
  if (rank < 0 || rank > TFC_MAX_RANK) return NULL;
  struct tfc_shape out = tfc_shape_unknown_of_rank(rank);
  bool begin_known = ops_known_ints(ctx, 1, b, TFC_MAX_RANK, &n) && n == rank;
  // If a start is known in part, as [?, 0], the known numbers are used. (In a described shape, a size below 0 is
  // unknown.)
  struct tfc_shape starts = ops_described_shape(ctx, 1);
  const struct tfc_tensor *sizes = ctx->input_values ? ctx->input_values[2] : NULL;
  struct tfc_shape partial = ops_described_shape(ctx, 2);
  for (int d = 0; d < rank; d++) {
    int64_t have = x->rank >= 0 ? x->dims[d] : TFC_DIM_UNKNOWN;
    int64_t from = begin_known ? b[d] : starts.rank == rank ? starts.dims[d] : TFC_DIM_UNKNOWN;
    if (sizes && tfc_tensor_elements(sizes) == rank) {
      int64_t take = tfc_tensor_int(sizes, d);
      if (take >= 0)
        out.dims[d] = take;
      else if (from == 0)
        out.dims[d] = have;
      else if (from > 0 && tfc_dim_known(have))
        out.dims[d] = have - from;
    } else if (!sizes && partial.rank == rank) {
      out.dims[d] = partial.dims[d];
    }
    if (tfc_dim_known(have) && tfc_dim_known(out.dims[d]) && out.dims[d] > have - (begin_known ? b[d] : 0))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a slice of %lld from dimension %d, which has %lld",
                             (long long)out.dims[d], d, (long long)have);
  }
  ctx->outputs[0] = out;
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[0] : NULL;
  if (p && p->rank >= 0 && rank == 1 && begin_known && tfc_dim_known(out.dims[0]) && b[0] >= 0 &&
      b[0] + out.dims[0] <= p->rank) {
    struct tfc_shape part = {.rank = (int32_t)out.dims[0]};
    memcpy(part.dims, p->dims + b[0], (size_t)part.rank * sizeof *part.dims);
    ops_set_partial(ctx, 0, &part);
  }
  return NULL;
}
OPS_GRADIENT(Slice) { // puts the gradient between zeros
  tfc_dtype type = grad_type(g, grad_in(g, 1));
  struct tfc_output begin = grad_in(g, 1), size = grad_shape(g, Y, g->output_shapes[0], type);
  struct tfc_output rest = g_sub(g, g_sub(g, grad_shape(g, X, g->input_shapes[0], type), size), begin);
  g->grad_inputs[0] = grad_op2(g, "Pad", G, grad_pack(g, (struct tfc_output[]){begin, rest}, 2, 1));
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define MASKED .prepare = prepare_masks
static const struct tfc_op_def array_slice_rows[] = {
    {.name = "Slice",
     .plan_trait = TFC_PLAN_SLICE,
     .inputs = "input: T, begin: Index, size: Index",
     .outputs = "output: T",
     .attrs = "T: type, Index: {int32, int64}",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 6,
     .shape = shape_slice,
     .cost = ops_cost_moved,
     .kernel = slice,
     .gradient = gradient_Slice,
     .samples = "float[3,4], int32[2]=[1,0], int32[2]=[2,-1]"},
    {.name = "StridedSlice",
     .inputs = "input: T, begin: Index, end: Index, strides: Index",
     .outputs = "output: T",
     .attrs = "T: type, Index: {int16, int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, "
              "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 14,
     MASKED,
     .shape = shape_strided_slice,
     .cost = ops_cost_moved,
     .kernel = strided_slice,
     .gradient = gradient_StridedSlice,
     .samples = "float[3,4], int32[2]=[0,1], int32[2]=[3,4], int32[2]=[2,1]; float[3,4], int32[1]=[-1], int32[1]=[0], "
                "int32[1]=[1] {shrink_axis_mask=1}; float[5], int32[1]=[0], int32[1]=[0], int32[1]=[-1] "
                "{begin_mask=1, end_mask=1}"},
    {.name = "StridedSliceGrad",
     .inputs = "shape: Index, begin: Index, end: Index, strides: Index, dy: T",
     .outputs = "output: T",
     .attrs = "T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, "
              "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 15,
     MASKED,
     .shape = shape_strided_slice_grad,
     .kernel = strided_slice_grad,
     .gradient = gradient_StridedSliceGrad,
     .samples = "int32[2]=[3,4], int32[2]=[0,1], int32[2]=[3,4], int32[2]=[2,1], float[2,3]"},
    {.name = "TensorStridedSliceUpdate",
     .inputs = "input: T, begin: Index, end: Index, strides: Index, value: T",
     .outputs = "output: T",
     .attrs = "T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, "
              "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 14,
     MASKED,
     .shape = ops_shape_same,
     .kernel = tensor_update,
     .gradient = gradient_TensorStridedSliceUpdate,
     .samples = "float[3,4], int32[2]=[0,1], int32[2]=[3,4], int32[2]=[2,1], float[2,3]"},
};
TFC_REGISTER_OPS(array_slice_rows);
