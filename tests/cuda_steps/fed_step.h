// A step that is fed tensors of float32 and has no variables, and what it computes on a device: for tests of rewrites
// on the CUDA driver with its kernels.
#ifndef TFC_TESTS_CUDA_STEPS_FED_STEP_H
#define TFC_TESTS_CUDA_STEPS_FED_STEP_H

#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/cuda_kernels/streams.h"

enum { FED_TENSORS = 8, FED_STEPS = 5, FED_MOST = 400000 }; // the first steps are not captured

struct fed_step {
  struct tfc_builder *builder;
  struct tfc_output feeds[FED_TENSORS], fetches[FED_TENSORS];
  struct tfc_shape shapes[FED_TENSORS]; // of the feeds
  uint32_t feed_count, fetch_count;
};
static inline struct tfc_output feed(struct fed_step *m, struct tfc_shape shape) {
  m->shapes[m->feed_count] = shape;
  return m->feeds[m->feed_count++] = tfc_add_placeholder(m->builder, "", TFC_FLOAT, &shape);
}

struct outcome {          // of the last step
  float values[FED_MOST]; // of all fetches, one after the other
  size_t count;
  uint32_t ops;
  uint64_t works; // pieces of GPU work
};
// Runs the step on the devices. Its feeds are numbers from offset - 50 * scale to offset + 50 * scale. `with`: the
// session's other options. With VERBOSE in the environment, it prints the operations of the plan.
static inline void run_fed_step(const struct tfc_graph *g, const struct fed_step *m, const char *devices,
                                struct tfc_session_options with, float scale, float offset, struct outcome *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[FED_TENSORS] = {{0}};
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  with.devices = &set;
  assert_ok(tfc_session_create(g, &with, &session));
  for (uint32_t k = 0; k < m->feed_count; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &m->shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++)
      ((float *)values[k].data)[i] = (float)((i * 7 + k) * 37 % 101 - 50) * scale + offset;
  }
  const struct tfc_run_spec spec = {.feeds = m->feeds,
                                    .feed_count = m->feed_count,
                                    .feed_shapes = m->shapes,
                                    .fetches = m->fetches,
                                    .fetch_count = m->fetch_count};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  out->ops = tfc_plan_info(plan)->op_count;
  for (uint32_t i = 0; getenv("VERBOSE") && i < out->ops; i++) {
    const struct tfc_node *node = &g->nodes[tfc_plan_info(plan)->ops[i].node];
    print_message("  %.*s (%.*s)\n", TFC_STR_ARG(node->name), TFC_STR_ARG(node->op));
  }
  for (int i = 0; i < FED_STEPS; i++) {
    struct tfc_tensor got[FED_TENSORS] = {{0}};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    tfc_cuda_fake_idle();
    out->works = tfc_cuda_fake_works() - before;
    out->count = 0;
    for (uint32_t k = 0; k < m->fetch_count; k++) {
      const size_t count = got[k].size / sizeof(float);
      assert_true(out->count + count <= FED_MOST);
      memcpy(out->values + out->count, got[k].data, got[k].size);
      out->count += count;
      tfc_tensor_release(&got[k]);
    }
  }
  for (uint32_t k = 0; k < m->feed_count; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
}

#endif
