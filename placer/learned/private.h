// The model's state, which all files of this folder use.
#ifndef TFC_PLACER_LEARNED_PRIVATE_H
#define TFC_PLACER_LEARNED_PRIVATE_H

#include "placer/learned/learned.h"
#include "placer/simulate/simulate.h"
#include "runtime/base/array.h"

struct tfc_learned_row { // an operation with inputs that came from another device
  uint32_t node, arrivals;
  uint16_t device;
  double time_us;
};
struct tfc_learned_reading { // a placement with all its measurements
  struct tfc_solution solution;
  double log_us;    // the mean of the logarithms of their times
  double log_given; // the logarithm of what the given model simulates; NaN: illegal there
  uint32_t count;
};
struct tfc_learned_sums { // weighted sums of log(measured / simulated)
  double weight, sum;
};

struct tfc_learned_whole { // the model of whole steps, which whole.c fits
  bool known;
  double mean[TFC_LEARNED_FEATURES], deviation[TFC_LEARNED_FEATURES]; // of the features over all measured placements
  double weight[TFC_LEARNED_FEATURES];                                // the mean of the posterior
  double factor[TFC_LEARNED_FEATURES * TFC_LEARNED_FEATURES];         // the Cholesky factor of its precision
  double sd;          // standard deviation of one placement around what its features predict
  double least, most; // of log(measured / simulated), 5 % cut off at each end
};

// One measured placement: logarithms of its step time. `given` and `learned`: what the given and the learned model said
// before it was measured (`given` is scaled to what had been measured until then); `measured`: what it then took.
struct tfc_learned_trial {
  double given, learned, measured;
};
struct tfc_learned_trust {                    // how much weight the learned model gets; trust.c computes it
  TFC_ARRAY(struct tfc_learned_trial) trials; // one for each placement, the newest last
  double share; // the share of the learned corrections that is used, from 0 (the given model alone) to 1
  double level; // log(measured / simulated by the given model) that all placements have in common
};

struct tfc_learned {
  const struct tfc_problem *problem;
  bool alike;
  // [device * device_count + busy - 1] under which index samples of the device are stored while `busy` devices of its
  // kind run: its own index or, if devices are alike, that of the device with number `busy` in its kind.
  uint32_t *slot;
  struct tfc_simulator *simulator;
  uint32_t readings;
  bool traced;      // there are times of single operations
  uint32_t *family; // [node]
  // [device] the prior mean of a device's parameter: the logarithm of the machine's slow-down. If devices are alike, it
  // is the slow-down for as many busy devices as the device's number in its kind; otherwise the mean over all numbers
  // of busy devices.
  double *crowd;
  uint32_t family_count;

  // The parameters, in this order. Logarithms of factors: one for all operations; [device]; [family]; two for all links
  // (latency, the rest); [pair] two (latency, the rest). The last parameter is the time of an arrival, in units of
  // arrival_unit_us.
  uint32_t dim, at_family, at_links, at_pairs, at_arrival;
  double arrival_unit_us;
  double *prior;               // [dim] standard deviations
  double *mean;                // [dim]
  double *precision;           // [dim * dim] of the posterior
  double *factor;              // [dim * dim] its Cholesky factor, lower
  double *covariance_diagonal; // [dim]

  struct tfc_learned_sums *operation; // [node * device_count + device] samples of operations without inputs from
                                      // another device
  struct tfc_learned_sums *link;      // [2 * pair] samples of transfers: those that are mostly latency, and the others
  double *latency_share; // [2 * pair] sums of the latency's shares of these transfers, with the weights that `link` has
  // [node * device_count + device] the node's residual, and its standard deviation.
  double *node_effect, *node_sd;
  TFC_ARRAY(struct tfc_learned_row) rows;
  TFC_ARRAY(struct tfc_learned_reading) steps;
  struct tfc_learned_whole whole;
  struct tfc_learned_trust trust;
  uint32_t fitted;              // number of readings at the last fit
  struct tfc_learned_world now; // the problem with the mean of the parameters, as of the last fit
  struct tfc_simulator *now_simulator;
  // [pair * pair_count + pair] how often a transfer of one pair waited for one of the other, and how often two ran at
  // the same time.
  uint32_t *shared, *overlapped;
};

// Up to this number of devices each pair has its own parameters. With more devices, pairs that are equally fast in the
// machine file share them, because the equations are dense; and wires are those of the machine file.
enum { TFC_LEARNED_MOST_PAIRED = 16 };
static inline uint32_t tfc_learned_pair_count(const struct tfc_problem *p) {
  const uint32_t most = TFC_LEARNED_MOST_PAIRED * TFC_LEARNED_MOST_PAIRED;
  return p->device_count <= TFC_LEARNED_MOST_PAIRED ? p->device_count * p->device_count : most;
}
static inline uint32_t tfc_learned_pair(const struct tfc_learned *l, uint32_t from, uint32_t to) {
  const struct tfc_problem *p = l->problem;
  if (p->device_count <= TFC_LEARNED_MOST_PAIRED && !l->alike) return from * p->device_count + to;
  return tfc_problem_pair(p, from, to)->speed % tfc_learned_pair_count(p);
}
// Returns the logarithm of the factor that the parameters predict for the time of an operation; the next function does
// so for a link.
static inline double tfc_learned_log_of(const struct tfc_learned *l, const double *theta, uint32_t node,
                                        uint32_t device) {
  return l->crowd[device] + theta[0] + theta[1 + device] + theta[l->at_family + l->family[node]];
}
static inline double tfc_learned_log_link(const struct tfc_learned *l, const double *theta, uint32_t pair, int part) {
  return theta[l->at_links + (uint32_t)part] + theta[l->at_pairs + 2 * pair + (uint32_t)part];
}

// Returns the time of a node on a device before anything was learned, in us; below 0: the node cannot run there. If
// devices are alike, dispatch time is left out, because a trace does not show it.
static inline double tfc_learned_prior_us(const struct tfc_learned *l, uint32_t node, uint32_t device) {
  const int64_t ps = tfc_problem_time(l->problem, node, device);
  if (ps < 0) return -1;
  const double us = 1e-6 * (double)ps - (l->alike ? l->problem->machine->devices[device].dispatch_us : 0);
  return us > 0 ? us : 0;
}
// Makes the problem with the costs of one parameter vector. `effects` [node * device_count + device] are added to the
// logarithms of the operations' times (NULL: none).
TFC_MUST_USE tfc_status tfc_learned_build(const struct tfc_learned *learned, const struct tfc_problem *like,
                                          const double *theta, const double *effects, struct tfc_learned_world *out);
// Returns the logarithm of what the given model simulates for a placement; NaN: it is illegal there.
double tfc_learned_log_given(const struct tfc_learned *learned, const struct tfc_solution *solution);
// Stores a trial, for a placement that was just measured for the first time: what the learned model predicted with full
// trust (`predicted_us`), and what was measured.
TFC_MUST_USE tfc_status tfc_learned_note_trial(struct tfc_learned *learned, double log_given, double predicted_us,
                                               double log_us);
// Fits the common factor of the given model, and the trusted share.
TFC_MUST_USE tfc_status tfc_learned_fit_trust(struct tfc_learned *learned);
// Multiplies parameters and effects by the trusted share, except the factors of all operations and of all links.
void tfc_learned_apply_trust(const struct tfc_learned *learned, double *theta, double *effects);
// Returns the logarithm of the predicted step time: a mean of the given model's prediction and the learned one
// (`log_us`), weighted by the trusted share.
double tfc_learned_trusted(const struct tfc_learned *learned, const struct tfc_solution *solution, double log_us);
// As tfc_learned_predict, with full trust.
bool tfc_learned_predict_fully(const struct tfc_learned *learned, const struct tfc_solution *solution, double *out_us,
                               double *out_sd);
// Fits the model of whole steps, which predicts how much longer steps are than the simulation with the costs of `now`.
TFC_MUST_USE tfc_status tfc_learned_fit_whole(struct tfc_learned *learned);
// Solve linear equations. The first computes the factor with a = factor factor^T (false: a is not positive definite),
// the others x in factor x = b and in factor^T x = b.
bool tfc_learned_cholesky(const double *a, double *factor, uint32_t n);
void tfc_learned_solve_lower(const double *factor, double *x, uint32_t n);
void tfc_learned_solve_upper(const double *factor, double *x, uint32_t n);
// Adds an equation for each measured step, from its critical path in the problem `now`, to the precision matrix and the
// right side.
TFC_MUST_USE tfc_status tfc_learned_add_steps(struct tfc_learned *learned, double *precision, double *right);
// Counts in a trace which transfers wait for each other, that is, which pairs share a wire.
TFC_MUST_USE tfc_status tfc_learned_watch_wires(struct tfc_learned *learned, const struct tfc_learned_trace *trace);

#endif
