// Matrix products. The rows of the kernel table (matmul.c) define what is multiplied; library/blaslt.c multiplies, in
// tests a plain loop.
//
// C [batch, m, n] = op(A) op(B), row-major and dense; stride_a, stride_b and stride_c are the distances
// between the matrices of a batch, in elements; 0: all products of the batch use the same matrix.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCT_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCT_H

#include "runtime/device/cuda/kernel.h"

struct tfc_cuda_product {
  tfc_dtype type; // float32, float64, float16 or bfloat16; sums in float32 (float64)
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t batch, stride_a, stride_b, stride_c;
  int32_t alignment; // bytes: the addresses of all matrices are multiples of it
};
enum { TFC_CUDA_PRODUCT_ALIGNMENT = 16 };
struct tfc_cuda_product_plan; // the chosen algorithm; lives as long as the process

// Finds the plan of a product, which is made at the first request (its heuristics take up to a millisecond) and kept by
// shape. UNIMPLEMENTED: the library has no algorithm for it.
TFC_MUST_USE tfc_status tfc_cuda_product_find(struct tfc_cuda_library *library, const struct tfc_cuda_product *product,
                                              const struct tfc_cuda_product_plan **out);
size_t tfc_cuda_product_scratch(const struct tfc_cuda_product_plan *plan);
// Enqueues the product. `scratch` has as many bytes as tfc_cuda_product_scratch says, and is aligned to 256 bytes.
TFC_MUST_USE tfc_status tfc_cuda_product_run(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan,
                                             const void *a, const void *b, void *c, void *scratch);

#endif
