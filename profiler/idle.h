// Finds why devices were idle in a step (struct tfc_idle).
#ifndef TFC_PROFILER_IDLE_H
#define TFC_PROFILER_IDLE_H

#include "profiler/collector.h"

// Fills p->busy[].idle. Operations and transfers are sorted by start, times are since the step began. short_gap_ns:
// shorter gaps from one operation to the next are not idle, because busy_ns has them (0: it has none).
TFC_MUST_USE tfc_status tfc_idle_find(struct tfc_step_profile *p, int64_t short_gap_ns);

#endif
