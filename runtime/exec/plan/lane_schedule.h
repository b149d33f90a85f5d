// Which operations run side by side on the cores of a plan's only device.
#ifndef TFC_RUNTIME_EXEC_PLAN_LANE_SCHEDULE_H
#define TFC_RUNTIME_EXEC_PLAN_LANE_SCHEDULE_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/exec/session.h"

// A schedule of operations side by side on the cores of the only device. Each operation belongs to one lane; other
// lanes may help with it.
struct tfc_lane_schedule {
  uint32_t lanes;
  uint32_t *sequence; // [sequence_count] as tfc_order_make's
  uint32_t sequence_count;
  uint16_t *lane;       // [ops]
  uint32_t *helpers;    // [ops] a bit for each lane that helps with it
  bool *open;           // [ops] other idle lanes may help, too
  double predicted_us;  // time of a step
  double one_by_one_us; // the time for running the operations one after another
};
// Makes the schedule from the times of the operations [ops] in ticks, which were measured while they ran one after
// another, each on all `cores`; wall 0: the operation takes no time.
TFC_MUST_USE tfc_status tfc_lane_schedule_make(const struct tfc_ir *ir, const struct tfc_op_time *times, uint32_t cores,
                                               struct tfc_lane_schedule *out);
void tfc_lane_schedule_deinit(struct tfc_lane_schedule *s);

#endif
