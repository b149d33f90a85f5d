// Places a cost graph on the machine of a machine file, without running anything. It does all that `tfc-place --graph
// costs.json --machine m.yaml` does, for searches and for --evaluate; the program only parses flags, prints and exits.
//
//   struct tfc_place_outcome outcome = {0};
//   tfc_status s = tfc_place_modelled(&options, &outcome);
//   ... print outcome.placement (also when exit_code is 5 or 7), or the status's message; exit(outcome.exit_code);
//   tfc_place_outcome_deinit(&outcome);
#ifndef TFC_PLACER_PLACE_H
#define TFC_PLACER_PLACE_H

#include "placer/elsewhere/elsewhere.h"
#include "placer/model/placement.h"
#include "placer/model/request.h"
#include "placer/record.h"
#include "placer/search/search.h"

struct tfc_store;

struct tfc_place_options {
  const char *graph;   // path of a cost graph
  const char *machine; // path of a machine file
  const char *devices; // --devices, NULL: all
  struct tfc_request request;
  const char *evaluate;      // --evaluate: path, "-", "single:DEVICE"; NULL: search
  const char *const *limits; // [limit_count] "DEVICE=SIZE"
  uint32_t limit_count;
  const char *save_problem;         // directory (created if missing) for graph.json and machine.yaml; NULL: none
  struct tfc_search_options search; // algorithms, budget, seed, threads, cancel, progress
  // Steps are measured by a command (placer/elsewhere); NULL: nothing is measured.
  const struct tfc_elsewhere_settings *elsewhere;
  struct tfc_record_target record; // whether and where the answer is recorded (placer/record.h)
};

struct tfc_place_outcome {
  int exit_code;                    // always set: 0 to 7, or 130 when cancelled
  struct tfc_placement *placement;  // the document to print and to write; NULL only if the status is an error
  struct tfc_search_outcome search; // entries of each algorithm, bound (searches only)
  char *summary;                    // a few lines for people, with the gap; NULL for none
  int64_t run;                      // the run in the database; 0: there is none, or it is in `record`
  char *over_limits;                // which devices exceed their limits, and by how much; NULL: none
  struct tfc_store *record;         // a database in memory whose only run is the answer, or NULL
  tfc_status unrecorded;            // why there is no record although one was asked for; the placement is there
};
// The status tells what failed; outcome.exit_code is correct in both cases. Under --evaluate the exit code is 4 for an
// unknown device or kind of device (checked before code 3), and 5 if a memory limit is exceeded; then there is a
// document with `feasible: false`.
TFC_MUST_USE tfc_status tfc_place_modelled(const struct tfc_place_options *options, struct tfc_place_outcome *out);
void tfc_place_outcome_deinit(struct tfc_place_outcome *outcome);

// Reads graph, machine and constraints, and passes the problem to a function, which may use it during the call.
typedef tfc_status (*tfc_place_problem_fn)(void *user, const struct tfc_problem *problem);
TFC_MUST_USE tfc_status tfc_place_with_problem(const struct tfc_place_options *options, tfc_place_problem_fn fn,
                                               void *user);

// Makes the document of a solution for a program that measures. Its order is the precedence itself, which does not
// depend on times.
TFC_MUST_USE tfc_status tfc_place_describe(const struct tfc_problem *problem, const struct tfc_solution *solution,
                                           struct tfc_placement **out);

// Returns a text such as "acc:0 holds 2 kB, 500 B over its limit of 1.5 kB; ..." for the document's devices; it is
// tfc_place_outcome.over_limits.
char *tfc_place_over_limits(const struct tfc_problem *problem, const struct tfc_placement *placement);

// Writes the record of an outcome to its target, and fills `run` or `record`, or `unrecorded` if that fails: what was
// found is worth more than its report.
void tfc_place_record(const struct tfc_record *record, const struct tfc_record_target *target,
                      struct tfc_place_outcome *out);

// Moves the outcome of a measured run to its caller's structure; `from` is empty afterwards.
void tfc_place_take(struct tfc_elsewhere_outcome *from, struct tfc_place_outcome *out);

// Makes the document of a solution by simulating it: devices, value, step, transfers, placement, order. `bound` may be
// NULL.
TFC_MUST_USE tfc_status tfc_placement_from_solution(const struct tfc_problem *problem,
                                                    const struct tfc_solution *solution, const struct tfc_bound *bound,
                                                    struct tfc_placement **out);

#endif
