// The three passes of a softmax over one row of float32 logits, vectorised. Sums are in double, in 16 lanes whatever
// the processor, so that the bits are the same on each of them. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_MATH_SOFTMAX_H
#define TFC_RUNTIME_OPS_MATH_SOFTMAX_H

#include <stdint.h>

float ops_softmax_max(const float *x, int64_t n); // NaN if there is one; -infinity where n is 0
// Sum of e^(x - max), each of which goes to y, too (which may be x; NULL: they are not wanted).
double ops_softmax_sum(const float *x, float max, float *y, int64_t n);
void ops_softmax_scale(float *y, float scale, int64_t n); // y = y scale

#endif
