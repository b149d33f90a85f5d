// tfc-run --replicas: which tasks the towers are in, what each gets of the feeds, and the graph of all of them.
#ifndef TFC_CLI_RUN_REPLICAS_H
#define TFC_CLI_RUN_REPLICAS_H

#include "cli/run.h"

// Whether the tasks are those that --replicas, --reduce and --async ask for.
TFC_MUST_USE tfc_status run_replicas_check(const struct run_options *options, const struct tfc_cluster_spec *tasks);
// From the shape of a given feed for all replicas to the shape that each gets. A feed whose shape is the one that the
// placeholder declares goes to each as it is. INVALID_ARGUMENT: its first dimension cannot be divided.
TFC_MUST_USE tfc_status run_replicas_part(const struct run_setup *setup, struct tfc_output feed,
                                          struct tfc_shape *shape);

struct run_replicas_feeds { // what a step is fed: arrays of malloc
  struct tfc_output *outputs;
  struct tfc_tensor *values;
  uint32_t count;
};
// Replaces the setup's graph by the one that this task's session runs, with devices, and `feeds`, `step` and
// `init_feeds` by those of that graph. `split`: the feeds of which each replica gets its part. The task's number among
// the replicas counts with --async.
TFC_MUST_USE tfc_status run_replicas_make(struct run_setup *setup, const bool *split, struct tfc_step_spec *step,
                                          struct run_replicas_feeds *feeds, struct tfc_output *init_feeds);
// The variable's name without the "replica_1/" that the copies have.
tfc_str run_replicas_original(tfc_str name);

#endif
