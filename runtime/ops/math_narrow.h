// Vectorized conversion of 16-bit floats to float32 and back. Kernels that compute in float32 convert blocks that are
// small enough to stay in the cache.
#ifndef TFC_RUNTIME_OPS_MATH_NARROW_H
#define TFC_RUNTIME_OPS_MATH_NARROW_H

#include "runtime/graph/dtype.h"

// type: TFC_HALF or TFC_BFLOAT16. Rounds to nearest even. Any thread may call it.
void ops_narrow_to_float(tfc_dtype type, const uint16_t *x, float *y, int64_t n);
void ops_narrow_from_float(tfc_dtype type, const float *x, uint16_t *y, int64_t n);

#endif
