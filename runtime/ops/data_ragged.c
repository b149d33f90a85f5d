// Ragged tensors as variants: RaggedTensorToVariant, RaggedTensorFromVariant. A variant holds row splits and values. A
// vector of variants holds the rows of a ragged tensor with one dimension more.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/data_ragged.h"
#include "runtime/ops/splits.h"

static void ragged_destroy(struct tfc_object *object) {
  struct tfc_ragged *r = (struct tfc_ragged *)object;
  for (uint32_t i = 0; i < r->count; i++) tfc_tensor_release(&r->tensors[i]);
  free(r);
}
const struct tfc_object_type tfc_ragged_type = {.name = "ragged tensor", .destroy = ragged_destroy};
tfc_status tfc_ragged_create(uint32_t count, struct tfc_ragged **out) {
  struct tfc_ragged *r = calloc(1, sizeof *r + count * sizeof *r->tensors);
  if (!r) return tfc_status_no_memory(NULL);
  r->object.type = &tfc_ragged_type;
  atomic_store(&r->object.references, 1);
  r->count = count;
  *out = r;
  return NULL;
}

static tfc_status check_splits(const struct tfc_tensor *splits, int64_t rows) {
  TFC_KERNEL_CHECK(splits->shape.rank == 1 && splits->shape.dims[0] >= 1,
                   "row splits must be a vector with an element");
  for (int64_t i = 0, n = splits->shape.dims[0]; i < n; i++) {
    int64_t end = tfc_tensor_int(splits, i), last = i ? tfc_tensor_int(splits, i - 1) : 0;
    TFC_KERNEL_CHECK(end >= last && (i || end == 0) && (i + 1 < n || end == rows),
                     "row splits must rise from 0 to %lld, element %lld is %lld", (long long)rows, (long long)i,
                     (long long)end);
  }
  return NULL;
}
// Copies rows [from, to) of `t` [n, ...].
static tfc_status rows_of(const struct tfc_tensor *t, int64_t from, int64_t to, struct tfc_tensor *out) {
  struct tfc_shape shape = t->shape;
  int64_t width = 1;
  for (int d = 1; d < shape.rank; d++) width *= shape.dims[d];
  shape.dims[0] = to - from;
  TFC_RETURN_IF_ERROR(tfc_tensor_create(t->dtype, &shape, out));
  return ops_copy_elements(out, 0, t, from * width, (to - from) * width);
}

// Makes a ragged tensor of rows [from, to) of the one whose splits and, as last part, values are `parts`.
static tfc_status cut(const struct tfc_tensor *const *parts, uint32_t count, int64_t from, int64_t to,
                      struct tfc_ragged **out) {
  struct tfc_ragged *r = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(tfc_ragged_create(count, &r));
  for (uint32_t i = 0; i + 1 < count; i++) {
    int64_t first = tfc_tensor_int(parts[i], from);
    TFC_TRY(s, tfc_tensor_create(parts[i]->dtype, &TFC_SHAPE(to - from + 1), &r->tensors[i]));
    for (int64_t k = from; k <= to; k++) ops_set_split(&r->tensors[i], k - from, tfc_tensor_int(parts[i], k) - first);
    to = tfc_tensor_int(parts[i], to);
    from = first;
  }
  TFC_TRY(s, rows_of(parts[count - 1], from, to, &r->tensors[count - 1]));
  *out = r;
  return NULL;
out:
  tfc_object_release(&r->object);
  return s;
}
static tfc_status to_variant(struct tfc_kernel_ctx *ctx) {
  uint32_t count = ctx->input_count;
  const struct tfc_tensor *values = ctx->inputs[count - 1];
  struct tfc_tensor made = {0};
  struct tfc_ragged *r = NULL;
  tfc_status s = NULL;
  bool batched = tfc_node_attr_bool(ctx->graph, ctx->node, "batched_input", false);
  for (uint32_t i = 0; i + 1 < count; i++) {
    const struct tfc_tensor *below = ctx->inputs[i + 1];
    TFC_KERNEL_CHECK(below->shape.rank >= 1, "Requires flat_values to have at least one dimension");
    TFC_RETURN_IF_ERROR(check_splits(ctx->inputs[i], i + 2 < count ? below->shape.dims[0] - 1 : values->shape.dims[0]));
  }
  if (!batched) {
    TFC_RETURN_IF_ERROR(tfc_ragged_create(count, &r));
    for (uint32_t i = 0; i < count && !s; i++) s = tfc_data_keep(ctx, ctx->inputs[i], &r->tensors[i]);
    if (s) {
      tfc_object_release(&r->object);
      return s;
    }
    return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &r->object);
  }
  TFC_KERNEL_CHECK(values->shape.rank >= 1, "batched_input needs a dimension to take rows from");
  int64_t rows = count > 1 ? ctx->inputs[0]->shape.dims[0] - 1 : values->shape.dims[0];
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_VARIANT, &TFC_SHAPE(rows), &made));
  for (int64_t i = 0; i < rows; i++) {
    if (count > 1) {
      TFC_TRY(s, cut(ctx->inputs + 1, count - 1, tfc_tensor_int(ctx->inputs[0], i),
                     tfc_tensor_int(ctx->inputs[0], i + 1), &r));
    } else {
      TFC_TRY(s, tfc_ragged_create(1, &r));
      s = tfc_data_row(ctx, values, i, &r->tensors[0]);
      if (s) tfc_object_release(&r->object);
      if (s) goto out;
    }
    ((struct tfc_object **)made.data)[i] = &r->object;
  }
  s = tfc_data_output(ctx, 0, &made);
  made = (struct tfc_tensor){0};
out:
  tfc_tensor_release(&made);
  return s;
}

static tfc_status component(const struct tfc_tensor *encoded, int64_t i, struct tfc_ragged **out) {
  struct tfc_object *o = ((struct tfc_object **)encoded->data)[i];
  TFC_KERNEL_CHECK(o && o->type == &tfc_ragged_type,
                   "Input Variant element at index %lld doesn't hold a RaggedTensorVariant", (long long)i);
  *out = (struct tfc_ragged *)o;
  return NULL;
}
static tfc_status from_variant(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *encoded = ctx->inputs[0];
  uint32_t count = ctx->output_count;
  struct tfc_ragged *r = NULL;
  TFC_KERNEL_CHECK(encoded->dtype == TFC_VARIANT, "the input is no variant");
  if (encoded->shape.rank == 0) {
    TFC_RETURN_IF_ERROR(component(encoded, 0, &r));
    TFC_KERNEL_CHECK(r->count == count,
                     "Encoded input RaggedTensorVariant has ragged_rank=%u.  Expected ragged_rank=%u.", r->count - 1,
                     count - 1);
    for (uint32_t i = 0; i < count; i++) TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, i, &r->tensors[i]));
    return NULL;
  }
  if (encoded->shape.rank != 1)
    return tfc_status_make(TFC_UNIMPLEMENTED, "RaggedTensorFromVariant of rank %d is not supported",
                           encoded->shape.rank);
  int64_t n = encoded->shape.dims[0], total[TFC_MAX_RANK + 1] = {n};
  tfc_dtype split = tfc_node_attr_type(ctx->graph, ctx->node, "Tsplits", TFC_INT64);
  tfc_dtype dtype = tfc_node_attr_type(ctx->graph, ctx->node, "Tvalues", TFC_FLOAT);
  struct tfc_shape shape = TFC_SHAPE(0);
  struct tfc_tensor *y[TFC_MAX_RANK + 1];
  TFC_KERNEL_CHECK(count >= 2 && count <= TFC_MAX_RANK, "output_ragged_rank must be at least 1 and less than %d",
                   TFC_MAX_RANK);
  // Counts the rows at each level: splits 0 has one for each component, splits i one for each row of all components'
  // splits i - 1.
  for (int64_t i = 0; i < n; i++) {
    TFC_RETURN_IF_ERROR(component(encoded, i, &r));
    TFC_KERNEL_CHECK(r->count == count - 1, "component %lld has ragged_rank %u, expected %u", (long long)i,
                     r->count - 1, count - 2);
    const struct tfc_tensor *values = &r->tensors[r->count - 1];
    TFC_KERNEL_CHECK(values->dtype == dtype, "Expected values Tensor dtype: %s, found: %s", tfc_dtype_name(dtype),
                     tfc_dtype_name(values->dtype));
    TFC_KERNEL_CHECK(values->shape.rank >= 1, "component %lld is a scalar", (long long)i);
    for (uint32_t l = 0; l + 1 < r->count; l++) {
      TFC_KERNEL_CHECK(r->tensors[l].dtype == split, "row splits of component %lld have another type", (long long)i);
      total[l + 1] += r->tensors[l].shape.dims[0] - 1;
    }
    struct tfc_shape like = values->shape;
    total[count - 1] += like.dims[0];
    like.dims[0] = shape.dims[0];
    TFC_KERNEL_CHECK(i == 0 || tfc_shape_equal(&like, &shape), "All flat_values must have compatible shapes");
    shape = like;
  }
  for (uint32_t l = 0; l + 1 < count; l++)
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, l, split, &TFC_SHAPE(total[l] + 1), &y[l]));
  shape.dims[0] = total[count - 1];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, count - 1, dtype, &shape, &y[count - 1]));
  // Rows written so far; rows of the next level so far.
  int64_t at[TFC_MAX_RANK + 1] = {0}, below[TFC_MAX_RANK + 1] = {0};
  for (uint32_t l = 0; l + 1 < count; l++) ops_set_split(y[l], 0, 0);
  for (int64_t i = 0, value = 0; i < n; i++) {
    TFC_RETURN_IF_ERROR(component(encoded, i, &r));
    const struct tfc_tensor *values = &r->tensors[r->count - 1];
    below[0] += r->count > 1 ? r->tensors[0].shape.dims[0] - 1 : values->shape.dims[0];
    ops_set_split(y[0], ++at[0], below[0]);
    for (uint32_t l = 0; l + 1 < r->count; l++) {
      int64_t rows = r->tensors[l].shape.dims[0] - 1;
      for (int64_t k = 1; k <= rows; k++)
        ops_set_split(y[l + 1], ++at[l + 1], below[l + 1] + tfc_tensor_int(&r->tensors[l], k));
      below[l + 1] += tfc_tensor_int(&r->tensors[l], rows);
    }
    TFC_RETURN_IF_ERROR(tfc_data_copy(y[count - 1], value, values));
    value += tfc_tensor_elements(values);
  }
  return NULL;
}

// RaggedTensorToVariant's gradient joins the gradients of the components' values. A component without a gradient counts
// as zeros.
static tfc_status to_variant_gradient(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *encoded = ctx->inputs[0], *splits = ctx->inputs[1];
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  int64_t n = tfc_tensor_elements(encoded), at = 0, row = 1;
  TFC_KERNEL_CHECK(encoded->dtype == TFC_VARIANT, "the input is no variant");
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[2], &shape));
  for (int d = 1; d < shape.rank; d++) row *= shape.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &shape, &y));
  int64_t all = tfc_tensor_elements(y);
  memset(y->data, 0, y->size);
  for (int64_t i = 0; i < n; i++) {
    struct tfc_ragged *r = NULL;
    if (((struct tfc_object **)encoded->data)[i]) {
      TFC_RETURN_IF_ERROR(component(encoded, i, &r));
      const struct tfc_tensor *values = &r->tensors[r->count - 1];
      int64_t count = tfc_tensor_elements(values);
      TFC_KERNEL_CHECK(values->dtype == y->dtype && count <= all - at,
                       "component %lld does not fit dense_values_shape %s", (long long)i,
                       tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
      TFC_RETURN_IF_ERROR(tfc_data_copy(y, at, values));
      at += count;
    } else if (splits->shape.rank == 1) {
      TFC_KERNEL_CHECK(i + 1 < splits->shape.dims[0], "row_splits has no row %lld", (long long)i);
      at += (tfc_tensor_int(splits, i + 1) - tfc_tensor_int(splits, i)) * row;
    } else {
      at += row;
    }
    TFC_KERNEL_CHECK(at >= 0 && at <= all, "the components have more values than dense_values_shape %s",
                     tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
  }
  TFC_KERNEL_CHECK(at == all, "the components have %lld values, dense_values_shape %s has %lld", (long long)at,
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}), (long long)all);
  return NULL;
}
static tfc_status shape_to_variant_gradient(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *known = ctx->input_as_shape ? ctx->input_as_shape[2] : NULL;
  ctx->outputs[0] = known ? *known : TFC_SHAPE_UNKNOWN;
  return NULL;
}

static tfc_status shape_to_variant(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *values = ctx->inputs[ctx->node->input_count - 1], *first = ctx->inputs[0];
  if (!tfc_node_attr_bool(ctx->graph, ctx->node, "batched_input", false)) {
    ctx->outputs[0] = TFC_SHAPE_SCALAR;
    return NULL;
  }
  int64_t rows = TFC_DIM_UNKNOWN;
  if (ctx->node->input_count > 1 && first->rank == 1 && first->dims[0] > 0) rows = first->dims[0] - 1;
  if (ctx->node->input_count == 1 && values->rank >= 1) rows = values->dims[0];
  ctx->outputs[0] = TFC_SHAPE(rows);
  return NULL;
}
static tfc_status shape_from_variant(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i + 1 < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  return NULL;
}
static const struct tfc_op_def data_ragged_rows[] = {
    {.name = "RaggedTensorToVariant",
     .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues",
     .outputs = "encoded_ragged: variant",
     .attrs = "RAGGED_RANK: int >= 0, Tvalues: type, Tsplits: {int32, int64} = int64, batched_input: bool",
     .flags = TFC_OP_HOST,
     .shape = shape_to_variant,
     .kernel = to_variant},
    {.name = "RaggedTensorFromVariant",
     .inputs = "encoded_ragged: variant",
     .outputs = "output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
     .attrs = "input_ragged_rank: int >= -1, output_ragged_rank: int >= 0, Tvalues: type, "
              "Tsplits: {int32, int64} = int64",
     .flags = TFC_OP_HOST,
     .shape = shape_from_variant,
     .kernel = from_variant},
    {.name = "RaggedTensorToVariantGradient",
     .inputs = "encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32",
     .outputs = "dense_values_grad: Tvalues",
     .attrs = "Tvalues: type, Tsplits: {int32, int64} = int64",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_NUMBERS),
     .shape = shape_to_variant_gradient,
     .kernel = to_variant_gradient},
};
TFC_REGISTER_OPS(data_ragged_rows);
