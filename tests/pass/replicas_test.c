// The graph of all replicas: which nodes it has, where, and what is refused. That it computes the same is tested by
// tests/cluster/replicas_test.sh.
#include "runtime/pass/replicas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "tests/common/test.h"

static const char *const towers[] = {"/job:worker/task:0", "/job:worker/task:1", "/job:worker/task:2"};
static const char *const stores[] = {"/job:ps/task:0", "/job:ps/task:1"};

static uint32_t backups; // for the next graph

static tfc_status make(const char *file, uint32_t store_count, bool all_split, struct tfc_graph **out) {
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_step_spec step = {0};
  bool split[8] = {false};
  TFC_TRY(s, tfc_graph_load(file, NULL, &g));
  TFC_TRY(s, tfc_lower_loaded(&g));
  TFC_TRY(s, tfc_step_infer(g, &(struct tfc_step_request){.batch = 4}, &step));
  for (uint32_t i = 0; i < step.feed_count; i++) split[i] = all_split;
  s = tfc_replicas_make(g,
                        &(struct tfc_replicas_request){.count = 3,
                                                       .backups = backups,
                                                       .towers = towers,
                                                       .stores = stores,
                                                       .store_count = store_count,
                                                       .step = &step,
                                                       .split = split},
                        out);
out:
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
  return s;
}

// Where a node is; "": it is not there.
static const char *device(const struct tfc_graph *g, const char *name) {
  static char text[64];
  const uint32_t n = tfc_graph_find(g, tfc_str_from(name));
  snprintf(text, sizeof text, "%.*s", n == TFC_NONE ? 0 : (int)g->nodes[n].device.size,
           n == TFC_NONE ? "" : g->nodes[n].device.data);
  return text;
}

static void with_stores(void **state) {
  struct tfc_graph *g = NULL;
  (void)state;
  assert_null(make(TFC_SOURCE_DIR "/examples/mlp.pb", 2, true, &g));
  assert_string_equal(device(g, "x"), towers[0]);
  assert_string_equal(device(g, "replica_2/x"), towers[2]);
  assert_string_equal(device(g, "replica_1/hidden1/MatMul"), towers[1]);
  assert_string_equal(device(g, "replica_1/hidden1/kernel"), ""); // once, in a store
  char where[64];
  snprintf(where, sizeof where, "%s", device(g, "hidden1/kernel"));
  assert_true(!strncmp(where, "/job:ps/", 8));
  assert_string_equal(device(g, "hidden1/kernel/Momentum"), where);
  assert_string_equal(device(g, "train_op/update_hidden1/kernel/ApplyMomentum"), where);
  assert_true(!strncmp(device(g, "replicas/mean_0"), "/job:ps/", 8));
  uint32_t used[2] = {0};
  for (uint32_t i = 0; i < g->node_count; i++)
    for (uint32_t k = 0; k < 2; k++)
      used[k] +=
          g->nodes[i].def && g->nodes[i].def->flags & TFC_OP_VARIABLE && tfc_str_is(g->nodes[i].device, stores[k]);
  assert_true(used[0] && used[1]);
  tfc_graph_release(g);
}

// What a tower gives to the mean of a gradient needs nothing of another tower, neither by data nor by control edges.
static void towers_do_not_wait(void **state) {
  static const char *const files[] = {"mlp", "rnnlm", "nmt_while"};
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    struct tfc_graph *g = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/examples/%s.pb", TFC_SOURCE_DIR, files[i]);
    assert_ok(make(path, 2, true, &g));
    bool *needed = calloc(g->node_count, 1);
    uint32_t sum = tfc_graph_find(g, TFC_STR("replicas/mean_0/sum"));
    if (sum == TFC_NONE) sum = tfc_graph_find(g, TFC_STR("replicas/mean_0"));
    assert_true(sum != TFC_NONE);
    for (uint32_t t = 0; t < 3; t++) {
      const uint32_t given = tfc_node_inputs(g, &g->nodes[sum])[t].node;
      assert_string_equal(tfc_str_is(g->nodes[given].device, towers[t]) ? towers[t] : "", towers[t]);
      memset(needed, 0, g->node_count);
      assert_ok(tfc_prune(g, NULL, 0, NULL, 0, &given, 1, needed));
      for (uint32_t n = 0; n < g->node_count; n++)
        for (uint32_t other = 0; other < 3; other++)
          if (needed[n] && other != t && tfc_str_is(g->nodes[n].device, towers[other]))
            fail_msg("%s: tower %u needs '%.*s'", files[i], t, TFC_STR_ARG(g->nodes[n].name));
    }
    free(needed);
    tfc_graph_release(g);
  }
}

static void with_copies(void **state) {
  struct tfc_graph *g = NULL;
  (void)state;
  assert_null(make(TFC_SOURCE_DIR "/examples/mlp.pb", 0, true, &g));
  assert_string_equal(device(g, "hidden1/kernel"), towers[0]);
  assert_string_equal(device(g, "replica_1/hidden1/kernel"), towers[1]);
  assert_string_equal(device(g, "replica_2/train_op/update_hidden1/kernel/ApplyMomentum"), towers[2]);
  // All copies begin with one value, which is drawn once.
  const struct tfc_node *assign = &g->nodes[tfc_graph_find(g, TFC_STR("replica_1/hidden1/kernel/Assign"))];
  assert_true(tfc_graph_find(g, TFC_STR("replica_1/hidden1/kernel/Assign")) != TFC_NONE);
  assert_int_equal(assign->input_count, 2);
  uint32_t draws = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    draws += tfc_str_starts(g->nodes[i].name, "replica_") &&
             (tfc_str_is(g->nodes[i].op, "TruncatedNormal") || tfc_str_is(g->nodes[i].op, "RandomUniform"));
  assert_int_equal(draws, 0);
  tfc_graph_release(g);
}

// What an update needs, by data and control edges, has nothing of a tower that computes: no step waits for a slow one.
static void with_backups(void **state) {
  static const char *const files[] = {"mlp", "rnnlm", "nmt_while"};
  (void)state;
  backups = 1;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    struct tfc_graph *g = NULL;
    char path[512];
    snprintf(path, sizeof path, "%s/examples/%s.pb", TFC_SOURCE_DIR, files[i]);
    tfc_status s = make(path, 2, true, &g);
    if (s) fail_msg("%s: %s", files[i], tfc_status_message(s));
    bool *needed = calloc(g->node_count, 1);
    const uint32_t update = tfc_graph_find(g, TFC_STR("train_op"));
    assert_true(update != TFC_NONE);
    assert_ok(tfc_prune(g, NULL, 0, NULL, 0, &update, 1, needed));
    uint32_t taken = 0;
    for (uint32_t n = 0; n < g->node_count; n++) {
      const struct tfc_node *node = &g->nodes[n];
      if (!needed[n]) continue;
      taken += tfc_str_is(node->op, "QueueDequeueV2");
      if (tfc_str_is(node->device, towers[1]) || tfc_str_is(node->device, towers[2]))
        fail_msg("%s: an update needs '%.*s'", files[i], TFC_STR_ARG(node->name));
      if (node->def && node->def->flags & TFC_OP_PLACEHOLDER)
        fail_msg("%s: an update needs the feed '%.*s'", files[i], TFC_STR_ARG(node->name));
    }
    assert_true(taken && taken % 2 == 0); // each mean is that of two gradients
    assert_true(!strncmp(device(g, "replicas/mean_0/give_2"), "/job:ps/", 8));
    free(needed);
    tfc_graph_release(g);
  }
  backups = 0;
}

static void refusals(void **state) {
  struct tfc_graph *g = NULL;
  (void)state;
  tfc_status s = make(TFC_SOURCE_DIR "/examples/resnet50.pb", 0, true, &g);
  assert_int_equal(tfc_status_code(s), TFC_UNIMPLEMENTED);
  tfc_status_free(s);
  s = make(TFC_SOURCE_DIR "/examples/mlp.pb", 0, false, &g);
  assert_int_equal(tfc_status_code(s), TFC_UNIMPLEMENTED);
  assert_non_null(strstr(tfc_status_message(s), "no update of the step depends on its feeds"));
  tfc_status_free(s);
  assert_null(g);
}

static void loops_and_rows(void **state) {
  static const char *const files[] = {"nmt_while", "rnnlm"};
  (void)state;
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    for (uint32_t k = 0; k < 2; k++) {
      struct tfc_graph *g = NULL;
      char path[512];
      snprintf(path, sizeof path, "%s/examples/%s.pb", TFC_SOURCE_DIR, files[i]);
      tfc_status s = make(path, k * 2, true, &g);
      if (s) fail_msg("%s: %s", files[i], tfc_status_message(s));
      tfc_status_free(s);
      tfc_graph_release(g);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(with_stores), cmocka_unit_test(towers_do_not_wait),
                                     cmocka_unit_test(with_copies), cmocka_unit_test(with_backups),
                                     cmocka_unit_test(refusals),    cmocka_unit_test(loops_and_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
