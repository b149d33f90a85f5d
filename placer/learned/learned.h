// Learned: corrections to a problem's costs, learned from measurements. The model predicts the residual, the logarithm
// of measured over simulated time, as a linear function with a Gaussian prior around the simulator (ridge regression
// with known uncertainty). Its features are what the simulator does not know: which device, which family of operation,
// which pair of devices a tensor goes between, and what an arrival costs. It learns from times of single operations and
// transfers if there are any, and from whole steps: each step teaches the costs on its critical path, and the time that
// a step takes beyond the simulation of its operations.
//
//   TFC_TRY(s, tfc_learned_create(problem, false, &learned));
//   TFC_TRY(s, tfc_learned_add(learned, &solution, step_us, 1, &trace)); // after each reading
//   TFC_TRY(s, tfc_learned_fit(learned));
//   TFC_TRY(s, tfc_learned_world(learned, problem, &random, &world)); // a draw; NULL: the mean
//   ... search world.problem: units and nodes have the numbers that they have in `problem` ...
//
// Only one thread at a time may use a model.
#ifndef TFC_PLACER_LEARNED_LEARNED_H
#define TFC_PLACER_LEARNED_LEARNED_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"
#include "runtime/base/str.h"

struct tfc_learned;
// Borrows the problem. `alike`: devices of a kind are alike, and an operation's time depends on how many of the kind
// are busy at once; false: each device is a kind of its own.
TFC_MUST_USE tfc_status tfc_learned_create(const struct tfc_problem *problem, bool alike, struct tfc_learned **out);
void tfc_learned_free(struct tfc_learned *learned); // NULL is fine

// The parts of one measured step. Operations are sorted by start if devices are alike. NaN start: not known.
struct tfc_learned_operation {
  uint32_t node, device;
  double start_us, time_us;
};
struct tfc_learned_transfer {
  uint32_t tensor, from, to;
  double start_us, time_us;
};
struct tfc_learned_trace {
  const struct tfc_learned_operation *operations;
  uint32_t operation_count;
  const struct tfc_learned_transfer *transfers;
  uint32_t transfer_count;
};
// Adds a measurement. `scale` multiplies its times, also those of the trace, to remove the machine's drift. `trace` may
// be NULL.
TFC_MUST_USE tfc_status tfc_learned_add(struct tfc_learned *learned, const struct tfc_solution *solution,
                                        double step_us, double scale, const struct tfc_learned_trace *trace);
TFC_MUST_USE tfc_status tfc_learned_fit(struct tfc_learned *learned);
uint32_t tfc_learned_readings(const struct tfc_learned *learned);

// Predicts a placement's step time from the learned costs and the correction learned from whole steps, as of the last
// fit. *out_sd (may be NULL): standard deviation of its logarithm. False: the placement is not legal.
bool tfc_learned_predict(const struct tfc_learned *learned, const struct tfc_solution *solution, double *out_us,
                         double *out_sd);

// Writes what was learned of operations and transfers as text, and reads it into a model of an equal problem that was
// just created. Whole steps are not part of it: the caller adds them again from stored placements and times.
// INVALID_ARGUMENT: the text is malformed, or of another problem.
TFC_MUST_USE tfc_status tfc_learned_save(const struct tfc_learned *learned, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_learned_load(struct tfc_learned *learned, tfc_str text);

// The problem with corrected costs: every pair of devices has its link and, unless devices are alike, every device is a
// kind.
struct tfc_learned_world {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};
// Costs by the model's mean, or by a draw from its uncertainty. `like`: a problem with the same nodes and devices, the
// model's own or a coarser one, whose units and limits the new problem gets.
TFC_MUST_USE tfc_status tfc_learned_world(const struct tfc_learned *learned, const struct tfc_problem *like,
                                          struct tfc_random *draw, struct tfc_learned_world *out);
void tfc_learned_world_deinit(struct tfc_learned_world *world);

// What was learned, for messages and tests: factors by which times are longer than in the problem.
double tfc_learned_device_factor(const struct tfc_learned *learned, uint32_t device, double *out_sd); // sd of its log
double tfc_learned_link_factor(const struct tfc_learned *learned, uint32_t from, uint32_t to);
double tfc_learned_arrival_us(const struct tfc_learned *learned);
// The share of what was learned that search and predictions follow: below 1 if it did not predict placements that it
// had not seen better than the given model did; 0: they follow the given model alone.
double tfc_learned_trust(const struct tfc_learned *learned);

#endif
