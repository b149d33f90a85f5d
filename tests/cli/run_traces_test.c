// What becomes of traced steps of a job in the database: two steps made by hand.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/run_profile.h"
#include "cli/run_traces.c"
#include "profiler/lock.h"
#include "runtime/graph/import.h"
#include "tests/common/caught.h"
#include "tests/common/cluster.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/rows.h"

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

// Two steps over three tasks. In the first one, operations 1 and 2 overlap on task 1; task 2 does nothing. In the
// second one the record of operation 1 was lost, and one operation ended before it began (clocks that are set wrong).
static tfc_status store_traces(struct tfc_member *member, void *arg) {
  const char *cluster = arg;
  tfc_status s = NULL;
  struct tfc_cluster_spec spec = {0};
  struct tfc_graph *g = NULL;
  struct run_traces traces = {0};
  sqlite3 *db = NULL;
  char path[96];
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
  TFC_TRY(s, run_traces_store(&traces, &setup, NULL, q, false));
  WANT(sqlite3_open(path, &db) == SQLITE_OK);
#define ROWS(sql, expected)                                                                                            \
  do {                                                                                                                 \
    const char *got = test_rows(db, sql);                                                                              \
    if (strcmp(got, expected) != 0) TFC_FAIL(s, TFC_ABORTED, "line %d:\n%s: not\n%s", __LINE__, got, expected);        \
  } while (0)
  ROWS("SELECT state, program, graph, graph_nodes, seed, label FROM run",
       "done|tfc-run|/nowhere/graph.pb|4|77|emulated");
  ROWS("SELECT command LIKE '%, /job:ps/task:0' FROM run", "1");
  ROWS("SELECT command LIKE '%run_traces_test, /job:ps/task:0' FROM run", "1");
  ROWS("SELECT graph_sha256 FROM run", "-"); // the file cannot be read
  struct tfc_host host;
  char wanted[400];
  tfc_host_describe(&host);
  snprintf(wanted, sizeof wanted, "%s|%s|%s", host.name, host.cpu_model, host.blas_core);
  ROWS("SELECT host, cpu_model, blas_core FROM run", wanted);
  const struct tfc_device_info *info = tfc_member_device(member, 1, 0);
  snprintf(wanted, sizeof wanted, "%s|%s|%u|emulated", info->kind, info->model, info->cores);
  ROWS("SELECT kind, model, cores, label FROM device WHERE device_id = 1", wanted);
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
  ROWS("SELECT count(*) FROM node WHERE unit_id IS NOT NULL OR flops IS NOT NULL OR bytes_touched IS NOT NULL", "0");
  ROWS("SELECT count(*) FROM placement WHERE ratio IS NOT NULL OR reward IS NOT NULL OR cost_s IS NOT NULL", "0");
  // A run that a signal ended, of a graph whose file can be read, and without a step.
  char file[96];
  command_put(folder, "abc", "abc");
  snprintf(file, sizeof file, "%s/abc", folder);
  const struct run_traces none = {0};
  o.graph = file;
  TFC_TRY(s, run_traces_store(&none, &setup, NULL, q, true));
  ROWS("SELECT run_id, state, graph_sha256 FROM run WHERE run_id = 2", // FIPS 180-2, appendix B.1
       "2|interrupted|ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  ROWS("SELECT p.steps, p.transfers FROM placement p WHERE p.run_id = 2", "0|0");
out:
  sqlite3_close(db);
  run_traces_deinit(&traces);
  tfc_graph_release(g);
  tfc_cluster_spec_deinit(&spec);
  return s;
}
static struct test_caught err;
static void test_traces(void **state) {
  (void)state;
  char line[300];
  test_catch(&err, stderr);
  tfc_test_job_succeed(&(struct tfc_test_job){.cluster = "ps=1,worker=2",
                                              .script = store_traces,
                                              .label = "emulated",
                                              .arg = (void *)(uintptr_t) "ps=1,worker=2"});
  test_caught_end(&err);
  SAYS(err, "records of operations", 1);
  // Only the first run says that: the worse of the clocks of its two steps. The second run has no step.
  SAYS(err, "profile: clocks of other hosts are set right to 2.5 us\n", 1);
  SAYS(err, "clocks of other hosts", 1);
  for (int run = 1; run < 3; run++) {
    snprintf(line, sizeof line, "profile: run %d in %s/traces.db (tfc-report --db %s/traces.db show %d)\n", run, folder,
             folder, run);
    SAYS(err, line, 1);
  }
}

// What began first comes first; what began at once, by its node.
static void test_orders(void **state) {
  (void)state;
  static const struct tfc_cluster_op ops[] = {{10, 20, 7, 0, 0}, {10, 15, 8, 0, 0}, {11, 12, 3, 0, 0}};
  static const struct tfc_cluster_transfer moved[] = {{.begin_ns = 5}, {.begin_ns = 6}};
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 3; k++) {
      const int order = by_begin(&ops[i], &ops[k]);
      assert_true(i < k ? order < 0 : i > k ? order > 0 : order == 0);
    }
  assert_true(by_begin_transfer(&moved[0], &moved[1]) < 0 && by_begin_transfer(&moved[1], &moved[0]) > 0);
  assert_int_equal(by_begin_transfer(&moved[1], &moved[1]), 0);
  const struct tfc_cluster_op *const nodes[] = {&ops[2], &ops[0]};
  assert_true(by_node(&nodes[0], &nodes[1]) < 0 && by_node(&nodes[1], &nodes[0]) > 0);
  assert_int_equal(by_node(&nodes[1], &nodes[1]), 0);
  assert_true(since(5, 9) == 4 && since(9, 5) == 0 && since(9, 9) == 0);
}

static off_t said_bytes(void) {
  struct stat s;
  assert_int_equal(fstat(fileno(err.file), &s), 0);
  return s.st_size;
}
struct holder {
  struct tfc_lock *lock;
  off_t said; // how many bytes stderr had got before the thread began
};
// Gives the lock back 0.25 s after somebody said that he waits, so that he had time to say it twice; if nobody says
// it, after 10 s.
static void *give_back_later(void *arg) {
  const struct holder *h = arg;
  for (int i = 0; i < 10000 && said_bytes() == h->said; i++) tfc_sleep_ns(1000000);
  tfc_sleep_ns(250000000);
  tfc_lock_release(h->lock);
  return NULL;
}
// While another process writes to the database, run_traces_open waits and says so once; a signal ends the waiting. It
// returns other errors at once.
static void test_waiting(void **state) {
  (void)state;
  char path[96], lock_path[128];
  snprintf(path, sizeof path, "%s/locked.db", folder);
  snprintf(lock_path, sizeof lock_path, "%s.lock", path);
  const struct run_options o = {.db = path};
  const struct run_setup setup = {.options = &o};
  _Atomic bool cancel = true;
  struct holder holder = {0};
  struct tfc_store *store = NULL;
  pthread_t thread;
  assert_ok(tfc_lock_take(lock_path, "test", &holder.lock));
  test_catch(&err, stderr);
  assert_fails(run_traces_open(&setup, 0, &cancel, &store), TFC_CANCELLED, "stopped while another process writes to ");
  assert_fails(run_traces_open(&setup, INT64_C(60000000000), &cancel, &store), TFC_CANCELLED,
               "stopped while"); // says nothing for 60 s
  cancel = false;
  holder.said = said_bytes();
  assert_int_equal(pthread_create(&thread, NULL, give_back_later, &holder), 0);
  tfc_status s = run_traces_open(&setup, 0, &cancel, &store);
  pthread_join(thread, NULL);
  test_caught_end(&err);
  assert_ok(s);
  SAYS(err, "; waiting\n", 2); // once for each of the two calls with `quiet_ns` 0
  tfc_store_close(store);
  store = NULL;
  // A job of several tasks waits although it has no session yet.
  const struct tfc_cluster_spec spec = {0};
  const struct run_setup job = {.options = &o, .tasks = &spec};
  assert_ok(tfc_lock_take(lock_path, "test", &holder.lock));
  test_catch(&err, stderr);
  holder.said = said_bytes();
  assert_int_equal(pthread_create(&thread, NULL, give_back_later, &holder), 0);
  s = run_profile_open(&job, &store);
  pthread_join(thread, NULL);
  test_caught_end(&err);
  assert_ok(s);
  SAYS(err, "; waiting\n", 1);
  tfc_store_close(store);
  store = NULL;
  const struct run_options nowhere = {.db = "/nowhere/at/all.db"};
  const struct run_setup other = {.options = &nowhere};
  test_catch(&err, stderr);
  s = run_traces_open(&other, 0, &cancel, &store);
  test_caught_end(&err);
  SAYS(err, "waiting", 0);
  assert_fails(s, TFC_DATA_LOSS, "/nowhere/at");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_traces), cmocka_unit_test(test_orders),
                                     cmocka_unit_test(test_waiting)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
