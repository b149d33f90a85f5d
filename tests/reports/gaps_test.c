// Tests tfc-report gaps, and what the first screen says of idle, of simulated and of unusually slow steps: with steps
// in which every microsecond was chosen by hand, and with queries of the tests' own on a run of many operations.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "profiler/store.h"
#include "reports/compare.h"
#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/nodes.h"
#include "reports/query.h"
#include "reports/reports.h"
#include "tests/common/change.h"
#include "tests/reports/by_hand.h"
#include "tests/reports/lists_runs.h"

static void test_gaps_by_hand(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  assert_ok(tfc_report_gaps(hand, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  static const struct {
    const char *device, *cause, *producer, *source;
    double start, gap, dependency, transfer, other;
  } expected[] = {// the list begins with the longest gap
                  {"cpu:1", "dependency", "net/d", "cpu:0", 255, 227, 195, 30, 2},
                  {"cpu:1", "dependency", "net/a", "cpu:0", 0, 155, 100, 50, 5},
                  {"cpu:0", "end", "", "", 450, 150, 0, 0, 150}};
  assert_int_equal(t->row_count, 3);
  for (uint32_t r = 0; r < 3; r++) {
    assert_true(tfc_str_is(tfc_table_text(t, r, "device"), expected[r].device));
    assert_true(tfc_str_is(tfc_table_text(t, r, "cause"), expected[r].cause));
    assert_true(tfc_str_is(tfc_table_text(t, r, "producer"), expected[r].producer));
    assert_true(tfc_str_is(tfc_table_text(t, r, "source"), expected[r].source));
    assert_near(tfc_table_number(t, r, "start_us"), expected[r].start);
    assert_near(tfc_table_number(t, r, "gap_us"), expected[r].gap);
    assert_near(tfc_table_number(t, r, "dependency_us"), expected[r].dependency);
    assert_near(tfc_table_number(t, r, "transfer_us"), expected[r].transfer);
    assert_near(tfc_table_number(t, r, "other_us"), expected[r].other);
  }
  assert_said(&lists.text,
              "cpu:1 waits 195.0 us for net/d of cpu:0,\n    then 30.0 us for its transfer, then 2.00 us to begin");
  assert_said(&lists.text, "cpu:0 has nothing more to do: 150.0 us to the end of the step");
  t = &lists.tables[1];
  assert_near(tfc_table_number(t, row_of(t, "device", "cpu:1"), "idle_us"), 600 - 218);
  assert_near(tfc_table_number(t, row_of(t, "device", "cpu:0"), "end_us"), 150);
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
}

// cpu:1 computes c until 449 us, and only then fetches the inputs of e: b (449.2 to 449.8 us) and d (450 to 480 us),
// which has no execution of its own, because it is fused and computed from b. b itself ended at 400 us.
static void test_fetched_late(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_store *db =
      made("late", "oversubscribed",
           "DELETE FROM op WHERE node_id = 3; UPDATE op SET duration_ns = 294000 WHERE node_id = 2;"
           "UPDATE edge SET producer = 1, consumer = 4 WHERE producer = 2;"
           "UPDATE transfer SET node_id = 1, source = 0, target = 1, start_ns = 449200, duration_ns = 600"
           " WHERE node_id = 2");
  static const struct {
    const char *kind, *node;
    double start, time, waited;
  } steps[] = {{"operation", "net/a", 0, 100, 0},   {"transfer", "net/a", 100, 50, 0},
               {"operation", "net/c", 155, 294, 5}, {"transfer", "net/b", 449.2, 0.6, 0.2},
               {"transfer", "net/d", 450, 30, 0.2}, {"operation", "net/e", 482, 118, 2}};
  assert_ok(tfc_report_critical(db, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  assert_int_equal(t->row_count, 6);
  for (uint32_t r = 0; r < 6; r++) {
    assert_true(tfc_str_is(tfc_table_text(t, r, "kind"), steps[r].kind));
    assert_true(tfc_str_is(tfc_table_text(t, r, "node"), steps[r].node));
    assert_near(tfc_table_number(t, r, "start_us"), steps[r].start);
    assert_near(tfc_table_number(t, r, "time_us"), steps[r].time);
    assert_near(tfc_table_number(t, r, "waited_us"), steps[r].waited);
  }
  tfc_report_lists_deinit(&lists);
  // In the gap before e, 30.6 us are transfers; for the rest the device had all its inputs.
  assert_ok(tfc_report_gaps(db, -1, &lists));
  t = &lists.tables[0];
  uint32_t r = 0;
  while (r < t->row_count && !tfc_str_is(tfc_table_text(t, r, "node"), "net/e")) r++;
  assert_true(r < t->row_count);
  assert_near(tfc_table_number(t, r, "gap_us"), 33);
  assert_near(tfc_table_number(t, r, "dependency_us"), 0);
  assert_near(tfc_table_number(t, r, "transfer_us"), 30.6);
  assert_near(tfc_table_number(t, r, "other_us"), 2.4);
  assert_said(&lists.text, "then 2.40 us to begin (cores are shared)");
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  // b could have ended 52 us later without delaying e by the arrival of d; c could not.
  assert_ok(tfc_report_nodes(db, -1, &lists));
  t = &lists.tables[0];
  assert_near(tfc_table_number(t, row_of(t, "node", "net/b"), "slack_us"), 52);
  assert_near(tfc_table_number(t, row_of(t, "node", "net/c"), "slack_us"), 0);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// d ends at 450 us on cpu:0, but its transfer waits until 470 us for b's, which goes to the same device. b's transfer
// may have begun before d ended, or when it ended.
static void test_transfer_behind_another(void **state) {
  (void)state;
  static const int64_t starts[] = {440, 450};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    char file[128], sql[512];
    struct tfc_store *db = NULL;
    struct tfc_report_lists lists;
    snprintf(file, sizeof file, "%s/behind%zu.db", folder, i);
    assert_ok(write_by_hand(file, "measured"));
    assert_ok(tfc_store_open(file, &(struct tfc_store_options){.write = true, .purpose = "test"}, &db));
    snprintf(sql, sizeof sql,
             "UPDATE edge SET producer = 1, consumer = 4 WHERE producer = 2;"
             "UPDATE transfer SET node_id = 1, source = 0, target = 1, start_ns = %lld000, duration_ns = %lld000 WHERE"
             " node_id = 2;"
             "UPDATE transfer SET start_ns = 470000, duration_ns = 10000 WHERE node_id = 3",
             (long long)starts[i], (long long)(470 - starts[i]));
    assert_int_equal(sqlite3_exec(tfc_store_handle(db), sql, NULL, NULL, NULL), SQLITE_OK);
    const double start = (double)starts[i];
    const struct {
      const char *kind, *node;
      double start, time, waited;
    } steps[] = {{"operation", "net/a", 0, 100, 0},
                 {"operation", "net/b", 100, 300, 0},
                 {"transfer", "net/b", start, 470 - start, start - 400},
                 {"transfer", "net/d", 470, 10, 0},
                 {"operation", "net/e", 482, 118, 2}};
    assert_ok(tfc_report_critical(db, -1, &lists));
    const struct tfc_table *t = &lists.tables[0];
    assert_int_equal(t->row_count, 5);
    for (uint32_t r = 0; r < 5; r++) {
      assert_true(tfc_str_is(tfc_table_text(t, r, "kind"), steps[r].kind));
      assert_true(tfc_str_is(tfc_table_text(t, r, "node"), steps[r].node));
      assert_near(tfc_table_number(t, r, "start_us"), steps[r].start);
      assert_near(tfc_table_number(t, r, "time_us"), steps[r].time);
      assert_near(tfc_table_number(t, r, "waited_us"), steps[r].waited);
    }
    tfc_report_lists_deinit(&lists);
    tfc_store_close(db);
  }
}

// The executions of b on cpu:1 overlap: each reads the tensor of a that came first, while a runs on and waits for the
// previous b. So that transfer is on the path once for each b, and the path has more items than the trace has rows.
static void test_overlapping_operations(void **state) {
  (void)state;
  enum { TIMES = 40 };
  struct tfc_report_lists lists;
  struct tfc_store *db = made("overlapping", "measured", NULL);
  char *sql =
      tfc_format("DELETE FROM op; DELETE FROM transfer; DELETE FROM edge WHERE producer <> 0 OR consumer <> 1;"
                 "INSERT INTO edge (run_id, edge_id, producer, output, consumer, bytes) SELECT run_id, 9, 1, output, "
                 "0, bytes FROM edge;"
                 "WITH RECURSIVE k(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM k WHERE n < %d) INSERT INTO op "
                 "(placement, step, position, node_id, device_id, start_ns, duration_ns, dispatch_ns, launched_ns)"
                 " SELECT 1, 0, 2 * n, 0, 0, 1000 * n - 500, 100000, NULL, NULL FROM k UNION ALL"
                 " SELECT 1, 0, 2 * n + 1, 1, 1, 1000 * n, 200000, NULL, NULL FROM k;"
                 "WITH RECURSIVE k(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM k WHERE n < %d) INSERT INTO"
                 " transfer (placement, step, position, node_id, output, source, target, bytes, start_ns, duration_ns) "
                 "SELECT 1, 0, 0, 0, 0, 0, 1, 8, 600, 300 UNION ALL"
                 " SELECT 1, 0, n, 1, 0, 1, 0, 8, 1000 * n - 800, 200 FROM k",
                 TIMES, TIMES);
  char *error = NULL;
  if (sqlite3_exec(tfc_store_handle(db), sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s", error);
  free(sql);
  assert_ok(tfc_report_critical(db, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  assert_int_equal(t->row_count, 4 * TIMES - 1); // a, its transfer, b, and b's transfer but for the first a
  for (uint32_t r = 0; r < t->row_count; r++) {
    assert_true(tfc_str_is(tfc_table_text(t, r, "kind"), r % 2 ? "transfer" : "operation"));
    assert_true(tfc_str_is(tfc_table_text(t, r, "node"), r % 4 < 2 ? "net/a" : "net/b"));
  }
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// The devices of this run execute one operation at a time, so all time without an operation is a gap.
static void test_gaps_of_a_run(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_query_args args;
  char sql[700];
  assert_ok(tfc_report_gaps(store, -1, &lists));
  assert_ok(tfc_report_focus(store, -1, &args));
  const struct tfc_table *t = &lists.tables[1];
  assert_int_equal(t->row_count, 4);
  for (uint32_t r = 0; r < 4; r++) {
    snprintf(sql, sizeof sql,
             "SELECT (SELECT MAX(start_us + duration_us) FROM v_op WHERE placement = 'answer' AND step = %lld) -"
             " SUM(duration_us) FROM v_op WHERE placement = 'answer' AND step = %lld AND device = '%s'",
             (long long)args.step, (long long)args.step, tfc_table_text(t, r, "device").data);
    double idle = ask(store, sql);
    if (fabs(tfc_table_number(t, r, "idle_us") - idle) > 0.2) // truncated to nanoseconds 160 times
      fail_msg("%.9g instead of %.9g", tfc_table_number(t, r, "idle_us"), idle);
    assert_near(tfc_table_number(t, r, "idle_us"),
                tfc_table_number(t, r, "dependency_us") + tfc_table_number(t, r, "transfer_us") +
                    tfc_table_number(t, r, "other_us") + tfc_table_number(t, r, "end_us"));
  }
  const struct tfc_table *gaps = &lists.tables[0];
  uint32_t r = 0;
  while (tfc_str_is(tfc_table_text(gaps, r, "cause"), "end")) r++; // the longest one before an operation
  snprintf(
      sql, sizeof sql,
      "SELECT MAX(start_us - before) FROM (SELECT start_us, COALESCE(LAG(start_us + duration_us) OVER (PARTITION BY"
      " device ORDER BY start_us, position), 0) AS before FROM v_op WHERE placement = 'answer' AND step = %lld)",
      (long long)args.step);
  assert_near(tfc_table_number(gaps, r, "gap_us"), ask(store, sql));
  // The operation after the gap waited for a tensor: until its producer ended, and then until its transfer ended.
  snprintf(
      sql, sizeof sql,
      "SELECT MIN(%.17g, MAX(0, MAX(t.start_us + t.duration_us) - %.17g)) FROM v_op o JOIN v_edge e ON e.consumer_id"
      " = o.node_id JOIN v_transfer t ON t.placement = o.placement AND t.step = o.step AND t.node_id = e.producer_id"
      " AND t.target_id = o.device_id WHERE o.placement = 'answer' AND o.step = %lld AND o.node = '%s'",
      tfc_table_number(gaps, r, "gap_us"), tfc_table_number(gaps, r, "start_us"), (long long)args.step,
      tfc_table_text(gaps, r, "node").data);
  assert_near(tfc_table_number(gaps, r, "dependency_us") + tfc_table_number(gaps, r, "transfer_us"), ask(store, sql));
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
}

// Of three traced steps of 600, 604 and 60000 us the last one is an outlier: its e ended late. Shares and the critical
// path describe the other two.
static void test_one_slow_step(void **state) {
  (void)state;
  char file[128];
  struct tfc_store *db = NULL;
  struct tfc_report_lists lists;
  struct tfc_text text = {0};
  snprintf(file, sizeof file, "%s/slow.db", folder);
  assert_ok(write_by_hand(file, "measured"));
  change_database(file,
                  "CREATE TEMP TABLE s AS SELECT * FROM step WHERE step = 0; UPDATE s SET step = 2, duration_ns ="
                  " 60000000; INSERT INTO step SELECT * FROM s;"
                  "CREATE TEMP TABLE b AS SELECT * FROM busy WHERE step = 0; UPDATE b SET step = 2; INSERT INTO busy"
                  " SELECT * FROM b;"
                  "CREATE TEMP TABLE t AS SELECT * FROM transfer WHERE step = 0; UPDATE t SET step = 2; INSERT INTO"
                  " transfer SELECT * FROM t;"
                  "CREATE TEMP TABLE o AS SELECT * FROM op WHERE step = 0; UPDATE o SET step = 2; UPDATE o SET start_ns"
                  " = 59882000 WHERE node_id = 4; INSERT INTO op SELECT * FROM o;"
                  "UPDATE busy SET launch_ns = 0, transfer_ns = 150000, dependency_ns = 0, end_ns = 0;"
                  "UPDATE busy SET transfer_ns = 59782000 WHERE step = 2 AND device_id = 1");
  assert_ok(tfc_store_open(file, &(struct tfc_store_options){0}, &db));
  assert_ok(tfc_report_critical(db, -1, &lists));
  const struct tfc_table *t = &lists.tables[1];
  assert_near(tfc_table_number(t, row_of(t, "op", "waiting"), "time_us"), 2);
  assert_near(tfc_table_number(t, row_of(t, "op", "MatMul"), "percent"), 100.0 * 400 / 602);
  assert_near(tfc_table_number(t, row_of(t, "op", "Softmax"), "time_us"), 120);
  assert_said(&lists.text, "Mean of 2 of the 3 traced steps, those nearest to the median");
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_show(db, -1, &text));
  assert_said(&text, "  cpu:0      measured         75.0 % "); // 450 of 600 us
  assert_said(&text, "  cpu:1      measured         36.3 % "); // 218 of 600 us
  assert_said(&text, "  cpu:1            0.0 %      25.0 % "); // 150 of 600 us
  tfc_text_deinit(&text);
  assert_ok(tfc_report_html(db, -1, &text));
  assert_said(&text, "data-l=\"busy\">75 %</td>");
  assert_said(&text, "data-l=\"busy\">36 %</td>");
  assert_said(&text, "Shares are those of the step");
  tfc_text_deinit(&text);
  assert_ok(tfc_report_compare(db, (const int64_t[]){1, 1}, 2, &lists));
  t = &lists.tables[3];
  assert_near(tfc_table_number(t, row_of(t, "device", "cpu:1"), "busy_percent"), 100.0 * 218 / 600);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// A device that ran nothing has no gap between operations, but it stood still for the whole step.
static void test_idle_device(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_text text = {0};
  struct tfc_store *db = made("idle", "measured", "DELETE FROM op WHERE device_id = 1; DELETE FROM transfer");
  assert_ok(tfc_report_gaps(db, -1, &lists));
  assert_int_equal(lists.tables[0].row_count, 0);
  const struct tfc_table *t = &lists.tables[1];
  assert_int_equal(t->row_count, 1);
  assert_true(tfc_str_is(tfc_table_text(t, 0, "device"), "cpu:1"));
  assert_near(tfc_table_number(t, 0, "gaps"), 0);
  assert_near(tfc_table_number(t, 0, "idle_us"), 450);
  assert_near(tfc_table_number(t, 0, "end_us"), 450);
  assert_said(&lists.text, "  cpu:1 ran nothing.\n");
  assert_null(strstr(lists.text.data, "No device stood still"));
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_show(db, -1, &text));
  assert_said(&text, "Longest gaps\n  cpu:1 ran nothing\n");
  tfc_text_deinit(&text);
  assert_ok(tfc_report_html(db, -1, &text));
  assert_said(&text, "<p>cpu:1 ran nothing.</p>");
  assert_null(strstr(text.data, "No device stood still"));
  tfc_text_deinit(&text);
  // Of several such devices one is named.
  assert_int_equal(
      sqlite3_exec(tfc_store_handle(db),
                   "CREATE TEMP TABLE d AS SELECT * FROM device WHERE device_id = 1; UPDATE d SET device_id"
                   " = 2, name = 'cpu:2'; INSERT INTO device SELECT * FROM d",
                   NULL, NULL, NULL),
      SQLITE_OK);
  assert_ok(tfc_report_gaps(db, -1, &lists));
  assert_said(&lists.text, "  cpu:1 and 1 more device ran nothing.\n");
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  // On one device that never waits nobody stood still.
  assert_int_equal(sqlite3_exec(tfc_store_handle(db), "DELETE FROM device WHERE device_id > 0", NULL, NULL, NULL),
                   SQLITE_OK);
  assert_ok(tfc_report_gaps(db, -1, &lists));
  assert_said(&lists.text, "  No device stood still.\n");
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// Figures of a simulated step say so, on the terminal and on the page.
static void test_simulated_is_said(void **state) {
  (void)state;
  static const char *const said[] = {"<h3>Longest gaps (simulated)</h3>", "<h3>Critical path by type (simulated)</h3>",
                                     "<h3>Moved in the step (simulated)</h3>",
                                     "<h2>The answer and its rivals (simulated)</h2>"},
                           *const shown[] = {"\n  simulated placement ", "\nLongest gaps (simulated)\n",
                                             "\n  moved (simulated) "};
  for (int modelled = 0; modelled < 2; modelled++) {
    char file[128];
    struct tfc_store *db = NULL;
    struct tfc_text page = {0}, text = {0};
    snprintf(file, sizeof file, "%s/label%d.db", folder, modelled);
    assert_ok(write_by_hand(file, modelled ? "modelled" : "measured"));
    assert_ok(tfc_store_open(file, &(struct tfc_store_options){0}, &db));
    assert_ok(tfc_report_html(db, -1, &page));
    assert_ok(tfc_report_show(db, -1, &text));
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
      if ((strstr(page.data, said[i]) != NULL) != modelled) fail_msg("'%s' of %d", said[i], modelled);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
      if ((strstr(text.data, shown[i]) != NULL) != modelled) fail_msg("'%s' of %d: %s", shown[i], modelled, text.data);
    assert_fits(&text);
    tfc_text_deinit(&page);
    tfc_text_deinit(&text);
    tfc_store_close(db);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gaps_by_hand),
      cmocka_unit_test(test_fetched_late),
      cmocka_unit_test(test_transfer_behind_another),
      cmocka_unit_test(test_overlapping_operations),
      cmocka_unit_test(test_gaps_of_a_run),
      cmocka_unit_test(test_one_slow_step),
      cmocka_unit_test(test_idle_device),
      cmocka_unit_test(test_simulated_is_said),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
