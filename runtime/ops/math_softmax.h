// The three passes of a softmax over one row of float32 logits, vectorised. Sums are in double and have 16 lanes on
// every processor, so that the bits are the same everywhere. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_MATH_SOFTMAX_H
#define TFC_RUNTIME_OPS_MATH_SOFTMAX_H

#include <stdint.h>

float ops_softmax_max(const float *x, int64_t n); // NaN if an element is NaN; -infinity if n is 0
// Returns the sum of e^(x - max), where no x is above max. Each term is also written to y, unless that is NULL; y may
// be x. Terms below the normal numbers are 0.
double ops_softmax_sum(const float *x, float max, float *y, int64_t n);
void ops_softmax_scale(float *y, float scale, int64_t n); // multiplies y by scale

#endif
