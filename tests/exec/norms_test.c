// Tests batch normalisation with given statistics as part of a chain: it has the same bits as the device's kernel.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

enum { X, SCALE, OFFSET, MEAN, VARIANCE, FEEDS, MOST = 2 * 7 * 5 * 700 };

struct how {
  int64_t channels;
  bool constants;  // scale and variance are constants of the graph
  bool statistics; // the statistics are fetched, too
  bool planes;     // channels are planes: NCHW
};

// Computes relu6(norm(x)) + x into `out`. Returns how many operations a step has.
static uint32_t run(const struct how *how, bool no_rewrites, float *out) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[FEEDS] = {{0}}, made[2] = {{0}};
  struct tfc_shape shapes[FEEDS],
      all = how->planes ? TFC_SHAPE(2, how->channels, 7, 5) : TFC_SHAPE(2, 7, 5, how->channels);
  struct tfc_output in[FEEDS], feeds[FEEDS];
  uint32_t fed = 0;
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < FEEDS; i++) {
    struct tfc_tensor t = {0};
    const struct tfc_shape shape = i == X ? all : TFC_SHAPE(how->channels);
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &t));
    float *data = t.data;
    for (int64_t k = 0; k < tfc_tensor_elements(&t); k++)
      data[k] = i == VARIANCE ? (float)(k * 5 % 17) * 0.37f : (float)((k + i) * 37 % 1001 - 400) * 0.0131f;
    if (i == X) data[3] = NAN, data[11] = INFINITY, data[19] = -INFINITY;
    if (how->constants && (i == SCALE || i == VARIANCE)) {
      in[i] = tfc_add_const(b, NULL, &t);
      tfc_tensor_release(&t);
      continue;
    }
    in[i] = tfc_add_placeholder(b, "in", TFC_FLOAT, &shape);
    feeds[fed] = in[i], values[fed] = t, shapes[fed++] = shape;
  }
  struct tfc_attr attrs[] = {tfc_attr_bool("is_training", false), tfc_attr_float("epsilon", 0.001),
                             tfc_attr_string("data_format", how->planes ? TFC_STR("NCHW") : TFC_STR("NHWC"))};
  struct tfc_output norm = tfc_add(b, "FusedBatchNormV3", NULL, in, FEEDS, attrs, 3);
  struct tfc_output fetches[2] = {tfc_add2(b, "AddV2", tfc_add1(b, "Relu6", norm), in[X]), {norm.node, 1}};
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = fed, .feed_shapes = shapes, .fetches = fetches, .fetch_count = 1 + how->statistics};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, values, made, NULL));
  const uint32_t count = tfc_plan_info(plan)->op_count;
  assert_int_equal(made[0].size, (size_t)tfc_shape_elements(&all) * sizeof(float));
  memcpy(out, made[0].data, made[0].size);
  for (int i = 0; i < 1 + how->statistics; i++) tfc_tensor_release(&made[i]);
  for (uint32_t i = 0; i < fed; i++) tfc_tensor_release(&values[i]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return count;
}

static void norms_join_what_follows(void **state) {
  (void)state;
  static const int64_t channels[] = {1, 3, 16, 24, 32, 77, 96, 171, 255, 256, 300, 512, 700};
  static float alone[MOST], joined[MOST];
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
    for (int constants = 0; constants < 2; constants++) {
      const struct how how = {channels[i], constants, false, false};
      const size_t size = (size_t)(2 * 7 * 5 * how.channels) * sizeof(float);
      assert_int_equal(run(&how, true, alone), 3);
      // if scale and variance are not constants, one more operation computes the factors of the channels
      assert_int_equal(run(&how, false, joined), constants ? 1 : 2);
      assert_memory_equal(alone, joined, size);
      assert_true(isnan(joined[3]));
    }
}

static void statistics_that_are_read_are_the_kernels(void **state) {
  (void)state;
  static float alone[MOST], beside[MOST];
  const struct how how = {24, true, true, false};
  assert_int_equal(run(&how, true, alone), 3);
  assert_int_equal(run(&how, false, beside), 2);
  assert_memory_equal(alone, beside, 2 * 7 * 5 * 24 * sizeof(float));
}

// With channels first (planes), neighbouring elements have the same factor, and the rewrite does not apply.
static void planes_stay(void **state) {
  (void)state;
  static float alone[MOST], beside[MOST];
  for (int constants = 0; constants < 2; constants++) {
    const struct how how = {5, constants, false, true};
    assert_int_equal(run(&how, true, alone), 3);
    assert_int_equal(run(&how, false, beside), 2);
    assert_memory_equal(alone, beside, 2 * 7 * 5 * 5 * sizeof(float));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(norms_join_what_follows), cmocka_unit_test(planes_stay),
                                     cmocka_unit_test(statistics_that_are_read_are_the_kernels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
