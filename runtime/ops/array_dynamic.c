// The operations that sort rows into parts and put them together again: DynamicPartition, DynamicStitch,
// ParallelDynamicStitch.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

static int64_t product(const struct tfc_shape *s, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; d++) n *= s->dims[d];
  return n;
}
static bool is_prefix(const struct tfc_shape *prefix, const struct tfc_shape *s) {
  bool fits = prefix->rank <= s->rank;
  for (int d = 0; fits && d < prefix->rank; d++) fits = prefix->dims[d] == s->dims[d];
  return fits;
}

static tfc_status partition(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *parts = ctx->inputs[1];
  int64_t n = tfc_tensor_elements(parts), inner;
  uint32_t count = ctx->output_count;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(is_prefix(&parts->shape, &x->shape), "data.shape must start with partitions.shape, got %s and %s",
                   tfc_shape_show(&x->shape, a), tfc_shape_show(&parts->shape, b));
  inner = product(&x->shape, parts->shape.rank, x->shape.rank);
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)count * sizeof(int64_t), &held));
  int64_t *filled = held->data;
  memset(filled, 0, (size_t)count * sizeof *filled);
  for (int64_t i = 0; i < n; i++) {
    int64_t p = tfc_tensor_int(parts, i);
    if (p < 0 || p >= count)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "partitions[%lld] = %lld is not in [0, %u)", (long long)i, (long long)p, count);
    filled[p]++;
  }
  struct tfc_shape shape = {.rank = 1};
  for (int d = parts->shape.rank; d < x->shape.rank; d++) shape.dims[shape.rank++] = x->shape.dims[d];
  for (uint32_t p = 0; p < count; p++) {
    struct tfc_tensor *y = NULL;
    shape.dims[0] = filled[p];
    TFC_TRY(s, tfc_kernel_output(ctx, p, x->dtype, &shape, &y));
    filled[p] = 0;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t p = tfc_tensor_int(parts, i);
    TFC_TRY(s, ops_copy_elements(ctx->outputs[p], filled[p]++ * inner, x, i * inner, inner));
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_partition(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0], *p = ctx->inputs[1];
  if (x->rank < 0 || p->rank < 0) return NULL;
  if (p->rank > x->rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "partitions have more dimensions than data");
  struct tfc_shape out = {.rank = 1, .dims = {TFC_DIM_UNKNOWN}};
  for (int d = p->rank; d < x->rank && out.rank < TFC_MAX_RANK; d++) out.dims[out.rank++] = x->dims[d];
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = out;
  return NULL;
}
// The new positions of the rows are a permutation; its inverse brings the gradients back.
OPS_GRADIENT(DynamicPartition) {
  struct tfc_builder *b = g->builder;
  struct tfc_output data = X, parts = grad_in(g, 1);
  uint32_t n = tfc_builder_node(b, g->node)->output_count;
  struct tfc_output shape = grad_shape(g, parts, g->input_shapes[1], TFC_INT32);
  struct tfc_output total = grad_op2(g, "Prod", shape, tfc_add_i32_vector(b, (int32_t[]){0}, 1));
  struct tfc_output rows = grad_op3(g, "Range", tfc_add_i32(b, 0), total, tfc_add_i32(b, 1));
  struct tfc_output numbers = g_reshape(g, rows, shape);
  struct tfc_attr attr = tfc_attr_int("num_partitions", n);
  uint32_t where = tfc_builder_add(b, &(struct tfc_node_spec){.op = "DynamicPartition",
                                                              .inputs = (struct tfc_output[]){numbers, parts},
                                                              .input_count = 2,
                                                              .attrs = &attr,
                                                              .attr_count = 1,
                                                              .colocate_with = TFC_NONE});
  struct tfc_output *in = calloc(2 * (size_t)n, sizeof *in);
  if (!in) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < n; i++) {
    in[i] = (struct tfc_output){where, (int32_t)i};
    in[n + i] = g->grad_outputs[i];
  }
  struct tfc_output back = tfc_add(b, "ParallelDynamicStitch", "", in, 2 * n, NULL, 0);
  free(in);
  g->grad_inputs[0] = g_reshape(g, back, grad_shape(g, data, g->input_shapes[0], TFC_INT32));
  return NULL;
}

static tfc_status stitch(struct tfc_kernel_ctx *ctx) { // if several parts have a row for one index, the last one counts
  uint32_t n = ctx->input_count / 2;
  const struct tfc_tensor *const *indices = ctx->inputs, *const *data = ctx->inputs + n;
  int64_t largest = -1;
  struct tfc_tensor *y = NULL;
  struct tfc_shape tail = {0};
  for (int d = indices[0]->shape.rank; d < data[0]->shape.rank; d++) tail.dims[tail.rank++] = data[0]->shape.dims[d];
  for (uint32_t k = 0; k < n; k++) {
    const struct tfc_shape *ks = &indices[k]->shape, *ds = &data[k]->shape;
    char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
    bool fits = is_prefix(ks, ds) && ds->rank - ks->rank == tail.rank;
    for (int d = 0; fits && d < tail.rank; d++) fits = ds->dims[ks->rank + d] == tail.dims[d];
    TFC_KERNEL_CHECK(fits, "data[%u].shape %s must start with indices[%u].shape %s and end as data[0]'s", k,
                     tfc_shape_show(ds, a), k, tfc_shape_show(ks, b));
    int64_t count = tfc_tensor_elements(indices[k]);
    for (int64_t i = 0; i < count; i++) {
      int64_t v = tfc_tensor_int(indices[k], i);
      TFC_KERNEL_CHECK(v >= 0 && v < INT32_MAX, "indices[%u][%lld] = %lld is out of range", k, (long long)i,
                       (long long)v);
      if (v > largest) largest = v;
    }
  }
  struct tfc_shape shape = {.rank = 1, .dims = {largest + 1}};
  for (int d = 0; d < tail.rank && shape.rank < TFC_MAX_RANK; d++) shape.dims[shape.rank++] = tail.dims[d];
  int64_t inner = product(&tail, 0, tail.rank);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, data[0]->dtype, &shape, &y));
  ops_fill_zero(y); // rows that no index names stay zero
  for (uint32_t k = 0; k < n; k++) {
    int64_t count = tfc_tensor_elements(indices[k]);
    for (int64_t i = 0; i < count; i++)
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, tfc_tensor_int(indices[k], i) * inner, data[k], i * inner, inner));
  }
  return NULL;
}
static tfc_status shape_stitch(struct tfc_shape_ctx *ctx) {
  uint32_t n = ctx->node->input_count / 2;
  struct tfc_shape tail = TFC_SHAPE_UNKNOWN;
  int64_t largest = -1;
  bool all_known = true;
  for (uint32_t k = 0; k < n; k++) {
    const struct tfc_shape *ks = ctx->inputs[k], *ds = ctx->inputs[n + k];
    const struct tfc_tensor *v = ctx->input_values ? ctx->input_values[k] : NULL;
    all_known = all_known && v;
    for (int64_t i = 0; v && i < tfc_tensor_elements(v); i++)
      if (tfc_tensor_int(v, i) > largest) largest = tfc_tensor_int(v, i);
    if (ks->rank < 0 || ds->rank < 0) continue;
    if (ks->rank > ds->rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "indices have more dimensions than data");
    struct tfc_shape own = {0}, merged;
    for (int d = ks->rank; d < ds->rank; d++) own.dims[own.rank++] = ds->dims[d];
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&tail, &own, &merged));
    tail = merged;
  }
  if (tail.rank < 0 || tail.rank == TFC_MAX_RANK) return NULL;
  struct tfc_shape out = {.rank = 1, .dims = {all_known ? largest + 1 : TFC_DIM_UNKNOWN}};
  for (int d = 0; d < tail.rank; d++) out.dims[out.rank++] = tail.dims[d];
  ctx->outputs[0] = out;
  return NULL;
}
OPS_GRADIENT(DynamicStitch) {
  uint32_t n = grad_in_count(g) / 2;
  for (uint32_t k = 0; k < n; k++) {
    struct tfc_output indices = grad_cast(g, grad_in(g, k), TFC_INT32);
    g->grad_inputs[n + k] = grad_op3(g, "GatherV2", G, indices, tfc_add_i32(g->builder, 0));
  }
  return NULL;
}

static const struct tfc_op_def array_dynamic_rows[] = {
    {.name = "DynamicPartition",
     .inputs = "data: T, partitions: int32",
     .outputs = "outputs: num_partitions * T",
     .attrs = "num_partitions: int >= 1, T: type",
     .index_use = TFC_INDEX_PARTITIONS,
     .shape = shape_partition,
     .kernel = partition,
     .gradient = gradient_DynamicPartition,
     .samples = "float[4,2], int32[4]=[1,0,1,1] {num_partitions=2}"},
    {.name = "DynamicStitch",
     .inputs = "indices: N * int32, data: N * T",
     .outputs = "merged: T",
     .attrs = "N: int >= 1, T: type",
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_stitch,
     .kernel = stitch,
     .gradient = gradient_DynamicStitch,
     .samples = "int32[2]=[0,2], int32[1]=[1], float[2,3], float[1,3]"},
    {.name = "ParallelDynamicStitch",
     .inputs = "indices: N * int32, data: N * T",
     .outputs = "merged: T",
     .attrs = "N: int >= 1, T: type",
     .shape = shape_stitch,
     .kernel = stitch,
     .gradient = gradient_DynamicStitch,
     .samples = "int32[2]=[0,2], int32[1]=[1], float[2,3], float[1,3]"},
};
TFC_REGISTER_OPS(array_dynamic_rows);
