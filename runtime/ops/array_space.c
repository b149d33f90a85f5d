// Operations that move blocks of spatial positions into other dimensions and back: SpaceToBatch(ND), BatchToSpace(ND),
// SpaceToDepth, DepthToSpace.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// --- Space and batch -------------------------------------------------------------------------------------------------
// Dimensions 1 … count of the space tensor are spatial, with block sizes b. In the batch tensor, batch ((o₁ b₂ + o₂) …
// ) n + i holds the elements of the space tensor's batch i that have offsets o within their blocks.
struct space_batch {
  int count;
  int64_t block[TFC_MAX_RANK], before[TFC_MAX_RANK], after[TFC_MAX_RANK];
};

static tfc_status read_blocks(struct tfc_kernel_ctx *ctx, struct space_batch *out) {
  const struct tfc_tensor *block = ctx->inputs[1], *paddings = ctx->inputs[ctx->input_count - 1];
  const int64_t *size = ctx->state; // the attribute of the ops with one size for two dimensions
  struct space_batch s = {.count = 2};
  if (ctx->input_count == 2)
    TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 4, "Input rank should be 4 instead of %d",
                     ctx->inputs[0]->shape.rank);
  if (ctx->input_count == 3) {
    TFC_KERNEL_CHECK(block->shape.rank == 1, "block rank should be 1 instead of %d", block->shape.rank);
    TFC_KERNEL_CHECK(tfc_tensor_elements(block) < TFC_MAX_RANK, "too many block dimensions");
    s.count = (int)tfc_tensor_elements(block);
  }
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank > s.count, "input rank should be >= %d instead of %d", s.count + 1,
                   ctx->inputs[0]->shape.rank);
  TFC_KERNEL_CHECK(paddings->shape.rank == 2 && paddings->shape.dims[0] == s.count && paddings->shape.dims[1] == 2,
                   "paddings (crops) should have shape [%d, 2]", s.count);
  for (int d = 0; d < s.count; d++) {
    s.block[d] = ctx->input_count == 3 ? tfc_tensor_int(block, d) : *size;
    s.before[d] = tfc_tensor_int(paddings, 2 * d);
    s.after[d] = tfc_tensor_int(paddings, 2 * d + 1);
    TFC_KERNEL_CHECK(s.block[d] >= 1, "All values in block_shape must be positive, got value %lld at index %d.",
                     (long long)s.block[d], d);
    TFC_KERNEL_CHECK(s.before[d] >= 0 && s.after[d] >= 0, "Paddings (crops) must be non-negative");
  }
  *out = s;
  return NULL;
}

// Copies between `space` (without its padding) and `batch`, once for each offset in a block.
static tfc_status move_blocks(struct tfc_kernel_ctx *ctx, const struct space_batch *s, const struct tfc_tensor *space,
                              const struct tfc_tensor *batch, bool to_batch, struct tfc_tensor *dst) {
  const struct tfc_shape *ss = &space->shape, *bs = &batch->shape;
  int64_t space_strides[TFC_MAX_RANK], batch_strides[TFC_MAX_RANK], offsets = 1, n = ss->dims[0];
  tfc_shape_strides(ss, space_strides);
  tfc_shape_strides(bs, batch_strides);
  for (int d = 0; d < s->count; d++) offsets *= s->block[d];
  for (int64_t o = 0; o < offsets; o++) {
    struct ops_block b = {.rank = ss->rank};
    int64_t rest = o, space_at = 0, batch_at = o * n * batch_strides[0];
    int64_t *space_step = to_batch ? b.src_strides : b.dst_strides;
    int64_t *batch_step = to_batch ? b.dst_strides : b.src_strides;
    bool empty = false;
    for (int d = ss->rank - 1; d >= 0; d--) {
      space_step[d] = space_strides[d];
      batch_step[d] = batch_strides[d];
      b.dims[d] = d == 0 ? n : ss->dims[d];
      if (d < 1 || d > s->count) continue;
      // Position k in the batch tensor is position k block + offset - before in the space tensor.
      int64_t block = s->block[d - 1], offset = rest % block - s->before[d - 1];
      rest /= block;
      int64_t first = offset < 0 ? (-offset + block - 1) / block : 0;
      int64_t last = (ss->dims[d] - 1 - offset) / block; // the last position inside the space tensor
      if (ss->dims[d] - 1 - offset < 0) last = -1;
      if (last > bs->dims[d] - 1) last = bs->dims[d] - 1;
      b.dims[d] = last - first + 1;
      empty = empty || b.dims[d] <= 0;
      space_step[d] = block * space_strides[d];
      space_at += (first * block + offset) * space_strides[d];
      batch_at += first * batch_strides[d];
    }
    if (empty) continue;
    b.src_at = to_batch ? space_at : batch_at;
    b.dst_at = to_batch ? batch_at : space_at;
    TFC_RETURN_IF_ERROR(ops_copy_block(ctx, dst, to_batch ? space : batch, &b));
  }
  return NULL;
}

static tfc_status space_to_batch(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct space_batch s;
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(read_blocks(ctx, &s));
  for (int d = 0; d < s.count; d++) {
    int64_t padded = x->shape.dims[d + 1] + s.before[d] + s.after[d];
    TFC_KERNEL_CHECK(padded % s.block[d] == 0, "padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld", d,
                     (long long)padded, d, (long long)s.block[d]);
    shape.dims[d + 1] = padded / s.block[d];
    TFC_KERNEL_CHECK(!__builtin_mul_overflow(shape.dims[0], s.block[d], &shape.dims[0]), "the batch is too large");
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  ops_fill_zero(y);
  return move_blocks(ctx, &s, x, y, true, y);
}

static tfc_status batch_to_space(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct space_batch s;
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(read_blocks(ctx, &s));
  int64_t product = 1;
  for (int d = 0; d < s.count; d++)
    TFC_KERNEL_CHECK(!__builtin_mul_overflow(product, s.block[d], &product), "the block is too large");
  TFC_KERNEL_CHECK(shape.dims[0] % product == 0,
                   "Input batch dimension (%lld) is not divisible by product of block "
                   "sizes (%lld)",
                   (long long)shape.dims[0], (long long)product);
  shape.dims[0] /= product;
  for (int d = 0; d < s.count; d++) {
    int64_t n = x->shape.dims[d + 1] * s.block[d] - s.before[d] - s.after[d];
    TFC_KERNEL_CHECK(n >= 0, "cropped_shape[%d]=%lld must be non-negative", d, (long long)n);
    shape.dims[d + 1] = n;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  return move_blocks(ctx, &s, y, x, false, y);
}

static tfc_status prepare_block_size(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, int64_t, size);
  *size = tfc_node_attr_int(ctx->graph, ctx->node, "block_size", 1);
  return NULL;
}

static tfc_status shape_space_batch(struct tfc_shape_ctx *ctx, bool to_batch) {
  const struct tfc_shape *x = ctx->inputs[0];
  bool nd = ctx->node->input_count == 3;
  int64_t block[TFC_MAX_RANK], pads[2 * TFC_MAX_RANK];
  int count = 2, n = 0;
  struct tfc_shape four;
  if (!nd) {
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &four));
    x = &four;
  }
  if (x->rank < 0) return NULL;
  ctx->outputs[0] = tfc_shape_unknown_of_rank(x->rank);
  bool known = true;
  if (nd) {
    known = ctx->input_values && ctx->input_values[1] && ops_known_ints(ctx, 1, block, TFC_MAX_RANK, &count);
  } else {
    block[0] = block[1] = tfc_node_attr_int(ctx->graph, ctx->node, "block_size", 1);
  }
  if (!known) return NULL;
  if (x->rank <= count) return tfc_status_make(TFC_INVALID_ARGUMENT, "rank %d for %d blocks", x->rank, count);
  uint32_t pad_input = nd ? 2 : 1;
  bool pads_known = ctx->input_values && ctx->input_values[pad_input] &&
                    ops_known_ints(ctx, pad_input, pads, 2 * TFC_MAX_RANK, &n) && n == 2 * count;
  struct tfc_shape out = *x;
  bool large = false; // a number exceeds 64 bits
  for (int d = 0; d < count; d++) {
    if (block[d] < 1) return tfc_status_make(TFC_INVALID_ARGUMENT, "block_shape must be positive");
    if (tfc_dim_known(out.dims[0])) {
      if (!to_batch && out.dims[0] % block[d])
        return tfc_status_make(TFC_INVALID_ARGUMENT, "the batch is not divisible by the block sizes");
      if (!to_batch)
        out.dims[0] /= block[d];
      else
        large |= __builtin_mul_overflow(out.dims[0], block[d], &out.dims[0]);
    } else if (block[d] != 1) {
      out.dims[0] = TFC_DIM_UNKNOWN;
    }
    int64_t size = out.dims[d + 1], both = 0, padded = 0;
    if (pads_known) large |= __builtin_add_overflow(pads[2 * d], pads[2 * d + 1], &both);
    if (!pads_known || !tfc_dim_known(size)) {
      out.dims[d + 1] = TFC_DIM_UNKNOWN;
      continue;
    }
    if (to_batch)
      large |= __builtin_add_overflow(size, both, &padded);
    else
      large |= __builtin_mul_overflow(size, block[d], &padded) || __builtin_sub_overflow(padded, both, &padded);
    if (large)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the result is too large: 64 bits do not hold its dimensions");
    if (to_batch && padded % block[d])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "dimension %d, padded to %lld, is not divisible by %lld", d + 1,
                             (long long)padded, (long long)block[d]);
    out.dims[d + 1] = to_batch ? padded / block[d] : padded;
    if (out.dims[d + 1] < 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "crops are larger than dimension %d", d + 1);
  }
  if (large)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the result is too large: 64 bits do not hold its dimensions");
  ctx->outputs[0] = out;
  return NULL;
}
static tfc_status shape_to_batch(struct tfc_shape_ctx *ctx) {
  return shape_space_batch(ctx, true);
}
static tfc_status shape_to_space(struct tfc_shape_ctx *ctx) {
  return shape_space_batch(ctx, false);
}

static tfc_status turn_nd(struct tfc_grad_ctx *g, const char *op) {
  g->grad_inputs[0] = grad_op3(g, op, G, grad_in(g, 1), grad_in(g, 2));
  return NULL;
}
OPS_GRADIENT(SpaceToBatchND) {
  return turn_nd(g, "BatchToSpaceND");
}
OPS_GRADIENT(BatchToSpaceND) {
  return turn_nd(g, "SpaceToBatchND");
}
static tfc_status turn(struct tfc_grad_ctx *g, const char *op) {
  struct tfc_attr attr = tfc_attr_int("block_size", grad_attr_int(g, "block_size", 2));
  g->grad_inputs[0] = tfc_add(g->builder, op, "", (struct tfc_output[]){G, grad_in(g, 1)}, 2, &attr, 1);
  return NULL;
}
OPS_GRADIENT(SpaceToBatch) {
  return turn(g, "BatchToSpace");
}
OPS_GRADIENT(BatchToSpace) {
  return turn(g, "SpaceToBatch");
}

// --- Space and depth -------------------------------------------------------------------------------------------------
struct depth_state {
  int64_t block;
  bool channels_first;
};
static tfc_status prepare_depth(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct depth_state, state);
  tfc_str format = tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC");
  state->block = tfc_node_attr_int(ctx->graph, ctx->node, "block_size", 2);
  state->channels_first = tfc_str_is(format, "NCHW");
  if (!state->channels_first && !tfc_str_is(format, "NHWC"))
    return tfc_status_make(TFC_UNIMPLEMENTED, "data_format %.*s", TFC_STR_ARG(format));
  return NULL;
}
static tfc_status depth_shape(const struct tfc_shape *x, int64_t block, bool first, bool to_depth,
                              struct tfc_shape *out) {
  int channel = first ? 1 : 3, spatial = first ? 2 : 1;
  struct tfc_shape s = *x;
  if (x->rank != 4) return tfc_status_make(TFC_INVALID_ARGUMENT, "Input rank should be 4 instead of %d", x->rank);
  for (int d = spatial; d < spatial + 2; d++) {
    if (!tfc_dim_known(s.dims[d])) continue;
    if (to_depth && s.dims[d] % block)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "Image dimension %lld should be divisible by block_size %lld",
                             (long long)s.dims[d], (long long)block);
    s.dims[d] = to_depth ? s.dims[d] / block : s.dims[d] * block;
  }
  if (tfc_dim_known(s.dims[channel])) {
    if (!to_depth && s.dims[channel] % (block * block))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "depth %lld should be divisible by %lld", (long long)s.dims[channel],
                             (long long)(block * block));
    s.dims[channel] = to_depth ? s.dims[channel] * block * block : s.dims[channel] / (block * block);
  }
  for (int d = 1; d < 4; d++)
    if (!tfc_dim_known(s.dims[d])) s.dims[d] = TFC_DIM_UNKNOWN;
  *out = s;
  return NULL;
}
// Copies between space [n, h, b, w, b, c] and depth [n, h, w, b, b, c] or, with channels first, between [n, c, h, b, w,
// b] and [n, b, b, c, h, w].
static tfc_status move_depth(struct tfc_kernel_ctx *ctx, bool to_depth) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct depth_state *state = ctx->state;
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  int64_t k = state->block;
  bool first = state->channels_first;
  TFC_RETURN_IF_ERROR(depth_shape(&x->shape, k, first, to_depth, &shape));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  const struct tfc_shape *depth = to_depth ? &shape : &x->shape, *space = to_depth ? &x->shape : &shape;
  int64_t ds[4], ss[4];
  tfc_shape_strides(depth, ds);
  tfc_shape_strides(space, ss);
  int row = first ? 2 : 1, channel = first ? 1 : 3;
  int64_t c = space->dims[channel];
  struct ops_block b = {.rank = 6, .dims = {space->dims[0], depth->dims[row], depth->dims[row + 1], k, k, c}};
  int64_t in_depth[6] = {ds[0], ds[row], ds[row + 1], k * c * ds[channel], c * ds[channel], ds[channel]};
  int64_t in_space[6] = {ss[0], k * ss[row], k * ss[row + 1], ss[row], ss[row + 1], ss[channel]};
  memcpy(b.dst_strides, to_depth ? in_depth : in_space, sizeof in_depth);
  memcpy(b.src_strides, to_depth ? in_space : in_depth, sizeof in_depth);
  return ops_copy_block(ctx, y, x, &b);
}
static tfc_status space_to_depth(struct tfc_kernel_ctx *ctx) {
  return move_depth(ctx, true);
}
static tfc_status depth_to_space(struct tfc_kernel_ctx *ctx) {
  return move_depth(ctx, false);
}
static tfc_status shape_depth(struct tfc_shape_ctx *ctx, bool to_depth) {
  tfc_str format = tfc_node_attr_string(ctx->graph, ctx->node, "data_format", "NHWC");
  struct tfc_shape x;
  if (tfc_str_is(format, "NCHW_VECT_C")) return NULL;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  return depth_shape(&x, tfc_node_attr_int(ctx->graph, ctx->node, "block_size", 2), tfc_str_is(format, "NCHW"),
                     to_depth, &ctx->outputs[0]);
}
static tfc_status shape_space_to_depth(struct tfc_shape_ctx *ctx) {
  return shape_depth(ctx, true);
}
static tfc_status shape_depth_to_space(struct tfc_shape_ctx *ctx) {
  return shape_depth(ctx, false);
}
static tfc_status turn_depth(struct tfc_grad_ctx *g, const char *op) {
  const struct tfc_attr *format = grad_attr(g, "data_format");
  struct tfc_attr attrs[2] = {tfc_attr_int("block_size", grad_attr_int(g, "block_size", 2)),
                              tfc_attr_string("data_format", format ? format->s : TFC_STR("NHWC"))};
  g->grad_inputs[0] = tfc_add(g->builder, op, "", &G, 1, attrs, 2);
  return NULL;
}
OPS_GRADIENT(SpaceToDepth) {
  return turn_depth(g, "DepthToSpace");
}
OPS_GRADIENT(DepthToSpace) {
  return turn_depth(g, "SpaceToDepth");
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_op_def array_space_rows[] = {
    {.name = "SpaceToBatchND",
     .role = TFC_ROLE_SPACE_TO_BATCH,
     .inputs = "input: T, block_shape: Tblock_shape, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type, Tblock_shape: {int32, int64} = int32, Tpaddings: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .shape = shape_to_batch,
     .kernel = space_to_batch,
     .gradient = gradient_SpaceToBatchND,
     .samples = "float[2,4,6,3], int32[2]=[2,3], int32[2,2]=[0,0,1,2]"},
    {.name = "BatchToSpaceND",
     .role = TFC_ROLE_BATCH_TO_SPACE,
     .inputs = "input: T, block_shape: Tblock_shape, crops: Tcrops",
     .outputs = "output: T",
     .attrs = "T: type, Tblock_shape: {int32, int64} = int32, Tcrops: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 6,
     .shape = shape_to_space,
     .kernel = batch_to_space,
     .gradient = gradient_BatchToSpaceND,
     .samples = "float[4,2,3,1], int32[2]=[2,2], int32[2,2]=[0,1,1,0]"},
    {.name = "SpaceToBatch",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type, Tpaddings: {int32, int64} = int32, block_size: int >= 2",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .shape = shape_to_batch,
     .prepare = prepare_block_size,
     .kernel = space_to_batch,
     .gradient = gradient_SpaceToBatch,
     .samples = "float[1,4,4,2], int32[2,2]=[0,0,0,0] {block_size=2}"},
    {.name = "BatchToSpace",
     .inputs = "input: T, crops: Tidx",
     .outputs = "output: T",
     .attrs = "T: type, block_size: int >= 2, Tidx: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .shape = shape_to_space,
     .prepare = prepare_block_size,
     .kernel = batch_to_space,
     .gradient = gradient_BatchToSpace,
     .samples = "float[4,2,2,2], int32[2,2]=[0,0,0,0] {block_size=2}"},
    {.name = "SpaceToDepth",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type, block_size: int >= 2, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_space_to_depth,
     .prepare = prepare_depth,
     .kernel = space_to_depth,
     .gradient = gradient_SpaceToDepth,
     .samples = "float[1,4,4,2] {block_size=2}"},
    {.name = "DepthToSpace",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type, block_size: int >= 2, data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_depth_to_space,
     .prepare = prepare_depth,
     .kernel = depth_to_space,
     .gradient = gradient_DepthToSpace,
     .samples = "float[1,2,2,8] {block_size=2}"},
};
TFC_REGISTER_OPS(array_space_rows);
