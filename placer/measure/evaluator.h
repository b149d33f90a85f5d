// The measured evaluator: tfc_evaluator over a measurer, for searches and learners. It runs each batch in turns with
// the reference that the rules name, and passes every result to `observe` (the job stores it) before it returns the
// results.
#ifndef TFC_PLACER_MEASURE_EVALUATOR_H
#define TFC_PLACER_MEASURE_EVALUATOR_H

#include "placer/measure/measure.h"

struct tfc_measure_settings {
  uint32_t warmup, block, blocks; // 0 stands for 1, 5 and 1
  double stop_ratio;              // 0: the limit that the rules give is used
  tfc_trace_mode trace;
  double deadline_s; // 0: none
};
// Is called for each evaluation with the candidate, the measurement, and the result as algorithms see it. `index`
// TFC_NONE: it is the reference. An error status ends the evaluation.
typedef tfc_status (*tfc_observe_fn)(void *user, uint32_t index, const struct tfc_solution *candidate,
                                     const struct tfc_measured *measured, const struct tfc_result *result);

// Borrows measurer, subject and problem. `observe` may be NULL.
TFC_MUST_USE tfc_status tfc_evaluator_measured(struct tfc_measurer *measurer, const struct tfc_subject *subject,
                                               const struct tfc_problem *problem,
                                               const struct tfc_measure_settings *settings, tfc_observe_fn observe,
                                               void *user, struct tfc_evaluator **out);
// Whether the step's duration is part of the placement's result.
bool tfc_measured_counts(const struct tfc_measured *measured, const struct tfc_measured_step *step);
// Makes a result from a measurement: median, quartiles, ratio, and with `detail` busy time and memory.
TFC_MUST_USE tfc_status tfc_result_from_measured(const struct tfc_measured *measured, uint32_t device_count,
                                                 tfc_label label, bool detail, struct tfc_result *out);
// Returns the label for numbers that are measured on these devices: the least reliable one among them.
tfc_label tfc_measure_label(const struct tfc_measure_info *info);

#endif
