// Profile: what each operation of the step takes on the devices of this task, one device after the other, without
// rewrites (parts of a graph that run in ready order have no rewrites). Every task of a job makes one.
#ifndef TFC_PLACER_TASKS_PROFILE_H
#define TFC_PLACER_TASKS_PROFILE_H

#include "placer/measure/measure.h"

// out_us [device * node_count + node]: medians, NaN: it does not run there. `devices`: how many devices the measurer
// must have. After `end_s` (on tfc_now_ns's clock) no block of steps begins. ABORTED: the step failed, with its
// message.
TFC_MUST_USE tfc_status tfc_task_profile(const struct tfc_measure_options *options, uint32_t devices,
                                         uint32_t node_count, double end_s, double *out_us);

#endif
