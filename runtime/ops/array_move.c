// The operations that reorder or repeat elements: Transpose, Tile, ReverseV2, ReverseSequence, Roll.
#include <complex.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// --- Transpose -----------------------------------------------------------------------------------------------------
static tfc_status read_permutation(const struct tfc_tensor *perm, int rank, int *out) {
  bool seen[TFC_MAX_RANK] = {0};
  TFC_KERNEL_CHECK(perm->shape.rank == 1 && tfc_tensor_elements(perm) == rank,
                   "transpose expects a vector of size %d. But input(1) is a vector of size %lld", rank,
                   (long long)tfc_tensor_elements(perm));
  for (int i = 0; i < rank; i++) {
    int64_t d = tfc_tensor_int(perm, i);
    if (d < 0) d += rank;
    TFC_KERNEL_CHECK(d >= 0 && d < rank, "%lld is out of range [0 .. %d)", (long long)tfc_tensor_int(perm, i), rank);
    TFC_KERNEL_CHECK(!seen[d], "%lld is missing from {%d dimensions}: the permutation repeats one", (long long)d, rank);
    seen[d] = true;
    out[i] = (int)d;
  }
  return NULL;
}

static tfc_status transpose_to(struct tfc_kernel_ctx *ctx, bool conjugate) {
  const struct tfc_tensor *x = ctx->inputs[0];
  int perm[TFC_MAX_RANK];
  struct tfc_tensor *y = NULL;
  struct ops_block block = {.rank = x->shape.rank};
  struct tfc_shape shape = {.rank = x->shape.rank};
  int64_t strides[TFC_MAX_RANK];
  TFC_RETURN_IF_ERROR(read_permutation(ctx->inputs[1], shape.rank, perm));
  tfc_shape_strides(&x->shape, strides);
  for (int d = 0; d < shape.rank; d++) {
    block.dims[d] = shape.dims[d] = x->shape.dims[perm[d]];
    block.src_strides[d] = strides[perm[d]];
  }
  tfc_shape_strides(&shape, block.dst_strides);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  TFC_RETURN_IF_ERROR(ops_copy_block(ctx, y, x, &block));
  int64_t n = tfc_tensor_elements(y);
  if (conjugate && x->dtype == TFC_COMPLEX64)
    for (int64_t i = 0; i < n; i++) ((float _Complex *)y->data)[i] = conjf(((float _Complex *)y->data)[i]);
  if (conjugate && x->dtype == TFC_COMPLEX128)
    for (int64_t i = 0; i < n; i++) ((double _Complex *)y->data)[i] = conj(((double _Complex *)y->data)[i]);
  return NULL;
}
static tfc_status transpose(struct tfc_kernel_ctx *ctx) {
  return transpose_to(ctx, false);
}
static tfc_status conjugate_transpose(struct tfc_kernel_ctx *ctx) {
  return transpose_to(ctx, true);
}

static tfc_status shape_transpose(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  int64_t perm[TFC_MAX_RANK];
  int n, rank = x->rank;
  bool known = ctx->input_values && ctx->input_values[1] && ops_known_ints(ctx, 1, perm, TFC_MAX_RANK, &n);
  if (rank < 0 && known) rank = n;
  if (rank < 0 && ctx->inputs[1]->rank == 1 && tfc_dim_known(ctx->inputs[1]->dims[0]))
    rank = (int)ctx->inputs[1]->dims[0];
  if (rank < 0 || rank > TFC_MAX_RANK) return NULL;
  ctx->outputs[0] = tfc_shape_unknown_of_rank(rank);
  if (rank < 2) ctx->outputs[0] = x->rank < 0 ? ctx->outputs[0] : *x;
  if (!known || x->rank < 0) return NULL;
  if (n != rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "a permutation of %d for rank %d", n, rank);
  for (int d = 0; d < rank; d++) {
    int axis;
    TFC_RETURN_IF_ERROR(ops_axis(perm[d], rank, &axis));
    ctx->outputs[0].dims[d] = x->dims[axis];
  }
  return NULL;
}
OPS_GRADIENT(Transpose) {
  g->grad_inputs[0] = grad_op2(g, "Transpose", G, grad_op1(g, "InvertPermutation", grad_in(g, 1)));
  return NULL;
}
OPS_GRADIENT(ConjugateTranspose) {
  g->grad_inputs[0] = grad_op2(g, "ConjugateTranspose", G, grad_op1(g, "InvertPermutation", grad_in(g, 1)));
  return NULL;
}

static tfc_status invert_permutation(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 1, "invert_permutation expects a 1D vector.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &x->shape, &y));
  int64_t n = tfc_tensor_elements(x);
  if (y->data == x->data) return tfc_status_make(TFC_INTERNAL, "InvertPermutation cannot run in place");
  memset(y->data, 0xFF, y->size);
  for (int64_t i = 0; i < n; i++) {
    int64_t d = tfc_tensor_int(x, i);
    TFC_KERNEL_CHECK(d >= 0 && d < n, "%lld is not between 0 and %lld", (long long)d, (long long)n);
    TFC_KERNEL_CHECK(tfc_tensor_int(y, d) == -1, "%lld is duplicated in the input.", (long long)d);
    if (y->dtype == TFC_INT64)
      ((int64_t *)y->data)[d] = i;
    else
      ((int32_t *)y->data)[d] = (int32_t)i;
  }
  return NULL;
}
static tfc_status shape_vector(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, 1, &ctx->outputs[0]);
}

// --- Tile ----------------------------------------------------------------------------------------------------------
static tfc_status tile(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *multiples = ctx->inputs[1];
  struct tfc_shape shape = x->shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(multiples->shape.rank == 1 && tfc_tensor_elements(multiples) == x->shape.rank,
                   "Expected multiples argument to be a vector of length %d but got length %lld", x->shape.rank,
                   (long long)tfc_tensor_elements(multiples));
  int64_t times[TFC_MAX_RANK], from[TFC_MAX_RANK], to[TFC_MAX_RANK];
  bool same = true;
  for (int d = 0; d < shape.rank; d++) {
    times[d] = tfc_tensor_int(multiples, d);
    TFC_KERNEL_CHECK(times[d] >= 0, "Expected multiples[%d] >= 0, but got %lld", d, (long long)times[d]);
    TFC_KERNEL_CHECK(!__builtin_mul_overflow(shape.dims[d], times[d], &shape.dims[d]), "the result is too large");
    same = same && times[d] == 1;
  }
  if (same) return tfc_kernel_set_output(ctx, 0, x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  tfc_shape_strides(&x->shape, from);
  tfc_shape_strides(&shape, to);
  // For each dimension the block has [times, n]; the source's stride over the copies (times) is 0. Neighbouring
  // dimensions that form one run are joined, so that the block has as few dimensions as possible.
  struct ops_block block = {0};
  for (int d = 0; d < shape.rank; d++) {
    int64_t n = x->shape.dims[d];
    if (times[d] != 1) {
      if (block.rank == TFC_MAX_RANK + 2)
        return tfc_status_make(TFC_UNIMPLEMENTED, "tiling a tensor of %d dimensions", shape.rank);
      block.dims[block.rank] = times[d];
      block.src_strides[block.rank] = 0;
      block.dst_strides[block.rank++] = n * to[d];
    }
    if (n == 1) continue;
    int last = block.rank - 1;
    if (last >= 0 && block.src_strides[last] == n * from[d] && block.dst_strides[last] == n * to[d]) {
      block.dims[last] *= n;
      block.src_strides[last] = from[d];
      block.dst_strides[last] = to[d];
      continue;
    }
    if (block.rank == TFC_MAX_RANK + 2)
      return tfc_status_make(TFC_UNIMPLEMENTED, "tiling a tensor of %d dimensions", shape.rank);
    block.dims[block.rank] = n;
    block.src_strides[block.rank] = from[d];
    block.dst_strides[block.rank++] = to[d];
  }
  return ops_copy_block(ctx, y, x, &block);
}
static tfc_status shape_tile(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  struct tfc_shape times = ops_described_shape(ctx, 1);
  int rank = x->rank >= 0 ? x->rank : times.rank;
  if (rank < 0) return NULL;
  if (times.rank >= 0 && times.rank != rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%d multiples for rank %d", times.rank, rank);
  struct tfc_shape out = tfc_shape_unknown_of_rank(rank);
  for (int d = 0; d < rank && times.rank == rank; d++)
    if (times.dims[d] == 0) out.dims[d] = 0;
  for (int d = 0; d < rank && x->rank >= 0 && times.rank >= 0; d++) {
    if (times.dims[d] == 1)
      out.dims[d] = x->dims[d];
    else if (tfc_dim_known(x->dims[d]) && tfc_dim_known(times.dims[d]))
      out.dims[d] = x->dims[d] * times.dims[d];
    else if (x->dims[d] == 1)
      out.dims[d] = times.dims[d];
    else if (x->dims[d] == 0 || times.dims[d] == 0)
      out.dims[d] = 0;
  }
  ctx->outputs[0] = out;
  return NULL;
}
OPS_GRADIENT(Tile) { // each dimension becomes [copies, size], and the copies are summed
  struct tfc_output multiples = grad_in(g, 1);
  tfc_dtype type = grad_type(g, multiples);
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], type);
  struct tfc_output pairs = grad_pack(g, (struct tfc_output[]){multiples, shape}, 2, 1); // [rank, 2]
  struct tfc_output split = g_reshape(g, pairs, tfc_add_i32_vector(g->builder, (int32_t[]){-1}, 1));
  struct tfc_output axes =
      grad_op3(g, "Range", tfc_add_i32(g->builder, 0), grad_op1(g, "Size", split), tfc_add_i32(g->builder, 2));
  g->grad_inputs[0] = g_reshape(g, grad_sum(g, g_reshape(g, G, split), axes, false), shape);
  return NULL;
}

// --- Reverse, Roll -------------------------------------------------------------------------------------------------
static tfc_status reverse_dims(struct tfc_kernel_ctx *ctx, const bool *reversed) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct ops_block block = {.rank = x->shape.rank};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &x->shape, &y));
  tfc_shape_strides(&x->shape, block.dst_strides);
  for (int d = 0; d < x->shape.rank; d++) {
    block.dims[d] = x->shape.dims[d];
    block.src_strides[d] = reversed[d] ? -block.dst_strides[d] : block.dst_strides[d];
    if (reversed[d]) block.src_at += (x->shape.dims[d] - 1) * block.dst_strides[d];
  }
  return ops_copy_block(ctx, y, x, &block);
}
static tfc_status reverse_v2(struct tfc_kernel_ctx *ctx) {
  bool reversed[TFC_MAX_RANK] = {0};
  int64_t n = tfc_tensor_elements(ctx->inputs[1]);
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 1, "'dims' must be 1-dimension, not %d", ctx->inputs[1]->shape.rank);
  for (int64_t i = 0; i < n; i++) {
    int axis;
    TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[1], i), ctx->inputs[0]->shape.rank, &axis));
    TFC_KERNEL_CHECK(!reversed[axis], "axis %d specified more than once.", axis);
    reversed[axis] = true;
  }
  return reverse_dims(ctx, reversed);
}
OPS_GRADIENT(ReverseV2) {
  g->grad_inputs[0] = grad_op2(g, "ReverseV2", G, grad_in(g, 1));
  return NULL;
}
static tfc_status reverse_v1(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *dims = ctx->inputs[1];
  TFC_KERNEL_CHECK(dims->dtype == TFC_BOOL && tfc_tensor_elements(dims) == ctx->inputs[0]->shape.rank,
                   "'dims' must have a value for each of %d dimensions", ctx->inputs[0]->shape.rank);
  return reverse_dims(ctx, dims->data);
}
OPS_GRADIENT(Reverse) {
  g->grad_inputs[0] = grad_op2(g, "Reverse", G, grad_in(g, 1));
  return NULL;
}

struct sequence_state {
  int64_t seq_dim, batch_dim;
};
static tfc_status prepare_sequence(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct sequence_state, state);
  state->seq_dim = tfc_node_attr_int(ctx->graph, ctx->node, "seq_dim", 0);
  state->batch_dim = tfc_node_attr_int(ctx->graph, ctx->node, "batch_dim", 0);
  return NULL;
}
static tfc_status reverse_sequence(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *lengths = ctx->inputs[1];
  const struct sequence_state *state = ctx->state;
  struct tfc_tensor *y = NULL;
  int rank = x->shape.rank, seq, batch;
  TFC_KERNEL_CHECK(state->seq_dim >= 0, "Invalid seq_dim %lld", (long long)state->seq_dim);
  TFC_KERNEL_CHECK(state->batch_dim >= 0, "Invalid batch_dim %lld", (long long)state->batch_dim);
  TFC_RETURN_IF_ERROR(ops_axis(state->seq_dim, rank, &seq));
  TFC_RETURN_IF_ERROR(ops_axis(state->batch_dim, rank, &batch));
  TFC_KERNEL_CHECK(seq != batch, "batch_dim == seq_dim == %d", seq);
  int64_t batches = x->shape.dims[batch], steps = x->shape.dims[seq];
  TFC_KERNEL_CHECK(lengths->shape.rank == 1 && tfc_tensor_elements(lengths) == batches,
                   "Length of seq_lens != input.dims(%d), (%lld vs. %lld)", batch,
                   (long long)tfc_tensor_elements(lengths), (long long)batches);
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  int64_t strides[TFC_MAX_RANK];
  tfc_shape_strides(&x->shape, strides);
  for (int64_t b = 0; b < batches; b++) {
    int64_t n = tfc_tensor_int(lengths, b);
    TFC_KERNEL_CHECK(n >= 0 && n <= steps, "seq_lens(%lld) is %lld, not between 0 and %lld", (long long)b, (long long)n,
                     (long long)steps);
    for (int part = 0; part < 2; part++) { // part 0: the reversed beginning; part 1: the rest, unchanged
      struct ops_block block = {.rank = rank};
      block.src_at = block.dst_at = b * strides[batch];
      for (int d = 0; d < rank; d++) {
        block.dims[d] = d == batch ? 1 : d == seq ? (part == 0 ? n : steps - n) : x->shape.dims[d];
        block.dst_strides[d] = strides[d];
        block.src_strides[d] = d == seq && part == 0 ? -strides[d] : strides[d];
      }
      if (part == 0) {
        block.src_at += (n - 1) * strides[seq];
      } else {
        block.src_at += n * strides[seq];
        block.dst_at += n * strides[seq];
      }
      if (block.dims[seq] > 0) TFC_RETURN_IF_ERROR(ops_copy_block(ctx, y, x, &block));
    }
  }
  return NULL;
}
static tfc_status shape_reverse_sequence(struct tfc_shape_ctx *ctx) {
  struct tfc_shape lengths;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &lengths));
  ctx->outputs[0] = *ctx->inputs[0];
  int64_t batch = tfc_node_attr_int(ctx->graph, ctx->node, "batch_dim", 0), merged;
  if (ctx->inputs[0]->rank < 0) return NULL;
  int axis;
  TFC_RETURN_IF_ERROR(ops_axis(batch, ctx->inputs[0]->rank, &axis));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(ctx->outputs[0].dims[axis], lengths.dims[0], &merged));
  ctx->outputs[0].dims[axis] = merged;
  return NULL;
}
OPS_GRADIENT(ReverseSequence) {
  struct tfc_attr attrs[2] = {tfc_attr_int("seq_dim", grad_attr_int(g, "seq_dim", 0)),
                              tfc_attr_int("batch_dim", grad_attr_int(g, "batch_dim", 0))};
  g->grad_inputs[0] = tfc_add(g->builder, "ReverseSequence", "", (struct tfc_output[]){G, grad_in(g, 1)}, 2, attrs, 2);
  return NULL;
}

static tfc_status roll(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *shifts = ctx->inputs[1], *axes = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  int rank = x->shape.rank;
  int64_t by[TFC_MAX_RANK] = {0}, n = tfc_tensor_elements(shifts);
  TFC_KERNEL_CHECK(rank >= 1, "input must be 1-D or higher");
  TFC_KERNEL_CHECK(shifts->shape.rank <= 1 && tfc_shape_equal(&shifts->shape, &axes->shape),
                   "shift and axis must be scalars or vectors of the same length");
  for (int64_t i = 0; i < n; i++) {
    int axis;
    TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(axes, i), rank, &axis));
    int64_t size = x->shape.dims[axis] > 0 ? x->shape.dims[axis] : 1;
    by[axis] = ((by[axis] + tfc_tensor_int(shifts, i) % size) % size + size) % size;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &x->shape, &y));
  int64_t strides[TFC_MAX_RANK];
  tfc_shape_strides(&x->shape, strides);
  // A rolled dimension consists of two runs, and each combination of runs is one block.
  int rolled[TFC_MAX_RANK], count = 0;
  for (int d = 0; d < rank; d++)
    if (by[d]) rolled[count++] = d;
  for (unsigned choice = 0; choice < 1u << count; choice++) {
    struct ops_block block = {.rank = rank};
    for (int d = 0; d < rank; d++) {
      block.dims[d] = x->shape.dims[d];
      block.dst_strides[d] = block.src_strides[d] = strides[d];
    }
    for (int k = 0; k < count; k++) {
      int d = rolled[k];
      int64_t size = x->shape.dims[d];
      bool wrapped = choice >> k & 1; // true: the run of the last by[d] elements, which come first in y
      block.dims[d] = wrapped ? by[d] : size - by[d];
      block.src_at += wrapped ? (size - by[d]) * strides[d] : 0;
      block.dst_at += wrapped ? 0 : by[d] * strides[d];
    }
    TFC_RETURN_IF_ERROR(ops_copy_block(ctx, y, x, &block));
  }
  return NULL;
}
OPS_GRADIENT(Roll) {
  g->grad_inputs[0] = grad_op3(g, "Roll", G, g_neg(g, grad_in(g, 1)), grad_in(g, 2));
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
static const struct tfc_op_def array_move_rows[] = {
    {.name = "Transpose",
     .plan_trait = TFC_PLAN_TRANSPOSE,
     .inputs = "x: T, perm: Tperm",
     .outputs = "y: T",
     .attrs = "T: type, Tperm: {int32, int64} = int32",
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_transpose,
     .kernel = transpose,
     .gradient = gradient_Transpose,
     .samples = "float[3,4], int32[2]=[1,0]; float[2,3,4], int32[3]=[2,0,1]; int32[3], int32[1]=[0]"},
    {.name = "ConjugateTranspose",
     .inputs = "x: T, perm: Tperm",
     .outputs = "y: T",
     .attrs = "T: type, Tperm: {int32, int64} = int32",
     .host_inputs = 2,
     .shape = shape_transpose,
     .kernel = conjugate_transpose,
     .gradient = gradient_ConjugateTranspose,
     .samples = "complex64[3,4], int32[2]=[1,0]"},
    {.name = "InvertPermutation",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {int32, int64} = int32",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 1,
     .shape = shape_vector,
     .kernel = invert_permutation,
     .samples = "int32[3]=[2,0,1]"},
    {.name = "Tile",
     .role = TFC_ROLE_REPEATS,
     .inputs = "input: T, multiples: Tmultiples",
     .outputs = "output: T",
     .attrs = "T: type, Tmultiples: {int32, int64} = int32",
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_tile,
     .kernel = tile,
     .gradient = gradient_Tile,
     .samples = "float[3,4], int32[2]=[2,1]; float[2], int32[1]=[3]; int32[2,2], int32[2]=[0,1]"},
    {.name = "ReverseV2",
     .inputs = "tensor: T, axis: Tidx",
     .outputs = "output: T",
     .attrs = "Tidx: {int32, int64} = int32, T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, "
              "bfloat16, half, float, double, complex64, complex128, string}",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = ops_shape_same,
     .kernel = reverse_v2,
     .gradient = gradient_ReverseV2,
     .samples = "float[3,4], int32[1]=[1]; int32[5], int32[1]=[-1]"},
    {.name = "Reverse",
     .inputs = "tensor: T, dims: bool",
     .outputs = "output: T",
     .attrs = "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, "
              "complex64, complex128, string}",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = ops_shape_same,
     .kernel = reverse_v1,
     .gradient = gradient_Reverse,
     .samples = "float[3,4], bool[2]"},
    {.name = "ReverseSequence",
     .inputs = "input: T, seq_lengths: Tlen",
     .outputs = "output: T",
     .attrs = "seq_dim: int, batch_dim: int = 0, T: type, Tlen: {int32, int64} = int64",
     .host = {"T", TFC_INT32_BIT},
     .index_use = TFC_INDEX_LENGTHS,
     .host_inputs = 2,
     .shape = shape_reverse_sequence,
     .prepare = prepare_sequence,
     .kernel = reverse_sequence,
     .gradient = gradient_ReverseSequence,
     .samples = "float[3,4,2], int32[3]=[1,4,0] {seq_dim=1}"},
    {.name = "Roll",
     .inputs = "input: T, shift: Tshift, axis: Taxis",
     .outputs = "output: T",
     .attrs = "T: type, Tshift: {int32, int64}, Taxis: {int32, int64}",
     .host_inputs = 6,
     .shape = ops_shape_same,
     .kernel = roll,
     .gradient = gradient_Roll,
     .samples = "float[3,4], int32[2]=[1,-2], int32[2]=[0,1]"},
};
TFC_REGISTER_OPS(array_move_rows);
