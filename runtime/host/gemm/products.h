// Matrix products on the cores of a device: which operands are packed, and how the work is split.
#ifndef TFC_RUNTIME_HOST_GEMM_PRODUCTS_H
#define TFC_RUNTIME_HOST_GEMM_PRODUCTS_H

#include "runtime/host/gemm/gemm.h"
#include "runtime/host/gemm/split.h"
#include "runtime/ops/kernel.h"

// A B that is no matrix in memory: packs rows [first, last) of one panel. Any thread.
struct tfc_gemm_right {
  void (*pack)(const struct tfc_gemm_right *right, int64_t first, int64_t last, int64_t panel, float *out);
};
struct tfc_product { // A [m, k] B [k, n]
  struct tfc_matrix a, b;
  const struct tfc_gemm_source *source; // A, where it is not NULL
  const float *packed_b;                // B, packed by tfc_gemm_pack; NULL: `b` is packed here where that pays
  const struct tfc_gemm_right *right;   // B, where it is not NULL; for one product where tfc_panels_pay (panels.h)
  const void *split_b;                  // B, packed by tfc_split_pack_b: the sum goes to the tile unit
  int64_t k;
};

// C [m, n], row-major and contiguous, is the sum of the products, left to right, or C and that sum (`accumulate`); on
// all cores of the device. Where other rounding is welcome (ctx->rounding) and pays, on the tile unit (split.h);
// numbers that are too large to be split are noticed, except in a B that comes packed.
TFC_MUST_USE tfc_status tfc_products_run(struct tfc_kernel_ctx *ctx, const struct tfc_product *products, int64_t count,
                                         int64_t m, int64_t n, bool accumulate, float *c);
// The sum on the calling thread alone; `split`: on the tile unit, where that pays.
TFC_MUST_USE tfc_status tfc_products_run_serial(const struct tfc_product *products, int64_t count, int64_t m, int64_t n,
                                                bool split, float *c);
// May this operation use the tile unit? Where rounding may change, on a device of one core that is alone in its
// session: on four cores of one processor the units were measured to fall to a third of their speed, by phases.
bool tfc_products_may_split(const struct tfc_kernel_ctx *ctx);
// And does that pay (as of tfc_split_pays), on the unit as fast as it is just now?
bool tfc_products_choose_split(const struct tfc_kernel_ctx *ctx, int64_t m, int64_t n, int64_t k, int64_t blocks,
                               bool ready);
// The sum on the tile unit, by the calling thread. *out_fits: false where numbers were too large; C is then whatever it
// is.
TFC_MUST_USE tfc_status tfc_products_run_split(const struct tfc_split_product *products, int64_t count, int64_t m,
                                               int64_t n, bool accumulate, float *c, bool *out_fits);
// Pieces of C [rows, panels] for so many threads: rows of a piece (a multiple of 8, at least `least`, or all) and
// panels of a piece. By rows where that can be even, as whoever takes a piece packs its rows of A.
void tfc_products_split(int64_t rows, int64_t panels, int64_t threads, int64_t least, int64_t *out_rows,
                        int64_t *out_panels);
// Packs B [k, n] on all cores; `packed` has tfc_gemm_packed_bytes.
void tfc_products_pack(struct tfc_kernel_ctx *ctx, struct tfc_matrix b, int64_t k, int64_t n, float *packed);

enum { TFC_PRODUCTS_MOST = 64 }; // of a sum

#endif
