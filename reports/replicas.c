// The page of simulated replicas. No database contains them, so all its numbers come from the answer itself.
#include <stdlib.h>

#include "placer/replicas/sweep.h"
#include "reports/html.h"
#include "reports/reports.h"
#include "runtime/base/units.h"

// Writes the datablock $rows: the number of replicas, and for each mode batches per second and efficiency; NaN: that
// mode was not simulated.
static void add_rows(const struct tfc_report_replicas_page *page, struct tfc_text *out) {
  tfc_text_printf(out, "$rows << END_OF_ROWS\n");
  for (uint32_t i = 0; i < page->sweep->row_count; i++) {
    const struct tfc_sweep_row *row = &page->sweep->row[i];
    tfc_text_printf(out, "%u", row->count);
    for (int mode = 0; mode < TFC_REPLICAS_MODES; mode++)
      if (page->modes[mode])
        tfc_text_printf(out, "\t%.9g\t%.9g", row->result[mode].batches_per_second, row->result[mode].efficiency);
      else
        tfc_text_printf(out, "\tNaN\tNaN");
    tfc_text_printf(out, "\n");
  }
  tfc_text_printf(out, "END_OF_ROWS\n");
}

static void add_plot(const struct tfc_plot *plot, struct tfc_text *out) {
  tfc_text_printf(out, "<section><h2>");
  tfc_html_escape(out, (tfc_str){plot->title.data, plot->title.size});
  tfc_text_printf(out, "</h2>\n<p class=\"caption\">");
  tfc_html_escape(out, (tfc_str){plot->caption.data, plot->caption.size});
  tfc_text_printf(out, "</p>\n");
  if (plot->svg.size) {
    tfc_text_printf(out, "<figure class=\"wide\">");
    tfc_text_add(out, (tfc_str){plot->svg.data, plot->svg.size});
    tfc_text_printf(out, "</figure><figure class=\"narrow\">");
    tfc_text_add(out, (tfc_str){plot->narrow.data, plot->narrow.size});
    tfc_text_printf(out, "</figure>\n");
  } else {
    tfc_text_printf(out, "<p>");
    tfc_html_escape(out, (tfc_str){plot->note.data, plot->note.size});
    tfc_text_printf(out, "</p>\n");
  }
  tfc_text_printf(out, "</section>\n");
}

tfc_status tfc_report_replicas(const struct tfc_report_replicas_page *page, const char *dir) {
  tfc_status s = NULL;
  struct tfc_text html = {0}, rows = {0}, title = {0};
  struct tfc_plot plot = {0};
  tfc_text_printf(&title, "%s: replicas", page->graph);
  add_rows(page, &rows);
  if (rows.failed || title.failed) TFC_TRY(s, tfc_status_no_memory("a report"));
  tfc_html_begin(&html, (tfc_str){title.data, title.size}, false);
  tfc_text_printf(&html, "<h1>");
  tfc_html_escape(&html, (tfc_str){title.data, title.size});
  tfc_text_printf(&html, "</h1>\n<p>Simulated on ");
  tfc_html_escape(&html, tfc_str_from(page->machine));
  tfc_text_printf(&html, ": nothing was run, all figures are modelled.</p>\n");
  static const char *const names[] = {"replicas.gp", "replicas_efficiency.gp"};
  for (int i = 0; i < 2; i++) {
    TFC_TRY(s, tfc_plot_draw_given(names[i], (tfc_str){rows.data, rows.size}, &plot));
    add_plot(&plot, &html);
    tfc_plot_deinit(&plot);
    plot = (struct tfc_plot){0};
  }
  tfc_text_printf(&html, "<section><h2>Figures</h2>\n<div style=\"overflow-x:auto\"><pre>");
  tfc_html_escape(&html, (tfc_str){page->text->data, page->text->size});
  tfc_text_printf(&html, "</pre></div></section>\n");
  tfc_html_end(&html, false);
  TFC_TRY(s, tfc_html_write(&html, dir));
out:
  tfc_plot_deinit(&plot);
  tfc_text_deinit(&html);
  tfc_text_deinit(&rows);
  tfc_text_deinit(&title);
  return s;
}
