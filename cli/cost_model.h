// Estimates the times of operations on devices that only a machine file describes, by a roofline model. An operation's
// time on a kind of device is the larger of its FLOP divided by the kind's `flops` and its bytes divided by the kind's
// `memory_bandwidth` (Williams, Waterman, Patterson 2009); the machine file adds the time to launch it. FLOP and bytes
// come from the op's row (runtime/graph/op_def.h). The model is a lower bound, because real kernels stay below both
// rates: use it to compare placements, not to predict times.
#ifndef TFC_CLI_COST_MODEL_H
#define TFC_CLI_COST_MODEL_H

#include "placer/model/machine.h"
#include "profiler/cost_table.h"
#include "runtime/pass/pass.h"

struct cli_cost_total {
  double flops, bytes; // of the step
  uint32_t unknown;    // operations with a shape that is not static; only the known part of their cost is counted
};

// `kinds` are in the machine's order of first appearance, as in a subject. INVALID_ARGUMENT: a device gives no rates,
// or other rates than an earlier device of its kind. The caller frees the table.
TFC_MUST_USE tfc_status cli_cost_model(const struct tfc_graph *graph, const struct tfc_shapes *shapes,
                                       const uint32_t *ops, uint32_t op_count, const struct tfc_machine *machine,
                                       struct tfc_cost_table **out, struct cli_cost_total *out_total);

#endif
