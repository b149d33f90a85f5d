// Arithmetic of one operand; predicates.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

UNARY(Neg, (U)0 - (U)x)
UNARY(Abs, x < 0 ? (C)((U)0 - (U)x) : x == 0 ? (C)0 : x)
UNARY(Square, (U)x *(U)x)
UNARY(Sqrt, sqrt(x))
UNARY(Rsqrt, (C)1 / sqrt(x))
UNARY(Reciprocal, (C)1 / x)
UNARY(Sign, x != x ? x : (C)((x > 0) - (x < 0)))
UNARY(Floor, floor(x))
UNARY(Ceil, ceil(x))
UNARY(Rint, rint(x))
UNARY(Round, rint(x)) // half to even
UNARY(Invert, ~(U)x)
UNARY(LogicalNot, !x)
// NaN goes through.
UNARY(Relu, x > 0 ? x : x == x ? (C)0 : x)
UNARY(Relu6, x > 6 ? (C)6 : x > 0 ? x : x == x ? (C)0 : x)

UNARY_RESULT(IsNan, bool, x != x)
UNARY_RESULT(IsInf, bool, fabs(x) == (C)INFINITY)
UNARY_RESULT(IsFinite, bool, fabs(x) < (C)INFINITY)

} // namespace

TFC_CUDA_UNARY_ARITHMETIC(DEFINE_UNARY)
TFC_CUDA_PREDICATES(DEFINE_PREDICATE)

} // namespace tfc
