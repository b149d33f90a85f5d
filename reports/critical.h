// The critical path of a step, for `tfc-report critical` (lists.h).
#ifndef TFC_REPORTS_CRITICAL_H
#define TFC_REPORTS_CRITICAL_H

#include "reports/lists.h"

// Lists the critical path of the representative traced step (tfc_report_focus), in the order of time. Further tables
// sum up its shares by type of operation and by transferred tensor, over the traced steps of
// the same phase that are nearest to the median: more than half of them. The last one says what to move (moves.h).
TFC_MUST_USE tfc_status tfc_report_critical(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
// Makes the same tables of the step args->step alone, for the first screen and the page; without a text.
TFC_MUST_USE tfc_status tfc_report_critical_step(struct tfc_store *store, const struct tfc_query_args *args,
                                                 struct tfc_report_lists *out);

// Returns how many rows of the shares by type are shown if `most` have room: those that take time.
uint32_t tfc_report_path_rows(const struct tfc_table *types, uint32_t most);
struct tfc_report_rest { // what rows that are not shown add up to
  uint32_t rows;
  double time_us, percent;
};
struct tfc_report_rest tfc_report_path_rest(const struct tfc_table *types, uint32_t shown);

// Writes the first `count` rows of the moves of `path` (the lists of tfc_report_critical).
TFC_MUST_USE tfc_status tfc_report_print_moves(struct tfc_store *store, const struct tfc_query_args *args,
                                               const struct tfc_report_lists *path, uint32_t count,
                                               struct tfc_text *out);

#endif
