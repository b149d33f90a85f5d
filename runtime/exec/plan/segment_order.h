// Which operations of a device depend on each other.
#ifndef TFC_RUNTIME_EXEC_PLAN_SEGMENT_ORDER_H
#define TFC_RUNTIME_EXEC_PLAN_SEGMENT_ORDER_H

#include "runtime/exec/plan/memory.h"

// For each item the earlier ones of its queue after which it has to come: from[begin[i]] up to from[end[i]]. Those
// after which these come are not all listed.
struct tfc_item_order {
  uint32_t *begin, *end, *from;
};
TFC_MUST_USE tfc_status tfc_item_order_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                                            const struct tfc_memory_plan *memory, struct tfc_arena *arena,
                                            struct tfc_item_order *out);

#endif
