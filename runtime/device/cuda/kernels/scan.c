// Rows of Cumsum and Cumprod.
#include "runtime/device/cuda/kernels/scan.h"

#include "runtime/device/cuda/kernels/common.h"

struct scan {
  struct tfc_cuda_argument axis;
  bool exclusive, reverse, product;
};
enum { SUM, PRODUCT }; // variants of the rows

static tfc_status scan_prepare(struct tfc_cuda_prepare *p) {
  TFC_CUDA_STATE(p, struct scan, st);
  st->axis = tfc_cuda_argument(p, 1);
  st->exclusive = tfc_node_attr_bool(p->base->graph, p->base->node, "exclusive", false);
  st->reverse = tfc_node_attr_bool(p->base->graph, p->base->node, "reverse", false);
  st->product = p->variant == PRODUCT;
  return NULL;
}
static tfc_status scan_constant(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(scan_prepare(p));
  if (!((const struct scan *)p->base->state)->axis.constant) TFC_CUDA_DECLINE("the axis is not constant");
  return NULL;
}
static tfc_status launch_scan(struct tfc_cuda_launch *l) {
  const struct scan *st = l->ctx->state;
  const struct tfc_tensor *x = l->ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_cuda_value value;
  TFC_RETURN_IF_ERROR(tfc_cuda_get(l, &st->axis, &value));
  TFC_KERNEL_CHECK(value.tensor->shape.rank == 0, "axis must be a scalar");
  int64_t axis = tfc_tensor_int(value.tensor, 0), outer = 1, inner = 1;
  axis += axis < 0 ? x->shape.rank : 0;
  TFC_KERNEL_CHECK(axis >= 0 && axis < x->shape.rank, "axis %lld is outside of %d dimensions", (long long)axis,
                   x->shape.rank);
  for (int d = 0; d < x->shape.rank; d++)
    if (d != axis) *(d < axis ? &outer : &inner) *= x->shape.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, x, &y));
  if (!x->size) return NULL;
  struct tfc_cuda_scan scan = {.outer = outer,
                               .n = x->shape.dims[axis],
                               .inner = inner,
                               .product = st->product,
                               .exclusive = st->exclusive,
                               .reverse = st->reverse};
  tfc_cuda_scan_split((int)x->dtype, &scan);
  struct tfc_buffer *scratch = NULL;
  const size_t bytes = tfc_cuda_scan_scratch(&scan);
  if (bytes) TFC_RETURN_IF_ERROR(tfc_kernel_scratch(l->ctx, bytes, &scratch));
  int failed = tfc_cuda_run_scan((int)x->dtype, &scan, x->data, y->data, scratch ? scratch->data : NULL, l->stream);
  tfc_buffer_release(scratch);
  return failed ? tfc_cuda_status(l, failed) : NULL;
}

#define REALS OPS_BITS(TFC_CUDA_REALS)
static const struct tfc_cuda_kernel scan_rows[] = {
    {"Cumsum", REALS, scan_constant, launch_scan, TFC_CUDA_VARIANT(SUM)},
    {"Cumsum", REALS, scan_prepare, launch_scan, TFC_CUDA_NO_CAPTURE | TFC_CUDA_VARIANT(SUM)},
    {"Cumprod", REALS, scan_constant, launch_scan, TFC_CUDA_VARIANT(PRODUCT)},
    {"Cumprod", REALS, scan_prepare, launch_scan, TFC_CUDA_NO_CAPTURE | TFC_CUDA_VARIANT(PRODUCT)},
};
TFC_CUDA_KERNELS(scan_rows);
