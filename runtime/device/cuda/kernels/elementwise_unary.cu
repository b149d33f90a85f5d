// Arithmetic of one operand; predicates.
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {

TFC_CUDA_UNARY_ARITHMETIC(DEFINE_UNARY)
TFC_CUDA_PREDICATES(DEFINE_PREDICATE)

} // namespace tfc
