// A bias after a matrix product, and the rectifier of that, are a part of the product with `--rewrites all`
// (runtime/exec/rewrites/epilogues.c), on the CUDA driver with its kernels; where the library has no such product, a
// kernel adds the bias, and reports say so.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/cuda_kernels/host.h"
#include "tests/cuda_kernels/streams.h"

enum { ROWS = 6, INNER = 5, STEPS = 5, FEEDS = 6, FETCHES = 5, MOST = 4096, MOST_FALLBACKS = 16 };

static struct tfc_output feeds[FEEDS], fetches[FETCHES];
static struct tfc_shape shapes[FEEDS];

static struct tfc_output product(struct tfc_builder *b, struct tfc_output x, struct tfc_output y, bool transposed) {
  const struct tfc_attr attr = tfc_attr_bool("transpose_b", transposed);
  return tfc_add(b, "MatMul", NULL, (struct tfc_output[]){x, y}, 2, &attr, 1);
}

static struct tfc_graph *build(int64_t width, uint32_t *out_update, uint32_t *out_init) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_tensor zeros = {0};
  const struct tfc_shape all[FEEDS] = {TFC_SHAPE(ROWS, INNER), TFC_SHAPE(INNER, width), TFC_SHAPE(width, INNER),
                                       TFC_SHAPE(width),       TFC_SHAPE(ROWS, width),  TFC_SHAPE(1, width)};
  memcpy(shapes, all, sizeof all);
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < FEEDS; i++) feeds[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &shapes[i]);
  const struct tfc_output x = feeds[0], w = feeds[1], transposed = feeds[2], bias = feeds[3], other = feeds[4];
  // Nothing but its last operation is read; the sum is transposed, so no chain computes it.
  const struct tfc_output swap = tfc_add_i32_vector(b, (int32_t[]){1, 0}, 2);
  fetches[0] = tfc_add2(b, "Transpose", tfc_add2(b, "BiasAdd", product(b, x, w, false), bias), swap);
  fetches[1] = tfc_add1(b, "Relu", tfc_add2(b, "AddV2", feeds[5], product(b, x, transposed, true)));
  // The product is read twice, what is added is no bias, or a chain goes on: no epilogue.
  const struct tfc_output twice = product(b, x, transposed, true);
  fetches[2] = tfc_add2(b, "Mul", tfc_add2(b, "Transpose", tfc_add2(b, "BiasAdd", twice, bias), swap),
                        tfc_add2(b, "Transpose", twice, swap));
  fetches[3] = tfc_add1(b, "Relu", tfc_add2(b, "AddV2", product(b, x, w, false), other));
  // The bias is a variable, which is updated after it was read.
  const struct tfc_attr attrs[2] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &shapes[3])};
  const struct tfc_output variable = tfc_add(b, "VarHandleOp", NULL, NULL, 0, attrs, 2);
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[3], &zeros));
  memset(zeros.data, 0, zeros.size);
  *out_init = tfc_builder_add(
      b, &(struct tfc_node_spec){.op = "AssignVariableOp",
                                 .inputs = (struct tfc_output[]){variable, tfc_add_const(b, "", &zeros)},
                                 .input_count = 2});
  tfc_tensor_release(&zeros);
  const struct tfc_output read = tfc_add(b, "ReadVariableOp", NULL, &variable, 1, attrs, 1);
  fetches[4] = tfc_add2(b, "Transpose", tfc_add2(b, "BiasAdd", product(b, x, w, false), read), swap);
  *out_update = tfc_builder_add(b, &(struct tfc_node_spec){.op = "AssignAddVariableOp",
                                                           .inputs = (struct tfc_output[]){variable, bias},
                                                           .input_count = 2});
  tfc_builder_add_control(b, *out_update, fetches[4].node);
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  return g;
}

struct outcome {
  float values[MOST];
  size_t count;
  uint32_t ops, declined;
};

static void run(const struct tfc_graph *g, const char *devices, int rewrites, uint32_t update, uint32_t init,
                struct outcome *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[FEEDS] = {{0}};
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  with.execution.rewrites = rewrites, with.execution.gpu_math = TFC_MATH_FLOAT32;
  assert_ok(tfc_session_create(g, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &init, .target_count = 1}, NULL, NULL, NULL));
  for (int k = 0; k < FEEDS; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++)
      ((float *)values[k].data)[i] = (float)((i + k) * 37 % 101 - 50) * 0.019f;
  }
  const struct tfc_run_spec spec = {.feeds = feeds,
                                    .feed_count = FEEDS,
                                    .feed_shapes = shapes,
                                    .fetches = fetches,
                                    .fetch_count = FETCHES,
                                    .targets = &update,
                                    .target_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  out->ops = tfc_plan_info(plan)->op_count;
  struct tfc_plan_fallback list[MOST_FALLBACKS];
  const uint32_t found = tfc_plan_fallbacks(plan, list, MOST_FALLBACKS);
  assert_true(found <= MOST_FALLBACKS);
  out->declined = 0;
  for (uint32_t i = 0; i < found; i++) {
    assert_true(list[i].on_device);
    assert_non_null(strstr(list[i].reason, "no algorithm with a bias"));
    out->declined++;
  }
  for (int i = 0; i < STEPS; i++) {
    struct tfc_tensor got[FETCHES] = {{0}};
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    out->count = 0;
    for (int k = 0; k < FETCHES; k++) {
      assert_true(out->count + got[k].size / sizeof(float) <= MOST);
      memcpy(out->values + out->count, got[k].data, got[k].size);
      out->count += got[k].size / sizeof(float);
      tfc_tensor_release(&got[k]);
    }
  }
  for (int k = 0; k < FEEDS; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
}

static struct outcome exact, all, apart, host;

static void compare(const struct outcome *want, const struct outcome *got) {
  assert_int_equal(want->count, got->count);
  for (size_t i = 0; i < want->count; i++)
    if (!(fabsf(want->values[i] - got->values[i]) <= 1e-5f * (1 + fabsf(want->values[i]))))
      fail_msg("element %zu: %.9g, not %.9g", i, (double)got->values[i], (double)want->values[i]);
}

static void biases_are_a_part_of_products(void **state) {
  (void)state;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (int64_t width = 7; width <= 8; width++) {
    uint32_t update = 0, init = 0;
    struct tfc_graph *g = build(width, &update, &init);
    run(g, "cpu:0", TFC_REWRITES_EXACT, update, init, &host);
    uint32_t before = cuda_fake_epilogues;
    run(g, "gpu:0", TFC_REWRITES_EXACT, update, init, &exact);
    assert_int_equal(cuda_fake_epilogues, before);
    compare(&host, &exact);
    run(g, "gpu:0", TFC_REWRITES_ALL, update, init, &all);
    compare(&host, &all);
    assert_int_equal(all.declined, 0);
    assert_true(cuda_fake_epilogues > before && (cuda_fake_epilogues - before) % 3 == 0);
    assert_int_equal(exact.ops - all.ops, 3);
    cuda_fake_no_epilogues = true;
    before = cuda_fake_epilogues;
    run(g, "gpu:0", TFC_REWRITES_ALL, update, init, &apart);
    cuda_fake_no_epilogues = false;
    compare(&host, &apart);
    assert_int_equal(cuda_fake_epilogues, before);
    assert_int_equal(apart.declined, 3);
    assert_int_equal(apart.ops, all.ops);
    tfc_graph_release(g);
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(biases_are_a_part_of_products)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
