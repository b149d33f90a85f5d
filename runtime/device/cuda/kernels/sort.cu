// Pairs are sorted by CUB's radix sort. It is stable, its work grows with the number of pairs and of bits, and it can
// be captured, because it neither allocates nor waits. On the CPU (host.h) the standard library sorts.
#include "runtime/device/cuda/kernels/sort.h"

#include "runtime/device/cuda/kernels/device.cuh"

#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>
#else
#include <algorithm>
#include <vector>
#endif

namespace tfc {
namespace {

size_t buffer_bytes(int32_t count) {
  return ((size_t)count * 4 + 255) / 256 * 256;
}

// If `scratch` is NULL, it only sets *bytes.
#ifdef __CUDACC__
int sort(tfc_cuda_pairs *p, int bits, void *scratch, size_t *bytes, void *stream) {
  const int from = p->current, to = 1 - from;
  cub::DoubleBuffer<uint32_t> keys(p->keys[from], p->keys[to]);
  cub::DoubleBuffer<int32_t> values(p->values[from], p->values[to]);
  if (scratch) (void)cudaGetLastError(); // otherwise CUB would report an error that another library left
  int error = (int)cub::DeviceRadixSort::SortPairs(scratch, *bytes, keys, values, (uint32_t)p->count, 0, bits,
                                                   (cudaStream_t)stream);
  if (scratch && !error && keys.selector) p->current = to;
  return error;
}
#else
int sort(tfc_cuda_pairs *pairs, int bits, void *scratch, size_t *bytes, void *stream) {
  const tfc_cuda_pairs p = *pairs;
  const int from = p.current, to = 1 - from;
  *bytes = 1;
  if (!scratch) return 0;
  pairs->current = to;
  return host_enqueue(stream, [=] {
    const uint32_t mask = bits < 32 ? (1u << bits) - 1 : UINT32_MAX;
    tfc_host_begin();
    std::vector<int32_t> order((size_t)p.count);
    for (int32_t i = 0; i < p.count; i++) order[(size_t)i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return (p.keys[from][a] & mask) < (p.keys[from][b] & mask); });
    for (int32_t i = 0; i < p.count; i++) {
      p.keys[to][i] = p.keys[from][order[(size_t)i]];
      p.values[to][i] = p.values[from][order[(size_t)i]];
    }
    tfc_host_end();
  });
}
#endif

} // namespace
} // namespace tfc

TFC_CUDA_API int tfc_cuda_pairs_bytes(int32_t count, size_t *out) {
  tfc_cuda_pairs none = {};
  size_t bytes = 0;
  none.count = count;
  int error = tfc::sort(&none, 32, NULL, &bytes, NULL);
  *out = 4 * tfc::buffer_bytes(count) + bytes;
  return error;
}
TFC_CUDA_API int tfc_cuda_pairs_in(int32_t count, void *memory, tfc_cuda_pairs *out) {
  const size_t step = tfc::buffer_bytes(count);
  char *at = (char *)memory;
  size_t bytes = 0;
  int error = tfc_cuda_pairs_bytes(count, &bytes);
  tfc_cuda_pairs p = {count,
                      0,
                      {(uint32_t *)at, (uint32_t *)(at + step)},
                      {(int32_t *)(at + 2 * step), (int32_t *)(at + 3 * step)},
                      at + 4 * step,
                      bytes - 4 * step};
  *out = p;
  return error;
}
TFC_CUDA_API int tfc_cuda_sort_pairs(tfc_cuda_pairs *pairs, int bits, void *stream) {
  size_t bytes = pairs->scratch_bytes;
  int error = tfc::sort(pairs, bits, pairs->scratch, &bytes, stream);
  if (!error) tfc_cuda_count_launch(); // CUB made at least one launch
  return error;
}
