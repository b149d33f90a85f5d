// Evaluator: how algorithms and learners find out what placements cost. It takes batches, because only a batch can be
// measured in turns with a reference, and returns plain data. This header has the simulated evaluator; measured ones
// are in placer/measure. All share one vtable.
//
// One thread calls an evaluator at a time; the evaluator may use several threads itself.
#ifndef TFC_PLACER_SIMULATE_EVALUATOR_H
#define TFC_PLACER_SIMULATE_EVALUATOR_H

#include "placer/simulate/simulate.h"

struct tfc_rules {
  int64_t cutoff;         // ps: candidates that cannot be below it may be stopped (TFC_TIME_MAX: none is stopped)
  uint32_t warmup, steps; // of a measurement; ignored by the simulated one
  double stop_ratio;      // a candidate that is slower than the reference by this factor is stopped early
                          // (0: none is stopped)
  const struct tfc_solution *reference; // is measured in turns with the batch; NULL: there is none
  bool detail;                          // fills busy, memory and the critical path
};

typedef enum tfc_result_state {
  TFC_RESULT_OK,
  TFC_RESULT_CUT,     // stopped: not below the cutoff, or far too slow
  TFC_RESULT_NO_FIT,  // above a memory limit (the value, if there is one, ignores the limit)
  TFC_RESULT_ILLEGAL, // breaks a constraint or needs a missing link
  TFC_RESULT_FAILED   // crashed, hung, or the device stopped working: `message`
} tfc_result_state;

// The caller owns it and zeroes it first; arrays are reused from call to call.
struct tfc_result {
  tfc_result_state state;
  tfc_label label;
  int64_t value;       // ps: the objective (the median if it was measured); TFC_TIME_MAX: there is none
  int64_t q1, q3;      // ps: quartiles; equal to `value` if it was simulated
  uint32_t steps;      // timed ones; 0: simulated
  double ratio;        // value / value of the reference of the same batch; NaN: there was no reference
  double cost_seconds; // how much of the budget the evaluation used
  uint64_t excess;     // bytes above limits
  uint64_t transfers, transfer_bytes;
  int64_t *busy;    // [device] ps, with detail
  uint64_t *memory; // [device] bytes, with detail
  uint32_t *path;   // [path_count] nodes of the critical path, with detail
  uint32_t path_count;
  char *message; // why it failed, or NULL
};
void tfc_result_deinit(struct tfc_result *result);

struct tfc_evaluator;
struct tfc_evaluator_vtable {
  const char *name;
  // Fills results[count]. The returned status is an error of the evaluator (out of memory, the worker was lost and
  // cannot be replaced), not of a candidate.
  tfc_status (*evaluate)(struct tfc_evaluator *self, const struct tfc_solution *candidates, uint32_t count,
                         const struct tfc_rules *rules, struct tfc_result *results);
  void (*free)(struct tfc_evaluator *self);
};
struct tfc_evaluator { // the first member of every implementation
  const struct tfc_evaluator_vtable *vtable;
  const struct tfc_problem *problem;
};
TFC_MUST_USE static inline tfc_status tfc_evaluate(struct tfc_evaluator *evaluator,
                                                   const struct tfc_solution *candidates, uint32_t count,
                                                   const struct tfc_rules *rules, struct tfc_result *results) {
  return evaluator->vtable->evaluate(evaluator, candidates, count, rules, results);
}
static inline void tfc_evaluator_free(struct tfc_evaluator *evaluator) {
  if (evaluator) evaluator->vtable->free(evaluator);
}

// Makes the simulated evaluator with `threads` threads (0: as many as this process may use).
TFC_MUST_USE tfc_status tfc_evaluator_simulated(const struct tfc_problem *problem, uint32_t threads,
                                                struct tfc_evaluator **out);

#endif
