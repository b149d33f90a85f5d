// Tests steps that run side by side: copies of a plan, each with memory of its own, on devices that work on one step
// while another one waits. The results have the same bits as those of steps one after another.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/str.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

enum { NODES = 40, SIZE = 24, THREADS = 5, STEPS = 40 };

static const char head[] =
    "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } "
    "attr { key: \"shape\" value { shape { dim { size: 24 } dim { size: 24 } } } } }\n"
    "node { name: \"w\" op: \"VarHandleOp\" attr { key: \"dtype\" value { type: DT_FLOAT } } "
    "attr { key: \"shape\" value { shape { dim { size: 24 } dim { size: 24 } } } } "
    "attr { key: \"shared_name\" value { s: \"w\" } } }\n"
    "node { name: \"set\" op: \"AssignVariableOp\" input: \"w\" input: \"x\" "
    "attr { key: \"dtype\" value { type: DT_FLOAT } } }\n"
    "node { name: \"read\" op: \"ReadVariableOp\" input: \"w\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\n";

static struct tfc_graph *graph;
static struct tfc_device_set set;
static struct tfc_session *session;
static uint16_t placement[NODES + 8];
static struct tfc_output x, last;

// Makes a graph of products, sums and other operations, each on another device than most of its inputs.
static int set_up(void **state) {
  (void)state;
  struct tfc_text text = {0};
  tfc_text_printf(&text, "%s", head);
  for (int i = 0; i < NODES; i++) {
    char a[16], b[16];
    snprintf(a, sizeof a, i == 0 ? "x" : "n%d", i - 1);
    snprintf(b, sizeof b, i % 7 == 3 ? "read" : i < 3 ? "x" : "n%d", i / 2);
    if (i % 3 == 0)
      tfc_text_printf(&text,
                      "node { name: \"n%d\" op: \"MatMul\" input: \"%s\" input: \"%s\" "
                      "attr { key: \"T\" value { type: DT_FLOAT } } }\n",
                      i, a, b);
    else if (i % 3 == 1)
      tfc_text_printf(
          &text, "node { name: \"n%d\" op: \"Tanh\" input: \"%s\" attr { key: \"T\" value { type: DT_FLOAT } } }\n", i,
          a);
    else
      tfc_text_printf(&text,
                      "node { name: \"n%d\" op: \"Sub\" input: \"%s\" input: \"%s\" "
                      "attr { key: \"T\" value { type: DT_FLOAT } } }\n",
                      i, a, b);
  }
  assert_false(text.failed);
  assert_ok(tfc_graph_parse((tfc_str){text.data, text.size}, "side by side", NULL, &graph));
  tfc_text_deinit(&text);
  char name[16];
  snprintf(name, sizeof name, "n%d", NODES - 1);
  x = (struct tfc_output){tfc_graph_find(graph, TFC_STR("x")), 0};
  last = (struct tfc_output){tfc_graph_find(graph, tfc_str_from(name)), 0};
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_graph_release(graph);
  return 0;
}

static void make_feed(uint32_t seed, struct tfc_tensor *out) {
  assert_ok(tfc_tensor_create(TFC_FLOAT, &(struct tfc_shape){.rank = 2, .dims = {SIZE, SIZE}}, out));
  float *values = out->data;
  for (uint32_t i = 0; i < SIZE * SIZE; i++) values[i] = (float)((i * 37 + seed * 101) % 211) / 211 - 0.5f;
}

static void open_session(const char *devices) {
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  for (uint32_t i = 0; i < graph->node_count; i++)
    // the variable and the nodes that use it are on the first device
    placement[i] = (uint16_t)(i < 4 ? 0 : (i * 7 / 2) % set.count);
  uint32_t target = tfc_graph_find(graph, TFC_STR("set"));
  struct tfc_tensor feed;
  make_feed(12345, &feed);
  assert_ok(
      tfc_session_run(session,
                      &(struct tfc_run_spec){
                          .feeds = &x, .feed_count = 1, .targets = &target, .target_count = 1, .placement = placement},
                      &feed, NULL, NULL));
  tfc_tensor_release(&feed);
}
static void close_session(void) {
  tfc_session_free(session);
  for (uint32_t d = 0; d < set.count; d++) assert_true(set.devices[d]->driver->in_use(set.devices[d]) == 0);
  tfc_devices_close(&set);
}

static struct tfc_plan *make_plan(bool side_by_side) {
  struct tfc_plan *plan = NULL;
  struct tfc_shape shape = {.rank = 2, .dims = {SIZE, SIZE}};
  assert_ok(tfc_plan_create(session,
                            &(struct tfc_run_spec){.feeds = &x,
                                                   .feed_count = 1,
                                                   .feed_shapes = &shape,
                                                   .fetches = &last,
                                                   .fetch_count = 1,
                                                   .placement = placement,
                                                   .side_by_side = side_by_side},
                            &plan));
  assert_true(tfc_plan_info(plan)->is_static);
  return plan;
}

struct worker {
  struct tfc_plan *plan;
  struct tfc_tensor feed[STEPS], wanted[STEPS];
  uint32_t wrong;
};
static void *run_steps(void *argument) {
  struct worker *w = argument;
  for (uint32_t i = 0; i < STEPS; i++) {
    struct tfc_tensor got = {0};
    tfc_status s = tfc_plan_run(w->plan, &w->feed[i], &got, NULL);
    w->wrong += s || got.size != w->wanted[i].size || memcmp(got.data, w->wanted[i].data, got.size) != 0;
    tfc_status_free(s);
    tfc_tensor_release(&got);
  }
  return NULL;
}

static void check_on(const char *devices) {
  static struct worker workers[THREADS];
  pthread_t threads[THREADS];
  open_session(devices);
  struct tfc_plan *alone = make_plan(false);
  for (uint32_t t = 0; t < THREADS; t++) {
    workers[t] = (struct worker){.plan = make_plan(true)};
    for (uint32_t i = 0; i < STEPS; i++) {
      make_feed(t * STEPS + i, &workers[t].feed[i]);
      assert_ok(tfc_plan_run(alone, &workers[t].feed[i], &workers[t].wanted[i], NULL));
    }
  }
  assert_memory_not_equal(workers[0].wanted[0].data, workers[1].wanted[0].data, workers[0].wanted[0].size);
  for (uint32_t t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&threads[t], NULL, run_steps, &workers[t]), 0);
  struct tfc_tensor again = {0}; // a step of an ordinary plan in between
  assert_ok(tfc_plan_run(alone, &workers[0].feed[0], &again, NULL));
  assert_memory_equal(again.data, workers[0].wanted[0].data, again.size);
  tfc_tensor_release(&again);
  for (uint32_t t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    assert_int_equal(workers[t].wrong, 0);
    for (uint32_t i = 0; i < STEPS; i++) {
      tfc_tensor_release(&workers[t].feed[i]);
      tfc_tensor_release(&workers[t].wanted[i]);
    }
    tfc_plan_free(workers[t].plan);
  }
  tfc_plan_free(alone);
  close_session();
}

static void test_cpu(void **state) {
  (void)state;
  check_on("cpu:0");
  check_on("cpu:0-1");
}

static void test_emulated(void **state) {
  (void)state;
  check_on("emu:0-2");
}

static void test_refused(void **state) {
  (void)state;
  open_session("cpu:0");
  struct tfc_plan *plan = NULL;
  uint32_t target = tfc_graph_find(graph, TFC_STR("set"));
  struct tfc_shape shape = {.rank = 2, .dims = {SIZE, SIZE}};
  struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .feed_shapes = &shape, .targets = &target, .target_count = 1, .side_by_side = true};
  tfc_status s = tfc_plan_create(session, &spec, &plan);
  assert_int_equal(tfc_status_code(s), TFC_FAILED_PRECONDITION);
  assert_non_null(strstr(tfc_status_message(s), "'set'"));
  tfc_status_free(s);
  spec.target_count = 0, spec.fetches = &last, spec.fetch_count = 1, spec.dynamic = true;
  s = tfc_plan_create(session, &spec, &plan);
  assert_int_equal(tfc_status_code(s), TFC_FAILED_PRECONDITION);
  tfc_status_free(s);
  assert_null(plan);
  close_session();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cpu),
      cmocka_unit_test(test_emulated),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
