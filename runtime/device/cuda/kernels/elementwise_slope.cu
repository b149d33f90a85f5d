// Gradients of element-wise functions, and leaky rectifiers.
#include "runtime/device/cuda/kernels/elementwise.cuh"

namespace tfc {
namespace {

#define SELU_SCALE ((C)1.0507009873554804934193349852946)
#define SELU_SCALE_ALPHA ((C)1.7580993408473768599402175208123)

// Computed from the function's value `a` and the arriving gradient `b`; a gradient of 0 gives 0 (also where the slope
// is infinite).
BINARY(ReciprocalGrad, b == 0 ? (C)0 : -(a * a) * b)
BINARY(SqrtGrad, b == 0 ? (C)0 : (C)0.5 / a * b)
BINARY(RsqrtGrad, b == 0 ? (C)0 : ((C)-0.5 * (a * a)) * (a * b))
BINARY(TanhGrad, b *rounded<T>((C)1 - rounded<T>(a * a)))
BINARY(SigmoidGrad, b *(a *((C)1 - a)))
// Of the gradient that arrives, `a`, and the features or activations, `b`.
BINARY(ReluGrad, (U)a *(U)(b > 0))
BINARY(Relu6Grad, a *(C)(b > 0 && b < 6))
BINARY(EluGrad, b < 0 ? (b + (C)1) * a : a)
BINARY(SeluGrad, b < 0 ? a * (b + SELU_SCALE_ALPHA) : a * SELU_SCALE)
BINARY(SoftplusGrad, a / (exp(-b) + (C)1))
BINARY(SoftsignGrad, a / ((fabs(b) + (C)1) * (fabs(b) + (C)1)))

template <class T> struct Leaky {
  typedef typename number<T>::C C;
  double alpha;
  TFC_HD T of(T stored) const {
    const C x = get(stored);
    return put<T>(x > 0 ? x : x * (C)alpha);
  }
  TFC_HD T of(T features, T gradient) const {
    const C g = get(gradient);
    return put<T>(get(features) > 0 ? g : g * (C)alpha);
  }
};

} // namespace

TFC_CUDA_BINARY_SLOPES(DEFINE_BINARY)

#define LEAKY_CASE(t, ...)                                                                                             \
  case TFC_CUDA_##t: return unary<Leaky<t>, t, t>(plan, x, y, stream, Leaky<t>{alpha});
TFC_CUDA_API int tfc_cuda_leaky_relu(int type, const tfc_cuda_broadcast *plan, const void *x, void *y, double alpha,
                                     void *stream) {
  switch (type) {
    TFC_CUDA_FLOATS(LEAKY_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
#define LEAKY_GRAD_CASE(t, ...)                                                                                        \
  case TFC_CUDA_##t: return binary<Leaky<t>, t, t>(plan, x, g, y, stream, Leaky<t>{alpha});
TFC_CUDA_API int tfc_cuda_leaky_relu_grad(int type, const tfc_cuda_broadcast *plan, const void *x, const void *g,
                                          void *y, double alpha, void *stream) {
  switch (type) {
    TFC_CUDA_FLOATS(LEAKY_GRAD_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace tfc
