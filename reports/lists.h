// Lists of a run, for tfc-report nodes, critical, gaps, memory and compare. Each consists of tables (for --csv and
// --json; the first one is the list, the others sum it up) and of a text that is made of them, at most 80 columns wide.
//
//   struct tfc_report_lists lists = {0};
//   TFC_TRY(s, tfc_report_critical(store, run_id, &lists));
//   fwrite(lists.text.data, 1, lists.text.size, stdout);
//   tfc_report_lists_deinit(&lists);
//
// Only one thread may use a store. NOT_FOUND: there is no such run, or it has no traced step and one is needed.
#ifndef TFC_REPORTS_LISTS_H
#define TFC_REPORTS_LISTS_H

#include "reports/query.h"

struct tfc_report_lists {
  uint32_t count;
  const char *names[4];
  struct tfc_table tables[4];
  struct tfc_text text;
  struct tfc_arena arena; // owns the strings that cells point to
};
// Lists the operations of the answer by their time: type, device, quartiles, bytes, unit, slack.
TFC_MUST_USE tfc_status tfc_report_nodes(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
extern const char tfc_report_sql_nodes[]; // the query of the list; slack is not queried but computed
// Lists the critical path of the representative traced step (tfc_report_focus), in the order of time. Further tables
// sum up its shares by type of operation and by transferred tensor, over all traced steps of the same phase.
TFC_MUST_USE tfc_status tfc_report_critical(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
// Lists the gaps of devices in the representative step, longest first, with what each device waited for; sums by
// device.
TFC_MUST_USE tfc_status tfc_report_gaps(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
void tfc_report_gap(const struct tfc_table *gaps, uint32_t row, struct tfc_text *out); // as a sentence
// Lists the peak memory of devices under the answer against their limits, and what occupies each device at the moment
// of the representative step when most is held.
TFC_MUST_USE tfc_status tfc_report_memory(struct tfc_store *store, int64_t run_id, struct tfc_report_lists *out);
// Computes how many bytes each device holds during a traced step, for `memory`. Columns: device_id, at_us, and the
// bytes from then on.
TFC_MUST_USE tfc_status tfc_report_memory_levels(struct tfc_store *store, const struct tfc_query_args *args,
                                                 struct tfc_table *out);
// Compares runs with the first one. Two runs are printed side by side, more than two as a table.
TFC_MUST_USE tfc_status tfc_report_compare(struct tfc_store *store, const int64_t *runs, uint32_t count,
                                           struct tfc_report_lists *out);
// Writes DIR/index.html (and creates DIR) with the tables of `lists`. `title` and `note` are HTML.
TFC_MUST_USE tfc_status tfc_report_lists_page(const struct tfc_report_lists *lists, const char *title, const char *note,
                                              const char *dir);
// Writes why the run ended and what became of the best candidate seen, in sentences; `run`: its row of v_run.
TFC_MUST_USE tfc_status tfc_report_ending(struct tfc_store *store, const struct tfc_query_args *args,
                                          const struct tfc_table *run, struct tfc_text *out);
// Adds what learning contributed to the run: the text that was stored when the run ended.
void tfc_report_learning(const struct tfc_table *run, struct tfc_text *out);
// A summary of the traced step, for `tfc-report show` and the page: gaps, bytes between pairs of devices, critical
// path, and what would make the step shorter. NOT_FOUND: args->step is no step.
struct tfc_report_summary {
  struct tfc_report_lists gaps, path;
  struct tfc_report_lists lists; // tables[0]: pairs of devices; tables[1]: operations, by the time that could be saved
  bool has_rates; // the best rates are known, so that FLOP and bytes give the shortest possible time of an operation
};
TFC_MUST_USE tfc_status tfc_report_summarize(struct tfc_store *store, const struct tfc_query_args *args,
                                             struct tfc_report_summary *out);
void tfc_report_summary_deinit(struct tfc_report_summary *summary);
extern const char tfc_report_sql_pairs[], tfc_report_sql_rates[];
// Writes the summary as text, with the commands that show more.
TFC_MUST_USE tfc_status tfc_report_summary(struct tfc_store *store, const struct tfc_query_args *args,
                                           struct tfc_text *out);
void tfc_report_lists_deinit(struct tfc_report_lists *lists);

// Returns `text` if it fits into `width` bytes, otherwise ".." and its end, because names of nodes differ at their
// ends. Characters that control a terminal become question marks.
const char *tfc_report_fit(char buffer[96], tfc_str text, size_t width);
void tfc_report_plain(char *text); // replaces these characters in a whole text, line ends too
// Returns " (simulated)" if the placement's times come from a model, otherwise "".
const char *tfc_report_simulated(struct tfc_store *store, const struct tfc_query_args *args);

#endif
