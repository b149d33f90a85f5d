// The parts of tfc-run that only jobs of several tasks use, in one process, with values by hand: which task gets which
// feed of --replicas, and what becomes of traced steps in the database. Jobs of one task need no mpirun: with them, the
// programs are run as users do.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/program.h"
#include "cli/run_replicas.h"
#include "cli/run_together.h"
#include "cli/run_traces.h"
#include "profiler/warnings.h"
#include "runtime/graph/import.h"
#include "tests/common/cluster.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[TEST_FOLDER_SIZE];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "cluster-parts");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void run_job(const char *cluster, tfc_status (*script)(struct tfc_member *, void *), const char *label) {
  struct tfc_test_job job = {.cluster = cluster, .script = script, .label = label, .arg = (void *)(uintptr_t)cluster};
  tfc_test_job_succeed(&job);
}

// --- replicas --------------------------------------------------------------------------------------------------------

// Eight rows of two numbers, 0, 1, 2, ...
static struct tfc_tensor numbers(void) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(8, 2), &t));
  for (int i = 0; i < 16; i++) ((float *)t.data)[i] = (float)i;
  return t;
}
// Whether a tensor is the rows of numbers() from the first one to the one before the last.
static bool is_rows(const struct tfc_tensor *t, int begin, int end) {
  bool same = t->shape.rank == 2 && t->shape.dims[0] == end - begin && t->shape.dims[1] == 2;
  for (int i = 0; same && i < 2 * (end - begin); i++) same = ((const float *)t->data)[i] == (float)(2 * begin + i);
  return same;
}

static const char feeds_text[] =
    "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
    "       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } }"
    "node { name: 'whole' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
    "       attr { key: 'shape' value { shape { dim { size: 8 } dim { size: 2 } } } } }"
    "node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } } "
    "       attr { key: 'shape' value { shape { } } } }"
    "node { name: 'zero' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } "
    "       attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }"
    "node { name: 'initial' op: 'AssignVariableOp' input: 'v' input: 'zero' "
    "       attr { key: 'dtype' value { type: DT_FLOAT } } }"
    "node { name: 'axes' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } "
    "       attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } "
    "       tensor_content: '\\000\\000\\000\\000\\001\\000\\000\\000' } } } }"
    "node { name: 'mean_x' op: 'Mean' input: 'x' input: 'axes' attr { key: 'T' value { type: DT_FLOAT } } "
    "       attr { key: 'Tidx' value { type: DT_INT32 } } }"
    "node { name: 'mean_whole' op: 'Mean' input: 'whole' input: 'axes' attr { key: 'T' value { type: DT_FLOAT } } "
    "       attr { key: 'Tidx' value { type: DT_INT32 } } }"
    "node { name: 'gradients/sum' op: 'AddV2' input: 'mean_x' input: 'mean_whole' "
    "       attr { key: 'T' value { type: DT_FLOAT } } }"
    "node { name: 'update' op: 'AssignSubVariableOp' input: 'v' input: 'gradients/sum' "
    "       attr { key: 'dtype' value { type: DT_FLOAT } } }";

// Each replica gets its part of `x`, and all of `whole`.
static tfc_status feeds_of(struct tfc_member *member, void *arg) {
  const char *cluster = arg;
  const uint32_t rank = tfc_member_rank(member);
  tfc_status s = NULL;
  struct tfc_cluster_spec spec = {0};
  struct tfc_graph *g = NULL;
  struct tfc_tensor x = numbers();
  TFC_TRY(s, tfc_cluster_spec_parse(tfc_str_from(cluster), &spec));
  for (int async = 0; async < 2; async++) {
    struct run_options o = {
        .graph = "g", .cluster = cluster, .replicas = 2, .async = async, .sync = !async, .reduce = RUN_REDUCE_AUTO};
    struct tfc_step_spec step = {0};
    struct run_setup setup = {.options = &o, .member = member, .tasks = &spec};
    struct run_replicas_feeds feeds = {calloc(2, sizeof(struct tfc_output)), calloc(2, sizeof(struct tfc_tensor)), 2};
    struct tfc_output init_feeds[1];
    const bool split[] = {true, false};
    WANT(feeds.outputs && feeds.values);
    TFC_TRY(s, tfc_graph_parse(tfc_str_from(feeds_text), "graph", NULL, &g));
    TFC_TRY(s, tfc_step_infer(g, &(struct tfc_step_request){.batch = 4}, &step));
    WANT(step.feed_count == 2 && tfc_str_is(step.feeds[0].name, "x:0") && tfc_str_is(step.feeds[1].name, "whole:0"));
    for (uint32_t i = 0; i < 2; i++) feeds.outputs[i] = step.feeds[i].output, tfc_tensor_share(&x, &feeds.values[i]);
    setup.graph = setup.file = g;
    tfc_graph_retain(g), g = NULL;
    TFC_TRY(s, run_replicas_make(&setup, split, &step, &feeds, init_feeds));
    const struct tfc_graph *all = setup.graph;
    if (async) { // of task 0 of the job ps, nobody asks
      const int own = (int)rank - 1;
      WANT(feeds.count == 2 && (!rank || is_rows(&feeds.values[0], 4 * own, 4 * own + 4)));
      WANT(is_rows(&feeds.values[1], 0, 8) && feeds.values[1].data == x.data); // shared, not copied
      WANT(tfc_str_is(all->nodes[feeds.outputs[0].node].name, "x"));
      WANT(tfc_str_is(all->nodes[feeds.outputs[1].node].name, "whole"));
      char worker[40];
      snprintf(worker, sizeof worker, "/job:worker/task:%d", own);
      WANT(!rank || tfc_str_is(all->nodes[tfc_graph_find(all, TFC_STR("mean_x"))].device, worker));
      WANT(tfc_str_is(all->nodes[tfc_graph_find(all, TFC_STR("v"))].device, "/job:ps/task:0"));
      WANT(!setup.mirrors);
    } else {
      WANT(feeds.count == 3 && is_rows(&feeds.values[0], 0, 4) && is_rows(&feeds.values[1], 4, 8));
      WANT(is_rows(&feeds.values[2], 0, 8) && feeds.values[2].data == x.data);
      WANT(tfc_str_is(all->nodes[feeds.outputs[0].node].name, "x"));
      WANT(tfc_str_is(all->nodes[feeds.outputs[1].node].name, "replica_1/x"));
      WANT(tfc_str_is(all->nodes[feeds.outputs[2].node].name, "whole"));
      WANT(tfc_graph_find(all, TFC_STR("replica_1/whole")) == TFC_NONE);
      // the update exists once, where the variable is; the gradients are averaged before it
      WANT(step.target_count == 1 && tfc_str_is(all->nodes[step.targets[0]].name, "update"));
      WANT(tfc_str_is(all->nodes[step.targets[0]].device, "/job:ps/task:0"));
      WANT(step.init_count == 1 && tfc_str_is(all->nodes[step.inits[0]].name, "initial"));
      WANT(setup.graph == setup.file && !setup.mirrors);
    }
    for (uint32_t i = 0; i < feeds.count; i++) tfc_tensor_release(&feeds.values[i]);
    free(feeds.outputs), free(feeds.values);
    tfc_step_spec_deinit(&step);
    tfc_graph_release(setup.graph);
    tfc_graph_release(setup.file);
  }
out:
  tfc_tensor_release(&x);
  tfc_graph_release(g);
  tfc_cluster_spec_deinit(&spec);
  return s;
}
static void test_feeds_of_replicas(void **state) {
  (void)state;
  run_job("ps=1,worker=2", feeds_of, NULL);
}

// Without a store each tower has variables and an update of its own.
static tfc_status mirrored(struct tfc_member *member, void *arg) {
  const char *cluster = arg;
  tfc_status s = NULL;
  struct tfc_cluster_spec spec = {0};
  struct tfc_graph *g = NULL;
  struct tfc_step_spec step = {0};
  struct run_options o = {.graph = "g", .cluster = cluster, .replicas = 3, .sync = true};
  struct run_setup setup = {.options = &o, .member = member, .tasks = &spec};
  struct run_replicas_feeds feeds = {calloc(2, sizeof(struct tfc_output)), calloc(2, sizeof(struct tfc_tensor)), 0};
  struct tfc_output init_feeds[1];
  const bool split[] = {true, true};
  TFC_TRY(s, tfc_cluster_spec_parse(tfc_str_from(cluster), &spec));
  TFC_TRY(s, tfc_graph_parse(tfc_str_from(feeds_text), "graph", NULL, &g));
  TFC_TRY(s, tfc_step_infer(g, &(struct tfc_step_request){.batch = 4}, &step));
  setup.graph = setup.file = g;
  tfc_graph_retain(g), g = NULL;
  TFC_TRY(s, run_replicas_make(&setup, split, &step, &feeds, init_feeds));
  WANT(setup.mirrors == 3 && step.target_count == 3 && step.init_count == 3 && feeds.count == 0);
  static const char *const updates[] = {"update", "replica_1/update", "replica_2/update"};
  for (uint32_t k = 0; k < 3; k++) {
    char worker[40];
    snprintf(worker, sizeof worker, "/job:worker/task:%u", k);
    WANT(tfc_str_is(setup.graph->nodes[step.targets[k]].name, updates[k]));
    WANT(tfc_str_is(setup.graph->nodes[step.targets[k]].device, worker));
  }
out:
  free(feeds.outputs), free(feeds.values);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(setup.graph);
  tfc_graph_release(setup.file);
  tfc_graph_release(g);
  tfc_cluster_spec_deinit(&spec);
  return s;
}
static void test_mirrors(void **state) {
  (void)state;
  run_job("worker=3", mirrored, NULL);
}

static void test_checks_of_replicas(void **state) {
  (void)state;
  static const struct {
    const char *cluster, *graph, *says; // NULL: it is right
    int64_t replicas, backup;
    int reduce;
    bool async;
  } cases[] = {
      {"worker=2", "g", NULL, 0, 1, RUN_REDUCE_PS, true}, // without --replicas nothing is asked for
      {"worker=2", "g", NULL, 2, 0, RUN_REDUCE_AUTO, false},
      {"worker=2", "g", NULL, 2, 0, RUN_REDUCE_ALL, false},
      {"ps=2,worker=2", "g", NULL, 2, 0, RUN_REDUCE_PS, false},
      {"ps=2,worker=2", "g", NULL, 2, 1, RUN_REDUCE_AUTO, false},
      {"ps=2,worker=2", "g", NULL, 2, 0, RUN_REDUCE_AUTO, true},
      {"worker=2", "g", "--replicas 3 needs as many tasks whose job is not ps; --cluster worker=2 has 2", 3, 0, 0, 0},
      {"ps=1,worker=2", "g", "has 2", 3, 0, 0, 0},
      {"worker=2", "g", "--async needs tasks of a job ps; --cluster worker=2 has none", 2, 0, RUN_REDUCE_AUTO, true},
      {"worker=2", "g", "--backup needs", 2, 1, RUN_REDUCE_AUTO, false},
      {"worker=2", "g", "--reduce ps needs", 2, 0, RUN_REDUCE_PS, false},
      {"ps=1,worker=2", "g", "--backup needs", 2, 1, RUN_REDUCE_ALL, false},
      {"worker=2", "g.{job}", "--graph g.{job} names several", 2, 0, 0, false},
      {"worker=2", "g.{task}", "--graph g.{task} names several", 2, 0, 0, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_cluster_spec spec = {0};
    const struct run_options o = {.graph = cases[i].graph,
                                  .cluster = cases[i].cluster,
                                  .replicas = cases[i].replicas,
                                  .backup = cases[i].backup,
                                  .reduce = cases[i].reduce,
                                  .async = cases[i].async};
    assert_ok(tfc_cluster_spec_parse(tfc_str_from(cases[i].cluster), &spec));
    if (cases[i].says)
      assert_fails(run_replicas_check(&o, &spec), TFC_INVALID_ARGUMENT, cases[i].says);
    else
      assert_ok(run_replicas_check(&o, &spec));
    tfc_cluster_spec_deinit(&spec);
  }
}

// A feed that has the declared shape is everyone's, and others are divided by their first dimension.
static void test_parts_of_feeds(void **state) {
  (void)state;
  struct run_options o = {.replicas = 2};
  struct run_setup setup = {.options = &o};
  assert_ok(tfc_graph_parse(tfc_str_from(feeds_text), "graph", NULL, &setup.file));
  struct tfc_shape shape = TFC_SHAPE(8, 2);
  assert_ok(run_replicas_part(&setup, (struct tfc_output){0, 0}, &shape));
  assert_true(tfc_shape_equal(&shape, &TFC_SHAPE(4, 2)));
  shape = TFC_SHAPE(7, 2);
  assert_fails(run_replicas_part(&setup, (struct tfc_output){0, 0}, &shape), TFC_INVALID_ARGUMENT,
               "the first dimension of the feed 'x' is 7, which 2 replicas cannot share");
  assert_true(tfc_shape_equal(&shape, &TFC_SHAPE(7, 2)));
  shape = TFC_SHAPE(8, 2);
  assert_ok(run_replicas_part(&setup, (struct tfc_output){1, 0}, &shape));
  assert_true(tfc_shape_equal(&shape, &TFC_SHAPE(8, 2)));
  shape = (struct tfc_shape){.rank = 0}; // a scalar cannot be divided
  assert_ok(run_replicas_part(&setup, (struct tfc_output){0, 0}, &shape));
  assert_int_equal(shape.rank, 0);
  o.replicas = 1;
  shape = TFC_SHAPE(8, 2);
  assert_ok(run_replicas_part(&setup, (struct tfc_output){0, 0}, &shape));
  assert_true(tfc_shape_equal(&shape, &TFC_SHAPE(8, 2)));
  tfc_graph_release(setup.file);

  static const char *const names[][2] = {
      {"replica_1/a/b", "a/b"},          {"replica_12/v", "v"},      {"v", "v"},
      {"replica_x/v", "replica_x/v"},    {"replica_1", "replica_1"}, {"replica_3/", ""},
      {"a/replica_1/v", "a/replica_1/v"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_true(tfc_str_is(run_replicas_original(tfc_str_from(names[i][0])), names[i][1]));
}

// --- steps that clients take together --------------------------------------------------------------------------------

#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "' " inputs " " attrs " }"
#define TYPE(key, type) " attr { key: '" key "' value { type: " type " } }"
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const", "",                                                                                              \
       TYPE("dtype",                                                                                                   \
            "DT_INT32") " attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: " value       \
                        " } } }")
#define ACCUMULATOR(k, required)                                                                                       \
  NODE(                                                                                                                \
      "accumulator" k, "ConditionalAccumulator", "",                                                                   \
      TYPE("dtype", "DT_FLOAT") " attr { key: 'shape' value { shape { } } } attr { key: 'shared_name' value { s: 'a" k \
                                "' } }")                                                                               \
  NUMBER("required" k, required)                                                                                       \
  NODE("apply" k, "AccumulatorApplyGradient", "input: 'accumulator" k "' input: 'now' input: 'gradient'",              \
       TYPE("dtype", "DT_FLOAT"))                                                                                      \
  NODE("take" k, "AccumulatorTakeGradient", "input: 'accumulator" k "' input: 'required" k "'",                        \
       TYPE("dtype", "DT_FLOAT"))
#define BEGIN                                                                                                          \
  NODE(                                                                                                                \
      "now", "Const", "",                                                                                              \
      TYPE("dtype", "DT_INT64") " attr { key: 'value' value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 0 " \
                                "} } }")                                                                               \
  NODE(                                                                                                                \
      "gradient", "Const", "",                                                                                         \
      TYPE("dtype", "DT_FLOAT") " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 " \
                                "} } }")

static void test_together(void **state) {
  (void)state;
  static const struct {
    const char *graph, *targets[2];
    uint32_t clients;
    bool together;
  } cases[] = {
      {BEGIN ACCUMULATOR("0", "2"), {"apply0", NULL}, 2, true},
      {BEGIN ACCUMULATOR("0", "2"), {"apply0", NULL}, 3, false},   // an average without the third one
      {BEGIN ACCUMULATOR("0", "2"), {"gradient", NULL}, 2, false}, // the step gives no gradient
      {BEGIN ACCUMULATOR("0", "2") ACCUMULATOR("1", "2"), {"apply0", "apply1"}, 2, true},
      {BEGIN ACCUMULATOR("0", "2") ACCUMULATOR("1", "1"), {"apply0", "apply1"}, 2, false},
      {BEGIN ACCUMULATOR("0", "1") ACCUMULATOR("1", "2"), {"apply0", "apply1"}, 2, false},
      {BEGIN ACCUMULATOR("0", "1") ACCUMULATOR("1", "2"), {"apply1", NULL}, 2, true}, // the first is not of the step
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct run_setup setup = {0};
    struct tfc_step_spec step = {0};
    uint32_t targets[2] = {0};
    bool together = !cases[i].together;
    assert_ok(tfc_graph_parse(tfc_str_from(cases[i].graph), "graph", NULL, &setup.graph));
    for (; step.target_count < 2 && cases[i].targets[step.target_count]; step.target_count++)
      assert_ok(tfc_graph_parse_node(setup.graph, tfc_str_from(cases[i].targets[step.target_count]),
                                     &targets[step.target_count]));
    step.targets = targets;
    assert_ok(run_together_can(&setup, &step, NULL, cases[i].clients, &together));
    if (together != cases[i].together) fail_msg("case %zu", i);
    tfc_graph_release(setup.graph);
  }
}

// --- traced steps in the database ------------------------------------------------------------------------------------

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
  run_job("ps=1,worker=2", store_traces, "emulated");
}

// --- a job of one task -----------------------------------------------------------------------------------------------

#define JOB "tfc-run --cluster worker=1 --supervise %s/saved --json"
static void test_failure_is_kept(void **state) {
  (void)state;
  char path[96];
  snprintf(path, sizeof path, "%s/saved", folder);
  assert_int_equal(cli_failure_read(NULL), 0);
  assert_int_equal(cli_failure_read(path), 0);
  command_put(folder, "bad.pb", "nonsense");
  assert_exit(3, "bad.pb", JOB " --graph %s/bad.pb --steps 1", folder, folder);
  assert_int_equal(cli_failure_read(path), 3);
  const struct command_result *r = command("cat %s/failure", path);
  assert_int_equal(strncmp(r->out, "3 /job:worker/task:0: ", 22), 0);
  assert_null(strstr(r->out + 22, "/job:worker/task:0: ")); // the task is named once
  assert_non_null(strstr(r->out, "bad.pb: line 1"));
  // a job that ends well removes it
  assert_exit(0, "", JOB " --graph %s/examples/ridge.pb --steps 2", folder, TFC_SOURCE_DIR);
  assert_int_equal(cli_failure_read(path), 0);
  assert_int_not_equal(access(path, F_OK), -1);
  snprintf(path, sizeof path, "%s/saved/failure", folder);
  assert_int_equal(access(path, F_OK), -1);

  // Only what would come again is kept.
  snprintf(path, sizeof path, "%s/codes", folder);
  for (int code = 0; code < 140; code++) {
    cli_failure_leave(path, code, "task", "why");
    assert_int_equal(cli_failure_read(path), code == 2 || code == 3 || code == 5 ? code : 0);
    cli_failure_forget(path);
    assert_int_equal(cli_failure_read(path), 0);
  }
  command_put(folder, "failure", "4 another task was lost\n");
  assert_int_equal(cli_failure_read(folder), 0);
  command_put(folder, "failure", "nothing\n");
  assert_int_equal(cli_failure_read(folder), 0);
  cli_failure_forget(NULL);
}

// A job of one task trains as a program by itself does, and its profile counts what a step has.
static void test_alone(void **state) {
  (void)state;
  assert_exit(0, "/job:worker/task:0 on ",
              "tfc-run --cluster worker=1 --graph %s/examples/ridge.pb --steps 4 --warmup 1 --profile --db %s/alone.db",
              TFC_SOURCE_DIR, folder);
  const struct command_result *r = command("tfc-report --db %s/alone.db show 1", folder);
  assert_result(r, 0, "");
  assert_non_null(strstr(r->out, "    4   1.000x")); // four steps
  // a device that this task does not have, and names that are none
  assert_exit(4, "/job:worker/task:0: ",
              "tfc-run --cluster worker=1 --graph %s/examples/ridge.pb --steps 1 --devices gpu:77", TFC_SOURCE_DIR);
  assert_exit(3, "--cluster worker=0", "tfc-run --cluster worker=0 --graph %s/examples/ridge.pb --steps 1",
              TFC_SOURCE_DIR);
}

// tfc-place in a job of one task: it places, and what it asks for is what it was given.
static void test_place_alone(void **state) {
  (void)state;
  assert_exit(
      0, "/job:worker/task:0 on ",
      "tfc-place --wait --cluster worker=1 --graph %s/examples/ridge.pb --time 3s --measurements 2 --report none "
      "--db %s/place.db --out %s/place.json; c=$?; [ $c = 7 ] && exit 0; exit $c",
      TFC_SOURCE_DIR, folder, folder);
  const struct command_result *r = command("cat %s/place.json", folder);
  assert_non_null(strstr(r->out, "\"/job:worker/task:0/device:CPU:0\""));
  static const struct {
    const char *devices, *says;
    int code;
  } wrong[] = {{"/job:worker/task:0", "'/job:worker/task:0' is not /job:NAME/task:N/device:TYPE:N", 3},
               {"/job:worker/task:0/device:TPU:0", "devices of tasks are CPU:N or GPU:N", 3},
               {"/job:worker/task:*/device:GPU:*", "name GPUs by their numbers", 3},
               {"/job:worker/task:0/device:CPU:x", "x", 3}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_exit(
        wrong[i].code, wrong[i].says,
        "tfc-place --wait --cluster worker=1 --graph %s/examples/ridge.pb --time 3s --report none --db %s/no.db "
        "--out %s/no.json --devices '%s'",
        TFC_SOURCE_DIR, folder, folder, wrong[i].devices);
  assert_exit(2, "--restarts needs --cluster", "tfc-place --graph %s/examples/ridge.pb --restarts 1", TFC_SOURCE_DIR);
  static const char *const refused[] = {"--machine m.yaml", "--checkpoint c", "--untrusted", "--objective throughput"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    assert_exit(2, "several", "tfc-place --cluster worker=1 --graph %s/examples/ridge.pb %s", TFC_SOURCE_DIR,
                refused[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_feeds_of_replicas),  cmocka_unit_test(test_mirrors),
      cmocka_unit_test(test_checks_of_replicas), cmocka_unit_test(test_parts_of_feeds),
      cmocka_unit_test(test_together),           cmocka_unit_test(test_traces),
      cmocka_unit_test(test_failure_is_kept),    cmocka_unit_test(test_alone),
      cmocka_unit_test(test_place_alone),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
