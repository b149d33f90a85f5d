// Operations that find distinct values or compare sets: Unique, UniqueV2, UniqueWithCounts, UniqueWithCountsV2,
// ListDiff.
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/ops/array_copy.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

// Values are compared as keys: two slices along an axis are equal if all their bytes are. For floats, -0 equals 0 and
// NaN equals nothing.
struct index_types {
  tfc_dtype index;
};
static tfc_status prepare_index_type(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct index_types, state);
  state->index = tfc_node_attr_type(ctx->graph, ctx->node, "out_idx", TFC_INT32);
  return NULL;
}
static void put_int(struct tfc_tensor *t, int64_t i, int64_t v) {
  if (t->dtype == TFC_INT64)
    ((int64_t *)t->data)[i] = v;
  else
    ((int32_t *)t->data)[i] = (int32_t)v;
}

// Writes the key of element `at` to `out`; returns false for a NaN.
#define FLOAT_KEY(t, ...)                                                                                              \
  case OPS_DT_##t: {                                                                                                   \
    ops_##t##_c v = OPS_GET_##t(((const ops_##t *)x->data)[at]);                                                       \
    ops_##t key = v == 0 ? OPS_PUT_##t(0) : ((const ops_##t *)x->data)[at];                                            \
    memcpy(out, &key, sizeof key);                                                                                     \
    return v == v;                                                                                                     \
  }
static bool element_key(const struct tfc_tensor *x, int64_t at, char *out) {
  size_t size = tfc_dtype_size(x->dtype);
  switch (x->dtype) {
    OPS_FLOATS_COMPLEX(FLOAT_KEY, ~)
  default: memcpy(out, (const char *)x->data + (size_t)at * size, size); return true;
  }
}

// Finds the distinct slices over n of x, seen as [outer, n, inner]. first[k] is the first slice equal to distinct slice
// k, index[i] the number of the distinct slice that slice i equals.
static tfc_status find_distinct(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, int64_t outer, int64_t n,
                                int64_t inner, int64_t *first, int64_t *index, int64_t *out_count) {
  struct tfc_strmap map = {0};
  struct tfc_buffer *keys = NULL;
  tfc_status s = NULL;
  size_t size = tfc_dtype_size(x->dtype), width = (size_t)(outer * inner) * size;
  int64_t count = 0;
  bool strings = x->dtype == TFC_STRING;
  size_t room = width * (size_t)n;
  if (strings) { // a string's key begins with its length
    room = (size_t)(outer * n * inner) * sizeof(size_t);
    for (int64_t i = 0; i < outer * n * inner; i++) room += tfc_tensor_get_string(x, i).size;
  }
  TFC_TRY(s, tfc_kernel_scratch(ctx, room + 1, &keys));
  if (!tfc_strmap_reserve(&map, (size_t)n)) TFC_TRY(s, tfc_status_no_memory(NULL));
  char *p = keys->data;
  for (int64_t i = 0; i < n; i++) {
    bool comparable = true, found = false;
    char *q = p;
    for (int64_t o = 0; o < outer; o++)
      for (int64_t k = 0; k < inner; k++) {
        int64_t at = (o * n + i) * inner + k;
        if (!strings) {
          comparable &= element_key(x, at, q);
          q += size;
          continue;
        }
        tfc_str piece = tfc_tensor_get_string(x, at);
        memcpy(q, &piece.size, sizeof piece.size);
        if (piece.size) memcpy(q + sizeof piece.size, piece.data, piece.size);
        q += sizeof piece.size + piece.size;
      }
    tfc_str key = {p, (size_t)(q - p)};
    p = q;
    int64_t which = count;
    if (comparable) {
      uint64_t *place = tfc_strmap_put(&map, key, (uint64_t)count, &found);
      if (!place) TFC_TRY(s, tfc_status_no_memory(NULL));
      which = (int64_t)*place;
    }
    if (!found) first[count++] = i;
    index[i] = which;
  }
  *out_count = count;
out:
  tfc_buffer_release(keys);
  tfc_strmap_deinit(&map);
  return s;
}

// As find_distinct for n integers of 4 or 8 bytes. A table of twice as many places or more has the number of a distinct
// value plus 1; 0: the place is free.
#define FIND_INTEGERS(type)                                                                                            \
  for (int64_t i = 0; i < n; i++) {                                                                                    \
    const type *values = x->data, value = values[i];                                                                   \
    uint64_t at = (uint64_t)value * 0x9e3779b97f4a7c15u >> shift;                                                      \
    while (table[at] && values[first[table[at] - 1]] != value) at = (at + 1) & mask;                                   \
    if (!table[at]) {                                                                                                  \
      first[count++] = i;                                                                                              \
      table[at] = (uint32_t)count;                                                                                     \
    }                                                                                                                  \
    index[i] = table[at] - 1;                                                                                          \
  }
enum { MOST_INTEGERS = 1 << 30 };
static tfc_status find_distinct_integers(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, int64_t n,
                                         int64_t *first, int64_t *index, int64_t *out_count) {
  struct tfc_buffer *held = NULL;
  int64_t count = 0;
  int bits = 4;
  while ((int64_t)1 << bits < 2 * n) bits++;
  const size_t bytes = sizeof(uint32_t) << bits;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, bytes, &held));
  uint32_t *table = held->data;
  const uint64_t mask = ((uint64_t)1 << bits) - 1;
  const int shift = 64 - bits;
  memset(table, 0, bytes);
  if (tfc_dtype_size(x->dtype) == 4) {
    FIND_INTEGERS(uint32_t)
  } else {
    FIND_INTEGERS(uint64_t)
  }
  *out_count = count;
  tfc_buffer_release(held);
  return NULL;
}

static tfc_status unique_along(struct tfc_kernel_ctx *ctx, bool has_axis, bool with_counts) {
  const struct tfc_tensor *x = ctx->inputs[0];
  tfc_dtype index_type = ((const struct index_types *)ctx->state)->index;
  struct tfc_tensor *y = NULL, *idx = NULL, *counts = NULL;
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int axis = 0;
  if (has_axis && tfc_tensor_elements(ctx->inputs[1]) > 0) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[1]) == 1,
                     "axis does not support input tensors larger than 1 elements");
    TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 1, "axis expects a 1D vector.");
    TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[1], 0), x->shape.rank, &axis));
  } else {
    TFC_KERNEL_CHECK(x->shape.rank == 1, "unique expects a 1D vector.");
  }
  int64_t outer = 1, inner = 1, n = x->shape.dims[axis], count = 0;
  for (int d = 0; d < axis; d++) outer *= x->shape.dims[d];
  for (int d = axis + 1; d < x->shape.rank; d++) inner *= x->shape.dims[d];
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)n * 16 + 16, &held));
  int64_t *first = held->data, *index = first + n;
  const size_t size = tfc_dtype_size(x->dtype);
  if (tfc_dtype_is_integer(x->dtype) && (size == 4 || size == 8) && outer * inner == 1 && n <= MOST_INTEGERS)
    TFC_TRY(s, find_distinct_integers(ctx, x, n, first, index, &count));
  else
    TFC_TRY(s, find_distinct(ctx, x, outer, n, inner, first, index, &count));
  struct tfc_shape shape = x->shape;
  shape.dims[axis] = count;
  TFC_TRY(s, tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  TFC_TRY(s, tfc_kernel_output(ctx, 1, index_type, &TFC_SHAPE(n), &idx));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < count; k++)
      TFC_TRY(s, ops_copy_elements(y, (o * count + k) * inner, x, (o * n + first[k]) * inner, inner));
  for (int64_t i = 0; i < n; i++) put_int(idx, i, index[i]);
  if (with_counts) {
    TFC_TRY(s, tfc_kernel_output(ctx, 2, index_type, &TFC_SHAPE(count), &counts));
    memset(counts->data, 0, counts->size);
    for (int64_t i = 0; i < n; i++) put_int(counts, index[i], tfc_tensor_int(counts, index[i]) + 1);
  }
out:
  tfc_buffer_release(held);
  return s;
}
static tfc_status unique(struct tfc_kernel_ctx *ctx) {
  return unique_along(ctx, false, false);
}
static tfc_status unique_v2(struct tfc_kernel_ctx *ctx) {
  return unique_along(ctx, true, false);
}
static tfc_status unique_with_counts(struct tfc_kernel_ctx *ctx) {
  return unique_along(ctx, false, true);
}
static tfc_status unique_with_counts_v2(struct tfc_kernel_ctx *ctx) {
  return unique_along(ctx, true, true);
}

static tfc_status shape_unique(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = tfc_shape_unknown_of_rank(1);
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &x));
  ctx->outputs[1] = x;
  if (ctx->node->output_count == 3) ctx->outputs[2] = tfc_shape_unknown_of_rank(1);
  return NULL;
}
static tfc_status shape_unique_v2(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  const struct tfc_tensor *axes = ctx->input_values ? ctx->input_values[1] : NULL;
  ctx->outputs[1] = tfc_shape_unknown_of_rank(1);
  if (ctx->node->output_count == 3) ctx->outputs[2] = tfc_shape_unknown_of_rank(1);
  int axis = 0;
  const struct tfc_shape *given = ctx->inputs[1];
  if (!axes && given->rank == 1 && given->dims[0] == 0)
    ctx->outputs[0] = tfc_shape_unknown_of_rank(1);
  else if (!axes && x->rank >= 0)
    ctx->outputs[0] = tfc_shape_unknown_of_rank(x->rank);
  if (x->rank < 0 || !axes) return NULL;
  if (tfc_tensor_elements(axes) > 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "axis expects a 0D or 1D tensor of 1");
  if (tfc_tensor_elements(axes) == 1)
    TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(axes, 0), x->rank, &axis));
  else if (x->rank != 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "x expects a 1D vector");
  ctx->outputs[0] = *x;
  ctx->outputs[0].dims[axis] = TFC_DIM_UNKNOWN;
  ctx->outputs[1].dims[0] = x->dims[axis];
  return NULL;
}

// Finds the values of x that are not in y, and their positions in x.
static tfc_status list_diff(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *y = ctx->inputs[1];
  tfc_dtype index_type = ((const struct index_types *)ctx->state)->index;
  struct tfc_strmap map = {0};
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *out = NULL, *idx = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 1 && y->shape.rank == 1, "x and y should be 1D vectors.");
  int64_t n = tfc_tensor_elements(x), m = tfc_tensor_elements(y), count = 0;
  size_t size = tfc_dtype_size(x->dtype);
  bool strings = x->dtype == TFC_STRING;
  TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)n * 8 + (size_t)m * size + 64, &held));
  int64_t *kept = held->data;
  char *keys = (char *)(kept + n), one[16];
  for (int64_t i = 0; i < m; i++) {
    tfc_str key = strings ? tfc_tensor_get_string(y, i) : (tfc_str){keys + (size_t)i * size, size};
    if (!key.data) key.data = "";
    if (!strings && !element_key(y, i, keys + (size_t)i * size)) continue;
    if (!tfc_strmap_put(&map, key, 0, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (int64_t i = 0; i < n; i++) {
    tfc_str key = strings ? tfc_tensor_get_string(x, i) : (tfc_str){one, size};
    if (!key.data) key.data = "";
    bool comparable = strings || element_key(x, i, one);
    if (!comparable || !tfc_strmap_get(&map, key)) kept[count++] = i;
  }
  TFC_TRY(s, tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(count), &out));
  TFC_TRY(s, tfc_kernel_output(ctx, 1, index_type, &TFC_SHAPE(count), &idx));
  for (int64_t k = 0; k < count; k++) {
    TFC_TRY(s, ops_copy_elements(out, k, x, kept[k], 1));
    put_int(idx, k, kept[k]);
  }
out:
  tfc_strmap_deinit(&map);
  tfc_buffer_release(held);
  return s;
}
static tfc_status shape_list_diff(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ctx->outputs[1] = tfc_shape_unknown_of_rank(1);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ROW .flags = TFC_OP_NOT_DIFFERENTIABLE, .prepare = prepare_index_type
static const struct tfc_op_def array_unique_rows[] = {
    {.name = "Unique",
     .role = TFC_ROLE_PICKS,
     .inputs = "x: T",
     .outputs = "y: T, idx: out_idx",
     .attrs = "T: type, out_idx: {int32, int64} = int32",
     ROW,
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_unique,
     .kernel = unique,
     .samples = "int32[5]=[3,1,3,3,7]; float[4]"},
    {.name = "UniqueV2",
     .inputs = "x: T, axis: Taxis",
     .outputs = "y: T, idx: out_idx",
     .attrs = "T: type, Taxis: {int32, int64} = int64, out_idx: {int32, int64} = int32",
     ROW,
     .host_inputs = 2,
     .shape = shape_unique_v2,
     .kernel = unique_v2,
     .samples = "int32[3,2]=[3,1,3,1,7,7], int64[1]=[0]; int32[4]=[1,1,2,1], int64[0]=[]"},
    {.name = "UniqueWithCounts",
     .inputs = "x: T",
     .outputs = "y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type, out_idx: {int32, int64} = int32",
     ROW,
     .shape = shape_unique,
     .kernel = unique_with_counts,
     .samples = "int32[5]=[3,1,3,3,7]"},
    {.name = "UniqueWithCountsV2",
     .inputs = "x: T, axis: Taxis",
     .outputs = "y: T, idx: out_idx, count: out_idx",
     .attrs = "T: type, Taxis: {int32, int64} = int64, out_idx: {int32, int64} = int32",
     ROW,
     .host_inputs = 2,
     .shape = shape_unique_v2,
     .kernel = unique_with_counts_v2,
     .samples = "int32[3,2]=[3,1,3,1,7,7], int64[1]=[0]"},
    {.name = "ListDiff",
     .role = TFC_ROLE_PICKS,
     .inputs = "x: T, y: T",
     .outputs = "out: T, idx: out_idx",
     .attrs = "T: type, out_idx: {int32, int64} = int32",
     ROW,
     .shape = shape_list_diff,
     .kernel = list_diff,
     .samples = "int32[5]=[3,1,3,3,7], int32[2]=[3,9]"},
};
TFC_REGISTER_OPS(array_unique_rows);
