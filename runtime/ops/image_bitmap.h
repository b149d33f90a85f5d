// Decoders for BMP and GIF files in memory. Pixels are bytes, [height, width, channels], with the top row first.
#ifndef TFC_RUNTIME_OPS_IMAGE_BITMAP_H
#define TFC_RUNTIME_OPS_IMAGE_BITMAP_H

#include "runtime/graph/tensor.h"

// channels 0: as many as the file has (1, 3 or 4).
TFC_MUST_USE tfc_status tfc_bmp_read(tfc_str file, int channels, struct tfc_tensor *out);
// Decodes all frames, each drawn over the one before it: [frames, height, width, 3]. `first_only`: only the first
// frame, [height, width, 3].
TFC_MUST_USE tfc_status tfc_gif_read(tfc_str file, bool first_only, struct tfc_tensor *out);

#endif
