// The order that reused memory demands of operations that leave the planned order.
#ifndef TFC_RUNTIME_EXEC_PLAN_MEMORY_ORDER_H
#define TFC_RUNTIME_EXEC_PLAN_MEMORY_ORDER_H

#include "runtime/exec/plan/memory.h"

struct tfc_memory_edge {
  uint32_t from, to; // items
};
typedef TFC_ARRAY(struct tfc_memory_edge) tfc_memory_edge_list;
// Adds an edge between each two operations of a device of which the later one writes memory that the earlier one wrote
// or read. `location`: the device's. The caller frees the list.
TFC_MUST_USE tfc_status tfc_memory_order(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                                         const struct tfc_memory_plan *memory, uint16_t location,
                                         tfc_memory_edge_list *out);

#endif
