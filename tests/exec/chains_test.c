// Tests chains, which run element-wise operations in one pass over memory, and the rewrites that make them longer. They
// must give the same bits as single operations.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

enum { ELEMENTS = 3 * 48 * 5 * 48 };

// Computes y = relu(erf(x + bias) * (x + bias)). Returns how many operations a step has.
static uint32_t run(bool channels_first, bool no_rewrites, float *out) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[2] = {{0}}, y = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output feeds[2] = {tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(3, 48, 5, 48)),
                                tfc_add_placeholder(b, "bias", TFC_FLOAT, &TFC_SHAPE(48))};
  struct tfc_attr format = tfc_attr_string("data_format", channels_first ? TFC_STR("NCHW") : TFC_STR("NHWC"));
  struct tfc_output sum = tfc_add(b, "BiasAdd", NULL, feeds, 2, &format, 1);
  struct tfc_output fetch = tfc_add1(b, "Relu", tfc_add2(b, "Mul", tfc_add1(b, "Erf", sum), sum));
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(3, 48, 5, 48), &values[0]));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(48), &values[1]));
  for (int i = 0; i < ELEMENTS; i++) ((float *)values[0].data)[i] = (float)(i * 37 % 1001 - 500) * 0.0053f;
  for (int i = 0; i < 48; i++) ((float *)values[1].data)[i] = (float)(i * 7 % 11 - 5) * 0.31f;
  struct tfc_shape shapes[2] = {values[0].shape, values[1].shape};
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 2, .feed_shapes = shapes, .fetches = &fetch, .fetch_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, values, &y, NULL));
  uint32_t count = tfc_plan_info(plan)->op_count;
  assert_int_equal(y.size, ELEMENTS * sizeof(float));
  memcpy(out, y.data, y.size);
  tfc_tensor_release(&y);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&values[i]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return count;
}

static void bias_joins_what_follows(void **state) {
  (void)state;
  static float one_by_one[ELEMENTS], fused[ELEMENTS];
  for (int first = 0; first < 2; first++) {
    assert_int_equal(run(first, true, one_by_one), 4);
    assert_int_equal(run(first, false, fused), first ? 2 : 1);
    assert_memory_equal(one_by_one, fused, sizeof fused);
    bool any = false;
    for (int i = 0; i < ELEMENTS; i++) any = any || fused[i] > 0;
    assert_true(any);
  }
}

static struct tfc_output mean_of_rows(struct tfc_builder *b, struct tfc_output x) {
  struct tfc_attr keep = tfc_attr_bool("keep_dims", true);
  return tfc_add(b, "Mean", NULL, (struct tfc_output[]){x, tfc_add_i32(b, 1)}, 2, &keep, 1);
}

enum { SIDE = 96 };
// Two functions of x, t = 3 x and u = x + 0.5, are read before and after a product. Each chain computes them from x, so
// only x is kept in memory.
static struct tfc_output multiples(struct tfc_builder *b, struct tfc_output a) {
  struct tfc_output x = tfc_add1(b, "Relu", a), t = tfc_add2(b, "Mul", x, tfc_add_scalar(b, TFC_FLOAT, 3));
  struct tfc_output u = tfc_add2(b, "AddV2", tfc_add_scalar(b, TFC_FLOAT, 0.5f), x);
  struct tfc_output before = tfc_add2(b, "Mul", tfc_add1(b, "Tanh", t), tfc_add1(b, "Exp", u));
  struct tfc_output product = tfc_add2(b, "MatMul", before, a);
  return tfc_add2(b, "Mul", tfc_add2(b, "Mul", product, t), tfc_add2(b, "Sub", u, product));
}

// Builds a normalisation: `less` is x minus the mean of its row, and y is `less` times a number for each row. Both are
// read before and after a product, and both are computed again after it.
static struct tfc_output normalised(struct tfc_builder *b, struct tfc_output a) {
  struct tfc_output x = tfc_add1(b, "Relu", a), less = tfc_add2(b, "Sub", x, mean_of_rows(b, x));
  struct tfc_output factor = tfc_add1(b, "Exp", mean_of_rows(b, a)), y = tfc_add2(b, "Mul", less, factor);
  struct tfc_output product = tfc_add2(b, "MatMul", tfc_add1(b, "Tanh", y), a);
  return tfc_add2(b, "AddV2", tfc_add2(b, "Mul", product, y), tfc_add2(b, "Mul", less, product));
}

// As in the gradient of a sum over rows, a number of each row is repeated to the full shape (by Tile and by
// BroadcastTo) and then read by element-wise operations. If no other operand has the full shape, the repeated tensor
// must be computed.
static struct tfc_output repeated(struct tfc_builder *b, struct tfc_output a) {
  struct tfc_output factor = tfc_add1(b, "Exp", mean_of_rows(b, a));
  struct tfc_output times = tfc_add_i32_vector(b, (int32_t[]){1, SIDE}, 2);
  struct tfc_output shape = tfc_add_i32_vector(b, (int32_t[]){SIDE, SIDE}, 2);
  struct tfc_output tiled = tfc_add2(b, "Tile", factor, times), spread = tfc_add2(b, "BroadcastTo", factor, shape);
  struct tfc_output row = tfc_add2(b, "Maximum", tfc_add_scalar(b, TFC_FLOAT, 0.25f), a);
  struct tfc_output x = tfc_add2(b, "Mul", tfc_add1(b, "Tanh", a), tiled);
  struct tfc_output y = tfc_add2(b, "SquaredDifference", tfc_add2(b, "Sub", spread, a), row);
  return tfc_add2(b, "AddV2", tfc_add2(b, "AddV2", x, y), tfc_add2(b, "MatMul", a, tfc_add1(b, "Sqrt", tiled)));
}

static uint32_t run_twice(struct tfc_output (*build)(struct tfc_builder *b, struct tfc_output a), bool no_rewrites,
                          float *out, uint64_t *out_peak) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor value = {0}, y = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output a = tfc_add_placeholder(b, "a", TFC_FLOAT, &TFC_SHAPE(SIDE, SIDE));
  struct tfc_output after = build(b, a);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(SIDE, SIDE), &value));
  for (int i = 0; i < SIDE * SIDE; i++) ((float *)value.data)[i] = (float)(i * 37 % 1001 - 400) * 0.0011f;
  struct tfc_run_spec spec = {
      .feeds = &a, .feed_count = 1, .feed_shapes = &value.shape, .fetches = &after, .fetch_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, &value, &y, NULL));
  uint32_t count = tfc_plan_info(plan)->op_count;
  *out_peak = tfc_plan_info(plan)->peak_bytes[0];
  assert_int_equal(y.size, SIDE * SIDE * sizeof(float));
  memcpy(out, y.data, y.size);
  tfc_tensor_release(&y);
  tfc_tensor_release(&value);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return count;
}

static void multiples_are_computed_again(void **state) {
  (void)state;
  static float one_by_one[SIDE * SIDE], fused[SIDE * SIDE];
  uint64_t plain, peak;
  assert_int_equal(run_twice(multiples, true, one_by_one, &plain), 10);
  assert_int_equal(run_twice(multiples, false, fused, &peak), 2); // a chain, and the product with another chain
  assert_memory_equal(one_by_one, fused, sizeof fused);
  // Memory contains x, the operand of the product, and the product; the result overwrites the product.
  assert_true(peak <= 3 * sizeof fused + 4096);
  assert_int_equal(run_twice(normalised, true, one_by_one, &plain), 11);
  assert_true(run_twice(normalised, false, fused, &peak) <= 7);
  assert_memory_equal(one_by_one, fused, sizeof fused);
  assert_true(peak <= 3 * sizeof fused + 4096);
  assert_true(plain > peak);
}

// Computes y = tanh(x + o) * (x - o), where o has the given shape and is broadcast to x [3, 4, 5, 48].
static uint32_t run_repeated(const struct tfc_shape *shape, bool no_rewrites, float *out) {
  enum { X = 3 * 4 * 5 * 48 };
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[2] = {{0}}, y = {0};
  struct tfc_shape shapes[2] = {TFC_SHAPE(3, 4, 5, 48), *shape};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output feeds[2] = {tfc_add_placeholder(b, "x", TFC_FLOAT, &shapes[0]),
                                tfc_add_placeholder(b, "o", TFC_FLOAT, &shapes[1])};
  struct tfc_output sum = tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", feeds[0], feeds[1]));
  struct tfc_output fetch = tfc_add2(b, "Mul", sum, tfc_add2(b, "Sub", feeds[1], feeds[0]));
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  for (int k = 0; k < 2; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_shape_elements(&shapes[k]); i++)
      ((float *)values[k].data)[i] = (float)(i * 37 % 1001 - 500) * (k ? 0.0031f : 0.0027f);
  }
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 2, .feed_shapes = shapes, .fetches = &fetch, .fetch_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, values, &y, NULL));
  uint32_t count = tfc_plan_info(plan)->op_count;
  assert_int_equal(y.size, X * sizeof(float));
  memcpy(out, y.data, y.size);
  tfc_tensor_release(&y);
  for (int k = 0; k < 2; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return count;
}

static void rows_may_stand_for_several(void **state) {
  (void)state;
  const struct tfc_shape joins[] = {TFC_SHAPE(3, 1, 1, 48), TFC_SHAPE(4, 1, 48),    TFC_SHAPE(1, 4, 5, 48),
                                    TFC_SHAPE(5, 48),       TFC_SHAPE(3, 4, 1, 48), TFC_SHAPE(48),
                                    TFC_SHAPE(1, 4, 1, 1),  TFC_SHAPE(4, 5, 1),     TFC_SHAPE(3, 1, 1, 1),
                                    TFC_SHAPE(3, 4, 5, 1),  TFC_SHAPE(1, 1, 1),     TFC_SHAPE(3, 4, 5, 48)};
  static float one_by_one[3 * 4 * 5 * 48], fused[3 * 4 * 5 * 48];
  for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
    assert_int_equal(run_repeated(&joins[i], true, one_by_one), 4);
    assert_int_equal(run_repeated(&joins[i], false, fused), 1);
    assert_memory_equal(one_by_one, fused, sizeof fused);
  }
  assert_int_equal(run_repeated(&TFC_SHAPE(3, 1, 5, 48), true, one_by_one), 4);
  assert_int_equal(run_repeated(&TFC_SHAPE(3, 1, 5, 48), false, fused),
                   3); // a broadcast that two strides cannot describe
  assert_memory_equal(one_by_one, fused, sizeof fused);
}

static void repeated_tensors_are_read_as_they_are(void **state) {
  (void)state;
  static float one_by_one[SIDE * SIDE], fused[SIDE * SIDE];
  uint64_t plain, peak;
  assert_int_equal(run_twice(repeated, true, one_by_one, &plain), 13);
  // Six operations remain: the mean, its exponential, Tile (which repeats the square root), the square root, a chain,
  // and the product with the addition after it.
  assert_int_equal(run_twice(repeated, false, fused, &peak), 6);
  assert_memory_equal(one_by_one, fused, sizeof fused);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bias_joins_what_follows), cmocka_unit_test(multiples_are_computed_again),
      cmocka_unit_test(rows_may_stand_for_several), cmocka_unit_test(repeated_tensors_are_read_as_they_are)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
