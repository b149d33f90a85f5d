// Optimizers on whole variables.
#include "runtime/device/cuda/kernels/rules.cuh"

namespace tfc {
namespace {

template <class Rule, class T, int SLOTS, int SCALARS> __global__ void dense_kernel(tfc_cuda_update u) {
  typename number<T>::C h[SCALARS];
  scalars_of<T, SCALARS>(u, h);
  for (int64_t i = first(); i < u.count; i += stride()) {
    element<T, SLOTS> e;
    e.load(u, i);
    Rule::of(e.v, e.s, get(((const T *)u.grad)[i]), h, u.flag, false);
    e.store(u, i);
  }
}
template <template <class> class Rule, class T, int SLOTS, int SCALARS>
int apply(const tfc_cuda_update *u, void *stream) {
  return launch(dense_kernel<Rule<typename number<T>::C>, T, SLOTS, SCALARS>, blocks_for(u->count), THREADS, stream,
                *u);
}

template <template <class> class Rule, int SLOTS, int SCALARS>
int by_type(int type, const tfc_cuda_update *u, void *stream) {
  switch (type) {
#define TYPE_CASE(t, ...)                                                                                              \
  case TFC_CUDA_##t: return apply<Rule, t, SLOTS, SCALARS>(u, stream);
    TFC_CUDA_FLOATS(TYPE_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_apply(int rule, int type, const tfc_cuda_update *u, void *stream) {
  using namespace tfc;
#define RULE_CASE(name, slots, scalars)                                                                                \
  case TFC_CUDA_RULE_##name: return by_type<name##Rule, slots, scalars>(type, u, stream);
  switch (rule) {
    TFC_CUDA_RULES(RULE_CASE)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
