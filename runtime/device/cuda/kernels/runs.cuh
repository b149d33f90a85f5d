// Runs of struct tfc_cuda_runs: consecutive places whose positions name the same row.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_RUNS_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_RUNS_CUH

#include "runtime/device/cuda/kernels/device.cuh"
#include "runtime/device/cuda/kernels/update.h"

namespace tfc {

// Whether a run begins at place `at`. (Positions with a row out of range form no run.)
TFC_HD bool begins_run(const tfc_cuda_runs &r, int64_t at) {
  return r.row[at] < r.none && (at == 0 || r.row[at - 1] != r.row[at]);
}

// Calls each(data[position, column]) for the run that begins at `at`, in the order of the positions. The result of each
// call is an argument of the next one, so elements are read some positions ahead: a run may contain all positions.
template <class T, class F>
TFC_HD void each_of_run(const tfc_cuda_runs &r, int64_t at, const T *data, int64_t width, int64_t column, F &each) {
  const int AHEAD = 4;
  const uint32_t row = r.row[at];
  for (int count = AHEAD; count == AHEAD; at += AHEAD) {
    T next[AHEAD] = {};
    count = 0;
    for (int k = 0; k < AHEAD; k++)
      if (at + k < r.positions && r.row[at + k] == row) {
        next[k] = data[r.position[at + k] * width + column];
        count = k + 1;
      }
    for (int k = 0; k < AHEAD; k++)
      if (k < count) each(next[k]);
  }
}

} // namespace tfc

#endif
