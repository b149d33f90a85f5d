// Groups: threads of a block that compute one result together.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_GROUP_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_GROUP_CUH

#include "runtime/device/cuda/kernels/device.cuh"

namespace tfc {

// The thread is number `lane` of `lanes` in its group; neighbours in the group are `step` threads of the block apart.
struct group {
  int lane, lanes, step;
};

template <class C> struct plus {
  TFC_HD C operator()(C a, C b) const { return a + b; }
};

// Combines the values of a group's threads pairwise; every thread of the group gets the result. All threads of the
// block must call it.
template <class A, class J> __device__ __forceinline__ A join_group(A value, A *shared, group g, J join) {
  int t = (int)threadIdx.x;
  __syncthreads();
  shared[t] = value;
  for (int w = g.lanes / 2; w > 0; w /= 2) {
    __syncthreads();
    if (g.lane < w) shared[t] = join(shared[t], shared[t + w * g.step]);
  }
  __syncthreads();
  return shared[t - g.lane * g.step];
}

} // namespace tfc

#endif
