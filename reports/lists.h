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
  const char *names[5];
  struct tfc_table tables[5];
  struct tfc_text text;
  struct tfc_arena arena; // owns the strings that cells point to
};
void tfc_report_lists_deinit(struct tfc_report_lists *lists);

// Returns `text` if it fits into `width` bytes, otherwise ".." and its end, because names of nodes differ at their
// ends. Characters that control a terminal become question marks.
const char *tfc_report_fit(char buffer[96], tfc_str text, size_t width);
// The same, but a text that does not fit keeps its beginning too, with ".." between, for lists in which names that
// differ only at their beginnings stand one below the other.
const char *tfc_report_fit_ends(char buffer[96], tfc_str text, size_t width);
// Adds what tfc_report_fit returns to `out`, for any width.
void tfc_report_add_fit(struct tfc_text *out, tfc_str text, size_t width);
void tfc_report_plain(char *text); // replaces these characters in a whole text, line ends too
// `runs`: rows of v_run.
bool tfc_report_is_modelled(const struct tfc_table *runs, uint32_t row);  // nothing was run
bool tfc_report_is_too_large(const struct tfc_table *runs, uint32_t row); // its answer does not fit in memory
// Returns " (simulated)" if the placement's times come from a model, otherwise "".
const char *tfc_report_simulated(struct tfc_store *store, const struct tfc_query_args *args);

#endif
