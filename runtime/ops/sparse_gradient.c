// The values of a sparse operand have indices [n, rank], and the incoming gradient is dense, so it is gathered at these
// indices. In a dimension along which the dense operand is repeated, indices are divided by the number of repetitions.
#include "runtime/ops/sparse_gradient.h"
#include "runtime/ops/gradient.h"

static struct tfc_output int64_of(const struct tfc_grad_ctx *g, struct tfc_output x) {
  return grad_cast(g, x, TFC_INT64);
}

tfc_status ops_grad_sparse_reduce_sum(struct tfc_grad_ctx *g) {
  struct tfc_builder *b = g->builder;
  struct tfc_output dims = grad_in(g, 2), axes = grad_in(g, 3), zero = tfc_add_i32(b, 0), one = tfc_add_i32(b, 1);
  struct tfc_output rank = grad_op1(g, "Size", dims), places = grad_op3(g, "Range", zero, rank, one);
  axes = grad_op2(g, "FloorMod", g_add(g, axes, rank), rank);
  struct tfc_output ones = int64_of(g, grad_op1(g, "OnesLike", axes));
  struct tfc_output parts[4] = {places, axes, dims, ones};
  // Dims, with 1 for each dimension that is summed.
  struct tfc_output kept = tfc_add(b, "DynamicStitch", "", parts, 4, NULL, 0);
  struct tfc_output own = grad_op2(g, "FloorDiv", X, grad_op2(g, "FloorDiv", dims, kept));
  g->grad_inputs[1] = grad_op2(g, "GatherNd", g_reshape(g, G, kept), own);
  return NULL;
}

tfc_status ops_grad_sparse_softmax(struct tfc_grad_ctx *g) {
  struct tfc_output dims = grad_in(g, 2), y = Y;
  struct tfc_attr keep = tfc_attr_bool("keep_dims", true);
  struct tfc_output in[4] = {X, g_mul(g, y, G), dims, tfc_add_i32_vector(g->builder, (int32_t[]){-1}, 1)};
  struct tfc_output sums = g_neg(g, tfc_add(g->builder, "SparseReduceSum", "", in, 4, &keep, 1));
  struct tfc_output add[4] = {X, G, dims, sums};
  g->grad_inputs[1] = g_mul(g, tfc_add(g->builder, "SparseDenseCwiseAdd", "", add, 4, NULL, 0), y);
  return NULL;
}

static tfc_status sparse_dense(struct tfc_grad_ctx *g, bool divided) {
  struct tfc_builder *b = g->builder;
  struct tfc_output at = X, x = grad_in(g, 1), dims = grad_in(g, 2), y = grad_in(g, 3), zero = tfc_add_i32(b, 0);
  struct tfc_output shape = int64_of(g, grad_op1(g, "Shape", y));
  struct tfc_output more = g_sub(g, grad_op1(g, "Size", dims), grad_op1(g, "Size", shape));
  more = grad_op2(g, "ExpandDims", more, zero); // how many dimensions the dense operand lacks
  struct tfc_output padded[2] = {grad_op2(g, "Fill", more, tfc_add_scalar(b, TFC_INT64, 1)), shape};
  struct tfc_output times = grad_op2(g, "FloorDiv", dims, grad_concat(g, padded, 2, zero));
  struct tfc_output begin[2] = {tfc_add_i32_vector(b, (int32_t[]){0}, 1), more};
  struct tfc_output own = grad_op3(g, "Slice", grad_op2(g, "FloorDiv", at, times), grad_concat(g, begin, 2, zero),
                                   tfc_add_i32_vector(b, (int32_t[]){-1, -1}, 2));
  struct tfc_output dense = grad_op2(g, "GatherNd", y, own), dy;
  if (divided) {
    g->grad_inputs[1] = g_div(g, G, dense);
    dy = g_mul(g, G, g_div(g, g_neg(g, x), grad_op1(g, "Square", dense)));
  } else {
    g->grad_inputs[1] = g_mul(g, G, dense);
    dy = g_mul(g, G, x);
  }
  g->grad_inputs[3] = grad_op3(g, "ScatterNd", own, dy, shape); // gradients for the same element are summed
  return NULL;
}
tfc_status ops_grad_sparse_dense_mul(struct tfc_grad_ctx *g) {
  return sparse_dense(g, false);
}
tfc_status ops_grad_sparse_dense_div(struct tfc_grad_ctx *g) {
  return sparse_dense(g, true);
}

// --- Gradients of ragged ops -----------------------------------------------------------------------------------------
// 0, 1, ... for the rows of `values`
static struct tfc_output row_numbers(const struct tfc_grad_ctx *g, struct tfc_output values) {
  struct tfc_builder *b = g->builder;
  struct tfc_output rows = grad_item(g, grad_op1(g, "Shape", values), 0);
  return grad_op3(g, "Range", tfc_add_i32(b, 0), rows, tfc_add_i32(b, 1));
}
static struct tfc_output rows_where(const struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output mask) {
  return grad_op2(g, "GatherNd", x, grad_op1(g, "Where", mask));
}

// Converting the numbers of the rows in the same way shows where each element came from; -1 is the default value.
tfc_status ops_grad_ragged_to_tensor(struct tfc_grad_ctx *g) {
  struct tfc_builder *b = g->builder;
  uint32_t count = grad_in_count(g);
  struct tfc_attr types = grad_copied_attr(g, "row_partition_types");
  struct tfc_output values = grad_in(g, 1), otherwise = grad_in(g, 2), in[TFC_MAX_RANK + 8];
  if (count > sizeof in / sizeof *in) return tfc_status_make(TFC_UNIMPLEMENTED, "too many row partitions");
  int64_t ragged = 0;
  for (uint32_t i = 0; i < types.count; i++) ragged += !tfc_str_is(types.strings[i], "FIRST_DIM_SIZE");
  in[0] = grad_range(g, grad_op1(g, "Shape", G), 0, 1 + ragged);
  in[1] = row_numbers(g, values);
  in[2] = tfc_add_i32(b, -1);
  for (uint32_t i = 3; i < count; i++) in[i] = grad_in(g, i);
  struct tfc_output from = tfc_add(b, "RaggedTensorToTensor", "", in, count, &types, 1);
  struct tfc_output mask = grad_op2(g, "NotEqual", from, tfc_add_i32(b, -1));
  grad_set_indexed(g, 1, rows_where(g, G, mask), rows_where(g, from, mask), grad_op1(g, "Shape", values));
  // The remaining gradients go to the default value, summed over the dimensions along which it was repeated.
  struct tfc_output rest = rows_where(g, G, grad_op1(g, "LogicalNot", mask)), shape = grad_op1(g, "Shape", otherwise);
  struct tfc_output ones = grad_cast(g, grad_op2(g, "Equal", shape, tfc_add_i32(b, 1)), TFC_INT32);
  struct tfc_output leading = grad_op2(g, "Cumprod", ones, tfc_add_i32(b, 0));
  struct tfc_output own = g_sub(g, grad_op1(g, "Rank", otherwise), grad_sum(g, leading, tfc_add_i32(b, 0), false));
  struct tfc_output summed = g_sub(g, grad_op1(g, "Rank", rest), own);
  struct tfc_output axes = grad_op3(g, "Range", tfc_add_i32(b, 0), summed, tfc_add_i32(b, 1));
  g->grad_inputs[2] = g_reshape(g, grad_sum(g, rest, axes, false), shape);
  return NULL;
}

tfc_status ops_grad_ragged_gather(struct tfc_grad_ctx *g) {
  uint32_t count = grad_in_count(g);
  struct tfc_output values = grad_in(g, count - 2), in[TFC_MAX_RANK + 8];
  if (count > sizeof in / sizeof *in) return tfc_status_make(TFC_UNIMPLEMENTED, "too many row splits");
  for (uint32_t i = 0; i < count; i++) in[i] = i == count - 2 ? row_numbers(g, values) : grad_in(g, i);
  struct tfc_attr rank = grad_copied_attr(g, "OUTPUT_RAGGED_RANK");
  struct tfc_output from = tfc_add(g->builder, "RaggedGather", "", in, count, &rank, 1);
  int last = (int)tfc_builder_node(g->builder, g->node)->output_count - 1;
  from.index = last;
  grad_set_indexed(g, count - 2, g->grad_outputs[last], from, grad_op1(g, "Shape", values));
  return NULL;
}

tfc_status ops_grad_ragged_to_sparse(struct tfc_grad_ctx *g) {
  const uint32_t values = grad_in_count(g) - 1;
  g->grad_inputs[values] = g_reshape(g, g->grad_outputs[1], grad_op1(g, "Shape", grad_in(g, values)));
  return NULL;
}
