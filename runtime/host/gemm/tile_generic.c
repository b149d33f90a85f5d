// The inner loops of products (tile.inc) for every processor.
#define LANES 4
#define VECTORS 2
#define ROWS 4
#include "runtime/host/gemm/tile.inc"
#include "runtime/host/gemm/vector.inc"

const struct tfc_gemm_kernel tfc_gemm_kernel_generic = {"generic", VECTORS *LANES, tile,     direct_tile,     NULL,
                                                        0,         scattered_tile, dots,     transposed_tile, pack,
                                                        row_times, columns_times,  few_times};
