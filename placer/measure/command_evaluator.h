// An evaluator that asks a measuring program. It runs batches in turns with the reference that the rules name; it
// measures the reference again after every few candidates, because machines drift. It passes every reading to `observe`
// before it returns the results.
#ifndef TFC_PLACER_MEASURE_COMMAND_EVALUATOR_H
#define TFC_PLACER_MEASURE_COMMAND_EVALUATOR_H

#include "placer/measure/command.h"

// Makes the document that the program gets for a solution.
typedef tfc_status (*tfc_describe_fn)(void *user, const struct tfc_solution *solution, struct tfc_placement **out);
// Is called for each reading. `index` TFC_NONE: it is one of the reference. An error status ends the evaluation.
typedef tfc_status (*tfc_reading_fn)(void *user, uint32_t index, const struct tfc_solution *candidate,
                                     const struct tfc_command_answer *answer, const struct tfc_result *result);

// Borrows program and problem. `observe` may be NULL. Candidates that break a constraint are not sent.
TFC_MUST_USE tfc_status tfc_evaluator_command(struct tfc_command *program, const struct tfc_problem *problem,
                                              tfc_describe_fn describe, void *describe_user, tfc_reading_fn observe,
                                              void *observe_user, struct tfc_evaluator **out);

#endif
