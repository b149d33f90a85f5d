// Slack: how much later each operation of a simulated step could start without making the step longer. Operations
// without slack are critical: the step gets shorter only if something changes for them. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_SLACK_H
#define TFC_PLACER_SEARCH_SLACK_H

#include "placer/simulate/delta.h"

struct tfc_slack {
  const struct tfc_problem *problem;
  int64_t *late;       // [node] the latest start, ps
  uint32_t *before;    // [node] the operation before it on its device, or TFC_NONE
  uint32_t *critical;  // the nodes that take time and have almost no slack
  uint32_t count;      // of `critical`
  uint32_t *order;     // [node] by end, the latest first
  int64_t *free_until; // [device] when the operations that were already visited begin there, that is, until when the
                       // device is free
  uint32_t *later;     // [device] the operation that was visited last there, which runs next
  int64_t *wire_until; // [wire]
  int64_t *needed;     // [device] when the tensor being visited is needed there; TFC_TIME_MAX: never
  uint32_t *position;  // [node] in the topological order
};
TFC_MUST_USE tfc_status tfc_slack_init(struct tfc_slack *slack, const struct tfc_problem *problem);
void tfc_slack_deinit(struct tfc_slack *slack);
// Computes the slack for a step of a legal placement: devices keep the order of their operations, and everything starts
// as late as that allows. A link that stops its devices during a transfer is treated like one that does not. `share`:
// slack up to this share of `value` counts as none.
void tfc_slack_compute(struct tfc_slack *slack, const tfc_device_id *device, const int64_t *start, const int64_t *end,
                       int64_t value, double share);

#endif
