// Arithmetic of two operands.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

BINARY(Add, (U)a + (U)b)
BINARY(Sub, (U)a - (U)b)
BINARY(Mul, (U)a *(U)b)
// Integers: a / 0 is 0 here (the host's kernel fails, a GPU cannot).
template <class C> TFC_HD C quotient(C a, C b) {
  return b == 0 ? (C)0 : b == (C)-1 ? (C)(0 - (typename number<C>::U)a) : (C)(a / b);
}
TFC_HD float quotient(float a, float b) {
  return a / b;
}
TFC_HD double quotient(double a, double b) {
  return a / b;
}
BINARY(Div, quotient(a, b))
// NaN wins over everything.
BINARY(Maximum, a < b || b != b ? b : a)
BINARY(Minimum, b < a || b != b ? b : a)
BINARY(SquaredDifference, (U)rounded<T>((C)((U)a - (U)b)) * (U)rounded<T>((C)((U)a - (U)b)))
BINARY(LogicalAnd, a &&b)
BINARY(LogicalOr, a || b)
BINARY(BitwiseAnd, (U)a &(U)b)
BINARY(BitwiseOr, (U)a | (U)b)
BINARY(BitwiseXor, (U)a ^ (U)b)

} // namespace

TFC_CUDA_BINARY_ARITHMETIC(DEFINE_BINARY)

} // namespace tfc
