// Exponentials, logarithms and trigonometric functions of one operand, and activations computed from them.
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {

TFC_CUDA_UNARY_TRANSCENDENTAL(DEFINE_UNARY)

} // namespace tfc
