// Gradients of element-wise functions, and leaky rectifiers.
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {
namespace {

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
  case OPS_DT_##t: return unary<Leaky<t>, t, t>(plan, x, y, stream, Leaky<t>{alpha});
TFC_CUDA_API int tfc_cuda_leaky_relu(int type, const tfc_cuda_broadcast *plan, const void *x, void *y, double alpha,
                                     void *stream) {
  switch (type) {
    OPS_FLOATS(LEAKY_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
#define LEAKY_GRAD_CASE(t, ...)                                                                                        \
  case OPS_DT_##t: return binary<Leaky<t>, t, t>(plan, x, g, y, stream, Leaky<t>{alpha});
TFC_CUDA_API int tfc_cuda_leaky_relu_grad(int type, const tfc_cuda_broadcast *plan, const void *x, const void *g,
                                          void *y, double alpha, void *stream) {
  switch (type) {
    OPS_FLOATS(LEAKY_GRAD_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace tfc
