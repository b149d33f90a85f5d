// tfc-run --profile: the run in the database that traced steps become: devices, the graph with its edges, where each
// operation and variable was, steps, operations, transfers, memory.
#ifndef TFC_CLI_RUN_PROFILE_H
#define TFC_CLI_RUN_PROFILE_H

#include "cli/run.h"
#include "profiler/statistics.h"
#include "profiler/store.h"

struct tfc_step_profile;
struct run_profile {
  const struct run_setup *setup;
  const struct tfc_plan *plan;
  const struct tfc_step_profile *profiles; // [profile_count]
  size_t profile_count;
  const struct tfc_output *feeds; // [feed_count]
  const struct tfc_shape *feed_shapes;
  const struct tfc_tensor *values;
  const char *what; // the name of the kind of a script's steps (run_kinds.h); NULL: there is no script
  uint32_t feed_count, steps, warmup; // steps: how many were timed; warmup: how many before them were not
  bool interrupted;
};
// Opens the database before anything runs, so that one that cannot be written is an error at once. With --wait, and in
// a job of several tasks, it waits while another process writes.
TFC_MUST_USE tfc_status run_profile_open(const struct run_setup *setup, struct tfc_store **out);
// *out_run: the run's number. The store must be open for writing.
TFC_MUST_USE tfc_status run_profile_store(const struct run_profile *profile, struct tfc_quartiles step_us,
                                          struct tfc_store *store, int64_t *out_run);
// Gives the drivers what they measured in earlier runs.
TFC_MUST_USE tfc_status run_profile_take_tuning(const struct run_setup *setup, struct tfc_store *store);

#endif
