// Placement: the document that tfc-place answers with (JSON, the format "tfc-placement"), read and written with every
// field. Strings and arrays live in its arena. What is absent is NaN, 0 entries, or a view without data, as marked.
#ifndef TFC_PLACER_MODEL_PLACEMENT_H
#define TFC_PLACER_MODEL_PLACEMENT_H

#include "placer/model/machine.h"
#include "placer/model/problem.h"

struct tfc_placement_device {
  tfc_str name, tensorflow, kind;
  tfc_label label;
  double busy_us;
  int64_t busy_ps; // exact, where simulated; 0: not known
  uint64_t memory; // peak bytes
};
struct tfc_placement_baseline {
  tfc_str name;
  double median_us;  // NaN: it did not run; `note` says why
  int64_t median_ps; // exact, where simulated; 0: not known
  bool feasible;
  tfc_str note;
};
// One entry for every key: a node of the graph, or "function/NAME:node".
struct tfc_placement_node {
  tfc_str name, device;
  double order;   // NaN: none
  tfc_str reason; // data NULL: none
};
struct tfc_placement_path_item { // an item of the critical path; a transfer has to != from
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
  tfc_label value_label; // how it was got: a load may be modelled where steps were measured
  // The same where it was simulated, exact (a double is so up to 2,251 s only), and what is written then; 0: not known.
  int64_t value_ps, step_ps, bound_ps;
  bool feasible;
  uint64_t transfers, transfer_bytes;
  tfc_str execution;         // how it was run, as flags (runtime/exec/execution.h); data NULL: not known
  tfc_str gpu_math;          // what GPUs computed products of float32 tensors in ("tf32"); data NULL: there are no GPUs
  tfc_str virtual_transfers; // "copy on one GPU", "handed over"; data NULL: there are no two virtual devices
  tfc_str measured_with;     // the command that steps ran in (--measure-with); data NULL: they ran here, or nowhere
  double step_median_us, step_q1_us, step_q3_us; // NaN: absent
  uint64_t step_count;
  tfc_label step_label;
  // Measured too where `order` is left to the runtime, as formats must that cannot carry it. NaN: absent.
  double unordered_median_us, unordered_q1_us, unordered_q3_us;
  uint64_t unordered_count;
  uint32_t baseline_count;
  struct tfc_placement_baseline *baselines;
  double bound_us;    // NaN: absent
  tfc_str bound_name; // data NULL: absent
  tfc_str algorithm;
  uint64_t seed, evaluations;
  uint32_t node_count;
  struct tfc_placement_node *nodes; // in the graph's order where tfc wrote it
  uint32_t path_count;
  struct tfc_placement_path_item *path; // critical path, optional
};

TFC_MUST_USE tfc_status tfc_placement_create(struct tfc_placement **out);
void tfc_placement_free(struct tfc_placement *placement); // NULL is fine
TFC_MUST_USE tfc_status tfc_placement_parse(tfc_str json, const char *path, struct tfc_placement **out);
TFC_MUST_USE tfc_status tfc_placement_read(const char *path, struct tfc_placement **out);
TFC_MUST_USE tfc_status tfc_placement_format(const struct tfc_placement *placement, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_placement_write(const struct tfc_placement *placement, const char *path);

// UNAVAILABLE: `what`, as --evaluate takes it ("single:DEVICE" or a file; `placement` is what is in the file, NULL
// without one), names a device that the machine lacks. `host`: "host" is always there.
TFC_MUST_USE tfc_status tfc_placement_check_devices(const char *what, const struct tfc_placement *placement,
                                                    const struct tfc_machine *machine, bool host);

// The solution that the placement describes. UNAVAILABLE: a device that the machine lacks (checked first);
// INVALID_ARGUMENT: a node missing or unknown, a group torn apart, a pin or a kind not kept, a missing link.
TFC_MUST_USE tfc_status tfc_placement_resolve(const struct tfc_placement *placement, const struct tfc_problem *problem,
                                              struct tfc_solution *out);
// "single:DEVICE": everything there. Same errors.
TFC_MUST_USE tfc_status tfc_placement_single(const struct tfc_problem *problem, tfc_str device,
                                             struct tfc_solution *out);

#endif
