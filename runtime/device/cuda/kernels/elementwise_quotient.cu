// Quotients, remainders, powers; masks.
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {

TFC_CUDA_BINARY_QUOTIENT(DEFINE_BINARY)
TFC_CUDA_BINARY_MASKS(DEFINE_BINARY)

} // namespace tfc
