// Converts matrices of narrow types: they are decomposed and solved in float64 or complex128, and rounded once at the
// end.
#ifndef TFC_RUNTIME_OPS_LINALG_WIDE_H
#define TFC_RUNTIME_OPS_LINALG_WIDE_H

#include "runtime/graph/tensor.h"

// Copy elements [at, at + n) of x (floats or complex) to `out` as float64 or complex128, and back to y.
void ops_linalg_widen(const struct tfc_tensor *x, int64_t at, int64_t n, void *out);
void ops_linalg_narrow(const void *x, struct tfc_tensor *y, int64_t at, int64_t n);
// As the functions above, but always as complex128; ops_linalg_from_complex leaves x's content undefined.
void ops_linalg_to_complex(const struct tfc_tensor *x, int64_t at, int64_t n, double _Complex *out);
void ops_linalg_from_complex(double _Complex *x, struct tfc_tensor *y, int64_t at, int64_t n);

#endif
