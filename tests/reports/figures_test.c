// Compares figures of reports, on the page and on the terminal, with numbers that are known from how the run was made
// or that other queries of the views give: which of two runs is faster and by how much, gaps, medians of odd and even
// numbers of steps, causes of idle time, two compared runs.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/place.h"
#include "placer/record.h"
#include "reports/compare.h"
#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "runtime/base/units.h"
#include "tests/common/change.h"
#include "tests/common/folder.h"
#include "tests/common/sample_run.h"
#include "tests/placer/instances.h"

static char folder[64], path[96];
static struct sample_run sample;

static void change(const char *sql) {
  change_database(path, sql);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "figures")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  tfc_status s = sample_run_write(path, 1, &sample);
  if (s) fprintf(stderr, "%s\n", tfc_status_message(s));
  return s ? -1 : 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static struct tfc_text page_of(int64_t run) {
  struct tfc_store *store = NULL;
  struct tfc_text text = {0};
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  assert_ok(tfc_report_html(store, run, &text));
  tfc_store_close(store);
  return text;
}
static struct tfc_text terminal_of(int64_t run) {
  struct tfc_store *store = NULL;
  struct tfc_text text = {0};
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  assert_ok(tfc_report_show(store, run, &text));
  tfc_store_close(store);
  return text;
}

// Returns the part of `text` from `from` to `to`.
static char *part(const char *text, const char *from, const char *to) {
  const char *begin = strstr(text, from);
  if (!begin) fail_msg("no '%s' in: %s", from, text);
  const char *end = strstr(begin, to);
  if (!end) fail_msg("no '%s' behind '%s'", to, from);
  return strndup(begin, (size_t)(end - begin));
}
static void assert_in(const char *text, const char *expected) {
  if (!strstr(text, expected)) fail_msg("no '%s' in: %s", expected, text);
}

static void test_rivals(void **state) {
  (void)state;
  char sql[128];
  sample.whole_us = 0.8 * sample.answer_us; // the answer is not faster than this one
  snprintf(sql, sizeof sql, "UPDATE placement SET median_us = %.17g WHERE name = 'whole'", sample.whole_us);
  change(sql);
  struct tfc_text page = page_of(-1), terminal = terminal_of(-1);
  const struct {
    const char *name, *row, *card;
    double us;
  } rivals[] = {{"single:cpu:0", "<td>single:cpu:0</td>", "against the best single device", sample.single_us},
                {"whole", "<td>whole</td>", "against the undivided machine", sample.whole_us},
                {"expert", "<td>expert</td>", "against the expert", sample.expert_us}};
  bool faster = false, slower = false;
  double top = sample.answer_us;
  for (int i = 0; i < 3; i++) top = fmax(top, rivals[i].us);
  for (int i = 0; i < 3; i++) {
    char expected[64], line_start[64];
    char *row = part(page.data, rivals[i].row, "</tr>");
    const double ratio = rivals[i].us / sample.answer_us;
    assert_true(fabs(ratio - 1) > 0.02); // they are so far apart that "faster" and "slower" are meaningful
    faster |= ratio > 1, slower |= ratio < 1;
    snprintf(expected, sizeof expected, "data-l=\"answer is\">%.2f× %s</td>", ratio > 1 ? ratio : 1 / ratio,
             ratio > 1 ? "faster" : "slower");
    assert_in(row, expected);
    snprintf(expected, sizeof expected, "width:%.1f%%", 100 * rivals[i].us / top);
    assert_in(row, expected);
    free(row);
    snprintf(expected, sizeof expected, "<b>%.2f×</b><span>%s", ratio, rivals[i].card);
    assert_in(page.data, expected);
    snprintf(line_start, sizeof line_start, "\n  %s ", rivals[i].name);
    row = part(terminal.data, line_start, "x ");
    snprintf(expected, sizeof expected, " %.3f", ratio);
    assert_in(row, expected);
    free(row);
  }
  assert_true(faster && slower);
  char *answer = part(page.data, "<tr class=\"answer\">", "</tr>");
  assert_null(strstr(answer, "faster"));
  assert_null(strstr(answer, "slower"));
  free(answer);
  tfc_text_deinit(&page);
  tfc_text_deinit(&terminal);
}

// The bound was stored as 0.7 of the answer, and 1 / 0.7 is 42.9 % more.
static void test_gap(void **state) {
  (void)state;
  struct tfc_text page = page_of(-1), terminal = terminal_of(-1);
  char bound[32], expected[96];
  tfc_show_us(bound, 0.7 * sample.answer_us);
  assert_in(page.data, "<b>43 %</b><span>above the lower bound");
  snprintf(expected, sizeof expected, "Lower bound: %s (critical path)", bound);
  char *line = part(terminal.data, expected, "\n");
  assert_in(line, "42.9 % above");
  free(line);
  tfc_text_deinit(&page);
  tfc_text_deinit(&terminal);
}

// The ratio of the run has an interval of 2 % to both sides.
static void test_verdict(void **state) {
  (void)state;
  const double ratio = sample.single_us / sample.answer_us;
  char expected[128];
  assert_true(ratio > 1.1);
  struct tfc_text page = page_of(-1), terminal = terminal_of(-1);
  char *verdict = part(page.data, "<p class=\"verdict\">", "</p>");
  snprintf(expected, sizeof expected, "%.2f times faster than on the best", ratio);
  assert_in(verdict, expected);
  snprintf(expected, sizeof expected, "interval %.2f to %.2f", 0.98 * ratio, 1.02 * ratio);
  assert_in(verdict, expected);
  assert_true((strstr(verdict, "undivided machine") != NULL) == (sample.whole_us < sample.answer_us));
  free(verdict);
  snprintf(expected, sizeof expected, "%.3f to %.3f", 0.98 * ratio, 1.02 * ratio);
  char *line = part(terminal.data, "Against the best single device", "\n");
  assert_in(line, expected);
  free(line);
  tfc_text_deinit(&page);
  tfc_text_deinit(&terminal);
  change("UPDATE run SET speedup_low = 0.99");
  page = page_of(-1);
  verdict = part(page.data, "<p class=\"verdict\">", "</p>");
  assert_in(verdict, "Nothing was found that beats the best single device");
  free(verdict);
  tfc_text_deinit(&page);
  // Too few steps for an interval: then the program's exit code says whether the answer won.
  change("UPDATE run SET speedup_low = NULL, speedup_high = NULL, exit_code = 0");
  page = page_of(-1), terminal = terminal_of(-1);
  verdict = part(page.data, "<p class=\"verdict\">", "</p>");
  snprintf(expected, sizeof expected, "%.2f times faster than on the best single device. It was timed in too few",
           ratio);
  assert_in(verdict, expected);
  free(verdict);
  line = part(terminal.data, "Against the best single device", "\n");
  assert_in(line, "x (too few steps for an interval)");
  free(line);
  tfc_text_deinit(&page);
  tfc_text_deinit(&terminal);
  change("UPDATE run SET exit_code = 7");
  page = page_of(-1);
  verdict = part(page.data, "<p class=\"verdict\">", "</p>");
  assert_in(verdict, "Nothing was found that beats the best single device");
  free(verdict);
  tfc_text_deinit(&page);
}

// The time between the ends of steps is a median: the middle one of five steps in flight, or the mean of the middle two
// of four steps one after another. The page shows the faster mode.
static void test_medians(void **state) {
  (void)state;
  change("UPDATE run SET objective = 'throughput'");
  change("INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT p.placement, 900 + "
         "n.column1, 'in flight', 0, 0, n.column1, n.column2 * 1000 FROM"
         " placement p JOIN run r USING (run_id) JOIN (VALUES (0, 90), (1, 10), (2, 20), (3, 80), (4, 30)) n WHERE"
         " p.placement_id = r.best_placement_id");
  change("INSERT INTO step (placement, step, phase, block, traced, start_ns, duration_ns) SELECT p.placement, 950 + "
         "n.column1, 'one by one', 0, 0, n.column1, n.column2 * 1000 FROM"
         " placement p JOIN run r USING (run_id) JOIN (VALUES (0, 900), (1, 100), (2, 200), (3, 400)) n WHERE"
         " p.placement_id = r.best_placement_id");
  struct tfc_text page = page_of(-1), terminal = terminal_of(-1);
  char expected[96], us[32];
  char *line = part(terminal.data, "steps in flight", "\n");
  snprintf(expected, sizeof expected, "ends every %s (5 ", tfc_show_us(us, 30));
  assert_in(line, expected);
  free(line);
  line = part(terminal.data, "steps one by one", "\n");
  snprintf(expected, sizeof expected, "ends every %s (4 ", tfc_show_us(us, 300));
  assert_in(line, expected);
  free(line);
  char *verdict = part(page.data, "<p class=\"verdict\">", "</p>");
  snprintf(expected, sizeof expected, "ends every <strong>%s</strong>", tfc_show_us(us, 30));
  assert_in(verdict, expected);
  free(verdict);
  tfc_text_deinit(&page);
  tfc_text_deinit(&terminal);
}

// In each step, 1 % of the time is lost to launches, 2 % to transfers, 3 % to other devices and 4 % at the end; for 60
// % the device is busy.
static void test_idle(void **state) {
  (void)state;
  change("UPDATE busy SET (busy_ns, operations_ns, launch_ns, transfer_ns, dependency_ns, end_ns, launch_gap_ns) ="
         " (SELECT s.duration_ns * 6 / 10, s.duration_ns / 2, s.duration_ns / 100, s.duration_ns / 50,"
         " s.duration_ns * 3 / 100, s.duration_ns / 25, 12300 FROM step s WHERE s.placement = busy.placement AND"
         " s.step = busy.step)");
  struct tfc_text page = page_of(-1), terminal = terminal_of(-1);
  char *table = part(page.data, "longest launch</th>", "</table>");
  char *row = part(table, "<td>cpu:1</td>", "</tr>");
  static const char *const shares[] = {"1.0 %", "2.0 %", "3.0 %", "4.0 %", "12.3 us"};
  const char *at = row;
  for (size_t i = 0; i < 5; i++)
    if (!(at = strstr(at, shares[i]))) fail_msg("'%s' is not in its place in: %s", shares[i], row);
  free(row), free(table);
  char *causes = part(terminal.data, "idle for", "\n"), *line = part(strstr(terminal.data, "idle for"), "cpu:1", "\n");
  static const char *const heads[] = {"launch", "transfer", "another device", "end of step"};
  const char *head = causes, *said = line;
  for (size_t i = 0; i < 4; i++) {
    if (!(head = strstr(head, heads[i]))) fail_msg("'%s' is not in its place in: %s", heads[i], causes);
    if (!(said = strstr(said, shares[i]))) fail_msg("'%s' is not in its place in: %s", shares[i], line);
  }
  free(causes), free(line);
  line = part(terminal.data, "\n  cpu:1 ", " %"); // the table of devices comes first
  assert_in(line, " 60.0");
  free(line);
  tfc_text_deinit(&page);
  tfc_text_deinit(&terminal);
}

// Returns how long the answer's MatMuls took in a traced step: the median over the steps.
static double matmul_us(int64_t run) {
  char sql[400];
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  snprintf(sql, sizeof sql,
           "SELECT AVG(us) FROM (SELECT us, ROW_NUMBER() OVER (ORDER BY us) AS k, COUNT(*) OVER () AS n FROM (SELECT"
           " SUM(duration_us) AS us FROM v_op WHERE run_id = %lld AND placement = 'answer' AND op = 'MatMul' GROUP BY"
           " step)) WHERE 2 * k BETWEEN n AND n + 2",
           (long long)run);
  assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  const double us = sqlite3_column_double(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return us;
}

// Compares two runs: ratios are those of the second run to the first, and the text says it if the second is twice as
// slow.
static void test_compare(void **state) {
  (void)state;
  struct sample_run other;
  struct tfc_store *store = NULL;
  struct tfc_report_lists lists = {0};
  assert_ok(sample_run_write(path, 2, &other));
  char sql[256], expected[96];
  snprintf(sql, sizeof sql, "UPDATE placement SET median_us = 2 * median_us WHERE run_id = %lld",
           (long long)other.run_id);
  change(sql);
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  assert_ok(tfc_report_compare(store, (const int64_t[]){sample.run_id, other.run_id}, 2, &lists));
  tfc_store_close(store);
  const struct {
    const char *line;
    double first, second;
  } rows[] = {{"\nstep ", sample.answer_us, 2 * other.answer_us},
              {"\nundivided machine ", sample.whole_us, 2 * other.whole_us},
              {"\nbest single device ", sample.single_us, 2 * other.single_us},
              {"\nexpert ", sample.expert_us, 2 * other.expert_us},
              {"\nlower bound ", 0.7 * sample.answer_us, 0.7 * other.answer_us},
              {"\nMatMul ", matmul_us(sample.run_id), matmul_us(other.run_id)}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char a[32], b[32];
    const char *begin = strstr(lists.text.data, rows[i].line);
    if (!begin) fail_msg("no line '%s'", rows[i].line);
    char *line = strndup(begin + 1, strcspn(begin + 1, "\n"));
    snprintf(expected, sizeof expected, " %s %*s%s %9.3f", tfc_show_us(a, rows[i].first),
             (int)(16 - strlen(tfc_show_us(b, rows[i].second))), "", b, rows[i].second / rows[i].first);
    assert_in(line, expected);
    free(line);
  }
  tfc_report_lists_deinit(&lists);
}

// Executes SQL in an open database.
static void execute(struct tfc_store *store, const char *sql) {
  char *message = NULL;
  if (sqlite3_exec(tfc_store_handle(store), sql, NULL, NULL, &message)) fail_msg("%s: %s", sql, message);
}

// Writes the record of a chain whose operations alternate between two devices to a new database in memory. `again`:
// then writes it once more, into the same run; the first time a trigger stops this in the middle.
static struct tfc_store *record_of_chain(uint32_t count, bool again) {
  struct tfc_store *store = NULL;
  struct tfc_solution solution = {0};
  struct tfc_bound bound;
  struct tfc_placement *document = NULL;
  struct tfc_text text = {0};
  int64_t run = 0;
  tfc_text_printf(&text, "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": [");
  for (uint32_t i = 0; i < count; i++)
    tfc_text_printf(&text, "%s{\"name\": \"n%u\", \"time_us\": {\"acc\": 30}}", i ? ", " : "", i);
  tfc_text_printf(&text, "], \"edges\": [");
  for (uint32_t i = 1; i < count; i++)
    tfc_text_printf(&text, "%s{\"from\": \"n%u\", \"to\": \"n%u\", \"bytes\": 100}", i > 1 ? ", " : "", i - 1, i);
  tfc_text_printf(&text, "]}");
  struct instance in = parsed(text.data, "format: tfc-machine\nversion: 1\ndevices:\n"
                                         "  - {name: \"acc:0\", kind: acc, memory: 16GiB, count: 2}\n"
                                         "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 1GB/s}\n");
  assert_ok(tfc_solution_init(&solution, in.problem));
  for (uint32_t u = 0; u < in.problem->unit_count; u++) solution.device[u] = u % 2;
  assert_ok(tfc_bound_compute(in.problem, NULL, &bound));
  assert_ok(tfc_placement_from_solution(in.problem, &solution, &bound, &document));
  assert_ok(tfc_store_open_memory(&store));
  const struct tfc_record record = {
      .problem = in.problem, .answer = &solution, .document = document, .graph = "chain.json"};
  assert_ok(tfc_record_write(&record, store, &run));
  if (again) {
    execute(store, "CREATE TABLE before AS SELECT * FROM v_op; CREATE TEMP TRIGGER stop BEFORE INSERT ON op WHEN"
                   " NEW.node_id = 3 BEGIN SELECT RAISE(ABORT, 'stopped'); END");
    tfc_status stopped = tfc_record_write(&record, store, &run);
    assert_non_null(stopped);
    assert_in(tfc_status_message(stopped), "stopped");
    tfc_status_free(stopped);
    execute(store, "CREATE TABLE stopped AS SELECT * FROM v_op; DROP TRIGGER stop");
    assert_ok(tfc_record_write(&record, store, &run));
  }
  tfc_placement_free(document);
  tfc_solution_deinit(&solution);
  tfc_text_deinit(&text);
  instance_free(&in);
  return store;
}

static int64_t number(struct tfc_store *store, const char *sql) {
  sqlite3_stmt *q = NULL;
  assert_int_equal(sqlite3_prepare_v2(tfc_store_handle(store), sql, -1, &q, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  const int64_t value = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  return value;
}

// A run whose record is written again (it was resumed) has its earlier record until the new one is complete.
static void test_written_again(void **state) {
  (void)state;
  struct tfc_store *store = record_of_chain(5, true);
  assert_int_equal(number(store, "SELECT COUNT(*) FROM before"), 5);
  static const char *const same[] = {"SELECT COUNT(*) FROM (SELECT * FROM before EXCEPT SELECT * FROM stopped)",
                                     "SELECT COUNT(*) FROM (SELECT * FROM before EXCEPT SELECT * FROM v_op)"};
  for (int i = 0; i < 2; i++) assert_int_equal(number(store, same[i]), 0);
  assert_int_equal(number(store, "SELECT COUNT(*) FROM v_op"), 5);
  assert_int_equal(number(store, "SELECT COUNT(*) FROM run"), 1);
  tfc_store_close(store);
}

static int count_steps(void *steps) {
  ++*(uint64_t *)steps;
  return 0;
}
// Returns what SQLite does for a list, in units of a hundred instructions of its machine.
static uint64_t work_of(struct tfc_store *store, uint32_t list) {
  tfc_status (*const lists[])(struct tfc_store *, int64_t, struct tfc_report_lists *) = {
      tfc_report_nodes, tfc_report_critical, tfc_report_gaps, tfc_report_memory};
  struct tfc_report_lists out = {0};
  struct tfc_text text = {0};
  uint64_t steps = 0;
  sqlite3_progress_handler(tfc_store_handle(store), 100, count_steps, &steps);
  if (list < 4) assert_ok(lists[list](store, 1, &out));
  if (list == 4) assert_ok(tfc_report_compare(store, (const int64_t[]){1, 1}, 2, &out));
  if (list == 5) assert_ok(tfc_report_show(store, 1, &text));
  sqlite3_progress_handler(tfc_store_handle(store), 0, NULL, NULL);
  tfc_report_lists_deinit(&out);
  tfc_text_deinit(&text);
  return steps;
}

// A run of three times as many operations costs three times as much work, and not nine times as much, although its
// database has no statistics from which SQLite could plan.
static void test_work(void **state) {
  (void)state;
  struct tfc_store *small = record_of_chain(1000, false), *large = record_of_chain(3000, false);
  for (uint32_t list = 0; list < 6; list++) {
    const uint64_t few = work_of(small, list), many = work_of(large, list);
    if (many > 4 * few) fail_msg("list %u: %llu and %llu", list, (unsigned long long)few, (unsigned long long)many);
  }
  tfc_store_close(small);
  tfc_store_close(large);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_rivals, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_gap, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_verdict, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_medians, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_idle, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_compare, set_up, tear_down),
      cmocka_unit_test(test_written_again),
      cmocka_unit_test(test_work),
  };
  return cmocka_run_group_tests_name("figures", tests, NULL, NULL);
}
