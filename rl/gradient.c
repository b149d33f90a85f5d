#include "rl/gradient.h"

#include <math.h>

enum { MOST = 64 };
#define RATE 0.5 // share of the way from the mean to the better half of a block
#define KEPT 0.8 // weight of earlier blocks in the scale of advantages

void tfc_gradient_advantages(const double *times, uint32_t count, double *out) {
  double sum = 0;
  uint32_t timed = 0;
  for (uint32_t i = 0; i < count; i++)
    if (times[i] > 0) sum += log(times[i]), timed++;
  for (uint32_t i = 0; i < count; i++) {
    const double own = times[i] > 0 ? log(times[i]) : 0;
    out[i] = times[i] > 0 && timed > 1 ? (sum - own) / (timed - 1) - own : 0;
  }
}

void tfc_gradient_step(struct tfc_gradient *g, const float *const *weights, const double *times, uint32_t count) {
  double advantage[MOST], size = 0;
  if (count > MOST) count = MOST;
  if (!count) return;
  tfc_gradient_advantages(times, count, advantage);
  for (uint32_t i = 0; i < count; i++) size += fabs(advantage[i]) / count;
  if (!(size > 0)) return;
  g->scale = g->scale > 0 ? KEPT * g->scale + (1 - KEPT) * size : size;
  for (int w = 0; w < TFC_WEIGHTS; w++) {
    double step = 0;
    for (uint32_t i = 0; i < count; i++) step += advantage[i] / g->scale * ((double)weights[i][w] - g->mean[w]) / count;
    g->mean[w] += RATE * step;
  }
}
