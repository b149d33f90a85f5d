// Decides how much weight the learned model's predictions get. Before a placement is measured for the first time, the
// given model (the simulator with the costs of the profile or description) and the learned model each predict its step
// time. Later fits regress the measured times on both predictions (stacked regression: Wolpert 1992, "Stacked
// Generalization"; Breiman 1996): they find the share of the learned model's deviation from the given one that best
// predicts the measured deviation. If the learned model predicts placements that it has not seen no better than the
// given one, its share falls, and search and predictions use the given costs again. A factor that all placements have
// in common does not count, because it does not help to choose between them.
#include <math.h>

#include "placer/learned/private.h"

enum { MOST_TRIALS = 64 };
static const double believed = 10; // the prior, full trust, has the weight of so many trials

tfc_status tfc_learned_note_trial(struct tfc_learned *l, const struct tfc_solution *solution, double foretold_us,
                                  double log_us) {
  struct tfc_verdict v = {0};
  tfc_simulate(l->simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  if (!v.legal || v.value <= 0) return NULL;
  const struct tfc_learned_trial trial = {log(1e-6 * (double)v.value), log(foretold_us), log_us};
  return tfc_array_push(&l->trust.trials, trial)
             ? NULL
             : tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for the learned model");
}

void tfc_learned_fit_trust(struct tfc_learned *l) {
  struct tfc_learned_trust *t = &l->trust;
  const size_t first = t->trials.count > MOST_TRIALS ? t->trials.count - MOST_TRIALS : 0;
  const double n = (double)(t->trials.count - first);
  double given = 0, learned = 0, measured = 0, product = 0, square = 0;
  t->share = 1, t->given = t->learned = 0;
  if (n < 2) return;
  for (size_t i = first; i < t->trials.count; i++) {
    const struct tfc_learned_trial *x = &t->trials.data[i];
    given += x->given / n, learned += x->learned / n, measured += x->measured / n;
  }
  for (size_t i = first; i < t->trials.count; i++) {
    const struct tfc_learned_trial *x = &t->trials.data[i];
    const double said = (x->learned - learned) - (x->given - given),
                 was = (x->measured - measured) - (x->given - given);
    product += said * was, square += said * said;
  }
  t->given = given, t->learned = learned;
  if (square > 0) t->share = fmax(0, fmin(1, (n * product / square + believed) / (n + believed)));
}

void tfc_learned_apply_trust(const struct tfc_learned *l, double *theta, double *effects) {
  const size_t cells = (size_t)l->problem->node_count * l->problem->device_count;
  for (uint32_t i = 1; i < l->dim; i++)
    if (i < l->at_links || i >= l->at_pairs) theta[i] *= l->trust.share;
  for (size_t i = 0; i < cells; i++) effects[i] *= l->trust.share;
}

double tfc_learned_trusted(const struct tfc_learned *l, const struct tfc_solution *solution, double log_us) {
  const struct tfc_learned_trust *t = &l->trust;
  struct tfc_verdict v = {0};
  if (t->share >= 1) return log_us;
  tfc_simulate(l->simulator, solution->device, solution->rank, TFC_TIME_MAX, &v);
  if (!v.legal || v.value <= 0) return log_us;
  // The mean difference between the two models over the trials is added to the given model's prediction.
  const double given = log(1e-6 * (double)v.value) - t->given + t->learned;
  return t->share * log_us + (1 - t->share) * given;
}

double tfc_learned_trust(const struct tfc_learned *l) {
  return l->trust.share;
}
