#include "runtime/ops/math_softmax.h"

#include <string.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/math_vector.h"

enum { lanes = 16 };

typedef float floats __attribute__((vector_size(lanes * sizeof(float)), aligned(4)));
typedef int32_t masks __attribute__((vector_size(lanes * sizeof(int32_t))));
typedef double doubles __attribute__((vector_size(lanes * sizeof(double))));

// The vectors are written by hand: compilers made a loop over lanes, with the maximum and a NaN for each lane, process
// one element at a time.
OPS_CLONES float ops_softmax_max(const float *x, int64_t n) {
  floats most = (floats){0} - __builtin_inff();
  masks bad = {0};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    floats v = *(const floats *)(x + i);
    masks larger = v > most;
    most = (floats)(((masks)v & larger) | ((masks)most & ~larger));
    bad |= v != v;
  }
  float max = most[0], nan = 0;
  for (int l = 1; l < lanes; l++) max = most[l] > max ? most[l] : max;
  for (int64_t j = i; j < n; j++) max = x[j] > max ? x[j] : max;
  for (int l = 0; l < lanes; l++) i = bad[l] ? 0 : i; // the NaN is among the elements before i
  for (; i < n; i++) nan = x[i] != x[i] ? x[i] : nan;
  return nan != nan ? nan : max;
}

OPS_CLONES double ops_softmax_sum(const float *x, float max, float *y, int64_t n) {
  doubles sums = {0};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    float e[lanes];
    for (int l = 0; l < lanes; l++) e[l] = tfc_expf(x[i + l] - max);
    if (y) memcpy(y + i, e, sizeof e);
    sums += __builtin_convertvector(*(const floats *)e, doubles);
  }
  for (int l = 0; i < n; i++, l++) {
    float e = tfc_expf(x[i] - max);
    if (y) y[i] = e;
    sums[l] += (double)e;
  }
  double sum = 0;
  for (int l = 0; l < lanes; l++) sum += sums[l];
  return sum;
}

OPS_CLONES void ops_softmax_scale(float *y, float scale, int64_t n) {
  OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] *= scale;
}
