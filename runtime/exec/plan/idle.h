// Work that can be done while a device would wait.
#ifndef TFC_RUNTIME_EXEC_PLAN_IDLE_H
#define TFC_RUNTIME_EXEC_PLAN_IDLE_H

#include "runtime/exec/plan/order.h"

// Moves operations without inputs to a point where their device would wait anyway.
TFC_MUST_USE tfc_status tfc_order_fill_idle(const struct tfc_ir *ir, const struct tfc_order_graph *g,
                                            uint32_t *sequence, uint32_t count);

#endif
