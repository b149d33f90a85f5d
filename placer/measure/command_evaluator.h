// The evaluator over a measuring program: batches in turns with the rules' reference, which is asked for again after
// every few candidates, since machines drift. Every reading is shown to `observe` before results are returned.
#ifndef TFC_PLACER_MEASURE_COMMAND_EVALUATOR_H
#define TFC_PLACER_MEASURE_COMMAND_EVALUATOR_H

#include "placer/measure/command.h"

// The document of a solution, as the program is to be sent it.
typedef tfc_status (*tfc_describe_fn)(void *user, const struct tfc_solution *solution, struct tfc_placement **out);
// One reading. `index` UINT32_MAX: of the reference. A status ends the evaluation.
typedef tfc_status (*tfc_reading_fn)(void *user, uint32_t index, const struct tfc_solution *candidate,
                                     const struct tfc_command_answer *answer, const struct tfc_result *result);

// Borrows program and problem. `observe` may be NULL. Candidates that break a constraint are not sent.
TFC_MUST_USE tfc_status tfc_evaluator_command(struct tfc_command *program, const struct tfc_problem *problem,
                                              tfc_describe_fn describe, void *describe_user, tfc_reading_fn observe,
                                              void *observe_user, struct tfc_evaluator **out);

#endif
