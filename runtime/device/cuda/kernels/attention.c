// Rows of attention and its gradients (runtime/exec/rewrites/attention.c makes these operations).
#include "runtime/device/cuda/kernels/attention.h"

#include "runtime/device/cuda/kernels/common.h"

enum { MOST_OUTPUTS = 3 };
struct attention {
  const struct tfc_attention *of;
  struct tfc_shape shapes[MOST_OUTPUTS];
};

static tfc_status attention_prepare(struct tfc_cuda_prepare *p) {
  if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
  TFC_CUDA_STATE(p, struct attention, s);
  s->of = p->op->state;
  for (uint32_t i = 0; i < p->op->output_count && i < MOST_OUTPUTS; i++) s->shapes[i] = p->base->output_shapes[i];
  return NULL;
}
static tfc_status gradients_prepare(struct tfc_cuda_prepare *p) {
  TFC_RETURN_IF_ERROR(attention_prepare(p));
  const struct tfc_attention *a = ((const struct attention *)p->base->state)->of;
  p->scratch = (size_t)(a->batches * a->heads * a->queries) * sizeof(float);
  return NULL;
}

static tfc_status output(struct tfc_cuda_launch *l, uint32_t i, float **out) {
  const struct attention *s = l->ctx->state;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, i, TFC_FLOAT, &s->shapes[i], &y));
  *out = y->data;
  return NULL;
}
static const float *input(const struct tfc_cuda_launch *l, uint32_t i) {
  return l->ctx->inputs[i]->data;
}

static tfc_status launch_attention(struct tfc_cuda_launch *l) {
  const struct tfc_attention *a = ((const struct attention *)l->ctx->state)->of;
  float *out = NULL, *logs = NULL;
  TFC_RETURN_IF_ERROR(output(l, 0, &out));
  if (l->ctx->output_count > 1) TFC_RETURN_IF_ERROR(output(l, 1, &logs)); // for gradients
  TFC_CUDA_LAUNCHED(l, tfc_cuda_attention(a, input(l, 0), input(l, 1), input(l, 2), a->masked ? input(l, 3) : NULL, out,
                                          logs, l->stream));
  return NULL;
}

static tfc_status launch_gradients(struct tfc_cuda_launch *l) {
  const struct tfc_attention *a = ((const struct attention *)l->ctx->state)->of;
  const uint32_t next = a->masked ? 4 : 3;
  float *dq = NULL, *dk = NULL, *dv = NULL;
  TFC_RETURN_IF_ERROR(output(l, 0, &dq));
  TFC_RETURN_IF_ERROR(output(l, 1, &dk));
  TFC_RETURN_IF_ERROR(output(l, 2, &dv));
  TFC_CUDA_LAUNCHED(l, tfc_cuda_attention_gradients(a, input(l, 0), input(l, 1), input(l, 2),
                                                    a->masked ? input(l, 3) : NULL, input(l, next), input(l, next + 1),
                                                    input(l, next + 2), dq, dk, dv, l->scratch, l->stream));
  return NULL;
}

static const struct tfc_cuda_kernel attention_rows[] = {
    {"_Attention", TFC_TYPE_BIT(TFC_FLOAT), attention_prepare, launch_attention, 0},
    {"_AttentionGradients", TFC_TYPE_BIT(TFC_FLOAT), gradients_prepare, launch_gradients, 0},
};
TFC_CUDA_KERNELS(attention_rows);
