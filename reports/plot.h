// Plots: one gnuplot script each (reports/plots/*.gp). The script itself contains the title, the caption and the
// queries, in lines beginning with "#@", so that a plot and the queries of its numbers stay together:
//
//   #@ title: ...
//   #@ caption: ...
//   #@ query NAME: what the columns are        the rows become the datablock $NAME
//   #@   SELECT ... :run :placement :step
//   #@ optional NAME                           the plot is drawn although this query has no rows
//   #@ place: 40                               its position on the page: plots are sorted by this number
//   #@ left out without NAME: ...              where this query has no rows, the page only says why the plot is missing
//
// Scripts are embedded in the library (cmake/embed.cmake).
#ifndef TFC_REPORTS_PLOT_H
#define TFC_REPORTS_PLOT_H

#include "reports/query.h"

struct tfc_embedded_file {
  const char *name, *text;
};
extern const struct tfc_embedded_file tfc_embedded_files[]; // ended by a NULL name
const char *tfc_embedded_find(const char *name);            // NULL: there is none

struct tfc_plot {
  struct tfc_text svg, narrow; // `svg` is for a page, `narrow` for a telephone; empty: there was nothing to draw
  struct tfc_text title, caption, queries, note; // `note`: why there is no picture
  struct tfc_text reason;                        // why it was left out
  bool left_out; // its script says that a page should rather have a reason in one line than a note in its place
};
struct tfc_plot_scale {
  double factor; // microseconds times this are numbers in `unit`
  const char *unit;
};
struct tfc_plot_scale tfc_plot_scale_of(double us);
// Returns the name ("steps.gp") of the plot with the next larger place after `place`, and that place. NULL: there is
// none.
const char *tfc_plot_next(int place, int *out_place);
// Draws scripts (`names`: "steps" or "steps.gp") in one run of gnuplot, which is ended after 60 s. If gnuplot is
// missing, fails or is ended, or a query has no rows, the plot has no picture, and `note` says why; the status is still
// OK. CANCELLED: the interrupt flag is set (tfc_interrupt_on). The caller frees the texts of out [count] with
// tfc_plot_deinit.
TFC_MUST_USE tfc_status tfc_plots_draw(struct tfc_store *store, const char *const *names, uint32_t count,
                                       const struct tfc_query_args *args, struct tfc_plot_scale scale,
                                       struct tfc_plot *out);
// Draws a script that has no queries, with rows that the caller gives: gnuplot's datablocks.
TFC_MUST_USE tfc_status tfc_plot_draw_given(const char *name, tfc_str rows, struct tfc_plot *out);
void tfc_plot_deinit(struct tfc_plot *plot);

#endif
