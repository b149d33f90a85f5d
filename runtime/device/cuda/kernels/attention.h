// Attention in float32: for each query the softmax of its scaled products with all keys, plus a mask, weighs the
// values. Scores are computed block by block and kept nowhere; the gradients compute them again.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTION_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTION_H

#include "runtime/device/cuda/kernels/types.h"
#include "runtime/ops/attention.h"

// out: [batches, heads, queries, width]; logs [batches * heads * queries]: of each query the logarithm of the sum of
// its exponentials; or NULL. mask: NULL, or its strides say what it has. All strides are in `a`.
TFC_CUDA_API int tfc_cuda_attention(const struct tfc_attention *a, const float *q, const float *k, const float *v,
                                    const float *mask, float *out, float *logs, void *stream);
// The gradients to q, k and v of what `out` weighs with d_out, in two launches. `out`, `logs`: as above.
// sums [batches * heads * queries]: scratch.
TFC_CUDA_API int tfc_cuda_attention_gradients(const struct tfc_attention *a, const float *q, const float *k,
                                              const float *v, const float *mask, const float *out, const float *logs,
                                              const float *d_out, float *dq, float *dk, float *dv, float *sums,
                                              void *stream);

#endif
