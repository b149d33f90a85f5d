// The gradient of a convolution's filter where positions are many and dw is small: pieces of positions side by side.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_PIECES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_PIECES_H

#include "runtime/device/cpu/conv/patches.h"
#include "runtime/ops/kernel.h"

enum { TFC_PIECE = 512 }; // positions

// Does this way pay?
bool tfc_pieces_pay(const struct tfc_patches *p);
// dw [cells * channels, filters] = patches of x, transposed · dy [positions, filters], summed over pieces of TFC_PIECE
// positions in turn, on any number of cores. RESOURCE_EXHAUSTED.
TFC_MUST_USE tfc_status tfc_pieces_filter(struct tfc_kernel_ctx *ctx, const struct tfc_patches *p, const float *dy,
                                          int64_t filters, float *dw);

#endif
