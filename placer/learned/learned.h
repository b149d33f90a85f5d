// Learned: corrections to a problem's costs, learned from measurements. The model predicts the residual, the logarithm
// of measured over simulated time, as a linear function with a Gaussian prior around the simulator (ridge regression
// with known uncertainty). Its features are what the simulator does not know: which device, which family of operation,
// which pair of devices a tensor goes between, and what an arrival costs. It learns from times of single operations and
// transfers where there are any, and from whole steps: each step says something about what was on its critical path,
// and, beside operations, about what the simulation leaves out of a step.
//
//   TFC_TRY(s, tfc_learned_create(problem, false, &learned));
//   TFC_TRY(s, tfc_learned_add(learned, &solution, step_us, &trace)); // after each reading
//   TFC_TRY(s, tfc_learned_fit(learned));
//   TFC_TRY(s, tfc_learned_world(learned, problem, &random, &world)); // a draw; NULL: the mean
//   ... search world.problem: units and nodes have the numbers that they have in `problem` ...
//
// One thread.
#ifndef TFC_PLACER_LEARNED_LEARNED_H
#define TFC_PLACER_LEARNED_LEARNED_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"
#include "runtime/base/str.h"

struct tfc_learned;
// Borrows the problem. `alike`: devices of a kind are alike, and their operations take longer by how many of the kind
// are busy at once; without, each device is a kind of its own.
TFC_MUST_USE tfc_status tfc_learned_create(const struct tfc_problem *problem, bool alike, struct tfc_learned **out);
void tfc_learned_free(struct tfc_learned *learned); // NULL is fine

// What one step of a reading took, piece by piece, operations by their start where devices are alike. NaN start: not
// known.
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
// A reading; `scale` is what its times are multiplied by to stand at the level of all others (drift), in the trace too.
// `trace` may be NULL.
TFC_MUST_USE tfc_status tfc_learned_add(struct tfc_learned *learned, const struct tfc_solution *solution,
                                        double step_us, double scale, const struct tfc_learned_trace *trace);
TFC_MUST_USE tfc_status tfc_learned_fit(struct tfc_learned *learned);
uint32_t tfc_learned_readings(const struct tfc_learned *learned);

// What a step of a placement takes, by the learned costs and by what whole steps taught beyond them, as of the last
// fit; *out_sd (may be NULL): of its logarithm. false: the placement is not legal.
bool tfc_learned_predict(const struct tfc_learned *learned, const struct tfc_solution *solution, double *out_us,
                         double *out_sd);

// What was learned of operations and transfers as text, and back again, into a model of an equal problem that was just
// created. Whole steps are not in it: whoever keeps placements and step times adds them again. INVALID_ARGUMENT: it is
// none, or of another problem.
TFC_MUST_USE tfc_status tfc_learned_save(const struct tfc_learned *learned, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_learned_load(struct tfc_learned *learned, tfc_str text);

// The problem with corrected costs: every pair has its link and, unless devices are alike, every device is a kind.
struct tfc_learned_world {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};
// Costs as they are by the model's mean, or by one draw of what is not known for sure. `like`: a problem of the same
// nodes and devices, whose units and limits it has: the model's own or a coarser one.
TFC_MUST_USE tfc_status tfc_learned_world(const struct tfc_learned *learned, const struct tfc_problem *like,
                                          struct tfc_random *draw, struct tfc_learned_world *out);
void tfc_learned_world_deinit(struct tfc_learned_world *world);

// What was learned, for people and tests: factors by which times are longer than the model said.
double tfc_learned_device_factor(const struct tfc_learned *learned, uint32_t device, double *out_sd); // sd of its log
double tfc_learned_link_factor(const struct tfc_learned *learned, uint32_t from, uint32_t to);
double tfc_learned_arrival_us(const struct tfc_learned *learned);

#endif
