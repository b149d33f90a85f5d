// float32 exp, log, tanh, sigmoid and erf as straight-line code that compilers vectorise: no branch, no table, no call.
//
// Coefficients are minimax fits of the series' remainders over the reduced ranges. Errors against correctly rounded
// values, measured over all floats: exp and log within 1 ulp, tanh within 1.4, sigmoid within 2.5, erf within 1.2. NaN
// gives NaN; infinities and overflow are as in libm; subnormal results follow the floating-point environment (device
// threads flush them to 0; without that, sigmoid ends at 4.5e-39). Every compilation of these functions gives the same
// bits, because contraction happens only where fma is written.
#ifndef TFC_RUNTIME_OPS_MATH_VECTOR_H
#define TFC_RUNTIME_OPS_MATH_VECTOR_H

#include <stdint.h>

static inline __attribute__((always_inline)) float tfc_bits_float(uint32_t u) {
  union {
    uint32_t u;
    float f;
  } v = {u};
  return v.f;
}
static inline __attribute__((always_inline)) uint32_t tfc_float_bits(float f) {
  union {
    float f;
    uint32_t u;
  } v = {f};
  return v.u;
}

static inline __attribute__((always_inline)) float tfc_fmaf(float a, float b, float c) { // a * b + c, rounded once
  return __builtin_fmaf(a, b, c);
}

// Splits x = n ln 2 + r with |r| <= ln 2 / 2, and returns e^r = 1 + r + r² p(r). *out_shifted is n + 1.5 * 2^23: the
// addition rounds n to an integer, which is then in the low bits.
enum { TFC_SHIFT_BITS = 0x4B400000 };
static inline __attribute__((always_inline)) float tfc_exp_rest(float x, float *out_shifted) {
  const float shift = 12582912.0f; // 1.5 * 2^23
  float t = tfc_fmaf(x, 1.44269504088896341f, shift), n = t - shift;
  float r = tfc_fmaf(n, 2.12194440e-4f, tfc_fmaf(n, -0.693359375f, x)); // subtracts ln 2 as two parts (10 bits, rest)
  float p = 1.99182658e-4f;
  p = tfc_fmaf(p, r, 1.39464054e-3f);
  p = tfc_fmaf(p, r, 8.33326485e-3f);
  p = tfc_fmaf(p, r, 4.16662656e-2f);
  p = tfc_fmaf(p, r, 0.166666672f);
  p = tfc_fmaf(p, r, 0.5f);
  *out_shifted = t;
  return tfc_fmaf(p, r * r, r) + 1.0f;
}

// e^x for any x: multiplies by 2^n in two steps, because 2^n may not be a normal number.
static inline __attribute__((always_inline)) float tfc_expf(float x) {
  float t, c = x > 89.0f ? 89.0f : x;
  c = c < -104.5f ? -104.5f : c;
  float e = tfc_exp_rest(c, &t);
  int32_t k = (int32_t)(tfc_float_bits(t) - TFC_SHIFT_BITS), half = k >> 1;
  float a = tfc_bits_float((uint32_t)(half + 127) << 23), b = tfc_bits_float((uint32_t)(k - half + 127) << 23);
  return e * a * b;
}

// e^x for |x| <= 88.37; below -87.68 it is 0; NaN gives NaN.
static inline __attribute__((always_inline)) float tfc_exp_within(float x) {
  float t, e = tfc_exp_rest(x, &t);
  return e * tfc_bits_float((tfc_float_bits(t) - (TFC_SHIFT_BITS - 127)) << 23);
}

// ln x: x = 2^k m, m in [√½, √2); f = m - 1, s = f / (2 + f); ln m = f - (f²/2 - s (f²/2 + R(s²))).
static inline __attribute__((always_inline)) float tfc_logf(float x) {
  float small = x < 1.17549435e-38f ? 1.0f : 0.0f;
  float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
  uint32_t bits = tfc_float_bits(scaled) - 0x3F3504F3u; // makes √½ the border between two exponents
  int32_t k = (int32_t)bits >> 23;
  float m = tfc_bits_float((bits & 0x007FFFFFu) + 0x3F3504F3u);
  float n = (float)k - small * 23.0f;
  float f = m - 1.0f, s = f / (2.0f + f), z = s * s;
  float q = 0.235821545f;
  q = tfc_fmaf(q, z, 0.285373092f);
  q = tfc_fmaf(q, z, 0.400003344f);
  q = tfc_fmaf(q, z, 0.666666627f);
  float h = 0.5f * f * f;
  float y = (n * -2.12194440e-4f + s * (h + q * z)) - h + f;
  y = y + n * 0.693359375f;
  y = x == 0.0f ? -__builtin_inff() : y;
  y = x < 0.0f ? __builtin_nanf("") : y;
  y = x == __builtin_inff() ? x : y;
  return x != x ? x : y;
}

// tanh x: x + x³ p(x²) near 0, otherwise 1 - 2 / (e^2x + 1) with x's sign.
static inline __attribute__((always_inline)) float tfc_tanhf(float x) {
  uint32_t bits = tfc_float_bits(x) & 0x7FFFFFFFu, most = tfc_float_bits(10.0f); // beyond 10, tanh is 1
  float a = tfc_bits_float(bits), c = tfc_bits_float(bits < most ? bits : most), z = a * a;
  float p = 2.12274259e-3f;
  p = tfc_fmaf(p, z, -8.15627631e-3f);
  p = tfc_fmaf(p, z, 2.16926057e-2f);
  p = tfc_fmaf(p, z, -5.39453775e-2f);
  p = tfc_fmaf(p, z, 0.133331954f);
  p = tfc_fmaf(p, z, -0.333333313f);
  float near = tfc_fmaf(a, z * p, a);
  float far = 1.0f - 2.0f / (tfc_exp_within(c + c) + 1.0f);
  float y = a >= 0.6f ? far : near; // a NaN takes `near`
  return tfc_bits_float(tfc_float_bits(y) | (tfc_float_bits(x) & 0x80000000u));
}

// erf x: x + x p(x²) near 0, otherwise 1 - e^q(|x|) with x's sign, where q is a fit of ln(1 - erf); 1 beyond 4.
static inline __attribute__((always_inline)) float tfc_erff(float x) {
  float a = tfc_bits_float(tfc_float_bits(x) & 0x7FFFFFFFu);
  float z = a * a;
  float p = 8.37009874e-5f;
  p = tfc_fmaf(p, z, -8.14270383e-4f);
  p = tfc_fmaf(p, z, 5.20103224e-3f);
  p = tfc_fmaf(p, z, -2.68593982e-2f);
  p = tfc_fmaf(p, z, 0.112836955f);
  p = tfc_fmaf(p, z, -0.376126337f);
  p = tfc_fmaf(p, z, 0.128379167f);
  float near = tfc_fmaf(a, p, a);
  float t = a > 4.0f ? 4.0f : a;
  float q = -2.10950124e-5f;
  q = tfc_fmaf(q, t, 4.34462202e-4f);
  q = tfc_fmaf(q, t, -4.17106113e-3f);
  q = tfc_fmaf(q, t, 2.51194227e-2f);
  q = tfc_fmaf(q, t, -0.108280083f);
  q = tfc_fmaf(q, t, -0.633346912f);
  q = tfc_fmaf(q, t, -1.12951493f);
  q = tfc_fmaf(q, t, 1.74683888e-4f);
  float far = 1.0f - tfc_expf(q);
  float y = a < 0.921875f ? near : far;
  return tfc_bits_float(tfc_float_bits(y) | (tfc_float_bits(x) & 0x80000000u));
}

// 1 / (1 + e^-x). |x| is limited to where e^|x| is finite; comparing bits takes only one operation.
static inline __attribute__((always_inline)) float tfc_sigmoidf(float x) {
  uint32_t bits = tfc_float_bits(x), size = bits & 0x7FFFFFFFu, most = tfc_float_bits(88.3f);
  size = size < most ? size : most;
  float y = 1.0f / (1.0f + tfc_exp_within(tfc_bits_float(size | (~bits & 0x80000000u))));
  return x != x ? x : y;
}

#endif
