// When a kernel never ends, the worker process is killed, its placement fails with a message that names nodes, and the
// next placement is measured. Uses the CUDA driver with its kernels, on a fake of the CUDA calls; the binary of the
// test is also the worker.
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
#include "runtime/graph/import.h"
#include "runtime/pass/step.h"
#include "tests/cuda_kernels/streams.h"

// armed: a file with the number of the piece of work that hangs, in the first worker that finds the file.
static char armed[64], lock[64];

struct outcome {
  uint32_t ok, failed;
  char message[512];
};
static tfc_status count(void *user, const struct tfc_measured *m) {
  struct outcome *o = user;
  if (m->state == TFC_RESULT_OK) {
    o->ok++;
    return NULL;
  }
  assert_int_equal(m->state, TFC_RESULT_FAILED);
  o->failed++;
  snprintf(o->message, sizeof o->message, "%s", m->message ? m->message : "");
  return NULL;
}

// `first`: the node that begins the piece of the step that hangs.
static void one_hangs(int piece, const char *first) {
  static const char path[] = TFC_SOURCE_DIR "/examples/mlp.pb";
  struct tfc_graph *g = NULL;
  struct tfc_step_spec step = {0};
  struct tfc_tensor values[4] = {0};
  struct tfc_measure_feed feeds[4];
  struct tfc_measurer *m = NULL;
  tfc_str targets[16], inits[16];
  FILE *file = fopen(armed, "w");
  assert_non_null(file);
  fprintf(file, "%d", piece);
  fclose(file);
  assert_ok(tfc_graph_load(path, NULL, &g));
  assert_ok(tfc_step_infer(g, &(struct tfc_step_request){.batch = 32}, &step));
  assert_true(step.feed_count <= 4 && step.target_count <= 16 && step.init_count <= 16);
  for (uint32_t i = 0; i < step.feed_count; i++) {
    assert_ok(tfc_step_synthetic(&step.feeds[i], 1, &values[i]));
    feeds[i] = (struct tfc_measure_feed){step.feeds[i].name, &values[i]};
  }
  for (uint32_t i = 0; i < step.target_count; i++) targets[i] = g->nodes[step.targets[i]].name;
  for (uint32_t i = 0; i < step.init_count; i++) inits[i] = g->nodes[step.inits[i]].name;
  assert_ok(tfc_measurer_create(&(struct tfc_measure_options){.graph = path,
                                                              .devices = "gpu:0-1",
                                                              .feeds = feeds,
                                                              .feed_count = step.feed_count,
                                                              .targets = targets,
                                                              .target_count = step.target_count,
                                                              .inits = inits,
                                                              .init_count = step.init_count,
                                                              .execution.seed = 1,
                                                              .hang_seconds = 4,
                                                              .lock = lock},
                                &m));
  const uint32_t nodes = tfc_measurer_info(m)->node_count;
  uint16_t *one = calloc(nodes, sizeof *one);
  struct tfc_measure_entry entries[] = {{.placement = one}, {.placement = one}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 2,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 1,
                                    .best_us = (double)NAN};
  struct outcome o = {0};
  assert_ok(tfc_measurer_run(m, &batch, count, &o));
  print_message("%s\n", o.message);
  assert_int_equal(o.ok, 1);
  assert_int_equal(o.failed, 1);
  assert_int_equal(tfc_measurer_restarts(m), 1);
  if (!strstr(o.message, "gave no sign for 4 s and was ended: node '") || !strstr(o.message, " on gpu:0 had not ended"))
    fail_msg("%s", o.message);
  char named[64];
  snprintf(named, sizeof named, ": node '%s' ", first);
  if (!strstr(o.message, named)) fail_msg("%s, not %s", o.message, first);
  tfc_measurer_free(m);
  for (uint32_t i = 0; i < step.feed_count; i++) tfc_tensor_release(&values[i]);
  tfc_step_spec_deinit(&step);
  tfc_graph_release(g);
  free(one);
  unlink(lock);
  unlink(armed);
}

static void hangs(void **state) {
  (void)state;
  snprintf(armed, sizeof armed, "/tmp/tfc-hang-test-%d.armed", (int)getpid());
  snprintf(lock, sizeof lock, "/tmp/tfc-hang-test-%d.lock", (int)getpid());
  setenv("TFC_TEST_ARMED", armed, 1);
  // Before anything is captured; the step begins with the only operation that reads the images.
  one_hangs(80, "hidden1/MatMul");
  // While a captured piece is replayed, the second of the step: it begins with the loss, whose input ended the first.
  one_hangs(200, "SparseSoftmaxCrossEntropyWithLogits/SparseSoftmaxCrossEntropyWithLogits");
}

int main(int argc, char **argv) {
  tfc_driver_add(&tfc_driver_gpu);
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 2});
  tfc_gpu_profiler_set(NULL, "there is none");
  if (tfc_measure_is_worker(argc, argv)) {
    const char *path = getenv("TFC_TEST_ARMED");
    char number[32] = "";
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file && fgets(number, sizeof number, file) && unlink(path) == 0) tfc_cuda_fake_hang(strtoull(number, NULL, 10));
    if (file) fclose(file);
    return tfc_measure_worker_main(argc, argv);
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(hangs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
