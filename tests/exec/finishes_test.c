// Tests chains and pools that become part of the convolution or product that they read. They must give the same bits as
// single operations, for random shapes, on one core and on several. Also tests the cases in which they must stay
// operations of their own.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

static int64_t between(struct tfc_random *r, int64_t low, int64_t high) {
  return low + (int64_t)tfc_random_below(r, (uint64_t)(high - low + 1));
}

static struct tfc_attr ints(const char *name, const int64_t *values, uint32_t count) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_LIST_INT, .ints = values, .count = count};
}

enum { MOST_FEEDS = 8 };
struct made { // a graph, and its feeds
  struct tfc_builder *b;
  struct tfc_random *random;
  struct tfc_output feeds[MOST_FEEDS];
  struct tfc_shape shapes[MOST_FEEDS];
  struct tfc_tensor values[MOST_FEEDS];
  uint32_t count;
};

static struct tfc_tensor reals(struct tfc_random *r, const struct tfc_shape *shape) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++)
    ((float *)t.data)[i] = (float)((double)tfc_random_below(r, 20001) / 1e4 - 1);
  return t;
}

static struct tfc_output fed(struct made *m, struct tfc_shape shape) {
  const uint32_t i = m->count++;
  assert_true(i < MOST_FEEDS);
  m->shapes[i] = shape;
  m->values[i] = reals(m->random, &shape);
  return m->feeds[i] = tfc_add_placeholder(m->b, "in", TFC_FLOAT, &shape);
}

static struct tfc_output constant(struct made *m, struct tfc_shape shape) {
  struct tfc_tensor t = reals(m->random, &shape);
  struct tfc_output out = tfc_add_const(m->b, NULL, &t);
  tfc_tensor_release(&t);
  return out;
}

static struct tfc_output weight(struct made *m, struct tfc_shape shape) {
  return tfc_random_below(m->random, 2) ? constant(m, shape) : fed(m, shape);
}

static struct tfc_output reshape(struct made *m, struct tfc_output x, struct tfc_shape to) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_INT64, &TFC_SHAPE(to.rank), &t));
  for (int d = 0; d < to.rank; d++) ((int64_t *)t.data)[d] = to.dims[d];
  struct tfc_output out = tfc_add2(m->b, "Reshape", x, tfc_add_const(m->b, NULL, &t));
  tfc_tensor_release(&t);
  return out;
}

// Adds a convolution, a depthwise convolution or a product of random sizes. *shape: the shape of its result.
static struct tfc_output product(struct made *m, struct tfc_shape *shape) {
  struct tfc_random *r = m->random;
  const int kind = (int)tfc_random_below(r, 4);
  const int64_t rows = between(r, 1, 70), k = between(r, 1, 90), n = between(r, 2, 100);
  if (kind < 2) {
    *shape = TFC_SHAPE(rows, n);
    const bool transposed = tfc_random_below(r, 2);
    struct tfc_attr attr = tfc_attr_bool("transpose_b", transposed);
    struct tfc_output in[] = {fed(m, TFC_SHAPE(rows, k)), weight(m, transposed ? TFC_SHAPE(n, k) : TFC_SHAPE(k, n))};
    struct tfc_output y = tfc_add(m->b, "MatMul", NULL, in, 2, &attr, 1);
    if (kind == 0) return y;
    *shape = TFC_SHAPE(1, rows, n); // the operations that follow read the result with another shape
    return reshape(m, y, *shape);
  }
  const int64_t high = between(r, 1, 14), wide = between(r, 1, 14), size = between(r, 1, 3), stride = between(r, 1, 2);
  const int64_t channels = between(r, 1, 40), batch = between(r, 1, 2), strides[] = {1, stride, stride, 1};
  struct tfc_attr attrs[] = {ints("strides", strides, 4), tfc_attr_string("padding", TFC_STR("SAME"))};
  const struct tfc_shape w = kind == 2 ? TFC_SHAPE(size, size, channels, n) : TFC_SHAPE(size, size, channels, 1);
  struct tfc_output in[] = {fed(m, TFC_SHAPE(batch, high, wide, channels)), weight(m, w)};
  *shape = TFC_SHAPE(batch, (high + stride - 1) / stride, (wide + stride - 1) / stride, kind == 2 ? n : channels);
  return tfc_add(m->b, kind == 2 ? "Conv2D" : "DepthwiseConv2dNative", NULL, in, 2, attrs, 2);
}

static struct tfc_output leaky(struct made *m, struct tfc_output y) {
  struct tfc_attr alpha = tfc_attr_float("alpha", (double)(float)((double)tfc_random_below(m->random, 15) / 10 - 0.4));
  return tfc_add(m->b, "LeakyRelu", NULL, &y, 1, &alpha, tfc_random_below(m->random, 4) != 0);
}

// Adds operations that follow on y: a bias or a normalisation, an activation, a residual.
static struct tfc_output follow(struct made *m, struct tfc_output y, const struct tfc_shape *shape) {
  struct tfc_random *r = m->random;
  const struct tfc_shape row = TFC_SHAPE(shape->dims[shape->rank - 1]);
  static const char *const activations[] = {"Relu", "Relu6", "Sigmoid", "Erf", "Tanh", "Elu"};
  if (tfc_random_below(r, 2))
    y = tfc_add2(m->b, "BiasAdd", y, weight(m, row));
  else
    y = tfc_add2(m->b, "AddV2", tfc_add2(m->b, "Mul", tfc_add2(m->b, "Sub", y, weight(m, row)), weight(m, row)),
                 constant(m, row));
  const struct tfc_output before = y;
  y = tfc_add1(m->b, activations[tfc_random_below(r, 6)], y);
  if (tfc_random_below(r, 2)) y = tfc_add2(m->b, "Mul", before, y);
  if (tfc_random_below(r, 2)) y = tfc_add2(m->b, "AddV2", y, fed(m, *shape));
  return y;
}

static uint32_t run(const struct made *m, struct tfc_graph *g, const char *devices, bool no_rewrites,
                    const struct tfc_output *fetches, uint32_t count, struct tfc_tensor *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options options = {.devices = &set, .no_rewrites = no_rewrites};
  assert_ok(tfc_session_create(g, &options, &session));
  struct tfc_run_spec spec = {
      .feeds = m->feeds, .feed_count = m->count, .feed_shapes = m->shapes, .fetches = fetches, .fetch_count = count};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (int step = 0; step < 3; step++) { // the first steps time operations
    for (uint32_t i = 0; step && i < count; i++) tfc_tensor_release(&out[i]);
    assert_ok(tfc_plan_run(plan, m->values, out, NULL));
  }
  const uint32_t ops = tfc_plan_info(plan)->op_count;
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  return ops;
}

// Compares the bits with and without rewrites, on one device and on two. Returns how many operations a step has with
// rewrites.
static uint32_t compare(struct made *m, const struct tfc_output *fetches, uint32_t count) {
  struct tfc_graph *g = NULL;
  struct tfc_tensor alone[2] = {{0}}, merged[2] = {{0}};
  uint32_t ops = 0;
  assert_ok(tfc_builder_finish(m->b, &g));
  run(m, g, "1", true, fetches, count, alone);
  for (int several = 2; several > 0; several--) {
    ops = run(m, g, several == 2 ? "2" : "1", false, fetches, count, merged);
    for (uint32_t i = 0; i < count; i++) {
      assert_true(tfc_shape_equal(&alone[i].shape, &merged[i].shape));
      assert_memory_equal(alone[i].data, merged[i].data, alone[i].size);
      tfc_tensor_release(&merged[i]);
    }
  }
  for (uint32_t i = 0; i < count; i++) tfc_tensor_release(&alone[i]);
  for (uint32_t i = 0; i < m->count; i++) tfc_tensor_release(&m->values[i]);
  tfc_graph_release(g);
  tfc_builder_free(m->b);
  return ops;
}

static struct made begin(struct tfc_random *r) {
  struct made m = {.random = r};
  assert_ok(tfc_builder_create(NULL, &m.b));
  return m;
}

static void the_same_bits(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t merged = 0;
  tfc_random_init(&r, 11);
  for (int round = 0; round < 120; round++) {
    struct made m = begin(&r);
    struct tfc_shape shape;
    struct tfc_output y = product(&m, &shape);
    y = follow(&m, y, &shape);
    merged += compare(&m, &y, 1) == 1;
  }
  assert_in_range(merged, 100, 120); // operations on a single element are not merged
}

// A leaky rectifier becomes part of the product as the others do. On its own, or where something else reads what it
// reads, it is an operation as before.
static void leaky_rectifiers(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 17);
  for (int round = 0; round < 60; round++) {
    struct made m = begin(&r);
    struct tfc_shape shape;
    struct tfc_output y = product(&m, &shape), fetches[2];
    const struct tfc_shape row = TFC_SHAPE(shape.dims[shape.rank - 1]);
    const int how = round % 6;
    if (how == 0) {
      fetches[0] = leaky(&m, y);
      compare(&m, fetches, 1);
      continue;
    }
    fetches[1] = y = tfc_add2(m.b, "BiasAdd", y, weight(&m, row));
    if (how == 1) {
      fetches[0] = leaky(&m, y);
      compare(&m, fetches, 2);
      continue;
    }
    if (how == 2) y = tfc_add2(m.b, "AddV2", y, fed(&m, shape));
    y = leaky(&m, y);
    if (how == 3) y = tfc_add2(m.b, "Mul", y, weight(&m, row));
    if (how == 4) y = leaky(&m, y);
    const bool several = tfc_shape_elements(&shape) > 1; // operations on a single element are not merged
    const uint32_t ops = compare(&m, &y, 1);
    if (several) assert_int_equal(ops, 1);
  }
}

// What kernels compute before they write an element: a normalisation or a bias, a residual, a rectifier. Factors are
// large, so that some elements are above 6, and shapes are wider than a panel.
static void last_passes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 16);
  for (int round = 0; round < 120; round++) {
    struct made m = begin(&r);
    struct tfc_shape shape;
    struct tfc_output y = product(&m, &shape);
    const struct tfc_shape row = TFC_SHAPE(shape.dims[shape.rank - 1]);
    const uint64_t parts = tfc_random_below(&r, 16);
    if (parts & 1) {
      struct tfc_output factor = constant(&m, row);
      for (int i = 0; i < 3; i++) factor = tfc_add2(m.b, "AddV2", factor, factor);
      y = tfc_add2(m.b, "Mul", tfc_add2(m.b, "Sub", y, weight(&m, row)), factor);
    }
    y = tfc_add2(m.b, parts & 2 ? "BiasAdd" : "AddV2", y, weight(&m, row));
    if (parts & 4)
      y = tfc_random_below(&r, 2) ? tfc_add2(m.b, "AddV2", y, fed(&m, shape)) : tfc_add2(m.b, "Add", fed(&m, shape), y);
    if (parts & 8)
      y = tfc_random_below(&r, 3) == 0 ? leaky(&m, y) : tfc_add1(m.b, tfc_random_below(&r, 2) ? "Relu" : "Relu6", y);
    if ((parts & 12) == 12 && tfc_random_below(&r, 3) == 0) y = tfc_add2(m.b, "AddV2", y, fed(&m, shape));
    compare(&m, &y, 1);
  }
}

// Adds a convolution of pictures or volumes whose result has at least a megabyte.
static struct tfc_output large_convolution(struct made *m, bool volume, struct tfc_shape *shape) {
  struct tfc_random *r = m->random;
  const int64_t size = between(r, 1, 3), stride = between(r, 1, 2), channels = between(r, 1, 6),
                batch = between(r, 1, 2);
  const int64_t filters = tfc_random_below(r, 2) ? 16 * between(r, 1, 4) : between(r, 12, 70);
  const int64_t deep = volume ? between(r, 3, 9) : 1, high = between(r, 9, 40);
  const int64_t wide = (1 << 18) / (batch * deep * high * filters) + between(r, 1, 9); // of the result
  const int64_t of_volume[] = {1, stride, stride, stride, 1}, of_picture[] = {1, stride, stride, 1};
  struct tfc_attr attrs[] = {volume ? ints("strides", of_volume, 5) : ints("strides", of_picture, 4),
                             tfc_attr_string("padding", TFC_STR("SAME"))};
  const int64_t in[] = {deep * (volume ? stride : 1), high * stride, wide * stride};
  struct tfc_output operands[] = {
      fed(m, volume ? TFC_SHAPE(batch, in[0], in[1], in[2], channels) : TFC_SHAPE(batch, in[1], in[2], channels)),
      weight(m, volume ? TFC_SHAPE(size, size, size, channels, filters) : TFC_SHAPE(size, size, channels, filters))};
  *shape = volume ? TFC_SHAPE(batch, deep, high, wide, filters) : TFC_SHAPE(batch, high, wide, filters);
  return tfc_add(m->b, volume ? "Conv3D" : "Conv2D", NULL, operands, 2, attrs, 2);
}

// Adds a maximum pool. `apart`: its windows do not overlap.
static struct tfc_output max_pool(struct made *m, struct tfc_output y, bool volume, bool apart) {
  struct tfc_random *r = m->random;
  const int last = volume ? 3 : 2; // columns, which may overlap
  int64_t size[5] = {1, 1, 1, 1, 1}, strides[5] = {1, 1, 1, 1, 1};
  for (int k = 1; k <= last; k++) {
    size[k] = between(r, 1, 3);
    strides[k] = k == last ? between(r, 1, 3) : size[k] + between(r, 0, 1);
  }
  if (!apart) size[1] = 3, strides[1] = 2;
  struct tfc_attr attrs[] = {ints("ksize", size, volume ? 5 : 4), ints("strides", strides, volume ? 5 : 4),
                             tfc_attr_string("padding", tfc_random_below(r, 2) ? TFC_STR("SAME") : TFC_STR("VALID"))};
  return tfc_add(m->b, volume ? "MaxPool3D" : "MaxPool", NULL, &y, 1, attrs, 3);
}

// A pool becomes part of the convolution that makes its input, if its windows do not overlap and nothing else reads
// that input.
static void pools(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 18);
  for (int round = 0; round < 48; round++) {
    struct made m = begin(&r);
    struct tfc_shape shape;
    const bool volume = round % 3 == 0, apart = round % 8 != 7, others = round % 8 == 5;
    struct tfc_output y = large_convolution(&m, volume, &shape), fetches[2];
    const struct tfc_shape row = TFC_SHAPE(shape.dims[shape.rank - 1]);
    y = tfc_add2(m.b, "BiasAdd", y, weight(&m, row));
    if (round % 2) y = leaky(&m, y);
    if (round % 5 == 0) y = tfc_add1(m.b, "Tanh", y); // not a last pass
    if (round % 4 == 0) y = tfc_add2(m.b, "AddV2", y, fed(&m, shape));
    fetches[1] = y;
    fetches[0] = max_pool(&m, y, volume, apart);
    const uint32_t ops = compare(&m, fetches, 1 + others);
    assert_int_equal(ops, apart && !others ? 1 : 2);
  }
}

// The shapes of an image may be known only when the convolution runs: its bits are the same.
static void late_shapes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 19);
  for (int round = 0; round < 40; round++) {
    struct made m = begin(&r);
    struct tfc_graph *g = NULL;
    struct tfc_tensor got[2] = {{0}};
    const bool volume = round % 2;
    const int64_t size = between(&r, 1, 3), stride = between(&r, 1, 2), channels = 8 * between(&r, 1, 5);
    const int64_t filters = tfc_random_below(&r, 3) ? between(&r, 2, 60) : 1, side = between(&r, 4, 12);
    const int64_t of_volume[] = {1, stride, stride, stride, 1}, of_picture[] = {1, stride, stride, 1};
    struct tfc_attr attrs[] = {volume ? ints("strides", of_volume, 5) : ints("strides", of_picture, 4),
                               tfc_attr_string("padding", TFC_STR("SAME"))};
    const struct tfc_shape image =
        volume ? TFC_SHAPE(1, 3, side, side + 1, channels) : TFC_SHAPE(2, side, side + 1, channels);
    struct tfc_output x = fed(&m, image), fetches[2];
    const struct tfc_output w =
        weight(&m, volume ? TFC_SHAPE(size, size, size, channels, filters) : TFC_SHAPE(size, size, channels, filters));
    fetches[0] = tfc_add(m.b, volume ? "Conv3D" : "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 2);
    const uint32_t i = m.count++; // the shape, as a feed
    m.shapes[i] = TFC_SHAPE(image.rank);
    assert_ok(tfc_tensor_create(TFC_INT32, &m.shapes[i], &m.values[i]));
    for (int d = 0; d < image.rank; d++) ((int32_t *)m.values[i].data)[d] = (int32_t)image.dims[d];
    m.feeds[i] = tfc_add_placeholder(m.b, "shape", TFC_INT32, &m.shapes[i]);
    x = tfc_add2(m.b, "Reshape", x, m.feeds[i]);
    fetches[1] = tfc_add(m.b, volume ? "Conv3D" : "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 2);
    assert_ok(tfc_builder_finish(m.b, &g));
    run(&m, g, "1", false, fetches, 2, got);
    assert_true(tfc_shape_equal(&got[0].shape, &got[1].shape));
    assert_memory_equal(got[0].data, got[1].data, got[0].size);
    for (int k = 0; k < 2; k++) tfc_tensor_release(&got[k]);
    for (uint32_t k = 0; k < m.count; k++) tfc_tensor_release(&m.values[k]);
    tfc_graph_release(g);
    tfc_builder_free(m.b);
  }
}

static void large_results_are_finished_block_by_block(void **state) {
  (void)state;
  static const int64_t sizes[][3] = {{700, 300, 300}, {900, 40, 33}, {64, 3000, 48}, {300, 600, 1100}};
  struct tfc_random r;
  tfc_random_init(&r, 12);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int constants = 0; constants < 2; constants++) {
      struct made m = begin(&r);
      const int64_t rows = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
      const struct tfc_shape shape = TFC_SHAPE(rows, n), w = TFC_SHAPE(k, n);
      struct tfc_output y =
          tfc_add2(m.b, "MatMul", fed(&m, TFC_SHAPE(rows, k)), constants ? constant(&m, w) : fed(&m, w));
      y = tfc_add1(m.b, "Relu", tfc_add2(m.b, "BiasAdd", y, constant(&m, TFC_SHAPE(n))));
      y = tfc_add2(m.b, "AddV2", y, fed(&m, shape));
      assert_int_equal(compare(&m, &y, 1), 1);
    }
}

// In the first two cases another operation reads the product, or it is fetched; in the third, the chain needs a tensor
// that is computed from the product.
static void others_read_the_product(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 13);
  for (int how = 0; how < 4; how++) {
    struct made m = begin(&r);
    struct tfc_output x = tfc_add2(m.b, "MatMul", fed(&m, TFC_SHAPE(9, 20)), fed(&m, TFC_SHAPE(20, 30)));
    struct tfc_output y = tfc_add1(m.b, "Relu", tfc_add2(m.b, "BiasAdd", x, constant(&m, TFC_SHAPE(30))));
    struct tfc_output fetches[2] = {y, x};
    if (how == 1) fetches[1] = tfc_add1(m.b, "Softmax", x);
    if (how == 2) fetches[0] = tfc_add2(m.b, "Mul", y, tfc_add1(m.b, "Softmax", x));
    if (how == 3) fetches[0] = tfc_add2(m.b, "Mul", y, tfc_add1(m.b, "Softmax", y));
    assert_int_equal(compare(&m, fetches, how < 2 ? 2 : 1), how == 0 ? 2 : 3);
  }
}

// The sum of two products: the chain becomes part of one of them, and needs the result of the other first.
static void sums_of_products(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 14);
  for (int deep = 0; deep < 2; deep++) {
    struct made m = begin(&r);
    struct tfc_output x = fed(&m, TFC_SHAPE(9, 30));
    struct tfc_output a = tfc_add2(m.b, "MatMul", x, fed(&m, TFC_SHAPE(30, 30)));
    struct tfc_output c = tfc_add2(m.b, "MatMul", deep ? tfc_add1(m.b, "Softmax", x) : x, fed(&m, TFC_SHAPE(30, 30)));
    struct tfc_output y = tfc_add1(m.b, "Relu", tfc_add2(m.b, "AddV2", a, c));
    compare(&m, &y, 1);
  }
}

// A batch of matrices times one constant matrix is a single product, so the constant is packed once.
static void constants_are_packed_once(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 15);
  for (int round = 0; round < 40; round++) {
    struct made m = begin(&r);
    const int64_t rows = between(&r, 1, 40), k = between(&r, 1, 80), n = between(&r, 1, 90), each = between(&r, 1, 4);
    struct tfc_output y;
    if (round % 2) {
      const bool transposed = tfc_random_below(&r, 2);
      struct tfc_attr attr = tfc_attr_bool("adj_y", transposed);
      struct tfc_output in[] = {fed(&m, TFC_SHAPE(each, rows, k)),
                                weight(&m, transposed ? TFC_SHAPE(n, k) : TFC_SHAPE(k, n))};
      y = tfc_add(m.b, "BatchMatMulV2", NULL, in, 2, &attr, 1);
    } else {
      struct tfc_attr attrs[] = {tfc_attr_string("equation", TFC_STR("abc,cde->abde"))};
      struct tfc_output in[] = {fed(&m, TFC_SHAPE(each, rows, k)), weight(&m, TFC_SHAPE(k, n, 2))};
      y = tfc_add(m.b, "Einsum", NULL, in, 2, attrs, 1);
    }
    y = tfc_add1(m.b, "Relu", y);
    compare(&m, &y, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_bits),
      cmocka_unit_test(leaky_rectifiers),
      cmocka_unit_test(last_passes),
      cmocka_unit_test(pools),
      cmocka_unit_test(late_shapes),
      cmocka_unit_test(large_results_are_finished_block_by_block),
      cmocka_unit_test(others_read_the_product),
      cmocka_unit_test(sums_of_products),
      cmocka_unit_test(constants_are_packed_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
