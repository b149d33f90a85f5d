// The measuring worker on a fake of the CUDA calls: what its device runs on the host for want of a kernel comes back
// with the reason, and steps are timed when captures are over. (The fake's driver has no kernels but assignments.) The
// test's own binary is the worker.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/measure/measure.h"
#include "profiler/gpu.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/settle.h"
#include "runtime/graph/import.h"
#include "runtime/pass/step.h"
#include "tests/common/cuda_fake.h"

// A segment is captured, or captured anew for a profiler, before steps are timed.
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
                                    .reference = UINT32_MAX,
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

static void fallbacks(void **state) {
  (void)state;
  static const char path[] = TFC_SOURCE_DIR "/examples/mlp.pb";
  struct tfc_graph *g = NULL;
  struct tfc_step_spec step = {0};
  struct tfc_tensor values[4] = {0};
  struct tfc_measure_feed feeds[4];
  struct tfc_measurer *m = NULL;
  tfc_str targets[16], inits[16];
  char lock[64];
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
                                                              .math = TFC_MATH_BFLOAT16,
                                                              .seed = 1,
                                                              .hang_seconds = 30,
                                                              .lock = lock},
                                &m));
  const struct tfc_measure_info *info = tfc_measurer_info(m);
  assert_int_equal(info->device_count, 2);
  assert_string_equal(info->devices[0].math, "bfloat16");
  assert_string_equal(info->devices[1].math, "bfloat16");
  assert_string_equal(info->whole.math, "bfloat16");
  assert_null(info->tuning); // there is no library here
  assert_true(info->fallback_count > 0 && info->fallback_count <= info->op_count);
  bool products = false;
  for (uint32_t i = 0; i < info->fallback_count; i++) {
    assert_true(info->fallbacks[i].node < info->node_count);
    assert_string_equal(info->fallbacks[i].reason, "no kernel for the device");
    products |= tfc_str_is(g->nodes[info->fallbacks[i].node].op, "MatMul");
  }
  assert_true(products);
  measure(m);
  tfc_measurer_free(m);
  for (uint32_t i = 0; i < step.feed_count; i++) tfc_tensor_release(&values[i]);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
  unlink(lock);
}

int main(int argc, char **argv) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_cuda_fake_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_gpu_profiler_set(NULL, "there is none");
  if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
  const struct CMUnitTest tests[] = {cmocka_unit_test(fallbacks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
