// Reports: what happened in a run, from the documented views of the database (docs/database.md).
//
//   TFC_TRY(s, tfc_store_open("tfc.db", &(struct tfc_store_options){0}, &store));
//   TFC_TRY(s, tfc_report_page(store, run_id, "nmt.report"));
//
// One thread per store. DATA_LOSS where something could not be written, NOT_FOUND for a run that is not there.
#ifndef TFC_REPORTS_REPORTS_H
#define TFC_REPORTS_REPORTS_H

#include "reports/plot.h"
#include "reports/query.h"

// What of a run a report is about: its answer and the traced step of it that stands for all (of the final measurement
// where that was traced, the nearest to the median). placement or step -1: none.
TFC_MUST_USE tfc_status tfc_report_focus(struct tfc_store *store, int64_t run_id, struct tfc_query_args *out);

// DIR/index.html (DIR is made): one file that loads nothing.
TFC_MUST_USE tfc_status tfc_report_page(struct tfc_store *store, int64_t run_id, const char *dir);
TFC_MUST_USE tfc_status tfc_report_html(struct tfc_store *store, int64_t run_id, struct tfc_text *out);

// The same for a placement on a described machine, which no database has: from the answer itself (placer/place.h).
struct tfc_place_outcome;
TFC_MUST_USE tfc_status tfc_report_modelled(const struct tfc_place_outcome *outcome, const char *dir);

// Chrome's trace format, gzipped where the name ends with .gz: the traced steps of the answer, or where there is none
// of the last placement that was traced. For chrome://tracing and ui.perfetto.dev.
TFC_MUST_USE tfc_status tfc_report_trace(struct tfc_store *store, int64_t run_id, const char *path,
                                         uint64_t *out_events);

// Plain text for people: all runs; one run.
TFC_MUST_USE tfc_status tfc_report_list(struct tfc_store *store, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_report_show(struct tfc_store *store, int64_t run_id, struct tfc_text *out);

// What a transfer between two virtual devices of a run is: "copy on one GPU" or "handed over"; empty where there were
// none, or nobody kept it.
struct tfc_query_args;
tfc_str tfc_report_virtual_transfers(struct tfc_store *store, const struct tfc_query_args *args);
// What GPUs of a run computed products of float32 in: "tf32"; empty where there were none, or nobody kept it.
void tfc_report_gpu_math(struct tfc_store *store, const struct tfc_query_args *args, char out[16]);

// The queries behind them, for --json and for others.
extern const char tfc_report_sql_runs[], tfc_report_sql_run[], tfc_report_sql_results[], tfc_report_sql_devices[],
    tfc_report_sql_in_flight[];

#endif
