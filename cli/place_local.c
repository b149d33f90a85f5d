// tfc-place on a TensorFlow graph and local devices: the graph is read, the step worked out and shown.
#include <stdlib.h>

#include "cli/place.h"
#include "cli/program.h"
#include "cli/step_args.h"
#include "runtime/graph/import.h"

int place_local(const struct place_options *o) {
  struct tfc_graph *graph = NULL;
  struct cli_step step = {0};
  struct cli_step_args args = {.fetches = o->fetches,
                               .targets = o->targets,
                               .inits = o->inits,
                               .feeds = o->feeds,
                               .batch = o->batch,
                               .no_init = o->checkpoint != NULL};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_graph_load(o->graph, NULL, &graph));
  TFC_TRY(s, cli_step_infer(graph, &args, &step));
  for (uint32_t i = 0; i < step.spec.note_count; i++) tfc_say("%.*s", TFC_STR_ARG(step.spec.notes[i]));
  TFC_FAIL(s, TFC_INTERNAL, "%s: this build places cost graphs only", o->graph);
out:
  cli_step_deinit(&step);
  tfc_graph_release(graph);
  return tfc_program_fail(s);
}
