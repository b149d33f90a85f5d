// Decides how much weight the learned model's predictions get. Before a placement is measured for the first time, the
// given model (the simulator with the costs of the profile or description) and the learned model each predict its step
// time. Later fits regress the measured times on both predictions (stacked regression: Wolpert 1992, "Stacked
// Generalization"; Breiman 1996): they find the share of the learned model's deviation from the given one that best
// predicts the measured deviation. The less certain this share is, the more it is shrunk towards 0 (James and Stein
// 1961). If the learned model predicts placements that it has not seen no better than the given one, its share falls,
// and search and predictions use the given costs again.
//
// Both predictions are on the scale of what was measured: the learned model has parameters for it, and the given model
// gets a factor, which is found from all readings, with little weight for outliers. So predictions that were made at
// different moments can be compared, also if the machine became slower or faster.
#include <math.h>
#include <stdlib.h>

#include "placer/learned/private.h"
#include "profiler/statistics.h"

enum { MOST_TRIALS = 64, PASSES = 8 };
static const double believed = 10;   // the prior, full trust, has the weight of so many trials
static const double doubts = 2;      // a share of less than so many standard errors is none
static const double sd_level = 0.3;  // of the prior of the factor's logarithm
static const double sd_least = 0.02; // least standard deviation of a placement from the given model
static const double far = 1.5;       // residuals of more standard deviations count as that much (Huber 1964)

double tfc_learned_log_given(const struct tfc_learned *l, const struct tfc_solution *solution) {
  struct tfc_verdict v = {0};
  tfc_simulate(l->simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  return v.legal && v.value > 0 ? log(1e-6 * (double)v.value) : (double)NAN;
}

// Returns the residual, or what an outlier counts as.
static double cut_off(double residual, double sd) {
  return fmax(-far * sd, fmin(far * sd, residual));
}

tfc_status tfc_learned_note_trial(struct tfc_learned *l, double log_given, double predicted_us, double log_us) {
  if (!isfinite(log_given)) return NULL;
  const struct tfc_learned_trial trial = {log_given + l->trust.level, log(predicted_us), log_us};
  return tfc_array_push(&l->trust.trials, trial) ? NULL : tfc_status_no_memory("the learned model");
}

struct line {
  double slope, constant;
  double sd; // standard deviation of the residuals
};
// Regresses y on x (NULL: on nothing, which gives a slope of 0), with a constant; outliers count less. `left` has room
// for `n` numbers.
static struct line regress(const double *x, const double *y, size_t n, double *left) {
  double slope = 0, constant = 0, sd = INFINITY; // at first all count alike
  for (int pass = 0; pass < PASSES; pass++) {
    double mean_x = 0, mean_y = 0, product = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
      const double said = constant + (x ? slope * x[i] : 0);
      left[i] = said + cut_off(y[i] - said, sd);
      mean_x += x ? x[i] / (double)n : 0, mean_y += left[i] / (double)n;
    }
    for (size_t i = 0; i < n && x; i++)
      product += (x[i] - mean_x) * (left[i] - mean_y), square += (x[i] - mean_x) * (x[i] - mean_x);
    slope = square > 0 ? product / square : 0, constant = mean_y - slope * mean_x;
    for (size_t i = 0; i < n; i++) left[i] = fabs(y[i] - constant - (x ? slope * x[i] : 0));
    sd = fmax(sd_least, 1.4826 * tfc_quartiles_of(left, n).median);
  }
  return (struct line){slope, constant, sd};
}

// Finds the factor between what the given model says and what was measured, over all placements, with a prior around 1.
static void fit_level(struct tfc_learned *l, double *y, double *left) {
  size_t n = 0;
  l->trust.level = 0;
  for (size_t i = 0; i < l->steps.count; i++)
    if (isfinite(l->steps.data[i].log_given)) y[n++] = l->steps.data[i].log_us - l->steps.data[i].log_given;
  if (!n) return;
  const struct line fit = regress(NULL, y, n, left);
  l->trust.level = fit.constant * ((double)n / ((double)n + fit.sd * fit.sd / (sd_level * sd_level)));
}

tfc_status tfc_learned_fit_trust(struct tfc_learned *l) {
  struct tfc_learned_trust *t = &l->trust;
  const size_t first = t->trials.count > MOST_TRIALS ? t->trials.count - MOST_TRIALS : 0, n = t->trials.count - first;
  const size_t room = n > l->steps.count ? n : l->steps.count;
  double mean = 0, square = 0, *x = malloc((3 * room + 1) * sizeof *x);
  if (!x) return tfc_status_no_memory("the learned model");
  double *y = x + room, *left = y + room;
  fit_level(l, y, left);
  t->share = 1;
  for (size_t i = 0; i < n; i++) {
    const struct tfc_learned_trial *trial = &t->trials.data[first + i];
    x[i] = trial->learned - trial->given, y[i] = trial->measured - trial->given, mean += x[i] / (double)n;
  }
  for (size_t i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
  if (n >= 2 && square > 0) {
    const struct line fit = regress(x, y, n, left);
    const double found = fit.slope, doubt = doubts * fit.sd / sqrt(square);
    const double sure = found > doubt ? found - doubt * doubt / found : 0;
    t->share = fmax(0, fmin(1, ((double)n * sure + believed) / ((double)n + believed)));
  }
  free(x);
  return NULL;
}

void tfc_learned_apply_trust(const struct tfc_learned *l, double *theta, double *effects) {
  const size_t cells = (size_t)l->problem->node_count * l->problem->device_count;
  for (uint32_t i = 1; i < l->dim; i++)
    if (i < l->at_links || i >= l->at_pairs) theta[i] *= l->trust.share;
  for (size_t i = 0; i < cells; i++) effects[i] *= l->trust.share;
}

double tfc_learned_trusted(const struct tfc_learned *l, const struct tfc_solution *solution, double log_us) {
  const struct tfc_learned_trust *t = &l->trust;
  if (t->share >= 1) return log_us;
  const double given = tfc_learned_log_given(l, solution);
  return isfinite(given) ? t->share * log_us + (1 - t->share) * (given + t->level) : log_us;
}

double tfc_learned_trust(const struct tfc_learned *l) {
  return l->trust.share;
}
