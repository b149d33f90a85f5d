// Types and functions that the source files of tfc-run share.
#ifndef TFC_CLI_RUN_H
#define TFC_CLI_RUN_H

#include "cli/flags.h"
#include "runtime/cluster/client.h"
#include "runtime/exec/session.h"
#include "runtime/pass/step.h"

struct run_options {
  struct tfc_common common; // must be first
  const char *graph, *devices, *placement, *db, *checkpoint, *save_checkpoint, *script, *out, *cluster, *supervise;
  struct tfc_texts fetches, targets, inits, feeds;
  int64_t steps, warmup, batch, restarts;
  int64_t replicas; // --replicas; 0: not given
  int64_t backup;   // --backup; 0: not given
  int reduce;       // --reduce: run_reduce
  bool sync, async;
  double save_every; // seconds
  struct tfc_execution execution;
  bool profile, wait, list_ops, shapes;
};

typedef enum run_reduce { RUN_REDUCE_AUTO, RUN_REDUCE_ALL, RUN_REDUCE_PS } run_reduce;
struct run_feed { // --feed NAME=FILE.npy or NAME=DTYPE[SHAPE]
  struct tfc_output output;
  bool has_value;
  struct tfc_tensor value; // owned
  tfc_dtype dtype;
  struct tfc_shape shape;
};

// A graph, its devices and a session: all modes of tfc-run need them.
struct run_setup {
  const struct run_options *options;
  struct tfc_graph *file, *graph; // file: the graph as loaded; graph: with functions lowered, its first nodes are those
                                  // of `file`
  struct tfc_device_set devices;
  struct tfc_session *session;          // one of session and cluster is NULL
  struct tfc_member *member;            // borrowed
  const struct tfc_cluster_spec *tasks; // borrowed; NULL: there is one task
  struct tfc_cluster_session *cluster;  // a session whose steps run in several tasks
  uint16_t *placement;                  // [node], NULL: everything on the only device
  double *order;                        // [node], NULL
  // With --replicas: how many towers in `graph` have variables that are copies of tower 0's; otherwise 0.
  uint32_t mirrors;
  struct run_kinds *kinds; // owned; where the steps of a script are recorded; NULL: nowhere
  uint64_t steps;          // finished steps that may have changed variables: without any there is nothing to save
  uint64_t host_before;    // bytes that host memory held before the session was created
  double began_unix_s;     // when the graph began to be loaded
};
TFC_MUST_USE tfc_status run_setup_open(const struct run_options *options, struct run_setup *out);
void run_setup_close(struct run_setup *setup);
// Runs a step with the session, or with the cluster session if there is one.
TFC_MUST_USE tfc_status run_step(const struct run_setup *setup, const struct tfc_run_spec *spec,
                                 const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                 const struct tfc_run_options *options);
// Returns the most memory that device `d` held since it was opened. The first device that uses host memory also counts
// what the host allocated since the session was created (feeds, plans). If the driver does not count, returns the
// planned memory.
uint64_t run_peak(const struct run_setup *setup, const struct tfc_plan_info *info, uint32_t d);
// Chooses the type in which GPUs compute products: the flags decide; without one, the placement file does (`said`), so
// that steps run as they were measured.
tfc_math run_choose_math(const struct run_options *options, tfc_math said);
// the type in which its GPUs compute products; NULL: there is no GPU
const char *run_math(const struct run_setup *setup);

// Whether something is kept if a signal stops the steps: trained variables, or the profile of several tasks.
bool run_keeps(const struct run_options *options);
// What breaks off a running step: a signal, or, if something is kept, only the end of the time to save it in.
const _Atomic bool *run_cut_off(const struct run_options *options);
// Call it before the steps.
void run_finish_steps(const struct run_options *options);

TFC_MUST_USE tfc_status run_parse_feed(const struct tfc_graph *g, const char *text, struct run_feed *out);
void run_feed_deinit(struct run_feed *feed);

// The modes of tfc-run. Each initialises and restores variables, runs a script or measures steps, and saves.
TFC_MUST_USE tfc_status run_script(struct run_setup *setup);     // --run SCRIPT.json --out DIR
TFC_MUST_USE tfc_status run_measure(struct run_setup *setup);    // --steps
TFC_MUST_USE tfc_status run_initialise(struct run_setup *setup); // --init, if given: one after the other
TFC_MUST_USE tfc_status run_restore(struct run_setup *setup, const char *prefix); // --checkpoint (or NULL), SavedModels
// --checkpoint of a job of several tasks. One task calls it, after initialisers and while no other task takes steps.
TFC_MUST_USE tfc_status run_restore_tasks(const struct run_setup *setup, const char *prefix);
// --save-checkpoint of a job of several tasks. One task calls it, while no task takes steps. `some`: variables without
// a value are left out.
TFC_MUST_USE tfc_status run_save_tasks(const struct run_setup *setup, const char *prefix, bool some);
TFC_MUST_USE tfc_status run_save(struct run_setup *setup, const char *prefix); // --save-checkpoint
// The same after a signal; `stopped`: the error that ended the steps. Returns it, with where the variables are.
TFC_MUST_USE tfc_status run_save_stopped(struct run_setup *setup, const char *prefix, tfc_status stopped);
// For --restarts: starts the processes of the job, and starts them again after a failure. Returns the exit code of the
// last start.
int run_cluster(const struct run_options *options, char **argv);
// Takes the steps of a task that has no script (--run). The chief initialises the variables or restores those that
// --supervise saved, and saves them. Sets *out_stopped if a signal ended training: then all is kept, no other task
// waits for this one, and the error CANCELLED says where it is.
TFC_MUST_USE tfc_status run_train(struct run_setup *setup, bool chief, bool *out_stopped);
TFC_MUST_USE tfc_status run_shapes(const struct run_options *options);
TFC_MUST_USE tfc_status run_list_ops(const struct run_options *options);

#endif
