// Optimizer updates by rows: the thread with the first position that names a row applies the updates of all positions
// that name it.
#include "runtime/device/cuda/kernels/rules.cuh"
#include "runtime/device/cuda/kernels/runs.cuh"

namespace tfc {
namespace {

template <class Rule, class T, int SLOTS> struct row_update {
  const tfc_cuda_update &u;
  const typename number<T>::C *h;
  element<T, SLOTS> e;
  TFC_HD void operator()(T gradient) {
    Rule::of(e.v, e.s, get(gradient), h, u.flag, true);
    e.round(); // as if the element were stored between two updates
  }
};
template <class Rule, class T, int SLOTS, int SCALARS> __global__ void rows_kernel(tfc_cuda_update u) {
  typename number<T>::C h[SCALARS];
  scalars_of<T, SCALARS>(u, h);
  for (int64_t i = first(); i < u.runs.positions * u.count; i += stride()) {
    int64_t column, at = divide(i, u.count, &column);
    if (!begins_run(u.runs, at)) continue;
    int64_t place = u.runs.row[at] * u.count + column;
    row_update<Rule, T, SLOTS> update = {u, h, {}};
    update.e.load(u, place);
    each_of_run(u.runs, at, (const T *)u.grad, u.count, column, update);
    update.e.store(u, place);
  }
}
template <template <class> class Rule, class T, int SLOTS, int SCALARS>
int apply(const tfc_cuda_update *u, void *stream) {
  return launch(rows_kernel<Rule<typename number<T>::C>, T, SLOTS, SCALARS>, blocks_for(u->runs.positions * u->count),
                THREADS, stream, *u);
}

template <template <class> class Rule, int SLOTS, int SCALARS>
int by_type(int type, const tfc_cuda_update *u, void *stream) {
  switch (type) {
#define TYPE_CASE(t, ...)                                                                                              \
  case OPS_DT_##t: return apply<Rule, t, SLOTS, SCALARS>(u, stream);
    OPS_FLOATS(TYPE_CASE, ~)
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
