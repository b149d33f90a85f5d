// Several runs compared, for `tfc-report compare` (lists.h).
#ifndef TFC_REPORTS_COMPARE_H
#define TFC_REPORTS_COMPARE_H

#include "reports/lists.h"

// The tables of the lists that tfc_report_compare makes.
enum tfc_compare_table {
  TFC_COMPARE_RUNS,
  TFC_COMPARE_OPERATIONS,
  TFC_COMPARE_MOVED,
  TFC_COMPARE_DEVICES,
  TFC_COMPARE_TRAFFIC,
  TFC_COMPARE_TABLES // how many there are
};
// Compares runs with the first one. Two runs are printed side by side, more than two as a table.
TFC_MUST_USE tfc_status tfc_report_compare(struct tfc_store *store, const int64_t *runs, uint32_t count,
                                           struct tfc_report_lists *out);
// Adds a note with the queries of all this to a page. `is_copy`: tfc_store_is_copy.
void tfc_report_compare_queries(bool is_copy, struct tfc_text *out);

#endif
