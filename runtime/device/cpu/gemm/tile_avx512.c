#if defined(__x86_64__)
#define LANES 16
#define VECTORS 3
#define ROWS 8
#include "runtime/device/cpu/gemm/tile.inc"

const struct tfc_gemm_kernel tfc_gemm_kernel_avx512 = {"avx512", VECTORS *LANES, tile, direct_tile, pack};
#endif
