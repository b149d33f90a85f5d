// Finds why devices were idle in a step (struct tfc_idle).
#ifndef TFC_PROFILER_IDLE_H
#define TFC_PROFILER_IDLE_H

#include "profiler/collector.h"

// Fills p->busy[].idle. Operations and transfers are sorted by start, times are since the step began.
TFC_MUST_USE tfc_status tfc_idle_find(struct tfc_step_profile *p);

#endif
