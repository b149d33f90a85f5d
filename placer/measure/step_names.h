// The names of what a step runs, in the form in which a measurer's options have them.
#ifndef TFC_PLACER_MEASURE_STEP_NAMES_H
#define TFC_PLACER_MEASURE_STEP_NAMES_H

#include "placer/measure/measure.h"
#include "runtime/pass/step.h"

struct tfc_step_names {
  tfc_str *names;
  char **fetches; // "node:0"
  uint32_t fetch_count;
};
// Makes the names of the step's fetches, targets and initialisers and puts them, with their counts and the number of
// feeds, into the options. They are valid until the names are freed; the names of nodes belong to the graph.
TFC_MUST_USE tfc_status tfc_step_names_init(struct tfc_step_names *names, const struct tfc_graph *graph,
                                            const struct tfc_step_spec *step, struct tfc_measure_options *options);
void tfc_step_names_deinit(struct tfc_step_names *names); // zeroed is fine

#endif
