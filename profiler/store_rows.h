// Writes what runs measured, and how they ended, into a store. Calls need an open transaction.
#ifndef TFC_PROFILER_STORE_ROWS_H
#define TFC_PROFILER_STORE_ROWS_H

#include "profiler/store.h"

// Strings may be NULL if the column may be empty; NaN and negative counts stand for "not known".
struct tfc_store_run {
  const char *program, *command; // "tfc-place", the whole command line
  const char *graph, *graph_sha256;
  int64_t graph_nodes;
  const char *objective, *algorithms, *label;
  uint64_t seed;
  const char *host, *cpu_model, *blas_core;
  double started_unix_s; // 0: now
};
// Adds a run in state "running". run_ids ascend and are never used twice.
TFC_MUST_USE tfc_status tfc_store_add_run(struct tfc_store *store, const struct tfc_store_run *run, int64_t *out_id);

struct tfc_store_answer {
  const char *state; // "done", "interrupted", "failed"
  int exit_code;
  const char *algorithm;
  int64_t placement_id;                      // the answer's; < 0: there is no answer
  double speedup, speedup_low, speedup_high; // against the best single device
  double bound_us;
  const char *bound_name;
  double trace_overhead; // traced / untraced - 1
  double tau;            // Kendall's, simulated against measured
  int64_t tau_placements;
  const char *document; // the text of the placement file; NULL: there is none
  const char *message;
};
TFC_MUST_USE tfc_status tfc_store_finish_run(struct tfc_store *store, int64_t run_id,
                                             const struct tfc_store_answer *answer);
// For a run that only measured its placement 0 and searched nothing.
TFC_MUST_USE tfc_status tfc_store_finish_measured(struct tfc_store *store, int64_t run_id, const char *state);
TFC_MUST_USE tfc_status tfc_store_set_label(struct tfc_store *store, int64_t run_id, const char *label);
// For a run that began before its graph was read.
TFC_MUST_USE tfc_status tfc_store_set_graph_nodes(struct tfc_store *store, int64_t run_id, int64_t count);
// Stores a value that --resume needs, under a name; a second value replaces the first.
TFC_MUST_USE tfc_status tfc_store_set_state(struct tfc_store *store, int64_t run_id, const char *name, tfc_str value);
// Stores what the program warned of (see profiler/warnings.h); a warning that the run has already is not added again.
TFC_MUST_USE tfc_status tfc_store_add_warning(struct tfc_store *store, int64_t run_id, const char *text);

// --- Devices, links, nodes, costs and edges of a run ---------------------------------------------------------------
struct tfc_store_device {
  uint32_t device_id;
  const char *name, *kind, *model, *tensorflow, *label;
  uint32_t cores;
  uint64_t memory_limit; // UINT64_MAX: none
  double dispatch_us;
  const char *slowdown;  // "[1, 1.04, 1.2]", NULL
  uint32_t memory_space; // devices with the same memory space pass tensors without a copy
  const char *math;      // the type in which products of float32 are computed, if there is a choice; otherwise NULL
};
struct tfc_store_link { // one size that was timed
  uint32_t source, target;
  uint64_t bytes;
  double time_us;
  uint32_t samples;
};
struct tfc_store_node {
  uint32_t node_id;
  tfc_str name, op;
  uint32_t unit_id; // TFC_NONE: not part of the step
  double flops, bytes_touched;
  uint64_t memory, output_bytes;
};
struct tfc_store_cost {
  uint32_t node_id;
  const char *kind;
  double median_us, q1_us, q3_us, fastest_us;
  uint32_t samples;
};
struct tfc_store_edge {
  uint32_t producer;
  int32_t output; // -1: control
  uint32_t consumer;
  uint64_t bytes;
};
// A row for a device or cost replaces an earlier row with the same key (calibration comes later, costs are fitted
// again).
TFC_MUST_USE tfc_status tfc_store_add_devices(struct tfc_store *store, int64_t run_id,
                                              const struct tfc_store_device *devices, size_t count);
TFC_MUST_USE tfc_status tfc_store_add_links(struct tfc_store *store, int64_t run_id, const struct tfc_store_link *links,
                                            size_t count);
TFC_MUST_USE tfc_status tfc_store_add_nodes(struct tfc_store *store, int64_t run_id, const struct tfc_store_node *nodes,
                                            size_t count);
TFC_MUST_USE tfc_status tfc_store_add_costs(struct tfc_store *store, int64_t run_id, const struct tfc_store_cost *costs,
                                            size_t count);
TFC_MUST_USE tfc_status tfc_store_add_edges(struct tfc_store *store, int64_t run_id, const struct tfc_store_edge *edges,
                                            size_t count);

// --- Placements and what they measured -----------------------------------------------------------------------------
struct tfc_store_placement {
  int64_t placement_id; // ascending within a run, from 0
  const char *role;     // "candidate", "baseline" (the undivided machine, single devices, the expert), "heuristic"
  const char *name;     // "whole", "single:cpu:0", "expert", an algorithm, or "#12"
  const char *algorithm;
  int64_t episode;           // number of the measured candidate, from 1; < 0: it is not a candidate
  uint64_t digest;           // hash of the assignment: equal placements have equal digests
  const char *state, *label; // state: "ok", "cut", "no fit", "illegal", "failed", "modelled", "not tried"
  double simulated_us, median_us, q1_us, q3_us;
  uint32_t steps;
  double ratio, reward, cost_s, at_s; // at_s: seconds since the run began
  uint64_t transfers, transfer_bytes; // UINT64_MAX: not known, since nothing ran
  const char *message;
};
// `device_by_unit` may be NULL. *out_key: the key that the calls below take.
TFC_MUST_USE tfc_status tfc_store_add_placement(struct tfc_store *store, int64_t run_id,
                                                const struct tfc_store_placement *placement,
                                                const uint16_t *device_by_unit, uint32_t unit_count, int64_t *out_key);
// Stores the final, interleaved measurement of a placement that has been stored before.
TFC_MUST_USE tfc_status tfc_store_set_final(struct tfc_store *store, int64_t key, const char *name, double median_us,
                                            double q1_us, double q3_us, uint32_t steps);

struct tfc_store_step {
  uint32_t step;     // ascending within the placement
  const char *phase; // "warm-up", "profile", "screen", "choose", "final"
  uint32_t block;
  bool traced;
  int64_t start_ns, duration_ns; // CLOCK_MONOTONIC_RAW
};
struct tfc_store_busy {
  uint32_t step, device_id, operations;
  int64_t operations_ns, busy_ns;
  int64_t launch_ns, transfer_ns, dependency_ns, end_ns, launch_gap_ns; // idle by cause (collector.h); all 0: not known
};
struct tfc_store_op { // position ascends within a step
  uint32_t step, position, node_id, device_id;
  int64_t start_ns, duration_ns; // since the step's start
  int64_t dispatch_ns;           // of a device with a queue; < 0: the device has no queue
  int64_t launched_ns;           // when it had been launched, since the step's start; not set if dispatch_ns < 0
};
struct tfc_store_op_total {
  uint32_t node_id, device_id, samples;
  int64_t median_ns, fastest_ns, total_ns;
};
struct tfc_store_transfer {
  uint32_t step, position, node_id;
  int32_t output;
  uint32_t source, target;
  uint64_t bytes;
  int64_t start_ns, duration_ns;
};
struct tfc_store_memory {
  uint32_t device_id;
  uint64_t peak;
  bool variables_only; // the peak does not have the step's tensors
};
TFC_MUST_USE tfc_status tfc_store_add_steps(struct tfc_store *store, int64_t key, const struct tfc_store_step *steps,
                                            size_t count);
struct tfc_profile_busy;
struct tfc_store_busy tfc_store_busy_of(uint32_t step, uint32_t device_id, const struct tfc_profile_busy *busy);
TFC_MUST_USE tfc_status tfc_store_add_busy(struct tfc_store *store, int64_t key, const struct tfc_store_busy *busy,
                                           size_t count);
TFC_MUST_USE tfc_status tfc_store_add_ops(struct tfc_store *store, int64_t key, const struct tfc_store_op *ops,
                                          size_t count);
TFC_MUST_USE tfc_status tfc_store_add_op_totals(struct tfc_store *store, int64_t key,
                                                const struct tfc_store_op_total *totals, size_t count);
TFC_MUST_USE tfc_status tfc_store_add_transfers(struct tfc_store *store, int64_t key,
                                                const struct tfc_store_transfer *transfers, size_t count);
// Stores the step time that was predicted before the measurement, us, and the standard deviation of its logarithm; NaN:
// not known.
TFC_MUST_USE tfc_status tfc_store_add_prediction(struct tfc_store *store, int64_t key, double prior_us,
                                                 double learned_us, double learned_sd);
struct tfc_store_proposer { // an algorithm whose placements a run measured; infinite or NaN numbers are not known
  const char *name;
  bool learned;
  uint32_t measured, won;
  double best_simulated_us, best_measured_us;
};
TFC_MUST_USE tfc_status tfc_store_add_proposers(struct tfc_store *store, int64_t run,
                                                const struct tfc_store_proposer *proposers, size_t count);
struct tfc_store_policy_search { // what a learned policy did in the search that proposed a placement (schema.c)
  uint64_t samples;
  double entropy, invalid_share;
  uint32_t move_turns, move_wins;
  double move_gain, move_s, other_gain, other_s;
};
TFC_MUST_USE tfc_status tfc_store_add_policy_search(struct tfc_store *store, int64_t key,
                                                    const struct tfc_store_policy_search *row);
TFC_MUST_USE tfc_status tfc_store_add_memory(struct tfc_store *store, int64_t key,
                                             const struct tfc_store_memory *memory, size_t count);
struct tfc_store_load {    // of a placement, for the throughput objective
  double load_us;          // the largest load of a device, or the time between the ends of two steps
  uint32_t samples;        // how often that time was measured; 0: it was computed from the costs of operations
  uint32_t at_once;        // steps that were under way together; 0: nothing was measured
  const double *device_us; // [device_count] computed load of each device; NULL: not known
  uint32_t device_count;
};
TFC_MUST_USE tfc_status tfc_store_add_load(struct tfc_store *store, int64_t key, const struct tfc_store_load *load);
struct tfc_store_move { // of one unit, in simulated steps
  uint32_t unit_id, node_id,
      operations;          // node_id: the operation of the unit that takes longest; operations: of the unit
  uint32_t source, target; // devices
  double won_us;           // by how much it alone makes the objective smaller
};
// Stores how many units were tried elsewhere, and the simulated objective without a move; then each move that wins.
TFC_MUST_USE tfc_status tfc_store_add_moves_tried(struct tfc_store *store, int64_t key, uint32_t units,
                                                  double value_us);
TFC_MUST_USE tfc_status tfc_store_add_moves(struct tfc_store *store, int64_t key, const struct tfc_store_move *moves,
                                            size_t count);
// Stores what a GPU profiler saw in a step (table `work`). `first_device` is added to the works' devices.
struct tfc_activity_work;
TFC_MUST_USE tfc_status tfc_store_add_works(struct tfc_store *store, int64_t key, uint32_t step, uint32_t first_device,
                                            const struct tfc_activity_work *works, size_t count);
// Stores what the host did with the GPU in that step (table `gpu_call`).
struct tfc_activity_call;
TFC_MUST_USE tfc_status tfc_store_add_calls(struct tfc_store *store, int64_t key, uint32_t step,
                                            const struct tfc_activity_call *calls, size_t count);
// These store and read the measurements by which drivers choose algorithms, and which are kept from run to run, as
// lines "DEVICE\tKEY\tVALUE". The text that was read is malloc'd; it is "" if there are none, as in databases of older
// versions.
TFC_MUST_USE tfc_status tfc_store_put_tuning(struct tfc_store *store, const char *lines);
TFC_MUST_USE tfc_status tfc_store_get_tuning(struct tfc_store *store, char **out_lines);
// Deletes the raw rows (op, transfer, work, gpu_call) of a placement that is no longer among the last ones; aggregates
// are kept.
TFC_MUST_USE tfc_status tfc_store_drop_raw(struct tfc_store *store, int64_t key);

#endif
