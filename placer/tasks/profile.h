// Profile: measures how long each operation of the step takes on the devices of this task, one device after another,
// without rewrites (which of them a task's part allows depends on the placement). Every task of a job makes one.
#ifndef TFC_PLACER_TASKS_PROFILE_H
#define TFC_PLACER_TASKS_PROFILE_H

#include "placer/measure/measure.h"

// Writes to out_us[device * node_count + node] the median time of each operation on each device, in us; NaN if it does
// not run there. `devices`: the number of devices that the measurer must have. No block of steps begins after `end_s`
// (seconds on the clock of tfc_now_ns). ABORTED: the step failed; the text says why.
TFC_MUST_USE tfc_status tfc_task_profile(const struct tfc_measure_options *options, uint32_t devices,
                                         uint32_t node_count, double end_s, double *out_us);

#endif
