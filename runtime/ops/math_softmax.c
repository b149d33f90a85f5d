#include "runtime/ops/math_softmax.h"

#include <string.h>

#include "runtime/ops/math_types.h"
#include "runtime/ops/math_vector.h"

enum { lanes = 16 };

OPS_CLONES float ops_softmax_max(const float *x, int64_t n) {
  float most[lanes], bad[lanes];
  for (int l = 0; l < lanes; l++) most[l] = -__builtin_inff(), bad[l] = 0;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; l++) {
      float v = x[i + l];
      most[l] = v > most[l] ? v : most[l];
      bad[l] = v != v ? v : bad[l];
    }
  for (; i < n; i++) {
    most[0] = x[i] > most[0] ? x[i] : most[0];
    bad[0] = x[i] != x[i] ? x[i] : bad[0];
  }
  float max = most[0];
  for (int l = 1; l < lanes; l++) max = most[l] > max ? most[l] : max;
  for (int l = 0; l < lanes; l++) max = bad[l] != bad[l] ? bad[l] : max;
  return max;
}

typedef float floats __attribute__((vector_size(lanes * sizeof(float)), aligned(4)));
typedef double doubles __attribute__((vector_size(lanes * sizeof(double))));

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
