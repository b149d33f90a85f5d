// Fits the distribution of step times. The spread comes from the quartiles, so that late steps do not widen it. A step
// counts as late if it is three interquartile ranges above the third quartile (Tukey's far-out fence, on logarithms),
// and at least a tenth above the median.
#include "placer/replicas/step_times.h"

#include <math.h>

#include "profiler/statistics.h"

static const double quartiles_of_normal = 1.3489795; // from the first to the third quartile, in standard deviations

tfc_status tfc_step_times_fit(double *ratio, uint32_t count, struct tfc_step_times *out) {
  struct tfc_step_times t = {.late_factor = 1, .samples = count};
  double late = 0;
  uint32_t late_count = 0;
  if (count < TFC_STEP_TIMES_LEAST)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%u step times are too few to tell how much they vary: %d are needed",
                           count, TFC_STEP_TIMES_LEAST);
  const struct tfc_quartiles q = tfc_quartiles_of(ratio, count);
  const double spread = log(q.q3 / q.q1), fence = fmax(log(q.q3) + 3 * spread, log(1.1 * q.median));
  t.sigma = spread / quartiles_of_normal;
  for (uint32_t i = 0; i < count; i++)
    if (log(ratio[i]) > fence) late += log(ratio[i] / q.median), late_count++;
  t.late_share = (double)late_count / count;
  if (late_count) t.late_factor = exp(late / late_count);
  *out = t;
  return NULL;
}

double tfc_step_times_draw(const struct tfc_step_times *t, struct tfc_random *random) {
  const double factor = exp(t->sigma * tfc_random_normal(random));
  return tfc_random_unit(random) < t->late_share ? factor * t->late_factor : factor;
}
