// Learns from whole steps what the times of operations do not show. It models log(measured / simulated with the learned
// costs) as a linear function of a few features of the placement, with a Gaussian prior around 0 (Bishop, "Pattern
// Recognition and Machine Learning", 2006, 3.3). Features are what a step's time may depend on besides its operations'
// times: how many tensors and bytes are transferred, how busy devices are and how evenly, how many devices are used,
// and how many operations and what share of transfers are on the critical path. They are standardised (mean 0,
// deviation 1 over the measured placements), so that one prior fits all.
//
// The model does not extrapolate: features are limited to two standard deviations, and corrections to the measured
// range.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/learned/private.h"
#include "profiler/statistics.h"

enum { MOST_STEPS = 64, FEWEST_STEPS = 4 };
static const double sd_level = 0.3, sd_feature = 0.05; // of the priors: of the constant term, and of the weight of a
                                                       // standardised feature
// the smallest standard deviation of one placement around what its features predict
static const double sd_least = 0.02, sd_first = 0.05; // sd_first: before it was fitted

static double share_of_transfers(const struct tfc_timeline *t, double total) {
  double sum = 0;
  for (uint32_t i = 0; i < t->path_count; i++)
    if (t->path[i] >= t->node_count) {
      const struct tfc_transfer *x = &t->transfers[t->path[i] - t->node_count];
      sum += (double)(x->end - x->start);
    }
  return sum / total;
}

// Computes the features x. *out_us: the step time, simulated with the learned costs. False: the placement is not legal.
static bool features_of(const struct tfc_learned *l, const struct tfc_solution *solution, double *x, double *out_us) {
  const struct tfc_problem *p = l->problem;
  struct tfc_timeline t = {0};
  double total = 0, busy_most = 0, busy_sum = 0, bytes = 0;
  uint32_t used = 0, path_nodes = 0;
  double *busy = calloc(p->device_count + 1u, sizeof *busy);
  tfc_status s =
      busy ? tfc_simulate_timeline(l->now_simulator, solution->device, solution->rank, &t) : tfc_status_no_memory(NULL);
  for (uint32_t n = 0; n < t.node_count && !s; n++) {
    total = fmax(total, (double)t.end[n]);
    busy[solution->device[p->unit[n]]] += (double)(t.end[n] - t.start[n]);
  }
  const bool fine = !s && total > 0;
  tfc_status_free(s);
  for (uint32_t d = 0; d < p->device_count && fine; d++)
    busy_most = fmax(busy_most, busy[d]), busy_sum += busy[d], used += busy[d] > 0;
  for (uint32_t i = 0; i < t.transfer_count && fine; i++) bytes += (double)p->graph->bytes[t.transfers[i].tensor];
  for (uint32_t i = 0; i < t.path_count && fine; i++) path_nodes += t.path[i] < t.node_count;
  if (fine) {
    const double us = 1e-6 * total;
    *out_us = us;
    x[0] = 1;
    x[1] = log1p(t.transfer_count * l->arrival_unit_us / us);
    x[2] = log1p(bytes / (1e3 * us)); // GB/s
    x[3] = busy_sum / (total * p->device_count);
    x[4] = busy_most / total;
    x[5] = share_of_transfers(&t, total);
    x[6] = log(used);
    x[7] = log1p(path_nodes * l->arrival_unit_us / us);
  }
  tfc_timeline_deinit(&t);
  free(busy);
  return fine;
}

// Standardises the features of a placement.
static void standardise(const struct tfc_learned_whole *w, double *x) {
  for (uint32_t i = 1; i < TFC_LEARNED_FEATURES; i++)
    x[i] = w->deviation[i] > 1e-9 ? fmax(-2, fmin(2, (x[i] - w->mean[i]) / w->deviation[i])) : 0;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// Computes the posterior of the weights from `rows` of standardised features with residuals y of this standard
// deviation.
static void regress(struct tfc_learned_whole *w, const double *x, const double *y, size_t rows, double sd) {
  enum { F = TFC_LEARNED_FEATURES };
  double a[F * F] = {0}, b[F] = {0};
  for (size_t r = 0; r < rows; r++)
    for (uint32_t i = 0; i < F; i++) {
      for (uint32_t k = 0; k < F; k++) a[i * F + k] += x[r * F + i] * x[r * F + k] / (sd * sd);
      b[i] += x[r * F + i] * y[r] / (sd * sd);
    }
  for (uint32_t i = 0; i < F; i++) a[i * F + i] += 1 / (i ? sd_feature * sd_feature : sd_level * sd_level);
  if (!tfc_learned_cholesky(a, w->factor, F)) return;
  tfc_learned_solve_lower(w->factor, b, F);
  tfc_learned_solve_upper(w->factor, b, F);
  memcpy(w->weight, b, sizeof b);
  w->known = true;
}

tfc_status tfc_learned_fit_whole(struct tfc_learned *l) {
  enum { F = TFC_LEARNED_FEATURES };
  tfc_status s = NULL;
  struct tfc_learned_whole *w = &l->whole;
  const size_t first = l->steps.count > MOST_STEPS ? l->steps.count - MOST_STEPS : 0;
  double *x = malloc((l->steps.count + 1) * F * sizeof *x), *y = malloc((l->steps.count + 1) * sizeof *y);
  double *left = malloc((l->steps.count + 1) * sizeof *left);
  size_t rows = 0;
  *w = (struct tfc_learned_whole){.sd = sd_level};
  if (!x || !y || !left) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t i = first; i < l->steps.count; i++) {
    double us;
    if (!features_of(l, &l->steps.data[i].solution, x + rows * F, &us)) continue;
    y[rows++] = l->steps.data[i].log_us - log(us);
  }
  if (rows < FEWEST_STEPS) goto out;
  for (uint32_t i = 1; i < F; i++) {
    double sum = 0, squares = 0;
    for (size_t r = 0; r < rows; r++) sum += x[r * F + i], squares += x[r * F + i] * x[r * F + i];
    w->mean[i] = sum / (double)rows;
    w->deviation[i] = sqrt(fmax(0, squares / (double)rows - w->mean[i] * w->mean[i]));
  }
  for (size_t r = 0; r < rows; r++) standardise(w, x + r * F), left[r] = y[r];
  qsort(left, rows, sizeof *left, ascending);
  w->least = left[rows / 20], w->most = left[rows - 1 - rows / 20]; // the outliers at both ends are cut off
  // The residuals of a first fit give the standard deviation for the second; an outlier is moved towards the mean, so
  // that it has little influence.
  w->sd = sd_first;
  for (int pass = 0; pass < 3; pass++) {
    regress(w, x, y, rows, w->sd);
    if (!w->known) goto out;
    for (size_t r = 0; r < rows; r++) {
      double mean = 0;
      for (uint32_t i = 0; i < F; i++) mean += w->weight[i] * x[r * F + i];
      left[r] = fabs(y[r] - mean);
      const double most = 3 * w->sd; // as in Huber, "Robust Estimation of a Location Parameter", 1964
      if (left[r] > most) y[r] = mean + (y[r] > mean ? most : -most);
    }
    qsort(left, rows, sizeof *left, ascending);
    w->sd = fmax(sd_least, 1.4826 * left[rows / 2]);
  }
out:
  free(x);
  free(y);
  free(left);
  return s;
}

bool tfc_learned_predict(const struct tfc_learned *l, const struct tfc_solution *solution, double *out_us,
                         double *out_sd) {
  double us;
  if (!tfc_learned_predict_fully(l, solution, &us, out_sd)) return false;
  *out_us = exp(tfc_learned_trusted(l, solution, log(us)));
  return true;
}

// Predicts with full trust, by the mean of the weights, and computes the features x, which are standardised if the
// model is known.
static bool predict(const struct tfc_learned *l, const struct tfc_solution *solution, double *x, double *out_us) {
  double us, mean = 0;
  const struct tfc_learned_whole *w = &l->whole;
  if (!features_of(l, solution, x, &us)) return false;
  if (w->known) {
    standardise(w, x);
    for (uint32_t i = 0; i < TFC_LEARNED_FEATURES; i++) mean += w->weight[i] * x[i];
    mean = fmax(w->least, fmin(w->most, mean));
  }
  *out_us = us * exp(mean);
  return true;
}

void tfc_learned_draw(const struct tfc_learned *l, struct tfc_random *random, struct tfc_learned_opinion *out) {
  *out = (struct tfc_learned_opinion){0};
  if (!l->whole.known) return;
  for (uint32_t i = 0; i < TFC_LEARNED_FEATURES; i++) out->deviation[i] = tfc_random_normal(random);
  tfc_learned_solve_upper(l->whole.factor, out->deviation, TFC_LEARNED_FEATURES);
}

bool tfc_learned_predict_drawn(const struct tfc_learned *l, const struct tfc_solution *solution,
                               const struct tfc_learned_opinion *opinion, struct tfc_random *random, double *out_us) {
  double x[TFC_LEARNED_FEATURES], us;
  // before the model is known, its sd is mostly that of the level, which all placements have in common
  double deviation = (l->whole.known ? l->whole.sd : sd_first) * tfc_random_normal(random);
  if (!predict(l, solution, x, &us)) return false;
  for (uint32_t i = 0; i < TFC_LEARNED_FEATURES && l->whole.known; i++) deviation += opinion->deviation[i] * x[i];
  *out_us = exp(tfc_learned_trusted(l, solution, log(us)) + deviation);
  return true;
}

bool tfc_learned_predict_fully(const struct tfc_learned *l, const struct tfc_solution *solution, double *out_us,
                               double *out_sd) {
  double x[TFC_LEARNED_FEATURES], variance;
  const struct tfc_learned_whole *w = &l->whole;
  if (!predict(l, solution, x, out_us)) return false;
  variance = w->sd * w->sd;
  if (w->known) {
    tfc_learned_solve_lower(w->factor, x, TFC_LEARNED_FEATURES);
    for (uint32_t i = 0; i < TFC_LEARNED_FEATURES; i++) variance += x[i] * x[i];
  }
  if (out_sd) *out_sd = sqrt(variance);
  return true;
}
