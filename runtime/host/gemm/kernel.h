// The interface of the micro-kernels; there is one for each instruction set. A panel of packed B is k-major with
// `width` columns, a stripe of packed A is k-major with 8 rows.
#ifndef TFC_RUNTIME_HOST_GEMM_KERNEL_H
#define TFC_RUNTIME_HOST_GEMM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/ops/last_pass.h"

enum { tfc_gemm_stripe = 8, TFC_GEMM_FEW_COLUMNS = 4, TFC_GEMM_NEIGHBOURS = 16 };

// How a tile of C is computed: it becomes the product, the product is added to it, or its chains of multiply-adds
// continue from C.
typedef enum tfc_gemm_mode { TFC_GEMM_SET, TFC_GEMM_ADD, TFC_GEMM_CONTINUE } tfc_gemm_mode;

struct tfc_gemm_turned;
struct tfc_gemm_stretch;
struct tfc_gemm_kernel {
  const char *name;
  int64_t width; // columns of a panel
  // Computes c[rows, columns] by `mode`; rows <= 8, columns <= width. `b_row`: elements from row to row of B, `width`
  // if it is packed; `width` columns of each row are read. `ahead`: count * k cache lines that will be needed soon and
  // are prefetched into the second-level cache meanwhile; equal to `b`: none; NULL: none, and B is in the first-level
  // cache already. A sum of `count` products with k terms
  // each, one after another in `a` and `b`, is added from left to right; `count` must be 1 to continue chains. `last`:
  // what follows on the tile's elements, or NULL.
  void (*tile)(int64_t count, int64_t k, const float *a, const float *b, int64_t b_row, const float *ahead, float *c,
               int64_t ldc, int64_t rows, int64_t columns, tfc_gemm_mode mode, const struct tfc_last_tile *last);
  // c[8, columns] = the product of packed B with 8 rows of A, which are read in place, in `pieces` of `length` elements
  // each: `rows` [pieces, 8]; or, if it `continues`, its chains of multiply-adds continue from c. `ahead`: length / 2
  // cache lines that will be needed soon, or NULL. `last` as for `tile`.
  void (*direct)(int64_t pieces, int64_t length, const float *const *rows, const float *b, const float *ahead, float *c,
                 int64_t ldc, int64_t columns, bool continues, const struct tfc_last_tile *last);
  // NULL, or as `direct`, for a whole panel and the first vector of the next one, whose packed B begins `more` elements
  // behind `b`.
  void (*wide)(int64_t pieces, int64_t length, const float *const *rows, const float *b, int64_t more,
               const float *ahead, float *c, int64_t ldc, bool continues, const struct tfc_last_tile *last);
  int64_t wide_columns; // width, and a vector's lanes
  // c[8, columns] = the product of packed B with 8 rows of A that lie in memory as the stretch says. `columns` may be
  // wide_columns: then `more` is as for `wide`. `last` as for `tile`.
  void (*scattered)(const struct tfc_gemm_stretch *a, const float *b, int64_t more, float *c, int64_t ldc,
                    int64_t columns, const struct tfc_last_tile *last);
  // As `direct`, for at most TFC_GEMM_FEW_COLUMNS columns of a B whose columns are contiguous, one after the other.
  // Each element is the sum of several chains: one for each lane of a vector. `length` is a multiple of
  // TFC_GEMM_NEIGHBOURS. 8 rows are read, and the first `height` rows of c written.
  void (*dots)(int64_t pieces, int64_t length, const float *const *rows, const float *b, float *c, int64_t ldc,
               int64_t height, int64_t columns, const struct tfc_last_tile *last);
  // c[rows, columns] = the rows of `a` times B; if `adds`, this product is added to c. `columns` may be wide_columns.
  void (*transposed)(const struct tfc_gemm_turned *a, const float *b, int64_t b_row, float *c, int64_t ldc,
                     int64_t columns, bool adds);
  // Transposes 8 rows in memory to 8 columns: out[i * step + r] = rows[r][i] for i < count.
  void (*pack)(const float *const *rows, int64_t count, float *out, int64_t step);
  // A vector x times a matrix in memory: c[j] = the sum over i < k of x[i * x_step] B(i, j), j < count. B(i, j) is
  // b[i * b_row + j], or b[j * b_row + i].
  void (*row_times)(int64_t k, const float *x, int64_t x_step, const float *b, int64_t b_row, int64_t count, float *c);
  void (*columns_times)(int64_t k, const float *x, int64_t x_step, const float *b, int64_t b_row, int64_t count,
                        float *c);
  // As row_times, for m rows: c[r * ldc + j] = the sum over i < k of a[r * a_row + i * a_column] B(i, j), r < m.
  void (*few_times)(int64_t m, int64_t k, const float *a, int64_t a_row, int64_t a_column, const float *b,
                    int64_t b_row, int64_t count, float *c, int64_t ldc);
};
extern const struct tfc_gemm_kernel tfc_gemm_kernel_generic;
#if defined(__x86_64__)
extern const struct tfc_gemm_kernel tfc_gemm_kernel_avx2, tfc_gemm_kernel_avx512;
#endif

#endif
