// Rows of TopK.
#include "runtime/device/cuda/kernels/order.h"

#include "runtime/device/cuda/kernels/common.h"

struct top {
  struct tfc_cuda_argument k;
  int64_t number; // k, if it is an attribute and no input
  bool attribute, sorted;
  tfc_dtype type;
};
static tfc_status top_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct top, st);
  st->attribute = p->base->node->input_count == 1;
  st->number = tfc_node_attr_int(p->base->graph, p->base->node, "k", 0);
  st->type = tfc_node_attr_type(p->base->graph, p->base->node, "index_type", TFC_INT32);
  st->sorted = tfc_node_attr_bool(p->base->graph, p->base->node, "sorted", true);
  if (!st->attribute) st->k = tfc_cuda_argument(p, 1);
  if (st->type != TFC_INT32 && st->type != TFC_INT64) TFC_CUDA_DECLINE("indices of this type");
  return NULL;
}
static tfc_status top_constant(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(top_prepare(p));
  const struct top *st = p->base->state;
  if (!st->attribute && !st->k.constant) TFC_CUDA_DECLINE("k is not constant");
  return NULL;
}
static tfc_status launch_top(struct tfc_cuda_launch *l) {
  const struct top *st = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *values = NULL, *indices = NULL;
  struct tfc_cuda_value value;
  int64_t k = st->number;
  if (!st->attribute) {
    TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &st->k, &value));
    TFC_KERNEL_CHECK(tfc_tensor_elements(value.tensor) == 1, "k must be scalar");
    k = tfc_tensor_int(value.tensor, 0);
  }
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "input must be >= 1-D");
  int64_t n = x->shape.dims[x->shape.rank - 1];
  TFC_KERNEL_CHECK(k >= 0, "Need k >= 0, got %lld", (long long)k);
  TFC_KERNEL_CHECK(n >= k, "input must have at least k columns. Had %lld, needed %lld", (long long)n, (long long)k);
  TFC_KERNEL_CHECK(n < INT32_MAX, "Second dimension of flattened input must be <= INT_MAX, got %lld", (long long)n);
  struct tfc_shape shape = x->shape;
  shape.dims[shape.rank - 1] = k;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 0, x->dtype, &shape, &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, 1, st->type, &shape, &indices));
  if (!values->size) return NULL;
  const int64_t rows = tfc_cuda_count(x) / n;
  size_t bytes;
  struct tfc_buffer *scratch = NULL;
  TFC_CUDA_LAUNCHED(l, tfc_cuda_top_k_scratch((int)x->dtype, rows, n, k, &bytes));
  if (bytes) TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, bytes, &scratch));
  int failed = tfc_cuda_top_k((int)x->dtype, (int)st->type, rows, n, k, st->sorted, x->data, values->data,
                              indices->data, scratch ? scratch->data : NULL, l->stream);
  tfc_buffer_release(scratch);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}

#define REALS OPS_BITS(TFC_CUDA_REALS)
static const struct tfc_cuda_kernel order_rows[] = {
    {"TopKV2", REALS, top_constant, launch_top, 0},
    {"TopKV2", REALS, top_prepare, launch_top, TFC_CUDA_NO_CAPTURE},
    {"TopK", REALS, top_prepare, launch_top, 0},
};
TFC_CUDA_KERNELS(order_rows);
