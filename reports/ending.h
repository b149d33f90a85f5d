// How a run ended, and what learning contributed to it, as text.
#ifndef TFC_REPORTS_ENDING_H
#define TFC_REPORTS_ENDING_H

#include "reports/query.h"

// Writes why the run ended and what became of the best candidate seen, in sentences; `run`: its row of v_run.
TFC_MUST_USE tfc_status tfc_report_ending(struct tfc_store *store, const struct tfc_query_args *args,
                                          const struct tfc_table *run, struct tfc_text *out);
// Adds what learning contributed to the run: the text that was stored when the run ended.
void tfc_report_learning(const struct tfc_table *run, struct tfc_text *out);

#endif
