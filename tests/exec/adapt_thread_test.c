// Tests plans that adapt: they run operations side by side on the cores of one device, or change the order on several
// devices. They must give the same bits as plans that do not adapt, in training steps of examples and in random graphs,
// with and without rewrites. An operation that fails ends the step, and the next step succeeds. If there is not enough
// memory, a plan does not adapt.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/builder.h"
#include "tests/common/example.h"
#include "tests/common/random_graph_run.h"

enum { STEPS = 6 };

static bool several_cores(void) {
  struct tfc_device_set set = {0};
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  bool several = set.devices[0]->info.cores > 1;
  tfc_devices_close(&set);
  if (!several) print_message("skipped: one core\n");
  return several;
}

// Trains a few steps; `out`: the losses and variables, as bytes.
static void train(const char *name, tfc_adapt adapt, const struct tfc_session_options *how, struct tfc_text *out) {
  struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  struct tfc_session_options options = *how;
  options.devices = &set;
  assert_ok(tfc_session_create(e.graph, &options, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  spec.adapt = adapt;
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (uint32_t i = 0; i < STEPS; i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    tfc_text_add(out, (tfc_str){loss.data, loss.size});
    tfc_tensor_release(&loss);
    assert_int_equal(tfc_plan_in_lanes(plan), adapt == TFC_ADAPT_ALWAYS && i >= 2);
  }
  for (uint32_t i = 0; i < e.graph->node_count; i++) {
    const struct tfc_node *n = &e.graph->nodes[i];
    if (!n->def || !(n->def->flags & TFC_OP_VARIABLE)) continue;
    struct tfc_tensor value = {0};
    assert_ok(tfc_session_get_variable(session, n->name, &value));
    tfc_text_add(out, (tfc_str){value.data, value.size});
    tfc_tensor_release(&value);
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  assert_true(set.devices[0]->driver->in_use(set.devices[0]) == 0);
  tfc_devices_close(&set);
  example_deinit(&e);
}

static void test_examples(void **state) {
  (void)state;
#ifdef TFC_SANITIZED
  static const char *const names[] = {"mlp", "ridge"};
#else
  static const char *const names[] = {"mlp", "ridge", "rnnlm"};
#endif
  static const struct tfc_session_options ways[] = {
      {0}, {.execution.rewrites = TFC_REWRITES_ALL}, {.no_rewrites = true}};
  for (size_t i = 0; i < sizeof names / sizeof *names && several_cores(); i++)
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
      struct tfc_text want = {0}, got = {0};
      train(names[i], TFC_ADAPT_OFF, &ways[w], &want);
      train(names[i], TFC_ADAPT_ALWAYS, &ways[w], &got);
      assert_int_equal(got.size, want.size);
      if (memcmp(got.data, want.data, want.size)) fail_msg("%s in lanes gives other bits", names[i]);
      tfc_text_deinit(&want);
      tfc_text_deinit(&got);
    }
}

static void test_random_graphs(void **state) {
  (void)state;
#ifdef TFC_SANITIZED
  enum { GRAPHS = 15 };
#else
  enum { GRAPHS = 60 };
#endif
  if (several_cores()) assert_int_equal(random_graphs_differ_adapted("cpu:0", 1, GRAPHS), 0);
  assert_int_equal(random_graphs_differ_adapted("cpu:0-3", 1, GRAPHS), 0);
}

// The graph has many independent chains; one of them contains a CheckNumerics, which can fail.
static void test_failure(void **state) {
  (void)state;
  enum { CHAINS = 12, LENGTH = 8 };
  if (!several_cores()) return;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_shape shape = TFC_SHAPE(64);
  struct tfc_output x, ends[CHAINS];
  assert_ok(tfc_builder_create(NULL, &b));
  x = tfc_add_placeholder(b, "x", TFC_FLOAT, &shape);
  struct tfc_attr message = tfc_attr_string("message", TFC_STR("a bad number"));
  for (int c = 0; c < CHAINS; c++) {
    ends[c] = x;
    for (int i = 0; i < LENGTH; i++)
      ends[c] = c == CHAINS / 2 && i == LENGTH / 2 ? tfc_add(b, "CheckNumerics", "check", &ends[c], 1, &message, 1)
                                                   : tfc_add1(b, "Log1p", ends[c]);
  }
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = true}, &session));
  struct tfc_run_spec spec = {.feeds = &x,
                              .feed_count = 1,
                              .feed_shapes = &shape,
                              .fetches = ends,
                              .fetch_count = CHAINS,
                              .adapt = TFC_ADAPT_ALWAYS};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  float good[64], bad[64];
  for (int i = 0; i < 64; i++) good[i] = bad[i] = 1;
  bad[7] = NAN;
  struct tfc_tensor feed = {.dtype = TFC_FLOAT, .shape = shape, .size = sizeof good, .data = good}, got[CHAINS];
  for (int round = 0; round < 20; round++) {
    feed.data = round > 3 && round & 1 ? bad : good;
    memset(got, 0, sizeof got);
    tfc_status s = tfc_plan_run(plan, &feed, got, NULL);
    assert_int_equal(tfc_plan_in_lanes(plan), round >= 2);
    if (feed.data == bad) {
      assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
      assert_non_null(strstr(tfc_status_message(s), "a bad number"));
      tfc_status_free(s);
      continue;
    }
    assert_ok(s);
    for (int c = 0; c < CHAINS; c++) {
      float want = 1;
      for (int i = 0; i < LENGTH; i++) want = c == CHAINS / 2 && i == LENGTH / 2 ? want : log1pf(want);
      assert_true(fabsf(((float *)got[c].data)[63] - want) < 1e-6f);
      tfc_tensor_release(&got[c]);
    }
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

// A plan of two chains over two devices adapts at its third step, unless it would need more memory than is allowed.
static void test_memory(void **state) {
  (void)state;
  enum { LENGTH = 6 };
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_shape shape = TFC_SHAPE(1 << 16);
  struct tfc_output x, ends[2];
  assert_ok(tfc_builder_create(NULL, &b));
  x = tfc_add_placeholder(b, "x", TFC_FLOAT, &shape);
  for (int c = 0; c < 2; c++) {
    ends[c] = x;
    for (int i = 0; i < LENGTH; i++) ends[c] = tfc_add1(b, "Log1p", ends[c]);
  }
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_devices_open("cpu:0-1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = true}, &session));
  uint16_t *placement = calloc(g->node_count + 1, sizeof *placement);
  for (uint32_t i = 0; i < g->node_count; i++) placement[i] = i & 1;
  float *values = calloc(1 << 16, sizeof *values);
  struct tfc_tensor feed = {.dtype = TFC_FLOAT, .shape = shape, .size = sizeof *values << 16, .data = values};
  for (int enough = 0; enough < 2; enough++) {
    uint64_t most[2] = {enough ? UINT64_MAX : 1, enough ? UINT64_MAX : 1};
    struct tfc_plan *plan = NULL;
    struct tfc_run_spec spec = {.feeds = &x,
                                .feed_count = 1,
                                .feed_shapes = &shape,
                                .fetches = ends,
                                .fetch_count = 2,
                                .placement = placement,
                                .adapt = TFC_ADAPT_ALWAYS,
                                .most_bytes = most};
    assert_ok(tfc_plan_create(session, &spec, &plan));
    for (int i = 0; i < 4; i++) {
      struct tfc_tensor got[2] = {0};
      assert_ok(tfc_plan_run(plan, &feed, got, NULL));
      for (int c = 0; c < 2; c++) tfc_tensor_release(&got[c]);
      assert_int_equal(tfc_plan_in_another_order(plan), enough && i >= TFC_ADAPT_ORDER_STEPS);
    }
    tfc_plan_free(plan);
  }
  free(values);
  free(placement);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory), cmocka_unit_test(test_examples),
                                     cmocka_unit_test(test_random_graphs), cmocka_unit_test(test_failure)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
