// Pairs are sorted by CUB's radix sort: stable, its work grows with the number of pairs and of bits, it allocates
// nothing and waits for nothing, so that it can be captured. On the CPU (host.h) the standard library sorts.
#include "runtime/device/cuda/kernels/sort.h"

#include "runtime/device/cuda/kernels/device.cuh"

#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#include <vector>
#endif

TFC_CUDA_API int tfc_cuda_sort_pairs(tfc_cuda_pairs *pairs, int32_t n, int bits, void *scratch, size_t *bytes,
                                     void *stream) {
  const int from = pairs->current, to = 1 - from;
#ifdef __CUDACC__
  cub::DoubleBuffer<uint32_t> keys(pairs->keys[from], pairs->keys[to]);
  cub::DoubleBuffer<int32_t> values(pairs->values[from], pairs->values[to]);
  if (scratch) (void)cudaGetLastError(); // CUB takes what another library has left for its own
  int error =
      (int)cub::DeviceRadixSort::SortPairs(scratch, *bytes, keys, values, (uint32_t)n, 0, bits, (cudaStream_t)stream);
  if (error || !scratch) return error;
  pairs->current = keys.selector ? to : from;
#else
  if (!scratch) {
    *bytes = 1;
    return 0;
  }
  const tfc_cuda_pairs p = *pairs;
  int error = tfc::host_enqueue(stream, [=] {
    const uint32_t mask = bits < 32 ? (1u << bits) - 1 : UINT32_MAX;
    tfc_host_begin();
    std::vector<int32_t> order((size_t)n);
    for (int32_t i = 0; i < n; i++) order[(size_t)i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return (p.keys[from][a] & mask) < (p.keys[from][b] & mask); });
    for (int32_t i = 0; i < n; i++) {
      p.keys[to][i] = p.keys[from][order[(size_t)i]];
      p.values[to][i] = p.values[from][order[(size_t)i]];
    }
    tfc_host_end();
  });
  if (error) return error;
  pairs->current = to;
#endif
  tfc_cuda_count_launch(); // at least one
  return 0;
}
