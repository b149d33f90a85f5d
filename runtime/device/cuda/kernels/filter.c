// Turns filters, for convolutions that do it themselves and as an operation of its own
// (runtime/exec/rewrites/filters.c).
#include "runtime/device/cuda/kernels/filter.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/kernels/move.h"

static int transpose(const struct tfc_filter_layout *a, const void *from, const struct tfc_filter_layout *b, void *to,
                     tfc_dtype type, void *stream) {
  int order[3] = {0, 1, 2}; // by the destination's strides, the longest first
  for (int i = 0; i < 3; i++)
    for (int k = i + 1; k < 3; k++)
      if (b->stride[order[k]] > b->stride[order[i]]) {
        const int first = order[i];
        order[i] = order[k], order[k] = first;
      }
  struct tfc_cuda_block block = {.rank = 3, .size = (int32_t)tfc_dtype_size(type)};
  for (int k = 0; k < 3; k++) {
    block.dims[k] = a->size[order[k]];
    block.src_strides[k] = a->stride[order[k]];
    block.dst_strides[k] = b->stride[order[k]];
  }
  return tfc_cuda_copy_block(&block, to, from, stream);
}

int tfc_cuda_filter_transpose(const struct tfc_cuda_conv *conv, tfc_filter_form from_form, const void *from,
                              tfc_filter_form to_form, void *to, void *stream) {
  const struct tfc_cuda_slide *g = &conv->slide;
  const int64_t cells = g->size[0] * g->size[1] * g->size[2], in = g->channels / g->groups;
  const struct tfc_filter_layout a = tfc_filter_layout(from_form, g->filters, in, cells),
                                 b = tfc_filter_layout(to_form, g->filters, in, cells);
  return transpose(&a, from, &b, to, (tfc_dtype)conv->type, stream);
}

static tfc_status transpose_prepare(struct tfc_cuda_prepare *p) {
  if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
  p->base->state = p->op->state;
  return NULL;
}
static tfc_status launch_transpose(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *from = l->ctx->inputs[0];
  const struct tfc_filter_layout a = tfc_filter_layout_of(TFC_FILTER_OF_GRAPH, &from->shape),
                                 b = tfc_filter_layout_of(*(const tfc_filter_form *)l->ctx->state, &from->shape);
  struct tfc_tensor *to = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, from, &to));
  TFC_CUDA_LAUNCHED(l, transpose(&a, from->data, &b, to->data, from->dtype, l->stream));
  return NULL;
}

static const struct tfc_cuda_kernel filter_rows[] = {{"_TransposeFilter", 0, transpose_prepare, launch_transpose, 0}};
TFC_CUDA_KERNELS(filter_rows);
