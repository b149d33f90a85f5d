// Tests the rows of the store, table by table: all values of a row differ, and each is found in its column, by SQL and
// by the functions that read. Databases of every older schema are upgraded.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/activity.h"
#include "profiler/collector.h"
#include "profiler/schema.h"
#include "profiler/store.h"
#include "profiler/store_read.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"
#include "profiler/warnings.h"
#include "tests/common/folder.h"

static char folder[64], path[96];
static struct tfc_store *store;
static int64_t run, key;
static const struct tfc_store_options writing = {.write = true, .purpose = "test"};

// Returns the rows of a query as text: "a|b|c;", NULL as "-".
static char *ask(struct tfc_store *s, const char *sql) {
  struct tfc_text t = {0};
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(tfc_store_handle(s), sql, -1, &q, NULL) != SQLITE_OK)
    fail_msg("%s: %s", sql, sqlite3_errmsg(tfc_store_handle(s)));
  while (sqlite3_step(q) == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(q); i++) {
      const char *text = (const char *)sqlite3_column_text(q, i);
      tfc_text_printf(&t, "%s%s", i ? "|" : "", text ? text : "-");
    }
    tfc_text_printf(&t, ";");
  }
  sqlite3_finalize(q);
  return t.data ? t.data : strdup("");
}
static void holds(const char *sql, const char *expected) {
  char *rows = ask(store, sql);
  assert_string_equal(rows, expected);
  free(rows);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "rows")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  struct tfc_store_run other = {.program = "p", .command = "c", .graph = "g", .objective = "step", .label = "measured"};
  int64_t ignored;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_add_run(store, &other, &ignored));
  assert_ok(tfc_store_add_run(store,
                              &(struct tfc_store_run){.program = "tfc-place",
                                                      .command = "tfc-place -q",
                                                      .graph = "a.pb",
                                                      .graph_sha256 = "abc",
                                                      .graph_nodes = 17,
                                                      .objective = "throughput",
                                                      .algorithms = "etf,lns",
                                                      .label = "virtual",
                                                      .seed = 5,
                                                      .host = "here",
                                                      .cpu_model = "a model",
                                                      .blas_core = "a core"},
                              &run));
  const struct tfc_store_placement p = {.placement_id = 3,
                                        .role = "candidate",
                                        .name = "#12",
                                        .algorithm = "lns",
                                        .episode = 12,
                                        .digest = 99,
                                        .state = "ok",
                                        .label = "measured",
                                        .simulated_us = 1.5,
                                        .median_us = 2.5,
                                        .q1_us = 2.25,
                                        .q3_us = 2.75,
                                        .steps = 30,
                                        .ratio = 0.5,
                                        .reward = -0.25,
                                        .cost_s = 4.5,
                                        .at_s = 5.5,
                                        .transfers = 6,
                                        .transfer_bytes = 7000,
                                        .message = "said"};
  assert_ok(tfc_store_add_placement(store, run, &p, (const uint16_t[]){4, 2}, 2, &key));
  assert_ok(tfc_store_commit(store));
  return run == 2 ? 0 : -1;
}
static int tear_down(void **state) {
  (void)state;
  tfc_store_close(store);
  return test_folder_remove(folder);
}

static void runs(void **state) {
  (void)state;
  holds("SELECT state, program, command, version = '" TFC_VERSION "', ABS(started_unix_s - strftime('%s', 'now')) < 60,"
        " graph, graph_sha256, graph_nodes, objective, algorithms, seed, label, host, cpu_model, blas_core FROM run"
        " WHERE run_id = 2",
        "running|tfc-place|tfc-place -q|1|1|a.pb|abc|17|throughput|etf,lns|5|virtual|here|a model|a core;");
  assert_ok(tfc_store_set_label(store, run, "modelled"));
  holds("SELECT run_id, label FROM run ORDER BY 1", "1|measured;2|modelled;");
  assert_ok(tfc_store_finish_run(store, run,
                                 &(struct tfc_store_answer){.state = "done",
                                                            .exit_code = 5,
                                                            .algorithm = "etf",
                                                            .placement_id = 3,
                                                            .speedup = 2,
                                                            .speedup_low = 1.5,
                                                            .speedup_high = 2.5,
                                                            .bound_us = 1.25,
                                                            .bound_name = "work",
                                                            .trace_overhead = 0.125,
                                                            .tau = 0.75,
                                                            .tau_placements = 8,
                                                            .document = "{}",
                                                            .message = "over"}));
  holds("SELECT state, ended_unix_s >= started_unix_s, exit_code, algorithm, best_placement_id, speedup, speedup_low,"
        " speedup_high, bound_us, bound_name, trace_overhead, tau, tau_placements, answer, message FROM run WHERE"
        " run_id = 2",
        "done|1|5|etf|3|2.0|1.5|2.5|1.25|work|0.125|0.75|8|{}|over;");
  // Unknown values are NULL.
  assert_ok(tfc_store_finish_run(store, 1,
                                 &(struct tfc_store_answer){.state = "failed",
                                                            .placement_id = -1,
                                                            .speedup = NAN,
                                                            .speedup_low = NAN,
                                                            .speedup_high = NAN,
                                                            .bound_us = NAN,
                                                            .trace_overhead = NAN,
                                                            .tau = NAN,
                                                            .tau_placements = -1}));
  holds(
      "SELECT state, best_placement_id, speedup, bound_us, bound_name, trace_overhead, tau, tau_placements, answer FROM"
      " run WHERE run_id = 1",
      "failed|-|-|-|-|-|-|-|-;");
}

static tfc_status no_read_run(void *user, const struct tfc_store_run *r, const char *state) {
  (void)r, (void)state;
  ++*(int *)user;
  return NULL;
}
static tfc_status read_run(void *user, const struct tfc_store_run *r, const char *state) {
  ++*(int *)user;
  assert_string_equal(state, "running");
  assert_string_equal(r->graph, "a.pb");
  assert_string_equal(r->graph_sha256, "abc");
  assert_string_equal(r->objective, "throughput");
  return NULL;
}
static tfc_status read_placement(void *user, const struct tfc_store_placement_read *r) {
  ++*(int *)user;
  assert_int_equal(r->key, key);
  assert_int_equal(r->row.placement_id, 3);
  assert_string_equal(r->row.role, "candidate");
  assert_string_equal(r->row.name, "#12");
  assert_string_equal(r->row.algorithm, "lns");
  assert_int_equal(r->row.episode, 12);
  assert_string_equal(r->row.state, "ok");
  assert_true(r->row.simulated_us == 1.5 && r->row.median_us == 2.5 && r->row.q1_us == 2.25 && r->row.q3_us == 2.75);
  assert_true(r->row.ratio == 0.5 && r->row.steps == 30);
  return NULL;
}
static tfc_status read_unit(void *user, uint32_t unit, uint32_t device) {
  ++*(int *)user;
  assert_int_equal(device, unit ? 2 : 4);
  return NULL;
}

static void placements(void **state) {
  (void)state;
  int n = 0;
  holds("SELECT run_id, placement_id, role, name, algorithm, episode, digest, state, label, simulated_us, median_us,"
        " q1_us, q3_us, steps, ratio, reward, cost_s, at_s, transfers, transfer_bytes, message FROM placement",
        "2|3|candidate|#12|lns|12|99|ok|measured|1.5|2.5|2.25|2.75|30|0.5|-0.25|4.5|5.5|6|7000|said;");
  holds("SELECT placement, unit_id, device_id FROM assignment ORDER BY unit_id", "1|0|4;1|1|2;");
  assert_ok(tfc_store_read_placements(store, run, read_placement, &n));
  assert_ok(tfc_store_read_assignment(store, key, read_unit, &n));
  assert_ok(tfc_store_read_run(store, run, read_run, &n));
  assert_int_equal(n, 4);
  assert_fails(tfc_store_read_run(store, 77, no_read_run, &n), TFC_NOT_FOUND, "77");
  assert_int_equal(n, 4);
  assert_ok(tfc_store_set_final(store, key, "answer", 3.5, 3.25, 3.75, 40));
  holds("SELECT name, final_median_us, final_q1_us, final_q3_us, final_steps, median_us FROM placement",
        "answer|3.5|3.25|3.75|40|2.5;");
  int64_t second;
  assert_ok(tfc_store_add_placement(store, run,
                                    &(struct tfc_store_placement){.placement_id = 4,
                                                                  .role = "heuristic",
                                                                  .name = "etf",
                                                                  .episode = -1,
                                                                  .state = "modelled",
                                                                  .label = "modelled",
                                                                  .simulated_us = 9,
                                                                  .median_us = NAN,
                                                                  .q1_us = NAN,
                                                                  .q3_us = NAN,
                                                                  .ratio = NAN,
                                                                  .reward = NAN,
                                                                  .cost_s = NAN,
                                                                  .at_s = NAN,
                                                                  .transfers = UINT64_MAX,
                                                                  .transfer_bytes = UINT64_MAX},
                                    NULL, 0, &second));
  assert_true(second != key);
  holds("SELECT algorithm, episode, median_us, q1_us, q3_us, ratio, reward, cost_s, at_s, transfers, transfer_bytes,"
        " message FROM placement WHERE placement_id = 4",
        "-|-|-|-|-|-|-|-|-|-|-|-;");
}

static tfc_status read_device(void *user, const struct tfc_store_device *d) {
  const int i = (*(int *)user)++;
  assert_int_equal(d->device_id, i);
  assert_string_equal(d->name, i ? "cpu:1" : "cpu:0");
  assert_int_equal(d->cores, i ? 3 : 2);
  if (i) return assert_true(isnan(d->dispatch_us) && !d->slowdown && !d->math), NULL;
  assert_string_equal(d->math, "TF32");
  assert_true(d->dispatch_us == 0.5);
  assert_string_equal(d->slowdown, "[1, 2]");
  return NULL;
}
static tfc_status read_link(void *user, const struct tfc_store_link *l) {
  ++*(int *)user;
  assert_true(l->source == 1 && l->target == 0 && l->bytes == 4096 && l->time_us == 7.5 && l->samples == 9);
  return NULL;
}
static tfc_status read_cost(void *user, const struct tfc_store_cost *c) {
  ++*(int *)user;
  assert_string_equal(c->kind, "cpu");
  assert_true(c->node_id == 5 && c->median_us == 2.5 && c->q1_us == 2 && c->q3_us == 3 && c->fastest_us == 1.5 &&
              c->samples == 11);
  return NULL;
}
static tfc_status read_memory(void *user, const struct tfc_store_memory *m) {
  ++*(int *)user;
  assert_true(m->device_id == 1 && m->peak == 12345);
  return NULL;
}
// Loads are those of a placement and of its devices; a run's are those of its answer and of its best single device.
static void loads(void **state) {
  (void)state;
  const double us[] = {4, 6.5};
  int64_t single, other;
  struct tfc_store_placement row = {.placement_id = 70,
                                    .role = "baseline",
                                    .name = "single:cpu:0",
                                    .state = "ok",
                                    .label = "measured",
                                    .episode = -1,
                                    .median_us = 20,
                                    .simulated_us = NAN,
                                    .q1_us = NAN,
                                    .q3_us = NAN,
                                    .ratio = NAN,
                                    .reward = NAN};
  assert_ok(tfc_store_add_placement(store, run, &row, NULL, 0, &single));
  row.placement_id = 71, row.name = "single:cpu:1", row.state = "no fit";
  assert_ok(tfc_store_add_placement(store, run, &row, NULL, 0, &other));
  assert_ok(
      tfc_store_add_load(store, key, &(struct tfc_store_load){.load_us = 6.5, .device_us = us, .device_count = 2}));
  assert_ok(tfc_store_add_load(store, single, &(struct tfc_store_load){.load_us = 13}));
  assert_ok(tfc_store_add_load(store, other, &(struct tfc_store_load){.load_us = 5, .samples = 9, .at_once = 3}));
  holds("SELECT l.device_id, l.load_us FROM v_load l ORDER BY 1", "0|4.0;1|6.5;");
  holds("SELECT placement_id, load_us, load_samples, load_at_once FROM v_result WHERE placement_id >= 70 ORDER BY 1",
        "70|13.0|0|0;71|5.0|9|3;");
  char sql[96];
  snprintf(sql, sizeof sql,
           "UPDATE run SET best_placement_id = (SELECT placement_id FROM placement WHERE placement ="
           " %lld)",
           (long long)key);
  assert_int_equal(sqlite3_exec(tfc_store_handle(store), sql, NULL, NULL, NULL), SQLITE_OK);
  holds("SELECT load_us, load_samples, best_single_load_us FROM v_run WHERE run_id = 2", "6.5|0|13.0;");
  // A load that was measured is not compared with one that was computed.
  assert_ok(tfc_store_add_load(store, key, &(struct tfc_store_load){.load_us = 7, .samples = 9, .at_once = 3}));
  holds("SELECT load_us, load_at_once, best_single_load_us FROM v_run WHERE run_id = 2", "7.0|3|-;");
}

// What has no shape before it runs has no bytes: they are unknown, and not 0.
static void unknown_bytes(void **state) {
  (void)state;
  const struct tfc_store_node nodes[] = {{1, TFC_STR("a"), TFC_STR("Switch"), 1, NAN, NAN, 0, 0},
                                         {2, TFC_STR("b"), TFC_STR("MatMul"), 1, 5, 6, 0, 0},
                                         {3, TFC_STR("c"), TFC_STR(""), 1, NAN, NAN, 0, 0}};
  const struct tfc_store_edge edges[] = {{1, 0, 2, 0}, {1, -1, 3, 0}, {2, 0, 3, 0}, {3, 0, 2, 0}};
  assert_ok(tfc_store_add_nodes(store, run, nodes, 3));
  assert_ok(tfc_store_add_edges(store, run, edges, 4));
  holds("SELECT name, output_bytes FROM v_node ORDER BY node_id", "a|-;b|0;c|0;");
  holds("SELECT producer, output, bytes FROM v_edge ORDER BY edge_id", "a|0|-;a|-1|0;b|0|0;c|0|0;");
}

static tfc_status stop(void *user, const struct tfc_store_device *d) {
  (void)d;
  ++*(int *)user;
  return tfc_status_make(TFC_CANCELLED, "enough");
}

static int interrupt(void *user) {
  (void)user;
  return 1;
}

static void machine_and_graph(void **state) {
  (void)state;
  int n = 0, cost = 0, link = 0, memory = 0;
  struct tfc_store_device devices[] = {
      {0, "cpu:0", "cpu", "a model", "/device:CPU:0", "measured", 2, 1 << 20, 0.5, "[1, 2]", 6, "TF32"},
      {1, "cpu:1", "cpu", NULL, NULL, "virtual", 3, UINT64_MAX, NAN, NULL, 7, NULL}};
  assert_ok(tfc_store_add_devices(store, run, devices, 2));
  holds("SELECT * FROM device ORDER BY device_id",
        "2|0|cpu:0|cpu|a model|/device:CPU:0|measured|2|1048576|0.5|[1, 2]|6|TF32;"
        "2|1|cpu:1|cpu|-|-|virtual|3|-|-|-|7|-;");
  assert_ok(tfc_store_read_devices(store, run, read_device, &n));
  assert_int_equal(n, 2);
  n = 0;
  assert_fails(tfc_store_read_devices(store, run, stop, &n), TFC_CANCELLED, "enough");
  assert_int_equal(n, 1);
  // Rows that cannot be read to their end are an error, not all that there are.
  for (int all = 0; all < 2; all++) {
    sqlite3_progress_handler(tfc_store_handle(store), 1, interrupt, NULL);
    tfc_status s =
        all ? tfc_store_read_devices(store, run, read_device, &n) : tfc_store_read_run(store, run, no_read_run, &n);
    sqlite3_progress_handler(tfc_store_handle(store), 0, NULL, NULL);
    assert_fails(s, TFC_CANCELLED, "interrupted while reading");
  }
  assert_ok(tfc_store_add_links(store, run, &(struct tfc_store_link){1, 0, 4096, 7.5, 9}, 1));
  holds("SELECT * FROM link", "2|1|0|4096|7.5|9;");
  assert_ok(tfc_store_read_links(store, run, read_link, &link));
  const struct tfc_store_node nodes[] = {{5, TFC_STR("a"), TFC_STR("MatMul"), 1, 10.5, 20.5, 30, 40},
                                         {6, TFC_STR("b"), TFC_STR("Relu"), TFC_NONE, NAN, NAN, 0, 0}};
  assert_ok(tfc_store_add_nodes(store, run, nodes, 2));
  holds("SELECT * FROM node ORDER BY node_id", "2|5|a|MatMul|1|10.5|20.5|30|40;2|6|b|Relu|-|-|-|0|0;");
  assert_ok(tfc_store_add_costs(store, run, &(struct tfc_store_cost){5, "cpu", 2.5, 2, 3, 1.5, 11}, 1));
  holds("SELECT * FROM cost", "2|5|cpu|2.5|2.0|3.0|1.5|11;");
  assert_ok(tfc_store_read_costs(store, run, read_cost, &cost));
  const struct tfc_store_edge edges[] = {{5, 2, 6, 400}, {6, -1, 5, 0}};
  assert_ok(tfc_store_add_edges(store, run, edges, 2));
  holds("SELECT * FROM edge ORDER BY edge_id", "2|0|5|2|6|400;2|1|6|-1|5|0;");
  assert_ok(tfc_store_add_memory(store, key, &(struct tfc_store_memory){1, 12345, false}, 1));
  holds("SELECT * FROM memory", "1|1|12345|1;");
  assert_ok(tfc_store_read_memory(store, key, read_memory, &memory));
  assert_true(link == 1 && cost == 1 && memory == 1);
  assert_ok(tfc_store_add_memory(store, key, &(struct tfc_store_memory){0, 77, true}, 1));
  holds("SELECT device_id, peak_bytes, complete FROM v_memory ORDER BY 1", "0|77|0;1|12345|1;");
}

static tfc_status read_steps(void *user, const struct tfc_store_placement_read *r) {
  *(uint32_t *)user = 10 * r->next_step + r->raw;
  return NULL;
}

static void steps(void **state) {
  (void)state;
  uint32_t seen = 77;
  assert_ok(tfc_store_read_placements(store, run, read_steps, &seen));
  assert_int_equal(seen, 0);
  const struct tfc_store_step timed[] = {{0, "warm-up", 0, false, 100, 200}, {4, "final", 3, true, 1000, 5000}};
  assert_ok(tfc_store_add_steps(store, key, timed, 2));
  holds("SELECT * FROM step ORDER BY step", "1|0|warm-up|0|0|100|200;1|4|final|3|1|1000|5000;");
  assert_ok(tfc_store_read_placements(store, run, read_steps, &seen));
  assert_int_equal(seen, 50);
  const struct tfc_profile_busy profiled = {
      .operations_ns = 11,
      .busy_ns = 12,
      .operations = 13,
      .idle = {.launch_ns = 14, .transfer_ns = 15, .dependency_ns = 16, .end_ns = 17, .longest_launch_gap_ns = 18}};
  const struct tfc_store_busy busy = tfc_store_busy_of(4, 1, &profiled);
  assert_ok(tfc_store_add_busy(store, key, &busy, 1));
  holds("SELECT placement, step, device_id, operations_ns, busy_ns, operations, launch_ns, transfer_ns, dependency_ns,"
        " end_ns, launch_gap_ns FROM busy",
        "1|4|1|11|12|13|14|15|16|17|18;");
  const struct tfc_store_op ops[] = {
      {4, 0, 5, 1, 10, 20, -1, 7}, {4, 1, 6, 0, 30, 40, 0, 6}, {4, 2, 7, 2, 50, 60, 9, 8}};
  assert_ok(tfc_store_add_ops(store, key, ops, 3));
  holds("SELECT * FROM op ORDER BY position", "1|4|0|5|1|10|20|-|-;1|4|1|6|0|30|40|0|6;1|4|2|7|2|50|60|9|8;");
  assert_ok(tfc_store_read_placements(store, run, read_steps, &seen));
  assert_int_equal(seen, 51);
  assert_ok(tfc_store_add_op_totals(store, key, &(struct tfc_store_op_total){5, 1, 3, 21, 20, 66}, 1));
  holds("SELECT * FROM op_total", "1|5|1|3|21|20|66;");
  assert_ok(tfc_store_add_transfers(store, key, &(struct tfc_store_transfer){4, 2, 5, 1, 0, 3, 400, 70, 80}, 1));
  holds("SELECT * FROM transfer", "1|4|2|5|1|0|3|400|70|80;");
  assert_ok(tfc_store_drop_raw(store, key));
  holds("SELECT (SELECT COUNT(*) FROM op), (SELECT COUNT(*) FROM transfer), (SELECT COUNT(*) FROM op_total),"
        " (SELECT COUNT(*) FROM step), (SELECT COUNT(*) FROM busy)",
        "0|0|1|2|1;");
}

static void gpu_work(void **state) {
  (void)state;
  const struct tfc_activity_work works[] = {{.kind = TFC_ACTIVITY_KERNEL,
                                             .start_ns = 100,
                                             .end_ns = 130,
                                             .context = 1,
                                             .stream = 7,
                                             .correlation = 55,
                                             .graph_node = 9,
                                             .grid = {2, 3, 4},
                                             .block = {32, 5, 1},
                                             .registers = 40,
                                             .shared = 512,
                                             .name = "sgemm",
                                             .device = 1,
                                             .uid = 5},
                                            {.kind = TFC_ACTIVITY_KERNEL + 1,
                                             .start_ns = 200,
                                             .end_ns = 204,
                                             .context = 1,
                                             .stream = 8,
                                             .bytes = 400,
                                             .direction = "HtoD",
                                             .name = "copy",
                                             .device = UINT16_MAX,
                                             .uid = 6 | TFC_TRACE_UID_TRANSFER},
                                            {.kind = TFC_ACTIVITY_KERNEL + 2,
                                             .start_ns = 300,
                                             .end_ns = 301,
                                             .context = 2,
                                             .stream = 8,
                                             .bytes = 16,
                                             .name = "fill",
                                             .device = 0,
                                             .uid = TFC_NONE}};
  assert_ok(tfc_store_add_works(store, key, 4, 2, works, 3));
  holds(
      "SELECT placement, step, position, kind, name, device_id, node_id, context, stream, start_ns, duration_ns, grid,"
      " block, registers, shared_bytes, bytes, direction, transfer, segment FROM work ORDER BY position",
      "1|4|0|kernel|sgemm|3|5|1|7|100|30|2x3x4|32x5x1|40|512|0|-|-|55;"
      "1|4|1|copy|copy|-|-|1|8|200|4|-|-|-|-|400|HtoD|6|-;"
      "1|4|2|fill|fill|2|-|2|8|300|1|-|-|-|-|16|-|-|-;");
  const struct tfc_activity_call calls[] = {{.start_ns = 10,
                                             .end_ns = 15,
                                             .kind = TFC_ACTIVITY_SYNCHRONIZE,
                                             .context = 1,
                                             .stream = TFC_NONE,
                                             .name = "event"},
                                            {.start_ns = 20,
                                             .end_ns = 20,
                                             .kind = TFC_ACTIVITY_ALLOCATE,
                                             .context = 2,
                                             .stream = 3,
                                             .bytes = 64,
                                             .name = "device"},
                                            {.start_ns = 30,
                                             .end_ns = 31,
                                             .kind = TFC_ACTIVITY_RELEASE,
                                             .context = 2,
                                             .stream = 3,
                                             .bytes = 65,
                                             .name = "pinned"}};
  assert_ok(tfc_store_add_calls(store, key, 4, calls, 3));
  holds("SELECT placement, step, position, kind, name, context, stream, start_ns, duration_ns, bytes FROM gpu_call"
        " ORDER BY position",
        "1|4|0|synchronize|event|1|-|10|5|-;1|4|1|allocate|device|2|3|20|0|64;1|4|2|release|pinned|2|3|30|1|65;");
  assert_ok(tfc_store_drop_raw(store, key));
  holds("SELECT (SELECT COUNT(*) FROM work), (SELECT COUNT(*) FROM gpu_call)", "0|0;");
}

// Tests the states of runs, their answers, which run a name means, and the removal of old runs.
static void finding(void **state) {
  (void)state;
  struct tfc_text text = {0};
  int64_t id = 0, deleted = 0;
  assert_fails(tfc_store_find_interrupted(store, -1, "where", &id), TFC_NOT_FOUND, "no interrupted run");
  assert_ok(tfc_store_set_state(store, run, "where", (tfc_str){"a\0b", 3}));
  assert_ok(tfc_store_get_state(store, run, "where", &text));
  assert_true(text.size == 3 && memcmp(text.data, "a\0b", 3) == 0);
  tfc_text_deinit(&text);
  assert_fails(tfc_store_get_state(store, run, "who", &text), TFC_NOT_FOUND, "run 2 has no state");
  assert_fails(tfc_store_get_answer(store, run, &text), TFC_NOT_FOUND, "did not finish");
  assert_ok(tfc_store_find_interrupted(store, -1, "where", &id));
  assert_int_equal(id, 2);
  assert_ok(tfc_store_find_interrupted(store, 2, "where", &id));
  assert_int_equal(id, 2);
  // A run that keeps something else is not the one to resume.
  assert_fails(tfc_store_find_interrupted(store, -1, "who", &id), TFC_NOT_FOUND, "no interrupted run");
  assert_fails(tfc_store_find_interrupted(store, 2, "who", &id), TFC_NOT_FOUND, "run 2 cannot go on");
  assert_ok(tfc_store_find_run(store, -1, &id));
  assert_int_equal(id, 2);
  assert_ok(tfc_store_find_run(store, 1, &id));
  assert_int_equal(id, 1);
  assert_fails(tfc_store_find_run(store, 9, &id), TFC_NOT_FOUND, "no run 9; the last one is 2");
  assert_ok(tfc_store_index(store));
  assert_fails(tfc_store_gc(store, -1, &deleted), TFC_INVALID_ARGUMENT, "-1");
  assert_ok(tfc_store_gc(store, 1, &deleted));
  assert_int_equal(deleted, 1);
  holds("SELECT run_id FROM run", "2;");
  holds("SELECT COUNT(*) FROM placement", "1;");
  assert_ok(tfc_store_gc(store, 0, &deleted));
  assert_int_equal(deleted, 1);
  holds("SELECT (SELECT COUNT(*) FROM run), (SELECT COUNT(*) FROM placement), (SELECT COUNT(*) FROM assignment)",
        "0|0|0;");
  assert_fails(tfc_store_find_run(store, -1, &id), TFC_NOT_FOUND, "holds no runs");
}

// A run has each warning once, in their order; what was stored before stays.
static void warned(void **state) {
  (void)state;
  struct tfc_warnings warnings = TFC_WARNINGS_INIT;
  char text[32];
  int64_t deleted;
  tfc_warnings_add(&warnings, "load | 2\nand more");
  tfc_warnings_add(&warnings, "strings");
  tfc_warnings_add(&warnings, "load | 2\nand more");
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_warnings_store(NULL, store, run));
  assert_ok(tfc_warnings_store(&warnings, store, run));
  tfc_warnings_add(&warnings, "bound");
  assert_ok(tfc_warnings_store(&warnings, store, run));
  assert_ok(tfc_store_add_warning(store, 1, "strings"));
  assert_ok(tfc_store_commit(store));
  holds("SELECT run_id, number, text FROM v_warning ORDER BY run_id, number",
        "1|1|strings;2|1|load | 2\nand more;2|2|strings;2|3|bound;");
  for (int i = 0; i < 2 * TFC_WARNINGS_MOST; i++) {
    snprintf(text, sizeof text, "number %d", i);
    tfc_warnings_add(&warnings, text);
  }
  assert_int_equal(warnings.count, TFC_WARNINGS_MOST);
  assert_string_equal(warnings.texts[TFC_WARNINGS_MOST - 1], "number 60");
  assert_ok(tfc_store_gc(store, 1, &deleted));
  holds("SELECT COUNT(*), MIN(run_id) FROM v_warning", "3|2;");
  tfc_warnings_deinit(&warnings);
}

// Lists the statements that undo what each version of the schema added.
static void older_versions(void **state) {
  (void)state;
  static const char *const without[] = {
      NULL,
      "ALTER TABLE busy DROP COLUMN launch_ns; ALTER TABLE busy DROP COLUMN transfer_ns; ALTER TABLE busy DROP COLUMN"
      " dependency_ns; ALTER TABLE busy DROP COLUMN end_ns; ALTER TABLE busy DROP COLUMN launch_gap_ns;",
      "ALTER TABLE op DROP COLUMN launched_ns; DROP TABLE work; DROP TABLE gpu_call;",
      "DROP TABLE IF EXISTS tuning;",
      "ALTER TABLE device DROP COLUMN memory_space;",
      "ALTER TABLE device DROP COLUMN math;",
      "",
      "DROP TABLE prediction; DROP TABLE proposer;",
      "DROP TABLE policy_search;",
      "DROP TABLE warning;",
      "", // views only
      "DROP TABLE load; DROP TABLE device_load; ALTER TABLE memory DROP COLUMN complete;",
      "DROP TABLE moves_tried; DROP TABLE single_move;"};
  _Static_assert(sizeof without / sizeof *without == TFC_SCHEMA_VERSION, "an entry for each version");
  static const char all[] =
      "SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema m, pragma_table_info(m.name) c WHERE"
      " m.type IN ('table', 'view') ORDER BY m.name, c.name";
  char *today = ask(store, all);
  for (int version = 1; version < TFC_SCHEMA_VERSION; version++) {
    struct tfc_store *old = NULL;
    char file[96], number[64];
    sqlite3 *db = NULL;
    char *error = NULL;
    snprintf(file, sizeof file, "%s/version%d.db", folder, version);
    assert_ok(tfc_store_open(file, &writing, &old));
    char *drops = ask(old, "SELECT 'DROP VIEW ' || name FROM sqlite_schema WHERE type = 'view'");
    tfc_store_close(old);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, drops, NULL, NULL, NULL), SQLITE_OK);
    free(drops);
    for (int k = TFC_SCHEMA_VERSION - 1; k >= version; k--)
      if (sqlite3_exec(db, without[k], NULL, NULL, &error) != SQLITE_OK) fail_msg("%s: %s", without[k], error);
    snprintf(number, sizeof number, "PRAGMA user_version = %d", version);
    assert_int_equal(sqlite3_exec(db, number, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    assert_ok(tfc_store_open(file, &writing, &old));
    char *made = ask(old, all);
    if (strcmp(made, today)) fail_msg("of version %d: %s", version, made);
    free(made);
    made = ask(old, "PRAGMA user_version");
    assert_int_equal(atoi(made), TFC_SCHEMA_VERSION);
    free(made);
    tfc_store_close(old);
  }
  free(today);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(runs),    TEST(placements), TEST(machine_and_graph), TEST(steps), TEST(gpu_work),
      TEST(finding), TEST(warned),     TEST(older_versions),    TEST(loads), TEST(unknown_bytes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
