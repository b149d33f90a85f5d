#include "runtime/ops/math_narrow.h"

#include "runtime/ops/element_types.h"

// The compiler vectorizes loops over blocks of a constant length.
enum { block = 16 };
#define CONVERT(f)                                                                                                     \
  int64_t i = 0;                                                                                                       \
  for (; i + block <= n; i += block)                                                                                   \
    for (int l = 0; l < block; l++) y[i + l] = f(x[i + l]);                                                            \
  for (; i < n; i++) y[i] = f(x[i]);

OPS_CLONES static void from_half(const uint16_t *restrict x, float *restrict y, int64_t n){
    CONVERT(ops_widen_half)} OPS_CLONES static void from_bfloat16(const uint16_t *restrict x, float *restrict y,
                                                                  int64_t n){CONVERT(ops_widen_bfloat16)} OPS_CLONES
    static void to_half(const float *restrict x, uint16_t *restrict y, int64_t n){CONVERT(ops_narrow_half)} OPS_CLONES
    static void to_bfloat16(const float *restrict x, uint16_t *restrict y, int64_t n) {
  CONVERT(ops_narrow_bfloat16)
}

void ops_narrow_to_float(tfc_dtype type, const uint16_t *x, float *y, int64_t n) {
  (type == TFC_HALF ? from_half : from_bfloat16)(x, y, n);
}

void ops_narrow_from_float(tfc_dtype type, const float *x, uint16_t *y, int64_t n) {
  (type == TFC_HALF ? to_half : to_bfloat16)(x, y, n);
}
