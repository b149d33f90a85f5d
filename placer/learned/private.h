// The model's state, shared by this folder's files.
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
struct tfc_learned_reading { // a placement with all of its readings
  struct tfc_solution solution;
  double log_us; // the mean
  uint32_t count;
};
struct tfc_learned_sums { // of log(measured / simulated)
  double weight, sum;
};

enum { TFC_LEARNED_FEATURES = 8 };
struct tfc_learned_whole { // the model of whole steps: whole.c
  bool known;
  double mean[TFC_LEARNED_FEATURES], deviation[TFC_LEARNED_FEATURES]; // of the features over all measured placements
  double weight[TFC_LEARNED_FEATURES];                                // the mean of the posterior
  double factor[TFC_LEARNED_FEATURES * TFC_LEARNED_FEATURES];         // the Cholesky factor of its precision
  double sd;                                                          // of one placement, beyond its features
  double least, most; // of log(measured / simulated), 5 % cut off at each end
};

struct tfc_learned_trial { // logarithms of a step's time: as given, as learned before it was measured, as measured
  double given, learned, measured;
};
struct tfc_learned_trust {                    // how far the learned model is followed: trust.c
  TFC_ARRAY(struct tfc_learned_trial) trials; // a placement each, the newest last
  double share;                               // of what was learned, from 0 (the given model) to 1
  double given, learned;                      // means over the trials
};

struct tfc_learned {
  const struct tfc_problem *problem;
  bool alike;
  // [device * device_count + busy - 1] the index under which the device's samples are counted: its own or, if devices
  // are alike, that of its kind's device with the number `busy`.
  uint32_t *slot;
  struct tfc_simulator *simulator;
  uint32_t readings;
  bool traced;      // there are times of operations
  uint32_t *family; // [node]
  // [device] the prior mean of a device: the logarithm of the machine's slow-down, averaged or, if devices are alike,
  // for as many busy devices as the device's number in its kind.
  double *crowd;
  uint32_t family_count;

  // The parameters in their order: logarithms of factors for all operations; [device]; [family]; all links (latency,
  // the rest); [pair] (latency, the rest); and last the time of an arrival, in units of arrival_unit_us.
  uint32_t dim, at_family, at_links, at_pairs, at_arrival;
  double arrival_unit_us;
  double *prior;               // [dim] standard deviations
  double *mean;                // [dim]
  double *precision;           // [dim * dim] of the posterior
  double *factor;              // [dim * dim] its Cholesky factor, lower
  double *covariance_diagonal; // [dim]

  struct tfc_learned_sums *operation; // [node * device_count + device] without inputs from another device
  struct tfc_learned_sums *link;      // [2 * pair]: those that are mostly latency, and the others
  double *latency_share;              // [2 * pair] sums of shares, as `link` weighs them
  // [node * device_count + device] effect beyond the parameters, and its standard deviation.
  double *node_effect, *node_sd;
  TFC_ARRAY(struct tfc_learned_row) rows;
  TFC_ARRAY(struct tfc_learned_reading) steps;
  struct tfc_learned_whole whole;
  struct tfc_learned_trust trust;
  uint32_t fitted;              // number of readings at the last fit
  struct tfc_learned_world now; // with the mean of the parameters, as of the last fit
  struct tfc_simulator *now_simulator;
  // [pair * pair_count + pair] how often one waited for the other, and how often they ran at the same time.
  uint32_t *shared, *overlapped;
};

// Up to this number of devices each pair has its own parameters. With more devices, pairs that the machine file says
// are equally fast share them (the equations are dense), and wires are those of the machine file.
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
// The logarithm of the factor that the parameters predict for an operation's and a link's time.
static inline double tfc_learned_log_of(const struct tfc_learned *l, const double *theta, uint32_t node,
                                        uint32_t device) {
  return l->crowd[device] + theta[0] + theta[1 + device] + theta[l->at_family + l->family[node]];
}
static inline double tfc_learned_log_link(const struct tfc_learned *l, const double *theta, uint32_t pair, int part) {
  return theta[l->at_links + (uint32_t)part] + theta[l->at_pairs + 2 * pair + (uint32_t)part];
}

// The time of a node on a device before anything was learned, us; below 0: it cannot run there. If devices are alike,
// without dispatch time, because a trace does not show it.
static inline double tfc_learned_prior_us(const struct tfc_learned *l, uint32_t node, uint32_t device) {
  const int64_t ps = tfc_problem_time(l->problem, node, device);
  if (ps < 0) return -1;
  const double us = 1e-6 * (double)ps - (l->alike ? l->problem->machine->devices[device].dispatch_us : 0);
  return us > 0 ? us : 0;
}
// The world of one parameter vector; `effects` [node * device_count + device] are added to operations (NULL: none).
TFC_MUST_USE tfc_status tfc_learned_build(const struct tfc_learned *learned, const struct tfc_problem *like,
                                          const double *theta, const double *effects, struct tfc_learned_world *out);
// Stores, for a placement that was just measured for the first time, what the learned model predicted with full trust
// (`foretold_us`) and what was measured.
TFC_MUST_USE tfc_status tfc_learned_note_trial(struct tfc_learned *learned, const struct tfc_solution *solution,
                                               double foretold_us, double log_us);
void tfc_learned_fit_trust(struct tfc_learned *learned);
// Scales parameters and effects by the trusted share, except the factors of all operations and of all links.
void tfc_learned_apply_trust(const struct tfc_learned *learned, double *theta, double *effects);
// Returns the logarithm of a step's predicted time: between what the given model says and the learned prediction
// `log_us`, by how far that is trusted.
double tfc_learned_trusted(const struct tfc_learned *learned, const struct tfc_solution *solution, double log_us);
// As tfc_learned_predict, with full trust.
bool tfc_learned_predict_fully(const struct tfc_learned *learned, const struct tfc_solution *solution, double *out_us,
                               double *out_sd);
// Fits the model of whole steps: what they take beyond the simulation with the costs of `now`.
TFC_MUST_USE tfc_status tfc_learned_fit_whole(struct tfc_learned *learned);
// Equations: a = factor factor^T (false: a is not positive definite); factor x = b; factor^T x = b.
bool tfc_learned_cholesky(const double *a, double *factor, uint32_t n);
void tfc_learned_solve_lower(const double *factor, double *x, uint32_t n);
void tfc_learned_solve_upper(const double *factor, double *x, uint32_t n);
// Adds rows for whole steps, by their critical paths in the world of the mean, to the precision and the right side.
TFC_MUST_USE tfc_status tfc_learned_add_steps(struct tfc_learned *learned, double *precision, double *right);
// Learns from a trace which transfers wait for which on shared wires.
TFC_MUST_USE tfc_status tfc_learned_watch_wires(struct tfc_learned *learned, const struct tfc_learned_trace *trace);

#endif
