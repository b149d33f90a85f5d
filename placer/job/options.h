// The options of a job, which is one run of tfc-place on a graph that runs here. A job does not copy what they point
// to, so that must live until the job ends.
#ifndef TFC_PLACER_JOB_OPTIONS_H
#define TFC_PLACER_JOB_OPTIONS_H

#include "placer/job/clock.h"
#include "placer/measure/measure.h"
#include "placer/model/placement.h"
#include "placer/search/search.h"
#include "runtime/pass/step.h"

struct tfc_job_value { // a feed that the caller read from a file
  struct tfc_output output;
  struct tfc_tensor value; // borrowed
};

struct tfc_job_options {
  const char *program, *command; // for the database
  const char *graph_path;
  const struct tfc_graph *graph;      // as loaded from `graph_path`
  const struct tfc_step_spec *step;   // inferred or given
  const struct tfc_job_value *values; // feeds from files; the others get synthetic values
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
  const struct tfc_algo *const *learned; // algorithms that learn from measurements, ended by NULL; may be NULL
  const struct tfc_algo *const *extra;   // more algorithms to choose from by name, ended by NULL; may be NULL
  const struct tfc_guide *guide;         // the learned policy; NULL: none
  uint32_t measurements;                 // most placements that are measured; 0: 200
  double seconds;                        // 0: 600
  uint64_t evaluations;                  // 0: no limit
  bool prior;                            // --model prior: measurements of candidates do not change the costs
  bool no_early_stop;                    // candidates that are far too slow are measured in full
  // For benchmarks of the simulator: `random_first` random placements are measured before the search, equally many for
  // each number of devices. Instead of the final run, each measured placement is then measured `repeats` times more, in
  // a new random order each time, and the outcome gets `pairs`.
  uint32_t random_first, repeats;
  bool wait;        // first wait until another measuring run on this machine ends; that is no part of the job's time
  const char *lock; // the lock file of measuring runs; NULL: the user's (tests use their own)
  const char *database;
  const char *save_problem; // folder, NULL: none
  const char *evaluate;     // "-", "single:DEVICE" or a file: no search; NULL: search
  int64_t resume;           // the run to resume; 0: none; < 0: the last interrupted one
  const atomic_bool *cancel;
  void (*event)(void *user, const struct tfc_job_event *event); // may be NULL
  void *user;
};

// Whether an algorithm proposes what a policy learned: one of `learned`, or the guide's rollouts.
bool tfc_job_is_learned(const struct tfc_job_options *options, const char *algorithm);

#endif
