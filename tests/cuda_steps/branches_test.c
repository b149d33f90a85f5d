// Examples are trained with branches in captured segments (`--cuda-graphs branches`), on the CUDA driver with its
// kernels and a fake of the CUDA calls: losses have the same bits as with chains, whatever streams are delayed.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/common/example.h"
#include "tests/cuda_kernels/streams.h"

enum { STEPS = 6 }; // the first steps are not captured

static struct tfc_cuda_fake_graph most; // of the graphs that were launched, that with the most pieces of work
static void look(const struct tfc_cuda_fake_graph *g) {
  if (g->works > most.works) most = *g;
}

static void train(const char *name, const char *devices, int captures, bool all, float *losses) {
  struct example e = {0};
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  with.execution.captures = captures, with.execution.gpu_math = TFC_MATH_FLOAT32;
  if (all) with.execution.rewrites = TFC_REWRITES_ALL;
  assert_ok(tfc_session_create(e.graph, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  assert_ok(tfc_plan_create(session, &spec, &plan));
  most = (struct tfc_cuda_fake_graph){0};
  tfc_cuda_fake_watch_graphs(look);
  for (uint32_t i = 0; i < STEPS; i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    losses[i] = *(float *)loss.data;
    tfc_tensor_release(&loss);
    if (i < e.set_count) assert_true(fabs((double)losses[i] - e.losses[i]) <= 1e-4 * fabs(e.losses[i]));
  }
  tfc_cuda_fake_watch_graphs(NULL);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
}

static void same_bits(const char *name, uint64_t seed) {
  float chain[STEPS], branches[STEPS];
  for (int all = 0; all < 2; all++) {
    cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
    train(name, "gpu:0", TFC_CAPTURES_AUTO, all, chain);
    const struct tfc_cuda_fake_graph before = most;
    tfc_cuda_fake_delay(20000);
    tfc_cuda_fake_shuffle(seed);
    train(name, "gpu:0", TFC_CAPTURES_BRANCHES, all, branches);
    assert_memory_equal(chain, branches, sizeof chain);
    print_message("%s%s: %zu launches in a row, with branches %zu on %u streams\n", name, all ? ", all rewrites" : "",
                  before.longest, most.longest, most.lanes);
    assert_int_equal(before.lanes, 1);
    assert_int_equal(most.works, before.works);
    assert_true(most.lanes > 1 && most.longest < before.longest);
    assert_int_equal(tfc_cuda_fake_bytes(), 0);
    assert_int_equal(tfc_cuda_fake_violations(), 0);
  }
}

static void mlp(void **state) {
  (void)state;
  same_bits("mlp", 3);
}
static void rnnlm(void **state) {
  (void)state;
  same_bits("rnnlm", 5);
}

// The second reader of a feed computes in the feed's memory, so it waits for the first.
static void a_feed_with_two_readers(void **state) {
  (void)state;
  enum { ROWS = 16, COLUMNS = 32, RUNS = 20 };
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor in = {0};
  const struct tfc_shape shape = TFC_SHAPE(ROWS, COLUMNS);
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  tfc_cuda_fake_delay(200000);
  tfc_cuda_fake_shuffle(3);
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output x = tfc_add_placeholder(b, "", TFC_FLOAT, &shape), y[2];
  y[0] = tfc_add2(b, "Transpose", x, tfc_add_i32_vector(b, (int32_t[]){1, 0}, 2));
  y[1] = tfc_add1(b, "Sin", x);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  with.execution.captures = TFC_CAPTURES_BRANCHES;
  assert_ok(tfc_session_create(g, &with, &session));
  const struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .feed_shapes = &shape, .fetches = y, .fetch_count = 2};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &in));
  for (int s = 0; s < RUNS; s++) {
    struct tfc_tensor got[2] = {{0}};
    for (int i = 0; i < ROWS * COLUMNS; i++) ((float *)in.data)[i] = (float)(i + 1000 * s);
    assert_ok(tfc_plan_run(plan, &in, got, NULL));
    for (int i = 0; i < ROWS * COLUMNS; i++)
      assert_true(((float *)got[0].data)[i % COLUMNS * ROWS + i / COLUMNS] == (float)(i + 1000 * s));
    tfc_tensor_release(&got[0]);
    tfc_tensor_release(&got[1]);
  }
  tfc_tensor_release(&in);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(mlp), cmocka_unit_test(rnnlm),
                                     cmocka_unit_test(a_feed_with_two_readers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
