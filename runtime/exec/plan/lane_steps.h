// What each operation in lanes waits for.
#ifndef TFC_RUNTIME_EXEC_PLAN_LANE_STEPS_H
#define TFC_RUNTIME_EXEC_PLAN_LANE_STEPS_H

#include "runtime/exec/plan/memory.h"

// Makes the lists of what the lanes of the plan's only device run. *out is in `arena`.
TFC_MUST_USE tfc_status tfc_lane_steps_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                                            const struct tfc_memory_plan *memory, const struct tfc_lane_schedule *by,
                                            struct tfc_arena *arena, const struct tfc_lanes **out);

#endif
