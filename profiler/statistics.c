#include "profiler/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double quantile(const double *sorted, size_t count, double p) {
  double at = p * (double)(count - 1);
  size_t i = (size_t)at;
  return i + 1 < count ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}
struct tfc_quartiles tfc_quartiles_of(double *values, size_t count) {
  if (count == 0) return (struct tfc_quartiles){NAN, NAN, NAN, NAN};
  qsort(values, count, sizeof *values, compare);
  return (struct tfc_quartiles){quantile(values, count, 0.5), quantile(values, count, 0.25),
                                quantile(values, count, 0.75), values[0]};
}

tfc_status tfc_bootstrap_ratio(const struct tfc_block_pair *pairs, uint32_t count, uint32_t rounds, uint64_t seed,
                               struct tfc_interval *out) {
  tfc_status s = NULL;
  size_t most_a = 0, most_b = 0, total_a = 0, total_b = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (pairs[i].a_count > most_a) most_a = pairs[i].a_count;
    if (pairs[i].b_count > most_b) most_b = pairs[i].b_count;
    total_a += pairs[i].a_count, total_b += pairs[i].b_count;
  }
  double *a = calloc(most_a * count + 1, sizeof *a), *b = calloc(most_b * count + 1, sizeof *b);
  double *ratios = calloc((size_t)rounds + 1, sizeof *ratios);
  if (!a || !b || !ratios) TFC_TRY(s, tfc_status_no_memory(NULL));
  struct tfc_interval result = {NAN, NAN, NAN};
  if (total_a == 0 || total_b == 0) goto done;
  size_t na = 0, nb = 0;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = 0; k < pairs[i].a_count; k++) a[na++] = pairs[i].a[k];
    for (uint32_t k = 0; k < pairs[i].b_count; k++) b[nb++] = pairs[i].b[k];
  }
  result.value = tfc_quartiles_of(a, na).median / tfc_quartiles_of(b, nb).median;
  struct tfc_random random;
  tfc_random_init(&random, seed);
  uint32_t drawn = 0;
  for (uint32_t r = 0; r < rounds; r++) {
    na = nb = 0;
    for (uint32_t i = 0; i < count; i++) {
      const struct tfc_block_pair *p = &pairs[tfc_random_below(&random, count)];
      for (uint32_t k = 0; k < p->a_count; k++) a[na++] = p->a[tfc_random_below(&random, p->a_count)];
      for (uint32_t k = 0; k < p->b_count; k++) b[nb++] = p->b[tfc_random_below(&random, p->b_count)];
    }
    if (na && nb) ratios[drawn++] = tfc_quartiles_of(a, na).median / tfc_quartiles_of(b, nb).median;
  }
  if (drawn) {
    qsort(ratios, drawn, sizeof *ratios, compare);
    result.low = quantile(ratios, drawn, 0.025);
    result.high = quantile(ratios, drawn, 0.975);
  }
done:
  *out = result;
out:
  free(a);
  free(b);
  free(ratios);
  return s;
}

double tfc_kendall_tau(const double *x, const double *y, const double *spread, size_t count, size_t *out_pairs) {
  double sum = 0;
  size_t pairs = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = i + 1; j < count; j++) {
      double apart = fabs(y[i] - y[j]);
      if (!(apart > (spread ? spread[i] + spread[j] : 0))) continue;
      pairs++;
      if (x[i] != x[j]) sum += ((x[i] < x[j]) == (y[i] < y[j])) ? 1 : -1;
    }
  }
  if (out_pairs) *out_pairs = pairs;
  return pairs ? sum / (double)pairs : NAN;
}
