// Tests tfc-report nodes, critical, memory and compare (gaps: gaps_test.c): with a step in which every microsecond was
// chosen by hand, and with queries of the tests' own on a run of many operations.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/store.h"
#include "reports/compare.h"
#include "reports/compare_page.h"
#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/nodes.h"
#include "reports/query.h"
#include "reports/reports.h"
#include "runtime/base/file.h"
#include "runtime/base/units.h"
#include "tests/common/change.h"
#include "tests/common/sample_run.h"
#include "tests/reports/by_hand.h"
#include "tests/reports/html.h"
#include "tests/reports/lists_runs.h"

static void test_nodes_by_hand(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  assert_ok(tfc_report_nodes(hand, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  static const struct {
    const char *name;
    double median, q1, q3, slack;
  } expected[] = {{"net/b", 300, 300, 300, 0}, // sorted by time
                  {"net/e", 120, 119, 121, 0},
                  {"net/a", 100, 100, 100, 0},
                  {"net/c", 100, 100, 100, 400 - 20 - 255}, // d starts at 400, and its transfer takes 20
                  {"net/d", 50, 50, 50, 0}};
  assert_int_equal(t->row_count, 5);
  for (uint32_t r = 0; r < 5; r++) {
    assert_true(tfc_str_is(tfc_table_text(t, r, "node"), expected[r].name));
    assert_near(tfc_table_number(t, r, "median_us"), expected[r].median);
    assert_near(tfc_table_number(t, r, "q1_us"), expected[r].q1);
    assert_near(tfc_table_number(t, r, "q3_us"), expected[r].q3);
    assert_near(tfc_table_number(t, r, "slack_us"), expected[r].slack);
    assert_near(tfc_table_number(t, r, "samples"), 2);
  }
  assert_fits(&lists.text);
  assert_null(strstr(lists.text.data, "simulated"));
  struct tfc_text csv = {0};
  tfc_table_csv(t, &csv);
  assert_int_equal(strncmp(csv.data, "node_id,node,op,device,unit_id,samples,median_us,", 49), 0);
  assert_non_null(strstr(csv.data, "\r\n1,net/b,MatMul,cpu:0,1,2,300,300,300,300,2000,"));
  tfc_text_deinit(&csv);
  tfc_report_lists_deinit(&lists);
}

static void test_nodes_of_a_run(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  char sql[512];
  assert_ok(tfc_report_nodes(store, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  assert_near(t->row_count, ask(store, "SELECT COUNT(DISTINCT node_id) FROM v_op WHERE placement = 'answer'"));
  double last = INFINITY;
  for (uint32_t r = 0; r < t->row_count; r += 1 + r / 4) {
    double took = tfc_table_number(t, r, "step_us");
    assert_true(took <= last);
    last = took;
    static const char *const columns[] = {"q1_us", "median_us", "q3_us"};
    for (int q = 0; q < 3; q++) { // 30 samples: the quantiles lie at 7.25, 14.5 and 21.75 of 0 to 29
      const int whole[] = {7, 14, 21};
      const double part[] = {0.25, 0.5, 0.75};
      snprintf(
          sql, sizeof sql,
          "SELECT (SELECT duration_us FROM v_op WHERE placement = 'answer' AND node_id = %.0f ORDER BY 1 LIMIT 1"
          " OFFSET %d) * %g + (SELECT duration_us FROM v_op WHERE placement = 'answer' AND node_id = %.0f ORDER BY 1"
          " LIMIT 1 OFFSET %d) * %g",
          tfc_table_number(t, r, "node_id"), whole[q], 1 - part[q], tfc_table_number(t, r, "node_id"), whole[q] + 1,
          part[q]);
      assert_near(tfc_table_number(t, r, columns[q]), ask(store, sql));
    }
    assert_true(tfc_table_number(t, r, "slack_us") >= 0);
  }
  assert_non_null(strstr(lists.text.data, "and 120 more"));
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  assert_fails(tfc_report_nodes(store, 77, &lists), TFC_NOT_FOUND, "77");
}

// A long name has what the other columns leave of the width, its end first; as rows of a table it is whole.
static void test_wide_names(void **state) {
  (void)state;
  static const char name[] = "gradients/a_model/with/scopes/in/scopes/layer2/step19/MatMul_grad/MatMul_1";
  char sql[256];
  struct tfc_report_lists lists;
  snprintf(sql, sizeof sql, "UPDATE node SET name = '%s' WHERE name = 'net/b'", name);
  struct tfc_store *db = made("long_names", "measured", sql);
  assert_ok(tfc_report_nodes(db, 1, &lists));
  assert_fits(&lists.text);
  assert_said(&lists.text, "..yer2/step19/MatMul_grad/MatMul_1");
  assert_true(tfc_str_is(tfc_table_text(&lists.tables[0], 0, "node"), name));
  struct tfc_text csv = {0};
  tfc_table_csv(&lists.tables[0], &csv);
  assert_said(&csv, name);
  tfc_text_deinit(&csv);
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_nodes_within(db, 1, 132, &lists));
  assert_said(&lists.text, name);
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_critical(db, 1, &lists));
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

static void test_critical_by_hand(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  assert_ok(tfc_report_critical(hand, -1, &lists));
  static const struct {
    const char *kind, *node;
    double start, time, waited;
  } expected[] = {{"operation", "net/a", 0, 100, 0},
                  {"operation", "net/b", 100, 300, 0},
                  {"operation", "net/d", 400, 50, 0},
                  {"transfer", "net/d", 450, 30, 0},
                  {"operation", "net/e", 482, 118, 2}};
  const struct tfc_table *t = &lists.tables[0];
  assert_int_equal(t->row_count, 5);
  for (uint32_t r = 0; r < 5; r++) {
    assert_true(tfc_str_is(tfc_table_text(t, r, "kind"), expected[r].kind));
    assert_true(tfc_str_is(tfc_table_text(t, r, "node"), expected[r].node));
    assert_near(tfc_table_number(t, r, "start_us"), expected[r].start);
    assert_near(tfc_table_number(t, r, "time_us"), expected[r].time);
    assert_near(tfc_table_number(t, r, "waited_us"), expected[r].waited);
  }
  assert_near(tfc_table_number(t, 3, "bytes"), 4000);
  t = &lists.tables[1]; // means of the two steps, 600 and 604 us long
  assert_near(tfc_table_number(t, row_of(t, "op", "MatMul"), "time_us"), 400);
  assert_near(tfc_table_number(t, row_of(t, "op", "MatMul"), "percent"), 100 * 800.0 / 1204);
  assert_near(tfc_table_number(t, row_of(t, "op", "MatMul"), "count"), 2);
  assert_near(tfc_table_number(t, row_of(t, "op", "Softmax"), "time_us"), 120);
  assert_near(tfc_table_number(t, row_of(t, "op", "transfers"), "time_us"), 30);
  assert_near(tfc_table_number(t, row_of(t, "op", "waiting"), "time_us"), 2);
  t = &lists.tables[2];
  assert_int_equal(t->row_count, 1);
  assert_true(tfc_str_is(tfc_table_text(t, 0, "target"), "cpu:1"));
  assert_near(tfc_table_number(t, 0, "percent"), 100 * 60.0 / 1204);
  assert_near(tfc_table_number(t, 0, "steps"), 2);
  assert_fits(&lists.text);
  assert_null(strstr(lists.text.data, "simulated"));
  tfc_report_lists_deinit(&lists);
}

// A query finds the path of a step of 160 operations on four devices, from its end to its beginning. The item before
// each operation is the one that ended last: the arrival of an input, the operation that computed it, or the previous
// operation on the same device.
static void test_critical_of_a_run(void **state) {
  (void)state;
  static const char by_sql[] =
      "WITH RECURSIVE o AS MATERIALIZED (SELECT node_id AS n, device_id AS d, start_us AS s, start_us + duration_us AS "
      "e"
      " FROM v_op WHERE placement = 'answer' AND step = %lld), x AS MATERIALIZED (SELECT node_id AS n, target_id AS d,"
      " start_us + duration_us AS e FROM v_transfer WHERE placement = 'answer' AND step = %lld),"
      " waits AS MATERIALIZED (SELECT o.n, p.n AS before, COALESCE(x.e, p.e) AS at FROM o JOIN v_edge g ON "
      "g.consumer_id"
      " = o.n JOIN o p ON p.n = g.producer_id LEFT JOIN x ON x.n = p.n AND x.d = o.d AND p.d <> o.d"
      " UNION ALL SELECT o.n, p.n, p.e FROM o JOIN o p ON p.d = o.d AND p.n <> o.n AND p.e <= o.s + 0.002),"
      " ranked AS MATERIALIZED (SELECT n, before, ROW_NUMBER() OVER (PARTITION BY n ORDER BY at DESC) AS k FROM waits),"
      " path(n) AS (SELECT n FROM (SELECT n FROM o ORDER BY e DESC LIMIT 1) UNION ALL SELECT r.before FROM path JOIN"
      " ranked r ON r.n = path.n AND r.k = 1) ";
  struct tfc_report_lists lists;
  struct tfc_query_args args;
  char sql[2000];
  assert_ok(tfc_report_critical(store, -1, &lists));
  assert_ok(tfc_report_focus(store, -1, &args));
  const struct tfc_table *t = &lists.tables[0];
  double operations = 0, sum = 0, time = 0, end = 0, nodes = 0;
  for (uint32_t r = 0; r < t->row_count; r++) {
    assert_near(tfc_table_number(t, r, "start_us"), end + tfc_table_number(t, r, "waited_us"));
    end = tfc_table_number(t, r, "start_us") + tfc_table_number(t, r, "time_us");
    sum += tfc_table_number(t, r, "time_us") + tfc_table_number(t, r, "waited_us");
    if (!tfc_str_is(tfc_table_text(t, r, "kind"), "operation")) continue;
    operations++, time += tfc_table_number(t, r, "time_us");
    snprintf(sql, sizeof sql, "SELECT node_id FROM v_node WHERE name = '%s'", tfc_table_text(t, r, "node").data);
    nodes += ask(store, sql);
  }
  snprintf(sql, sizeof sql, "SELECT MAX(start_us + duration_us) FROM v_op WHERE placement = 'answer' AND step = %lld",
           (long long)args.step);
  assert_near(sum, ask(store, sql));
  assert_true(operations > 5 && t->row_count > operations); // operations and transfers
  int size = snprintf(sql, sizeof sql, by_sql, (long long)args.step, (long long)args.step);
  snprintf(sql + size, sizeof sql - (size_t)size, "SELECT COUNT(*) FROM path");
  assert_near(operations, ask(store, sql));
  snprintf(sql + size, sizeof sql - (size_t)size, "SELECT SUM(n) FROM path");
  assert_near(nodes, ask(store, sql));
  snprintf(sql + size, sizeof sql - (size_t)size, "SELECT SUM(e - s) FROM path JOIN o USING (n)");
  assert_true(fabs(time - ask(store, sql)) < 0.002 * operations);
  double percent = 0;
  for (uint32_t r = 0; r < lists.tables[1].row_count; r++) percent += tfc_table_number(&lists.tables[1], r, "percent");
  assert_near(percent, 100);
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
}

// Times of a model are called simulated, and missing data is reported as missing.
static void test_simulated(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_store *db = made("modelled", "modelled", NULL);
  tfc_status (*const all[])(struct tfc_store *, int64_t, struct tfc_report_lists *) = {
      tfc_report_nodes, tfc_report_critical, tfc_report_gaps, tfc_report_memory};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    assert_ok(all[i](db, -1, &lists));
    assert_said(&lists.text, "(simulated)");
    tfc_report_lists_deinit(&lists);
  }
  assert_int_equal(sqlite3_exec(tfc_store_handle(db), "DELETE FROM op", NULL, NULL, NULL), SQLITE_OK);
  assert_fails(tfc_report_critical(db, -1, &lists), TFC_NOT_FOUND, "no step whose operations were recorded");
  assert_fails(tfc_report_gaps(db, -1, &lists), TFC_NOT_FOUND, "no step whose operations were recorded");
  tfc_store_close(db);
}

// Without recorded edges, an operation counts as waiting for the tensor that arrived last.
static void test_without_edges(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_store *db = made("edges", "measured", "DELETE FROM edge");
  assert_ok(tfc_report_critical(db, -1, &lists));
  assert_int_equal(lists.tables[0].row_count, 5);
  assert_said(&lists.text, "This run has no edges");
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_nodes(db, -1, &lists));
  assert_true(isnan(tfc_table_number(&lists.tables[0], 0, "slack_us")));
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// An operation that runs three times in a step takes what the three runs took in it, and is listed and added up with
// that.
static void test_node_in_a_loop(void **state) {
  (void)state;
  char file[128];
  struct tfc_store *db = NULL;
  struct tfc_report_lists lists;
  struct tfc_query_args args;
  struct tfc_table took;
  snprintf(file, sizeof file, "%s/loop.db", folder);
  assert_ok(write_by_hand(file, "measured"));
  change_database(file,
                  "INSERT INTO op (placement, step, position, node_id, device_id, start_ns, duration_ns, dispatch_ns, "
                  "launched_ns) SELECT placement, step, position + 100 * k, node_id, device_id, start_ns + k,"
                  " duration_ns, dispatch_ns, launched_ns FROM op, (SELECT 1 AS k UNION SELECT 2) WHERE node_id = 4;"
                  " INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, total_ns) "
                  "SELECT placement, node_id, device_id, COUNT(*), AVG(duration_ns),"
                  " MIN(duration_ns), SUM(duration_ns) FROM op WHERE node_id = 4 GROUP BY 1, 2, 3");
  assert_ok(tfc_store_open(file, &(struct tfc_store_options){.purpose = "test"}, &db));
  assert_ok(tfc_report_nodes(db, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  assert_true(tfc_str_is(tfc_table_text(t, 0, "node"), "net/e")); // before net/b, which takes 300 us, once
  assert_near(tfc_table_number(t, 0, "runs"), 3);
  assert_near(tfc_table_number(t, 0, "median_us"), 120);
  assert_near(tfc_table_number(t, 0, "step_us"), 3 * 118);
  assert_near(tfc_table_number(t, row_of(t, "node", "net/b"), "step_us"), 300);
  assert_said(&lists.text, "\n   354.0 us ");
  assert_fits(&lists.text);
  assert_ok(tfc_report_focus(db, -1, &args));
  assert_ok(tfc_table_query(db, TFC_SQL_TOOK "SELECT us, n FROM took WHERE node_id = 4", &args, &took));
  assert_int_equal(took.row_count, 1);
  assert_near(tfc_table_number(&took, 0, "us"), 3 * 118);
  assert_near(tfc_table_number(&took, 0, "n"), 3);
  tfc_table_deinit(&took);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// A node that did not run in the step is listed with what its operations took in others, and has no slack.
static void test_node_outside_the_step(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_store *db = made("outside", "measured",
                              "INSERT INTO op_total (placement, node_id, device_id, samples, median_ns, fastest_ns, "
                              "total_ns) SELECT placement, node_id, device_id, 2, duration_ns, duration_ns,"
                              " 2 * duration_ns FROM op WHERE step = 0; DELETE FROM op WHERE node_id = 2");
  assert_ok(tfc_report_nodes(db, -1, &lists));
  const struct tfc_table *t = &lists.tables[0];
  for (uint32_t r = 0; r < t->row_count; r++)
    assert_true(isnan(tfc_table_number(t, r, "slack_us")) == (tfc_table_number(t, r, "node_id") == 2));
  assert_near(tfc_table_number(t, row_of(t, "node", "net/c"), "median_us"), 100);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

static void assert_held(const struct tfc_report_lists *lists, const char *device, double named, double at,
                        const char *const *nodes) {
  const struct tfc_table *t = &lists->tables[0];
  uint32_t r = row_of(t, "device", device), seen = 0;
  double sum = 0;
  assert_near(tfc_table_number(t, r, "named_bytes"), named);
  assert_near(tfc_table_number(t, r, "fullest_us"), at);
  t = &lists->tables[1];
  for (uint32_t i = 0; i < t->row_count; i++) {
    if (!tfc_str_is(tfc_table_text(t, i, "device"), device)) continue;
    assert_non_null(nodes[seen]);
    assert_true(tfc_str_is(tfc_table_text(t, i, "node"), nodes[seen++])); // the list begins with the largest tensor
    sum += tfc_table_number(t, i, "bytes");
  }
  assert_null(nodes[seen]);
  assert_near(sum, named);
}
static void test_memory_by_hand(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  assert_ok(tfc_report_memory(hand, -1, &lists));
  // When d starts, a is no longer needed, but b and c (from 255 on) are.
  assert_held(&lists, "cpu:0", 5000 + 4000 + 3000 + 2000, 400,
              (const char *const[]){"net/weights", "net/d", "net/b", "net/c", NULL});
  assert_held(&lists, "cpu:1", 4000, 450, (const char *const[]){"net/d", NULL});
  const struct tfc_table *t = &lists.tables[0];
  assert_near(tfc_table_number(t, 0, "peak_bytes"), 15000);
  assert_near(tfc_table_number(t, 0, "percent"), 100 * 15000.0 / (1 << 20));
  assert_near(tfc_table_number(t, 0, "variable_bytes"), 5000);
  assert_true(isnan(tfc_table_number(t, 1, "limit_bytes")));
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  // Devices that read each other's memory get no copies: the producer's device holds the tensor.
  struct tfc_store *db = made("shared", "measured", "UPDATE device SET memory_space = 0");
  assert_ok(tfc_report_memory(db, -1, &lists));
  assert_held(&lists, "cpu:0", 12000, 400, (const char *const[]){"net/weights", "net/d", "net/b", NULL});
  assert_held(&lists, "cpu:1", 2000, 155, (const char *const[]){"net/c", NULL});
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// Tensors that share memory count once: matrix products that only an AddN of products reads, and an input that only an
// operation with a result of the same size reads.
static void test_memory_that_is_shared(void **state) {
  (void)state;
  struct tfc_report_lists lists;
  struct tfc_store *db = made("sums", "measured",
                              "UPDATE node SET op = CASE name WHEN 'net/d' THEN 'AddN' ELSE 'MatMul' END WHERE name IN"
                              " ('net/b', 'net/c', 'net/d')");
  assert_ok(tfc_report_memory(db, -1, &lists));
  // The sum d is there from the start of its term b on; its term c comes from the other device from 255 on.
  assert_held(&lists, "cpu:0", 5000 + 4000 + 2000 + 1000, 255,
              (const char *const[]){"net/weights", "net/d", "net/c", "net/a", NULL});
  tfc_report_lists_deinit(&lists);
  assert_int_equal(sqlite3_exec(tfc_store_handle(db),
                                "UPDATE node SET op = 'AddV2' WHERE name = 'net/d';"
                                "UPDATE edge SET bytes = 4000 WHERE producer = 1",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  assert_ok(tfc_report_memory(db, -1, &lists));
  // d takes over the memory of b, so that the moment before d starts is the fullest one.
  assert_held(&lists, "cpu:0", 5000 + 4000 + 2000 + 1000, 255,
              (const char *const[]){"net/weights", "net/b", "net/c", "net/a", NULL});
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// Counts the live bytes again at the moment that is reported as the peak; at no other start of an operation are there
// more.
static void test_memory_of_a_run(void **state) {
  (void)state;
  static const char at[] =
      "WITH o AS MATERIALIZED (SELECT * FROM v_op WHERE placement = 'answer' AND step = %lld), t AS MATERIALIZED "
      "(SELECT"
      " p.node_id, p.start_us AS s, MAX(c.start_us + c.duration_us) AS e, MAX(bytes) AS bytes FROM v_edge JOIN o p ON"
      " p.node_id = producer_id JOIN o c ON c.node_id = consumer_id WHERE p.device = '%s' GROUP BY 1) SELECT %s";
  struct tfc_report_lists lists;
  struct tfc_query_args args;
  char sql[900], what[300];
  assert_ok(tfc_report_memory(store, -1, &lists));
  assert_ok(tfc_report_focus(store, -1, &args));
  const struct tfc_table *t = &lists.tables[0];
  assert_int_equal(t->row_count, 4);
  for (uint32_t r = 0; r < 4; r++) {
    const char *device = tfc_table_text(t, r, "device").data;
    snprintf(what, sizeof what, "SUM(bytes) FROM t WHERE s < %.17g AND e > %.17g",
             tfc_table_number(t, r, "fullest_us") + 0.0005, tfc_table_number(t, r, "fullest_us") + 0.0005);
    snprintf(sql, sizeof sql, at, (long long)args.step, device, what);
    assert_near(tfc_table_number(t, r, "named_bytes"), ask(store, sql));
    snprintf(sql, sizeof sql, at, (long long)args.step, device,
             "MAX((SELECT SUM(b.bytes) FROM t b WHERE b.s < a.s + 0.0005 AND b.e > a.s + 0.0005)) FROM t a");
    assert_near(tfc_table_number(t, r, "named_bytes"), ask(store, sql));
    snprintf(sql, sizeof sql, "SELECT peak_bytes FROM v_memory WHERE placement = 'answer' AND device = '%s'", device);
    assert_near(tfc_table_number(t, r, "peak_bytes"), ask(store, sql));
  }
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
}

// Counts medians with their intervals, nodes that moved, and operations again from the steps.
static void test_compare(void **state) {
  (void)state;
  char file[128], sql[900], html[160];
  struct sample_run other, third;
  struct tfc_store *db = NULL;
  struct tfc_report_lists lists;
  snprintf(file, sizeof file, "%s/compare.db", folder);
  assert_ok(sample_run_write(file, 3, &sample));
  assert_ok(sample_run_write(file, 4, &other));
  assert_ok(sample_run_write(file, 3, &third)); // the third run is the first one again
  assert_ok(tfc_store_open(file, &(struct tfc_store_options){.write = true, .purpose = "test"}, &db));
  assert_int_equal(
      sqlite3_exec(tfc_store_handle(db),
                   "UPDATE step SET duration_ns = duration_ns * 2 WHERE placement IN (SELECT placement FROM"
                   " placement WHERE run_id = 2)",
                   NULL, NULL, NULL),
      SQLITE_OK);
  const int64_t runs[] = {1, 2, 3};
  assert_ok(tfc_report_compare(db, runs, 2, &lists));
  const struct tfc_table *t = &lists.tables[0];
  for (uint32_t r = 0; r < 2; r++) { // the 9th and the 22nd of 30 steps
    snprintf(sql, sizeof sql,
             "SELECT step_us FROM v_step WHERE placement = 'answer' AND run_id = %u ORDER BY 1 LIMIT 1 OFFSET 8",
             r + 1);
    assert_near(tfc_table_number(t, r, "step_low_us"), ask(db, sql));
    snprintf(sql, sizeof sql,
             "SELECT step_us FROM v_step WHERE placement = 'answer' AND run_id = %u ORDER BY 1 LIMIT 1 OFFSET 21",
             r + 1);
    assert_near(tfc_table_number(t, r, "step_high_us"), ask(db, sql));
  }
  assert_true(tfc_str_is(tfc_table_text(t, 1, "verdict"), "slower"));
  assert_near(tfc_table_number(t, 1, "moved_nodes"),
              ask(db,
                  "SELECT COUNT(*) FROM v_placement a JOIN v_placement b USING (node) WHERE a.run_id = 1 AND b.run_id"
                  " = 2 AND a.placement = 'answer' AND b.placement = 'answer' AND a.device <> b.device"));
  t = &lists.tables[2];
  double moved = 0;
  for (uint32_t r = 0; r < t->row_count; r++) moved += tfc_table_number(t, r, "nodes");
  assert_near(moved, tfc_table_number(&lists.tables[0], 1, "moved_nodes"));
  assert_near(tfc_table_number(t, 0, "nodes"),
              ask(db,
                  "SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM v_placement a JOIN v_placement b USING (node) WHERE"
                  " a.run_id = 1 AND b.run_id = 2 AND a.placement = 'answer' AND b.placement = 'answer' AND a.device"
                  " <> b.device GROUP BY substr(node, 1, instr(node, '/') - 1), a.device, b.device)"));
  t = &lists.tables[1];
  for (uint32_t r = 0; r < t->row_count; r += 5) {
    char each[1000];
    snprintf(each, sizeof each,
             "SELECT AVG(us) FROM (SELECT us, ROW_NUMBER() OVER (ORDER BY us) AS k, COUNT(*) OVER () AS n FROM (SELECT"
             " SUM(duration_us) AS us FROM v_op WHERE placement = 'answer' AND run_id = %.0f AND op = '%s' GROUP BY"
             " step)) WHERE 2 * k BETWEEN n AND n + 2",
             tfc_table_number(t, r, "run_id"), tfc_table_text(t, r, "op").data);
    const double us = tfc_table_number(t, r, "time_us");
    assert_near(us, ask(db, each));
    assert_true(us >= tfc_table_number(t, r, "step_low_us") && us <= tfc_table_number(t, r, "step_high_us"));
    snprintf(
        each, sizeof each,
        "SELECT SUM(duration_us) AS us FROM v_op WHERE placement = 'answer' AND run_id = %.0f AND op = '%s' GROUP BY"
        " step ORDER BY us LIMIT 1 OFFSET 8",
        tfc_table_number(t, r, "run_id"), tfc_table_text(t, r, "op").data);
    assert_near(tfc_table_number(t, r, "step_low_us"), ask(db, each));
  }
  assert_said(&lists.text, "slower");
  assert_fits(&lists.text);
  snprintf(html, sizeof html, "%s/compared", folder);
  assert_ok(tfc_report_compare_page(&lists, "compare.db", false, html));
  snprintf(sql, sizeof sql, "grep -q '>slower</span>' %s/index.html && ! grep -q 'src=' %s/index.html", html, html);
  assert_int_equal(system(sql), 0);
  struct tfc_file page = {0};
  snprintf(sql, sizeof sql, "%s/index.html", html);
  assert_ok(tfc_file_map(sql, &page));
  char *tags = strndup((const char *)page.data, page.size);
  html_check(tags);
  // What moved is in the page as the views have it, for each run and pair of devices.
  t = &lists.tables[4];
  assert_true(t->row_count > 4);
  for (uint32_t r = 0; r < t->row_count; r++) {
    char bytes[32], *row = NULL;
    snprintf(sql, sizeof sql,
             "SELECT SUM(bytes) FROM v_transfer WHERE placement = 'answer' AND step = 0 AND run_id = %.0f AND source ="
             " '%s' AND target = '%s'",
             tfc_table_number(t, r, "run_id"), tfc_table_text(t, r, "source").data,
             tfc_table_text(t, r, "target").data);
    assert_near(tfc_table_number(t, r, "bytes"), ask(db, sql));
    snprintf(sql, sizeof sql, "data-l=\"bytes, run %.0f\">%s</td>", tfc_table_number(t, r, "run_id"),
             tfc_show_bytes(bytes, tfc_table_number(t, r, "bytes")));
    row = strstr(strstr(tags, "id=\"traffic\""), sql);
    if (!row) fail_msg("no %s", sql);
  }
  free(tags);
  tfc_file_unmap(&page);
  tfc_report_lists_deinit(&lists);
  // A run compared with itself: no node moved, and every difference is noise.
  assert_ok(tfc_report_compare(db, (const int64_t[]){1, 3}, 2, &lists));
  assert_true(tfc_str_is(tfc_table_text(&lists.tables[0], 1, "verdict"), "noise"));
  assert_int_equal(lists.tables[2].row_count, 0);
  assert_said(&lists.text, "\n\nWhat the verdicts mean:\n  noise    the 95 % intervals of the medians meet\n\n");
  for (uint32_t r = 1; r < lists.tables[1].row_count; r += 2)
    assert_true(tfc_str_is(tfc_table_text(&lists.tables[1], r, "verdict"), "noise"));
  tfc_report_lists_deinit(&lists);
  assert_ok(tfc_report_compare(db, runs, 3, &lists));
  assert_int_equal(lists.tables[0].row_count, 3);
  assert_near(tfc_table_number(&lists.tables[0], 2, "ratio"), 1);
  assert_said(&lists.text, "\n3 ");
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  assert_fails(tfc_report_compare(db, (const int64_t[]){1, 9}, 2, &lists), TFC_NOT_FOUND, "9");
  // A peak below what is named is not the whole peak, unless the run said that it is; and the list says so.
  assert_ok(tfc_report_memory(db, 1, &lists));
  assert_null(strstr(lists.text.data, ">"));
  tfc_report_lists_deinit(&lists);
  assert_int_equal(sqlite3_exec(tfc_store_handle(db),
                                "UPDATE memory SET peak_bytes = 7, complete = 1 WHERE device_id = 1", NULL, NULL, NULL),
                   SQLITE_OK);
  assert_ok(tfc_report_memory(db, 1, &lists));
  assert_null(strstr(lists.text.data, ">"));
  tfc_report_lists_deinit(&lists);
  assert_int_equal(
      sqlite3_exec(tfc_store_handle(db), "UPDATE memory SET complete = NULL WHERE device_id = 1", NULL, NULL, NULL),
      SQLITE_OK);
  assert_ok(tfc_report_memory(db, 1, &lists));
  assert_said(&lists.text, "        >7 B ");
  assert_said(&lists.text, tfc_report_peak_note);
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  // A simulated step is neither faster nor slower than a measured one.
  assert_int_equal(sqlite3_exec(tfc_store_handle(db),
                                "UPDATE run SET label = 'modelled' WHERE run_id = 3; UPDATE placement SET label ="
                                " 'modelled', q1_us = NULL, final_q1_us = NULL WHERE run_id = 3",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  assert_ok(tfc_report_compare(db, (const int64_t[]){1, 3}, 2, &lists));
  assert_true(tfc_str_is(tfc_table_text(&lists.tables[0], 1, "verdict"), "unlike"));
  for (uint32_t r = 0; r < lists.tables[1].row_count; r++)
    assert_int_equal(tfc_table_text(&lists.tables[1], r, "verdict").size, 0);
  assert_said(&lists.text, "  unlike   one step was simulated, the other measured\n");
  assert_fits(&lists.text);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// Tests the first screen: it has 80 columns, and describes the traced step.
static void test_summary(void **state) {
  (void)state;
  struct tfc_text text = {0};
  struct tfc_store *db = made("summary", "measured", NULL);
  // net/b does twice the work of net/a in three times the time: at the rate of net/a (1e4 FLOP in 100 us) it would take
  // 200 us.
  assert_int_equal(sqlite3_exec(tfc_store_handle(db),
                                "UPDATE node SET flops = 10000 * (node_id + 1) WHERE node_id < 2;"
                                "INSERT INTO cost (run_id, node_id, kind, median_us, q1_us, q3_us, fastest_us, samples)"
                                " VALUES (1, 0, 'cpu', 100, 100, 100, 100, 2), (1, 1, 'cpu', 300, 300,"
                                " 300, 300, 2), (1, 4, 'cpu', 120, 119, 121, 90, 2);"
                                "UPDATE run SET command = 'tfc-place ' || hex(zeroblob(90)), message = 'said ' ||"
                                " replace(hex(zeroblob(60)), '00', 'word ')",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  assert_ok(tfc_report_show(db, -1, &text));
  assert_fits(&text);
  assert_said(&text, "\nLongest gaps\n  cpu:1 waits 195.0 us for net/d of cpu:0,\n    then 30.0 us for its transfer");
  const struct {
    // the columns of a row; `exposed`: how long a device waited for these transfers
    const char *from, *to, *number, *bytes, *took, *exposed, *overlapped;
  } pairs[] = {{"cpu:0", "cpu:1", " 2 ", "5.0 kB", "80.0 us", "80.0 us", "0.00 us"},
               {"cpu:1", "cpu:0", " 1 ", "2.0 kB", "20.0 us", "0.00 us", "20.0 us"}};
  for (size_t i = 0; i < 2; i++) {
    char line[64];
    snprintf(line, sizeof line, "\n  %-11s to %-10s", pairs[i].from, pairs[i].to);
    const char *at = strstr(text.data, line);
    if (!at) fail_msg("no %s in: %s", line, text.data);
    const char *const columns[] = {pairs[i].number, pairs[i].bytes, pairs[i].took, pairs[i].exposed,
                                   pairs[i].overlapped};
    for (size_t c = 0; c < 5; c++)
      if (!(at = strstr(at + 1, columns[c]))) fail_msg("no '%s' behind '%s'", columns[c], line);
  }
  assert_near(5000,
              ask(db, "SELECT SUM(bytes) FROM v_transfer WHERE step = 0 AND source = 'cpu:0' AND target = 'cpu:1'"));
  assert_said(&text, "66.7 %   400.0 us  MatMul"); // 400 of 600 us
  assert_said(&text, "at the run's best rates");
  assert_said(&text, "100.0 us of   300.0 us  net/b");
  assert_said(&text, "30.0 us of   120.0 us  net/e"); // the median of 118 and 122; the fastest time seen: 90
  assert_said(&text, "tfc-report critical 1");
  assert_null(strstr(text.data, "simulated)"));
  tfc_text_deinit(&text);
  tfc_store_close(db);
  assert_ok(tfc_report_show(store, -1, &text));
  assert_fits(&text);
  tfc_text_deinit(&text);
}

// net/b takes 300 us in four of five traced steps, and lost its core for 8 ms in the one that is shown: what would help
// does not count that.
static void test_interrupted_operation(void **state) {
  (void)state;
  struct tfc_text text = {0};
  struct tfc_store *db = made(
      "interrupted", "measured",
      "UPDATE node SET flops = 10000 * (node_id + 1) WHERE node_id < 2;"
      "INSERT INTO cost (run_id, node_id, kind, median_us, q1_us, q3_us, fastest_us, samples) VALUES (1, 0, 'cpu', 100,"
      " 100, 100, 100, 2), (1, 1, 'cpu', 300, 300, 300, 300, 2);"
      "WITH RECURSIVE k(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM k WHERE n < 4) INSERT INTO op (placement, step, "
      "position, node_id, device_id, start_ns, duration_ns, dispatch_ns, launched_ns) SELECT"
      " placement, n, position, node_id, device_id, start_ns, duration_ns, dispatch_ns, launched_ns FROM op, k WHERE"
      " step = 0;"
      "UPDATE op SET duration_ns = 8300000 WHERE node_id = 1 AND step = 0;"
      "UPDATE op SET start_ns = start_ns + 8000000 WHERE node_id > 2 AND step = 0;"
      "UPDATE transfer SET start_ns = start_ns + 8000000 WHERE node_id = 3 AND step = 0");
  assert_ok(tfc_report_show(db, -1, &text));
  assert_said(&text, "What would help most: operations of this path at the run's best rates\n"
                     "    100.0 us of   300.0 us  net/b\n");
  tfc_text_deinit(&text);
  // The list of the path shows the step as it ran.
  struct tfc_report_lists lists;
  assert_ok(tfc_report_critical(db, -1, &lists));
  assert_near(tfc_table_number(&lists.tables[0], row_of(&lists.tables[0], "node", "net/b"), "time_us"), 8300);
  tfc_report_lists_deinit(&lists);
  tfc_store_close(db);
}

// The list of runs has 80 columns: names are whole if there is room, and parts that do not fit go to another line.
static void test_listed(void **state) {
  (void)state;
  static const char rivals[] =
      "INSERT INTO placement (run_id, placement_id, role, name, state, label, steps, median_us) VALUES"
      " (1, 1, 'baseline', 'whole', 'ok', 'measured', 9, 450),"
      " (1, 2, 'baseline', 'single:cpu:0', 'ok', 'measured', 9, 1200),"
      " (1, 4, 'baseline', 'expert', 'ok', 'measured', 9, 900);"
      "UPDATE run SET algorithm = ";
  static const struct {
    const char *name, *algorithm, *said;
  } runs[] = {{"short", "'auto: anneal'",
               "\n       step 600.0 us, whole 450.0 us, single 1.200 ms, expert 900.0 us,\n"
               "       by auto: anneal\n"},
              {"longest", "replace(hex(zeroblob(70)), '00', 'a')",
               ",\n       by aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"},
              {"longer", "replace(hex(zeroblob(71)), '00', 'a')",
               ",\n       by ..aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n"}};
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    struct tfc_text text = {0};
    char *sql = tfc_format("%s%s", rivals, runs[i].algorithm);
    struct tfc_store *db = made(runs[i].name, "measured", sql);
    free(sql);
    assert_ok(tfc_report_list(db, &text));
    assert_said(&text, runs[i].said);
    assert_fits(&text);
    tfc_text_deinit(&text);
    tfc_store_close(db);
  }
}

// Tests long names of devices and nodes, in other letters and with characters that control a terminal: lines stay
// within 80 columns, devices can be told apart, no letter is cut in two.
static void test_long_names(void **state) {
  (void)state;
  struct tfc_store *db = made("long", "oversubscribed", NULL);
  assert_int_equal(
      sqlite3_exec(tfc_store_handle(db),
                   "UPDATE device SET name = 'accelerator-of-host-17:' || device_id;"
                   "UPDATE node SET name = replace('very/long/scope/', 'o', 'ö') || char(27) || '[31m' ||"
                   " replace(hex(zeroblob(20)), '00', 'ä') || node_id;"
                   "UPDATE op SET duration_ns = 297000 WHERE node_id = 2;" // cpu:1 then waits for a transfer alone
                   "UPDATE run SET message = 'said ' || char(27) || '[31m ' || replace(hex(zeroblob(90)),"
                   " '00', 'ü')",
                   NULL, NULL, NULL),
      SQLITE_OK);
  tfc_status (*const made[])(struct tfc_store *, int64_t, struct tfc_report_lists *) = {
      tfc_report_nodes, tfc_report_critical, tfc_report_gaps, tfc_report_memory};
  struct tfc_text all = {0};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    struct tfc_report_lists lists = {0};
    assert_ok(made[i](db, -1, &lists));
    tfc_text_add(&all, (tfc_str){lists.text.data, lists.text.size});
    if (i == 1) assert_said(&lists.text, "..t-17:0 to ..t-17:1: ..");
    tfc_report_lists_deinit(&lists);
  }
  assert_ok(tfc_report_show(db, -1, &all));
  assert_fits(&all);
  for (size_t i = 0; i < all.size; i++) {
    const unsigned char c = (unsigned char)all.data[i], before = i ? (unsigned char)all.data[i - 1] : 0;
    if (c != '\n' && (c < ' ' || c == 0x7f)) fail_msg("the character %d after %.*s", c, (int)i, all.data);
    if ((c & 0xc0) == 0x80 && before < 0xc0) fail_msg("half a letter after %.*s", (int)i, all.data);
    if (before >= 0xc0 && (c & 0xc0) != 0x80) fail_msg("half a letter in %.*s", (int)i, all.data);
  }
  tfc_text_deinit(&all);
  tfc_store_close(db);
}

// Tests cells that contain quotes, commas and ends of lines.
static void test_csv(void **state) {
  (void)state;
  struct tfc_table t = {0};
  struct tfc_query_args args = {0};
  struct tfc_text csv = {0};
  assert_ok(tfc_table_query(store, "SELECT 'a,b' AS x, 'say \"c\"' AS \"y,z\", NULL AS n, 0.5 AS h", &args, &t));
  tfc_table_csv(&t, &csv);
  assert_string_equal(csv.data, "x,\"y,z\",n,h\r\n\"a,b\",\"say \"\"c\"\"\",,0.5\r\n");
  tfc_text_deinit(&csv);
  tfc_table_deinit(&t);
}

// Long names of the same end stay apart, and no character is cut.
static void test_both_ends(void **state) {
  (void)state;
  char a[96], b[96];
  assert_string_equal(tfc_report_fit_ends(a, TFC_STR("net/step1/grad"), 14), "net/step1/grad");
  assert_string_equal(tfc_report_fit_ends(a, TFC_STR("net/step1/softmax/grad"), 20), "net/step1/..max/grad");
  assert_string_equal(tfc_report_fit_ends(b, TFC_STR("net/step2/softmax/grad"), 20), "net/step2/..max/grad");
  assert_string_equal(tfc_report_fit_ends(a, TFC_STR("abc\xc3\xa4/\n/softmax/grad"), 9), "abc..grad");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes_by_hand),
                                     cmocka_unit_test(test_node_outside_the_step),
                                     cmocka_unit_test(test_node_in_a_loop),
                                     cmocka_unit_test(test_nodes_of_a_run),
                                     cmocka_unit_test(test_wide_names),
                                     cmocka_unit_test(test_critical_by_hand),
                                     cmocka_unit_test(test_critical_of_a_run),
                                     cmocka_unit_test(test_simulated),
                                     cmocka_unit_test(test_without_edges),
                                     cmocka_unit_test(test_memory_by_hand),
                                     cmocka_unit_test(test_memory_that_is_shared),
                                     cmocka_unit_test(test_memory_of_a_run),
                                     cmocka_unit_test(test_summary),
                                     cmocka_unit_test(test_long_names),
                                     cmocka_unit_test(test_csv),
                                     cmocka_unit_test(test_compare),
                                     cmocka_unit_test(test_interrupted_operation),
                                     cmocka_unit_test(test_listed),
                                     cmocka_unit_test(test_both_ends)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
