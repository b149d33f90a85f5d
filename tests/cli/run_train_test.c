// Training in jobs whose tasks are threads of this process: what feeds become, what replicas do together, which
// checkpoints are kept, and how training goes on. Variables and losses follow by hand, and are those of one task.
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run_saves.h"
#include "runtime/io/npy.h"
#include "tests/cli/cluster_job.h"

// It gets its transports from the file above.
#include "cli/run_cluster.c"
#define fail() _fail(__FILE__, __LINE__)

static void test_documents(void **state) {
  (void)state;
  command_put(folder, "v.pbtxt", GRAPH("", "0.25"));
  struct run_options o = options(in("v.pbtxt"), "worker=2");
  o.common.json = true;
  run_same(2, &o);
  codes(0, 0, 0);
  json_t *d = json_loads(test_out.text, 0, NULL);
  if (!d) fail_msg("%s", test_out.text);
  const json_t *step = json_object_get(d, "step");
  const double q1 = json_number_value(json_object_get(step, "q1_us")),
               median = json_number_value(json_object_get(step, "median_us")),
               q3 = json_number_value(json_object_get(step, "q3_us"));
  assert_string_equal(json_string_value(json_object_get(d, "task")), "/job:worker/task:0");
  assert_string_equal(json_string_value(json_object_get(d, "graph")), in("v.pbtxt"));
  assert_true(q1 > 0 && q1 <= median && median <= q3 && q3 < 60e6);
  assert_int_equal(json_integer_value(json_object_get(step, "steps")), 3);
  assert_int_equal(json_integer_value(json_object_get(d, "steps_before")), 0);
  assert_true(json_number_value(json_object_get(json_object_get(d, "fetched"), "read:0")) == 0.25);
  assert_null(json_object_get(d, "backup"));
  json_decref(d);
  // Names that the graph does not have: the error says which flag names it.
  static const char *const wrong[][3] = {{"nowhere:0", "update", "init"},
                                         {"read:0", "nowhere", "init"},
                                         {"read:0", "update", "nowhere"},
                                         {"read:5", "update", "init"}};
  static const char *const says[] = {
      "--fetch nowhere:0: ", "--target nowhere: ", "--init nowhere: ", "--fetch read:5: "};
  for (int i = 0; i < 4; i++) {
    o = options(in("v.pbtxt"), "worker=1");
    o.fetches.items = (const char **)(uintptr_t)&wrong[i][0];
    o.targets.items = (const char **)(uintptr_t)&wrong[i][1];
    o.inits.items = (const char **)(uintptr_t)&wrong[i][2];
    run_same(1, &o);
    codes(3, 0, 0);
    SAYS(test_err, says[i], 1);
  }
}

// --- Checkpoints -----------------------------------------------------------------------------------------------------

static void test_checkpoints(void **state) {
  (void)state;
  char line[200];
  command_put(folder, "ps.pbtxt", GRAPH("/job:ps/task:0", "0.25"));
  struct run_options o = options(in("ps.pbtxt"), "ps=1,worker=2");
  o.supervise = in("saves"), o.save_every = 0, o.steps = 7; // it saves after each step, and takes none of warm-up
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_out, "/job:worker/task:0: read:0 = -0.5\n", 1); // the seventh step begins with 1 - 6 * 0.25
  SAYS(test_err, ": 1 variables saved\n", 7);
  assert_string_equal(test_file_text(in("saves/checkpoint")), "model_checkpoint_path: \"model.ckpt-7\"\n"
                                                              "all_model_checkpoint_paths: \"model.ckpt-3\"\n"
                                                              "all_model_checkpoint_paths: \"model.ckpt-4\"\n"
                                                              "all_model_checkpoint_paths: \"model.ckpt-5\"\n"
                                                              "all_model_checkpoint_paths: \"model.ckpt-6\"\n"
                                                              "all_model_checkpoint_paths: \"model.ckpt-7\"\n");
  for (int k = 1; k <= 8; k++) {
    static const char *const ends[] = {"index", "data-00000-of-00001", "state"};
    for (int i = 0; i < 3; i++) {
      snprintf(line, sizeof line, "saves/model.ckpt-%d.%s", k, ends[i]);
      assert_true(test_file_exists(in(line)) == (k >= 3 && k <= 7));
    }
  }
  // It goes on where it was; rarely saving, it saves at the end.
  o.steps = 10, o.save_every = 1000, o.common.json = true;
  run_same(3, &o);
  codes(0, 0, 0);
  json_t *d = json_loads(test_out.text, 0, NULL);
  assert_int_equal(json_integer_value(json_object_get(d, "steps_before")), 7);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(d, "step"), "steps")), 3);
  assert_true(json_number_value(json_object_get(json_object_get(d, "fetched"), "read:0")) == -1.25); // 1 - 9 / 4
  json_decref(d);
  snprintf(line, sizeof line, "%s/model.ckpt-7: 1 variables restored\n", in("saves"));
  SAYS(test_err, line, 1), SAYS(test_err, "variables saved\n", 1), SAYS(test_err, "warning", 0);
  assert_non_null(strstr(test_file_text(in("saves/checkpoint")), "model_checkpoint_path: \"model.ckpt-10\"\n"));
  assert_true(!test_file_exists(in("saves/model.ckpt-3.index")) && test_file_exists(in("saves/model.ckpt-4.index")));
  // There is nothing left to do.
  o.common.json = false;
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_out, "/job:worker/task:0: all 10 steps had been taken\n", 1);
  // A checkpoint of --supervise is newer than that of --checkpoint.
  o.checkpoint = in("saves/model.ckpt-6"), o.steps = 11;
  run_same(3, &o);
  SAYS(test_out, "read:0 = -1.5\n", 1), SAYS(test_err, "1 of 1 variables restored", 0);
  o.supervise = in("other"), o.steps = 1;
  run_same(3, &o);
  SAYS(test_out, "read:0 = -0.5\n", 1), SAYS(test_err, "model.ckpt-6: 1 of 1 variables restored\n", 1);
  // An older checkpoint, if `checkpoint` says so; and without its state.
  o.supervise = in("saves"), o.checkpoint = NULL, o.steps = 9;
  command_put(in("saves"), "checkpoint", "model_checkpoint_path: \"model.ckpt-8\"\n");
  run_same(3, &o);
  assert_int_equal(test_tasks[1].code, 3);
  SAYS(test_err, "model.ckpt-8.index: ", 3); // it is not there
  command_put(in("saves"), "checkpoint",
              "model_checkpoint_path: \"model.ckpt-5\"\n"
              "all_model_checkpoint_paths: \"model.ckpt-5\"\n");
  assert_int_equal(unlink(in("saves/model.ckpt-5.state")), 0);
  run_same(3, &o);
  codes(0, 0, 0);
  SAYS(test_out, "read:0 = -1\n", 1); // 1 - 8 / 4
  SAYS(test_err, "model.ckpt-5.state is not there: random numbers, datasets and queues begin anew\n", 1);
}

static void test_broken_checkpoints(void **state) {
  (void)state;
  struct run_options o = options(in("v.pbtxt"), "worker=1");
  o.supervise = in("broken"), o.steps = 2;
  run_same(1, &o);
  codes(0, 0, 0);
  static const char last[] = "model_checkpoint_path: \"model.ckpt-2\"\n",
                    all[] = "all_model_checkpoint_paths: \"model.ckpt-2\"\n";
  static const struct {
    const char *checkpoint, *more, *says; // NULL: it goes on
  } cases[] = {{last, all, NULL},
               {last, "", NULL}, // a list is not needed
               {last, "all_model_checkpoint_paths: \"model.ckpt-1\"\n", "the last checkpoint is not in the list"},
               {last, "what is this\n", "'what is this' is not a line of tfc-run's"},
               {"", all, "the last checkpoint is not in the list"},
               {"\n", "", NULL}};
  o.steps = 3;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[300];
    snprintf(text, sizeof text, "%s%s", cases[i].checkpoint, cases[i].more);
    command_put(in("broken"), "checkpoint", text);
    run_same(1, &o);
    if (test_tasks[0].code != (cases[i].says ? 3 : 0)) fail_msg("case %zu: %s", i, test_err.text);
    if (cases[i].says) SAYS(test_err, cases[i].says, 1);
  }
  static const struct {
    const char *file, *says;
  } states[] = {{"tfc state 2\nend\n", NULL},
                {"tfc state 1\nend\n", "it begins with 'tfc state 1': another version of tfc wrote it, and this one "
                                       "reads 'tfc state 2'"},
                {"tfc state 2\n", "it has no beginning or no end"},
                {"nothing\nend\n", "it has no beginning or no end"}};
  for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
    char text[300];
    snprintf(text, sizeof text, "%s%s", last, all);
    command_put(in("broken"), "checkpoint", text);
    command_put(in("broken"), "model.ckpt-2.state", states[i].file);
    run_same(1, &o);
    if (test_tasks[0].code != (states[i].says ? 3 : 0)) fail_msg("state %zu: %s", i, test_err.text);
    if (states[i].says) SAYS(test_err, states[i].says, 1);
  }
}

// More than five in the list: the last five count.
static void test_long_lists(void **state) {
  (void)state;
  char text[1000];
  size_t at = (size_t)snprintf(text, sizeof text, "model_checkpoint_path: \"model.ckpt-9\"\n");
  for (int k = 2; k <= 9; k++)
    at += (size_t)snprintf(text + at, sizeof text - at, "all_model_checkpoint_paths: \"model.ckpt-%d\"\n", k);
  assert_int_equal(command("mkdir %s/many", folder)->code, 0);
  command_put(in("many"), "checkpoint", text);
  struct run_saves saves = {0};
  assert_ok(run_saves_open(NULL, in("many"), true, &saves));
  assert_int_equal(saves.kept_count, 5);
  for (int k = 0; k < 5; k++) assert_int_equal(saves.kept[k], 5 + k);
  assert_true(saves.steps == 9 && saves.chief && !saves.together);
  run_saves_close(&saves);
}

// --- Feeds and replicas ----------------------------------------------------------------------------------------------

// A step takes the mean of x and the mean of `whole` from v.
static const char means[] =
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
    "node { name: 'read' op: 'ReadVariableOp' input: 'v' attr { key: 'dtype' value { type: DT_FLOAT } } }"
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

// x and `whole` are the numbers from 0 to 15 in rows of two: their mean is 7.5, that of the first half of the rows 3.5
// and that of the second half 11.5.
static void test_replicas(void **state) {
  (void)state;
  static const struct {
    const char *cluster;
    uint32_t count;
    int replicas, reduce;
    bool sync, async;
    float after; // v after three steps
  } cases[] = {{"worker=1", 1, 0, 0, false, false, -45},
               {"worker=2", 2, 2, RUN_REDUCE_AUTO, true, false, -45},
               {"ps=1,worker=2", 3, 2, RUN_REDUCE_AUTO, true, false, -45},
               {"ps=1,worker=2", 3, 2, RUN_REDUCE_PS, true, false, -45},
               {"ps=1,worker=2", 3, 2, RUN_REDUCE_ALL, true, false, -45},
               // each applies its own: 3 * (3.5 + 7.5) and 3 * (11.5 + 7.5)
               {"ps=1,worker=2", 3, 2, RUN_REDUCE_AUTO, false, true, -90}};
  static const char *const fetched[] = {"mean_x:0", "mean_whole:0"}, *const initial[] = {"initial"},
                           *const v[] = {"read:0"};
  char x_feed[200], whole_feed[200], line[100];
  const char *feeds[] = {whole_feed, x_feed};
  struct tfc_tensor x = {0};
  command_put(folder, "means.pbtxt", means);
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(8, 2), &x));
  for (int i = 0; i < 16; i++) ((float *)x.data)[i] = (float)i;
  assert_ok(tfc_npy_write(in("x.npy"), &x));
  tfc_tensor_release(&x);
  snprintf(x_feed, sizeof x_feed, "x:0=%s", in("x.npy"));
  snprintf(whole_feed, sizeof whole_feed, "whole:0=%s", in("x.npy"));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct run_options o = options(in("means.pbtxt"), cases[i].cluster);
    o.warmup = 0, o.replicas = cases[i].replicas, o.reduce = cases[i].reduce, o.sync = cases[i].sync;
    o.async = cases[i].async, o.save_checkpoint = in("means");
    o.fetches = (struct tfc_texts){(const char **)(uintptr_t)fetched, 2}, o.feeds = (struct tfc_texts){feeds, 2};
    o.inits.items = (const char **)(uintptr_t)initial;
    run_same(cases[i].count, &o);
    codes(0, 0, 0);
    if (cases[i].async) {
      SAYS(test_out, "/job:worker/task:0: mean_x:0 = 3.5\n", 1);
      SAYS(test_out, "/job:worker/task:1: mean_x:0 = 11.5\n", 1);
      SAYS(test_out, "mean_whole:0 = 7.5\n", 2);
    } else {
      SAYS(test_out, "/job:worker/task:0: mean_x:0 = 7.5\n", 1);
      SAYS(test_out, "mean_x:0 = ", 1), SAYS(test_out, "mean_whole:0 = 7.5\n", 1);
      SAYS(test_err, "replicas: 2 towers; gradients are averaged and applied where the variables are\n",
           cases[i].count == 3 && cases[i].reduce != RUN_REDUCE_ALL);
      SAYS(test_err, "replicas: 2 towers; gradients are averaged for all, and each applies them to its own variables\n",
           cases[i].replicas && (cases[i].count == 2 || cases[i].reduce == RUN_REDUCE_ALL));
    }
    SAYS(test_err, "means: 1 variables saved\n", 1);
    o = options(in("means.pbtxt"), "worker=1");
    o.checkpoint = in("means"), o.steps = 1, o.warmup = 0, o.targets.count = 0,
    o.fetches.items = (const char **)(uintptr_t)v;
    o.inits.items = (const char **)(uintptr_t)initial;
    run_same(1, &o);
    codes(0, 0, 0);
    snprintf(line, sizeof line, "read:0 = %g\n", (double)cases[i].after);
    SAYS(test_out, line, 1);
  }
  // Seven rows are no feed for two replicas.
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(7, 2), &x));
  memset(x.data, 0, x.size);
  assert_ok(tfc_npy_write(in("x.npy"), &x));
  tfc_tensor_release(&x);
  struct run_options o = options(in("means.pbtxt"), "worker=2");
  o.replicas = 2, o.sync = true, o.feeds = (struct tfc_texts){&feeds[1], 1};
  o.fetches = (struct tfc_texts){(const char **)(uintptr_t)fetched, 1},
  o.inits.items = (const char **)(uintptr_t)initial;
  run_same(2, &o);
  assert_int_equal(test_tasks[0].code, 3);
  SAYS(test_err, "the first dimension of the feed 'x' is 7, which 2 replicas cannot share", 2);
}

// A feed that is given by its type, or not at all, has synthetic values, which depend on the seed alone. Each replica
// has as many rows as --batch says, so two tasks with half the rows have the mean of one task with all rows.
static void test_synthetic_feeds(void **state) {
  (void)state;
  static const char *const fetched[] = {"mean_x:0", "mean_whole:0"}, *const initial[] = {"initial"};
  char found[4][200];
  for (int i = 0; i < 4; i++) {
    const char *feed[] = {"x:0=float32[16,2]"};
    struct run_options o = options(in("means.pbtxt"), i == 1 ? "worker=2" : "worker=1");
    o.warmup = 0, o.execution.seed = i == 3 ? 6 : 5, o.batch = i == 1 ? 8 : 16;
    if (i == 1) o.replicas = 2, o.sync = true;
    if (i == 2) o.feeds = (struct tfc_texts){feed, 1}, o.batch = 0;
    o.fetches = (struct tfc_texts){(const char **)(uintptr_t)fetched, 2};
    o.inits.items = (const char **)(uintptr_t)initial;
    run_same(i == 1 ? 2 : 1, &o);
    codes(0, 0, 0);
    const char *at = strstr(test_out.text, "mean_x:0 = "), *end = strstr(test_out.text, "/job:worker/task:0: step");
    assert_true(at && end && end > at);
    snprintf(found[i], sizeof found[i], "%.*s", (int)(end - at), at);
    const double mean = strtod(at + 11, NULL);
    assert_true(mean > -1 && mean < 1);
  }
  assert_true(fabs(strtod(found[0] + 11, NULL) - strtod(found[1] + 11, NULL)) < 1e-6);
  assert_string_equal(found[0], found[2]);
  assert_string_not_equal(found[0], found[3]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_documents),          cmocka_unit_test(test_checkpoints),
                                     cmocka_unit_test(test_broken_checkpoints), cmocka_unit_test(test_long_lists),
                                     cmocka_unit_test(test_replicas),           cmocka_unit_test(test_synthetic_feeds)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
