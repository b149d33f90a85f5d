// Tests trees of element-wise operations in loops, which run as one chain (runtime/exec/dynamic/chains.c). They must
// give the same bits as single operations, for random trees and shapes, on one device and on several.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

enum { MOST_FEEDS = 24, ITERATIONS = 3 };
struct made { // a graph, and its feeds
  struct tfc_builder *b;
  struct tfc_random *random;
  struct tfc_output feeds[MOST_FEEDS], variable; // `variable`: of the loop
  struct tfc_shape shapes[MOST_FEEDS], shape;    // `shape`: the variable's
  struct tfc_tensor values[MOST_FEEDS];
  uint32_t count;
};

static int64_t between(struct tfc_random *r, int64_t low, int64_t high) {
  return low + (int64_t)tfc_random_below(r, (uint64_t)(high - low + 1));
}

static struct tfc_output fed(struct made *m, struct tfc_shape shape) {
  const uint32_t i = m->count++;
  assert_true(i < MOST_FEEDS);
  m->shapes[i] = shape;
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &m->values[i]));
  for (int64_t k = 0; k < tfc_tensor_elements(&m->values[i]); k++)
    ((float *)m->values[i].data)[k] = (float)((double)tfc_random_below(m->random, 20001) / 1e4 - 1);
  return m->feeds[i] = tfc_add_placeholder(m->b, "in", TFC_FLOAT, &shape);
}

static struct tfc_output enter(struct made *m, struct tfc_output x, bool constant) {
  struct tfc_attr attrs[] = {tfc_attr_string("frame_name", TFC_STR("loop")), tfc_attr_bool("is_constant", constant)};
  return tfc_add(m->b, "Enter", "", &x, 1, attrs, 2);
}

// A product or convolution that gives the variable's shape.
static struct tfc_output product(struct made *m) {
  const int64_t columns = m->shape.dims[m->shape.rank - 1], strides[] = {1, 1, 1, 1};
  struct tfc_attr attrs[] = {{.name = TFC_STR("strides"), .kind = TFC_ATTR_LIST_INT, .ints = strides, .count = 4},
                             tfc_attr_string("padding", TFC_STR("SAME"))};
  if (m->shape.rank == 2)
    return tfc_add2(m->b, "MatMul", m->variable, enter(m, fed(m, TFC_SHAPE(columns, columns)), true));
  struct tfc_output in[] = {m->variable, enter(m, fed(m, TFC_SHAPE(3, 1, columns, columns)), true)};
  return tfc_add(m->b, "Conv2D", NULL, in, 2, attrs, 2);
}

// What a tree may read: the loop's variable, a product of it, or a constant of the loop that is repeated along some
// dimensions.
static struct tfc_output leaf(struct made *m) {
  struct tfc_random *r = m->random;
  struct tfc_shape shape = m->shape;
  const int kind = (int)tfc_random_below(r, 7);
  if (kind == 6 && m->shape.rank != 3 && m->count + 2 <= MOST_FEEDS) return product(m);
  if (kind < 2 || m->count + 2 > MOST_FEEDS) return m->variable;
  if (kind == 2) shape = TFC_SHAPE(m->shape.dims[m->shape.rank - 1]);
  if (kind == 3) shape = TFC_SHAPE_SCALAR;
  if (kind == 4) shape.dims[tfc_random_below(r, (uint64_t)shape.rank)] = 1;
  return enter(m, fed(m, shape), true);
}

static struct tfc_output grow(struct made *m, int depth) {
  static const char *const one[] = {"Tanh", "Sigmoid", "Relu", "Neg", "Square", "Identity"};
  static const char *const two[] = {"AddV2", "Mul", "Sub", "Maximum", "SquaredDifference"};
  struct tfc_random *r = m->random;
  if (!depth || tfc_random_below(r, 8) == 0) return leaf(m);
  if (tfc_random_below(r, 3) == 0) return tfc_add1(m->b, one[tfc_random_below(r, 6)], grow(m, depth - 1));
  struct tfc_output a = grow(m, depth - 1), b = tfc_random_below(r, 8) ? grow(m, depth - 1) : a;
  return tfc_add2(m->b, two[tfc_random_below(r, 5)], a, b);
}

// while (i < ITERATIONS) (i, v) = (i + 1, v + tree(v))
static struct tfc_output loop(struct made *m, struct tfc_output from) {
  struct tfc_builder *b = m->b;
  struct tfc_output i = enter(m, tfc_add_i32(b, 0), false), v = enter(m, from, false), ends[2];
  struct tfc_output most = enter(m, tfc_add_i32(b, ITERATIONS), true), step = enter(m, tfc_add_i32(b, 1), true);
  i = tfc_add(b, "Merge", "", (struct tfc_output[]){i, i}, 2, NULL, 0);
  v = tfc_add(b, "Merge", "", (struct tfc_output[]){v, v}, 2, NULL, 0);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, most));
  struct tfc_output of_i = tfc_add2(b, "Switch", i, go), of_v = tfc_add2(b, "Switch", v, go);
  m->variable = (struct tfc_output){of_v.node, 1};
  ends[0] = tfc_add2(b, "Add", (struct tfc_output){of_i.node, 1}, step);
  ends[1] = tfc_add2(b, "AddV2", tfc_add1(b, "Tanh", grow(m, 4)), m->variable);
  tfc_builder_set_input(b, i.node, 1, tfc_add1(b, "NextIteration", ends[0]));
  tfc_builder_set_input(b, v.node, 1, tfc_add1(b, "NextIteration", ends[1]));
  return tfc_add1(b, "Exit", of_v);
}

static uint32_t run(struct made *m, struct tfc_graph *g, const char *devices, bool no_rewrites, struct tfc_output fetch,
                    struct tfc_tensor *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options options = {.devices = &set, .no_rewrites = no_rewrites};
  assert_ok(tfc_session_create(g, &options, &session));
  struct tfc_run_spec spec = {
      .feeds = m->feeds, .feed_count = m->count, .feed_shapes = m->shapes, .fetches = &fetch, .fetch_count = 1};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (int step = 0; step < 2; step++) {
    if (step) tfc_tensor_release(out);
    assert_ok(tfc_plan_run(plan, m->values, out, NULL));
  }
  const uint32_t ops = tfc_plan_info(plan)->op_count;
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  return ops;
}

static void the_same_bits(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 21);
  uint32_t single = 0, merged = 0;
  for (int round = 0; round < 150; round++) {
    struct made m = {.random = &r};
    struct tfc_graph *g = NULL;
    struct tfc_tensor alone = {0}, together = {0};
    const int64_t rows = between(&r, 1, 40), columns = between(&r, 2, 70), images = between(&r, 1, 3);
    assert_ok(tfc_builder_create(NULL, &m.b));
    m.shape = round % 3 == 0   ? TFC_SHAPE(rows, columns)
              : round % 3 == 1 ? TFC_SHAPE(images, rows, columns)
                               : TFC_SHAPE(images, rows, 3, columns);
    struct tfc_output exit = loop(&m, fed(&m, m.shape));
    assert_ok(tfc_builder_finish(m.b, &g));
    single += run(&m, g, "1", true, exit, &alone);
    for (int several = 0; several < 2; several++) {
      const uint32_t ops = run(&m, g, several ? "2" : "1", false, exit, &together);
      if (!several) merged += ops;
      assert_true(tfc_shape_equal(&alone.shape, &together.shape));
      assert_memory_equal(alone.data, together.data, alone.size);
      tfc_tensor_release(&together);
    }
    tfc_tensor_release(&alone);
    for (uint32_t i = 0; i < m.count; i++) tfc_tensor_release(&m.values[i]);
    tfc_graph_release(g);
    tfc_builder_free(m.b);
  }
  assert_true(2 * merged < single); // of the operations that run, at least half are in a chain behind its first one
}

// A value that two operations read, or that a control edge leaves, is an operation of its own.
static void shared_values_are_kept(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 22);
  for (int how = 0; how < 3; how++) {
    struct made m = {.random = &r, .shape = TFC_SHAPE(9, 20)};
    struct tfc_graph *g = NULL;
    struct tfc_tensor alone = {0}, together = {0};
    assert_ok(tfc_builder_create(NULL, &m.b));
    struct tfc_output x = fed(&m, m.shape), pred = tfc_add2(m.b, "Less", tfc_add_i32(m.b, 1), tfc_add_i32(m.b, 2));
    struct tfc_output way = tfc_add2(m.b, "Switch", x, pred), taken = {way.node, 1};
    struct tfc_output t = tfc_add1(m.b, "Tanh", taken), y = tfc_add2(m.b, "Mul", tfc_add1(m.b, "Neg", t), taken);
    if (how == 1) y = tfc_add2(m.b, "MatMul", y, tfc_add2(m.b, "MatMul", fed(&m, TFC_SHAPE(20, 9)), t));
    if (how == 2) y = tfc_add2(m.b, "AddV2", y, tfc_add1(m.b, "Softmax", t));
    y = tfc_add(m.b, "Merge", "", (struct tfc_output[]){tfc_add1(m.b, "Identity", way), y}, 2, NULL, 0);
    assert_ok(tfc_builder_finish(m.b, &g));
    const uint32_t single = run(&m, g, "1", true, y, &alone), merged = run(&m, g, "1", false, y, &together);
    assert_int_equal(single - merged, how == 1 ? 1 : 2);
    assert_memory_equal(alone.data, together.data, alone.size);
    tfc_tensor_release(&alone), tfc_tensor_release(&together);
    for (uint32_t i = 0; i < m.count; i++) tfc_tensor_release(&m.values[i]);
    tfc_graph_release(g);
    tfc_builder_free(m.b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_bits),
      cmocka_unit_test(shared_values_are_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
