// Images with a border of zeros, for convolutions.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_PADDED_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_PADDED_H

#include "runtime/device/cpu/conv/patches.h"

// If the image has at most `most_channels` channels, replaces the image by a copy with a border, over which no window
// reaches; the copy lies in memory of the calling thread until the next call. False: `p` keeps its image, because the
// copy would be much larger, or there is no memory for it.
bool tfc_patches_pad(struct tfc_kernel_ctx *ctx, struct tfc_patches *p, int64_t most_channels);

#endif
