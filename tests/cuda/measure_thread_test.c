// The measuring worker on a fake of the CUDA calls: what its device runs on the host for want of a kernel comes back
// with the reason. (The fake's driver has no kernels but assignments.) The test's own binary is the worker.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/measure/measure.h"
#include "profiler/gpu.h"
#include "runtime/device/cuda/device.h"
#include "runtime/graph/import.h"
#include "runtime/pass/step.h"
#include "tests/common/cuda_fake.h"

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
                                                              .seed = 1,
                                                              .hang_seconds = 30,
                                                              .lock = lock},
                                &m));
  const struct tfc_measure_info *info = tfc_measurer_info(m);
  assert_int_equal(info->device_count, 2);
  assert_null(info->tuning); // there is no library here
  assert_true(info->fallback_count > 0 && info->fallback_count <= info->op_count);
  bool products = false;
  for (uint32_t i = 0; i < info->fallback_count; i++) {
    assert_true(info->fallbacks[i].node < info->node_count);
    assert_string_equal(info->fallbacks[i].reason, "no kernel for the device");
    products |= tfc_str_is(g->nodes[info->fallbacks[i].node].op, "MatMul");
  }
  assert_true(products);
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
