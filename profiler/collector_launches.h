// Checks that the records of asynchronous devices are complete.
#ifndef TFC_PROFILER_COLLECTOR_LAUNCHES_H
#define TFC_PROFILER_COLLECTOR_LAUNCHES_H

#include "profiler/collector_private.h"

// Whether all launches have records: ABORTED names an operation or a transfer that lacks some. Sorts dispatches by
// node, and r->works.
tfc_status tfc_collector_check_launches(struct tfc_collector *c, const struct tfc_collector_names *names,
                                        const struct tfc_step_profile *p, struct tfc_activity_result *r);

#endif
