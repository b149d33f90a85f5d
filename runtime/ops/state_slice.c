// Operations that assign to a strided slice of a variable: var[begin:end:strides] = value, with TensorFlow's masks.
#include "runtime/ops/state_common.h"

struct slice_state {
  int64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
};
static tfc_status slice_prepare(struct tfc_prepare_ctx *ctx) {
  struct slice_state *s = TFC_ARENA_NEW(ctx->arena, struct slice_state);
  if (!s) return tfc_status_no_memory(NULL);
  s->begin_mask = tfc_node_attr_int(ctx->graph, ctx->node, "begin_mask", 0);
  s->end_mask = tfc_node_attr_int(ctx->graph, ctx->node, "end_mask", 0);
  s->ellipsis_mask = tfc_node_attr_int(ctx->graph, ctx->node, "ellipsis_mask", 0);
  s->new_axis_mask = tfc_node_attr_int(ctx->graph, ctx->node, "new_axis_mask", 0);
  s->shrink_axis_mask = tfc_node_attr_int(ctx->graph, ctx->node, "shrink_axis_mask", 0);
  ctx->state = s;
  return NULL;
}

// The elements of the slice along one dimension of the variable: `count` elements from `first` on, `stride` apart.
struct run {
  int64_t first, stride, count;
};

// Applies entry `entry` of the slice's description to a dimension of `size` elements.
static tfc_status resolve(const struct slice_state *s, int entry, int64_t begin, int64_t end, int64_t stride,
                          int64_t size, struct run *out) {
  TFC_KERNEL_CHECK(stride != 0, "strides[%d] must be non-zero", entry);
  int64_t bit = (int64_t)1 << entry;
  if (s->shrink_axis_mask & bit) {
    int64_t at = begin < 0 ? begin + size : begin;
    TFC_KERNEL_CHECK(at >= 0 && at < size, "slice index %lld of dimension %d out of bounds", (long long)begin, entry);
    *out = (struct run){at, 1, 1};
    return NULL;
  }
  int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  if (begin < 0) begin += size;
  if (end < 0) end += size;
  begin = s->begin_mask & bit ? (stride > 0 ? low : high) : begin < low ? low : begin > high ? high : begin;
  end = s->end_mask & bit ? (stride > 0 ? high : low) : end < low ? low : end > high ? high : end;
  int64_t span = end - begin;
  int64_t count = span == 0 || (span < 0) != (stride < 0) ? 0 : span / stride + (span % stride != 0);
  *out = (struct run){begin, stride, count};
  return NULL;
}

// Computes the runs of all dimensions of the variable, and the shape that the value must have.
static tfc_status describe(struct tfc_kernel_ctx *ctx, const struct tfc_shape *shape, struct run *runs,
                           struct tfc_shape *out_value) {
  const struct slice_state *s = ctx->state;
  const struct tfc_tensor *begin = ctx->inputs[1], *end = ctx->inputs[2], *strides = ctx->inputs[3];
  TFC_KERNEL_CHECK(begin->shape.rank == 1 && tfc_shape_equal(&begin->shape, &end->shape) &&
                       tfc_shape_equal(&begin->shape, &strides->shape) && begin->shape.dims[0] < 32,
                   "Expected begin, end, and strides to be 1D equal size tensors");
  int entries = (int)begin->shape.dims[0], axis = 0, after = 0;
  bool ellipsis = false;
  *out_value = TFC_SHAPE_SCALAR;
  for (int i = 0; i < entries; i++)
    if (s->ellipsis_mask >> i & 1) {
      TFC_KERNEL_CHECK(!ellipsis, "Multiple ellipses in slice spec not allowed");
      ellipsis = true;
    } else if (ellipsis && !(s->new_axis_mask >> i & 1)) {
      after++; // counts the dimensions that belong to entries behind the ellipsis
    }
  for (int i = 0; i <= entries; i++) {
    bool fill = i == entries ? !ellipsis : s->ellipsis_mask >> i & 1;
    if (fill) {
      for (; axis < shape->rank - (ellipsis ? after : 0); axis++) {
        runs[axis] = (struct run){0, 1, shape->dims[axis]};
        out_value->dims[out_value->rank++] = shape->dims[axis];
      }
      continue;
    }
    if (i == entries) break;
    if (s->new_axis_mask >> i & 1) {
      TFC_KERNEL_CHECK(out_value->rank < TFC_MAX_RANK, "too many dimensions");
      out_value->dims[out_value->rank++] = 1;
      continue;
    }
    TFC_KERNEL_CHECK(axis < shape->rank, "Index out of range using input dim %d; input has only %d dims", axis,
                     shape->rank);
    TFC_RETURN_IF_ERROR(resolve(s, i, tfc_tensor_int(begin, i), tfc_tensor_int(end, i), tfc_tensor_int(strides, i),
                                shape->dims[axis], &runs[axis]));
    if (!(s->shrink_axis_mask >> i & 1)) {
      TFC_KERNEL_CHECK(out_value->rank < TFC_MAX_RANK, "too many dimensions");
      out_value->dims[out_value->rank++] = runs[axis].count;
    }
    axis++;
  }
  return NULL;
}

static tfc_status strided_slice_assign(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  const struct tfc_tensor *value = ctx->inputs[4];
  struct run runs[TFC_MAX_RANK];
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(tfc_state_writable(ctx, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == value->dtype, "variable '%.*s' has type %s, value %s", TFC_STR_ARG(v->name),
                   tfc_dtype_name(v->dtype), tfc_dtype_name(value->dtype));
  const struct tfc_shape *vs = &v->value.shape;
  TFC_RETURN_IF_ERROR(describe(ctx, vs, runs, &shape));
  int64_t count = tfc_shape_elements(&shape), strides[TFC_MAX_RANK], at[TFC_MAX_RANK] = {0};
  bool scalar = value->shape.rank == 0;
  TFC_KERNEL_CHECK(scalar ? count == 1 : tfc_shape_equal(&shape, &value->shape),
                   "The slice has shape %s and cannot be assigned a value of shape %s",
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&value->shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_shape_strides(vs, strides);
  size_t size = tfc_dtype_size(v->dtype);
  for (int64_t i = 0; i < count; i++) {
    int64_t to = 0;
    for (int k = 0; k < vs->rank; k++) to += (runs[k].first + at[k] * runs[k].stride) * strides[k];
    if (v->dtype == TFC_STRING) {
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(&v->value, to, tfc_tensor_get_string(value, i)));
    } else {
      memcpy((char *)v->value.data + (size_t)to * size, (const char *)value->data + (size_t)i * size, size);
    }
    for (int k = vs->rank; k-- > 0;) {
      if (++at[k] < runs[k].count) break;
      at[k] = 0;
    }
  }
  return tfc_state_forward_ref(ctx);
}

static const struct tfc_op_def state_slice_rows[] = {
    {.name = "StridedSliceAssign",
     .inputs = "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, "
              "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 0xe,
     .shape = tfc_state_shape_update,
     .prepare = slice_prepare,
     .kernel = strided_slice_assign},
    {.name = "ResourceStridedSliceAssign",
     .inputs = "ref: resource, begin: Index, end: Index, strides: Index, value: T",
     .attrs = "T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0, "
              "new_axis_mask: int = 0, shrink_axis_mask: int = 0",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 0xf,
     .shape = tfc_state_shape_update,
     .prepare = slice_prepare,
     .kernel = strided_slice_assign},
};
TFC_REGISTER_OPS(state_slice_rows);
