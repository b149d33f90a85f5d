// What the memory of devices holds, for `tfc-report memory` (lists.h) and for traces.
#ifndef TFC_REPORTS_MEMORY_H
#define TFC_REPORTS_MEMORY_H

#include "reports/lists.h"

// Lists the peak memory of devices under the answer against their limits, and what occupies each device at the moment
// of the representative step when most is held.
TFC_MUST_USE tfc_status tfc_report_memory(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
// Computes how many bytes each device holds during a traced step, for `memory`. Columns: device_id, at_us, and the
// bytes from then on.
TFC_MUST_USE tfc_status tfc_report_memory_levels(struct tfc_store *store, const struct tfc_query_args *args,
                                                 struct tfc_table *out);

#endif
