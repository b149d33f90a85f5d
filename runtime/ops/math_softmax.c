#include "runtime/ops/math_softmax.h"

#include <string.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/math_vector.h"

enum { lanes = 16, half = lanes / 2 };

typedef float eight __attribute__((vector_size(half * sizeof(float)), aligned(4)));
typedef int32_t masks __attribute__((vector_size(half * sizeof(int32_t))));

// The vectors are written by hand, because compilers made a loop over lanes, with the maximum and a NaN for each lane,
// process one element at a time. They have the size of AVX2's registers, because compilers compare larger vectors one
// element at a time, too.
OPS_CLONES float ops_softmax_max(const float *x, int64_t n) {
  eight most[2] = {(eight){0} - __builtin_inff(), (eight){0} - __builtin_inff()};
  masks bad = {0};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int k = 0; k < 2; k++) {
      const eight v = *(const eight *)(x + i + k * half);
      const masks larger = v > most[k];
      most[k] = (eight)(((masks)v & larger) | ((masks)most[k] & ~larger));
      bad |= v != v;
    }
  }
  const masks larger = most[1] > most[0];
  most[0] = (eight)(((masks)most[1] & larger) | ((masks)most[0] & ~larger));
  float max = most[0][0], nan = 0;
  int32_t any = 0;
  for (int l = 1; l < half; l++) max = most[0][l] > max ? most[0][l] : max;
  for (int l = 0; l < half; l++) any |= bad[l];
  for (int64_t j = i; j < n; j++) max = x[j] > max ? x[j] : max;
  if (any) i = 0; // there is a NaN before i
  for (; i < n; i++) nan = x[i] != x[i] ? x[i] : nan;
  return nan != nan ? nan : max;
}

// Adds 16 terms to the 16 lanes of a sum, four at a time: compilers convert larger vectors of floats to doubles one
// element at a time, and loops over lanes, too.
enum { FOURS = lanes / 4 };
typedef float four __attribute__((vector_size(16), aligned(4)));
typedef double wide_four __attribute__((vector_size(32)));
static inline __attribute__((always_inline)) void add_terms(const float *e, wide_four sums[FOURS]) {
#pragma GCC unroll 4
  for (int k = 0; k < FOURS; k++) sums[k] += __builtin_convertvector(*(const four *)(e + 4 * k), wide_four);
}

// e^x for x <= 0 or NaN. Where e^x is below the normal numbers the result is 0.
static inline __attribute__((always_inline)) float term(float x) {
  return tfc_exp_within(x < -88.0f ? -88.0f : x);
}

OPS_CLONES double ops_softmax_sum(const float *x, float max, float *y, int64_t n) {
  wide_four sums[FOURS] = {{0}};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    float e[lanes];
    for (int l = 0; l < lanes; l++) e[l] = term(x[i + l] - max);
    if (y) memcpy(y + i, e, sizeof e);
    add_terms(e, sums);
  }
  if (i < n) { // a last block, filled with elements whose e^x is 0
    float e[lanes];
    for (int l = 0; l < lanes; l++) e[l] = i + l < n ? x[i + l] : -__builtin_inff();
    for (int l = 0; l < lanes; l++) e[l] = term(e[l] - max);
    if (y) memcpy(y + i, e, (size_t)(n - i) * sizeof *e);
    add_terms(e, sums);
  }
  double sum = 0;
  for (int l = 0; l < lanes; l++) sum += sums[l / 4][l % 4];
  return sum;
}

OPS_CLONES void ops_softmax_scale(float *y, float scale, int64_t n) {
  OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] *= scale;
}
