// What becomes of traced steps of a job in the database: two steps made by hand.
#include "tests/common/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "cli/run_traces.h"
#include "runtime/graph/import.h"
#include "tests/common/cluster.h"
#include "tests/common/folder.h"

static char folder[TEST_FOLDER_SIZE];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "run-traces");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }"
#define TYPE(key, type) " attr { key: '" key "' value { type: " type " } }"

static const char traced_text[] =
    NODE("a", "Placeholder", "", TYPE("dtype", "DT_FLOAT")) NODE("b", "Neg", "input: 'a'", TYPE("T", "DT_FLOAT"))
        NODE("c", "Neg", "input: 'b'", TYPE("T", "DT_FLOAT")) NODE("d", "Neg", "input: 'c'", TYPE("T", "DT_FLOAT"));

// The rows of a query, "1|x,2|y".
static void rows(sqlite3 *db, const char *sql, char out[1000]) {
  sqlite3_stmt *q = NULL;
  size_t at = 0;
  out[0] = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) {
    snprintf(out, 1000, "%s", sqlite3_errmsg(db));
    return;
  }
  for (int n = 0; sqlite3_step(q) == SQLITE_ROW; n++)
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      const char *text = (const char *)sqlite3_column_text(q, i);
      at += (size_t)snprintf(out + at, 1000 - at, "%s%s", i ? "|" : n ? "," : "", text ? text : "-");
    }
  sqlite3_finalize(q);
}

// Two steps over three tasks. In the first one, operations 1 and 2 overlap on task 1; task 2 does nothing. In the
// second one the record of operation 1 was lost, and one operation ended before it began (clocks that are set wrong).
static tfc_status store_traces(struct tfc_member *member, void *arg) {
  const char *cluster = arg;
  tfc_status s = NULL;
  struct tfc_cluster_spec spec = {0};
  struct tfc_graph *g = NULL;
  struct run_traces traces = {0};
  sqlite3 *db = NULL;
  char path[96], got[1000];
  snprintf(path, sizeof path, "%s/traces.db", folder);
  if (tfc_member_rank(member)) return NULL;
  struct run_options o = {.graph = "/nowhere/graph.pb", .cluster = cluster, .db = path, .execution.seed = 77};
  struct run_setup setup = {.options = &o, .member = member, .tasks = &spec};
  TFC_TRY(s, tfc_cluster_spec_parse(tfc_str_from(cluster), &spec));
  TFC_TRY(s, tfc_graph_parse(tfc_str_from(traced_text), "graph", NULL, &g));
  setup.graph = setup.file = g;
  struct tfc_cluster_trace first = {.begin_ns = 1000, .end_ns = 2000, .lost = 3, .clock_off_ns = 2500};
  const struct tfc_cluster_op ops[] = {{1400, 1700, 2, 1, 0}, {1100, 1500, 1, 1, 0}, {1750, 1900, 3, 0, 0}};
  const struct tfc_cluster_transfer transfers[] = {{1705, 1745, 12, {2, 0}, 1, 0}, {1050, 1090, 40, {0, 0}, 0, 1}};
  for (int i = 0; i < 3; i++) WANT(tfc_array_push(&first.ops, ops[i]));
  for (int i = 0; i < 2; i++) WANT(tfc_array_push(&first.transfers, transfers[i]));
  TFC_TRY(s, run_traces_add(&traces, &first));
  WANT(!first.ops.count && !first.ops.data); // it is taken over
  struct tfc_cluster_trace second = {.begin_ns = 5000, .end_ns = 5600, .lost = 4, .clock_off_ns = 1500};
  const struct tfc_cluster_op more[] = {{5100, 5200, 2, 1, 0}, {4990, 4980, 3, 2, 9}};
  const struct tfc_cluster_transfer moved = {5300, 5250, 12, {1, 0}, 1, 2};
  for (int i = 0; i < 2; i++) WANT(tfc_array_push(&second.ops, more[i]));
  WANT(tfc_array_push(&second.transfers, moved));
  TFC_TRY(s, run_traces_add(&traces, &second));
  const struct tfc_quartiles q = {.q1 = 0.6, .median = 0.8, .q3 = 1};
  TFC_TRY(s, run_traces_store(&traces, &setup, q, false));
  WANT(sqlite3_open(path, &db) == SQLITE_OK);
#define ROWS(sql, expected)                                                                                            \
  do {                                                                                                                 \
    rows(db, sql, got);                                                                                                \
    if (strcmp(got, expected) != 0) TFC_FAIL(s, TFC_ABORTED, "line %d:\n%s: not\n%s", __LINE__, got, expected);        \
  } while (0)
  ROWS("SELECT state, program, graph, graph_nodes, seed, label FROM run",
       "done|tfc-run|/nowhere/graph.pb|4|77|emulated");
  ROWS("SELECT command LIKE '%, /job:ps/task:0' FROM run", "1");
  ROWS("SELECT device_id, name, tensorflow, memory_space FROM device ORDER BY device_id",
       "0|/job:ps/task:0/device:CPU:0|/job:ps/task:0/device:CPU:0|0,"
       "1|/job:worker/task:0/device:CPU:0|/job:worker/task:0/device:CPU:0|1,"
       "2|/job:worker/task:1/device:CPU:0|/job:worker/task:1/device:CPU:0|2");
  ROWS("SELECT node_id, name, op FROM node ORDER BY node_id", "0|a|Placeholder,1|b|Neg,2|c|Neg,3|d|Neg");
  ROWS("SELECT role, name, state, label, median_us, q1_us, q3_us, steps, transfers, simulated_us FROM placement",
       "baseline|run|ok|emulated|0.8|0.6|1.0|2|1|-");
  ROWS("SELECT step, phase, traced, start_ns, duration_ns FROM step ORDER BY step",
       "0|profile|1|1000|1000,1|profile|1|5000|600");
  // in the order in which they began; a device that the task does not have is its first one
  ROWS("SELECT step, position, node_id, device_id, start_ns, duration_ns FROM op ORDER BY step, position",
       "0|0|1|1|100|400,0|1|2|1|400|300,0|2|3|0|750|150,1|0|3|2|0|0,1|1|2|1|100|100");
  // task 1 was busy from 100 to 700; its operations, 400 + 300, overlap
  ROWS("SELECT step, device_id, operations, operations_ns, busy_ns FROM busy ORDER BY step, device_id",
       "0|0|1|150|150,0|1|2|600|600,0|2|0|0|0,1|0|0|0|0,1|1|1|100|100,1|2|1|0|0");
  ROWS("SELECT step, position, node_id, output, source, target, bytes, start_ns, duration_ns FROM transfer"
       " ORDER BY step, position",
       "0|0|0|0|0|1|40|50|40,0|1|2|0|1|0|12|705|40,1|0|1|0|1|2|12|300|0");
  ROWS("SELECT node_id, device_id, samples, median_ns, fastest_ns, total_ns FROM op_total ORDER BY node_id",
       "1|1|1|400|400|400,2|1|2|200|100|400,3|0|2|75|0|150");
  ROWS("SELECT text FROM warning", "--profile: 7 records of operations found no room");
out:
  sqlite3_close(db);
  run_traces_deinit(&traces);
  tfc_graph_release(g);
  tfc_cluster_spec_deinit(&spec);
  return s;
}
static void test_traces(void **state) {
  (void)state;
  tfc_test_job_succeed(&(struct tfc_test_job){.cluster = "ps=1,worker=2",
                                              .script = store_traces,
                                              .label = "emulated",
                                              .arg = (void *)(uintptr_t) "ps=1,worker=2"});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_traces)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
