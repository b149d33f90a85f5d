// Placement: the document that tfc-place writes as its answer (JSON, the format "tfc-placement"). Reading and writing
// keep every field. The document's arena owns strings and arrays. Each field says how its absence is shown: NaN, 0
// entries, or data NULL.
#ifndef TFC_PLACER_MODEL_PLACEMENT_H
#define TFC_PLACER_MODEL_PLACEMENT_H

#include "placer/model/machine.h"
#include "placer/model/problem.h"

struct tfc_placement_device {
  tfc_str name, tensorflow, kind;
  tfc_label label;
  double busy_us;
  int64_t busy_ps; // the exact value if it was simulated; 0: not known
  uint64_t memory; // peak bytes
};
struct tfc_placement_baseline {
  tfc_str name;
  double median_us;  // NaN: it did not run; then `note` says why
  int64_t median_ps; // the exact value if it was simulated; 0: not known
  bool feasible;
  tfc_str note;
};
// One entry for every key: a node of the graph, or "function/NAME:node".
struct tfc_placement_node {
  tfc_str name, device;
  double order;   // NaN: none
  tfc_str reason; // data NULL: none
};
struct tfc_placement_path_item { // an item of the critical path; for a transfer `to` differs from `from`
  tfc_str node, from, to;
  double start_us, end_us;
};
struct tfc_placement {
  struct tfc_arena arena;
  int64_t run; // < 0: absent
  tfc_str graph_file, graph_sha256;
  uint64_t graph_nodes;
  uint32_t device_count;
  struct tfc_placement_device *devices;
  tfc_objective objective;
  double value_us;       // NaN: absent
  tfc_label value_label; // how the value was found: a load may be modelled although steps were measured
  // The exact values if they were simulated; then the file contains these (a double of microseconds is exact to the
  // picosecond only up to 2,251 s). 0: not known.
  int64_t value_ps, step_ps, bound_ps;
  bool feasible;
  uint64_t transfers, transfer_bytes;
  tfc_str execution;         // options of execution as flags (runtime/exec/execution.h); data NULL: not known
  tfc_str gpu_math;          // the type in which GPUs multiplied float32 tensors ("tf32"); data NULL: no GPU was used
  tfc_str virtual_transfers; // how tensors go between virtual devices: "copy on one GPU", "handed over"; data NULL:
                             // there are no two virtual devices
  // The user's command that ran the steps (--measure-with); data NULL: tfc ran them, or nothing ran.
  tfc_str measured_with;
  double step_median_us, step_q1_us, step_q3_us; // NaN: absent
  uint64_t step_count;
  tfc_label step_label;
  // The step time when the runtime chooses the order itself instead of using `order`: some export formats cannot
  // contain an order. NaN: absent.
  double unordered_median_us, unordered_q1_us, unordered_q3_us;
  uint64_t unordered_count;
  uint32_t baseline_count;
  struct tfc_placement_baseline *baselines;
  double bound_us;    // NaN: absent
  tfc_str bound_name; // data NULL: absent
  tfc_str algorithm;
  uint64_t seed, evaluations;
  uint32_t node_count;
  struct tfc_placement_node *nodes; // in the graph's order if tfc wrote the file
  uint32_t path_count;
  struct tfc_placement_path_item *path; // critical path, optional
};

TFC_MUST_USE tfc_status tfc_placement_create(struct tfc_placement **out);
void tfc_placement_free(struct tfc_placement *placement); // NULL is fine

// UNAVAILABLE: `what` names a device that the machine does not have. `what`: the argument of --evaluate,
// "single:DEVICE" or a file; `placement`: the content of that file, otherwise NULL. `host`: the device name "host" is
// accepted.
TFC_MUST_USE tfc_status tfc_placement_check_devices(const char *what, const struct tfc_placement *placement,
                                                    const struct tfc_machine *machine, bool host);

// Makes the solution that the placement describes. UNAVAILABLE: the machine does not have a device (checked first).
// INVALID_ARGUMENT: a node is missing or unknown; the nodes of a group are on different devices; a node is not on the
// device of its pin, or is on a kind of device that cannot run it; or two devices that exchange data have no link.
TFC_MUST_USE tfc_status tfc_placement_resolve(const struct tfc_placement *placement, const struct tfc_problem *problem,
                                              struct tfc_solution *out);
// Puts every unit on the device DEVICE of "single:DEVICE". UNAVAILABLE: the machine has no such device. Also fails if
// the placement is not legal.
TFC_MUST_USE tfc_status tfc_placement_single(const struct tfc_problem *problem, tfc_str device,
                                             struct tfc_solution *out);

#endif
