// Which task of a job gets which feed, variable and update with --replicas; what --replicas asks of the tasks of a job.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/run_replicas.h"
#include "runtime/graph/import.h"
#include "tests/common/cluster.h"

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
    const struct tfc_output fetched[] = {{tfc_graph_find(g, TFC_STR("mean_x")), 0},
                                         {tfc_graph_find(g, TFC_STR("mean_whole")), 0}};
    const uint32_t target = tfc_graph_find(g, TFC_STR("update"));
    const struct tfc_step_request request = {
        .batch = 4, .fetches = fetched, .fetch_count = 2, .targets = &target, .target_count = 1};
    TFC_TRY(s, tfc_step_infer(g, &request, &step));
    WANT(step.feed_count == 2 && tfc_str_is(step.feeds[0].name, "x:0") && tfc_str_is(step.feeds[1].name, "whole:0"));
    // what an initialiser would be fed, is fed to the first tower's
    step.init_feed_count = 1, init_feeds[0] = (struct tfc_output){tfc_graph_find(g, TFC_STR("mean_whole")), 0};
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
      // towers have different means of x, of which the mean is taken, and the same of `whole`
      WANT(step.fetch_count == 2 && tfc_str_is(all->nodes[step.fetches[0].node].name, "replicas/fetch_0"));
      WANT(step.fetches[0].index == 0 && tfc_str_is(all->nodes[step.fetches[1].node].name, "mean_whole"));
      WANT(tfc_str_is(all->nodes[init_feeds[0].node].name, "mean_whole"));
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
  tfc_test_job_succeed(&(struct tfc_test_job){
      .cluster = "ps=1,worker=2", .script = feeds_of, .arg = (void *)(uintptr_t) "ps=1,worker=2"});
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
  tfc_test_job_succeed(
      &(struct tfc_test_job){.cluster = "worker=3", .script = mirrored, .arg = (void *)(uintptr_t) "worker=3"});
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_feeds_of_replicas), cmocka_unit_test(test_mirrors),
                                     cmocka_unit_test(test_checks_of_replicas), cmocka_unit_test(test_parts_of_feeds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
