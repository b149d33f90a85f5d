// Matrix products. The rows of the kernel table (matmul.c) describe the product; library/blaslt.c computes it, in tests
// a plain loop does.
//
// C [batch, m, n] = op(A) op(B), row-major and dense; stride_a, stride_b and stride_c are the distances in elements
// between the matrices of a batch; 0: all products of the batch use the same matrix.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCT_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCT_H

#include "runtime/device/cuda/kernel.h"

// What is done to the elements of a product before they are written: nothing, or bias [n] is added to each row, perhaps
// with max(x, 0) after that.
typedef enum tfc_cuda_epilogue {
  TFC_CUDA_EPILOGUE_NONE,
  TFC_CUDA_EPILOGUE_BIAS,
  TFC_CUDA_EPILOGUE_BIAS_RECTIFIED,
} tfc_cuda_epilogue;

struct tfc_cuda_product {
  tfc_dtype type; // float32, float64, float16 or bfloat16; sums are float32 (for float64: float64)
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  int64_t batch, stride_a, stride_b, stride_c;
  int32_t alignment; // bytes; the addresses of all matrices, and of the bias, are multiples of this
  tfc_cuda_epilogue epilogue;
};
enum { TFC_CUDA_PRODUCT_ALIGNMENT = 16 };
struct tfc_cuda_product_plan; // the chosen algorithm; exists as long as the process

// Finds the plan of a product; it is made at the first request (cuBLASLt's heuristics take up to a millisecond) and
// kept for later ones of the same shape. UNIMPLEMENTED: the library has no algorithm for it.
TFC_MUST_USE tfc_status tfc_cuda_product_find(struct tfc_cuda_library *library, const struct tfc_cuda_product *product,
                                              const struct tfc_cuda_product_plan **out);
size_t tfc_cuda_product_scratch(const struct tfc_cuda_product_plan *plan);
// Enqueues the product, plus `addend` if that is not NULL; it is like C, or C itself. `scratch` must have the size that
// tfc_cuda_product_scratch returns, and be aligned to 256 bytes.
TFC_MUST_USE tfc_status tfc_cuda_product_run(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan,
                                             const void *a, const void *b, const void *addend, void *c, void *scratch);
// The same for a plan with an epilogue.
TFC_MUST_USE tfc_status tfc_cuda_product_run_bias(struct tfc_cuda_launch *l, const struct tfc_cuda_product_plan *plan,
                                                  const void *a, const void *b, const void *bias, void *c,
                                                  void *scratch);

#endif
