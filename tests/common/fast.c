#include "tests/common/fast.h"

#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "tests/common/eval.h"

enum { MOST = 16 };

static double number(const struct tfc_tensor *t, int64_t i) {
  return t->dtype == TFC_FLOAT ? (double)((const float *)t->data)[i] : ((const double *)t->data)[i];
}

static void compare(const struct tfc_tensor *got, const struct tfc_tensor *want, double tolerance, const char *what,
                    uint32_t index) {
  double largest = 0;
  int64_t n = tfc_tensor_elements(want);
  assert_true(tfc_shape_equal(&got->shape, &want->shape));
  assert_int_equal(got->dtype, want->dtype);
  if (want->dtype != TFC_FLOAT && want->dtype != TFC_DOUBLE) {
    assert_memory_equal(got->data, want->data, want->size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    if (isfinite(number(want, i))) largest = fmax(largest, fabs(number(want, i)));
  for (int64_t i = 0; i < n; i++) {
    const double a = number(got, i), b = number(want, i);
    if (!(fabs(a - b) <= tolerance * largest) && a != b && !(isnan(a) && isnan(b)))
      fail_msg("%s: output %u, element %lld: %.17g, by the reference kernel %.17g", what, index, (long long)i, a, b);
  }
}

void fast_compare(struct tfc_builder *b, const struct tfc_output *outputs, uint32_t count, double tolerance,
                  const char *what) {
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_output feeds[MOST];
  struct tfc_tensor values[MOST] = {0};
  struct tfc_shape shapes[MOST];
  struct tfc_run_spec spec = {.feeds = feeds, .fetches = outputs, .fetch_count = count, .feed_shapes = shapes};
  struct eval e;
  struct tfc_random random;
  tfc_random_init(&random, 11);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(eval_create(g, &e));
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    if (!n->def || !(n->def->flags & TFC_OP_PLACEHOLDER)) continue;
    struct tfc_tensor *t = &values[spec.feed_count];
    const struct tfc_attr *shape = tfc_node_attr(g, n, "shape");
    assert_true(shape && spec.feed_count < MOST);
    const tfc_dtype dtype = tfc_node_attr_type(g, n, "dtype", TFC_FLOAT);
    assert_ok(tfc_tensor_create(dtype, shape->shape, t));
    for (int64_t k = 0; k < tfc_tensor_elements(t); k++) {
      const double value = 2 * tfc_random_unit(&random) - 1;
      if (dtype == TFC_FLOAT)
        ((float *)t->data)[k] = (float)value;
      else
        ((double *)t->data)[k] = value;
    }
    eval_feed(&e, i, t);
    feeds[spec.feed_count] = (struct tfc_output){i, 0};
    shapes[spec.feed_count++] = t->shape;
  }
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  for (int all = 0; all < 2; all++) {
    struct tfc_tensor got[MOST] = {0};
    assert_ok(
        tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .execution.rewrites = all}, &session));
    assert_ok(tfc_session_run(session, &spec, values, got, NULL));
    for (uint32_t i = 0; i < count; i++) {
      const struct tfc_tensor *want = NULL;
      assert_ok(eval_output(&e, outputs[i], &want));
      compare(&got[i], want, tolerance, what, i);
      tfc_tensor_release(&got[i]);
    }
    tfc_session_free(session);
  }
  for (uint32_t i = 0; i < spec.feed_count; i++) tfc_tensor_release(&values[i]);
  tfc_devices_close(&set);
  eval_deinit(&e);
  tfc_graph_release(g);
}
