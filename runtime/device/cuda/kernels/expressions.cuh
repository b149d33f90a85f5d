// The element-wise ops, one expression each. The kernels of single ops (elementwise_*.cu) and the kernel that runs a
// chain of them (chain.cu) use the same expressions, so their results are bit-identical.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_EXPRESSIONS_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_EXPRESSIONS_CUH

#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {

// --- One operand; predicates -------------------------------------------------------------------------------------
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
UNARY(Round, rint(x)) // halves are rounded to the even neighbour
UNARY(Invert, ~(U)x)
UNARY(LogicalNot, !x)
// For NaN the result is NaN.
UNARY(Relu, x > 0 ? x : x == x ? (C)0 : x)
UNARY(Relu6, x > 6 ? (C)6 : x > 0 ? x : x == x ? (C)0 : x)

UNARY_RESULT(IsNan, bool, x != x)
UNARY_RESULT(IsInf, bool, fabs(x) == (C)INFINITY)
UNARY_RESULT(IsFinite, bool, fabs(x) < (C)INFINITY)

// --- Exponentials, logarithms, trigonometric functions, and activations that use them ------------------------------
// The constants are those of Klambauer et al. 2017.
#define SELU_SCALE ((C)1.0507009873554804934193349852946)
#define SELU_SCALE_ALPHA ((C)1.7580993408473768599402175208123)

// log(machine epsilon) + 2, a negative number t. For x > -t, log(1 + exp(x)) equals x in the type's precision, and for
// x < t it equals exp(x).
template <class T> struct softplus_edge;
template <> struct softplus_edge<f32> {
  static TFC_HD float of() { return -15.942385152878742f + 2.0f; }
};
template <> struct softplus_edge<f64> {
  static TFC_HD double of() { return -36.04365338911715 + 2.0; }
};
template <> struct softplus_edge<f16> {
  static TFC_HD float of() { return -6.931471805599453f + 2.0f; }
};
template <> struct softplus_edge<b16> {
  static TFC_HD float of() { return -4.852030263919617f + 2.0f; }
};

UNARY(Exp, exp(x))
UNARY(Expm1, expm1(x))
UNARY(Log, log(x))
UNARY(Log1p, log1p(x))
UNARY(Tanh, tanh(x))
UNARY(Sigmoid, (C)1 / ((C)1 + exp(-x)))
UNARY(Erf, erf(x))
UNARY(Erfc, erfc(x))
UNARY(Sin, sin(x))
UNARY(Cos, cos(x))
UNARY(Tan, tan(x))
UNARY(Atan, atan(x))
UNARY(Elu, x < 0 ? expm1(x) : x)
UNARY(Selu, x < 0 ? SELU_SCALE_ALPHA * expm1(x) : SELU_SCALE * x)
UNARY(Softplus, x > -softplus_edge<T>::of() ? x : x < softplus_edge<T>::of() ? exp(x) : log1p(exp(x)))
UNARY(Softsign, x / (fabs(x) + (C)1))

// --- Two operands ------------------------------------------------------------------------------------------------
BINARY(Add, (U)a + (U)b)
BINARY(Sub, (U)a - (U)b)
BINARY(Mul, (U)a *(U)b)
// For integers, a / 0 is 0 here. (The host's kernel reports an error, which a GPU cannot.)
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
// If an operand is NaN, so is the result.
BINARY(Maximum, a < b || b != b ? b : a)
BINARY(Minimum, b < a || b != b ? b : a)
BINARY(SquaredDifference, (U)rounded<T>((C)((U)a - (U)b)) * (U)rounded<T>((C)((U)a - (U)b)))
BINARY(LogicalAnd, a &&b)
BINARY(LogicalOr, a || b)
BINARY(BitwiseAnd, (U)a &(U)b)
BINARY(BitwiseOr, (U)a | (U)b)
BINARY(BitwiseXor, (U)a ^ (U)b)

// --- Quotients, remainders, powers ---------------------------------------------------------------------------------
// For integers, a division by zero gives 0. (The host's kernel reports an error, which a GPU cannot.)
template <class T> struct whole {
  typedef typename number<T>::U U;
  static TFC_HD T quotient(T a, T b) { return b == 0 ? (T)0 : b == (T)-1 ? (T)(0 - (U)a) : (T)(a / b); }
  static TFC_HD T floor_quotient(T a, T b) {
    return b == 0 || b == (T)-1 ? quotient(a, b) : (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
  }
  static TFC_HD T remainder(T a, T b) { return b == 0 || b == (T)-1 ? (T)0 : (T)(a % b); }
  static TFC_HD T floor_remainder(T a, T b) {
    T r = remainder(a, b);
    return r != 0 && (b < 0) != (r < 0) ? (T)(r + b) : r;
  }
  static TFC_HD T power(T a, T b) {
    U r = 1, base = (U)a;
    for (U n = b < 0 ? 0 : (U)b; n; n >>= 1, base *= base)
      if (n & 1) r *= base;
    return (T)r;
  }
};
template <class T> struct real {
  typedef typename number<T>::C C;
  static TFC_HD C floor_quotient(C a, C b) { return floor(rounded<T>(a / b)); }
  static TFC_HD C remainder(C a, C b) { return fmod(a, b); }
  static TFC_HD C floor_remainder(C a, C b) {
    C r = fmod(a, b);
    return r != 0 && (b < 0) != (r < 0) ? r + b : r;
  }
  static TFC_HD C power(C a, C b) { return pow(a, b); }
};
template <class T> struct arithmetic : real<T> {};
template <> struct arithmetic<i32> : whole<i32> {};
template <> struct arithmetic<i64> : whole<i64> {};

BINARY(DivNoNan, b == 0 ? (C)0 : a / b)
BINARY(MulNoNan, b == 0 ? (C)0 : a * b)
BINARY(TruncateDiv, arithmetic<T>::quotient(a, b))
BINARY(FloorDiv, arithmetic<T>::floor_quotient(a, b))
BINARY(Mod, arithmetic<T>::remainder(a, b))
BINARY(FloorMod, arithmetic<T>::floor_remainder(a, b))
BINARY(Pow, arithmetic<T>::power(a, b))
BINARY(Atan2, atan2(a, b))
BINARY(Xdivy, a == 0 ? (C)0 : a / b)
BINARY(Xlogy, a == 0 ? (C)0 : a * log(b))
BINARY(AtLeast, a >= b ? (C)1 : (C)0)
BINARY(Keep, a != 0 ? b : (C)0)

// --- Gradients ------------------------------------------------------------------------------------------------------
// `a` is the function's value, `b` the gradient that arrives. If that gradient is 0, so is the result (also where the
// slope is infinite).
BINARY(ReciprocalGrad, b == 0 ? (C)0 : -(a * a) * b)
BINARY(SqrtGrad, b == 0 ? (C)0 : (C)0.5 / a * b)
BINARY(RsqrtGrad, b == 0 ? (C)0 : ((C)-0.5 * (a * a)) * (a * b))
BINARY(TanhGrad, b *rounded<T>((C)1 - rounded<T>(a * a)))
BINARY(SigmoidGrad, b *(a *((C)1 - a)))
// Here `a` is the gradient that arrives, and `b` the features or activations.
BINARY(ReluGrad, (U)a *(U)(b > 0))
BINARY(Relu6Grad, a *(C)(b > 0 && b < 6))
BINARY(EluGrad, b < 0 ? (b + (C)1) * a : a)
BINARY(SeluGrad, b < 0 ? a * (b + SELU_SCALE_ALPHA) : a * SELU_SCALE)
BINARY(SoftplusGrad, a / (exp(-b) + (C)1))
BINARY(SoftsignGrad, a / ((fabs(b) + (C)1) * (fabs(b) + (C)1)))

} // namespace tfc

#endif
