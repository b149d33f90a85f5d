// Quotients, remainders, powers.
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {

TFC_CUDA_BINARY_QUOTIENT(DEFINE_BINARY)

} // namespace tfc
