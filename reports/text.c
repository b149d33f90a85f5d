// SQL queries that several reports use, and reports as plain text.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reports/ending.h"
#include "reports/lists.h"
#include "reports/reports.h"
#include "reports/summary.h"
#include "reports/tau.h"
#include "runtime/base/units.h"

const char tfc_report_sql_runs[] =
    "SELECT run_id, state, program, graph, label, started_unix_s, wall_s, step_median_us, step_count, whole_us,"
    " best_single_us, expert_us, algorithm, episodes, load_us, best_single_load_us FROM v_run ORDER BY run_id";
const char tfc_report_sql_warnings[] = "SELECT number, text FROM v_warning WHERE run_id = :run ORDER BY number";
const char tfc_report_sql_run[] = "SELECT * FROM v_run WHERE run_id = :run";
const char tfc_report_sql_run_with_tau[] =
    "SELECT v.*, t.tau AS tau_today, t.placements AS tau_today_placements FROM v_run v, (" TFC_SQL_TAU
    ") t WHERE v.run_id = :run";
// Lists the undivided machine first, then the answer, then rivals by their time, then placements that were only
// simulated. Where loads were searched they count, and not the times. Other candidates of the search are not listed.
const char tfc_report_sql_results[] =
    // An answer that was cut short at first was not in the turns that chose it.
    "SELECT r.placement_id, r.role, r.placement, r.algorithm, CASE WHEN r.state = 'cut' AND r.placement_id ="
    " v.placement_id AND EXISTS (SELECT 1 FROM v_step s WHERE s.run_id = r.run_id AND s.placement_id = r.placement_id"
    " AND s.phase = 'final') THEN 'ok' ELSE r.state END AS state, r.label, r.step_median_us, r.step_q1_us,"
    " r.step_q3_us, r.step_count, r.simulated_us, r.transfers, r.transfer_bytes, r.message,"
    " r.placement_id = v.placement_id AS is_answer, r.load_us, r.load_samples, r.load_at_once"
    " FROM v_result r JOIN v_run v USING (run_id)"
    " WHERE r.run_id = :run AND (r.role <> 'candidate' OR r.placement_id = v.placement_id)"
    " ORDER BY r.placement <> 'whole', is_answer DESC, r.state = 'modelled', v.objective = 'throughput' AND"
    " r.load_us IS NULL, CASE v.objective WHEN 'throughput' THEN r.load_us END, r.step_median_us IS NULL,"
    " r.step_median_us, r.simulated_us, r.placement";
const char tfc_report_peak_note[] = ">: of the variables alone; the tensors of the step come on top";
bool tfc_report_peak_is_part(const struct tfc_table *devices, uint32_t row) {
  return tfc_table_number(devices, row, "peak_bytes") > 0 && tfc_table_number(devices, row, "complete") == 0;
}
#define IDLE(cause) " " TFC_SQL_SHARE("idle_" cause "_us") " AS idle_" cause "_percent,"
const char tfc_report_sql_devices[] = TFC_SQL_TOOK
    "SELECT d.device_id, d.name, d.kind, d.model, d.label, d.cores, d.memory_limit_bytes,"
    " " TFC_SQL_SHARE("busy_us") " AS busy_percent," IDLE("launch") IDLE("transfer") IDLE("dependency") IDLE(
        "end") " (SELECT MAX(b.longest_launch_gap_us) FROM v_busy b WHERE b.run_id = d.run_id AND b.placement_id = "
               ":placement"
               "   AND b.device_id = d.device_id AND (b.step = :step OR :step < 0)) AS launch_gap_us,"
               " (SELECT COUNT(*) FROM took o WHERE o.device_id = d.device_id) AS operations,"
               " (SELECT m.peak_bytes FROM v_memory m WHERE m.run_id = d.run_id AND m.placement_id = :placement AND"
               "   m.device_id = d.device_id) AS peak_bytes,"
               " " TFC_SQL_PEAK_COMPLETE " AS complete,"
               " (SELECT l.load_us FROM v_load l WHERE l.run_id = d.run_id AND l.placement_id = :placement AND"
               "   l.device_id = d.device_id) AS load_us,"
               " (SELECT SUM(t.bytes) FROM v_transfer t WHERE t.run_id = d.run_id AND t.placement_id = :placement "
               "AND"
               "   t.step = :step AND t.target_id = d.device_id) AS received_bytes"
               " FROM v_device d WHERE d.run_id = :run AND d.name <> 'whole' ORDER BY d.device_id";
tfc_status tfc_report_busy_shares(struct tfc_store *store, int64_t run_id, uint32_t device_count, double *out) {
  struct tfc_query_args args;
  struct tfc_table t = {0};
  tfc_status s = NULL;
  for (uint32_t d = 0; d < device_count; d++) out[d] = (double)NAN;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  TFC_TRY(s, tfc_table_query(store,
                             "SELECT d.device_id, " TFC_SQL_SHARE("busy_us") " AS busy_percent FROM v_device d WHERE"
                                                                             " d.run_id = :run AND d.name <> 'whole'",
                             &args, &t));
  for (uint32_t r = 0; r < t.row_count; r++) {
    const int64_t d = tfc_table_cell(&t, r, 0)->integer;
    if (d >= 0 && d < device_count) out[d] = 0.01 * tfc_table_number(&t, r, "busy_percent");
  }
out:
  tfc_table_deinit(&t);
  return s;
}

// The result is also empty for an older database, whose views lack the column memory_space, so that the query fails.
tfc_str tfc_report_virtual_transfers(struct tfc_store *store, const struct tfc_query_args *args) {
  static const char sql[] = "SELECT COUNT(*) AS devices, COUNT(DISTINCT memory_space) AS spaces FROM v_device WHERE"
                            " run_id = :run AND label = 'virtual' AND name <> 'whole'";
  struct tfc_table t = {0};
  tfc_status s = tfc_table_query(store, sql, args, &t);
  double devices = s || !t.row_count ? 0 : tfc_table_number(&t, 0, "devices");
  double spaces = devices > 1 ? tfc_table_number(&t, 0, "spaces") : 0;
  tfc_status_free(s);
  tfc_table_deinit(&t);
  return spaces < 1 ? (tfc_str){0} : spaces > 1 ? TFC_STR("copy on one GPU") : TFC_STR("handed over");
}

void tfc_report_gpu_math(struct tfc_store *store, const struct tfc_query_args *args, char out[16]) {
  static const char sql[] = "SELECT MAX(math) AS math FROM v_device WHERE run_id = :run AND name <> 'whole'";
  struct tfc_table t = {0};
  tfc_status s = tfc_table_query(store, sql, args, &t);
  tfc_str math = s || !t.row_count ? (tfc_str){0} : tfc_table_text(&t, 0, "math");
  snprintf(out, 16, "%.*s", TFC_STR_ARG(math));
  tfc_status_free(s);
  tfc_table_deinit(&t);
}

// For the throughput objective, if it was measured: the median time between the ends of two steps, one after another
// and with several in flight.
const char tfc_report_sql_in_flight[] =
    "WITH s AS (SELECT placement_id, placement, phase, step_us, ROW_NUMBER() OVER (PARTITION BY placement_id, phase"
    " ORDER BY step_us) AS k, COUNT(*) OVER (PARTITION BY placement_id, phase) AS n FROM v_step WHERE run_id = :run"
    " AND phase IN ('in flight', 'one by one'))"
    " SELECT placement_id, placement, phase, n, AVG(step_us) AS apart_us FROM s WHERE k IN ((n + 1) / 2, n / 2 + 1)"
    " GROUP BY placement_id, phase ORDER BY apart_us";

static const char *show(char *buffer, double us) {
  if (us != us) return "-";
  return tfc_show_us(buffer, us);
}

// Adds a part to the lines below a run; a part that would end behind column 80 begins another line. `used`: the columns
// of the line so far, 0 before the first part.
static void add_part(struct tfc_text *out, size_t *used, const char *part) {
  static const char indent[] = "       ";
  const size_t size = strlen(part);
  const bool fits = *used && *used + 2 + size < 80; // a comma may follow
  tfc_text_printf(out, "%s%s%s", !*used ? indent : fits ? ", " : ",\n", *used && !fits ? indent : "", part);
  *used = fits ? *used + 2 + size : sizeof indent - 1 + size;
}

tfc_status tfc_report_list(struct tfc_store *store, struct tfc_text *out) {
  struct tfc_table t = {0};
  struct tfc_query_args args = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, "SELECT * FROM v_run ORDER BY run_id", &args, &t));
  if (t.row_count == 0) {
    tfc_text_printf(out, "%s holds no runs.\n", tfc_store_path(store));
    goto out;
  }
  bool written = tfc_store_being_written(store);
  tfc_text_printf(out, "%5s  %-11s %-16s %-9s %s\n", "run", "state", "started", "program", "graph");
  for (uint32_t r = 0; r < t.row_count; r++) {
    char when[32] = "", a[32], name[96], program[96], part[112];
    double started = tfc_table_number(&t, r, "started_unix_s");
    time_t seconds = started == started ? (time_t)started : 0;
    struct tm local;
    if (localtime_r(&seconds, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &local);
    tfc_str graph = tfc_table_text(&t, r, "graph"), by = tfc_table_text(&t, r, "algorithm");
    size_t slash = tfc_str_rfind(graph, '/');
    if (slash != SIZE_MAX) graph = tfc_str_sub(graph, slash + 1, SIZE_MAX);
    tfc_str state = tfc_table_text(&t, r, "state");
    // The process was killed before it could store that it was interrupted.
    if (tfc_str_is(state, "running") && !written) state = TFC_STR("interrupted");
    tfc_text_printf(out, "%5lld  %-11.*s %-16s %-9s %s\n", (long long)tfc_table_find(&t, r, "run_id")->integer,
                    TFC_STR_ARG(state), when, tfc_report_fit(program, tfc_table_text(&t, r, "program"), 10),
                    tfc_report_fit(name, graph, 34));
    // The times are on a line of their own: side by side they would not fit into 80 columns.
    static const char *const columns[] = {"load_us",  "best_single_load_us", "step_median_us",
                                          "whole_us", "best_single_us",      "expert_us"},
                             *const words[] = {"load", "single's load", "step", "whole", "single", "expert"};
    size_t used = 0;
    const bool simulated = tfc_report_is_modelled(&t, r);
    if (tfc_report_is_too_large(&t, r)) add_part(out, &used, "does not fit in memory");
    for (size_t c = 0; c < 6; c++) {
      const double us = tfc_table_number(&t, r, columns[c]);
      if (us != us) continue;
      snprintf(part, sizeof part, "%s %s%s", words[c], show(a, us), simulated ? " (simulated)" : "");
      add_part(out, &used, part);
    }
    if (by.size) {
      snprintf(part, sizeof part, "by %s", tfc_report_fit(name, by, 80 - sizeof "       by " + 1));
      add_part(out, &used, part);
    }
    if (used) tfc_text_printf(out, "\n");
  }
out:
  tfc_table_deinit(&t);
  return s;
}

bool tfc_report_idle_known(const struct tfc_table *devices, uint32_t row) {
  static const char *const causes[] = {"idle_launch_percent", "idle_transfer_percent", "idle_dependency_percent",
                                       "idle_end_percent"};
  double all = 0;
  for (size_t c = 0; c < sizeof causes / sizeof *causes; c++) all += tfc_table_number(devices, row, causes[c]);
  return all > 0 || (all == 0 && tfc_table_number(devices, row, "busy_percent") > 99.9);
}

// Prints why each device was idle; nothing, if it was recorded of none.
static void idle_causes(const struct tfc_table *devices, struct tfc_text *out) {
  bool said = false;
  char name[96], a[32];
  for (uint32_t r = 0; r < devices->row_count; r++) {
    const double gap = tfc_table_number(devices, r, "launch_gap_us");
    if (!tfc_report_idle_known(devices, r)) continue;
    if (!said)
      tfc_text_printf(out, "\n  %-10s %11s %11s %14s %12s %14s\n", "idle for", "launch", "transfer", "another device",
                      "end of step", "longest launch");
    said = true;
    tfc_text_printf(out, "  %-10s %9.1f %% %9.1f %% %12.1f %% %10.1f %% %14s\n",
                    tfc_report_fit(name, tfc_table_text(devices, r, "name"), 10),
                    tfc_table_number(devices, r, "idle_launch_percent"),
                    tfc_table_number(devices, r, "idle_transfer_percent"),
                    tfc_table_number(devices, r, "idle_dependency_percent"),
                    tfc_table_number(devices, r, "idle_end_percent"), gap == gap ? tfc_show_us(a, gap) : "-");
  }
  if (said)
    tfc_text_printf(out, "  By the clock (v_busy): time in which any tensor was arriving is \"transfer\".\n"
                         "  `gaps` divides by the last input that an operation waited for.\n");
}

// Breaks lines at spaces, at 80 columns; a longer word is cut, but not within a character.
static void add_wrapped(struct tfc_text *out, const char *indent, tfc_str whole) {
  const size_t width = 80 - strlen(indent);
  struct tfc_text shown = {0};
  char line[96];
  tfc_text_add_shown(&shown, whole);
  tfc_str text = {shown.data, shown.size};
  while (text.size) {
    const size_t end = tfc_str_find(text, '\n');
    size_t size = end < text.size ? end : text.size;
    if (size > width) {
      for (size = width; size > 0 && text.data[size] != ' '; size--) {
      }
      if (size == 0)
        for (size = width; size > 1 && ((unsigned char)text.data[size] & 0xc0) == 0x80;) size--;
    }
    snprintf(line, sizeof line, "%.*s", (int)size, text.data);
    tfc_report_plain(line);
    tfc_text_printf(out, "%s%s\n", indent, line);
    text = tfc_str_sub(text, size == end ? size + 1 : size, SIZE_MAX);
    while (text.size && text.data[0] == ' ') text = tfc_str_sub(text, 1, SIZE_MAX);
  }
  out->failed |= shown.failed;
  tfc_text_deinit(&shown);
}

// The first ones; the view has them all.
static tfc_status add_warnings(struct tfc_store *store, const struct tfc_query_args *args, struct tfc_text *out) {
  struct tfc_table t = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_warnings, args, &t));
  for (uint32_t r = 0; r < t.row_count && r < TFC_REPORT_WARNINGS; r++) {
    char *text = tfc_format("warning: %.*s", TFC_STR_ARG(tfc_table_text(&t, r, "text")));
    if (!text) TFC_TRY(s, tfc_status_no_memory(NULL));
    add_wrapped(out, "  ", tfc_str_from(text));
    free(text);
  }
  if (t.row_count > TFC_REPORT_WARNINGS)
    tfc_text_printf(out, "  and %u more warnings (view v_warning)\n", t.row_count - TFC_REPORT_WARNINGS);
out:
  tfc_table_deinit(&t);
  return s;
}

// learning: also what learning contributed; tfc-place prints that above.
static tfc_status add_ending(struct tfc_store *store, const struct tfc_query_args *args, const struct tfc_table *run,
                             bool learning, struct tfc_text *out) {
  struct tfc_text ending = {0};
  tfc_status s = tfc_report_ending(store, args, run, &ending);
  if (!s && learning) tfc_report_learning(run, &ending);
  if (!s) add_wrapped(out, "", (tfc_str){ending.data, ending.size});
  tfc_text_deinit(&ending);
  return s;
}

tfc_status tfc_report_explain(struct tfc_store *store, int64_t run_id, struct tfc_text *out) {
  struct tfc_query_args args;
  struct tfc_table run = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_run, &args, &run));
  TFC_TRY(s, add_ending(store, &args, &run, false, out));
  TFC_TRY(s, add_warnings(store, &args, out));
  TFC_TRY(s, tfc_report_summary(store, &args, out));
  if (out->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
out:
  tfc_table_deinit(&run);
  return s;
}

const char *tfc_report_load_how(double samples, bool modelled) {
  return samples > 0 ? "measured" : modelled ? "simulated" : "computed";
}

bool tfc_report_is_folded(const struct tfc_table *results, uint32_t row, bool modelled) {
  const double us = tfc_table_number(results, row, "step_median_us");
  return us != us && tfc_str_is(tfc_table_text(results, row, "state"), "modelled") &&
         (modelled || !tfc_table_text(results, row, "message").size);
}

static void add_folded(const struct tfc_table *results, bool modelled, bool loads, struct tfc_text *out) {
  struct tfc_text text = {0};
  char a[32];
  for (uint32_t r = 0; r < results->row_count; r++) {
    const double us = tfc_table_number(results, r, loads ? "load_us" : "simulated_us");
    if (us != us || !tfc_report_is_folded(results, r, modelled)) continue;
    tfc_text_printf(&text, "%s%.*s %s",
                    text.size  ? ", "
                    : modelled ? "each algorithm by itself: "
                    : loads    ? "only simulated (loads): "
                               : "only simulated: ",
                    TFC_STR_ARG(tfc_table_text(results, r, "placement")), show(a, us));
  }
  if (text.size) add_wrapped(out, "  ", (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
}

// Adds the lower bound, and how far the answer is above it. An answer that does not fit in memory is not compared: how
// far a placement that fits would be above the bound is not known.
static void add_bound(const struct tfc_table *run, double answer, bool loads, struct tfc_text *out) {
  struct tfc_text line = {0};
  char a[32];
  const double bound = tfc_table_number(run, 0, "bound_us");
  tfc_text_printf(&line, "Lower bound%s: %s (%.*s)", loads ? " of the load" : "", show(a, bound),
                  TFC_STR_ARG(tfc_table_text(run, 0, "bound_name")));
  if (tfc_report_is_too_large(run, 0))
    tfc_text_printf(&line, "; the answer does not fit in memory");
  else if (answer == answer)
    tfc_text_printf(&line, "; the answer is %.1f %% above it", 100 * (answer / bound - 1));
  add_wrapped(out, "", (tfc_str){line.data, line.size});
  tfc_text_deinit(&line);
}

// Adds the load of each device. Loads are computed from the costs of operations, even if steps in flight were measured.
static void add_loads(const struct tfc_table *devices, struct tfc_text *out) {
  struct tfc_text line = {0};
  char a[32], name[96];
  for (uint32_t r = 0; r < devices->row_count; r++) {
    const double us = tfc_table_number(devices, r, "load_us");
    if (us == us)
      tfc_text_printf(&line, "%s%s %s",
                      line.size ? ", " : "loads: ", tfc_report_fit(name, tfc_table_text(devices, r, "name"), 20),
                      tfc_show_us(a, us));
  }
  if (line.size) add_wrapped(out, "  ", (tfc_str){line.data, line.size});
  tfc_text_deinit(&line);
}

// Writes the value of the answer where loads were searched: the load of the busiest device.
static void add_load_answer(const struct tfc_table *run, double load, bool modelled, struct tfc_text *out) {
  const double at_once = tfc_table_number(run, 0, "load_at_once"), samples = tfc_table_number(run, 0, "load_samples");
  char a[32], b[32];
  if (load != load)
    tfc_text_printf(out, "Searched for the smallest load of the busiest device.\n");
  else if (samples > 0)
    tfc_text_printf(out, "Searched for the smallest load: a step ends every %s\n(measured, %.0f at once).\n",
                    show(a, load), at_once);
  else
    tfc_text_printf(out, "Searched for the smallest load of the busiest device: %s (%s).\n", show(a, load),
                    modelled ? "simulated" : "computed\nfrom measured operations");
  const double single = tfc_table_number(run, 0, "best_single_load_us");
  if (single == single) tfc_text_printf(out, "Load of the best single device: %s. ", show(b, single));
  tfc_text_printf(out, "\"step alone\": one step at a time.\n");
}

// Writes the rest of a placement's row in a run that searched for the shortest step. `answer`: the step of the answer.
static void add_step(const struct tfc_table *results, uint32_t r, double answer, bool modelled, struct tfc_text *out) {
  char a[32], b[32], c[32], spread[72] = "";
  const double median = tfc_table_number(results, r, "step_median_us"), q1 = tfc_table_number(results, r, "step_q1_us"),
               steps = tfc_table_number(results, r, "step_count");
  const tfc_str how = tfc_table_text(results, r, "state");
  const bool exact = median == median && q1 != q1; // a simulated step
  if (median == median && !exact)
    snprintf(spread, sizeof spread, "%s .. %s", show(b, q1), show(c, tfc_table_number(results, r, "step_q3_us")));
  else if (!exact)
    snprintf(spread, sizeof spread, "%.*s", (int)(how.size > 20 ? 20 : how.size), how.data);
  tfc_text_printf(out, " %9s %20s", show(a, median), spread);
  if (exact || (modelled && !steps))
    tfc_text_printf(out, "      ");
  else
    tfc_text_printf(out, " %5.0f", steps);
  if (median == median && answer == answer && answer > 0)
    tfc_text_printf(out, " %7.3fx", median / answer);
  else
    tfc_text_printf(out, " %8s", "");
  tfc_text_printf(out, " %9s\n", show(b, tfc_table_number(results, r, "simulated_us")));
  if (median == median && !tfc_str_is(how, "ok")) add_wrapped(out, "    ", how);
}

// Writes the rest of a placement's row in a run that searched for the smallest load. The load is compared with the
// answer's only if both were measured or both were computed: a computed load lacks the time that a measured step loses
// between operations.
static void add_load(const struct tfc_table *results, uint32_t r, const struct tfc_table *run, bool modelled,
                     struct tfc_text *out) {
  char a[32], b[32], ratio[24] = "", count[16] = "";
  const bool is_answer = tfc_table_number(results, r, "is_answer") == 1;
  const double answer = tfc_table_number(run, 0, "load_us"),
               load = is_answer ? answer : tfc_table_number(results, r, "load_us"),
               step = tfc_table_number(results, r, "step_median_us"),
               steps = tfc_table_number(results, r, "step_count");
  const bool measured = tfc_table_number(results, r, "load_samples") > 0,
             alike = is_answer || measured == (tfc_table_number(run, 0, "load_samples") > 0);
  const tfc_str how = tfc_table_text(results, r, "state");
  if (load == load && answer > 0 && alike) snprintf(ratio, sizeof ratio, "%.3fx", load / answer);
  if (step == step && !modelled) snprintf(count, sizeof count, "%.0f", steps);
  tfc_text_printf(out, " %10s %-10s %8s %12s %5s\n", show(a, load),
                  load == load ? tfc_report_load_how(tfc_table_number(results, r, "load_samples"), modelled) : "",
                  ratio, show(b, step), count);
  if (!tfc_str_is(how, "ok") && !tfc_str_is(how, "modelled")) add_wrapped(out, "    ", how);
}

tfc_status tfc_report_show(struct tfc_store *store, int64_t run_id, struct tfc_text *out) {
  struct tfc_query_args args;
  struct tfc_table run = {0}, results = {0}, devices = {0}, in_flight = {0};
  struct tfc_report_tau tau;
  char a[32], b[32], c[32], math[16], text[96], called[112];
  tfc_status s = NULL;
  TFC_TRY(s, tfc_report_focus(store, run_id, &args));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_run, &args, &run));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_results, &args, &results));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_devices, &args, &devices));
  TFC_TRY(s, tfc_table_query(store, tfc_report_sql_in_flight, &args, &in_flight));
  TFC_TRY(s, tfc_report_tau(store, &args, &tau));
  tfc_str state = tfc_table_text(&run, 0, "state"), label = tfc_table_text(&run, 0, "label");
  tfc_text_printf(out, "Run %lld: %s", (long long)args.run, tfc_report_fit(text, tfc_table_text(&run, 0, "graph"), 32));
  tfc_text_printf(out, ", %.*s, %s%s\n", TFC_STR_ARG(state), tfc_report_fit(text, label, 14),
                  tfc_str_is(label, "modelled") ? " (simulated)" : "");
  add_wrapped(out, "  ", tfc_table_text(&run, 0, "command"));
  add_wrapped(out, "  ", tfc_table_text(&run, 0, "message"));
  TFC_TRY(s, add_warnings(store, &args, out));
  tfc_str cpu = tfc_table_text(&run, 0, "cpu_model");
  tfc_text_printf(out, "  %s%sseed %.0f; %.0f candidates measured\n\n", tfc_report_fit(text, cpu, 36),
                  cpu.size ? "; " : "", tfc_table_number(&run, 0, "seed"), tfc_table_number(&run, 0, "episodes"));
  double answer = tfc_table_number(&run, 0, "step_median_us"), load = tfc_table_number(&run, 0, "load_us");
  const bool modelled = tfc_report_is_modelled(&run, 0);
  const bool loads = tfc_str_is(tfc_table_text(&run, 0, "objective"), "throughput");
  if (results.row_count > 0) {
    if (loads)
      tfc_text_printf(out, "  %-20s %10s %-10s %8s %12s %5s\n", "placement", "load", "", "to found", "step alone",
                      "steps");
    else
      tfc_text_printf(out, "  %-20s %9s %20s %5s %8s %9s\n",
                      *tfc_report_simulated(store, &args) ? "simulated placement" : "placement", "step", "quartiles",
                      "steps", "to found", "simulated");
    for (uint32_t r = 0; r < results.row_count; r++) {
      if (tfc_report_is_folded(&results, r, modelled)) continue;
      tfc_str name = tfc_table_text(&results, r, "placement");
      const bool is_answer = tfc_table_number(&results, r, "is_answer") == 1;
      const bool named = is_answer && !tfc_str_is(name, "answer") && name.size <= 11;
      snprintf(called, sizeof called, "%s%s", tfc_report_fit(text, name, 20), named ? " (answer)" : "");
      tfc_text_printf(out, "%s%-20s", is_answer ? "> " : "  ", called);
      if (loads)
        add_load(&results, r, &run, modelled, out);
      else
        add_step(&results, r, answer, modelled, out);
      add_wrapped(out, "    ", tfc_table_text(&results, r, "message"));
    }
    add_folded(&results, modelled, loads, out);
    tfc_text_printf(out, "\n");
  }
  if (loads) add_load_answer(&run, load, modelled, out);
  for (uint32_t r = 0; r < in_flight.row_count; r++)
    tfc_text_printf(out, "%s%s, steps %.*s: one ends every %s (%.0f times)\n",
                    r ? "  " : "How far apart steps end:\n  ",
                    tfc_report_fit(text, tfc_table_text(&in_flight, r, "placement"), 24),
                    TFC_STR_ARG(tfc_table_text(&in_flight, r, "phase")),
                    show(a, tfc_table_number(&in_flight, r, "apart_us")), tfc_table_number(&in_flight, r, "n"));
  double low = tfc_table_number(&run, 0, "speedup_low"), bound = tfc_table_number(&run, 0, "bound_us");
  const char *what = loads ? "Load against the best single device" : "Against the best single device";
  if (low == low)
    tfc_text_printf(out, "%s: %.3fx, 95 %% interval %.3f to %.3f\n", what, tfc_table_number(&run, 0, "speedup"), low,
                    tfc_table_number(&run, 0, "speedup_high"));
  else if (tfc_table_number(&run, 0, "speedup") > 0)
    tfc_text_printf(out, "%s: %.3fx (%s)\n", what, tfc_table_number(&run, 0, "speedup"),
                    modelled ? "simulated"
                    : loads  ? tfc_report_load_how(tfc_table_number(&run, 0, "load_samples"), modelled)
                             : "too few steps for an interval");
  if (bound == bound && (loads || answer > 0)) add_bound(&run, loads ? load : answer, loads, out);
  if (tau.tau == tau.tau) {
    tfc_text_printf(
        out, "Simulated against measured: Kendall's tau %.2f over %.0f placements%s\n", tau.tau, tau.placements,
        tau.without_answer ? "\n  (not the answer, which was stopped early when it was first measured)" : "");
    if (tfc_report_tau_differs(&tau, &run))
      tfc_text_printf(out, "  (v_run.tau is %.2f, by the rule of the version that measured)\n",
                      tfc_table_number(&run, 0, "tau"));
  } else if (!modelled && !loads && tau.placements > 0)
    tfc_text_printf(out,
                    "Simulated against measured: no Kendall's tau, for no two of the placements that\n"
                    "were measured (%.0f) differ by more than their spread\n",
                    tau.placements);
  TFC_TRY(s, add_ending(store, &args, &run, true, out));
  tfc_text_printf(out, "\n  %-10s %-14s %8s %10s %9s %10s %10s\n", "device", "label", "busy", "operations", "received",
                  "peak", "limit");
  bool parts = false; // of some peak only a part is known
  for (uint32_t r = 0; r < devices.row_count; r++) {
    double busy = tfc_table_number(&devices, r, "busy_percent"), peak = tfc_table_number(&devices, r, "peak_bytes"),
           limit = tfc_table_number(&devices, r, "memory_limit_bytes"),
           received = tfc_table_number(&devices, r, "received_bytes");
    const bool part = tfc_report_peak_is_part(&devices, r);
    char percent[16] = "-", held[40] = "-";
    if (peak == peak) snprintf(held, sizeof held, "%s%s", part ? ">" : "", tfc_show_bytes(b, peak));
    parts |= part;
    if (busy == busy) snprintf(percent, sizeof percent, "%.1f %%", busy);
    tfc_text_printf(
        out, "  %-10s %-14s %8s %10.0f %9s %10s %10s\n", tfc_report_fit(text, tfc_table_text(&devices, r, "name"), 10),
        tfc_report_fit(called, tfc_table_text(&devices, r, "label"), 14), percent,
        tfc_table_number(&devices, r, "operations"), received == received ? tfc_show_bytes(a, received) : "-", held,
        limit == limit ? tfc_show_bytes(c, limit) : "none");
  }
  if (parts) tfc_text_printf(out, "  %s\n", tfc_report_peak_note);
  if (loads) add_loads(&devices, out);
  tfc_str how = tfc_report_virtual_transfers(store, &args);
  if (how.size) tfc_text_printf(out, "\n  a tensor from one virtual device to another: %.*s\n", TFC_STR_ARG(how));
  tfc_report_gpu_math(store, &args, math);
  if (*math) tfc_text_printf(out, "\n  products and convolutions of float32 on GPUs: %s\n", math);
  idle_causes(&devices, out);
  TFC_TRY(s, tfc_report_summary(store, &args, out));
  if (out->failed) TFC_TRY(s, tfc_status_no_memory(NULL));
out:
  tfc_table_deinit(&run);
  tfc_table_deinit(&results);
  tfc_table_deinit(&devices);
  tfc_table_deinit(&in_flight);
  return s;
}
