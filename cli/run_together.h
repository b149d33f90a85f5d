// Several tasks, each with its own session, that train one model synchronously (TensorFlow's SyncReplicasOptimizer
// without backups): with --supervise they take each step together, and meet after it. So no worker takes the token of
// another one, every run gives the same numbers, and a checkpoint has a moment at which all stand still.
#ifndef TFC_CLI_RUN_TOGETHER_H
#define TFC_CLI_RUN_TOGETHER_H

#include "cli/run.h"

// Whether this task's step gives gradients to accumulators, and these are applied when each of `clients` tasks has
// given as many.
TFC_MUST_USE tfc_status run_together_can(const struct run_setup *setup, const struct tfc_step_spec *step,
                                         const struct tfc_output *feeds, uint32_t clients, bool *out);

#endif
