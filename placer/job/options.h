// The options of a job, that is, of one run of tfc-place on a graph that runs on this machine. A job does not copy what
// the pointers point to, so that must exist until the job ends.
#ifndef TFC_PLACER_JOB_OPTIONS_H
#define TFC_PLACER_JOB_OPTIONS_H

#include "placer/job/clock.h"
#include "placer/measure/measure.h"
#include "placer/model/placement.h"
#include "placer/model/request.h"
#include "placer/search/search.h"
#include "runtime/pass/step.h"

struct tfc_job_value { // a feed that the caller read from a file
  struct tfc_output output;
  struct tfc_tensor value; // borrowed
};

struct tfc_job_options {
  const char *program, *command; // for the database
  const char *graph_path;
  const struct tfc_graph *graph;      // the graph that was loaded from `graph_path`
  const struct tfc_step_spec *step;   // found in the graph, or given by the user
  const struct tfc_job_value *values; // feeds from files; the others get synthetic values
  uint32_t value_count;
  const char *devices;            // in the form of --devices
  const char *checkpoint;         // prefix of a checkpoint from which variables are restored, or NULL
  struct tfc_execution execution; // borrows its limits
  struct tfc_request request;
  struct tfc_search_settings search;     // of all its searches
  const struct tfc_algo *const *learned; // algorithms that learn from measurements, ended by NULL; may be NULL
  uint32_t measurements;                 // the most placements that are measured; 0 stands for 200
  double seconds;                        // the job's time; 0 stands for 600
  uint64_t evaluations;                  // the most placements that all searches simulate; 0: no limit
  bool prior;                            // --model prior: measurements of candidates do not change the costs
  bool no_early_stop;                    // candidates that are far too slow are measured in full
  // For benchmarks of the simulator. Before the search, `random_first` random placements are measured, equally many for
  // each number of devices; the search ends when `measurements` or the time are used up. Instead of the final run, all
  // measured placements are measured `repeats` more times, each time in a new random order, and the outcome gets
  // `pairs`.
  uint32_t random_first, repeats;
  bool wait;        // first waits until no other run measures on this machine; that time is not part of the job's time
  const char *lock; // path of the lock file of measuring runs; NULL: the user's lock file (tests use their own)
  const char *database;
  struct tfc_warnings *warnings; // what the program warned of, stored with the run; NULL: nothing is stored
  const char *save_problem;      // folder, NULL: none
  const char *evaluate;          // "-", "single:DEVICE" or a file: no search; NULL: search
  int64_t resume;                // the run to resume; 0: none; < 0: the last interrupted one
  const atomic_bool *cancel;
  void (*event)(void *user, const struct tfc_job_event *event); // may be NULL
  void *user;
};

// Whether the algorithm is one of `learned`, or proposes the rollouts of the guide's policy.
bool tfc_job_is_learned(const struct tfc_job_options *options, const char *algorithm);

#endif
