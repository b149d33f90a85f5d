// The main job: a TensorFlow graph, local devices, and the placement that is measurably best. Phases: profile and
// baselines (a third of the time), search and learn (the rest), final measurement and report (a quarter held back).
// Everything goes to the database as it happens; an interrupted job goes on from there. A program parses flags, shows
// events and prints the outcome.
//
//   struct tfc_job_outcome outcome = {0};
//   tfc_status s = tfc_job_run(&options, &outcome);
//   ... print outcome.rows, outcome.placement or the status's message; exit(outcome.exit_code);
//   tfc_job_outcome_deinit(&outcome);
#ifndef TFC_PLACER_JOB_JOB_H
#define TFC_PLACER_JOB_JOB_H

#include "placer/measure/measure.h"
#include "placer/model/placement.h"
#include "placer/search/search.h"
#include "runtime/pass/step.h"

typedef enum tfc_job_phase {
  TFC_JOB_IMPORT,
  TFC_JOB_PROFILE,
  TFC_JOB_SEARCH,
  TFC_JOB_FINAL,
  TFC_JOB_DONE,
} tfc_job_phase;

struct tfc_job_event {
  tfc_job_phase phase;
  bool warning;
  const char *text;              // a line for people, NULL: only progress
  double seconds, seconds_total; // of the whole job
  uint32_t measured, measured_total;
  double best_us; // NaN: none yet
};

struct tfc_job_value { // a real feed: the caller read it
  struct tfc_output output;
  struct tfc_tensor value; // borrowed
};

struct tfc_job_options {
  const char *program, *command; // for the database
  const char *graph_path;
  const struct tfc_graph *graph;      // loaded from there
  const struct tfc_step_spec *step;   // inferred or given
  const struct tfc_job_value *values; // real feeds; the others are synthetic
  uint32_t value_count;
  const char *devices;            // as --devices
  const char *checkpoint;         // prefix that variables are restored from, or NULL
  struct tfc_execution execution; // borrowed limits
  const char *const *pins;        // "REGEX=DEVICE"
  uint32_t pin_count;
  const char *const *baselines; // "NAME=FILE"
  uint32_t baseline_count;
  tfc_objective objective;
  enum { TFC_STRINGS_RIVAL, TFC_STRINGS_ARE_CONSTRAINTS, TFC_STRINGS_ARE_IGNORED } device_strings;
  const char *algorithms;                // NULL: auto
  const struct tfc_algo *const *learned; // algorithms that learn from measurements (rl), ended by NULL; may be NULL
  const struct tfc_algo *const *extra;   // more algorithms to choose from by name, ended by NULL; may be NULL
  const struct tfc_guide *guide;         // the learned policy; NULL: none
  uint32_t measurements;                 // 0: 200
  double seconds;                        // 0: 600
  uint64_t evaluations;                  // 0: no such limit
  bool no_early_stop;                    // hopeless candidates are measured in full
  // Benchmarks of the simulator: so many random placements are measured before the search, by number of devices used;
  // after it, in place of the final run, all that was measured is measured so many times more, in an order drawn anew
  // each time, and `pairs` are given.
  uint32_t random_first, repeats;
  const char *database;
  const char *save_problem; // folder, NULL: none
  const char *evaluate;     // "-", "single:DEVICE" or a file: no search; NULL: search
  int64_t resume;           // run to go on with; 0: none; < 0: the last interrupted one
  const atomic_bool *cancel;
  void (*event)(void *user, const struct tfc_job_event *event); // may be NULL
  void *user;
};

struct tfc_job_row { // one line of the answer's table
  char *name;        // "whole", "found", "single:cpu:0", "expert", an algorithm
  const char *kind;  // "whole", "answer", "single", "baseline", "heuristic"
  tfc_result_state state;
  bool modelled; // simulated only
  double median_us, q1_us, q3_us;
  uint32_t steps;
  double simulated_us;
  // Under throughput: the load of a step; load_steps: times that it was taken with several steps in flight, 0:
  // modelled.
  double load_us;
  uint32_t load_steps;
  double speedup, low, high; // best single device / this one, 95 %; NaN where not measured side by side
  char *note;
};
struct tfc_job_pair {  // a placement as simulated and as measured, time and again
  char *algorithm;     // that proposed it
  double predicted_us, // by the costs before it was measured
      simulated_us;    // by those after the search
  double *measured_us; // [measured_count] medians of five steps, minutes apart
  uint32_t measured_count;
};
struct tfc_job_outcome {
  int exit_code;                   // always set
  int64_t run;                     // 0: none was begun
  struct tfc_placement *placement; // the document, NULL where there is none
  struct tfc_job_row *rows;
  uint32_t row_count;
  double bound_us, gap; // gap: median / bound - 1
  const char *bound_name;
  double tau;
  uint32_t tau_placements;
  double trace_overhead; // traced / untraced - 1, NaN: not known
  bool trace_told;       // it is more than steps vary by
  uint32_t measured, lost_workers;
  bool interrupted;
  double *busy_share; // [device] of the answer
  uint64_t *peak;     // [device] bytes
  uint64_t *crossing; // [from * device_count + to] bytes per step
  uint32_t device_count;
  char *path;                 // critical path by op type: "MatMul 61 %, transfers 12 %, ..."; NULL: none
  char *first_line;           // what to say first
  struct tfc_job_pair *pairs; // where repeats were asked for
  uint32_t pair_count;
};
TFC_MUST_USE tfc_status tfc_job_run(const struct tfc_job_options *options, struct tfc_job_outcome *out);
void tfc_job_outcome_deinit(struct tfc_job_outcome *outcome);

#endif
