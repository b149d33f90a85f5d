// Runs a chain with sums of rows. The lanes of a group of threads (group.cuh) share a row, with the elements that each
// has in a reduction (reduce.cuh), so a sum is added up in the same order. A lane keeps its elements of every value in
// its own registers, or in memory that no other lane touches; what there is once for a row, each lane computes for
// itself, and the first one writes it.
#include "runtime/device/cuda/kernels/chain.cuh"
#include "runtime/device/cuda/kernels/reduce.cuh"

namespace tfc {
namespace {

const int WIDE = 4; // neighbouring elements of a lane, as in a reduction of float32

struct piece { // of a pack of a lane's elements
  int64_t row, column;
  int count; // how many of the pack's elements are in the row
};

TFC_HD pack<f32, WIDE> load(const tfc_cuda_chain_operand &o, const piece &p) {
  pack<f32, WIDE> x = {{0, 0, 0, 0}};
  if (p.count <= 0) return x;
  const f32 *at = address(o, p.row, p.column);
  if (!o.column) {
    for (int i = 0; i < WIDE; i++) x.v[i] = *at;
  } else if (p.count == WIDE && (uintptr_t)at % sizeof x == 0) {
    x = *(const pack<f32, WIDE> *)at;
  } else {
    for (int i = 0; i < p.count; i++) x.v[i] = at[i];
  }
  return x;
}

TFC_HD void store(const tfc_cuda_chain_operand &o, const piece &p, const pack<f32, WIDE> &x) {
  if (p.count <= 0 || (!o.column && p.column)) return;
  f32 *at = address(o, p.row, p.column);
  if (!o.column) {
    *at = x.v[0];
  } else if (p.count == WIDE && (uintptr_t)at % sizeof x == 0) {
    *(pack<f32, WIDE> *)at = x;
  } else {
    for (int i = 0; i < p.count; i++) at[i] = x.v[i];
  }
}

// K: the most packs that a lane has.
template <int K> __global__ void chain_rows_kernel(tfc_cuda_chain c, int32_t lanes) {
  __shared__ f32 shared[THREADS];
  pack<f32, WIDE> registers[TFC_CUDA_CHAIN_REGISTERS][K];
  piece places[K];
  int local;
  const group g = group_of((int)threadIdx.x, lanes, true, &local);
  const int64_t width = THREADS / lanes, blocks = (c.rows + width - 1) / width;
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const int64_t row = b * width + local;
    for (int k = 0; k < K; k++) {
      const int64_t column = ((int64_t)k * lanes + g.lane) * WIDE;
      const int64_t left = row < c.rows ? smaller((int64_t)WIDE, c.columns - column) : 0;
      places[k].row = row, places[k].column = column, places[k].count = (int)left;
    }
    for (int s = 0; s < c.step_count; s++) {
      const tfc_cuda_chain_step step = c.steps[s];
      pack<f32, WIDE> y[K];
      for (int k = 0; k < K; k++) {
        const pack<f32, WIDE> x = step.a < 0 ? registers[-1 - step.a][k] : load(c.operands[step.a], places[k]);
        y[k] = x;
        if (step.expression < TFC_CUDA_CHAIN_FIRST_BINARY)
          y[k] = compute<WIDE>(step.expression, x, x);
        else if (step.expression < TFC_CUDA_CHAIN_COPY)
          y[k] = compute<WIDE>(step.expression, x,
                               step.b < 0 ? registers[-1 - step.b][k] : load(c.operands[step.b], places[k]));
      }
      if (step.expression > TFC_CUDA_CHAIN_COPY) {
        const sum_of<f32> join;
        f32 sum = join.none();
        for (int k = 0; k < K; k++)
          for (int i = 0; i < places[k].count; i++) sum = join(sum, join.first(y[k].v[i]));
        sum = join_group(sum, shared, g, join);
        sum =
            finished(sum, step.expression == TFC_CUDA_CHAIN_ROW_MEAN ? TFC_CUDA_FINISH_DIVIDE : TFC_CUDA_FINISH_NOTHING,
                     c.columns);
        for (int k = 0; k < K; k++)
          for (int i = 0; i < WIDE; i++) y[k].v[i] = sum;
      }
      for (int k = 0; k < K; k++)
        if (step.out < 0)
          registers[-1 - step.out][k] = y[k];
        else
          store(c.operands[step.out], places[k], y[k]);
    }
  }
}

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_chain_run_rows(const struct tfc_cuda_chain *chain, int32_t lanes, void *stream) {
  using namespace tfc;
  if (lanes < 1 || lanes > THREADS || chain->columns > (int64_t)lanes * WIDE * TFC_CUDA_ROW_PACKS)
    return TFC_CUDA_INVALID_VALUE;
  const unsigned blocks = blocks_for(chain->rows, THREADS / lanes);
  if (chain->columns <= (int64_t)lanes * WIDE)
    return launch_shared(chain_rows_kernel<1>, blocks, THREADS, stream, *chain, lanes);
  return launch_shared(chain_rows_kernel<TFC_CUDA_ROW_PACKS>, blocks, THREADS, stream, *chain, lanes);
}
