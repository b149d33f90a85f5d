// A filter is transposed once for all that read it, and a constant one when the plan is made
// (runtime/exec/rewrites/filters.c), on the CUDA driver with its kernels: fewer launches, the same bits, captured or
// not, and no old filter after an update.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/cuda_kernels/host.h"
#include "tests/cuda_kernels/streams.h"

enum { STEPS = 6, FETCHES = 3, MOST = 1024 };
static const struct tfc_shape image = {.rank = 4, .dims = {2, 5, 6, 2}}, filter = {.rank = 4, .dims = {3, 3, 2, 4}};

static struct tfc_tensor numbers(const struct tfc_shape *shape, int step) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++)
    ((float *)t.data)[i] = (float)((i * 37 + step) % 101 - 50) * 0.019f;
  return t;
}
static struct tfc_output conv(struct tfc_builder *b, const char *op, struct tfc_output *in, uint32_t count) {
  static const int64_t ones[4] = {1, 1, 1, 1};
  const struct tfc_attr attrs[] = {
      {.name = TFC_STR("strides"), .kind = TFC_ATTR_LIST_INT, .ints = ones, .count = 4},
      tfc_attr_string("padding", TFC_STR("SAME")),
  };
  return tfc_add(b, op, NULL, in, count, attrs, 2);
}

struct made {
  struct tfc_graph *graph;
  struct tfc_output feed, fetches[FETCHES];
  uint32_t init, updates[2];
};
// Two variables, V and W. y = conv(x, W); its gradient to x reads V, or W if `shared`; a third convolution has a
// constant filter, or reads V. Both variables are updated.
static void build(bool shared, bool constant, struct made *out) {
  struct tfc_builder *b = NULL;
  struct tfc_output variables[2], reads[2];
  struct tfc_tensor start = numbers(&filter, 5);
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_output x = out->feed = tfc_add_placeholder(b, "", TFC_FLOAT, &image);
  const struct tfc_output given = tfc_add_const(b, "", &start);
  const uint32_t init = tfc_builder_add(b, &(struct tfc_node_spec){.op = "NoOp"});
  for (int k = 0; k < 2; k++) {
    const struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &filter),
                                     tfc_attr_string("shared_name", k ? TFC_STR("w") : TFC_STR("v"))};
    variables[k] = tfc_add(b, "VarHandleOp", NULL, NULL, 0, attrs, 3);
    tfc_builder_add_control(
        b, init,
        tfc_builder_add(b, &(struct tfc_node_spec){.op = "AssignVariableOp",
                                                   .inputs = (struct tfc_output[]){variables[k], given},
                                                   .input_count = 2}));
    reads[k] = tfc_add(b, "ReadVariableOp", NULL, &variables[k], 1, attrs, 1);
  }
  const struct tfc_output size = tfc_add_i32_vector(b, (int32_t[]){2, 5, 6, 2}, 4),
                          filter_size = tfc_add_i32_vector(b, (int32_t[]){3, 3, 2, 4}, 4);
  const struct tfc_output y = conv(b, "Conv2D", (struct tfc_output[]){x, reads[1]}, 2);
  out->fetches[0] = y;
  out->fetches[1] = conv(b, "Conv2DBackpropInput", (struct tfc_output[]){size, shared ? reads[1] : reads[0], y}, 3);
  out->fetches[2] = conv(b, "Conv2D", (struct tfc_output[]){out->fetches[1], constant ? given : reads[0]}, 2);
  const struct tfc_output dw = conv(b, "Conv2DBackpropFilter", (struct tfc_output[]){x, filter_size, y}, 3);
  for (int k = 0; k < 2; k++) {
    const struct tfc_output change = tfc_add2(b, "Mul", dw, tfc_add_scalar(b, TFC_FLOAT, -0.01));
    out->updates[k] = tfc_builder_add(b, &(struct tfc_node_spec){.op = "AssignAddVariableOp",
                                                                 .inputs = (struct tfc_output[]){variables[k], change},
                                                                 .input_count = 2});
    for (int i = 0; i < FETCHES; i++) tfc_builder_add_control(b, out->updates[k], out->fetches[i].node);
  }
  out->init = init;
  assert_ok(tfc_builder_finish(b, &out->graph));
  tfc_builder_free(b);
  tfc_tensor_release(&start);
}

struct outcome {
  float values[STEPS][MOST];
  size_t count;
  uint64_t works;  // of the last step
  uint32_t shared; // pairs of operations that read one transposed filter
};
static void run(const struct made *m, const char *devices, bool rewrites, int captures, struct outcome *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor x = numbers(&image, 1);
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set, .no_rewrites = !rewrites};
  with.execution.captures = captures;
  assert_ok(tfc_session_create(m->graph, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &m->init, .target_count = 1}, NULL, NULL, NULL));
  const struct tfc_run_spec spec = {.feeds = &m->feed,
                                    .feed_count = 1,
                                    .feed_shapes = &image,
                                    .fetches = m->fetches,
                                    .fetch_count = FETCHES,
                                    .targets = m->updates,
                                    .target_count = 2};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  memset(out->values, 0, sizeof out->values);
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  out->shared = info->shared_count;
  for (uint32_t i = 0; i < info->shared_count; i++) {
    assert_int_equal(info->shared[i].bytes, (uint64_t)tfc_shape_elements(&filter) * sizeof(float));
    assert_int_not_equal(info->shared[i].node, info->shared[i].with);
  }
  for (int i = 0; i < STEPS; i++) {
    struct tfc_tensor got[FETCHES] = {{0}};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, &x, got, NULL));
    out->works = tfc_cuda_fake_works() - before;
    out->count = 0;
    for (int k = 0; k < FETCHES; k++) {
      assert_true(out->count + got[k].size / sizeof(float) <= MOST);
      memcpy(out->values[i] + out->count, got[k].data, got[k].size);
      out->count += got[k].size / sizeof(float);
      tfc_tensor_release(&got[k]);
    }
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_tensor_release(&x);
}

static void filters_are_transposed_once(void **state) {
  (void)state;
  static struct outcome host, plain, transposed, apart;
  for (int captures = TFC_CAPTURES_AUTO; captures <= TFC_CAPTURES_BRANCHES; captures++)
    for (int constant = 0; constant < 2; constant++) {
      struct made shared = {0}, separate = {0};
      build(true, constant, &shared);
      build(false, constant, &separate);
      cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
      run(&shared, "cpu:0", true, captures, &host);
      run(&shared, "gpu:0", false, captures, &plain);
      run(&shared, "gpu:0", true, captures, &transposed);
      run(&separate, "gpu:0", true, captures, &apart);
      assert_memory_equal(plain.values, transposed.values, sizeof plain.values);
      for (int s = 0; s < STEPS; s++)
        for (size_t i = 0; i < host.count; i++)
          assert_true(fabsf(host.values[s][i] - transposed.values[s][i]) <= 1e-5f * (1 + fabsf(host.values[s][i])));
      assert_true(memcmp(transposed.values[0], transposed.values[STEPS - 1], sizeof transposed.values[0]) != 0);
      // Turning a filter is one launch. Without the rewrite each of three operations turns its filter: three launches.
      // With it, W is transposed once for the two operations that read it, which saves one; a constant filter is
      // transposed when the plan is made, which saves another. In `separate` without a constant, V is transposed once
      // for two operations: as many launches as in `shared`. With a constant, V and W have one reader each: one launch
      // more than in `shared`.
      assert_int_equal(plain.works, transposed.works + 1 + (uint64_t)constant);
      assert_int_equal(apart.works, constant ? transposed.works + 1 : transposed.works);
      // The plan names those that turn a filter once more where they are on two devices; a constant costs nothing.
      assert_int_equal(plain.shared, 0);
      assert_int_equal(transposed.shared, 1);
      assert_int_equal(apart.shared, constant ? 0 : 1);
      assert_int_equal(tfc_cuda_fake_bytes(), 0);
      assert_int_equal(tfc_cuda_fake_violations(), 0);
      tfc_graph_release(shared.graph);
      tfc_graph_release(separate.graph);
    }
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(filters_are_transposed_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
