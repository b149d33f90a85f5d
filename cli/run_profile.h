// tfc-run --profile: the run in the database that traced steps become: devices, the graph with its edges, where each
// operation and variable was, steps, operations, transfers, memory.
#ifndef TFC_CLI_RUN_PROFILE_H
#define TFC_CLI_RUN_PROFILE_H

#include "cli/run.h"
#include "profiler/statistics.h"
#include "profiler/store.h"
#include "runtime/base/array.h"

struct tfc_step_profile;
struct run_recorded { // a plan, what its steps are fed, and what was recorded of them; owned
  struct tfc_plan *plan;
  struct tfc_output *feeds; // [feed_count]
  struct tfc_shape *feed_shapes;
  struct tfc_tensor *values;
  uint32_t feed_count;
  TFC_ARRAY(struct tfc_step_profile) profiles;
};
// Makes room for what the feeds are; the rest is zero. false: out of memory, and it needs no deinit.
bool run_recorded_init(struct run_recorded *recorded, uint32_t feed_count);
void run_recorded_deinit(struct run_recorded *recorded);

struct run_profile {
  const struct run_setup *setup;
  const struct run_recorded *recorded;
  const char *what;       // the name of the kind of a script's steps (run_kinds.h); NULL: there is no script
  uint32_t steps, warmup; // steps: how many were timed; warmup: how many before them were not
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
