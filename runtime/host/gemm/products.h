// Matrix products on the cores of a device: decides which operands are packed and how the work is split.
#ifndef TFC_RUNTIME_HOST_GEMM_PRODUCTS_H
#define TFC_RUNTIME_HOST_GEMM_PRODUCTS_H

#include "runtime/host/gemm/gemm.h"
#include "runtime/host/gemm/split.h"
#include "runtime/ops/kernel.h"

// A B that is not stored as a matrix: `pack` packs rows [first, last) of one panel. Any thread.
struct tfc_gemm_right {
  void (*pack)(const struct tfc_gemm_right *right, int64_t first, int64_t last, int64_t panel, float *out);
};
struct tfc_product { // A [m, k] B [k, n]
  struct tfc_matrix a, b;
  const struct tfc_gemm_source *source; // if not NULL, A comes from here
  const float *packed_b;                // B packed by tfc_gemm_pack; NULL: `b` is packed here if that pays
  const struct tfc_gemm_right *right;   // if not NULL, B comes from here; for one product if tfc_panels_pay (panels.h)
  const void *split_b;                  // B packed by tfc_split_pack_b: the sum is computed on the tile unit
  int64_t k;
};

// C [m, n], row-major and contiguous, becomes the sum of the products, from left to right, or C plus that sum
// (`accumulate`). All cores of the device work on it. Uses the tile unit (split.h) if other rounding is allowed
// (ctx->rounding) and the unit is faster; numbers that are too large to be split are detected, except in a B that is
// already packed.
TFC_MUST_USE tfc_status tfc_products_run(struct tfc_kernel_ctx *ctx, const struct tfc_product *products, int64_t count,
                                         int64_t m, int64_t n, bool accumulate, float *c);
// As tfc_products_run, for one product that is not added to C. A thread that has computed whole rows of C also finishes
// them (ctx->finish, if there is one).
TFC_MUST_USE tfc_status tfc_products_run_finished(struct tfc_kernel_ctx *ctx, const struct tfc_product *product,
                                                  int64_t m, int64_t n, float *c);
// Computes the sum on the calling thread only; `split`: on the tile unit, if that is faster.
TFC_MUST_USE tfc_status tfc_products_run_serial(const struct tfc_product *products, int64_t count, int64_t m, int64_t n,
                                                bool split, float *c);
// Whether this operation may use the tile unit: if rounding may change, on a device of one core that is alone in its
// session (on four cores of one processor, the units' speed was measured to fall to a third at times).
bool tfc_products_may_split(const struct tfc_kernel_ctx *ctx);
// Whether the operation may use the tile unit and is faster with it (tfc_split_pays), at the unit's current speed.
bool tfc_products_choose_split(const struct tfc_kernel_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t blocks,
                               bool ready);
// Computes the sum on the tile unit, in the calling thread. *out_fits false: numbers were too large, and the content of
// C is undefined.
TFC_MUST_USE tfc_status tfc_products_run_split(const struct tfc_split_product *products, int64_t count, int64_t m,
                                               int64_t n, bool accumulate, float *c, bool *out_fits);
// Divides C [rows, panels] into pieces for that many threads: the rows of a piece (a multiple of 8, at least `least`,
// or all) and its panels. Divides by rows if that gives equal parts, because a thread packs the rows of A of its piece.
void tfc_products_split(int64_t rows, int64_t panels, int64_t threads, int64_t least, int64_t *out_rows,
                        int64_t *out_panels);
// Packs B [k, n] on all cores; `packed` has tfc_gemm_packed_bytes.
void tfc_products_pack(struct tfc_kernel_ctx *ctx, struct tfc_matrix b, int64_t k, int64_t n, float *packed);

enum { TFC_PRODUCTS_MOST = 64 }; // products of a sum

#endif
