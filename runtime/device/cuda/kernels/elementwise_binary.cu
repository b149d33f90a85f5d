// Arithmetic of two operands.
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {

TFC_CUDA_BINARY_ARITHMETIC(DEFINE_BINARY)

} // namespace tfc
