// Dense updates of variables by optimizers. One launch updates many variables; each gets blocks according to its size.
#include "runtime/device/cuda/kernels/rules.cuh"

namespace tfc {
namespace {

// Products that the compiler may not join with an addition that follows: it would round once instead of twice.
TFC_HD f32 product(f32 a, f32 b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
TFC_HD f64 product(f64 a, f64 b) {
#ifdef __CUDA_ARCH__
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

template <class Rule, class T, int SLOTS, int SCALARS> __global__ void dense_kernel(tfc_cuda_updates list) {
  typename number<T>::C h[SCALARS];
  int k = 0;
  while ((int)blockIdx.x >= list.ends[k]) k++;
  const tfc_cuda_dense &item = list.items[k];
  const int64_t begin = k ? list.ends[k - 1] : 0, blocks = list.ends[k] - begin;
  tfc_cuda_update u = {};
  u.var = item.var, u.grad = item.grad, u.longs = list.longs;
  for (int i = 0; i < SLOTS; i++) u.slots[i] = item.slots[i];
  for (int i = 0; i < SCALARS; i++) u.scalars[i] = item.scalars[i];
  scalars_of<T, SCALARS>(u, h);
  for (int64_t i = ((int64_t)blockIdx.x - begin) * blockDim.x + threadIdx.x; i < item.count; i += blocks * blockDim.x) {
    element<T, SLOTS> e;
    e.load(u, i);
    typename number<T>::C g = get(((const T *)u.grad)[i]);
    if (item.scale) g = rounded<T>(product(g, get(*(const T *)item.scale)));
    Rule::of(e.v, e.s, g, h, list.flag, false);
    e.store(u, i);
  }
}
template <template <class> class Rule, class T, int SLOTS, int SCALARS>
int apply(const tfc_cuda_updates *list, void *stream) {
  return launch(dense_kernel<Rule<typename number<T>::C>, T, SLOTS, SCALARS>, (unsigned)list->ends[list->count - 1],
                THREADS, stream, *list);
}

template <template <class> class Rule, int SLOTS, int SCALARS>
int by_type(int type, const tfc_cuda_updates *list, void *stream) {
  switch (type) {
#define TYPE_CASE(t, ...)                                                                                              \
  case OPS_DT_##t: return apply<Rule, t, SLOTS, SCALARS>(list, stream);
    OPS_FLOATS(TYPE_CASE, ~)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_apply(int rule, int type, struct tfc_cuda_updates *list, void *stream) {
  using namespace tfc;
  for (int i = 0; i < list->count; i++)
    list->ends[i] = (i ? list->ends[i - 1] : 0) + (int32_t)blocks_for(list->items[i].count);
#define RULE_CASE(name, slots, scalars)                                                                                \
  case TFC_CUDA_RULE_##name: return by_type<name##Rule, slots, scalars>(type, list, stream);
  switch (rule) {
    TFC_CUDA_RULES(RULE_CASE)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
