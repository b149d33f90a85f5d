// What operations take on devices that are only described: a roofline. An operation's time on a kind of device is the
// larger of its FLOP at the kind's `flops` and its bytes at the kind's `memory_bandwidth` (Williams, Waterman,
// Patterson 2009); dispatch is the machine's own. FLOP and bytes are those of the operation's row
// (runtime/graph/op_def.h). It is a floor: real kernels stay below both rates, so answers compare placements better
// than they foretell times.
#ifndef TFC_CLI_COST_MODEL_H
#define TFC_CLI_COST_MODEL_H

#include "placer/model/machine.h"
#include "profiler/cost_table.h"
#include "runtime/pass/pass.h"

struct cli_cost_total {
  double flops, bytes; // of the step
  uint32_t unknown;    // operations with a shape that is not static: costed by what is known
};

// Kinds in the machine's order of first appearance, as in a subject. INVALID_ARGUMENT: a device that gives no rates, or
// other rates than one of its kind before it. The table is the caller's to free.
TFC_MUST_USE tfc_status cli_cost_model(const struct tfc_graph *graph, const struct tfc_shapes *shapes,
                                       const uint32_t *ops, uint32_t op_count, const struct tfc_machine *machine,
                                       struct tfc_cost_table **out, struct cli_cost_total *out_total);

#endif
