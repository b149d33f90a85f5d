// Matrix products in float32 on the tile unit of processors that have one (AMX with bfloat16).
//
// Each operand is split into three bfloat16 numbers, x = x0 + x1 + x2, which together have its 24 bits, and
//
//   a b = a0 b0 + (a0 b1 + a1 b0) + (a0 b2 + a1 b1 + a2 b0) + what is below 2^-24 |a b|
//
// is summed in float32 (G. Henry, P. Tang, A. Heinecke: Leveraging the bfloat16 artificial intelligence datatype for
// higher-precision computations, 2019). So a product is as accurate as one by multiply-adds in float32, but it is
// rounded differently, so such products are for `--rewrites all`. The tile unit takes a third of the time for the six
// multiplications that vector instructions take for one multiply-add. Factors and products below 2^-100 lose their last
// bits.
//
// A and B are packed: stripes of 32 rows of A, panels of 32 columns of B, each in blocks of 32 k; a block is two tiles
// of 16 rows or columns for each of the three pieces. k and k + 16 of a block lie side by side. Any thread; nothing
// here allocates or locks.
#ifndef TFC_RUNTIME_HOST_GEMM_SPLIT_H
#define TFC_RUNTIME_HOST_GEMM_SPLIT_H

#include "runtime/host/gemm/gemm.h"

enum {
  TFC_SPLIT_SIDE = 32,             // rows of a stripe, and columns of a panel
  TFC_SPLIT_K = 32,                // values of k in a block
  TFC_SPLIT_GROUP = 18,            // blocks of k that are computed at once
  TFC_SPLIT_BLOCK = 6 * 1024,      // bytes of a block
  TFC_SPLIT_ROWS = 256,            // rows of A that are packed at once
  TFC_SPLIT_SCRATCH = 1020 * 1024, // bytes for each thread that calls tfc_split_run
};

// Whether the processor has a tile unit and the system allows this process to use it (the first call asks for that).
bool tfc_split_available(void);
// Whether products with `k` in all, in `blocks` blocks, take less time on the tile unit than by multiply-adds. `ready`:
// B is packed.
bool tfc_split_pays(int64_t m, int64_t n, int64_t k, int64_t blocks, bool ready);
// Whether the tile unit of the calling core currently runs at its full speed. Call it only if tfc_split_available. An
// answer is kept for half a millisecond; measuring the unit's speed anew takes two or three microseconds.
bool tfc_split_is_fast(void);
// Reports that the calling thread has finished a product that it began at `since`, by the clock below. The next answers
// of tfc_split_is_fast take the measured time into account.
void tfc_split_took(bool on_unit, double flop, uint64_t since);
uint64_t tfc_split_clock(void);
// For tests of products on the tile unit: `always` makes tfc_split_is_fast true, without measuring the unit's speed.
void tfc_split_suppose_fast(bool always);
// Sets up eight tiles of 16 rows of 64 bytes, for this thread, until it releases them.
void tfc_split_configure(void);

static inline int64_t tfc_split_blocks(int64_t k) {
  return (k + TFC_SPLIT_K - 1) / TFC_SPLIT_K;
}
static inline int64_t tfc_split_sides(int64_t n) { // stripes of n rows, panels of n columns
  return (n + TFC_SPLIT_SIDE - 1) / TFC_SPLIT_SIDE;
}
static inline size_t tfc_split_packed_bytes(int64_t k, int64_t n) { // for B [k, n]; align it to 64
  return (size_t)(tfc_split_sides(n) * tfc_split_blocks(k)) * TFC_SPLIT_BLOCK;
}

// A matrix given by strides, or by rows that lie anywhere in memory (the pixels that one cell of a window covers).
struct tfc_split_matrix {
  struct tfc_matrix matrix;
  // NULL: given by strides. Otherwise returns pointers to rows [first, first + count) or, if `transposed`, to columns
  // (for an A).
  void (*rows)(const void *arg, int64_t first, int64_t count, const float **out);
  const void *arg;
  bool transposed;
};

// Packs panels [first, last) of B [k, n]; panel p begins at packed + p * blocks * TFC_SPLIT_BLOCK. False: a number is
// too large to be split (2^127 and above, infinite, NaN); the products may then be NaN.
bool tfc_split_pack_b(const struct tfc_split_matrix *b, int64_t k, int64_t n, int64_t first, int64_t last,
                      void *packed);
struct tfc_split_product { // one of a sum
  struct tfc_split_matrix a, b;
  const void *packed_b; // NULL: B is packed panel by panel during the product, again for each TFC_SPLIT_ROWS rows
  int64_t k;
};
// C [m, n] (row-major, `ldc` elements from row to row) becomes the sum of the products, or C plus that sum. Writes rows
// [row_first, row_last) of panels [first, last); `row_first` is a multiple of 32. False as for tfc_split_pack_b.
bool tfc_split_run(const struct tfc_split_product *products, int64_t product_count, int64_t n, float *c, int64_t ldc,
                   bool accumulate, int64_t row_first, int64_t row_last, int64_t first, int64_t last, void *scratch);

#endif
