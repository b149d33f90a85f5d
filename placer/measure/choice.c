#include "placer/measure/choice.h"

#include <math.h>

#include "runtime/base/none.h"

static const double least_sd = 0.02; // the smallest standard deviation that is assumed for a block's logarithm, because
                                     // two turns may agree by chance
static const double errors = 4;      // a difference of so many standard errors is no chance

uint32_t tfc_choice_leader(const double *log_us, uint32_t entries, uint32_t turns, uint32_t count) {
  uint32_t best = TFC_NONE;
  double least = INFINITY;
  for (uint32_t i = 0; i < entries && count; i++) {
    double sum = 0;
    for (uint32_t t = 0; t < count; t++) sum += log_us[i * turns + t];
    if (sum < least) least = sum, best = i; // a NaN (a missing turn) never becomes the smallest
  }
  return best;
}

int tfc_choice_surely_slower(const double *leader, const double *other, uint32_t count) {
  double sum = 0, squares = 0;
  if (count < 2) return 0;
  for (uint32_t t = 0; t < count; t++) {
    const double x = other[t] - leader[t];
    sum += x, squares += x * x;
  }
  const double mean = sum / count, variance = fmax(squares / count - mean * mean, 0) * count / (count - 1);
  return mean > errors * fmax(sqrt(variance), least_sd) / sqrt(count);
}
