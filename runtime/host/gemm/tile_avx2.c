// The inner loops of products (tile.inc) with AVX2.
#if defined(__x86_64__)
#define LANES 8
#define VECTORS 3
#define ROWS 4
#define BRINGS_PANELS 0
#if defined(__GNUC__) && !defined(__clang__)
#define MULTIPLY(acc, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+x"(acc) : "x"(a), "x"(b))
#endif
#include "runtime/host/gemm/tile.inc"
#include "runtime/host/gemm/vector.inc"

const struct tfc_gemm_kernel tfc_gemm_kernel_avx2 = {"avx2",    VECTORS *LANES, tile,     direct_tile,     NULL,
                                                     0,         scattered_tile, dots,     transposed_tile, pack,
                                                     row_times, columns_times,  few_times};
#endif
