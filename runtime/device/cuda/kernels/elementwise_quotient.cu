// Quotients, remainders, powers.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

// By zero: 0 for integers (the host's kernel fails, a GPU cannot).
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

} // namespace

TFC_CUDA_BINARY_QUOTIENT(DEFINE_BINARY)

} // namespace tfc
