// The page of a run: the verdict, the table of results, the plots with the queries behind them, devices, reasons, and
// how all of it was measured. The page is one file without references to others.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "placer/model/placement.h"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"
#include "runtime/base/units.h"

struct page {
  struct tfc_store *store;
  struct tfc_query_args args;
  struct tfc_plot_scale scale;
  struct tfc_table run, results, devices, in_flight;
  struct tfc_text *out;
};

static void add(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct page *p, const char *format, ...) {
  va_list args;
  char *text = NULL;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0) p->out->failed = true, text = NULL;
  va_end(args);
  if (text) tfc_text_add(p->out, tfc_str_from(text));
  free(text);
}

static void add_escaped(struct page *p, tfc_str text) {
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    const char *entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
    tfc_text_add(p->out, entity ? tfc_str_from(entity) : (tfc_str){&text.data[i], 1});
  }
}

static const char *time_text(char *buffer, double us) {
  if (us != us) return "–";
  return tfc_show_us(buffer, us);
}
static const char *bytes_text(char *buffer, double bytes) {
  if (bytes != bytes) return "–";
  return tfc_show_bytes(buffer, bytes);
}
static double run_number(const struct page *p, const char *column) {
  return tfc_table_number(&p->run, 0, column);
}
static tfc_str run_text(const struct page *p, const char *column) {
  return tfc_table_text(&p->run, 0, column);
}
static tfc_str base_name(tfc_str path) {
  size_t slash = tfc_str_rfind(path, '/');
  return slash == SIZE_MAX ? path : tfc_str_sub(path, slash + 1, SIZE_MAX);
}

static void add_card(struct page *p, const char *class, const char *value, const char *text) {
  add(p, "<div class=\"card%s\"><b>%s</b><span>%s</span></div>\n", class, value, text);
}

// --- Head ------------------------------------------------------------------------------------------------------------

// With the throughput objective, what counts is the load of the busiest device; the steps shown on the page ran one at
// a time.
static void add_load_verdict(struct page *p, double answer) {
  double id = run_number(p, "placement_id"), speedup = run_number(p, "speedup"), low = run_number(p, "speedup_low");
  char a[32];
  add(p, "<p class=\"verdict\">Searched for the smallest load of the busiest device. ");
  for (uint32_t r = 0; r < p->in_flight.row_count; r++) {
    if (tfc_table_number(&p->in_flight, r, "placement_id") != id) continue;
    add(p, "With steps %.*s one ends every <strong>%s</strong>. ",
        TFC_STR_ARG(tfc_table_text(&p->in_flight, r, "phase")),
        time_text(a, tfc_table_number(&p->in_flight, r, "apart_us")));
    break; // rows are ordered: the fastest mode comes first
  }
  if (speedup == speedup) add(p, "Against the best single device: %.2f times", speedup);
  if (speedup == speedup && low == low)
    add(p, " (95&nbsp;%% interval %.2f to %.2f)", low, run_number(p, "speedup_high"));
  add(p, "%s The steps below ran one at a time: <strong>%s</strong> each.</p>\n", speedup == speedup ? "." : "",
      time_text(a, answer));
}

static void add_verdict(struct page *p) {
  double answer = run_number(p, "step_median_us"), single = run_number(p, "best_single_us"),
         whole = run_number(p, "whole_us"), low = run_number(p, "speedup_low"), high = run_number(p, "speedup_high");
  char a[32];
  if (answer != answer) {
    add(p, "<p class=\"verdict\">This run has no answer (%.*s).</p>\n", TFC_STR_ARG(run_text(p, "state")));
    return;
  }
  if (tfc_str_is(run_text(p, "objective"), "throughput")) {
    add_load_verdict(p, answer);
    return;
  }
  add(p, "<p class=\"verdict\">");
  if (single == single && low == low && low > 1)
    add(p,
        "A step takes <strong>%s</strong> under the placement that was found: %.2f times faster than on the best "
        "single "
        "device, by more than the noise (95&nbsp;%% interval %.2f to %.2f).",
        time_text(a, answer), single / answer, low, high);
  else if (single == single)
    add(p,
        "Nothing was found that beats the best single device by more than the noise: a step takes "
        "<strong>%s</strong>%s.",
        time_text(a, answer), low == low ? "" : ", and no interval was measured");
  else
    add(p, "A step takes <strong>%s</strong>.", time_text(a, answer));
  if (whole == whole && whole < answer)
    add(p, " The undivided machine, as one device, is faster still: %s.", time_text(a, whole));
  add(p, "</p>\n");
}

static void add_head(struct page *p) {
  char a[32], text[160], when[64] = "";
  double answer = run_number(p, "step_median_us"), started = run_number(p, "started_unix_s"),
         bound = run_number(p, "bound_us"), tau = run_number(p, "tau"), wall = run_number(p, "wall_s");
  time_t seconds = started == started ? (time_t)started : 0;
  struct tm local;
  if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
  add(p, "<header><h1>");
  add_escaped(p, base_name(run_text(p, "graph")));
  add(p, " on %u device%s</h1>\n<p>Run %lld of ", p->devices.row_count, p->devices.row_count == 1 ? "" : "s",
      (long long)p->args.run);
  add_escaped(p, base_name(tfc_str_from(tfc_store_path(p->store))));
  add(p, ", %s%s", when, wall == wall ? "" : ", not ended");
  if (wall == wall) add(p, ", took %s", time_text(a, wall * 1e6));
  add(p, ". Times are <span class=\"tag%s\">", tfc_str_is(run_text(p, "label"), "measured") ? "" : " odd");
  add_escaped(p, run_text(p, "label"));
  add(p, "</span></p></header>\n");
  add_verdict(p);
  add(p, "<div class=\"cards\">\n");
  snprintf(text, sizeof text, "a step, median of %.0f; quartiles %s", run_number(p, "step_count"),
           time_text(a, run_number(p, "step_q1_us")));
  size_t n = strlen(text);
  snprintf(text + n, sizeof text - n, " to %s", time_text(a, run_number(p, "step_q3_us")));
  if (answer == answer) add_card(p, " main", time_text(a, answer), text);
  static const struct {
    const char *column, *text;
  } rivals[] = {{"best_single_us", "against the best single device"},
                {"expert_us", "against the expert's hand placement"},
                {"whole_us", "against the undivided machine"}};
  for (size_t i = 0; i < 3; i++) {
    double rival = run_number(p, rivals[i].column);
    if (rival != rival || answer != answer) continue;
    char ratio[32];
    snprintf(ratio, sizeof ratio, "%.2f×", rival / answer);
    snprintf(text, sizeof text, "%s (%s)", rivals[i].text, time_text(a, rival));
    add_card(p, "", ratio, text);
  }
  if (bound == bound && answer == answer && !tfc_str_is(run_text(p, "objective"), "throughput")) {
    char gap[32];
    snprintf(gap, sizeof gap, "%.0f %%", 100 * (answer / bound - 1));
    snprintf(text, sizeof text, "above the lower bound of %s (%.*s)", time_text(a, bound),
             TFC_STR_ARG(run_text(p, "bound_name")));
    add_card(p, "", gap, text);
  }
  if (tau == tau) {
    char value[32];
    snprintf(value, sizeof value, "%.2f", tau);
    snprintf(text, sizeof text, "Kendall's τ of simulated against measured, %.0f placements",
             run_number(p, "tau_placements"));
    add_card(p, "", value, text);
  }
  add(p, "</div>\n");
}

// --- Results ---------------------------------------------------------------------------------------------------------

static void add_results(struct page *p) {
  const struct tfc_table *t = &p->results;
  double answer = run_number(p, "step_median_us"), top = 0;
  char a[32], b[32], c[32];
  for (uint32_t r = 0; r < t->row_count; r++) {
    double us = tfc_table_number(t, r, "step_median_us");
    if (us > top) top = us;
  }
  add(p,
      "<h2>The answer and its rivals</h2>\n<p>Medians of timed steps, first operation's start to last operation's end; "
      "rows without steps were only simulated.</p>\n<table><thead><tr><th>placement</th><th class=\"n\">step</th>"
      "<th></th><th class=\"n\">quartiles</th><th class=\"n\">steps</th><th class=\"n\">answer is</th>"
      "<th class=\"n\">simulated</th><th class=\"n\">moved</th><th></th></tr></thead><tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    double us = tfc_table_number(t, r, "step_median_us"), steps = tfc_table_number(t, r, "step_count"),
           moved = tfc_table_number(t, r, "transfer_bytes");
    bool is_answer = tfc_table_number(t, r, "is_answer") == 1;
    tfc_str state = tfc_table_text(t, r, "state"), label = tfc_table_text(t, r, "label"),
            message = tfc_table_text(t, r, "message"), algorithm = tfc_table_text(t, r, "algorithm");
    add(p, "<tr%s><td>", is_answer ? " class=\"answer\"" : "");
    if (is_answer) {
      add(p, "answer");
      if (algorithm.size) add(p, " <span class=\"note\">by ");
      add_escaped(p, algorithm);
      if (algorithm.size) add(p, "</span>");
    } else {
      add_escaped(p, tfc_table_text(t, r, "placement"));
    }
    add(p, "</td><td class=\"n\">%s</td><td class=\"wide\">", time_text(a, us));
    if (us == us && top > 0) add(p, "<span class=\"bar\" style=\"width:%.1f%%\"></span>", 100 * us / top);
    add(p, "</td><td class=\"n\">");
    if (us == us)
      add(p, "%s – %s", time_text(b, tfc_table_number(t, r, "step_q1_us")),
          time_text(c, tfc_table_number(t, r, "step_q3_us")));
    add(p, "</td><td class=\"n\">");
    if (steps > 0) add(p, "%.0f", steps);
    add(p, "</td><td class=\"n\">");
    if (us == us && answer > 0 && !is_answer)
      add(p, "%.2f× %s", us >= answer ? us / answer : answer / us, us >= answer ? "faster" : "slower");
    add(p, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td>",
        time_text(a, tfc_table_number(t, r, "simulated_us")), bytes_text(b, moved));
    if (!tfc_str_is(state, "ok") && !tfc_str_equal(state, label)) {
      add(p, "<span class=\"tag odd\">");
      add_escaped(p, state);
      add(p, "</span> ");
    }
    add(p, "<span class=\"tag%s\">", tfc_str_is(label, "measured") ? "" : " odd");
    add_escaped(p, label);
    add(p, "</span> <span class=\"note\">");
    add_escaped(p, message);
    add(p, "</span></td></tr>\n");
  }
  add(p, "</tbody></table>\n<details><summary>The query behind this table</summary><pre>");
  add_escaped(p, tfc_str_from(tfc_report_sql_results));
  add(p, "</pre></details>\n");
}

// --- Plots -----------------------------------------------------------------------------------------------------------

static tfc_status add_plot(struct page *p, const char *name) {
  struct tfc_plot plot = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_plot_draw(p->store, name, &p->args, p->scale, &plot));
  if (plot.left_out) goto out;
  add(p, "<section id=\"%.*s\"><h2>", (int)strcspn(name, "."), name);
  add_escaped(p, (tfc_str){plot.title.data, plot.title.size});
  add(p, "</h2>\n<p class=\"caption\">");
  add_escaped(p, (tfc_str){plot.caption.data, plot.caption.size});
  add(p, "</p>\n");
  if (plot.svg.size > 0) {
    add(p, "<figure>");
    tfc_text_add(p->out, (tfc_str){plot.svg.data, plot.svg.size});
    add(p, "</figure>\n");
  } else {
    add(p, "<p class=\"note\">");
    add_escaped(p, (tfc_str){plot.note.data, plot.note.size});
    add(p, "</p>\n");
  }
  add(p, "<details><summary>The queries behind this plot (:run = %lld, :placement = %lld, :step = %lld)</summary><pre>",
      (long long)p->args.run, (long long)p->args.placement, (long long)p->args.step);
  add_escaped(p, (tfc_str){plot.queries.data, plot.queries.size});
  add(p, "</pre></details></section>\n");
out:
  tfc_plot_deinit(&plot);
  return s;
}

// Those whose scripts say a place from `first` to `last`.
static tfc_status add_plots(struct page *p, int first, int last) {
  int place = first - 1;
  for (const char *name; (name = tfc_plot_next(place, &place)) && place <= last;)
    TFC_RETURN_IF_ERROR(add_plot(p, name));
  return NULL;
}

// --- Devices, path, reasons ------------------------------------------------------------------------------------------

// Why each device was idle in the step.
static void add_idle(struct page *p) {
  static const struct {
    const char *column, *title;
  } causes[] = {{"idle_launch_percent", "launch"},
                {"idle_transfer_percent", "transfer"},
                {"idle_dependency_percent", "another device"},
                {"idle_end_percent", "end of step"}};
  const struct tfc_table *t = &p->devices;
  bool known = false;
  for (uint32_t r = 0; r < t->row_count; r++) {
    double launch = tfc_table_number(t, r, "idle_launch_percent");
    known |= launch == launch;
  }
  if (!known) return;
  add(p, "<p>Why they stood still: the host had not launched yet, a tensor was on its way, another device was not done,"
         " or the device was done before the step. Shares of the step.</p>\n<table><thead><tr><th>device</th>");
  for (size_t c = 0; c < sizeof causes / sizeof *causes; c++) add(p, "<th class=\"n\">%s</th>", causes[c].title);
  add(p, "<th class=\"n\">longest launch</th></tr></thead><tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    double gap = tfc_table_number(t, r, "launch_gap_us");
    add(p, "<tr><td>");
    add_escaped(p, tfc_table_text(t, r, "name"));
    add(p, "</td>");
    for (size_t c = 0; c < sizeof causes / sizeof *causes; c++) {
      double share = tfc_table_number(t, r, causes[c].column);
      add(p, "<td class=\"n\">");
      if (share == share) add(p, "%.1f %%", share);
      add(p, "</td>");
    }
    add(p, "<td class=\"n\">");
    if (gap == gap) add(p, "%.1f us", gap);
    add(p, "</td></tr>\n");
  }
  add(p, "</tbody></table>\n");
}

static void add_devices(struct page *p) {
  const struct tfc_table *t = &p->devices;
  char a[32], b[32], c[32];
  add(p, "<h2>Devices</h2>\n<p>Under the answer, over its traced steps.</p>\n<table><thead><tr><th>device</th>"
         "<th>hardware</th><th class=\"n\">cores</th><th class=\"n\">busy</th><th></th><th class=\"n\">operations</th>"
         "<th class=\"n\">received</th><th class=\"n\">peak memory</th><th class=\"n\">limit</th><th></th></tr></thead>"
         "<tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    double busy = tfc_table_number(t, r, "busy_percent"), cores = tfc_table_number(t, r, "cores");
    tfc_str label = tfc_table_text(t, r, "label");
    add(p, "<tr><td>");
    add_escaped(p, tfc_table_text(t, r, "name"));
    add(p, "</td><td class=\"note\">");
    add_escaped(p, tfc_table_text(t, r, "model"));
    add(p, "</td><td class=\"n\">");
    if (cores == cores) add(p, "%.0f", cores);
    add(p, "</td><td class=\"n\">");
    if (busy == busy) add(p, "%.0f %%", busy);
    add(p, "</td><td style=\"width:16%%\">");
    if (busy == busy)
      add(p, "<span class=\"bar\" style=\"width:%.1f%%;background:#4269d0\"></span>", busy > 100 ? 100 : busy);
    add(p,
        "</td><td class=\"n\">%.0f</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td>"
        "<span class=\"tag%s\">",
        tfc_table_number(t, r, "operations"), bytes_text(a, tfc_table_number(t, r, "received_bytes")),
        bytes_text(b, tfc_table_number(t, r, "peak_bytes")),
        tfc_table_number(t, r, "memory_limit_bytes") == tfc_table_number(t, r, "memory_limit_bytes")
            ? bytes_text(c, tfc_table_number(t, r, "memory_limit_bytes"))
            : "none",
        tfc_str_is(label, "measured") ? "" : " odd");
    add_escaped(p, label);
    add(p, "</span></td></tr>\n");
  }
  add(p, "</tbody></table>\n<details><summary>The query behind this table</summary><pre>");
  add_escaped(p, tfc_str_from(tfc_report_sql_devices));
  add(p, "</pre></details>\n");
  tfc_str how = tfc_report_virtual_transfers(p->store, &p->args);
  if (how.size) add(p, "<p>A tensor from one virtual device to another: %.*s.</p>\n", TFC_STR_ARG(how));
  char math[16];
  tfc_report_gpu_math(p->store, &p->args, math);
  if (*math) add(p, "<p>Products and convolutions of float32 on GPUs: %s.</p>\n", math);
  add_idle(p);
}

// Virtual devices share one GPU's memory bandwidth and cache. This compares what each type of operation takes alone and
// while other devices work: under the answer, or, where the answer uses one device, under the placement that uses the
// most.
static const char sql_beside[] =
    "WITH own AS (SELECT o.placement_id, o.node_id, o.op, o.device_id, o.median_us FROM v_op_total o JOIN v_device d"
    " USING (run_id, device_id) WHERE o.run_id = :run AND d.label = 'virtual'),"
    " shared AS (SELECT placement_id, COUNT(DISTINCT device_id) AS devices FROM own GROUP BY placement_id HAVING"
    " devices > 1),"
    " chosen AS (SELECT placement_id, placement, devices FROM shared JOIN v_result USING (placement_id) WHERE run_id ="
    " :run ORDER BY placement_id = :placement DESC, devices DESC, step_median_us LIMIT 1),"
    " alone AS (SELECT node_id, MIN(median_us) AS us FROM own JOIN v_result USING (placement_id) WHERE run_id = :run"
    " AND placement LIKE 'single:%' GROUP BY node_id)"
    " SELECT own.op, COUNT(*) AS operations, SUM(alone.us) AS alone_us, SUM(own.median_us) AS beside_us,"
    " SUM(own.median_us) / SUM(alone.us) AS factor, chosen.placement, chosen.devices FROM own JOIN chosen USING"
    " (placement_id) JOIN alone USING (node_id) GROUP BY own.op ORDER BY beside_us DESC, own.op LIMIT 20";
static tfc_status add_beside(struct page *p) {
  struct tfc_table t = {0};
  char a[32], b[32];
  TFC_RETURN_IF_ERROR(tfc_table_query(p->store, sql_beside, &p->args, &t));
  if (t.row_count) {
    add(p,
        "<section id=\"beside\"><h2>Alone and beside others</h2>\n<p class=\"caption\">Virtual devices share one GPU. "
        "Medians of the same operations, summed by type: on one of them while the others stand still, and under <b>");
    add_escaped(p, tfc_table_text(&t, 0, "placement"));
    add(p,
        "</b> with %.0f of them at work.</p>\n<table><thead><tr><th>operation</th><th class=\"n\">number</th>"
        "<th class=\"n\">alone</th><th class=\"n\">beside others</th><th class=\"n\">factor</th></tr></thead><tbody>\n",
        tfc_table_number(&t, 0, "devices"));
    for (uint32_t r = 0; r < t.row_count; r++) {
      add(p, "<tr><td>");
      double factor = tfc_table_number(&t, r, "factor");
      add_escaped(p, tfc_table_text(&t, r, "op"));
      add(p, "</td><td class=\"n\">%.0f</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">",
          tfc_table_number(&t, r, "operations"), time_text(a, tfc_table_number(&t, r, "alone_us")),
          time_text(b, tfc_table_number(&t, r, "beside_us")));
      if (factor == factor) add(p, "%.2f", factor);
      add(p, "</td></tr>\n");
    }
    add(p, "</tbody></table>\n<details><summary>The query behind this table</summary><pre>");
    add_escaped(p, tfc_str_from(sql_beside));
    add(p, "</pre></details></section>\n");
  }
  tfc_table_deinit(&t);
  return NULL;
}

struct path_part {
  tfc_str name;
  double us;
  uint32_t count;
};
static int by_time(const void *a, const void *b) {
  const struct path_part *x = a, *y = b;
  return (x->us < y->us) - (x->us > y->us);
}

// The critical path of the answer's simulation, summed by type of operation: times from the answer's document, types
// from the view of nodes.
static tfc_status add_path(struct page *p, const struct tfc_placement *doc) {
  struct tfc_table nodes = {0};
  struct tfc_strmap ops = {0}, index = {0};
  struct path_part *parts = NULL;
  uint32_t count = 0;
  double total = 0;
  char a[32];
  tfc_status s = NULL;
  if (!doc || doc->path_count == 0) goto out;
  TFC_TRY(s, tfc_table_query(p->store, "SELECT name, op FROM v_node WHERE run_id = :run", &p->args, &nodes));
  parts = calloc((size_t)doc->path_count + 1, sizeof *parts);
  if (!parts || !tfc_strmap_reserve(&ops, nodes.row_count)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t r = 0; r < nodes.row_count; r++) tfc_strmap_put(&ops, tfc_table_cell(&nodes, r, 0)->text, r, NULL);
  for (uint32_t i = 0; i < doc->path_count; i++) {
    const struct tfc_placement_path_item *item = &doc->path[i];
    bool moves = item->to.size > 0 && !tfc_str_equal(item->from, item->to);
    const uint64_t *row = moves ? NULL : tfc_strmap_get(&ops, item->node);
    tfc_str name = moves ? TFC_STR("(transfer)") : row ? tfc_table_cell(&nodes, (uint32_t)*row, 1)->text : item->node;
    bool found;
    uint64_t *slot = tfc_strmap_put(&index, name, count, &found);
    if (!slot) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    if (!found) parts[count++] = (struct path_part){.name = name};
    parts[*slot].us += item->end_us - item->start_us;
    parts[*slot].count++;
    total += item->end_us - item->start_us;
  }
  qsort(parts, count, sizeof *parts, by_time);
  add(p,
      "<h2>Critical path</h2>\n<p>The chain of operations and transfers that sets the length of the step (simulated, "
      "%u items, %s), by type.</p>\n<table><thead><tr><th>type</th><th class=\"n\">items</th><th class=\"n\">time</th>"
      "<th class=\"n\">share</th><th></th></tr></thead><tbody>\n",
      doc->path_count, time_text(a, total));
  for (uint32_t i = 0; i < count && i < 12; i++) {
    add(p, "<tr><td>");
    add_escaped(p, parts[i].name);
    add(p,
        "</td><td class=\"n\">%u</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td><td style=\"width:45%%\">"
        "<span class=\"bar\" style=\"width:%.1f%%\"></span></td></tr>\n",
        parts[i].count, time_text(a, parts[i].us), total > 0 ? 100 * parts[i].us / total : 0,
        total > 0 ? 100 * parts[i].us / total : 0);
  }
  add(p, "</tbody></table>\n");
out:
  tfc_table_deinit(&nodes);
  tfc_strmap_deinit(&ops);
  tfc_strmap_deinit(&index);
  free(parts);
  return s;
}

static void add_reasons(struct page *p, const struct tfc_placement *doc) {
  uint32_t shown = 0, all = 0;
  for (uint32_t i = 0; doc && i < doc->node_count; i++) all += doc->nodes[i].reason.size > 0;
  if (all == 0) return;
  add(p,
      "<h2>What was forced</h2>\n<p>%u operations had no choice, or fell back.</p>\n<details><summary>Show them"
      "</summary><table><thead><tr><th>operation</th><th>device</th><th>reason</th></tr></thead><tbody>\n",
      all);
  for (uint32_t i = 0; i < doc->node_count && shown < 500; i++) {
    if (doc->nodes[i].reason.size == 0) continue;
    add(p, "<tr><td>");
    add_escaped(p, doc->nodes[i].name);
    add(p, "</td><td>");
    add_escaped(p, doc->nodes[i].device);
    add(p, "</td><td class=\"note\">");
    add_escaped(p, doc->nodes[i].reason);
    add(p, "</td></tr>\n");
    shown++;
  }
  add(p, "</tbody></table>%s</details>\n", all > shown ? "<p class=\"note\">The placement file has them all.</p>" : "");
}

static void add_about(struct page *p) {
  static const struct {
    const char *column, *text;
  } rows[] = {{"command", "command"},     {"measured_with", "steps ran in"},
              {"graph", "graph"},         {"graph_sha256", "its SHA-256"},
              {"cpu_model", "processor"}, {"blas_core", "OpenBLAS kernels"},
              {"host", "host"},           {"algorithms", "algorithms asked for"},
              {"algorithm", "found by"},  {"objective", "objective"},
              {"version", "tfc"},         {"message", "message"}};
  add(p, "<h2>How this was got</h2>\n<dl>\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    tfc_str value = run_text(p, rows[i].column);
    if (value.size == 0) continue;
    add(p, "<dt>%s</dt><dd>", rows[i].text);
    add_escaped(p, value);
    add(p, "</dd>\n");
  }
  double overhead = run_number(p, "trace_overhead"), episodes = run_number(p, "episodes"),
         nodes = run_number(p, "graph_nodes");
  if (nodes == nodes) add(p, "<dt>nodes of the graph</dt><dd>%.0f</dd>\n", nodes);
  if (episodes == episodes) add(p, "<dt>candidates measured</dt><dd>%.0f</dd>\n", episodes);
  if (overhead == overhead) add(p, "<dt>cost of tracing</dt><dd>%.2f %% of a step</dd>\n", 100 * overhead);
  add(p, "<dt>seed</dt><dd>%.0f</dd>\n</dl>\n", run_number(p, "seed"));
}

tfc_status tfc_report_html(struct tfc_store *store, int64_t run_id, struct tfc_text *out) {
  struct page p = {.store = store, .out = out};
  struct tfc_text document = {0};
  struct tfc_placement *placement = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &p.args));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_run, &p.args, &p.run));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_results, &p.args, &p.results));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_devices, &p.args, &p.devices));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_in_flight, &p.args, &p.in_flight));
  p.scale = tfc_plot_scale_of(run_number(&p, "step_median_us"));
  tfc_status none = tfc_store_get_answer(store, p.args.run, &document);
  if (!none) none = tfc_placement_parse((tfc_str){document.data, document.size}, "the run's placement", &placement);
  tfc_status_free(none); // a run without an answer has a page, too
  add(&p, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
          "content=\"width=device-width, initial-scale=1\">\n<title>");
  add_escaped(&p, base_name(run_text(&p, "graph")));
  add(&p, ": where each operation runs</title>\n<style>\n%s</style></head>\n<body><main>\n",
      tfc_embedded_find("page.css"));
  add_head(&p);
  add_results(&p);
  TFC_TRY(s, add_plots(&p, 1, 19));
  add_devices(&p);
  TFC_TRY(s, add_beside(&p));
  TFC_TRY(s, add_plots(&p, 20, 49));
  TFC_TRY(s, add_path(&p, placement));
  TFC_TRY(s, add_plots(&p, 50, INT_MAX));
  add_reasons(&p, placement);
  add_about(&p);
  add(&p,
      "<footer>Every figure on this page can be computed from the views of the database; the queries are beside the "
      "plots.</footer>\n</main></body></html>\n");
  if (out->failed) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
out:
  tfc_placement_free(placement);
  tfc_text_deinit(&document);
  tfc_table_deinit(&p.run);
  tfc_table_deinit(&p.results);
  tfc_table_deinit(&p.devices);
  tfc_table_deinit(&p.in_flight);
  return s;
}

tfc_status tfc_report_page(struct tfc_store *store, int64_t run_id, const char *dir) {
  struct tfc_text html = {0};
  char *path = tfc_format("%s/index.html", dir);
  tfc_status s = NULL;
  if (!path) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: the report's directory cannot be made: %s", dir, strerror(errno));
  TFC_TRY(s, tfc_report_html(store, run_id, &html));
  TFC_TRY(s, tfc_file_write(path, (tfc_str){html.data, html.size}));
out:
  tfc_text_deinit(&html);
  free(path);
  return s;
}
