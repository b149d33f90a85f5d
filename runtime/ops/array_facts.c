// ToBool, PopulationCount and Fingerprint, which compute a property of a value, and Timestamp and ParallelConcat.
#include <time.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"
#include "runtime/ops/string_hash.h"

// As in Python, a scalar is true if it is not zero (a string: not empty), any other tensor if it has elements.
static tfc_status to_bool(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  bool truth = tfc_tensor_elements(x) > 0;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &TFC_SHAPE_SCALAR, &y));
  if (x->shape.rank == 0) {
    if (x->dtype == TFC_STRING)
      truth = tfc_tensor_get_string(x, 0).size > 0;
    else if (x->dtype == TFC_BOOL)
      truth = *(const bool *)x->data;
    else if (x->dtype == TFC_HALF || x->dtype == TFC_BFLOAT16 || x->dtype == TFC_UINT16 || x->dtype == TFC_UINT32 ||
             x->dtype == TFC_UINT64 || tfc_dtype_is_complex(x->dtype))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s cannot be converted to a boolean", tfc_dtype_name(x->dtype));
    else
      OPS_SWITCH(OPS_REALS, x->dtype, { truth = OPS_GET(*(const S *)x->data) != 0; })
  }
  *(bool *)y->data = truth;
  return NULL;
}

static tfc_status population_count(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  size_t size = tfc_dtype_size(x->dtype);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_UINT8, &x->shape, &y));
  for (int64_t i = 0; i < tfc_tensor_elements(x); i++) {
    uint64_t bits = 0;
    memcpy(&bits, (const char *)x->data + (size_t)i * size, size);
    ((uint8_t *)y->data)[i] = (uint8_t)__builtin_popcountll(bits);
  }
  return NULL;
}

// data [n, ...] -> [n, 8]: the 64-bit fingerprint of each row's bytes, lowest byte first. For a row of several strings,
// it is the fingerprint of the strings' fingerprints.
static tfc_status fingerprint(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *method = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(method->shape.rank == 0, "`method` should be a scalar string");
  TFC_KERNEL_CHECK(tfc_str_is(tfc_tensor_get_string(method, 0), "farmhash64"), "Unsupported fingerprint method: %.*s",
                   TFC_STR_ARG(tfc_tensor_get_string(method, 0)));
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "`data` should have at least one dimension.");
  TFC_KERNEL_CHECK(x->dtype == TFC_STRING || tfc_dtype_is_plain(x->dtype), "a tensor of %s has no fingerprint",
                   tfc_dtype_name(x->dtype));
  int64_t rows = x->shape.dims[0], each = rows ? tfc_tensor_elements(x) / rows : 0;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_UINT8, &TFC_SHAPE(rows, 8), &y));
  for (int64_t r = 0; !s && r < rows; r++) {
    uint64_t value;
    if (x->dtype != TFC_STRING) {
      size_t bytes = (size_t)each * tfc_dtype_size(x->dtype);
      value = tfc_fingerprint64((tfc_str){(const char *)x->data + (size_t)r * bytes, bytes});
    } else if (x->shape.rank == 1) {
      value = tfc_fingerprint64(tfc_tensor_get_string(x, r));
    } else {
      struct tfc_buffer *held = NULL;
      s = tfc_kernel_scratch(ctx, (size_t)each * sizeof(uint64_t) + 1, &held);
      if (s) break;
      uint64_t *own = held->data;
      for (int64_t i = 0; i < each; i++) own[i] = tfc_fingerprint64(tfc_tensor_get_string(x, r * each + i));
      value = tfc_fingerprint64((tfc_str){(const char *)own, (size_t)each * sizeof *own});
      tfc_buffer_release(held);
    }
    for (int i = 0; i < 8; i++) ((uint8_t *)y->data)[r * 8 + i] = (uint8_t)(value >> (8 * i));
  }
  return s;
}
static tfc_status shape_fingerprint(struct tfc_shape_ctx *ctx) {
  struct tfc_shape data, method;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &data));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 0, &method));
  ctx->outputs[0] = TFC_SHAPE(data.rank > 0 ? data.dims[0] : TFC_DIM_UNKNOWN, 8);
  return NULL;
}

static tfc_status timestamp(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  struct timespec now;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_DOUBLE, &TFC_SHAPE_SCALAR, &y));
  clock_gettime(CLOCK_REALTIME, &now);
  *(double *)y->data = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
  return NULL;
}

// Joins tensors [1, ...] of the same shape along the first dimension.
static tfc_status parallel_concat(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *first = ctx->inputs[0];
  const struct tfc_attr *attr = tfc_node_attr(ctx->graph, ctx->node, "shape");
  struct tfc_tensor *y = NULL;
  struct tfc_shape shape = first->shape;
  int64_t row = tfc_tensor_elements(first);
  TFC_KERNEL_CHECK(shape.rank >= 1 && shape.dims[0] == 1, "Size of first dimension must be 1");
  shape.dims[0] = ctx->input_count;
  TFC_KERNEL_CHECK(attr && attr->kind == TFC_ATTR_SHAPE && tfc_shape_equal(attr->shape, &shape),
                   "the values make a tensor of %s, not of attribute 'shape'",
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, first->dtype, &shape, &y));
  for (uint32_t i = 0; i < ctx->input_count; i++) {
    TFC_KERNEL_CHECK(tfc_shape_equal(&ctx->inputs[i]->shape, &first->shape), "All input shapes must match");
    TFC_RETURN_IF_ERROR(ops_copy_elements(y, i * row, ctx->inputs[i], 0, row));
  }
  return NULL;
}
static tfc_status shape_attr(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *attr = tfc_node_attr(ctx->graph, ctx->node, "shape");
  ctx->outputs[0] = attr && attr->kind == TFC_ATTR_SHAPE ? *attr->shape : TFC_SHAPE_UNKNOWN;
  return NULL;
}

static const struct tfc_op_def array_facts_rows[] = {
    {.name = "ToBool",
     .inputs = "input: T",
     .outputs = "output: bool",
     .attrs = "T: type",
     .types = OPS_BITS(OPS_REALS) | TFC_TYPE_BIT(TFC_BOOL) | TFC_TYPE_BIT(TFC_STRING),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_scalar,
     .kernel = to_bool,
     .samples = "float[]; int32[2,3]; bool[]; float[0]"},
    {.name = "PopulationCount",
     .inputs = "x: T",
     .outputs = "y: uint8",
     .attrs = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
     .types = OPS_BITS(OPS_INTS),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_same,
     .cost = ops_cost_outputs,
     .kernel = population_count,
     .samples = "int32[3,4]; uint8[5]; int64[0]"},
    {.name = "Fingerprint",
     .inputs = "data: T, method: string",
     .outputs = "fingerprint: uint8",
     .attrs = "T: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_fingerprint,
     .kernel = fingerprint},
    {.name = "Timestamp",
     .outputs = "ts: double",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_scalar,
     .kernel = timestamp},
    {.name = "ParallelConcat",
     .inputs = "values: N * T",
     .outputs = "output: T",
     .attrs = "N: int >= 1, T: type, shape: shape",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_attr,
     .cost = ops_cost_moved,
     .kernel = parallel_concat,
     .samples = "float[1,3], float[1,3] {shape=[2,3]}"},
};
TFC_REGISTER_OPS(array_facts_rows);
