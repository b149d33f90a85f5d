// PNG and JPEG files in memory, read and written by libpng and libjpeg with TensorFlow's settings. If tfc was built
// without a library, its functions return UNIMPLEMENTED. Pixels are [height, width, channels], with the top row first.
#ifndef TFC_RUNTIME_OPS_IMAGE_CODEC_H
#define TFC_RUNTIME_OPS_IMAGE_CODEC_H

#include "runtime/graph/tensor.h"

// `bits` is 8 or 16 (in the machine's byte order), `channels` 1 to 4, `level` -1 to 9. Appends the file to `out`.
TFC_MUST_USE tfc_status tfc_png_write(const void *pixels, int64_t height, int64_t width, int channels, int bits,
                                      int level, struct tfc_text *out);
// channels 0: as many as the file has. `out` is a host tensor of TFC_UINT8 or TFC_UINT16.
TFC_MUST_USE tfc_status tfc_png_read(tfc_str file, int channels, tfc_dtype dtype, struct tfc_tensor *out);

struct tfc_jpeg_style { // how a file is written
  int quality, density_unit, x_density, y_density;
  bool progressive, optimize_size, chroma_downsampling;
  tfc_str xmp; // may be empty
};
TFC_MUST_USE tfc_status tfc_jpeg_write(const uint8_t *pixels, int64_t height, int64_t width, int channels,
                                       const struct tfc_jpeg_style *style, struct tfc_text *out);
struct tfc_jpeg_choice { // which part of a file is read, and how
  int channels, ratio;   // channels 0: as many as the file has; ratio: 1, 2, 4 or 8 times smaller
  bool fancy_upscaling, try_recover_truncated, accurate;
  const int32_t *window; // NULL: all of the image; otherwise y, x, height and width of the part to read
};
TFC_MUST_USE tfc_status tfc_jpeg_read(tfc_str file, const struct tfc_jpeg_choice *choice, struct tfc_tensor *out);
// Reads only the shape: [height, width, channels].
TFC_MUST_USE tfc_status tfc_jpeg_shape(tfc_str file, int64_t out[3]);

#endif
