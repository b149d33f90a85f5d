// The page of runs compared, with the look of a run's page: the verdict, steps with their intervals on one scale, nodes
// that moved, devices, traffic and operations. All of it comes from the tables of tfc_report_compare.
#include "reports/compare_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reports/compare.h"
#include "reports/html.h"
#include "reports/palette.h"
#include "reports/reports.h"

enum { BESIDE = 3, SCOPES = 30 }; // most runs that are side by side; most scopes that are shown of one

struct compared {
  const struct tfc_report_lists *lists;
  const struct tfc_table *runs;
  uint32_t count;
  struct tfc_text *out;
};

static long long id_of(const struct compared *c, uint32_t run) {
  return (long long)tfc_table_find(c->runs, run, "run_id")->integer;
}
static double number(const struct compared *c, uint32_t run, const char *column) {
  return tfc_table_number(c->runs, run, column);
}
static tfc_str text(const struct compared *c, uint32_t run, const char *column) {
  return tfc_table_text(c->runs, run, column);
}
static bool is_simulated(const struct compared *c, uint32_t run) { // its time is its own interval, without quartiles
  const double q1 = number(c, run, "step_q1_us"), low = number(c, run, "step_low_us");
  return q1 != q1 && low == low;
}

// --- Steps -----------------------------------------------------------------------------------------------------------

static bool has_loads(const struct compared *c, uint32_t run) {
  return tfc_str_is(text(c, run, "objective"), "throughput");
}
static bool other_graph(const struct compared *c, uint32_t run) {
  return tfc_str_is(text(c, run, "verdict"), "other graph");
}

static const char *words_of(tfc_str verdict, bool noiseless) {
  return noiseless && tfc_str_is(verdict, "slower")   ? "slower; both are simulated, which has no noise"
         : noiseless && tfc_str_is(verdict, "faster") ? "faster; both are simulated, which has no noise"
         : tfc_str_is(verdict, "slower")              ? "slower, by more than the noise"
         : tfc_str_is(verdict, "faster")              ? "faster, by more than the noise"
         : tfc_str_is(verdict, "noise")               ? "the difference is noise, because the 95&nbsp;% intervals meet"
         : tfc_str_is(verdict, "equal")               ? "they are equal"
         : tfc_str_is(verdict, "unlike") ? "one was simulated, the other measured, so neither is called faster"
                                         : "whether that is noise is not known, because a run has too few steps";
}

// What both runs searched for, if it is loads; or that they searched for different things.
static void add_objectives(const struct compared *c, uint32_t i) {
  char a[32], b[32];
  const double load = number(c, i, "load_us"), first = number(c, 0, "load_us"), ratio = number(c, i, "load_ratio");
  const tfc_str how = text(c, i, "load_how"), how_first = text(c, 0, "load_how");
  if (has_loads(c, i) != has_loads(c, 0))
    tfc_text_printf(c->out,
                    "Run %lld searched for the smallest load of the busiest device, run %lld for the shortest step: "
                    "only steps that ran one at a time compare. ",
                    has_loads(c, i) ? id_of(c, i) : id_of(c, 0), has_loads(c, i) ? id_of(c, 0) : id_of(c, i));
  else if (has_loads(c, i) && ratio == ratio)
    tfc_text_printf(c->out, "The load of run %lld, %.*s, is <strong>%s</strong>, %.2f times the %s of run %lld. ",
                    id_of(c, i), TFC_STR_ARG(how), tfc_html_us(a, load), ratio, tfc_html_us(b, first), id_of(c, 0));
  else if (has_loads(c, i) && load == load && first == first)
    tfc_text_printf(c->out,
                    "The load of run %lld is <strong>%s</strong>, %.*s; the %s of run %lld are %.*s: they do not "
                    "compare. ",
                    id_of(c, i), tfc_html_us(a, load), TFC_STR_ARG(how), tfc_html_us(b, first), id_of(c, 0),
                    TFC_STR_ARG(how_first));
}

static void add_verdicts(const struct compared *c) {
  char a[32], b[32];
  const double first = number(c, 0, "step_median_us");
  for (uint32_t i = 1; i < c->count; i++) {
    const double here = number(c, i, "step_median_us");
    tfc_text_printf(c->out, "<p class=\"verdict\">");
    if (other_graph(c, i)) {
      tfc_text_printf(c->out, "Run %lld is of another graph than run %lld: their times do not compare.</p>\n",
                      id_of(c, i), id_of(c, 0));
      continue;
    }
    add_objectives(c, i);
    if (here == here && first > 0)
      tfc_text_printf(c->out, "%s of run %lld takes <strong>%s</strong>, %.2f times the %s of run %lld: %s.",
                      has_loads(c, i) || has_loads(c, 0) ? "One step alone" : "A step", id_of(c, i),
                      tfc_html_us(a, here), here / first, tfc_html_us(b, first), id_of(c, 0),
                      words_of(text(c, i, "verdict"), is_simulated(c, i) && is_simulated(c, 0)));
    else
      tfc_text_printf(c->out, "Run %lld has no answer to compare.", here == here ? id_of(c, 0) : id_of(c, i));
    tfc_text_printf(c->out, "</p>\n");
  }
}

// Finds the ends of the scale on which the steps of all runs are drawn.
static void scale_of(const struct compared *c, double *out_low, double *out_high) {
  static const char *const columns[] = {"step_median_us", "step_q1_us", "step_q3_us", "step_low_us", "step_high_us"};
  double low = INFINITY, high = 0;
  for (uint32_t i = 0; i < c->count; i++)
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
      const double us = number(c, i, columns[k]);
      if (us == us) low = fmin(low, us), high = fmax(high, us);
    }
  const double room = high > low ? 0.08 * (high - low) : 0.1 * high;
  *out_low = isfinite(low) ? fmax(low - room, 0) : 0;
  *out_high = high + room;
}
static void add_mark(const struct compared *c, const char *class, double from, double to, double low, double high) {
  if (from == from && to == to && high > low)
    tfc_text_printf(c->out, "<i class=\"%s\" style=\"left:%.2f%%;width:%.2f%%\"></i>", class,
                    100 * (from - low) / (high - low), 100 * (to - from) / (high - low));
}
static void add_range(const struct compared *c, double from, double to, const char *label) {
  char a[32], b[32];
  tfc_text_printf(c->out, "<td class=\"n\" data-l=\"%s\">", label);
  if (from == from && to == to)
    tfc_text_printf(c->out, "%s – %s</td>", tfc_html_us(a, from), tfc_html_us(b, to));
  else
    tfc_text_printf(c->out, "–</td>");
}

// Adds the ratio of a row's time to that of the first run, and the verdict.
static void add_ratio(const struct compared *c, const struct tfc_table *t, uint32_t row) {
  const double ratio = tfc_table_number(t, row, "ratio");
  const tfc_str verdict = tfc_table_text(t, row, "verdict");
  tfc_text_printf(c->out, "<td class=\"n\" data-l=\"times run %lld\">", id_of(c, 0));
  if (ratio == ratio) tfc_text_printf(c->out, "%.3f", ratio);
  tfc_text_printf(c->out, "</td><td>");
  if (verdict.size) tfc_text_printf(c->out, "<span class=\"tag\">%.*s</span>", TFC_STR_ARG(verdict));
  tfc_text_printf(c->out, "</td>");
}

static void add_steps(const struct compared *c) {
  char a[32], b[32];
  double low, high;
  scale_of(c, &low, &high);
  tfc_text_printf(
      c->out,
      "<section id=\"steps\"><h2>Steps</h2>\n<p class=\"caption\">Median of the steps that measure each "
      "run's answer. In the picture, from %s to %s: the median (line), its 95&nbsp;%% interval by order "
      "statistics (thin bar) and the quartiles of the steps (thick bar). Where two intervals meet, the difference is "
      "noise; fewer than six steps have none.</p>\n<div class=\"scroll\"><table class=\"stack\"><thead><tr>"
      "<th>run</th><th class=\"n\">step</th><th class=\"wide\">%s to %s</th><th class=\"n\">95&nbsp;%% "
      "interval</th><th class=\"n\">quartiles</th><th class=\"n\">steps</th><th class=\"n\">times run "
      "%lld</th><th></th></tr></thead><tbody>\n",
      tfc_html_us(a, low), tfc_html_us(b, high), a, b, id_of(c, 0));
  for (uint32_t i = 0; i < c->count; i++) {
    const double us = number(c, i, "step_median_us"), q1 = number(c, i, "step_q1_us"), q3 = number(c, i, "step_q3_us"),
                 from = number(c, i, "step_low_us"), to = number(c, i, "step_high_us"),
                 steps = number(c, i, "step_count");
    const bool simulated = is_simulated(c, i);
    tfc_text_printf(c->out, "<tr><td>run %lld</td><td class=\"n\" data-l=\"step\">%s%s</td><td class=\"range\"><div>",
                    id_of(c, i), tfc_html_us(a, us), simulated ? " (simulated)" : "");
    add_mark(c, "quartiles", q1, q3, low, high);
    if (!simulated) add_mark(c, "interval", from, to, low, high);
    add_mark(c, "median", us, us, low, high);
    tfc_text_printf(c->out, "</div></td>");
    add_range(c, simulated ? (double)NAN : from, to, "95&nbsp;% interval");
    add_range(c, q1, q3, "quartiles");
    tfc_text_printf(c->out, "<td class=\"n\" data-l=\"steps\">");
    if (steps > 0) tfc_text_printf(c->out, "%.0f", steps);
    tfc_text_printf(c->out, "</td>");
    add_ratio(c, c->runs, i);
    tfc_text_printf(c->out, "</tr>\n");
  }
  tfc_text_printf(c->out, "</tbody></table></div>\n");
}

// --- Tables with a column or a row for each run ----------------------------------------------------------------------

struct value { // a column of a table that every run has; its name ends with its unit
  const char *column, *label;
};
static bool is_time(const struct value *v) {
  return tfc_str_ends(tfc_str_from(v->column), "_us");
}
static const char *class_of(const struct value *v) {
  return is_time(v) ? " class=\"n\"" : "";
}

static void add_value(const struct compared *c, const struct tfc_table *t, int64_t row, const char *column) {
  const tfc_str name = tfc_str_from(column);
  const double value = row < 0 ? (double)NAN : tfc_table_number(t, (uint32_t)row, column);
  char shown[32];
  if (row >= 0 && tfc_str_is(name, "peak_bytes") && tfc_report_peak_is_part(t, (uint32_t)row))
    tfc_text_printf(c->out, "&gt;");
  if (value != value)
    tfc_text_printf(c->out, "–");
  else if (tfc_str_ends(name, "_us"))
    tfc_text_printf(c->out, "%s", tfc_html_us(shown, value));
  else if (tfc_str_ends(name, "bytes"))
    tfc_text_printf(c->out, "%s", tfc_html_bytes(shown, value));
  else if (tfc_str_ends(name, "percent"))
    tfc_text_printf(c->out, "%.0f %%", value);
  else
    tfc_text_printf(c->out, "%.0f", value);
}

static bool same_key(const struct tfc_table *t, uint32_t a, uint32_t b, const char *const keys[2]) {
  return tfc_str_equal(tfc_table_text(t, a, keys[0]), tfc_table_text(t, b, keys[0])) &&
         (!keys[1] || tfc_str_equal(tfc_table_text(t, a, keys[1]), tfc_table_text(t, b, keys[1])));
}
// Returns the row of a run that has the key of row `of`; -1: there is none.
static int64_t row_of(const struct compared *c, const struct tfc_table *t, uint32_t of, uint32_t run,
                      const char *const keys[2]) {
  for (uint32_t r = 0; r < t->row_count; r++)
    if (tfc_table_find(t, r, "run_id")->integer == id_of(c, run) && same_key(t, r, of, keys)) return r;
  return -1;
}
static void add_key(const struct compared *c, const struct tfc_table *t, uint32_t row, const char *const keys[2]) {
  for (int k = 0; k < 2 && keys[k]; k++) {
    const tfc_str name = tfc_table_text(t, row, keys[k]);
    tfc_text_printf(c->out, "%s<i class=\"key d%u\"></i>", k ? " → " : "", tfc_palette_device(name));
    tfc_html_escape(c->out, name);
  }
}

// Whether a time of a run compares with the first run's: not between graphs, and of loads only those that were got in
// the same way.
static bool compares(const struct compared *c, uint32_t run, const char *column) {
  const bool load = strcmp(column, "load_us") == 0 || strcmp(column, "best_single_load_us") == 0;
  return !other_graph(c, run) && (!load || tfc_str_equal(text(c, run, "load_how"), text(c, 0, "load_how")));
}

// Adds a table with a row for each run. A time is followed by its ratio to that of the first run.
static void add_rows(const struct compared *c, const struct value *columns, size_t count) {
  tfc_text_printf(c->out, "<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>run</th>");
  for (size_t k = 0; k < count; k++) tfc_text_printf(c->out, "<th%s>%s</th>", class_of(&columns[k]), columns[k].label);
  tfc_text_printf(c->out, "</tr></thead><tbody>\n");
  for (uint32_t i = 0; i < c->count; i++) {
    tfc_text_printf(c->out, "<tr><td>run %lld</td>", id_of(c, i));
    for (size_t k = 0; k < count; k++) {
      tfc_text_printf(c->out, "<td%s data-l=\"%s\">", class_of(&columns[k]), columns[k].label);
      if (is_time(&columns[k])) {
        const double us = number(c, i, columns[k].column), first = number(c, 0, columns[k].column);
        add_value(c, c->runs, i, columns[k].column);
        if (i && us == us && first > 0 && compares(c, i, columns[k].column))
          tfc_text_printf(c->out, " <span class=\"note\">× %.3f</span>", us / first);
      } else {
        tfc_html_escape(c->out, text(c, i, columns[k].column));
      }
      tfc_text_printf(c->out, "</td>");
    }
    tfc_text_printf(c->out, "</tr>\n");
  }
  tfc_text_printf(c->out, "</tbody></table></div>\n");
}

// Adds a table with a row for each key (a device, or a pair of them); the runs are side by side, or below each other.
static void add_matrix(const struct compared *c, const struct tfc_table *t, const char *const keys[2], const char *head,
                       const struct value *values, size_t value_count) {
  const bool beside = c->count <= BESIDE;
  tfc_text_printf(c->out, "<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>%s</th>", head);
  if (!beside) tfc_text_printf(c->out, "<th>run</th>");
  for (size_t v = 0; v < value_count; v++)
    for (uint32_t i = 0; i < (beside ? c->count : 1); i++) {
      tfc_text_printf(c->out, "<th class=\"n\">%s", values[v].label);
      if (beside) tfc_text_printf(c->out, "<br>run %lld", id_of(c, i));
      tfc_text_printf(c->out, "</th>");
    }
  tfc_text_printf(c->out, "</tr></thead><tbody>\n");
  for (uint32_t r = 0; r < t->row_count; r++) {
    uint32_t first = 0;
    while (first < r && !same_key(t, first, r, keys)) first++;
    if (first < r) continue; // has had its rows
    for (uint32_t i = 0; i < (beside ? 1 : c->count); i++) {
      tfc_text_printf(c->out, "<tr><td>");
      add_key(c, t, r, keys);
      tfc_text_printf(c->out, "</td>");
      if (!beside) tfc_text_printf(c->out, "<td data-l=\"\">run %lld</td>", id_of(c, i));
      for (size_t v = 0; v < value_count; v++)
        for (uint32_t k = beside ? 0 : i; k < (beside ? c->count : i + 1); k++) {
          tfc_text_printf(c->out, "<td class=\"n\" data-l=\"%s", values[v].label);
          if (beside) tfc_text_printf(c->out, ", run %lld", id_of(c, k));
          tfc_text_printf(c->out, "\">");
          add_value(c, t, row_of(c, t, r, k, keys), values[v].column);
          tfc_text_printf(c->out, "</td>");
        }
      tfc_text_printf(c->out, "</tr>\n");
    }
  }
  tfc_text_printf(c->out, "</tbody></table></div>\n");
}

// What runs that searched for loads found.
static void add_load_rows(const struct compared *c) {
  static const struct value columns[] = {{"load_us", "load of the busiest device"},
                                         {"load_how", "which is"},
                                         {"best_single_load_us", "of the best single device"},
                                         {"load_bound_us", "lower bound of the load"}};
  bool any = false;
  for (uint32_t i = 0; i < c->count; i++) any |= has_loads(c, i);
  if (!any) return;
  tfc_text_printf(c->out,
                  "<h3>Loads</h3>\n<p class=\"caption\">What runs for throughput searched for: the time that the "
                  "busiest device needs for a step, or, where it was measured, from the end of one step to that "
                  "of the next.</p>\n");
  add_rows(c, columns, sizeof columns / sizeof *columns);
}

// Runs are not measured in turns. What did not change between them (one device, the undivided machine) shows what the
// machine did meanwhile.
static void add_yardsticks(const struct compared *c) {
  static const struct value all[] = {{"whole_us", "undivided machine"},
                                     {"best_single_us", "best single device"},
                                     {"expert_us", "expert's placement"},
                                     {"step_bound_us", "lower bound"},
                                     {"step_simulated_us", "step as simulated"}};
  bool measured = false;
  for (uint32_t i = 0; i < c->count; i++) measured |= !is_simulated(c, i);
  struct value shown[sizeof all / sizeof *all];
  size_t count = 0;
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    bool known = false;
    for (uint32_t i = 0; i < c->count; i++) known |= isfinite(number(c, i, all[k].column));
    if (known) shown[count++] = all[k];
  }
  if (count) {
    tfc_text_printf(c->out, "<h3>What else they measured and computed</h3>\n<p class=\"caption\">%s</p>\n",
                    measured
                        ? "Runs are not measured in turns: where the undivided machine or one device became slower "
                          "too, the machine did."
                        : "All of it is simulated.");
    add_rows(c, shown, count);
  }
  tfc_text_printf(c->out, "</section>\n");
}

// --- Placement, devices, traffic -------------------------------------------------------------------------------------

static void add_moved(const struct compared *c) {
  const struct tfc_table *t = &c->lists->tables[TFC_COMPARE_MOVED];
  static const char *const ends[] = {"source", "target"};
  double most = 0;
  for (uint32_t r = 0; r < t->row_count; r++) most = fmax(most, tfc_table_number(t, r, "nodes"));
  tfc_text_printf(
      c->out,
      "<section id=\"placement\"><h2>Placement</h2>\n<p class=\"caption\">Nodes that both runs have and that "
      "are on another device than in run %lld, by scope (the first two parts of their names).</p>\n",
      id_of(c, 0));
  for (uint32_t i = 1; i < c->count; i++) {
    uint32_t shown = 0, all = 0;
    const double moved = number(c, i, "moved_nodes");
    if (!(moved > 0)) {
      tfc_text_printf(c->out, "<p>Run %lld: no node that both have is on another device.</p>\n", id_of(c, i));
      continue;
    }
    tfc_text_printf(
        c->out,
        "<h3>Run %lld: %.0f nodes moved</h3>\n<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>"
        "scope</th><th>from, to</th><th class=\"n\">nodes</th><th class=\"wide\"></th></tr></thead><tbody>\n",
        id_of(c, i), moved);
    for (uint32_t r = 0; r < t->row_count; r++) {
      if (tfc_table_find(t, r, "run_id")->integer != id_of(c, i) || all++ >= SCOPES) continue;
      const double nodes = tfc_table_number(t, r, "nodes");
      tfc_text_printf(c->out, "<tr><td class=\"name\">");
      tfc_html_escape(c->out, tfc_table_text(t, r, "scope"));
      tfc_text_printf(c->out, "</td><td data-l=\"\">");
      add_key(c, t, r, ends);
      tfc_text_printf(c->out,
                      "</td><td class=\"n\" data-l=\"nodes\">%.0f</td><td class=\"wide\"><span class=\"bar\" "
                      "style=\"width:%.1f%%\"></span></td></tr>\n",
                      nodes, 100 * nodes / most);
      shown++;
    }
    tfc_text_printf(c->out, "</tbody></table></div>\n");
    if (all > shown) tfc_text_printf(c->out, "<p class=\"note\">and %u more: --json has all.</p>\n", all - shown);
  }
  tfc_text_printf(c->out, "</section>\n");
}

static void add_devices(const struct compared *c) {
  static const struct value values[] = {
      {"busy_percent", "busy"}, {"peak_bytes", "peak memory"}, {"limit_bytes", "limit"}, {"nodes", "nodes"}};
  static const char *const keys[] = {"device", NULL};
  const struct tfc_table *t = &c->lists->tables[TFC_COMPARE_DEVICES];
  const size_t limit = 2; // left out where no device has one
  struct value shown[4];
  size_t count = 0;
  bool limited = false, parts = false;
  for (uint32_t r = 0; r < t->row_count; r++) {
    const double bytes = tfc_table_number(t, r, "limit_bytes");
    limited |= bytes == bytes, parts |= tfc_report_peak_is_part(t, r);
  }
  for (size_t v = 0; v < sizeof values / sizeof *values; v++)
    if (v != limit || limited) shown[count++] = values[v];
  tfc_text_printf(c->out,
                  "<section id=\"devices\"><h2>Devices and memory</h2>\n<p class=\"caption\">Under each run's answer: "
                  "the share of its representative step (the traced one nearest to the median) in which a device was "
                  "busy, the most memory that it held%s, and how many nodes are placed on it.</p>\n",
                  limited ? "" : " (none has a limit)");
  add_matrix(c, t, keys, "device", shown, count);
  if (parts) {
    tfc_text_printf(c->out, "<p class=\"note\">");
    tfc_html_escape(c->out, tfc_str_from(tfc_report_peak_note));
    tfc_text_printf(c->out, ".</p>\n");
  }
  tfc_text_printf(c->out, "</section>\n");
}

static void add_traffic(const struct compared *c) {
  static const struct value values[] = {{"bytes", "bytes"}, {"number", "tensors"}, {"time_us", "took"}};
  static const char *const keys[] = {"source", "target"};
  const struct tfc_table *t = &c->lists->tables[TFC_COMPARE_TRAFFIC];
  tfc_text_printf(c->out,
                  "<section id=\"traffic\"><h2>Traffic</h2>\n<p class=\"caption\">What moved between devices in "
                  "each run's representative step:");
  for (uint32_t i = 0; i < c->count; i++) {
    tfc_text_printf(c->out, "%s run %lld: ", i ? "," : "", id_of(c, i));
    add_value(c, c->runs, i, "transfer_bytes");
  }
  tfc_text_printf(c->out, " altogether.</p>\n");
  if (t->row_count)
    add_matrix(c, t, keys, "from, to", values, sizeof values / sizeof *values);
  else
    tfc_text_printf(c->out, "<p>Nothing moved in any of them, or no step was traced.</p>\n");
  tfc_text_printf(c->out, "</section>\n");
}

// --- Operations ------------------------------------------------------------------------------------------------------

// Of two runs: a type's difference as a bar to the left (faster) or to the right (slower).
static void add_difference(const struct compared *c, double first, double here, double most, tfc_str verdict) {
  const double change = here - first, width = most > 0 ? 50 * fabs(change) / most : 0;
  const bool clear = tfc_str_is(verdict, "slower") || tfc_str_is(verdict, "faster");
  char a[32];
  tfc_text_printf(c->out, "<td class=\"n\" data-l=\"difference\">");
  if (change == change) tfc_text_printf(c->out, "%s%s", change < 0 ? "−" : "+", tfc_html_us(a, fabs(change)));
  tfc_text_printf(c->out, "</td><td class=\"range\"><div>");
  if (width > 0)
    tfc_text_printf(c->out, "<i class=\"%s\" style=\"left:%.2f%%;width:%.2f%%\"></i>", clear ? "interval" : "quartiles",
                    change < 0 ? 50 - width : 50, width);
  tfc_text_printf(c->out, "<i class=\"median\" style=\"left:50%%;width:0\"></i></div></td>");
}

static void add_operations(const struct compared *c) {
  const struct tfc_table *t = &c->lists->tables[TFC_COMPARE_OPERATIONS];
  const bool two = c->count == 2;
  double most = 0;
  char a[32], b[32];
  const bool differs = two && other_graph(c, 1), noiseless = two && is_simulated(c, 0) && is_simulated(c, 1);
  for (uint32_t r = 0; two && !differs && r + 1 < t->row_count; r += 2) {
    const double change = fabs(tfc_table_number(t, r + 1, "time_us") - tfc_table_number(t, r, "time_us"));
    if (change == change) most = fmax(most, change);
  }
  tfc_text_printf(c->out,
                  "<section id=\"operations\"><h2>Operations</h2>\n<p class=\"caption\">Time of a step by type of "
                  "operation, on all devices: the median over the traced steps of their sums in each. %s</p>\n",
                  !t->row_count ? ""
                  : differs     ? ""
                  : noiseless   ? "The bars are differences, to the left where the second run is faster."
                  : two         ? "The bars are differences, to the left where the second run is faster; thick ones "
                                  "are within the noise of the two medians."
                                : "Beside each: whether it differs from the first run by more than the noise.");
  if (!t->row_count) tfc_text_printf(c->out, "<p>No operations were timed.</p>\n");
  tfc_text_printf(c->out, "<div class=\"scroll\"><table class=\"stack\"><thead><tr><th>type</th>");
  for (uint32_t i = 0; i < c->count; i++) tfc_text_printf(c->out, "<th class=\"n\">run %lld</th>", id_of(c, i));
  if (two)
    tfc_text_printf(c->out,
                    "<th class=\"n\">difference</th><th class=\"wide\">−%s to +%s</th><th class=\"n\">times run "
                    "%lld</th><th></th>",
                    tfc_html_us(a, most), tfc_html_us(b, most), id_of(c, 0));
  tfc_text_printf(c->out, "</tr></thead><tbody>\n");
  for (uint32_t r = 0; r + c->count <= t->row_count; r += c->count) {
    const tfc_str op = tfc_table_text(t, r, "op");
    tfc_text_printf(c->out, "<tr><td><i class=\"key f%u\"></i>", tfc_palette_family(op));
    tfc_html_escape(c->out, op.size ? op : TFC_STR("operations"));
    tfc_text_printf(c->out, "</td>");
    for (uint32_t i = 0; i < c->count; i++) {
      const tfc_str verdict = tfc_table_text(t, r + i, "verdict");
      tfc_text_printf(c->out, "<td class=\"n\" data-l=\"run %lld\">%s", id_of(c, i),
                      tfc_html_us(a, tfc_table_number(t, r + i, "time_us")));
      if (!two && verdict.size) tfc_text_printf(c->out, " <span class=\"note\">%.*s</span>", TFC_STR_ARG(verdict));
      tfc_text_printf(c->out, "</td>");
    }
    if (two) {
      const tfc_str verdict = tfc_table_text(t, r + 1, "verdict");
      add_difference(c, differs ? (double)NAN : tfc_table_number(t, r, "time_us"),
                     tfc_table_number(t, r + 1, "time_us"), most, verdict);
      add_ratio(c, t, r + 1);
    }
    tfc_text_printf(c->out, "</tr>\n");
  }
  tfc_text_printf(c->out, "</tbody></table></div></section>\n");
}

// --- The page --------------------------------------------------------------------------------------------------------

static void add_runs(const struct compared *c, bool is_copy) {
  static const struct value columns[] = {
      {"graph", "graph"},        {"label", "times are"}, {"objective", "searched for"},
      {"algorithm", "found by"}, {"state", "state"},     {"cpu_model", "processor"}};
  tfc_text_printf(c->out, "<section id=\"runs\"><h2>What was compared</h2>\n");
  add_rows(c, columns, sizeof columns / sizeof *columns);
  tfc_report_compare_queries(is_copy, c->out);
  tfc_text_printf(c->out, "</section>\n");
}

tfc_status tfc_report_compare_page(const struct tfc_report_lists *lists, const char *database, bool is_copy,
                                   const char *dir) {
  struct tfc_text html = {0};
  const struct compared c = {lists, &lists->tables[TFC_COMPARE_RUNS], lists->tables[TFC_COMPARE_RUNS].row_count, &html};
  tfc_html_begin(&html, TFC_STR("Runs compared"), false);
  tfc_text_printf(&html, "<header><h1>Runs compared</h1>\n<p>");
  for (uint32_t i = 0; i < c.count; i++)
    tfc_text_printf(&html, "%s%lld", !i ? "Runs " : i + 1 < c.count ? ", " : " and ", id_of(&c, i));
  tfc_text_printf(&html, " of ");
  tfc_html_escape(&html, tfc_str_from(database));
  tfc_text_printf(&html, ", against run %lld.</p></header>\n", id_of(&c, 0));
  add_verdicts(&c);
  add_steps(&c);
  add_load_rows(&c);
  add_yardsticks(&c);
  add_moved(&c);
  add_devices(&c);
  add_traffic(&c);
  add_operations(&c);
  add_runs(&c, is_copy);
  tfc_html_end(&html, false);
  tfc_status s = tfc_html_write(&html, dir);
  tfc_text_deinit(&html);
  return s;
}
