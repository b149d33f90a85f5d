// Computes the gradient of a convolution's filter if there are many positions and dw is small: positions are divided
// into pieces, and threads work on different pieces at the same time.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_PIECES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_PIECES_H

#include "runtime/device/cpu/conv/patches.h"
#include "runtime/ops/kernel.h"

enum { TFC_PIECE = 512 }; // positions

// Whether tfc_pieces_filter is expected to be faster than dividing dw among the threads.
bool tfc_pieces_pay(const struct tfc_patches *p);
// Computes rows [row, row_end) of panels [first, last) of the patches of one piece, transposed, times the product's B,
// and stores them in dw, or adds them to it. If the channels are whole stripes of 8 and not many, the image is read in
// place and not packed.
void tfc_pieces_multiply(const struct tfc_patches_transposed *t, const struct tfc_gemm_product *product,
                         int64_t filters, float *dw, bool accumulate, int64_t row, int64_t row_end, int64_t first,
                         int64_t last, float *scratch);
// Whether products with a piece of dy read it where it is, instead of packing it.
bool tfc_pieces_read_in_place(int64_t filters);
// dw [cells * channels, filters] = patches of x, transposed · dy [positions, filters], summed over pieces of TFC_PIECE
// positions in their order, so that the result does not depend on the number of cores. RESOURCE_EXHAUSTED: no memory
// for the sums.
TFC_MUST_USE tfc_status tfc_pieces_filter(struct tfc_kernel_ctx *ctx, const struct tfc_patches *p, const float *dy,
                                          int64_t filters, float *dw);

#endif
