// Writes the page's summary of the representative step: gaps, transfers, the critical path, and operations that could
// be faster.
#include <stdio.h>

#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/html.h"
#include "reports/moves.h"
#include "reports/page.h"
#include "reports/palette.h"
#include "reports/summary.h"
#include "runtime/base/units.h"

static void add_gaps(struct tfc_page *p, const struct tfc_report_lists *lists, const char *simulated) {
  const struct tfc_table *gaps = &lists->tables[0];
  struct tfc_text still = {0};
  tfc_page_add(p, "<div><h3>Longest gaps%s</h3>\n%s", simulated, gaps->row_count ? "<ol>" : "");
  for (uint32_t r = 0; r < gaps->row_count && r < 3; r++) {
    struct tfc_text text = {0};
    tfc_report_gap(gaps, r, true, &text);
    tfc_page_add(p, "<li>");
    tfc_page_escaped(p, (tfc_str){text.data, text.size});
    tfc_page_add(p, "</li>");
    tfc_text_deinit(&text);
  }
  if (gaps->row_count) tfc_page_add(p, "</ol>");
  tfc_report_still(lists, &still);
  if (still.size) {
    tfc_page_add(p, "<p>");
    tfc_page_escaped(p, (tfc_str){still.data, still.size});
    tfc_page_add(p, ".</p>");
  }
  tfc_text_deinit(&still);
  tfc_page_add(p, "</div>\n");
}

static void add_path(struct tfc_page *p, const struct tfc_table *types, const struct tfc_table *edges,
                     const char *simulated) {
  char a[32];
  tfc_page_add(p, "<div><h3>Critical path by type%s</h3>\n<table>", simulated);
  const uint32_t shown = tfc_report_path_rows(types, 6);
  const struct tfc_report_rest rest = tfc_report_path_rest(types, shown);
  for (uint32_t r = 0; r < shown; r++) {
    tfc_str op = tfc_table_text(types, r, "op");
    // These two rows are not types of operations.
    const bool other = tfc_str_is(op, "waiting") || tfc_str_is(op, "transfers");
    if (other)
      tfc_page_add(p, "<tr><td class=\"keyed\"><i class=\"key\"></i><span>");
    else
      tfc_page_add(p, "<tr><td class=\"keyed\"><i class=\"key f%u\"></i><span>", tfc_palette_family(op));
    tfc_page_escaped(p, op.size ? op : TFC_STR("operations"));
    tfc_page_add(p, "</span></td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td></tr>\n",
                 tfc_show_us(a, tfc_table_number(types, r, "time_us")), tfc_table_number(types, r, "percent"));
  }
  if (rest.rows)
    tfc_page_add(p,
                 "<tr><td class=\"keyed\"><i class=\"key\"></i><span>other (%u more)</span></td>"
                 "<td class=\"n\">%s</td><td class=\"n\">%.1f %%</td></tr>\n",
                 rest.rows, tfc_show_us(a, rest.time_us), rest.percent);
  tfc_page_add(p, "</table>\n");
  if (edges->row_count) {
    tfc_page_add(p, "<p class=\"note\">The transfer that costs most: ");
    tfc_page_escaped(p, tfc_table_text(edges, 0, "node"));
    tfc_page_add(p, " from ");
    tfc_page_escaped(p, tfc_table_text(edges, 0, "source"));
    tfc_page_add(p, " to ");
    tfc_page_escaped(p, tfc_table_text(edges, 0, "target"));
    tfc_page_add(p, ": %s (%.1f %%).</p>\n", tfc_show_us(a, tfc_table_number(edges, 0, "time_us")),
                 tfc_table_number(edges, 0, "percent"));
  }
  tfc_page_add(p, "</div>\n");
}

static void add_winnings(struct tfc_page *p, const struct tfc_report_summary *m, const char *simulated) {
  const struct tfc_table *won = &m->lists.tables[1];
  char a[32], b[32];
  if (!won->row_count) return;
  tfc_page_add(p, "<div><h3>What would help most%s</h3>\n<p>%s:</p><ol>", simulated,
               m->modelled    ? "What the critical path takes besides operations on their fastest kind of device"
               : m->has_rates ? "Operations of the critical path, if they ran at the run's best rates (their times are "
                                "medians over all traced steps)"
                              : "Operations of the critical path, if they were as fast as they once were (their times "
                                "are medians over all traced steps)");
  for (uint32_t r = 0; r < won->row_count && r < 3; r++) {
    tfc_page_add(p, "<li>%s of %s: ", tfc_show_us(a, tfc_table_number(won, r, "won_us")),
                 tfc_show_us(b, tfc_table_number(won, r, "time_us")));
    tfc_page_escaped(p, tfc_table_text(won, r, "node"));
    tfc_page_add(p, "</li>");
  }
  tfc_page_add(p, "</ol></div>\n");
}

static tfc_status add_moves(struct tfc_page *p, const struct tfc_table *moves) {
  char a[32];
  struct tfc_text head = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_moves_explain(p->store, &p->args, moves, &head));
  if (!head.size) goto out;
  tfc_page_add(p, "<div><h3>What to move</h3>\n<p>");
  tfc_page_escaped(p, (tfc_str){head.data, head.size});
  tfc_page_add(p, moves->row_count ? "</p><ol>" : "</p>");
  for (uint32_t r = 0; r < moves->row_count && r < 3; r++) {
    tfc_page_add(p, "<li>%s: ", tfc_show_us(a, tfc_table_number(moves, r, "won_us")));
    tfc_page_escaped(p, tfc_table_text(moves, r, "node"));
    tfc_page_add(p, " from ");
    tfc_page_escaped(p, tfc_table_text(moves, r, "source"));
    tfc_page_add(p, " to ");
    tfc_page_escaped(p, tfc_table_text(moves, r, "target"));
    tfc_page_add(p, "</li>");
  }
  tfc_page_add(p, moves->row_count ? "</ol></div>\n" : "</div>\n");
out:
  tfc_text_deinit(&head);
  return s;
}

static void add_pairs(struct tfc_page *p, const struct tfc_table *pairs, const char *simulated) {
  char a[32], b[32], c[32], d[32];
  if (!pairs->row_count) return;
  tfc_page_add(p,
               "<div class=\"row\"><h3>Moved in the step%s</h3>\n<table class=\"stack\"><thead><tr><th>from, "
               "to</th><th class=\"n\">tensors</th>"
               "<th class=\"n\">bytes</th><th class=\"n\">took</th><th class=\"n\">exposed</th>"
               "<th class=\"n\">overlapped</th></tr></thead><tbody>",
               simulated);
  for (uint32_t r = 0; r < pairs->row_count && r < 12; r++) {
    tfc_page_add(p, "<tr><td>");
    tfc_page_escaped(p, tfc_table_text(pairs, r, "source"));
    tfc_page_add(p, " → ");
    tfc_page_escaped(p, tfc_table_text(pairs, r, "target"));
    tfc_page_add(p,
                 "</td><td class=\"n\" data-l=\"tensors\">%.0f</td><td class=\"n\" data-l=\"bytes\">%s</td>"
                 "<td class=\"n\" data-l=\"took\">%s</td><td class=\"n\" data-l=\"exposed\">%s</td>"
                 "<td class=\"n\" data-l=\"overlapped\">%s</td></tr>\n",
                 tfc_table_number(pairs, r, "number"), tfc_show_bytes(a, tfc_table_number(pairs, r, "bytes")),
                 tfc_show_us(b, tfc_table_number(pairs, r, "time_us")),
                 tfc_show_us(c, tfc_table_number(pairs, r, "exposed_us")),
                 tfc_show_us(d, tfc_table_number(pairs, r, "overlapped_us")));
  }
  tfc_page_add(p, "</tbody></table>\n");
  if (pairs->row_count > 12)
    tfc_page_add(p, "<p class=\"note\">and %u more pairs: \"What moves between devices\" has them.</p>",
                 pairs->row_count - 12);
  tfc_page_add(p, "</div>\n");
}

tfc_status tfc_page_summary(struct tfc_page *p) {
  struct tfc_report_summary m = {0};
  struct tfc_text queries = {0};
  tfc_status s = NULL;
  if (p->args.step < 0) return NULL;
  TFC_TRY(s, tfc_report_summarize(p->store, &p->args, &m));
  const char *simulated = tfc_report_simulated(p->store, &p->args);
  tfc_page_add(p, "<section id=\"summary\"><div class=\"tiles%s\">\n",
               m.lists.tables[1].row_count && m.path.tables[3].row_count ? " four" : ""); // two by two
  add_gaps(p, &m.gaps, simulated);
  add_path(p, &m.path.tables[1], &m.path.tables[2], simulated);
  add_winnings(p, &m, simulated);
  TFC_TRY(s, add_moves(p, &m.path.tables[3]));
  add_pairs(p, &m.lists.tables[0], simulated);
  tfc_page_add(p, "</div>\n");
  tfc_text_printf(&queries,
                  "%s;\n%s;\n%s;\n%s;\n-- gaps, the path, and what to move: tfc-report gaps RUN --csv, tfc-report "
                  "critical RUN --json\n",
                  tfc_report_sql_pairs, tfc_report_sql_rates, tfc_report_sql_links, tfc_report_sql_units);
  if (queries.data) tfc_page_query(p, "The queries behind this", queries.data);
  tfc_page_add(p, "</section>\n");
out:
  tfc_text_deinit(&queries);
  tfc_report_summary_deinit(&m);
  return s;
}
