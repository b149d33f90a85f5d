// Runs a chain of element-wise operations. A thread computes all steps for its elements; values that pass from step to
// step stay in its registers, or in memory that no other thread touches.
#include "runtime/device/cuda/kernels/chain.cuh"

namespace tfc {
namespace {

const int WIDE = 4; // elements that a thread computes at once if the length of rows and the addresses allow it

template <int V>
TFC_HD pack<f32, V> operand(const tfc_cuda_chain &c, int from, const pack<f32, V> *registers, int64_t row,
                            int64_t column) {
  if (from < 0) return registers[-1 - from];
  const tfc_cuda_chain_operand &o = c.operands[from];
  const f32 *at = address(o, row, column);
  pack<f32, V> x;
  if (o.column) return *(const pack<f32, V> *)at;
  for (int i = 0; i < V; i++) x.v[i] = *at;
  return x;
}

template <int V> __global__ void chain_kernel(tfc_cuda_chain c) {
  pack<f32, V> registers[TFC_CUDA_CHAIN_REGISTERS];
  const int64_t groups = c.columns / V;
  for (int64_t g = first(); g < c.rows * groups; g += stride()) {
    int64_t column, row = divide(g, groups, &column);
    column *= V;
    for (int s = 0; s < c.step_count; s++) {
      const tfc_cuda_chain_step step = c.steps[s];
      const pack<f32, V> a = operand<V>(c, step.a, registers, row, column);
      const pack<f32, V> b =
          step.expression < TFC_CUDA_CHAIN_FIRST_BINARY ? a : operand<V>(c, step.b, registers, row, column);
      const pack<f32, V> y = compute<V>(step.expression, a, b);
      if (step.out < 0)
        registers[-1 - step.out] = y;
      else
        *(pack<f32, V> *)address(c.operands[step.out], row, column) = y;
    }
  }
}

bool is_wide(const tfc_cuda_chain &c) {
  bool wide = c.columns % WIDE == 0;
  for (int i = 0; i < c.operand_count; i++) {
    const tfc_cuda_chain_operand &o = c.operands[i];
    wide = wide && (!o.column || ((uintptr_t)o.data % (WIDE * sizeof(f32)) == 0 && o.row % WIDE == 0));
  }
  return wide;
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_chain_run(const struct tfc_cuda_chain *chain, void *stream) {
  using namespace tfc;
  const int64_t n = chain->rows * chain->columns;
  if (is_wide(*chain)) return launch(chain_kernel<WIDE>, blocks_for(n / WIDE), THREADS, stream, *chain);
  return launch(chain_kernel<1>, blocks_for(n), THREADS, stream, *chain);
}
