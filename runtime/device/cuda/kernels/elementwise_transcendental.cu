// Exponentials, logarithms and trigonometric functions of one operand, and what activations make of them.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

// Klambauer et al. 2017.
#define SELU_SCALE ((C)1.0507009873554804934193349852946)
#define SELU_SCALE_ALPHA ((C)1.7580993408473768599402175208123)

// log of where log(1 + exp(x)) is x or exp(x) to the last bit of the type that stores it, plus 2.
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

} // namespace

TFC_CUDA_UNARY_TRANSCENDENTAL(DEFINE_UNARY)

} // namespace tfc
