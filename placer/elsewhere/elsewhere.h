// Places by measurements that another program makes: given a problem, whose costs are the prior, and a command that
// runs steps, it finds the placement that is fastest for that command. Rounds of searching, reading and learning come
// first; then the best placements are read in turns. The reported figures come from readings that did not influence the
// choice. `tfc-place --measure-with` uses it, for a cost graph and for a TensorFlow graph with a machine file.
//
//   struct tfc_elsewhere_outcome outcome = {0};
//   tfc_status s = tfc_elsewhere_run(&options, &outcome);
//   ... outcome.placement, or the status's message; exit(outcome.exit_code);
//   tfc_elsewhere_outcome_deinit(&outcome);
#ifndef TFC_PLACER_ELSEWHERE_ELSEWHERE_H
#define TFC_PLACER_ELSEWHERE_ELSEWHERE_H

#include "placer/measure/command_evaluator.h"
#include "placer/search/search.h"

struct tfc_elsewhere_rival {
  const char *name;
  const struct tfc_solution *solution;
  bool single; // everything on one device
};

// Settings of the calling program; they are the same for a cost graph and for a TensorFlow graph.
struct tfc_elsewhere_settings {
  const char *measure_with; // the command, or a text that names the function `ask`, for messages
  tfc_command_fn ask;       // measures instead of a command; NULL: the command measures
  void *ask_user;
  double timeout_s;                       // --measure-timeout, 0: not given
  int stderr_to;                          // as in struct tfc_command_options
  const char *temporary;                  // folder for temporary files, as in struct tfc_command_options
  uint32_t measurements;                  // placements that may be measured
  bool prior;                             // --model prior: measurements only rank placements and do not change costs
  const char *database, *program_command; // --db; the whole command line, for the database
  int64_t resume;                         // number of the run to resume; 0: none, < 0: the last interrupted one
  void (*say)(bool warning, const char *text); // a line for people
  struct tfc_warnings *warnings;               // those that the program printed, stored with the run; may be NULL
  // Called when another placement has become the best measured one, so that the program can keep it should the run be
  // killed. NULL: nothing is kept.
  tfc_status (*improved)(void *user, const struct tfc_placement *best);
  void *improved_user;
};

struct tfc_elsewhere_options {
  const struct tfc_elsewhere_settings *settings;
  const struct tfc_problem *problem;
  struct tfc_search_options search;         // its budget is that of the whole run
  const char *graph, *machine, *sha256;     // paths as given; sha256 of the graph or NULL
  const struct tfc_elsewhere_rival *rivals; // [rival_count]
  uint32_t rival_count;
  const struct tfc_solution *evaluate; // only this one is measured; NULL: search
  // Makes the document of a solution, with the model's figures for it.
  tfc_describe_fn describe;
  void *user;
};

struct tfc_elsewhere_outcome {
  int exit_code;
  bool cancelled;
  int64_t run;                     // its number in the database
  struct tfc_placement *placement; // NULL: nothing could be measured
  char *summary;                   // a few lines for people
};
TFC_MUST_USE tfc_status tfc_elsewhere_run(const struct tfc_elsewhere_options *options,
                                          struct tfc_elsewhere_outcome *out);
void tfc_elsewhere_outcome_deinit(struct tfc_elsewhere_outcome *outcome);

#endif
