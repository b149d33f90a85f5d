// Optimizers on rows: whoever has the first position that names a row works through its chain.
#include "runtime/device/cuda/kernels/rules.cuh"

namespace tfc {
namespace {

template <class Rule, class T, int SLOTS, int SCALARS> __global__ void rows_kernel(tfc_cuda_update u) {
  typename number<T>::C h[SCALARS];
  scalars_of<T, SCALARS>(u, h);
  for (int64_t i = first(); i < u.positions * u.count; i += stride()) {
    int64_t column, at = divide(i, u.count, &column), row = u.row[at];
    if (u.next[at] < -1 || row < 0) continue; // not the first of its chain
    element<T, SLOTS> e;
    e.load(u, row * u.count + column);
    while (at >= 0) {
      Rule::of(e.v, e.s, get(((const T *)u.grad)[at * u.count + column]), h, u.flag, true);
      e.round(); // between two updates memory would have
      int32_t next = u.next[at];
      at = next < -1 ? next + TFC_CUDA_LATER : next;
    }
    e.store(u, row * u.count + column);
  }
}
template <template <class> class Rule, class T, int SLOTS, int SCALARS>
int apply(const tfc_cuda_update *u, void *stream) {
  return launch(rows_kernel<Rule<typename number<T>::C>, T, SLOTS, SCALARS>, blocks_for(u->positions * u->count),
                THREADS, stream, *u);
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

TFC_CUDA_API int tfc_cuda_apply_rows(int rule, int type, const tfc_cuda_update *u, void *stream) {
  using namespace tfc;
#define RULE_CASE(name, slots, scalars)                                                                                \
  case TFC_CUDA_RULE_##name: return by_type<name##Rule, slots, scalars>(type, u, stream);
  switch (rule) {
    TFC_CUDA_ROW_RULES(RULE_CASE)
  default: return TFC_CUDA_INVALID_VALUE;
  }
}
