// The inner loops of products (tile.inc) with AVX-512.
#if defined(__x86_64__)
#define LANES 16
#define VECTORS 3
#define ROWS 8
#define WIDER_BY_ONE
#if defined(__GNUC__) && !defined(__clang__)
#define MULTIPLY_BY_MEMORY(acc, a, b) __asm__("vfmadd231ps %1%{1to16%}, %2, %0" : "+v"(acc) : "m"(a), "v"(b))
#endif
#include "runtime/host/gemm/tile.inc"
#include "runtime/host/gemm/vector.inc"

const struct tfc_gemm_kernel tfc_gemm_kernel_avx512 = {
    "avx512",        VECTORS *LANES, tile,      direct_tile,   wide_tile, (VECTORS + 1) * LANES, scattered_tile, dots,
    transposed_tile, pack,           row_times, columns_times, few_times};
#endif
