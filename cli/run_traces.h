// tfc-run --cluster --profile: traced steps of this task's session, whose operations run in several tasks, and the run
// in the database that they become. Each task with a graph stores a run of its own, one after the other.
#ifndef TFC_CLI_RUN_TRACES_H
#define TFC_CLI_RUN_TRACES_H

#include "cli/run.h"
#include "profiler/statistics.h"
#include "profiler/store.h"
#include "runtime/cluster/traces.h"

struct run_traces {
  TFC_ARRAY(struct tfc_cluster_trace) steps;
};
// Takes the trace over, also if it fails.
TFC_MUST_USE tfc_status run_traces_add(struct run_traces *traces, struct tfc_cluster_trace *step);
// Waits while another process writes to the database, and says so after `quiet_ns`. CANCELLED: `cancel` was set
// meanwhile.
TFC_MUST_USE tfc_status run_traces_open(const struct run_setup *setup, int64_t quiet_ns, const _Atomic bool *cancel,
                                        struct tfc_store **out);
// `what`: the name of the kind of a script's steps (run_kinds.h); NULL: there is no script. `stopped`: a signal ended
// the steps.
TFC_MUST_USE tfc_status run_traces_store(const struct run_traces *traces, const struct run_setup *setup,
                                         const char *what, struct tfc_quartiles step_us, bool stopped);
void run_traces_deinit(struct run_traces *traces);

#endif
