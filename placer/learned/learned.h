// Learned: corrections to a problem's costs, learned from measurements. The model predicts the logarithm of measured
// over simulated time as a linear function with a Gaussian prior around the simulator (ridge regression with known
// uncertainty). It has parameters for what the simulator does not know: for each device, for each family of operations,
// for each pair of devices that a tensor goes between, and for the time that the arrival of a tensor costs. It learns
// from times of single operations and transfers if there are any, and from whole steps: from a step it learns the costs
// of the operations on its critical path, and the time by which steps are longer than simulated.
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
// Borrows the problem. `alike`: devices of one kind share their parameters, and an operation's time depends on how many
// of them are busy at once; false: each device is treated as a kind of its own.
TFC_MUST_USE tfc_status tfc_learned_create(const struct tfc_problem *problem, bool alike, struct tfc_learned **out);
void tfc_learned_free(struct tfc_learned *learned); // NULL is fine

// The operations and transfers of one measured step. If devices are alike, operations must be sorted by start. NaN
// start: not known.
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
// Adds a measurement. All its times, those of the trace too, are multiplied by `scale`, which removes the machine's
// drift. `trace` may be NULL.
TFC_MUST_USE tfc_status tfc_learned_add(struct tfc_learned *learned, const struct tfc_solution *solution,
                                        double step_us, double scale, const struct tfc_learned_trace *trace);
TFC_MUST_USE tfc_status tfc_learned_fit(struct tfc_learned *learned);
uint32_t tfc_learned_readings(const struct tfc_learned *learned);

// Predicts a placement's step time with the costs that the last fit learned, and with its correction for whole steps.
// *out_sd (may be NULL): standard deviation of the logarithm of the time. False: the placement is not legal.
bool tfc_learned_predict(const struct tfc_learned *learned, const struct tfc_solution *solution, double *out_us,
                         double *out_sd);

// What one draw from the posterior distribution says about whole steps: by how much the weights of their features
// deviate from the mean.
enum { TFC_LEARNED_FEATURES = 8 };
struct tfc_learned_opinion {
  double deviation[TFC_LEARNED_FEATURES];
};
// Draws an opinion. Placements that are compared with each other need the same one: with independent draws, what is not
// known of all of them together would look like differences between them.
void tfc_learned_draw(const struct tfc_learned *learned, struct tfc_random *random, struct tfc_learned_opinion *out);
// Draws a placement's step time: what is predicted with this opinion, and a random deviation of this placement alone.
// False: the placement is not legal.
bool tfc_learned_predict_drawn(const struct tfc_learned *learned, const struct tfc_solution *solution,
                               const struct tfc_learned_opinion *opinion, struct tfc_random *random, double *out_us);

// Writes what was learned of operations and transfers as text, or reads it into a model that was just created for an
// equal problem. The text does not contain whole steps: the caller adds them again from stored placements and times.
// INVALID_ARGUMENT: the text is malformed, or belongs to another problem.
TFC_MUST_USE tfc_status tfc_learned_save(const struct tfc_learned *learned, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_learned_load(struct tfc_learned *learned, tfc_str text);

// The problem with corrected costs. Every pair of devices has its own link; unless devices are alike, every device is a
// kind of its own.
struct tfc_learned_world {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};
// Makes a world with the mean of the learned costs (`draw` NULL) or with costs drawn from the posterior. `like`: a
// problem with the same nodes and devices, the model's own or a coarser one; the new problem has its units and limits.
TFC_MUST_USE tfc_status tfc_learned_world(const struct tfc_learned *learned, const struct tfc_problem *like,
                                          struct tfc_random *draw, struct tfc_learned_world *out);
void tfc_learned_world_deinit(struct tfc_learned_world *world);

// For messages and tests: the learned factor by which times are longer than in the problem.
double tfc_learned_device_factor(const struct tfc_learned *learned, uint32_t device, double *out_sd); // sd of its log
// Returns the share of the learned corrections that search and predictions use: below 1 if the learned model did not
// predict new placements better than the given model did; 0: they use the given model alone.
double tfc_learned_trust(const struct tfc_learned *learned);

#endif
