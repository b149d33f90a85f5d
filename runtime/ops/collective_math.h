// Arithmetic of collective operations, on whole tensors in host memory.
#ifndef TFC_RUNTIME_OPS_COLLECTIVE_MATH_H
#define TFC_RUNTIME_OPS_COLLECTIVE_MATH_H

#include "runtime/ops/collective.h"

bool tfc_collective_takes(tfc_dtype dtype);
// to[i] = a[i] op b[i]; `to` may be `a`.
void tfc_collective_combine(tfc_collective_math math, tfc_dtype dtype, void *to, const void *a, const void *b,
                            int64_t count);
void tfc_collective_divide(tfc_dtype dtype, void *values, int64_t count, int32_t by);

#endif
