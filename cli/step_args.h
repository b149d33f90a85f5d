// Finds the nodes that the flags for the step name in a graph: fetches, targets, initialisers and feeds.
#ifndef TFC_CLI_STEP_ARGS_H
#define TFC_CLI_STEP_ARGS_H

#include "cli/flags.h"
#include "runtime/pass/step.h"

struct cli_step_args {
  struct tfc_texts fetches, targets, inits, feeds;
  int64_t batch;
  bool no_init; // do not run the initialiser: variables are restored
};
struct cli_step {
  struct tfc_arena arena;
  struct tfc_step_request request;
  struct tfc_tensor *values; // [request.feed_count], owned; data NULL: a synthetic feed
  struct tfc_step_spec spec;
};
// "NAME=FILE.npy" is read now; for "NAME=DTYPE[SHAPE]" a value is generated later. INVALID_ARGUMENT and NOT_FOUND name
// the flag and say what is wrong.
TFC_MUST_USE tfc_status cli_step_infer(const struct tfc_graph *graph, const struct cli_step_args *args,
                                       struct cli_step *out);
void cli_step_deinit(struct cli_step *step);

#endif
