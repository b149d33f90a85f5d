// Conversions between float32 and the 16-bit floats, for inner loops: the same results as those of
// runtime/graph/dtype.h, but they have no branches, so that the compiler vectorizes loops over them, and use no
// subnormal float32 numbers, because devices' threads flush these to zero.
#ifndef TFC_RUNTIME_OPS_NARROW_VALUES_H
#define TFC_RUNTIME_OPS_NARROW_VALUES_H

#include <stdint.h>

union ops_word {
  uint32_t u;
  float f;
};
static inline __attribute__((always_inline)) float ops_widen_half(uint16_t h) {
  const uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13, sign = (uint32_t)(h & 0x8000u) << 16;
  union ops_word small = {.u = magnitude + 0x38800000u}, x; // zero and subnormal: mantissa 2^-24 + 2^-14
  small.f -= 0x1p-14f;
  const uint32_t normal = magnitude + (magnitude >= 0x0f800000u ? 0x70000000u : 0x38000000u);
  x.u = (magnitude < 0x00800000u ? small.u : normal) | sign;
  return x.f;
}
static inline __attribute__((always_inline)) uint16_t ops_narrow_half(float f) {
  union ops_word x = {.f = f}, small;
  const uint32_t sign = x.u >> 16 & 0x8000u, magnitude = x.u & 0x7fffffffu;
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  normal = magnitude >= 0x47800000u ? 0x7c00u : normal; // 65536 and more, infinity
  small.u = magnitude;
  small.f += 0.5f; // the last bit of the sum is 2^-24, like that of a subnormal result
  const uint32_t r = magnitude < 0x38800000u ? small.u - 0x3f000000u : normal;
  return (uint16_t)((magnitude > 0x7f800000u ? 0x7e00u : r) | sign);
}
static inline __attribute__((always_inline)) float ops_widen_bfloat16(uint16_t h) {
  union ops_word x = {.u = (uint32_t)h << 16};
  return x.f;
}
static inline __attribute__((always_inline)) uint16_t ops_narrow_bfloat16(float f) {
  union ops_word x = {.f = f};
  const uint32_t nan = x.u >> 16 | 0x40u, r = (x.u + 0x7fffu + (x.u >> 16 & 1u)) >> 16;
  return (uint16_t)((x.u & 0x7fffffffu) > 0x7f800000u ? nan : r);
}

#endif
