// Reports show what happened in a run, by the documented views of the database (docs/database.md).
//
//   TFC_TRY(s, tfc_store_open("tfc.db", &(struct tfc_store_options){0}, &store));
//   TFC_TRY(s, tfc_report_page(store, run_id, "nmt.report"));
//
// Only one thread may use a store. DATA_LOSS: a file could not be written; NOT_FOUND: there is no such run.
#ifndef TFC_REPORTS_REPORTS_H
#define TFC_REPORTS_REPORTS_H

#include "reports/plot.h"
#include "reports/query.h"

// Finds what a report is about: the run's answer, and its representative traced step, which is the traced step nearest
// to the median (of the final measurement where that was traced). placement or step -1: there is none.
TFC_MUST_USE tfc_status tfc_report_focus(struct tfc_store *store, int64_t run_id, struct tfc_query_args *out);

// Writes DIR/index.html (and creates DIR): one file without scripts, pictures or styles from elsewhere.
TFC_MUST_USE tfc_status tfc_report_page(struct tfc_store *store, int64_t run_id, const char *dir);
TFC_MUST_USE tfc_status tfc_report_html(struct tfc_store *store, int64_t run_id, struct tfc_text *out);

// Writes the page of simulated replicas (placer/replicas/sweep.h).
struct tfc_sweep;
struct tfc_report_replicas_page {
  const char *graph, *machine;
  const struct tfc_text *text; // the tables, as the program prints them
  const struct tfc_sweep *sweep;
  const bool *modes; // [TFC_REPLICAS_MODES] that were simulated
};
TFC_MUST_USE tfc_status tfc_report_replicas(const struct tfc_report_replicas_page *page, const char *dir);

// Writes Chrome's trace format for chrome://tracing and ui.perfetto.dev, compressed if the name ends with .gz. It
// contains traced steps of the answer or, if the answer was not traced, of the last placement that was. NOT_FOUND:
// there is no such placement or step.
struct tfc_report_trace_options {
  const char *placement; // its name or placement_id; NULL: the answer
  int64_t first, last;   // the steps, as v_step numbers them
};
TFC_MUST_USE tfc_status tfc_report_trace(struct tfc_store *store, int64_t run_id,
                                         const struct tfc_report_trace_options *options, const char *path,
                                         uint64_t *out_events);

// Sets out[device_count], by device_id, to the share of the step that each device was busy, as page and terminal show
// it: in the representative step (tfc_report_focus). NaN: it is not known.
TFC_MUST_USE tfc_status tfc_report_busy_shares(struct tfc_store *store, int64_t run_id, uint32_t device_count,
                                               double *out);

// These functions write plain text for people: the list of all runs, and a report of one run.
TFC_MUST_USE tfc_status tfc_report_list(struct tfc_store *store, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_report_show(struct tfc_store *store, int64_t run_id, struct tfc_text *out);
// Writes what tfc-place prints below its table, and `show` too: why the run ended and what became of the best
// candidate; of the traced step the longest gaps, what moved, the critical path and what would help most; and the next
// commands.
TFC_MUST_USE tfc_status tfc_report_explain(struct tfc_store *store, int64_t run_id, struct tfc_text *out);

// Returns how a tensor goes between two virtual devices of a run: "copy on one GPU" or "handed over"; empty: there are
// no two virtual devices, or the database does not contain it.
struct tfc_query_args;
tfc_str tfc_report_virtual_transfers(struct tfc_store *store, const struct tfc_query_args *args);
// Writes the type in which a run's GPUs computed products of float32 tensors: "tf32"; empty where there are no GPUs, or
// the database does not say.
void tfc_report_gpu_math(struct tfc_store *store, const struct tfc_query_args *args, char out[16]);

// Whether a row of tfc_report_sql_results is a rival that was only simulated, about which there is nothing more to say:
// the terminal and the page list these apart from the others.
// `modelled`: nothing was run.
bool tfc_report_is_folded(const struct tfc_table *results, uint32_t row, bool modelled);
// How a load is known: "measured" (with several steps under way), "computed" from measured operations, or "simulated".
const char *tfc_report_load_how(double samples, bool modelled);
extern const char tfc_report_peak_note[]; // what a ">" before a peak of memory means
// Whether a row has the causes of the device's idle time. Runs that did not record them have no values, and simulated
// runs of older versions have only zeros, although the device was idle.
bool tfc_report_idle_known(const struct tfc_table *devices, uint32_t row);
// Whether a row's `peak_bytes` is such a peak; `complete` is TFC_SQL_PEAK_COMPLETE.
bool tfc_report_peak_is_part(const struct tfc_table *devices, uint32_t row);
// The terminal and the page show so many warnings of a run at first.
enum { TFC_REPORT_WARNINGS = 5 };

// The SQL queries of these reports, which --json and the page show. tfc_report_sql_run_with_tau has the row of
// tfc_report_sql_run with tau as it is computed today beside v_run.tau; its time grows with the square of the number of
// measured placements.
extern const char tfc_report_sql_runs[], tfc_report_sql_run[], tfc_report_sql_run_with_tau[], tfc_report_sql_results[],
    tfc_report_sql_devices[], tfc_report_sql_in_flight[], tfc_report_sql_warnings[];

#endif
