// The last stage of a plan: prepared segments, and what each step submits.
#ifndef TFC_RUNTIME_EXEC_PLAN_SEGMENTS_H
#define TFC_RUNTIME_EXEC_PLAN_SEGMENTS_H

#include "runtime/exec/plan/build.h"
#include "runtime/exec/plan/lane_schedule.h"
#include "runtime/exec/plan/plan_internal.h"

// Makes a static plan of `b`, through all stages; tfc_plan_static_deinit frees what it has.
TFC_MUST_USE tfc_status tfc_plan_make_static(struct tfc_build *b, struct tfc_plan *plan);
void tfc_plan_static_deinit(struct tfc_plan *plan);
// Makes a static plan from its ir.
TFC_MUST_USE tfc_status tfc_plan_lay_out(struct tfc_plan *plan, const uint32_t *sequence, uint32_t sequence_count,
                                         const struct tfc_lane_schedule *lanes);

#endif
