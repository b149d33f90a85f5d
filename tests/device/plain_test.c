// The plain device gives the reference kernels' values bit for bit, whatever rewrites the executor makes on other
// devices.
#include "tests/common/test.h"

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "tests/common/eval.h"

static struct tfc_tensor random_tensor(const struct tfc_shape *shape, uint64_t seed) {
  struct tfc_tensor t;
  struct tfc_random random;
  tfc_random_init(&random, seed);
  assert_ok(tfc_tensor_create(TFC_FLOAT, shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++)
    ((float *)t.data)[i] = (float)(2 * tfc_random_unit(&random) - 1);
  return t;
}

// Tests a convolution, a product with many terms in each sum, and element-wise operations that other devices fuse.
static void reference_values(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct eval e;
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_shape shapes[] = {TFC_SHAPE(2, 12, 12, 16), TFC_SHAPE(3, 3, 16, 24), TFC_SHAPE(3456, 40),
                                     TFC_SHAPE(40)};
  struct tfc_output in[4], feeds[4];
  struct tfc_tensor values[4];
  for (int i = 0; i < 4; i++) {
    in[i] = tfc_add_placeholder(b, "in", TFC_FLOAT, &shapes[i]);
    values[i] = random_tensor(&shapes[i], 70 + (uint64_t)i);
  }
  const int64_t ones[] = {1, 1, 1, 1};
  const struct tfc_attr conv[] = {{.name = TFC_STR("strides"), .kind = TFC_ATTR_LIST_INT, .count = 4, .ints = ones},
                                  tfc_attr_string("padding", TFC_STR("SAME"))};
  struct tfc_output images = tfc_add(b, "Conv2D", "", in, 2, conv, 2);
  struct tfc_output rows =
      tfc_add2(b, "Reshape", tfc_add1(b, "Relu", images), tfc_add_i32_vector(b, (const int32_t[]){2, 3456}, 2));
  struct tfc_output sums = tfc_add2(b, "AddV2", tfc_add2(b, "MatMul", rows, in[2]), in[3]);
  struct tfc_output fetches[] = {images, sums, tfc_add2(b, "Mul", tfc_add1(b, "Tanh", sums), sums)};
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(eval_create(g, &e));
  for (int i = 0; i < 4; i++) {
    feeds[i] = in[i];
    eval_feed(&e, in[i].node, &values[i]);
  }
  struct tfc_device_set set = {0};
  assert_ok(tfc_devices_open("plain:0", NULL, 0, &set));
  for (int all = 0; all < 2; all++) {
    struct tfc_session *session = NULL;
    struct tfc_tensor got[3] = {0};
    assert_ok(
        tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .execution.rewrites = all}, &session));
    assert_ok(tfc_session_run(
        session,
        &(struct tfc_run_spec){
            .feeds = feeds, .feed_count = 4, .feed_shapes = shapes, .fetches = fetches, .fetch_count = 3},
        values, got, NULL));
    for (int i = 0; i < 3; i++) {
      const struct tfc_tensor *want = NULL;
      assert_ok(eval_output(&e, fetches[i], &want));
      assert_int_equal(got[i].size, want->size);
      assert_memory_equal(got[i].data, want->data, want->size);
      tfc_tensor_release(&got[i]);
    }
    tfc_session_free(session);
  }
  tfc_devices_close(&set);
  for (int i = 0; i < 4; i++) tfc_tensor_release(&values[i]);
  eval_deinit(&e);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reference_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
