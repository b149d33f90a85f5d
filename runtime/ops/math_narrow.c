#include "runtime/ops/math_narrow.h"

#include "runtime/ops/element_types.h"

// The conversions give the same results as those of runtime/graph/dtype.h. They have no branches, so that the compiler
// can vectorize loops over them, and use no subnormal float32 numbers, because devices' threads flush these to zero.
union word {
  uint32_t u;
  float f;
};
static inline float widen_half(uint16_t h) {
  const uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13, sign = (uint32_t)(h & 0x8000u) << 16;
  union word small = {.u = magnitude + 0x38800000u}, x; // zero and subnormal: mantissa 2^-24 + 2^-14
  small.f -= 0x1p-14f;
  const uint32_t normal = magnitude + (magnitude >= 0x0f800000u ? 0x70000000u : 0x38000000u);
  x.u = (magnitude < 0x00800000u ? small.u : normal) | sign;
  return x.f;
}
static inline uint16_t narrow_half(float f) {
  union word x = {.f = f}, small;
  const uint32_t sign = x.u >> 16 & 0x8000u, magnitude = x.u & 0x7fffffffu;
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  normal = magnitude >= 0x47800000u ? 0x7c00u : normal; // 65536 and more, infinity
  small.u = magnitude;
  small.f += 0.5f; // the last bit of the sum is 2^-24, like that of a subnormal result
  const uint32_t r = magnitude < 0x38800000u ? small.u - 0x3f000000u : normal;
  return (uint16_t)((magnitude > 0x7f800000u ? 0x7e00u : r) | sign);
}
static inline float widen_bfloat16(uint16_t h) {
  union word x = {.u = (uint32_t)h << 16};
  return x.f;
}
static inline uint16_t narrow_bfloat16(float f) {
  union word x = {.f = f};
  const uint32_t nan = x.u >> 16 | 0x40u, r = (x.u + 0x7fffu + (x.u >> 16 & 1u)) >> 16;
  return (uint16_t)((x.u & 0x7fffffffu) > 0x7f800000u ? nan : r);
}

// The compiler vectorizes loops over blocks of a constant length.
enum { block = 16 };
#define CONVERT(f)                                                                                                     \
  int64_t i = 0;                                                                                                       \
  for (; i + block <= n; i += block)                                                                                   \
    for (int l = 0; l < block; l++) y[i + l] = f(x[i + l]);                                                            \
  for (; i < n; i++) y[i] = f(x[i]);

OPS_CLONES static void from_half(const uint16_t *restrict x, float *restrict y, int64_t n){
    CONVERT(widen_half)} OPS_CLONES static void from_bfloat16(const uint16_t *restrict x, float *restrict y,
                                                              int64_t n){CONVERT(widen_bfloat16)} OPS_CLONES
    static void to_half(const float *restrict x, uint16_t *restrict y, int64_t n){CONVERT(narrow_half)} OPS_CLONES
    static void to_bfloat16(const float *restrict x, uint16_t *restrict y, int64_t n) {
  CONVERT(narrow_bfloat16)
}

void ops_narrow_to_float(tfc_dtype type, const uint16_t *x, float *y, int64_t n) {
  (type == TFC_HALF ? from_half : from_bfloat16)(x, y, n);
}

void ops_narrow_from_float(tfc_dtype type, const float *x, uint16_t *y, int64_t n) {
  (type == TFC_HALF ? to_half : to_bfloat16)(x, y, n);
}
