// The passes of a batch normalisation over its input. Private to this folder.
#ifndef TFC_RUNTIME_DEVICE_CPU_NORM_PASS_H
#define TFC_RUNTIME_DEVICE_CPU_NORM_PASS_H

#include <stdbool.h>
#include <stdint.h>

struct tfc_norm_pass {
  const float *x, *dy;
  float *y; // y or dx
  // `rows` elements of each channel, which are summed in blocks of `block`. Channels last: x is [rows, channels].
  // Channels first: x is [rows / inner, channels, inner].
  int64_t rows, channels, inner, block, blocks;
  float *sums;                       // [blocks, 2, channels]
  const float *mean, *scale, *shift; // [channels]
  const float *less, *slope;         // [channels]
};

// Passes for channels first, over channels [begin, end). The sums of a block are means and squared deviations from
// them, or, for the gradient, those of dy and of dy * (x - mean).
void tfc_norm_moments(const struct tfc_norm_pass *p, int64_t begin, int64_t end);
void tfc_norm_products(const struct tfc_norm_pass *p, int64_t begin, int64_t end);
void tfc_norm_apply(const struct tfc_norm_pass *p, int64_t begin, int64_t end); // y = (x - mean) * scale + shift
// training: dx = scale (dy - less - (x - mean) slope); else dx = scale dy
void tfc_norm_differentiate(const struct tfc_norm_pass *p, bool training, int64_t begin, int64_t end);

#endif
