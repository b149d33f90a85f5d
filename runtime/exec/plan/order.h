// The order in which the operations of a plan start.
#ifndef TFC_RUNTIME_EXEC_PLAN_ORDER_H
#define TFC_RUNTIME_EXEC_PLAN_ORDER_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/exec/session.h"

// Fills out_sequence with the ids of all operations that are not dead (joints, too), so that each comes after
// everything that it waits for. `sequence`, `order`: as in struct tfc_run_spec.
TFC_MUST_USE tfc_status tfc_order_make(const struct tfc_ir *ir, const struct tfc_run_spec *spec,
                                       uint32_t **out_sequence, uint32_t *out_count);
// The successors of each operation, as CSR; `waiting`: how many operations must come before each one.
struct tfc_order_graph {
  uint32_t *begin, *to;
  uint32_t *waiting;
};
TFC_MUST_USE tfc_status tfc_order_graph_make(const struct tfc_ir *ir, struct tfc_order_graph *out);
void tfc_order_graph_deinit(struct tfc_order_graph *g);
// *out_us: when the last operation of a sequence ends, if each takes cost_us and every device runs its operations in
// this order. idle (NULL: not needed) [count]: how long the device waits before each; waits (given with `idle`) [ops]:
// whether it waits for another operation.
TFC_MUST_USE tfc_status tfc_order_replay(const struct tfc_ir *ir, const struct tfc_order_graph *g,
                                         const uint32_t *sequence, uint32_t count, double *idle, bool *waits,
                                         double *out_us);
// Makes two other sequences of the same operations and replays the measured times with each: one starts the ready
// operation with the longest remaining path first, the other the ready operation that comes first in the given
// sequence. *out_sequence becomes the one that ends earlier, if it also ends earlier than the given one (then
// *out_better is set to true), else the one by longest paths. The caller frees it.
TFC_MUST_USE tfc_status tfc_order_improve(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count,
                                          uint32_t **out_sequence, uint32_t *out_count, bool *out_better);

#endif
