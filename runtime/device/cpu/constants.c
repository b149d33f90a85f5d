#include "runtime/device/cpu/constants.h"

#include <stdlib.h>

enum { LEAST_ROWS = 12 };

float *tfc_cpu_pack_constant(const struct tfc_device *device, struct tfc_matrix b, int64_t rows, int64_t k, int64_t n) {
  if (rows < LEAST_ROWS || n < 2 || k < 1 || device->info.memory != UINT64_MAX) return NULL;
  float *packed = aligned_alloc(64, (tfc_gemm_packed_bytes(k, n) + 63) / 64 * 64);
  if (packed) tfc_gemm_pack(b, k, n, 0, tfc_gemm_panels(n), packed);
  return packed;
}
