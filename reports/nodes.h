// The list of operations, for `tfc-report nodes` (lists.h).
#ifndef TFC_REPORTS_NODES_H
#define TFC_REPORTS_NODES_H

#include "reports/lists.h"

// Lists the operations of the answer by their time: type, device, quartiles, bytes, unit, slack. The text is at most
// `columns` wide; names get what the other columns leave.
TFC_MUST_USE tfc_status tfc_report_nodes_within(struct tfc_store *store, int64_t run_id, size_t columns,
                                                struct tfc_report_lists *out);
// The same in 80 columns.
TFC_MUST_USE tfc_status tfc_report_nodes(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
extern const char tfc_report_sql_nodes[]; // the query of the list; slack is not queried but computed

#endif
