// The page of a run: the verdict, the first screen, the map, the timeline, plots with the queries behind them, devices,
// operations, reasons, and how all of it was measured. It is one file that needs no other files; page_*.c make its
// parts.
#include "reports/page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "placer/model/placement_json.h"
#include "profiler/store_runs.h"
#include "reports/ending.h"
#include "reports/html.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "reports/summary.h"

// --- Results ---------------------------------------------------------------------------------------------------------

// One row: step, quartiles, against the answer (which took `answer`), and how it was got. `top`: the longest step.
static void add_result(struct tfc_page *p, uint32_t r, double answer, double top) {
  const struct tfc_table *t = &p->results;
  char a[32], b[32], c[32];
  double us = tfc_table_number(t, r, "step_median_us"), steps = tfc_table_number(t, r, "step_count"),
         moved = tfc_table_number(t, r, "transfer_bytes");
  bool is_answer = tfc_table_number(t, r, "is_answer") == 1;
  tfc_str state = tfc_table_text(t, r, "state"), label = tfc_table_text(t, r, "label"),
          message = tfc_table_text(t, r, "message"), algorithm = tfc_table_text(t, r, "algorithm");
  tfc_page_add(p, "<tr%s><td>", is_answer ? " class=\"answer\"" : "");
  if (is_answer && !tfc_page_profiled(p)) {
    tfc_page_add(p, "answer");
    if (algorithm.size) tfc_page_add(p, " <span class=\"note\">by ");
    tfc_page_escaped(p, algorithm);
    if (algorithm.size) tfc_page_add(p, "</span>");
    if (!algorithm.size && !tfc_str_is(tfc_table_text(t, r, "placement"), "answer")) {
      tfc_page_add(p, " <span class=\"note\">");
      tfc_page_escaped(p, tfc_table_text(t, r, "placement"));
      tfc_page_add(p, "</span>");
    }
  } else {
    tfc_page_escaped(p, tfc_table_text(t, r, "placement"));
  }
  tfc_page_add(p, "</td><td class=\"n\" data-l=\"step\">%s</td><td class=\"wide\">", tfc_html_us(a, us));
  if (us == us && top > 0) tfc_page_add(p, "<span class=\"bar\" style=\"width:%.1f%%\"></span>", 100 * us / top);
  if (!tfc_page_modelled(p)) {
    tfc_page_add(p, "</td><td class=\"n\" data-l=\"quartiles\">");
    if (tfc_table_number(t, r, "step_q1_us") == tfc_table_number(t, r, "step_q1_us"))
      tfc_page_add(p, "%s – %s", tfc_html_us(b, tfc_table_number(t, r, "step_q1_us")),
                   tfc_html_us(c, tfc_table_number(t, r, "step_q3_us")));
    tfc_page_add(p, "</td><td class=\"n\" data-l=\"steps\">");
    if (steps > 0) tfc_page_add(p, "%.0f", steps);
  }
  tfc_page_add(p, "</td><td class=\"n\" data-l=\"answer is\">");
  if (us == us && answer > 0 && !is_answer && fabs(us / answer - 1) < 0.005)
    tfc_page_add(p, "as fast");
  else if (us == us && answer > 0 && !is_answer)
    tfc_page_add(p, "%.2f× %s", us >= answer ? us / answer : answer / us, us >= answer ? "faster" : "slower");
  tfc_page_add(p, "</td><td class=\"n\" data-l=\"simulated\">%s</td><td class=\"n\" data-l=\"moved\">%s</td><td>",
               tfc_html_us(a, tfc_table_number(t, r, "simulated_us")), tfc_html_bytes(b, moved));
  if (!tfc_str_is(state, "ok") && !tfc_str_equal(state, label)) {
    tfc_page_add(p, "<span class=\"tag odd\">");
    tfc_page_escaped(p, state);
    tfc_page_add(p, "</span> ");
  }
  if (!tfc_page_modelled(p)) { // otherwise all results are modelled, and no tag needs to say that of each
    tfc_page_add(p, "<span class=\"tag%s\">", tfc_str_is(label, "measured") ? "" : " odd");
    tfc_page_escaped(p, label);
    tfc_page_add(p, "</span> ");
  }
  if (message.size) tfc_page_add(p, "<span class=\"note why\">");
  tfc_page_escaped(p, message);
  tfc_page_add(p, "%s</td></tr>\n", message.size ? "</span>" : "");
}

// A simulated step has no quartiles, and is one.
static void begin_results(struct tfc_page *p) {
  tfc_page_add(
      p,
      "<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>placement</th><th class=\"n\">step</th><th></th>%s"
      "<th class=\"n\">answer is</th><th class=\"n\">simulated</th><th class=\"n\">moved</th><th></th></tr>"
      "</thead><tbody>\n",
      tfc_page_modelled(p) ? "" : "<th class=\"n\">quartiles</th><th class=\"n\">steps</th>");
}

static void add_results(struct tfc_page *p) {
  const struct tfc_table *t = &p->results;
  double answer = tfc_page_number(p, "step_median_us"), top = 0;
  uint32_t folded = 0;
  bool cut = false;
  const bool modelled = tfc_page_modelled(p);
  for (uint32_t r = 0; r < t->row_count; r++) {
    double us = tfc_table_number(t, r, "step_median_us");
    if (us > top) top = us;
    folded += tfc_report_is_folded(t, r, modelled);
    cut |= tfc_str_is(tfc_table_text(t, r, "state"), "cut");
  }
  tfc_page_add(
      p, "<h2>%s%s</h2>\n<p>%s.%s</p>\n", tfc_page_profiled(p) ? "How long a step takes" : "The answer and its rivals",
      tfc_report_simulated(p->store, &p->args),
      !modelled ? "Medians of timed steps, first operation's start to last operation's end; rows without steps "
                  "were only simulated"
                : "Steps from the first operation's start to the last operation's end",
      cut ? " \"cut\": stopped early, because it was much slower than the best." : "");
  begin_results(p);
  for (uint32_t r = 0; r < t->row_count; r++)
    if (!tfc_report_is_folded(t, r, modelled)) add_result(p, r, answer, top);
  tfc_page_add(p, "</tbody></table></div>\n");
  if (folded) {
    if (modelled)
      tfc_page_add(p, "<details><summary>What each algorithm found by itself</summary>");
    else
      tfc_page_add(p, "<details><summary>%u rival%s that %s only simulated</summary>", folded, folded == 1 ? "" : "s",
                   folded == 1 ? "was" : "were");
    begin_results(p);
    for (uint32_t r = 0; r < t->row_count; r++)
      if (tfc_report_is_folded(t, r, modelled)) add_result(p, r, answer, top);
    tfc_page_add(p, "</tbody></table></div></details>\n");
  }
  tfc_page_query(p, "The query behind this table", tfc_report_sql_results);
}

static tfc_status add_warnings(struct tfc_page *p) {
  struct tfc_table t = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(p->store, tfc_report_sql_warnings, &p->args, &t));
  if (t.row_count) tfc_page_add(p, "<section id=\"warnings\">");
  for (uint32_t r = 0; r < t.row_count; r++) {
    if (r == TFC_REPORT_WARNINGS)
      tfc_page_add(p, "<details><summary>%u more warnings</summary>", t.row_count - TFC_REPORT_WARNINGS);
    tfc_page_add(p, "<p><b>Warning:</b> ");
    tfc_page_escaped(p, tfc_table_text(&t, r, "text"));
    tfc_page_add(p, "</p>\n");
  }
  if (t.row_count > TFC_REPORT_WARNINGS) tfc_page_add(p, "</details>");
  if (t.row_count) tfc_page_add(p, "</section>\n");
out:
  tfc_table_deinit(&t);
  return s;
}

static void add_next(struct tfc_page *p) {
  struct tfc_text text = {0};
  if (!p->kept) return;
  tfc_report_next(tfc_store_path(p->store), &p->args, &text);
  tfc_page_add(p, "<section id=\"next\"><pre>");
  tfc_page_escaped(p, (tfc_str){text.data, text.size});
  tfc_page_add(p, "</pre></section>\n");
  tfc_text_deinit(&text);
}

// --- Plots -----------------------------------------------------------------------------------------------------------

static void add_plot(struct tfc_page *p, const char *name, const struct tfc_plot *plot) {
  char summary[160];
  tfc_page_add(p, "<section id=\"%.*s\"><h2>", (int)strcspn(name, "."), name);
  tfc_page_escaped(p, (tfc_str){plot->title.data, plot->title.size});
  tfc_page_add(p, "</h2>\n<p class=\"caption\">");
  tfc_page_escaped(p, (tfc_str){plot->caption.data, plot->caption.size});
  tfc_page_add(p, "</p>\n");
  if (plot->svg.size > 0) {
    tfc_page_add(p, "<figure class=\"wide\">");
    tfc_text_add(p->out, (tfc_str){plot->svg.data, plot->svg.size});
    tfc_page_add(p, "</figure><figure class=\"narrow\">");
    tfc_text_add(p->out, (tfc_str){plot->narrow.data, plot->narrow.size});
    tfc_page_add(p, "</figure>\n");
  } else {
    tfc_page_add(p, "<p class=\"note\">");
    if (!tfc_page_modelled(p) || !tfc_str_starts((tfc_str){plot->note.data, plot->note.size}, "Nothing was recorded"))
      tfc_page_escaped(p, (tfc_str){plot->note.data, plot->note.size});
    else
      tfc_page_add(p, "It needs what was measured, and nothing was run.");
    tfc_page_add(p, "</p>\n");
  }
  snprintf(summary, sizeof summary, "The queries behind this plot (:run = %lld, :placement = %lld, :step = %lld)",
           (long long)p->args.run, (long long)p->args.placement, (long long)p->args.step);
  if (plot->queries.data) tfc_page_query(p, summary, plot->queries.data);
  tfc_page_add(p, "</section>\n");
}

static tfc_status add_plots(struct tfc_page *p) {
  tfc_status s = NULL;
  uint32_t count = 0, k = 0;
  for (int place = 0; tfc_plot_next(place, &place) != NULL;) count++;
  const char **names = calloc(count + 1, sizeof *names);
  struct tfc_plot *drawn = calloc(count + 1, sizeof *drawn);
  if (!names || !drawn) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int place = 0; k < count; k++) names[k] = tfc_plot_next(place, &place);
  TFC_TRY(s, tfc_plots_draw(p->store, names, count, &p->args, p->scale, drawn));
  for (uint32_t i = 0; i < count; i++) {
    if (!drawn[i].left_out) add_plot(p, names[i], &drawn[i]);
    if (strncmp(names[i], "memory.", 7) == 0) TFC_TRY(s, tfc_page_memory(p));
  }
  uint32_t missing = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!drawn[i].left_out) continue;
    tfc_page_add(p, missing++ ? "; " : "<p class=\"note\" id=\"missing\">Not drawn: ");
    tfc_page_escaped(p, (tfc_str){drawn[i].title.data, drawn[i].title.size});
    tfc_page_add(p, " (");
    tfc_page_escaped(p, (tfc_str){drawn[i].reason.data, drawn[i].reason.size});
    tfc_page_add(p, ")");
  }
  if (missing) tfc_page_add(p, ".</p>\n");
out:
  for (uint32_t i = 0; drawn && i < count; i++) tfc_plot_deinit(&drawn[i]);
  free(drawn);
  free(names);
  return s;
}

// --- Reasons, and how the run measured -------------------------------------------------------------------------------

static void add_reasons(struct tfc_page *p, const struct tfc_placement *doc) {
  uint32_t shown = 0, all = 0;
  for (uint32_t i = 0; doc && i < doc->node_count; i++) all += doc->nodes[i].reason.size > 0;
  if (all == 0) return;
  tfc_page_add(
      p,
      "<h2>What was forced</h2>\n<p>%u operations had no choice, or fell back.</p>\n<details><summary>Show them"
      "</summary><div "
      "class=\"scroll\"><table><thead><tr><th>operation</th><th>device</th><th>reason</th></tr></thead><tbody>\n",
      all);
  for (uint32_t i = 0; i < doc->node_count && shown < 500; i++) {
    if (doc->nodes[i].reason.size == 0) continue;
    tfc_page_add(p, "<tr><td>");
    tfc_page_escaped(p, doc->nodes[i].name);
    tfc_page_add(p, "</td><td>");
    tfc_page_escaped(p, doc->nodes[i].device);
    tfc_page_add(p, "</td><td class=\"note\">");
    tfc_page_escaped(p, doc->nodes[i].reason);
    tfc_page_add(p, "</td></tr>\n");
    shown++;
  }
  tfc_page_add(p, "</tbody></table></div>%s</details>\n",
               all > shown ? "<p class=\"note\">The placement file has them all.</p>" : "");
}

static void add_about(struct tfc_page *p) {
  static const struct {
    const char *column, *text;
  } rows[] = {{"command", "command"},     {"measured_with", "steps ran in"},
              {"graph", "graph"},         {"graph_sha256", "its SHA-256"},
              {"cpu_model", "processor"}, {"blas_core", "OpenBLAS kernels"},
              {"host", "host"},           {"algorithms", "algorithms asked for"},
              {"algorithm", "found by"},  {"objective", "objective"},
              {"version", "tfc"},         {"message", "message"}};
  tfc_page_add(p, "<h2>How this was got</h2>\n<dl>\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tfc_str value = tfc_page_text(p, rows[i].column);
    if (value.size == 0) continue;
    tfc_page_add(p, "<dt>%s</dt><dd>", rows[i].text);
    tfc_page_escaped(p, value);
    tfc_page_add(p, "</dd>\n");
  }
  double overhead = tfc_page_number(p, "trace_overhead"), episodes = tfc_page_number(p, "episodes"),
         nodes = tfc_page_number(p, "graph_nodes");
  if (nodes == nodes) tfc_page_add(p, "<dt>nodes of the graph</dt><dd>%.0f</dd>\n", nodes);
  if (episodes == episodes) tfc_page_add(p, "<dt>candidates measured</dt><dd>%.0f</dd>\n", episodes);
  if (overhead == overhead) tfc_page_add(p, "<dt>cost of tracing</dt><dd>%.2f %% of a step</dd>\n", 100 * overhead);
  tfc_page_add(p, "<dt>seed</dt><dd>%.0f</dd>\n</dl>\n", tfc_page_number(p, "seed"));
}

// Loads the lists of the page. If no operation was timed, they stay empty.
static tfc_status load(struct tfc_page *p) {
  struct tfc_text document = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(p->store, tfc_report_sql_run, &p->args, &p->run));
  TFC_TRY(s, tfc_table_query(p->store, tfc_report_sql_results, &p->args, &p->results));
  TFC_TRY(s, tfc_table_query(p->store, tfc_report_sql_devices, &p->args, &p->devices));
  TFC_TRY(s, tfc_table_query(p->store, tfc_report_sql_in_flight, &p->args, &p->in_flight));
  TFC_TRY(s, tfc_report_tau(p->store, &p->args, &p->tau));
  p->scale = tfc_plot_scale_of(tfc_page_number(p, "step_median_us"));
  tfc_status none = tfc_store_get_answer(p->store, p->args.run, &document);
  if (!none) none = tfc_placement_parse((tfc_str){document.data, document.size}, "the run's placement", &p->document);
  tfc_status_free(none); // a run without an answer gets a page, too
  if (p->args.step >= 0) TFC_TRY(s, tfc_traced_load(p->store, &p->args, &p->traced));
  none = tfc_report_nodes(p->store, p->args.run, &p->nodes);
  if (none && tfc_status_code(none) != TFC_NOT_FOUND)
    s = none;
  else
    tfc_status_free(none);
out:
  tfc_text_deinit(&document);
  return s;
}

tfc_status tfc_report_html(struct tfc_store *store, int64_t run_id, struct tfc_text *out) {
  struct tfc_page p = {.store = store, .kept = *tfc_store_path(store) != 0, .out = out};
  struct tfc_text ending = {0};
  char *title = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &p.args));
  TFC_TRY(s, load(&p));
  title = tfc_format("%.*s: where each operation runs", TFC_STR_ARG(tfc_page_base_name(tfc_page_text(&p, "graph"))));
  if (!title) TFC_TRY(s, tfc_status_no_memory(NULL));
  tfc_html_begin(out, tfc_str_from(title), true);
  tfc_page_head(&p);
  TFC_TRY(s, tfc_report_ending(store, &p.args, &p.run, &ending));
  tfc_report_learning(&p.run, &ending);
  if (ending.size) {
    tfc_page_add(&p, "<p class=\"note\">");
    tfc_page_escaped(&p, (tfc_str){ending.data, ending.size});
    tfc_page_add(&p, "</p>\n");
  }
  TFC_TRY(s, add_warnings(&p));
  tfc_page_basis(&p);
  TFC_TRY(s, tfc_page_summary(&p));
  add_next(&p);
  add_results(&p);
  tfc_page_devices(&p);
  TFC_TRY(s, tfc_page_map(&p));
  tfc_page_timeline(&p);
  tfc_page_nodes(&p);
  TFC_TRY(s, add_plots(&p));
  TFC_TRY(s, tfc_page_beside(&p));
  add_reasons(&p, p.document);
  add_about(&p);
  if (p.kept)
    tfc_page_add(&p,
                 "<footer>Every figure on this page can be computed from the views of the database; the queries are "
                 "beside them.</footer>\n");
  tfc_html_end(out, true);
  if (out->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
out:
  tfc_placement_free(p.document);
  tfc_traced_deinit(&p.traced);
  tfc_report_lists_deinit(&p.nodes);
  tfc_table_deinit(&p.run);
  tfc_table_deinit(&p.results);
  tfc_table_deinit(&p.devices);
  tfc_table_deinit(&p.in_flight);
  tfc_text_deinit(&ending);
  free(p.box_of);
  free(title);
  return s;
}

tfc_status tfc_report_page(struct tfc_store *store, int64_t run_id, const char *dir) {
  struct tfc_text html = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_html(store, run_id, &html));
  TFC_TRY(s, tfc_html_write(&html, dir));
out:
  tfc_text_deinit(&html);
  return s;
}
