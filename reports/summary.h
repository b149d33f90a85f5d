// A summary of a traced step, for `tfc-report show` and the page.
#ifndef TFC_REPORTS_SUMMARY_H
#define TFC_REPORTS_SUMMARY_H

#include "reports/lists.h"

// Gaps, bytes between pairs of devices, critical path, and what would make the step shorter. The caller frees it with
// tfc_report_summary_deinit. NOT_FOUND: args->step is no step.
struct tfc_report_summary {
  struct tfc_report_lists gaps, path;
  struct tfc_report_lists lists; // tables[0]: pairs of devices; tables[1]: operations, by the time that could be saved
  bool modelled;                 // the step was simulated
  bool has_rates; // the best rates are known, so that FLOP and bytes give the shortest possible time of an operation
};
TFC_MUST_USE tfc_status tfc_report_summarize(struct tfc_store *store, const struct tfc_query_args *args,
                                             struct tfc_report_summary *out);
void tfc_report_summary_deinit(struct tfc_report_summary *summary);
extern const char tfc_report_sql_pairs[], tfc_report_sql_rates[];
// Writes the summary as text, with the commands that show more.
TFC_MUST_USE tfc_status tfc_report_summary(struct tfc_store *store, const struct tfc_query_args *args,
                                           struct tfc_text *out);
// Writes the commands that show more of a run of the database `path` ("": it is in memory only).
void tfc_report_next(const char *path, const struct tfc_query_args *args, struct tfc_text *out);

#endif
