// Rows of the ops that move elements: Transpose, Tile, BroadcastTo, slices and their gradients, Pad, Reverse, Concat,
// Split, Pack, Unpack, Fill, ZerosLike and OnesLike.
#include "runtime/device/cuda/kernels/move.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/kernels/elementwise.h"
#include "runtime/ops/array_slice.h"

// Checks that the kernels can move the elements: their size must be 1, 2, 4, 8 or 16 bytes, as for all plain types.
static tfc_status check_plain(const struct tfc_cuda_prepare *p, uint32_t input) {
  tfc_dtype t = tfc_cuda_type(p, input);
  if (!tfc_dtype_is_plain(t)) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(t));
  return NULL;
}
static tfc_status run_block(struct tfc_cuda_launch *l, struct tfc_cuda_block *block, struct tfc_tensor *y,
                            const struct tfc_tensor *x) {
  block->size = (int32_t)tfc_dtype_size(x->dtype);
  TFC_CUDA_LAUNCHED(l, tfc_cuda_copy_block(block, y->data, x->data, l->stream));
  return NULL;
}

// --- Inputs on the host that decide what is moved: constants (an op's first row) or values of the step (its second) -
struct arguments {
  struct tfc_cuda_argument values[3];
  struct ops_slice_masks masks;
};
static tfc_status keep_arguments(struct tfc_cuda_prepare *p, uint32_t first, uint32_t count, bool constant) {
  TFC_CUDA_STATE(p, struct arguments, a);
  for (uint32_t i = 0; i < count; i++) {
    a->values[i] = tfc_cuda_argument(p, first + i);
    if (constant && !a->values[i].constant) TFC_CUDA_DECLINE("input %u is not constant", first + i);
  }
  return NULL;
}
#define PREPARE(name, first, count)                                                                                    \
  static tfc_status name##_constant(struct tfc_cuda_prepare *p) {                                                      \
    TFC_RETURN_IF_ERROR(check_plain(p, 0));                                                                            \
    return keep_arguments(p, first, count, true);                                                                      \
  }                                                                                                                    \
  static tfc_status name(struct tfc_cuda_prepare *p) {                                                                 \
    TFC_RETURN_IF_ERROR(check_plain(p, 0));                                                                            \
    return keep_arguments(p, first, count, false);                                                                     \
  }
PREPARE(one, 1, 1)
PREPARE(two, 1, 2)
static const struct arguments *arguments_of(const struct tfc_cuda_launch *l) {
  return l->ctx->state;
}
#define TWICE_ON(op, types, prepare, launch, on)                                                                       \
  {op, types, prepare##_constant, launch, on}, {                                                                       \
    op, types, prepare, launch, TFC_CUDA_NO_CAPTURE | (on)                                                             \
  }
#define TWICE(op, types, prepare, launch) TWICE_ON(op, types, prepare, launch, 0)

// --- Transpose ---------------------------------------------------------------------------------------------------
static tfc_status launch_Transpose(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value perm;
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = {.rank = x->shape.rank};
  struct tfc_cuda_block block = {.rank = x->shape.rank};
  int64_t strides[TFC_MAX_RANK];
  bool seen[TFC_MAX_RANK] = {0};
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &perm));
  TFC_KERNEL_CHECK(perm.tensor->shape.rank == 1 && tfc_tensor_elements(perm.tensor) == shape.rank,
                   "transpose expects a vector of size %d", shape.rank);
  tfc_shape_strides(&x->shape, strides);
  for (int d = 0; d < shape.rank; d++) {
    int64_t from = tfc_tensor_int(perm.tensor, d);
    from += from < 0 ? shape.rank : 0;
    TFC_KERNEL_CHECK(from >= 0 && from < shape.rank && !seen[from], "%lld is not a place in a permutation of %d",
                     (long long)tfc_tensor_int(perm.tensor, d), shape.rank);
    seen[from] = true;
    block.dims[d] = shape.dims[d] = x->shape.dims[from];
    block.src_strides[d] = strides[from];
  }
  tfc_shape_strides(&shape, block.dst_strides);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  return run_block(l, &block, y, x);
}

// --- Tile, BroadcastTo -------------------------------------------------------------------------------------------
static tfc_status launch_Tile(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value multiples;
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = x->shape;
  struct tfc_cuda_block block = {0};
  int64_t from[TFC_MAX_RANK], to[TFC_MAX_RANK], times[TFC_MAX_RANK];
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &multiples));
  TFC_KERNEL_CHECK(multiples.tensor->shape.rank == 1 && tfc_tensor_elements(multiples.tensor) == shape.rank,
                   "Expected multiples argument to be a vector of length %d", shape.rank);
  for (int d = 0; d < shape.rank; d++) {
    times[d] = tfc_tensor_int(multiples.tensor, d);
    TFC_KERNEL_CHECK(times[d] >= 0, "Expected multiples[%d] >= 0, but got %lld", d, (long long)times[d]);
    TFC_KERNEL_CHECK(!__builtin_mul_overflow(shape.dims[d], times[d], &shape.dims[d]), "the result is too large");
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  tfc_shape_strides(&x->shape, from);
  tfc_shape_strides(&shape, to);
  for (int d = 0; d < shape.rank; d++) { // a dimension of y is [times, n]; along `times` the source's stride is 0
    int64_t n = x->shape.dims[d];
    for (int part = 0; part < 2; part++) {
      int64_t size = part ? n : times[d];
      if (size == 1) continue;
      if (block.rank == TFC_CUDA_BLOCK_RANK)
        return tfc_status_make(TFC_UNIMPLEMENTED, "tiling a tensor of %d dimensions", shape.rank);
      block.dims[block.rank] = size;
      block.src_strides[block.rank] = part ? from[d] : 0;
      block.dst_strides[block.rank++] = part ? to[d] : n * to[d];
    }
  }
  return run_block(l, &block, y, x);
}

static tfc_status launch_BroadcastTo(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value value;
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape;
  struct tfc_cuda_block block = {0};
  int64_t from[TFC_MAX_RANK];
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &value));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(value.tensor, &shape));
  int more = shape.rank - x->shape.rank;
  TFC_KERNEL_CHECK(more >= 0, "Rank of input (%d) must be no greater than rank of output shape (%d).", x->shape.rank,
                   shape.rank);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  tfc_shape_strides(&x->shape, from);
  tfc_shape_strides(&shape, block.dst_strides);
  block.rank = shape.rank;
  for (int d = 0; d < shape.rank; d++) {
    int64_t n = d < more ? 1 : x->shape.dims[d - more];
    TFC_KERNEL_CHECK(n == 1 || n == shape.dims[d], "Incompatible shapes: dimension %d", d);
    block.dims[d] = shape.dims[d];
    block.src_strides[d] = n == 1 ? 0 : from[d - more];
  }
  return run_block(l, &block, y, x);
}

// --- Slices ------------------------------------------------------------------------------------------------------
static tfc_status launch_Slice(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value begin, size;
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = {.rank = x->shape.rank};
  struct tfc_cuda_block block = {.rank = x->shape.rank};
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &begin));
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[1], &size));
  TFC_KERNEL_CHECK(tfc_tensor_elements(begin.tensor) == shape.rank && tfc_tensor_elements(size.tensor) == shape.rank,
                   "Expected begin and size arguments to be 1-D tensors of size %d", shape.rank);
  tfc_shape_strides(&x->shape, block.src_strides);
  for (int d = 0; d < shape.rank; d++) {
    int64_t b = tfc_tensor_int(begin.tensor, d), n = tfc_tensor_int(size.tensor, d), whole = x->shape.dims[d];
    if (n == -1) n = whole - b;
    TFC_KERNEL_CHECK(b >= 0 && b <= whole && n >= 0 && n <= whole - b,
                     "Expected begin[%d] in [0, %lld] and size[%d] in [0, %lld], but got %lld and %lld", d,
                     (long long)whole, d, (long long)(whole - b), (long long)b, (long long)n);
    block.dims[d] = shape.dims[d] = n;
    block.src_at += b * block.src_strides[d];
  }
  tfc_shape_strides(&shape, block.dst_strides);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  return run_block(l, &block, y, x);
}

static tfc_status keep_slice(struct tfc_cuda_prepare *p, uint32_t first, bool constant) {
  TFC_RETURN_IF_ERROR(keep_arguments(p, first, 3, constant));
  struct arguments *a = p->base->state;
  a->masks = ops_slice_masks_of(p->base->graph, p->base->node);
  return NULL;
}
static tfc_status strided_constant(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(check_plain(p, 0));
  return keep_slice(p, 1, true);
}
static tfc_status strided(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(check_plain(p, 0));
  return keep_slice(p, 1, false);
}
static tfc_status get_slice(struct tfc_cuda_launch *l, const struct tfc_shape *input, struct ops_slice *out) {
  const struct arguments *a = arguments_of(l);
  struct tfc_cuda_value v[3];
  for (int i = 0; i < 3; i++) TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &a->values[i], &v[i]));
  return ops_slice_of_tensors(input, v[0].tensor, v[1].tensor, v[2].tensor, &a->masks, out);
}
// Describes a slice as a block: its elements are read from the input or, with `to`, written to it.
static void block_of_slice(const struct ops_slice *s, const struct tfc_shape *input, bool to,
                           struct tfc_cuda_block *out) {
  int64_t whole[TFC_MAX_RANK], dense[TFC_MAX_RANK];
  *out = (struct tfc_cuda_block){.rank = input->rank};
  tfc_shape_strides(input, whole);
  tfc_shape_strides(&s->processing, dense);
  for (int d = 0; d < input->rank; d++) {
    out->dims[d] = s->processing.dims[d];
    out->src_strides[d] = to ? dense[d] : whole[d] * s->stride[d];
    out->dst_strides[d] = to ? whole[d] * s->stride[d] : dense[d];
    *(to ? &out->dst_at : &out->src_at) += s->begin[d] * whole[d];
  }
}
static tfc_status launch_StridedSlice(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct ops_slice slice;
  struct tfc_cuda_block block;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(get_slice(l, &x->shape, &slice));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &slice.shape, &y));
  block_of_slice(&slice, &x->shape, false, &block);
  return run_block(l, &block, y, x);
}

// The inputs of the op are shape, begin, end, strides, dy.
struct grad_arguments {
  struct arguments slice;
  struct tfc_cuda_argument shape;
};
static tfc_status slice_grad(struct tfc_cuda_prepare *p, bool constant) {
  TFC_RETURN_IF_ERROR(check_plain(p, 4));
  TFC_CUDA_STATE(p, struct grad_arguments, a);
  a->shape = tfc_cuda_argument(p, 0);
  for (uint32_t i = 0; i < 3; i++) a->slice.values[i] = tfc_cuda_argument(p, 1 + i);
  a->slice.masks = ops_slice_masks_of(p->base->graph, p->base->node);
  for (uint32_t i = 0; i < 4; i++)
    if (constant && !tfc_cuda_is_constant(p, i)) TFC_CUDA_DECLINE("input %u is not constant", i);
  return NULL;
}
static tfc_status strided_grad_constant(struct tfc_cuda_prepare *p) {
  return slice_grad(p, true);
}
static tfc_status strided_grad(struct tfc_cuda_prepare *p) {
  return slice_grad(p, false);
}
static tfc_status launch_StridedSliceGrad(struct tfc_cuda_launch *l) {
  const struct grad_arguments *a = l->ctx->state;
  const struct tfc_tensor *dy = l->ctx->inputs[4];
  struct tfc_cuda_value value;
  struct tfc_shape shape;
  struct ops_slice slice;
  struct tfc_cuda_block block;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &a->shape, &value));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(value.tensor, &shape));
  TFC_RETURN_IF_ERROR(get_slice(l, &shape, &slice));
  TFC_KERNEL_CHECK(tfc_shape_equal(&slice.shape, &dy->shape), "shape of dy is not that of the slice");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, dy->dtype, &shape, &y));
  TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(y->data, y->size, l->stream));
  block_of_slice(&slice, &shape, true, &block);
  return run_block(l, &block, y, dy);
}

// --- Pad, Reverse ------------------------------------------------------------------------------------------------
static tfc_status launch_Pad(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value paddings;
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_block block = {.rank = shape.rank};
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &paddings));
  const struct tfc_tensor *p = paddings.tensor;
  TFC_KERNEL_CHECK(p->shape.rank == 2 && p->shape.dims[1] == 2 && p->shape.dims[0] == shape.rank,
                   "The first dimension of paddings must be the rank of inputs (%d), its second 2", shape.rank);
  for (int d = 0; d < shape.rank; d++) {
    int64_t before = tfc_tensor_int(p, 2 * d), after = tfc_tensor_int(p, 2 * d + 1);
    TFC_KERNEL_CHECK(before >= 0 && after >= 0, "Paddings must be non-negative: %lld %lld", (long long)before,
                     (long long)after);
    TFC_KERNEL_CHECK(!__builtin_add_overflow(shape.dims[d], before, &shape.dims[d]) &&
                         !__builtin_add_overflow(shape.dims[d], after, &shape.dims[d]),
                     "the padded size overflows");
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &y));
  if (l->ctx->input_count == 3) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(l->ctx->inputs[2]) == 1, "constant_values must be a scalar");
    if (y->size)
      TFC_CUDA_LAUNCHED(l, tfc_cuda_fill((int)tfc_dtype_size(y->dtype), l->ctx->inputs[2]->data, y->data,
                                         tfc_cuda_count(y), l->stream));
  } else {
    TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(y->data, y->size, l->stream));
  }
  tfc_shape_strides(&x->shape, block.src_strides);
  tfc_shape_strides(&shape, block.dst_strides);
  for (int d = 0; d < shape.rank; d++) {
    block.dims[d] = x->shape.dims[d];
    block.dst_at += tfc_tensor_int(p, 2 * d) * block.dst_strides[d];
  }
  return run_block(l, &block, y, x);
}

static tfc_status launch_ReverseV2(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_cuda_value axes;
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_block block = {.rank = x->shape.rank};
  bool reversed[TFC_MAX_RANK] = {0};
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &axes));
  for (int64_t i = 0; i < tfc_tensor_elements(axes.tensor); i++) {
    int64_t axis = tfc_tensor_int(axes.tensor, i);
    axis += axis < 0 ? x->shape.rank : 0;
    TFC_KERNEL_CHECK(axis >= 0 && axis < x->shape.rank && !reversed[axis], "axis %lld is out of range or given twice",
                     (long long)tfc_tensor_int(axes.tensor, i));
    reversed[axis] = true;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  tfc_shape_strides(&x->shape, block.src_strides);
  tfc_shape_strides(&x->shape, block.dst_strides);
  for (int d = 0; d < x->shape.rank; d++) {
    block.dims[d] = x->shape.dims[d];
    if (!reversed[d]) continue;
    block.src_at += (x->shape.dims[d] - 1) * block.src_strides[d];
    block.src_strides[d] = -block.src_strides[d];
  }
  return run_block(l, &block, y, x);
}

// --- Concat, Split, Pack, Unpack ---------------------------------------------------------------------------------
// Joins the parts [outer, widths[i]] to `whole`, or splits `whole` into them (`join` false).
static tfc_status run_parts(struct tfc_cuda_launch *l, bool join, void *whole, void *const *parts,
                            const int64_t *widths, uint32_t count, int64_t outer, size_t size) {
  int64_t width = 0, begin = 0;
  for (uint32_t i = 0; i < count; i++) width += widths[i];
  for (uint32_t i = 0; i < count;) {
    struct tfc_cuda_parts p = {.outer = outer, .width = width, .begin = begin, .size = (int32_t)size};
    int64_t end = 0;
    for (; i < count && p.count < TFC_CUDA_PARTS; i++) {
      if (!widths[i]) continue;
      p.ends[p.count] = end += widths[i];
      p.data[p.count++] = parts[i];
    }
    begin += end;
    if (join)
      TFC_CUDA_LAUNCHED(l, tfc_cuda_join_parts(&p, whole, l->stream));
    else
      TFC_CUDA_LAUNCHED(l, tfc_cuda_cut_parts(&p, whole, l->stream));
  }
  return NULL;
}
// Arrays for the parts of one launch, large enough for all of them.
struct part_list {
  void **data;
  int64_t *widths;
};
static tfc_status make_list(uint32_t count, struct part_list *out) {
  void *memory = malloc((count + 1u) * (sizeof(void *) + sizeof(int64_t)));
  if (!memory) return tfc_status_no_memory(NULL);
  out->widths = memory;
  out->data = (void **)(out->widths + count + 1);
  return NULL;
}
static int64_t product(const struct tfc_shape *s, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++) n *= s->dims[d];
  return n;
}

static tfc_status concat(struct tfc_cuda_launch *l, uint32_t first, uint32_t count) {
  const struct tfc_tensor *const *in = l->ctx->inputs + first;
  struct tfc_cuda_value value;
  struct tfc_shape shape = in[0]->shape;
  struct tfc_tensor *y = NULL;
  struct part_list list = {0};
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &value));
  TFC_KERNEL_CHECK(tfc_tensor_elements(value.tensor) == 1, "the axis must be a scalar");
  int64_t axis = tfc_tensor_int(value.tensor, 0);
  TFC_KERNEL_CHECK(axis >= -shape.rank && axis < shape.rank,
                   "ConcatOp : Expected concatenating dimensions in the range [%d, %d), but got %lld", -shape.rank,
                   shape.rank, (long long)axis);
  axis += axis < 0 ? shape.rank : 0;
  for (uint32_t i = 1; i < count; i++) {
    const struct tfc_shape *s = &in[i]->shape;
    bool fits = s->rank == shape.rank;
    for (int d = 0; fits && d < shape.rank; d++) fits = d == axis || s->dims[d] == shape.dims[d];
    TFC_KERNEL_CHECK(fits, "ConcatOp : Dimension mismatch: shape[0] and shape[%u]", i);
    shape.dims[axis] += s->dims[axis];
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, in[0]->dtype, &shape, &y));
  TFC_RETURN_IF_ERROR(make_list(count, &list));
  int64_t inner = product(&shape, (int)axis + 1, shape.rank);
  for (uint32_t i = 0; i < count; i++) {
    list.widths[i] = in[i]->shape.dims[axis] * inner;
    list.data[i] = in[i]->data;
  }
  tfc_status s = run_parts(l, true, y->data, list.data, list.widths, count, product(&shape, 0, (int)axis),
                           tfc_dtype_size(y->dtype));
  free(list.widths);
  return s;
}
static tfc_status launch_Concat(struct tfc_cuda_launch *l) {
  return concat(l, 1, l->ctx->input_count - 1);
}
static tfc_status launch_ConcatV2(struct tfc_cuda_launch *l) {
  return concat(l, 0, l->ctx->input_count - 1);
}
#define AXIS(name, axis_input, data_input)                                                                             \
  static tfc_status name##_constant(struct tfc_cuda_prepare *p) {                                                      \
    TFC_RETURN_IF_ERROR(check_plain(p, data_input));                                                                   \
    return keep_arguments(p, axis_input, 1, true);                                                                     \
  }                                                                                                                    \
  static tfc_status name(struct tfc_cuda_prepare *p) {                                                                 \
    TFC_RETURN_IF_ERROR(check_plain(p, data_input));                                                                   \
    return keep_arguments(p, axis_input, 1, false);                                                                    \
  }
AXIS(axis_first, 0, 1)
AXIS(axis_last, p->base->node->input_count - 1, 0)

// sizes: the size of each part; NULL: all parts are of the same size.
static tfc_status split_by(struct tfc_cuda_launch *l, const struct tfc_tensor *x, int64_t axis,
                           const struct tfc_tensor *sizes) {
  uint32_t count = l->ctx->output_count;
  struct part_list list = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(axis >= -x->shape.rank && axis < x->shape.rank, "split axis %lld is outside of [%d, %d)",
                   (long long)axis, -x->shape.rank, x->shape.rank);
  axis += axis < 0 ? x->shape.rank : 0;
  int64_t whole = x->shape.dims[axis], inner = product(&x->shape, (int)axis + 1, x->shape.rank), rest = whole;
  int unknown = -1;
  TFC_RETURN_IF_ERROR(make_list(count, &list));
  if (sizes && tfc_tensor_elements(sizes) != count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "there are %u outputs for %lld sizes", count,
             (long long)tfc_tensor_elements(sizes));
  if (!sizes && whole % count)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Number of ways to split should evenly divide the split dimension: %lld by %u",
             (long long)whole, count);
  for (uint32_t i = 0; i < count; i++) {
    list.widths[i] = sizes ? tfc_tensor_int(sizes, i) : whole / count;
    if (list.widths[i] == -1 && unknown < 0)
      unknown = (int)i;
    else if (list.widths[i] < 0)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Split size at index %u must be >= 0", i);
    else
      rest -= list.widths[i];
  }
  if (unknown >= 0) list.widths[unknown] = rest, rest = rest < 0 ? rest : 0;
  if (rest) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the sizes do not add up to %lld", (long long)whole);
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_shape shape = x->shape;
    struct tfc_tensor *y = NULL;
    shape.dims[axis] = list.widths[i];
    TFC_TRY(s, tfc_kernel_output(l->ctx, i, x->dtype, &shape, &y));
    list.data[i] = y->data;
    list.widths[i] *= inner;
  }
  s = run_parts(l, false, x->data, list.data, list.widths, count, product(&x->shape, 0, (int)axis),
                tfc_dtype_size(x->dtype));
out:
  free(list.widths);
  return s;
}
static tfc_status launch_Split(struct tfc_cuda_launch *l) {
  struct tfc_cuda_value axis;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &axis));
  TFC_KERNEL_CHECK(tfc_tensor_elements(axis.tensor) == 1, "the axis must be a scalar");
  return split_by(l, l->ctx->inputs[1], tfc_tensor_int(axis.tensor, 0), NULL);
}
static tfc_status launch_SplitV(struct tfc_cuda_launch *l) { // inputs: value, sizes, axis
  struct tfc_cuda_value sizes, axis;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &sizes));
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[1], &axis));
  TFC_KERNEL_CHECK(tfc_tensor_elements(axis.tensor) == 1, "the axis must be a scalar");
  return split_by(l, l->ctx->inputs[0], tfc_tensor_int(axis.tensor, 0), sizes.tensor);
}

static tfc_status pack_prepare(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(check_plain(p, 0));
  TFC_CUDA_STATE(p, int64_t, axis);
  *axis = tfc_node_attr_int(p->base->graph, p->base->node, "axis", 0);
  return NULL;
}
static tfc_status launch_Pack(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *first = l->ctx->inputs[0];
  uint32_t count = l->ctx->input_count;
  int rank = first->shape.rank + 1;
  int64_t axis = *(const int64_t *)l->ctx->state;
  struct tfc_shape shape = {.rank = rank};
  struct tfc_tensor *y = NULL;
  struct part_list list = {0};
  TFC_KERNEL_CHECK(axis >= -rank && axis < rank && rank <= TFC_MAX_RANK, "axis = %lld not in [%d, %d)", (long long)axis,
                   -rank, rank);
  axis += axis < 0 ? rank : 0;
  for (int d = 0; d < rank; d++) shape.dims[d] = d == axis ? (int64_t)count : first->shape.dims[d < axis ? d : d - 1];
  for (uint32_t i = 1; i < count; i++)
    TFC_KERNEL_CHECK(tfc_shape_equal(&first->shape, &l->ctx->inputs[i]->shape),
                     "Shapes of all inputs must match: values[0].shape and values[%u].shape", i);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, first->dtype, &shape, &y));
  TFC_RETURN_IF_ERROR(make_list(count, &list));
  for (uint32_t i = 0; i < count; i++) {
    list.widths[i] = product(&shape, (int)axis + 1, rank);
    list.data[i] = l->ctx->inputs[i]->data;
  }
  tfc_status s = run_parts(l, true, y->data, list.data, list.widths, count, product(&shape, 0, (int)axis),
                           tfc_dtype_size(y->dtype));
  free(list.widths);
  return s;
}
static tfc_status launch_Unpack(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *x = l->ctx->inputs[0];
  uint32_t count = l->ctx->output_count;
  int64_t axis = *(const int64_t *)l->ctx->state;
  struct tfc_shape shape = {.rank = x->shape.rank - 1};
  struct part_list list = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(axis >= -x->shape.rank && axis < x->shape.rank, "axis = %lld not in [%d, %d)", (long long)axis,
                   -x->shape.rank, x->shape.rank);
  axis += axis < 0 ? x->shape.rank : 0;
  TFC_KERNEL_CHECK(x->shape.dims[axis] == count, "Input shape axis %lld must equal %u, got %lld", (long long)axis,
                   count, (long long)x->shape.dims[axis]);
  for (int d = 0; d < shape.rank; d++) shape.dims[d] = x->shape.dims[d < axis ? d : d + 1];
  TFC_RETURN_IF_ERROR(make_list(count, &list));
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_tensor *y = NULL;
    TFC_TRY(s, tfc_kernel_output(l->ctx, i, x->dtype, &shape, &y));
    list.widths[i] = product(&x->shape, (int)axis + 1, x->shape.rank);
    list.data[i] = y->data;
  }
  s = run_parts(l, false, x->data, list.data, list.widths, count, product(&x->shape, 0, (int)axis),
                tfc_dtype_size(x->dtype));
out:
  free(list.widths);
  return s;
}

// --- Fill, ZerosLike, OnesLike -----------------------------------------------------------------------------------
static tfc_status keep_shape(struct tfc_cuda_prepare *p, bool constant) {
  TFC_RETURN_IF_ERROR(check_plain(p, 1));
  return keep_arguments(p, 0, 1, constant);
}
static tfc_status fill_constant(struct tfc_cuda_prepare *p) {
  return keep_shape(p, true);
}
static tfc_status fill(struct tfc_cuda_prepare *p) {
  return keep_shape(p, false);
}
static tfc_status launch_Fill(struct tfc_cuda_launch *l) { // inputs: dims, value
  const struct tfc_tensor *value = l->ctx->inputs[1];
  struct tfc_cuda_value dims;
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &arguments_of(l)->values[0], &dims));
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(dims.tensor, &shape));
  TFC_KERNEL_CHECK(tfc_tensor_elements(value) == 1, "value must be a scalar");
  for (int d = 0; d < shape.rank; d++) TFC_KERNEL_CHECK(shape.dims[d] >= 0, "Dimension %d of the shape is negative", d);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, value->dtype, &shape, &y));
  if (!y->size) return NULL;
  TFC_CUDA_LAUNCHED(l,
                    tfc_cuda_fill((int)tfc_dtype_size(y->dtype), value->data, y->data, tfc_cuda_count(y), l->stream));
  return NULL;
}
static tfc_status plain(struct tfc_cuda_prepare *p) {
  return check_plain(p, 0);
}
static tfc_status launch_ZerosLike(struct tfc_cuda_launch *l) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, l->ctx->inputs[0], &y));
  TFC_CUDA_LAUNCHED(l, tfc_cuda_clear_bytes(y->data, y->size, l->stream));
  return NULL;
}
static tfc_status launch_OnesLike(struct tfc_cuda_launch *l) {
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, l->ctx->inputs[0], &y));
  if (!y->size) return NULL;
  TFC_CUDA_LAUNCHED(l, tfc_cuda_ones((int)y->dtype, y->data, tfc_cuda_count(y), l->stream));
  return NULL;
}
static tfc_status launch_copy(struct tfc_cuda_launch *l) {
  return tfc_cuda_set_output(l, 0, l->ctx->inputs[0]);
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_cuda_kernel move_rows[] = {
    TWICE("Transpose", TFC_CUDA_PLAIN, one, launch_Transpose),
    TWICE("Tile", TFC_CUDA_PLAIN, one, launch_Tile),
    TWICE("BroadcastTo", TFC_CUDA_PLAIN, one, launch_BroadcastTo),
    TWICE("Slice", TFC_CUDA_PLAIN, two, launch_Slice),
    TWICE("StridedSlice", TFC_CUDA_PLAIN, strided, launch_StridedSlice),
    TWICE_ON("StridedSliceGrad", TFC_CUDA_INDEX, strided_grad, launch_StridedSliceGrad, TFC_CUDA_ON_PLAIN),
    TWICE("Pad", TFC_CUDA_PLAIN, one, launch_Pad),
    TWICE("PadV2", TFC_CUDA_PLAIN, one, launch_Pad),
    TWICE("ReverseV2", TFC_CUDA_PLAIN, one, launch_ReverseV2),
    TWICE_ON("Concat", TFC_CUDA_INDEX, axis_first, launch_Concat, TFC_CUDA_ON_PLAIN),
    TWICE("ConcatV2", TFC_CUDA_PLAIN, axis_last, launch_ConcatV2),
    TWICE_ON("Split", TFC_CUDA_INDEX, axis_first, launch_Split, TFC_CUDA_ON_PLAIN),
    TWICE("SplitV", TFC_CUDA_PLAIN, two, launch_SplitV),
    {"Pack", TFC_CUDA_PLAIN, pack_prepare, launch_Pack, 0},
    {"Unpack", TFC_CUDA_PLAIN, pack_prepare, launch_Unpack, 0},
    TWICE_ON("Fill", TFC_CUDA_INDEX, fill, launch_Fill, TFC_CUDA_ON_PLAIN),
    {"ZerosLike", TFC_CUDA_PLAIN, plain, launch_ZerosLike, 0},
    {"OnesLike", OPS_BITS(TFC_CUDA_ALL), NULL, launch_OnesLike, 0},
    {"DeepCopy", TFC_CUDA_PLAIN, plain, launch_copy, 0},
    {"Snapshot", TFC_CUDA_PLAIN, plain, launch_copy, 0},
};
TFC_CUDA_KERNELS(move_rows);
