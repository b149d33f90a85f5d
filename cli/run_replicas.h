// For tfc-run --replicas: decides in which tasks the towers are and which part of the feeds each gets, and makes the
// graph of all towers.
#ifndef TFC_CLI_RUN_REPLICAS_H
#define TFC_CLI_RUN_REPLICAS_H

#include "cli/run.h"

// Checks that the job has the tasks that --replicas, --reduce and --async need.
TFC_MUST_USE tfc_status run_replicas_check(const struct run_options *options, const struct tfc_cluster_spec *tasks);
// Changes the shape of a feed that is given for all replicas to the shape of the part that each replica gets. If a feed
// already has the shape that the placeholder declares, each replica gets all of it. INVALID_ARGUMENT: its first
// dimension cannot be divided.
TFC_MUST_USE tfc_status run_replicas_part(const struct run_setup *setup, struct tfc_output feed,
                                          struct tfc_shape *shape);

struct run_replicas_feeds { // what a step is fed: arrays of malloc
  struct tfc_output *outputs;
  struct tfc_tensor *values;
  uint32_t count;
};
// Replaces the setup's graph by the one that this task's session runs, with device strings, and changes `feeds`, `step`
// and `init_feeds` accordingly. `split`: the feeds of which each replica gets a part. With --async this task's number
// among the replicas decides which part.
TFC_MUST_USE tfc_status run_replicas_make(struct run_setup *setup, const bool *split, struct tfc_step_spec *step,
                                          struct run_replicas_feeds *feeds, struct tfc_output *init_feeds);
// Returns the name of a variable without the prefix "replica_1/" of the copies.
tfc_str run_replicas_original(tfc_str name);

#endif
