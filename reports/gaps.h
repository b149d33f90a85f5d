// The times in which devices waited, for `tfc-report gaps` (lists.h).
#ifndef TFC_REPORTS_GAPS_H
#define TFC_REPORTS_GAPS_H

#include "reports/lists.h"

// Lists the gaps of devices in the representative step, longest first, with what each device waited for; sums by
// device.
TFC_MUST_USE tfc_status tfc_report_gaps(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
// Writes one gap as a sentence: what the device waited for, cause after cause. A line has at most 80 columns, after an
// indent of two, unless `whole`: names of nodes are whole.
void tfc_report_gap(const struct tfc_table *gaps, uint32_t row, bool whole, struct tfc_text *out);
// Says which devices ran nothing in the step, or that no device stood still: a sentence without its full stop, or
// nothing where each device ran something and some waited. `gaps`: of tfc_report_gaps.
void tfc_report_still(const struct tfc_report_lists *gaps, struct tfc_text *out);

#endif
