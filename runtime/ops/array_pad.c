// Operations that put a border around a tensor: Pad, PadV2 (of one constant), MirrorPad (of the tensor's own values)
// and MirrorPad's gradient.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

static tfc_status read_paddings(const struct tfc_tensor *p, int rank, int64_t before[], int64_t after[]) {
  TFC_KERNEL_CHECK(p->shape.rank == 2 && p->shape.dims[1] == 2 && p->shape.dims[0] == rank,
                   "The first dimension of paddings must be the rank of inputs (%d), its second 2", rank);
  for (int d = 0; d < rank; d++) {
    before[d] = tfc_tensor_int(p, 2 * d);
    after[d] = tfc_tensor_int(p, 2 * d + 1);
    TFC_KERNEL_CHECK(before[d] >= 0 && after[d] >= 0, "Paddings must be non-negative: %lld %lld", (long long)before[d],
                     (long long)after[d]);
  }
  return NULL;
}

// Pads with zeros, one row of the result after another. A row goes along the last dimension that has a border; its
// elements are all that lies in the dimensions after that one, which is contiguous in x and in y.
struct zero_border {
  const char *x;
  char *y;
  int outer; // dimensions before the row's
  int64_t in[TFC_MAX_RANK], out[TFC_MAX_RANK], before[TFC_MAX_RANK];
  size_t row, before_row, x_row; // bytes: of a row of y, of the zeros that it begins with, of a row of x
};
static void pad_rows(void *arg, int64_t begin, int64_t end) {
  const struct zero_border *b = arg;
  for (int64_t row = begin; row < end; row++) {
    char *y = b->y + (size_t)row * b->row;
    int64_t rest = row, from = 0, rows = 1;
    bool inside = true;
    for (int d = b->outer - 1; d >= 0; d--) {
      const int64_t at = rest % b->out[d] - b->before[d];
      rest /= b->out[d];
      inside = inside && at >= 0 && at < b->in[d];
      from += at * rows, rows *= b->in[d];
    }
    if (!inside) {
      memset(y, 0, b->row);
      continue;
    }
    memset(y, 0, b->before_row);
    memcpy(y + b->before_row, b->x + (size_t)from * b->x_row, b->x_row);
    memset(y + b->before_row + b->x_row, 0, b->row - b->before_row - b->x_row);
  }
}

static void pad_with_zeros(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, const int64_t *before,
                           struct tfc_tensor *y) {
  struct zero_border b = {.x = x->data, .y = y->data};
  size_t piece = tfc_dtype_size(x->dtype);
  int64_t rows = 1;
  int d = x->shape.rank - 1;
  for (; x->shape.dims[d] == y->shape.dims[d]; d--) piece *= (size_t)x->shape.dims[d];
  b.outer = d;
  for (int k = 0; k < d; k++) {
    b.in[k] = x->shape.dims[k], b.out[k] = y->shape.dims[k], b.before[k] = before[k];
    rows *= y->shape.dims[k];
  }
  b.row = (size_t)y->shape.dims[d] * piece, b.before_row = (size_t)before[d] * piece;
  b.x_row = (size_t)x->shape.dims[d] * piece;
  tfc_kernel_parallel_for(ctx, rows, (int64_t)(65536 / b.row) + 1, pad_rows, &b);
}

static tfc_status pad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  struct ops_block block = {.rank = shape.rank};
  int64_t before[TFC_MAX_RANK], after[TFC_MAX_RANK];
  TFC_RETURN_IF_ERROR(read_paddings(ctx->inputs[1], shape.rank, before, after));
  bool none = true;
  for (int d = 0; d < shape.rank; d++) {
    TFC_KERNEL_CHECK(!__builtin_add_overflow(shape.dims[d], before[d], &shape.dims[d]) &&
                         !__builtin_add_overflow(shape.dims[d], after[d], &shape.dims[d]),
                     "the padded size overflows");
    none = none && before[d] == 0 && after[d] == 0;
  }
  if (ctx->input_count == 3) TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "constant_values must be a scalar");
  if (none) return tfc_kernel_set_output(ctx, 0, x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  if (ctx->input_count == 2 && tfc_dtype_is_plain(x->dtype) && tfc_tensor_elements(x) > 0) {
    pad_with_zeros(ctx, x, before, y);
    return NULL;
  }
  if (ctx->input_count == 3) {
    TFC_RETURN_IF_ERROR(ops_fill_with(y, 0, tfc_tensor_elements(y), ctx->inputs[2], 0));
  } else {
    ops_fill_zero(y);
  }
  tfc_shape_strides(&x->shape, block.src_strides);
  tfc_shape_strides(&shape, block.dst_strides);
  for (int d = 0; d < shape.rank; d++) {
    block.dims[d] = x->shape.dims[d];
    block.dst_at += before[d] * block.dst_strides[d];
  }
  return ops_copy_block(ctx, y, x, &block);
}

// Computes the input's sizes plus the paddings (`sign` 1) or minus the paddings (`sign` -1).
static tfc_status padded_shape(struct tfc_shape_ctx *ctx, int sign) {
  const struct tfc_tensor *p = ctx->input_values ? ctx->input_values[1] : NULL;
  int rank = ctx->inputs[0]->rank;
  if (rank < 0 && ctx->inputs[1]->rank == 2 && tfc_dim_known(ctx->inputs[1]->dims[0]) &&
      ctx->inputs[1]->dims[0] <= TFC_MAX_RANK)
    rank = (int)ctx->inputs[1]->dims[0];
  if (rank < 0) return NULL;
  ctx->outputs[0] = tfc_shape_unknown_of_rank(rank);
  if (!p || ctx->inputs[0]->rank < 0) return NULL;
  int64_t before[TFC_MAX_RANK], after[TFC_MAX_RANK];
  TFC_RETURN_IF_ERROR(read_paddings(p, rank, before, after));
  for (int d = 0; d < rank; d++) {
    int64_t n = ctx->inputs[0]->dims[d], both = before[d] + after[d];
    ctx->outputs[0].dims[d] = both == 0 || !tfc_dim_known(n) ? (both == 0 ? n : TFC_DIM_UNKNOWN) : n + sign * both;
    if (tfc_dim_known(n) && ctx->outputs[0].dims[d] < 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "dimension %d of size %lld has paddings of %lld", d, (long long)n,
                             (long long)both);
  }
  return NULL;
}
static tfc_status shape_pad(struct tfc_shape_ctx *ctx) {
  return padded_shape(ctx, 1);
}
static tfc_status shape_unpad(struct tfc_shape_ctx *ctx) {
  return padded_shape(ctx, -1);
}

OPS_GRADIENT(Pad) {
  struct tfc_output paddings = grad_in(g, 1);
  struct tfc_output corner[2] = {grad_op1(g, "Rank", X), tfc_add_i32(g->builder, 1)};
  struct tfc_output zeros = tfc_add_i32_vector(g->builder, (int32_t[]){0, 0}, 2);
  struct tfc_output before = grad_op3(g, "Slice", paddings, zeros, grad_pack(g, corner, 2, 0));
  struct tfc_output begin = g_reshape(g, before, tfc_add_i32_vector(g->builder, (int32_t[]){-1}, 1));
  g->grad_inputs[0] = grad_op3(g, "Slice", G, begin, grad_shape(g, X, g->input_shapes[0], grad_type(g, paddings)));
  return NULL;
}

// --- MirrorPad -------------------------------------------------------------------------------------------------------
struct mirror_state {
  int64_t offset; // 0: the border's own values are repeated (SYMMETRIC), 1: they are not (REFLECT)
};
static tfc_status prepare_mirror(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct mirror_state, state);
  state->offset = tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, "mode", ""), "REFLECT");
  return NULL;
}

// Element i of the padded dimension is a copy of this element of the original dimension, which has n elements.
static int64_t mirrored(int64_t i, int64_t before, int64_t n, int64_t offset) {
  int64_t at = i - before;
  if (at < 0) return -at - 1 + offset;
  return at < n ? at : 2 * n - 1 - at - offset;
}

static tfc_status check_mirror(const struct tfc_shape *inner, const int64_t *before, const int64_t *after,
                               int64_t offset) {
  for (int d = 0; d < inner->rank; d++)
    TFC_KERNEL_CHECK(before[d] <= inner->dims[d] - offset && after[d] <= inner->dims[d] - offset,
                     "paddings must be no greater than the dimension size%s: %lld, %lld greater than %lld",
                     offset ? " less one" : "", (long long)before[d], (long long)after[d],
                     (long long)(inner->dims[d] - offset));
  return NULL;
}

static tfc_status mirror_pad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  int64_t offset = ((const struct mirror_state *)ctx->state)->offset;
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  int64_t before[TFC_MAX_RANK], after[TFC_MAX_RANK], strides[TFC_MAX_RANK];
  TFC_RETURN_IF_ERROR(read_paddings(ctx->inputs[1], shape.rank, before, after));
  TFC_RETURN_IF_ERROR(check_mirror(&x->shape, before, after, offset));
  for (int d = 0; d < shape.rank; d++) shape.dims[d] += before[d] + after[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  tfc_shape_strides(&x->shape, strides);
  int64_t total = tfc_tensor_elements(y), at[TFC_MAX_RANK] = {0};
  for (int64_t i = 0; i < total; i++) {
    int64_t from = 0;
    for (int d = 0; d < shape.rank; d++) from += mirrored(at[d], before[d], x->shape.dims[d], offset) * strides[d];
    TFC_RETURN_IF_ERROR(ops_copy_elements(y, i, x, from, 1));
    for (int d = shape.rank - 1; d >= 0 && ++at[d] == shape.dims[d]; d--) at[d] = 0;
  }
  return NULL;
}

// MirrorPad's gradient: each element of the border is added to the element that it was a copy of.
#define ADD_MIRRORED(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < total; i++) {                                                                              \
      int64_t to = 0;                                                                                                  \
      for (int d = 0; d < x->shape.rank; d++) to += mirrored(at[d], before[d], shape.dims[d], offset) * strides[d];    \
      ops_##t *p = (ops_##t *)y->data + to;                                                                            \
      *p = OPS_PUT_##t((ops_##t##_u)OPS_GET_##t(*p) + (ops_##t##_u)OPS_GET_##t(((const ops_##t *)x->data)[i]));        \
      for (int d = x->shape.rank - 1; d >= 0 && ++at[d] == x->shape.dims[d]; d--) at[d] = 0;                           \
    }                                                                                                                  \
    return NULL;
static tfc_status mirror_pad_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  int64_t offset = ((const struct mirror_state *)ctx->state)->offset;
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  int64_t before[TFC_MAX_RANK], after[TFC_MAX_RANK], strides[TFC_MAX_RANK], at[TFC_MAX_RANK] = {0};
  TFC_RETURN_IF_ERROR(read_paddings(ctx->inputs[1], shape.rank, before, after));
  for (int d = 0; d < shape.rank; d++) {
    shape.dims[d] -= before[d] + after[d];
    TFC_KERNEL_CHECK(shape.dims[d] >= 0, "paddings are larger than dimension %d", d);
  }
  TFC_RETURN_IF_ERROR(check_mirror(&shape, before, after, offset));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  ops_fill_zero(y);
  tfc_shape_strides(&shape, strides);
  int64_t total = tfc_tensor_elements(x);
  switch (x->dtype) {
    OPS_NUMBERS(ADD_MIRRORED, ~)
  default: return ops_unsupported_type(ctx, x->dtype);
  }
}

static tfc_status mirror_gradient(struct tfc_grad_ctx *g, const char *op) {
  const struct tfc_attr *mode = grad_attr(g, "mode");
  struct tfc_attr attr = tfc_attr_string("mode", mode ? mode->s : TFC_STR("REFLECT"));
  g->grad_inputs[0] = tfc_add(g->builder, op, "", (struct tfc_output[]){G, grad_in(g, 1)}, 2, &attr, 1);
  return NULL;
}
OPS_GRADIENT(MirrorPad) {
  return mirror_gradient(g, "MirrorPadGrad");
}
OPS_GRADIENT(MirrorPadGrad) {
  return mirror_gradient(g, "MirrorPad");
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_op_def array_pad_rows[] = {
    {.name = "Pad",
     .role = TFC_ROLE_PAD,
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type, Tpaddings: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_pad,
     .kernel = pad,
     .gradient = gradient_Pad,
     .samples = "float[3,4], int32[2,2]=[1,0,0,2]; int32[2], int32[1,2]=[1,1]"},
    {.name = "PadV2",
     .inputs = "input: T, paddings: Tpaddings, constant_values: T",
     .outputs = "output: T",
     .attrs = "T: type, Tpaddings: {int32, int64} = int32",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_pad,
     .kernel = pad,
     .gradient = gradient_Pad,
     .samples = "float[3,4], int32[2,2]=[1,0,0,2], float[]"},
    {.name = "MirrorPad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type, Tpaddings: {int32, int64} = int32, mode: {'REFLECT', 'SYMMETRIC'}",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .shape = shape_pad,
     .prepare = prepare_mirror,
     .kernel = mirror_pad,
     .gradient = gradient_MirrorPad,
     .samples = "float[3,4], int32[2,2]=[1,0,2,3] {mode='REFLECT'}; float[3], int32[1,2]=[3,2] {mode='SYMMETRIC'}"},
    {.name = "MirrorPadGrad",
     .inputs = "input: T, paddings: Tpaddings",
     .outputs = "output: T",
     .attrs = "T: type, Tpaddings: {int32, int64} = int32, mode: {'REFLECT', 'SYMMETRIC'}",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 2,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_unpad,
     .prepare = prepare_mirror,
     .kernel = mirror_pad_grad,
     .gradient = gradient_MirrorPadGrad,
     .samples = "float[4,9], int32[2,2]=[1,0,2,3] {mode='REFLECT'}"},
};
TFC_REGISTER_OPS(array_pad_rows);
