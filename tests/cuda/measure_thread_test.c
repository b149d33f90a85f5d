// The process that measures (the worker), on a fake of the CUDA calls. It reports which operations ran on the host for
// lack of a kernel, with the reason, and it times steps only after the captures. (The driver of this test has kernels
// for assignments only.) The binary of the test is also the worker.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/measure/measure.h"
#include "placer/measure/worker.h"
#include "profiler/gpu.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/settle.h"
#include "runtime/graph/import.h"
#include "runtime/pass/step.h"
#include "tests/common/cuda_fake.h"

// Segments are captured, and captured again for a profiler, in steps that are not timed.
static tfc_status warmed_up(void *user, const struct tfc_measured *m) {
  uint32_t warm = 0, traced = 0, timed = 0;
  assert_int_equal(m->state, TFC_RESULT_OK);
  for (uint32_t i = 0; i < m->step_count; i++) {
    warm = m->steps[i].warmup ? warm + 1 : warm;
    traced += m->steps[i].warmup && m->steps[i].traced;
    timed += !m->steps[i].warmup;
  }
  assert_int_equal(timed, 5);
  assert_true(traced > TFC_RUNS_BEFORE_CAPTURE && warm >= traced);
  *(uint32_t *)user += 1;
  return NULL;
}
static void measure(struct tfc_measurer *m) {
  const uint32_t nodes = tfc_measurer_info(m)->node_count;
  uint32_t seen = 0;
  uint16_t *one = calloc(nodes, sizeof *one), *both = calloc(nodes, sizeof *both);
  struct tfc_measure_entry entries[] = {{.placement = one}, {.placement = both}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 2,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 1,
                                    .trace = TFC_TRACE_MODE_ALL,
                                    .best_us = (double)NAN};
  assert_ok(tfc_measurer_run(m, &batch, warmed_up, &seen));
  assert_int_equal(seen, 2);
  free(one);
  free(both);
}

static struct tfc_graph *g;
static struct tfc_step_spec step;
static struct tfc_tensor values[4];
static char lock[64];
static struct tfc_measurer *start(void) {
  static const char path[] = TFC_SOURCE_DIR "/examples/mlp.pb";
  struct tfc_measure_feed feeds[4];
  struct tfc_measurer *m = NULL;
  tfc_str targets[16], inits[16];
  assert_ok(tfc_graph_load(path, NULL, &g));
  assert_ok(tfc_step_infer(g, &(struct tfc_step_request){.batch = 32}, &step));
  assert_true(step.feed_count <= 4 && step.target_count <= 16 && step.init_count <= 16);
  for (uint32_t i = 0; i < step.feed_count; i++) {
    assert_ok(tfc_step_synthetic(&step.feeds[i], 1, &values[i]));
    feeds[i] = (struct tfc_measure_feed){step.feeds[i].name, &values[i]};
  }
  for (uint32_t i = 0; i < step.target_count; i++) targets[i] = g->nodes[step.targets[i]].name;
  for (uint32_t i = 0; i < step.init_count; i++) inits[i] = g->nodes[step.inits[i]].name;
  snprintf(lock, sizeof lock, "/tmp/tfc-cuda-measure-test-%d.lock", (int)getpid());
  assert_ok(tfc_measurer_create(&(struct tfc_measure_options){.graph = path,
                                                              .devices = "gpu:0-1",
                                                              .feeds = feeds,
                                                              .feed_count = step.feed_count,
                                                              .targets = targets,
                                                              .target_count = step.target_count,
                                                              .inits = inits,
                                                              .init_count = step.init_count,
                                                              .tuning = "a GPU\tconv 0\t0 0 0\n",
                                                              .execution = {.gpu_math = TFC_MATH_BFLOAT16, .seed = 1},
                                                              .hang_seconds = 30,
                                                              .lock = lock},
                                &m));
  return m;
}
static void stop(struct tfc_measurer *m) {
  tfc_measurer_free(m);
  for (uint32_t i = 0; i < step.feed_count; i++) tfc_tensor_release(&values[i]);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
  unlink(lock);
}

static void fallbacks(void **state) {
  (void)state;
  struct tfc_measurer *m = start();
  const struct tfc_measure_info *info = tfc_measurer_info(m);
  assert_int_equal(info->device_count, 2);
  assert_string_equal(info->devices[0].math, "bfloat16");
  assert_string_equal(info->devices[1].math, "bfloat16");
  assert_string_equal(info->whole.math, "bfloat16");
  assert_null(info->tuning); // NULL, because no library is used here
  assert_true(info->fallback_count > 0 && info->fallback_count <= info->op_count);
  bool products = false;
  for (uint32_t i = 0; i < info->fallback_count; i++) {
    assert_true(info->fallbacks[i].node < info->node_count);
    assert_string_equal(info->fallbacks[i].reason, "no kernel for the device");
    products |= tfc_str_is(g->nodes[info->fallbacks[i].node].op, "MatMul");
  }
  assert_true(products);
  measure(m);
  stop(m);
}

// When a device is lost, the worker process ends and the placement that was being measured fails. The placements after
// it are measured by a new worker.
static char armed[64]; // the path of a file that says which piece of work loses the device
struct outcome {
  uint32_t ok, failed, worst; // worst: the number of the entry that failed last
  char message[256];
};
static tfc_status count(void *user, const struct tfc_measured *m) {
  struct outcome *o = user;
  if (m->state == TFC_RESULT_OK) {
    o->ok++;
    return NULL;
  }
  assert_int_equal(m->state, TFC_RESULT_FAILED);
  o->failed++;
  o->worst = m->entry;
  snprintf(o->message, sizeof o->message, "%s", m->message ? m->message : "");
  return NULL;
}
#ifdef TFC_SANITIZED
enum { ROUNDS = 2 };
#else
enum { ROUNDS = 8 };
#endif
static void lost(void **state) {
  (void)state;
  uint32_t places = 0, blamed = 0;
  snprintf(armed, sizeof armed, "/tmp/tfc-cuda-measure-test-%d.armed", (int)getpid());
  setenv("TFC_TEST_ARMED", armed, 1);
  struct tfc_measurer *m = start();
  const uint32_t nodes = tfc_measurer_info(m)->node_count;
  uint16_t *placements[4];
  struct tfc_measure_entry entries[4] = {{0}};
  for (uint32_t e = 0; e < 4; e++) {
    entries[e].placement = placements[e] = calloc(nodes, sizeof **placements);
    for (uint32_t i = 0; i < nodes; i++) placements[e][i] = e % 2;
  }
  stop(m);
  for (int round = 0; round < ROUNDS; round++) {
    FILE *file = fopen(armed, "w");
    assert_non_null(file);
    fprintf(file, "%d", 20 + 175 / (ROUNDS - 1) * round); // how many pieces of work are done before the device is lost
    fclose(file);
    m = start();
    struct tfc_measure_batch batch = {.entries = entries,
                                      .count = 4,
                                      .reference = round % 2 ? 1 : TFC_NONE,
                                      .warmup = 1,
                                      .block = 5,
                                      .blocks = 2,
                                      .best_us = (double)NAN};
    struct outcome o = {0};
    assert_ok(tfc_measurer_run(m, &batch, count, &o));
    assert_int_equal(o.ok + o.failed, 4);
    assert_true(o.failed <= 1);
    assert_int_equal(tfc_measurer_restarts(m), o.failed);
    if (o.failed && !strstr(o.message, "illegal memory access")) fail_msg("%s", o.message);
    places += o.failed;
    blamed |= o.failed << o.worst;
    o = (struct outcome){0}; // the measurer can still be used
    assert_ok(tfc_measurer_run(m, &batch, count, &o));
    assert_true(o.ok + o.failed == 4 && o.failed <= 1);
    stop(m);
    unlink(armed);
  }
  for (int e = 0; e < 4; e++) free(placements[e]);
  print_message("%u of %d lost a placement: %x\n", places, (int)ROUNDS, blamed);
  assert_true(places >= ROUNDS / 2);
}

int main(int argc, char **argv) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_gpu_profiler_set(NULL, "there is none");
  const char *file = getenv("TFC_TEST_ARMED");
  char number[32] = "";
  FILE *f = file && tfc_measure_is_worker(argc, argv) ? fopen(file, "r") : NULL;
  if (f && fgets(number, sizeof number, f) && unlink(file) == 0)
    tfc_cuda_fake_fail_work(strtoull(number, NULL, 10), 700);
  if (f) fclose(f);
  if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(fallbacks), cmocka_unit_test(lost)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
