// Compares reports with the database from which they are made: computes figures of the page again from the documented
// views, with queries of the tests' own.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "profiler/activity.h"
#include "profiler/statistics.h"
#include "profiler/store_rows.h"
#include "reports/reports.h"
#include "reports/tau.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"
#include "tests/common/change.h"
#include "tests/common/folder.h"
#include "tests/common/sample_run.h"
#include "tests/reports/by_hand.h"
#include "tests/reports/gnuplot.h"
#include "tests/reports/html.h"

static char folder[64], path[96];
static struct sample_run sample;
static struct tfc_store *store;
static struct tfc_text html;

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "report")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  tfc_status s = sample_run_write(path, 1, &sample);
  if (!s) s = tfc_store_open(path, &(struct tfc_store_options){0}, &store);
  if (!s) s = tfc_report_html(store, sample.run_id, &html);
  if (s) fprintf(stderr, "%s\n", tfc_status_message(s));
  return s ? -1 : 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_text_deinit(&html);
  tfc_store_close(store);
  return test_folder_remove(folder);
}

// Copies the database, changes the copy, and opens it.
static struct tfc_store *open_changed(const char *name, const char *sql) {
  char copy[128], command[256];
  struct tfc_store *changed = NULL;
  snprintf(copy, sizeof copy, "%s/%s.db", folder, name);
  snprintf(command, sizeof command, "cp %s %s", path, copy);
  assert_int_equal(system(command), 0);
  change_database(copy, sql);
  assert_ok(tfc_store_open(copy, &(struct tfc_store_options){.write = true}, &changed));
  return changed;
}

static double number(const char *sql) { // the number in the first row and column
  sqlite3 *db = NULL;
  sqlite3_stmt *statement = NULL;
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
  double value = sqlite3_column_double(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

static void assert_on_page(const char *text) {
  if (!strstr(html.data, text)) fail_msg("not on the page: %s", text);
}

// Figure 1: the speed-up against the best single device, from the steps themselves.
static void test_speedup_from_steps(void **state) {
  (void)state;
  static const char median[] =
      "WITH s AS (SELECT step_us, ROW_NUMBER() OVER (ORDER BY step_us) AS i, COUNT(*) OVER () AS n FROM v_step WHERE"
      " placement = '%s' AND phase = 'final') SELECT step_us FROM s WHERE i = n / 2 + 1";
  char sql[512], text[64];
  snprintf(sql, sizeof sql, median, "answer");
  double answer = number(sql);
  snprintf(sql, sizeof sql, median, "single:cpu:0");
  double single = number(sql);
  assert_true(fabs(answer - sample.answer_us) < 0.01);
  snprintf(text, sizeof text, "<b>%.2f×</b><span>against the best single device", single / answer);
  assert_on_page(text);
}

// Figure 2: the share of the time that a device was busy.
static void test_busy_from_operations(void **state) {
  (void)state;
  struct tfc_query_args args;
  char sql[512];
  assert_ok(tfc_report_focus(store, sample.run_id, &args));
  snprintf(sql, sizeof sql,
           "SELECT 100 * SUM(duration_us) / (SELECT step_us FROM v_step WHERE placement = 'answer' AND step = %lld)"
           " FROM v_op WHERE placement = 'answer' AND device = 'cpu:2' AND step = %lld",
           (long long)args.step, (long long)args.step);
  double percent = number(sql);
  char text[64];
  const char *row = strstr(html.data, "<td>cpu:2</td>");
  assert_non_null(row);
  snprintf(text, sizeof text, "data-l=\"busy\">%.0f %%</td>", percent);
  const char *found = strstr(row, text);
  assert_true(found && found - row < 300);
}

// Figure 3: the bytes that a step moves, from its transfers.
static void test_bytes_from_transfers(void **state) {
  (void)state;
  double bytes = number("SELECT SUM(bytes) FROM v_transfer WHERE placement = 'answer' AND step = 0");
  char text[64], shown[32];
  assert_true(bytes == (double)sample.transfer_bytes);
  const char *row = strstr(html.data, "<tr class=\"answer\">");
  assert_non_null(row);
  snprintf(text, sizeof text, "data-l=\"moved\">%s</td>", tfc_show_bytes(shown, bytes));
  const char *found = strstr(row, text);
  assert_true(found && found < strstr(row, "</tr>"));
}

// The numbers that plots are drawn from are those of the views: the bar of MatMul ends at what they took in the step.
static void test_plot_data(void **state) {
  (void)state;
  struct tfc_query_args args;
  struct tfc_plot plot = {0};
  char text[64];
  assert_ok(tfc_report_focus(store, sample.run_id, &args));
  assert_ok(
      tfc_plots_draw(store, (const char *const[]){"cost_by_op"}, 1, &args, (struct tfc_plot_scale){1e-3, "ms"}, &plot));
  char sql[256];
  snprintf(sql, sizeof sql,
           "SELECT SUM(duration_us) FROM v_op WHERE placement = 'answer' AND op = 'MatMul' AND step = %lld",
           (long long)args.step);
  double sum = number(sql);
  double count = number("SELECT COUNT(*) FROM v_op_total WHERE placement = 'answer' AND op = 'MatMul'");
  snprintf(text, sizeof text, "%.3g ms, %.0f", sum * 1e-3, count);
  assert_non_null(plot.svg.data);
  assert_non_null(strstr(plot.svg.data, text));
  tfc_plot_deinit(&plot);
}

// A database may come from a stranger, and its names of nodes, types and devices go into gnuplot's input, where text
// between backticks is a command. gnuplot runs none of them, and gets long names cut.
static void test_names_in_plots(void **state) {
  (void)state;
  struct tfc_query_args args;
  char sql[1024], file[96];
  snprintf(file, sizeof file, "%s/made", folder);
  snprintf(sql, sizeof sql,
           "UPDATE node SET op = '`touch${IFS}%s`' WHERE op = 'MatMul'; "
           "UPDATE node SET name = '`touch ' || '%s`' WHERE node_id = 1; "
           "UPDATE device SET name = '`touch %s`' WHERE device_id = 0; "
           "UPDATE node SET op = replace(hex(zeroblob(100000)), '0', 'x') WHERE node_id = 2",
           file, file, file);
  struct tfc_store *other = open_changed("names", sql);
  assert_ok(tfc_report_focus(other, sample.run_id, &args));
  static const char *const names[] = {"cost_by_op", "cost_by_scope", "utilisation", "roofline", "memory"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct tfc_plot plot = {0};
    assert_ok(tfc_plots_draw(other, &names[i], 1, &args, (struct tfc_plot_scale){1e-3, "ms"}, &plot));
    if (!plot.svg.size && !plot.left_out) fail_msg("no picture of %s: %s", names[i], plot.note.data);
    if (i == 0 && !strstr(plot.svg.data, "made'")) fail_msg("the type is not in the picture");
    assert_int_equal(access(file, F_OK), -1);
    assert_true(plot.svg.size < 1000000);
    tfc_plot_deinit(&plot);
  }
  tfc_store_close(other);
}

static void test_all_plots_are_drawn(void **state) {
  (void)state;
  size_t wide = 0, narrow = 0;
  for (const char *p = html.data; (p = strstr(p, "<figure class=\"wide\"><svg")) != NULL; p++) wide++;
  for (const char *p = html.data; (p = strstr(p, "<figure class=\"narrow\"><svg")) != NULL; p++) narrow++;
  assert_int_equal(wide, 10);
  assert_int_equal(narrow, 10);
  assert_null(strstr(html.data, "gnuplot failed"));
}

// The curve of the answer's steps is labelled with its median, which is computed from the steps themselves.
static void test_spread(void **state) {
  (void)state;
  struct tfc_query_args args;
  struct tfc_plot plot = {0};
  char text[64];
  double middle = number("WITH s AS (SELECT step_us, ROW_NUMBER() OVER (ORDER BY step_us) AS i, COUNT(*) OVER () AS n"
                         " FROM v_step WHERE placement = 'answer' AND phase = 'final')"
                         " SELECT AVG(step_us) FROM s WHERE 2 * i BETWEEN n AND n + 2");
  // Of an even number of steps it is between the two in the middle.
  assert_true(number("SELECT COUNT(*) % 2 FROM v_step WHERE placement = 'answer' AND phase = 'final'") == 0);
  assert_ok(tfc_report_focus(store, sample.run_id, &args));
  assert_ok(
      tfc_plots_draw(store, (const char *const[]){"spread"}, 1, &args, (struct tfc_plot_scale){1e-3, "ms"}, &plot));
  if (!plot.svg.size) fail_msg("no picture: %s", plot.note.data);
  snprintf(text, sizeof text, "answer  %.4g ms", middle * 1e-3);
  if (!strstr(plot.svg.data, text)) fail_msg("no %s", text);
  tfc_plot_deinit(&plot);
}

// An outlier does not stretch the scale: it is a triangle at the edge.
static void test_outlier(void **state) {
  (void)state;
  struct tfc_query_args args;
  struct tfc_plot plot = {0};
  struct tfc_store *other =
      open_changed("outlier", "UPDATE step SET duration_ns = 1000 * duration_ns WHERE phase = 'final' AND step = 3");
  assert_ok(tfc_report_focus(other, sample.run_id, &args));
  assert_ok(
      tfc_plots_draw(other, (const char *const[]){"spread"}, 1, &args, (struct tfc_plot_scale){1e-3, "ms"}, &plot));
  if (!plot.svg.size) fail_msg("no picture: %s", plot.note.data);
  assert_non_null(strstr(plot.svg.data, ">outliers"));
  for (const char *p = plot.svg.data; (p = strstr(p, "<text")) != NULL; p++) { // marks of the axis
    double mark;
    p = strchr(p, '>') + 1;
    if (sscanf(p, "<tspan font-family=\"%*[^\"]\" >%lf</tspan>", &mark) == 1 || sscanf(p, " %lf<", &mark) == 1)
      if (mark > 10e-3 * sample.single_us) fail_msg("the scale goes to %g ms", mark);
  }
  tfc_plot_deinit(&plot);
  tfc_store_close(other);
}

// Runs a query of a plot's script.
static void plot_query(struct tfc_store *db, const char *script, const char *name, struct tfc_table *out) {
  struct tfc_query_args args;
  struct tfc_text sql = {0};
  char head[64];
  snprintf(head, sizeof head, "#@ query %s:", name);
  const char *p = strstr(tfc_embedded_find(script), head);
  assert_non_null(p);
  for (p = strchr(p, '\n') + 1; strncmp(p, "#@   ", 5) == 0; p = strchr(p, '\n') + 1)
    tfc_text_printf(&sql, "%.*s\n", (int)strcspn(p + 5, "\n"), p + 5);
  assert_ok(tfc_report_focus(db, 1, &args));
  assert_ok(tfc_table_query(db, sql.data, &args, out));
  tfc_text_deinit(&sql);
}

// No type of operation is above the lines of the roofline. A product that ran in four pieces has its FLOP once; what
// ran four times in a loop has them four times.
static void test_roofline(void **state) {
  (void)state;
  for (int loop = 0; loop < 2; loop++) {
    struct tfc_store *db = NULL;
    struct tfc_table types = {0}, rates = {0};
    char file[128];
    snprintf(file, sizeof file, "%s/roofline%d.db", folder, loop);
    assert_ok(write_by_hand(file, "measured"));
    change_database(
        file, "UPDATE node SET flops = 3e6, bytes_touched = 1e6 WHERE node_id = 1;"
              "UPDATE node SET flops = NULL WHERE node_id <> 1;"
              "UPDATE op SET duration_ns = 75000 WHERE node_id = 1;"
              "INSERT INTO op (placement, step, position, node_id, device_id, start_ns, duration_ns, dispatch_ns, "
              "launched_ns) SELECT placement, step, position + 100 * k, node_id, device_id, start_ns +"
              " 75000 * k, duration_ns, dispatch_ns, launched_ns FROM op, (SELECT 1 AS k UNION SELECT 2"
              " UNION SELECT 3) WHERE node_id = 1;"
              "INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, total_ns) SELECT "
              "placement, node_id, device_id, 2, 400000, 400000, 800000 FROM op"
              " WHERE step = 0 GROUP BY node_id, placement, device_id");
    if (loop) change_database(file, "UPDATE node SET op = 'NextIteration' WHERE node_id = 3");
    assert_ok(tfc_store_open(file, &(struct tfc_store_options){0}, &db));
    plot_query(db, "roofline.gp", "types", &types);
    plot_query(db, "roofline.gp", "rates", &rates);
    assert_int_equal(types.row_count, 1);
    const double flops = tfc_table_cell(&types, 0, 2)->real, each = tfc_table_cell(&types, 0, 1)->real;
    assert_true(fabs(flops - (loop ? 40000 : 10000)) < 1e-6 && fabs(each - 3) < 1e-9); // in 300 us
    assert_true(flops <= tfc_table_cell(&rates, 0, 0)->real && flops / each <= tfc_table_cell(&rates, 0, 1)->real);
    tfc_table_deinit(&types);
    tfc_table_deinit(&rates);
    tfc_store_close(db);
  }
}

// A run without a final measurement (tfc-run --profile) has the pictures of its steps, too: of all of them.
static void test_profiled_steps(void **state) {
  (void)state;
  static const char *const names[] = {"steps", "spread"};
  struct tfc_query_args args;
  struct tfc_store *other = open_changed("profiled", "UPDATE step SET phase = 'profile';"
                                                     "UPDATE placement SET name = 'run' WHERE name = 'answer'");
  assert_ok(tfc_report_focus(other, sample.run_id, &args));
  for (size_t i = 0; i < 2; i++) {
    struct tfc_plot plot = {0};
    assert_ok(tfc_plots_draw(other, &names[i], 1, &args, (struct tfc_plot_scale){1e-3, "ms"}, &plot));
    if (!plot.svg.size) fail_msg("no picture of %s: %s", names[i], plot.note.data);
    if (!strstr(plot.svg.data, ">run ")) fail_msg("%s does not name the run", names[i]);
    tfc_plot_deinit(&plot);
  }
  // It searched nothing, and its page speaks of no answer.
  struct tfc_text page = {0};
  assert_int_equal(sqlite3_exec(tfc_store_handle(other), "UPDATE run SET program = 'tfc-run'", NULL, NULL, NULL),
                   SQLITE_OK);
  assert_ok(tfc_report_html(other, sample.run_id, &page));
  static const char *const said[] = {"<h2>How long a step takes</h2>", "<h3>This run</h3>", "In this run. Shares",
                                     "The operations of this run, those"};
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (!strstr(page.data, said[i])) fail_msg("no '%s'", said[i]);
  static const char *const unsaid[] = {"The answer and its rivals", ">The answer<", "Under the answer",
                                       "No other placement", "the answer put"};
  for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++)
    if (strstr(page.data, unsaid[i])) fail_msg("'%s' of a run that searched nothing", unsaid[i]);
  tfc_text_deinit(&page);
  tfc_store_close(other);
}

// Of an old placement the database has totals, and no single operations: the page says so where plots and lists are
// missing, and claims nothing about the step.
static void test_not_kept(void **state) {
  (void)state;
  struct tfc_store *other = open_changed(
      "kept", "DELETE FROM op WHERE placement IN (SELECT placement FROM placement WHERE name = 'answer');"
              "DELETE FROM transfer WHERE placement IN (SELECT placement FROM placement WHERE name = 'answer')");
  struct tfc_text page = {0}, text = {0};
  assert_ok(tfc_report_html(other, sample.run_id, &page));
  static const char *const said[] = {
      "What moves between devices (no step of the answer is kept operation by operation)",
      "Memory over the step (no step of the answer is kept operation by operation)",
      "How busy devices are over the step (no step of the answer is kept operation by operation)",
      "There is no timeline: no step of the answer is kept operation by operation"};
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (!strstr(page.data, said[i])) fail_msg("no '%s'", said[i]);
  static const char *const unsaid[] = {"gnuplot failed", "nothing moved", "Nothing was recorded",
                                       "after the step began"};
  for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++)
    if (strstr(page.data, unsaid[i])) fail_msg("'%s' of a step that is not kept", unsaid[i]);
  assert_ok(tfc_report_show(other, sample.run_id, &text));
  assert_non_null(strstr(text.data, "No step of the answer is kept operation by operation."));
  tfc_text_deinit(&text);
  tfc_text_deinit(&page);
  tfc_store_close(other);
}

// Where gnuplot fails, the page says why in place of each plot.
static void test_failing_gnuplot(void **state) {
  (void)state;
  struct tfc_text page = {0};
  char *usual = put_gnuplot(folder, "echo '<broken>' >&2; exit 1");
  tfc_status s = tfc_report_html(store, sample.run_id, &page);
  remove_gnuplot(folder, usual);
  assert_ok(s);
  uint32_t said = 0;
  for (const char *at = page.data; (at = strstr(at, "<p class=\"note\">gnuplot failed: &lt;broken&gt;")); at++) said++;
  assert_true(said > 5);
  assert_null(strstr(page.data, "<figure"));
  tfc_text_deinit(&page);
}

// Plots of candidates of which none was measured to its end say that.
static void test_no_candidates(void **state) {
  (void)state;
  static const struct {
    const char *name, *change, *says;
  } cases[] = {{"cut", "UPDATE placement SET state = 'cut' WHERE episode IS NOT NULL",
                "Search and learning (no candidate was measured to its end)"},
               {"unmeasured",
                "UPDATE placement SET state = 'no fit', reward = NULL, median_us = NULL, final_median_us = NULL, "
                "simulated_us = NULL",
                "Search and learning (no candidate was measured)"}};
  for (size_t i = 0; i < 2; i++) {
    struct tfc_text page = {0};
    struct tfc_store *other = open_changed(cases[i].name, cases[i].change);
    assert_ok(tfc_report_html(other, sample.run_id, &page));
    if (!strstr(page.data, cases[i].says)) fail_msg("no '%s'", cases[i].says);
    assert_null(strstr(page.data, "Nothing was recorded"));
    if (i == 1) assert_non_null(strstr(page.data, "(no placement was both simulated and measured to its end)"));
    tfc_text_deinit(&page);
    tfc_store_close(other);
  }
}

// An answer that took no part in the final measurement is not in its plots, nothing else is called the answer, and
// nothing has its colour. It still has its share of busy time.
static void test_another_answer(void **state) {
  (void)state;
  struct tfc_store *other = open_changed(
      "another",
      "UPDATE step SET phase = 'screen' WHERE phase = 'final' AND placement IN (SELECT placement FROM placement "
      "WHERE name = 'answer'); DELETE FROM op WHERE placement IN (SELECT placement FROM placement WHERE name = "
      "'answer')");
  static const char *const scripts[] = {"steps.gp", "spread.gp"};
  for (size_t i = 0; i < 2; i++) {
    struct tfc_table names = {0}, steps = {0};
    struct tfc_plot plot = {0};
    struct tfc_query_args args;
    plot_query(other, scripts[i], "names", &names);
    plot_query(other, scripts[i], "steps", &steps);
    assert_true(names.row_count > 1 && steps.row_count > 10);
    for (uint32_t r = 0; r < names.row_count; r++) {
      assert_int_equal(tfc_table_cell(&names, r, 0)->integer, r + 2); // the first is the answer's
      assert_false(tfc_str_is(tfc_table_cell(&names, r, 1)->text, "answer"));
    }
    for (uint32_t r = 0; r < steps.row_count; r++) assert_true(tfc_table_cell(&steps, r, 2)->integer >= 2);
    tfc_table_deinit(&names);
    tfc_table_deinit(&steps);
    plot_query(store, scripts[i], "names", &names);
    assert_int_equal(tfc_table_cell(&names, 0, 0)->integer, 1);
    assert_true(tfc_str_is(tfc_table_cell(&names, 0, 1)->text, "answer"));
    tfc_table_deinit(&names);
    assert_ok(tfc_report_focus(other, sample.run_id, &args));
    assert_ok(tfc_plots_draw(other, &scripts[i], 1, &args, (struct tfc_plot_scale){1e-3, "ms"}, &plot));
    if (!plot.svg.size) fail_msg("no picture of %s: %s", scripts[i], plot.note.data);
    assert_null(strstr(plot.svg.data, "answer"));
    assert_null(strstr(plot.svg.data, "var(--accent)"));
    tfc_plot_deinit(&plot);
  }
  struct tfc_text text = {0};
  assert_ok(tfc_report_show(other, sample.run_id, &text));
  const char *cpu = strstr(text.data, "\n  cpu:2 ");
  assert_non_null(cpu);
  const char *percent = strchr(cpu, '%');
  assert_true(percent && percent < strchr(cpu + 1, '\n'));
  tfc_text_deinit(&text);
  tfc_store_close(other);
}

// Where loads were searched, candidates are drawn by their loads, and so is the best of them so far.
static void test_learning_of_loads(void **state) {
  (void)state;
  struct tfc_store *other = open_changed(
      "loads",
      "UPDATE run SET objective = 'throughput'; INSERT INTO device_load (placement, device_id, load_us) SELECT "
      "p.placement, d.device_id, 1000 * "
      "(d.device_id + 1) - p.episode FROM placement p JOIN device d ON d.run_id = p.run_id AND d.device_id < 3 "
      "WHERE p.episode IS NOT NULL");
  struct tfc_table episodes = {0}, best = {0}, what = {0}, points = {0};
  plot_query(other, "learning.gp", "episodes", &episodes);
  plot_query(other, "learning.gp", "best", &best);
  plot_query(other, "learning.gp", "what", &what);
  assert_true(episodes.row_count > 10 && best.row_count > 10);
  for (uint32_t r = 0; r < episodes.row_count; r++) // the largest load of a device
    assert_true(tfc_table_cell(&episodes, r, 1)->real == 3000 - tfc_table_cell(&episodes, r, 0)->real);
  double last = INFINITY;
  for (uint32_t r = 0; r < best.row_count; r++) {
    const double us = tfc_table_cell(&best, r, 1)->real;
    assert_true(us <= last && us >= 3000 - tfc_table_cell(&best, r, 0)->real);
    last = us;
  }
  assert_true(tfc_str_is(tfc_table_cell(&what, 0, 0)->text, "load of the busiest device"));
  // What was simulated for loads is not a step, so there is no tau.
  plot_query(other, "simulated.gp", "steps", &points);
  assert_int_equal(points.row_count, 0);
  tfc_table_deinit(&points);
  plot_query(store, "simulated.gp", "steps", &points);
  assert_int_equal(points.row_count, 1);
  tfc_table_deinit(&points);
  tfc_table_deinit(&episodes);
  tfc_table_deinit(&best);
  tfc_table_deinit(&what);
  tfc_store_close(other);
}

// What reports compute in SQL is what runs compute of the same points (profiler/statistics.h), also where simulated or
// measured steps are equal and where pairs lie within their spread.
static void test_tau(void **state) {
  (void)state;
  struct tfc_store *other =
      open_changed("tau", "UPDATE placement SET simulated_us = 10 * (placement_id % 7), median_us ="
                          " 100 * (placement_id * 5 % 11), q1_us = 100 * (placement_id * 5 % 11)"
                          " - 40, q3_us = 100 * (placement_id * 5 % 11) + 70 * (placement_id % 3)"
                          " WHERE episode IS NOT NULL");
  struct tfc_query_args args;
  struct tfc_report_tau tau;
  struct tfc_table points = {0};
  double x[64], y[64], spread[64];
  size_t pairs = 0;
  plot_query(other, "simulated.gp", "points", &points);
  assert_in_range(points.row_count, 10, 64);
  for (uint32_t r = 0; r < points.row_count; r++) {
    const struct tfc_cell *row = tfc_table_cell(&points, r, 0);
    x[r] = row[0].real, y[r] = row[1].real, spread[r] = row[2].real;
  }
  const double expected = tfc_kendall_tau(x, y, spread, points.row_count, &pairs);
  assert_ok(tfc_report_focus(other, sample.run_id, &args));
  assert_ok(tfc_report_tau(other, &args, &tau));
  if (!(fabs(tau.tau - expected) < 1e-12)) fail_msg("tau %.6f in SQL, %.6f", tau.tau, expected);
  assert_true(tau.placements == points.row_count && tau.pairs == (double)pairs);
  assert_in_range(pairs, 1, points.row_count * (points.row_count - 1) / 2 - 1); // some pairs do not count
  tfc_table_deinit(&points);
  tfc_store_close(other);
}

static size_t occurrences(const char *text, const char *what) {
  size_t count = 0;
  for (const char *p = text; (p = strstr(p, what)) != NULL; p++) count++;
  return count;
}

// The page of a step without transfers has a timeline, too, with a bar for each operation and the time of its family.
static void test_timeline(void **state) {
  (void)state;
  struct tfc_store *other = open_changed("alone", "DELETE FROM transfer");
  struct tfc_text page = {0};
  struct tfc_query_args args;
  char command[256], us[32], text[96];
  assert_ok(tfc_report_html(other, sample.run_id, &page));
  assert_ok(tfc_report_focus(other, sample.run_id, &args));
  tfc_store_close(other);
  char *line = strstr(page.data, "<div class=\"timeline\""), *end = line ? strstr(line, "</section>") : NULL;
  assert_non_null(end);
  *end = 0;
  snprintf(command, sizeof command,
           "SELECT SUM(duration_us) FROM v_op WHERE placement_id = %lld AND step = %lld AND op = 'MatMul'",
           (long long)args.placement, (long long)args.step);
  snprintf(text, sizeof text, "products %s</span>", tfc_show_us(us, number(command)));
  if (!strstr(line, text)) fail_msg("no '%s' in: %s", text, line);
  snprintf(command, sizeof command, "SELECT COUNT(*) FROM v_op WHERE placement_id = %lld AND step = %lld",
           (long long)args.placement, (long long)args.step);
  size_t bars = 0;
  for (const char *p = line; (p = strstr(p, "<path class=\"f")) != NULL; p++) {
    const char *stop = strchr(p, '>');
    for (const char *q = p; q < stop; q++) bars += *q == 'z';
  }
  assert_int_equal(bars, (size_t)number(command));
  assert_null(strstr(line, "<path class=\"arriving\""));
  assert_null(strstr(line, "tensor arrives</span>")); // nor does the key name what is not drawn
  assert_null(strstr(line, "waits for a transfer</span>"));
  if (!strstr(end + 1, "What moves between devices (nothing moved between devices in the step)"))
    fail_msg("it is not said why there is no plot of what moved");
  tfc_text_deinit(&page);
}

static void test_page_loads_nothing(void **state) {
  (void)state;
  html_check(html.data);
  static const char *const loads[] = {"<script src", "<img",    "<iframe",  "fetch(", "XMLHttp",
                                      "import(",     "@import", "url(http", "src="};
  for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) assert_null(strstr(html.data, loads[i]));
  for (const char *p = html.data; (p = strstr(p, "href=")) != NULL; p++)
    assert_true(p[6] == '#' || tfc_str_starts(tfc_str_from(p + 6), "data:,"));
  // No two elements share an id.
  for (const char *p = html.data; (p = strstr(p, " id=\"")) != NULL; p++) {
    char id[96];
    snprintf(id, sizeof id, "%.*s\"", (int)strcspn(p + 5, "\""), p + 5);
    if (occurrences(p, id) > 1 && strstr(p + 1, id) && p[5]) {
      snprintf(id, sizeof id, " id=\"%.*s\"", (int)strcspn(p + 5, "\""), p + 5);
      if (occurrences(html.data, id) > 1) fail_msg("shared: %s", id);
    }
  }
}

static void test_missing_run(void **state) {
  (void)state;
  struct tfc_query_args args;
  assert_fails(tfc_report_focus(store, 99, &args), TFC_NOT_FOUND, "99");
  assert_ok(tfc_report_focus(store, -1, &args));
  assert_int_equal(args.run, sample.run_id);
}

static void test_trace(void **state) {
  (void)state;
  char file[128];
  uint64_t events;
  snprintf(file, sizeof file, "%s/trace.json.gz", folder);
  assert_ok(tfc_report_trace(store, sample.run_id, &(struct tfc_report_trace_options){.last = 1000}, file, &events));
  gzFile in = gzopen(file, "rb");
  assert_non_null(in);
  static char text[32 << 20];
  int size = gzread(in, text, sizeof text - 1);
  gzclose(in);
  assert_true(size > 0 && size < (int)sizeof text - 1);
  text[size] = 0;
  // Nothing follows the compressed text.
  struct tfc_file plain;
  assert_ok(tfc_file_map(file, &plain));
  z_stream z = {.next_in = (unsigned char *)(uintptr_t)plain.data, .avail_in = (uInt)plain.size};
  assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
  int rc = Z_OK;
  while (rc == Z_OK) {
    unsigned char some[4096];
    z.next_out = some, z.avail_out = sizeof some;
    rc = inflate(&z, Z_NO_FLUSH);
  }
  assert_true(rc == Z_STREAM_END && z.avail_in == 0 && z.total_out == (uLong)size);
  inflateEnd(&z);
  tfc_file_unmap(&plain);
  // The same as plain JSON, by name.
  uint64_t again;
  snprintf(file, sizeof file, "%s/trace.json", folder);
  assert_ok(tfc_report_trace(store, sample.run_id, &(struct tfc_report_trace_options){.last = 1000}, file, &again));
  assert_ok(tfc_file_map(file, &plain));
  assert_int_equal(again, events);
  assert_int_equal(plain.size, size);
  assert_memory_equal(plain.data, text, (size_t)size);
  tfc_file_unmap(&plain);
  // Every event is a line. Slices, flows and counters are compared with the views; each end of a flow must be at the
  // beginning of a slice.
  struct event {
    char phase;
    int pid, tid;
    double ts;
  };
  static struct event slices[20000];
  uint32_t slice_count = 0, counters = 0, starts = 0, ends = 0, all = 0;
  // Each line is copied, because sscanf and strstr may read all the text that follows, which is long.
  for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
    char head[128];
    struct event e;
    snprintf(head, sizeof head, "%.*s", (int)strcspn(line, "\n"), line);
    const char *p = strstr(head, "{\"ph\"");
    if (!p) continue;
    assert_int_equal(
        sscanf(p, "{\"ph\": \"%c\", \"pid\": %d, \"tid\": %d, \"ts\": %lf", &e.phase, &e.pid, &e.tid, &e.ts), 4);
    all++, counters += e.phase == 'C', starts += e.phase == 's', ends += e.phase == 'f';
    if (e.phase == 'X') slices[slice_count++] = e;
    assert_true(slice_count < 20000);
    if (e.phase != 's' && e.phase != 'f') continue;
    uint32_t k = slice_count; // the last slices are those of this step
    while (k > 0 && !(slices[k - 1].pid == e.pid && slices[k - 1].tid == e.tid && fabs(slices[k - 1].ts - e.ts) < 1e-6))
      k--;
    if (!k) fail_msg("a flow without a slice: %.100s", p);
  }
  assert_int_equal(all, events);
  assert_true(slice_count == number("SELECT (SELECT COUNT(*) FROM v_op WHERE placement = 'answer') + (SELECT COUNT(*)"
                                    " FROM v_transfer WHERE placement = 'answer') + (SELECT COUNT(*) FROM v_step WHERE"
                                    " placement = 'answer')"));
  assert_int_equal(starts, ends);
  assert_true(starts == number("SELECT (SELECT COUNT(*) FROM v_transfer WHERE placement = 'answer') + (SELECT COUNT(*)"
                               " FROM v_op c JOIN v_edge ON consumer_id = c.node_id JOIN v_op p ON p.node_id ="
                               " producer_id AND p.step = c.step AND p.placement = c.placement WHERE c.placement ="
                               " 'answer' AND p.device <> c.device)"));
  // the counter rises and falls at least once for each device and step
  assert_true(counters >= 2 * 4 * 30 && counters % 2 == 0);
  assert_fails(tfc_report_trace(store, sample.run_id, &(struct tfc_report_trace_options){.last = 1000},
                                "/nowhere/at/all.gz", &events),
               TFC_DATA_LOSS, "/nowhere");
}

static void test_unwritable_directory(void **state) {
  (void)state;
  assert_fails(tfc_report_page(store, sample.run_id, "/proc/report"), TFC_DATA_LOSS, "/proc/report");
}

// With the records of a GPU profiler the page shows the streams; without them it has no such plot.
static void test_streams(void **state) {
  (void)state;
  if (strstr(html.data, "id=\"streams\"")) fail_msg("streams that nobody saw");
  // The page says why.
  if (!strstr(html.data, "Not drawn: One step, stream by stream (no GPU's profiler recorded the step)"))
    fail_msg("it is not said why streams are missing");
  char sql[512];
  struct tfc_store *gpu = open_changed("gpu", "");
  struct tfc_text page = {0};
  int64_t key =
      (int64_t)number("SELECT placement FROM placement JOIN run USING (run_id) WHERE placement_id = best_placement_id");
  int steps = (int)number("SELECT MAX(step) FROM v_op JOIN v_run USING (run_id, placement_id)");
  for (int step = 0; step <= steps; step++) {
    struct tfc_activity_work works[30];
    memset(works, 0, sizeof works);
    for (int i = 0; i < 30; i++) {
      works[i].kind = i % 10 == 9 ? TFC_ACTIVITY_COPY : TFC_ACTIVITY_KERNEL;
      works[i].context = 1, works[i].stream = 7 + (uint32_t)i % 3;
      works[i].start_ns = 1000 + i / 3 * 30000, works[i].end_ns = works[i].start_ns + 12000 + 1000 * (i % 3);
      works[i].uid = (uint32_t)i;
      snprintf(works[i].name, sizeof works[i].name, "kernel %d", i);
    }
    assert_ok(tfc_store_add_works(gpu, key, (uint32_t)step, 0, works, 30));
  }
  snprintf(sql, sizeof sql, "UPDATE op SET dispatch_ns = 500, launched_ns = start_ns - 1500 WHERE placement = %lld",
           (long long)key);
  assert_int_equal(sqlite3_exec(tfc_store_handle(gpu), sql, NULL, NULL, NULL), SQLITE_OK);
  assert_ok(tfc_report_html(gpu, sample.run_id, &page));
  const char *section = strstr(page.data, "id=\"streams\"");
  assert_non_null(section);
  const char *end = strstr(section, "</section>"), *drawn = strstr(section, "<svg");
  assert_true(end && drawn && drawn < end);
  // A trace has a row for each stream, with its works.
  char traced[128];
  uint64_t events;
  struct tfc_file file;
  snprintf(traced, sizeof traced, "%s/gpu.json", folder);
  assert_ok(
      tfc_report_trace(gpu, sample.run_id, &(struct tfc_report_trace_options){.last = INT64_MAX}, traced, &events));
  assert_ok(tfc_file_map(traced, &file));
  tfc_str text = {(const char *)file.data, file.size};
  static const struct {
    const char *text;
    int each; // how many in a step
  } works[] = {{"\"cat\": \"kernel\"", 27}, {"\"cat\": \"copy\"", 3}, {"\"name\": \"kernel 4\"", 1}};
  for (size_t i = 0; i < 3; i++) {
    int found = 0;
    for (const char *at = text.data;
         (at = memmem(at, text.size - (size_t)(at - text.data), works[i].text, strlen(works[i].text))); at++)
      found++;
    assert_int_equal(found, works[i].each * (steps + 1));
  }
  assert_non_null(memmem(text.data, text.size, "{\"name\": \"stream 9\"}", 20));
  tfc_file_unmap(&file);
  // The stream executes 10 works of 12 us in 282 us; the gaps are 18 us.
  const char *label = strstr(section, "43 % busy, longest gap 18.0 us");
  if (!label || label > end) fail_msg("no label of the first stream");
  label = strstr(section, "launch to start");
  if (!label || label > end) fail_msg("no launches");
  tfc_text_deinit(&page);
  tfc_store_close(gpu);
}

// Virtual devices slow each other down: the page shows by how much, for each type of operation. Pages of other devices
// have no such table.
static void test_beside(void **state) {
  (void)state;
  if (strstr(html.data, "id=\"beside\"")) fail_msg("devices that share nothing are compared");
  char text[128], alone[32], beside[32];
  struct tfc_store *gpu = open_changed("virtual", "UPDATE device SET label = 'virtual'");
  struct tfc_text page = {0};
  assert_ok(tfc_report_html(gpu, sample.run_id, &page));
  html_check(page.data);
  const char *section = strstr(page.data, "id=\"beside\"");
  assert_non_null(section);
  double us = number("SELECT SUM(median_us) FROM v_op_total WHERE placement = 'answer' AND op = 'MatMul'");
  double least = number("SELECT SUM(us) FROM (SELECT MIN(median_us) AS us FROM v_op_total WHERE placement LIKE"
                        " 'single:%' AND op = 'MatMul' GROUP BY node_id)");
  assert_true(least > 0);
  snprintf(text, sizeof text,
           "alone\">%s</td><td class=\"n\" data-l=\"beside others\">%s</td><td class=\"n\" data-l=\"factor\">%.2f</td>",
           tfc_show_us(alone, least), tfc_show_us(beside, us), us / least);
  const char *found = strstr(section, "<td>MatMul</td>");
  if (!found || !(found = strstr(found, text)) || found > strstr(section, "</table>")) fail_msg("no %s", text);
  tfc_text_deinit(&page);
  tfc_store_close(gpu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_spread),
      cmocka_unit_test(test_outlier),
      cmocka_unit_test(test_roofline),
      cmocka_unit_test(test_profiled_steps),
      cmocka_unit_test(test_not_kept),
      cmocka_unit_test(test_another_answer),
      cmocka_unit_test(test_failing_gnuplot),
      cmocka_unit_test(test_no_candidates),
      cmocka_unit_test(test_learning_of_loads),
      cmocka_unit_test(test_tau),
      cmocka_unit_test(test_beside),
      cmocka_unit_test(test_speedup_from_steps),
      cmocka_unit_test(test_busy_from_operations),
      cmocka_unit_test(test_bytes_from_transfers),
      cmocka_unit_test(test_plot_data),
      cmocka_unit_test(test_names_in_plots),
      cmocka_unit_test(test_all_plots_are_drawn),
      cmocka_unit_test(test_timeline),
      cmocka_unit_test(test_page_loads_nothing),
      cmocka_unit_test(test_missing_run),
      cmocka_unit_test(test_trace),
      cmocka_unit_test(test_unwritable_directory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
