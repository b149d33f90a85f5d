// Comparisons.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

BINARY_RESULT(Equal, bool, a == b)
BINARY_RESULT(NotEqual, bool, a != b)
BINARY_RESULT(Less, bool, a < b)
BINARY_RESULT(LessEqual, bool, a <= b)
BINARY_RESULT(Greater, bool, a > b)
BINARY_RESULT(GreaterEqual, bool, a >= b)

} // namespace

TFC_CUDA_COMPARISONS(DEFINE_COMPARISON)

} // namespace tfc
