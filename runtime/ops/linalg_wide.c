#include "runtime/ops/linalg_wide.h"

#include <complex.h>
#include <string.h>

#include "runtime/ops/element_types.h"

#define WIDEN(t, wide)                                                                                                 \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                                    \
      ((ops_##wide *)out)[i] = (ops_##wide)OPS_GET_##t(((const ops_##t *)x->data)[at + i]);                            \
    break;
#define NARROW(t, wide)                                                                                                \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y->data)[at + i] = OPS_PUT_##t(((const ops_##wide *)x)[i]);            \
    break;
void ops_linalg_widen(const struct tfc_tensor *x, int64_t at, int64_t n, void *out) {
  switch (x->dtype) {
    WIDEN(f32, f64)
    WIDEN(f64, f64)
    WIDEN(f16, f64)
    WIDEN(b16, f64)
    WIDEN(c64, c128)
    WIDEN(c128, c128)
  default: break;
  }
}

void ops_linalg_narrow(const void *x, struct tfc_tensor *y, int64_t at, int64_t n) {
  switch (y->dtype) {
    NARROW(f32, f64)
    NARROW(f64, f64)
    NARROW(f16, f64)
    NARROW(b16, f64)
    NARROW(c64, c128)
    NARROW(c128, c128)
  default: break;
  }
}

void ops_linalg_to_complex(const struct tfc_tensor *x, int64_t at, int64_t n, double _Complex *out) {
  ops_linalg_widen(x, at, n, out);
  if (tfc_dtype_is_complex(x->dtype)) return;
  for (int64_t i = n - 1; i >= 0; i--) {
    double v;
    memcpy(&v, (char *)out + (size_t)i * sizeof v, sizeof v);
    out[i] = v;
  }
}

void ops_linalg_from_complex(double _Complex *x, struct tfc_tensor *y, int64_t at, int64_t n) {
  if (!tfc_dtype_is_complex(y->dtype))
    for (int64_t i = 0; i < n; i++) {
      double v = creal(x[i]);
      memcpy((char *)x + (size_t)i * sizeof v, &v, sizeof v);
    }
  ops_linalg_narrow(x, y, at, n);
}
