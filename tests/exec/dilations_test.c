// Convolutions with a border of zeros around their image (Pad), and with a dilation that is written as SpaceToBatchND
// before and BatchToSpaceND after them: in one operation they have the same bits as when each operation runs by itself,
// for drawn shapes. And where the operations must stay.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

static int64_t between(struct tfc_random *r, int64_t low, int64_t high) {
  return low + (int64_t)tfc_random_below(r, (uint64_t)(high - low + 1));
}

static struct tfc_attr ints(const char *name, const int64_t *values, uint32_t count) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_LIST_INT, .ints = values, .count = count};
}

#ifdef TFC_SANITIZED
enum { ROUNDS = 30 };
#else
enum { ROUNDS = 150 };
#endif

enum { X, W, FEEDS };
struct made { // a graph, and what it is fed
  struct tfc_builder *b;
  struct tfc_output feeds[FEEDS];
  struct tfc_shape shapes[FEEDS];
  struct tfc_tensor values[FEEDS];
};

static struct made begin(struct tfc_random *r, struct tfc_shape x, struct tfc_shape w) {
  struct made m = {.shapes = {x, w}};
  assert_ok(tfc_builder_create(NULL, &m.b));
  for (int i = 0; i < FEEDS; i++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &m.shapes[i], &m.values[i]));
    for (int64_t k = 0; k < tfc_tensor_elements(&m.values[i]); k++)
      ((float *)m.values[i].data)[k] = (float)((double)tfc_random_below(r, 20001) / 1e4 - 1);
    m.feeds[i] = tfc_add_placeholder(m.b, "in", TFC_FLOAT, &m.shapes[i]);
  }
  return m;
}

static uint32_t run(const struct made *m, struct tfc_graph *g, const char *devices, bool no_rewrites,
                    const struct tfc_output *fetches, uint32_t count, struct tfc_tensor *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  struct tfc_run_spec spec = {
      .feeds = m->feeds, .feed_count = FEEDS, .feed_shapes = m->shapes, .fetches = fetches, .fetch_count = count};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_plan_run(plan, m->values, out, NULL));
  const uint32_t ops = tfc_plan_info(plan)->op_count;
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  return ops;
}

// Compares both ways to the bit, on one device and on two. Returns how many operations a step has with rewrites.
static uint32_t compare(struct made *m, const struct tfc_output *fetches, uint32_t count) {
  struct tfc_graph *g = NULL;
  struct tfc_tensor alone[2] = {{0}}, folded[2] = {{0}};
  uint32_t ops = 0;
  assert_ok(tfc_builder_finish(m->b, &g));
  run(m, g, "1", true, fetches, count, alone);
  for (int several = 2; several > 0; several--) {
    ops = run(m, g, several == 2 ? "2" : "1", false, fetches, count, folded);
    for (uint32_t i = 0; i < count; i++) {
      assert_true(tfc_shape_equal(&alone[i].shape, &folded[i].shape));
      assert_memory_equal(alone[i].data, folded[i].data, alone[i].size);
      tfc_tensor_release(&folded[i]);
    }
  }
  for (uint32_t i = 0; i < count; i++) tfc_tensor_release(&alone[i]);
  for (uint32_t i = 0; i < FEEDS; i++) tfc_tensor_release(&m->values[i]);
  tfc_graph_release(g);
  tfc_builder_free(m->b);
  return ops;
}

static struct tfc_output numbers(struct made *m, const int64_t *values, int64_t rows, int64_t columns) {
  struct tfc_tensor t = {0};
  const struct tfc_shape shape = columns ? TFC_SHAPE(rows, columns) : TFC_SHAPE(rows);
  assert_ok(tfc_tensor_create(TFC_INT64, &shape, &t));
  memcpy(t.data, values, t.size);
  struct tfc_output out = tfc_add_const(m->b, NULL, &t);
  tfc_tensor_release(&t);
  return out;
}

// A drawn convolution over `dims` dimensions; one dimension is computed as two, the first of which is 1.
struct drawn {
  int dims;
  bool bordered, dilated, same; // same: SAME padding of the convolution itself
  bool depthwise;
  struct tfc_shape x, filter;
  int64_t border[2][3], block[3], paddings[2][3], crops[2][3], stride[3];
};

// `few`: few filters over many channels. Products of such a shape add up their terms in another order than others.
static struct drawn draw(struct tfc_random *r, bool few) {
  struct drawn d = {.dims = (int)between(r, 1, 3), .bordered = tfc_random_below(r, 2), .same = tfc_random_below(r, 2)};
  d.depthwise = d.dims == 2 && tfc_random_below(r, 2);
  d.same = d.same && !d.depthwise; // cells over the padding of a depthwise convolution are skipped, so a border stays
  const int64_t batch = between(r, 1, 3), channels = few ? between(r, 2, 6) * 8 : between(r, 1, 40);
  const int64_t filters = few ? between(r, 1, 5) : d.depthwise ? between(r, 1, 3) : between(r, 1, 60);
  const int spatial = d.dims == 1 ? 2 : d.dims;
  d.dilated = !d.bordered || tfc_random_below(r, 2);
  d.x.rank = d.dims + 2, d.filter.rank = spatial + 2;
  for (int i = 0; i < d.dims; i++) {
    const int64_t size = between(r, 1, 4), block = d.dilated ? between(r, 1, 3) : 1, reach = (size - 1) * block + 1;
    const int64_t in = between(r, 2, 6) * block + reach;
    int64_t padded = in;
    d.block[i] = block, d.stride[i] = d.dilated ? 1 : between(r, 1, 2);
    d.filter.dims[spatial - d.dims + i] = size;
    d.x.dims[1 + i] = in;
    for (int side = 0; side < 2 && d.bordered; side++) padded += d.border[side][i] = between(r, 0, 3);
    if (!d.dilated) continue;
    // what it takes to be a multiple of the block, and a border that the dilation itself has
    for (int side = 0; side < 2; side++) padded += d.paddings[side][i] = between(r, 0, reach - 1);
    d.crops[1][i] = (block - padded % block) % block;
    d.paddings[1][i] += d.crops[1][i];
    if (tfc_random_below(r, 3) == 0 && d.paddings[0][i]) d.crops[0][i] = 1;
  }
  if (d.dims == 1) d.filter.dims[0] = 1;
  d.x.dims[0] = batch, d.x.dims[d.dims + 1] = channels;
  d.filter.dims[spatial] = channels, d.filter.dims[spatial + 1] = filters;
  return d;
}

static struct tfc_output convolved(struct made *m, const struct drawn *d) {
  struct tfc_builder *b = m->b;
  struct tfc_output x = m->feeds[X];
  int64_t pairs[10] = {0}, strides[5] = {1, 1, 1, 1, 1};
  const int spatial = d->dims == 1 ? 2 : d->dims;
  for (int i = 0; i < d->dims; i++) strides[1 + spatial - d->dims + i] = d->stride[i];
  for (int i = 0; i < d->dims; i++) pairs[2 + 2 * i] = d->border[0][i], pairs[3 + 2 * i] = d->border[1][i];
  if (d->bordered) x = tfc_add2(b, "Pad", x, numbers(m, pairs, d->dims + 2, 2));
  for (int i = 0; i < d->dims; i++) pairs[2 * i] = d->paddings[0][i], pairs[2 * i + 1] = d->paddings[1][i];
  if (d->dilated)
    x = tfc_add(b, "SpaceToBatchND", NULL,
                (struct tfc_output[]){x, numbers(m, d->block, d->dims, 0), numbers(m, pairs, d->dims, 2)}, 3, NULL, 0);
  if (d->dims == 1) x = tfc_add2(b, "ExpandDims", x, tfc_add_i32(b, 1));
  struct tfc_attr attrs[] = {ints("strides", strides, (uint32_t)spatial + 2),
                             tfc_attr_string("padding", d->same ? TFC_STR("SAME") : TFC_STR("VALID"))};
  const char *op = d->depthwise ? "DepthwiseConv2dNative" : spatial == 2 ? "Conv2D" : "Conv3D";
  x = tfc_add(b, op, NULL, (struct tfc_output[]){x, m->feeds[W]}, 2, attrs, 2);
  struct tfc_attr squeezed = ints("squeeze_dims", (int64_t[]){1}, 1);
  if (d->dims == 1) x = tfc_add(b, "Squeeze", NULL, &x, 1, &squeezed, 1);
  for (int i = 0; i < d->dims; i++) pairs[2 * i] = d->crops[0][i], pairs[2 * i + 1] = d->crops[1][i];
  if (d->dilated)
    x = tfc_add(b, "BatchToSpaceND", NULL,
                (struct tfc_output[]){x, numbers(m, d->block, d->dims, 0), numbers(m, pairs, d->dims, 2)}, 3, NULL, 0);
  return x;
}

// What follows in models (a bias, an activation) becomes part of the convolution, if nothing is between them.
static struct tfc_output followed(struct made *m, struct tfc_output y) {
  return tfc_add1(m->b, "Relu", tfc_add1(m->b, "Neg", y));
}

static void the_same_bits(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 21);
  int folded = 0;
  for (int round = 0; round < ROUNDS; round++) {
    const struct drawn d = draw(&r, round % 3 == 2);
    struct made m = begin(&r, d.x, d.filter);
    if (d.depthwise) ((float *)m.values[W].data)[0] = INFINITY; // times a zero of the border it is NaN
    const struct tfc_output y = followed(&m, convolved(&m, &d));
    folded += compare(&m, &y, 1) == 1;
  }
  assert_in_range(folded, ROUNDS * 2 / 3, ROUNDS); // the others crop more than the window reaches over the border
}

// Something else reads the padded image, the pictures, or the convolution's result; or the result is fetched.
static void others_read_between(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 22);
  for (int how = 0; how < 3; how++) {
    struct made m = begin(&r, TFC_SHAPE(2, 9, 8), TFC_SHAPE(1, 2, 8, 6));
    struct tfc_output block = numbers(&m, (int64_t[]){2}, 1, 0);
    struct tfc_output padded = tfc_add2(m.b, "Pad", m.feeds[X], numbers(&m, (int64_t[]){0, 0, 2, 0, 0, 0}, 3, 2));
    struct tfc_output pictures =
        tfc_add(m.b, "SpaceToBatchND", NULL, (struct tfc_output[]){padded, block, numbers(&m, (int64_t[]){0, 1}, 1, 2)},
                3, NULL, 0);
    struct tfc_attr attrs[] = {ints("strides", (int64_t[]){1, 1, 1, 1}, 4),
                               tfc_attr_string("padding", TFC_STR("VALID"))};
    struct tfc_output y = tfc_add(
        m.b, "Conv2D", NULL,
        (struct tfc_output[]){tfc_add2(m.b, "ExpandDims", pictures, tfc_add_i32(m.b, 1)), m.feeds[W]}, 2, attrs, 2);
    struct tfc_attr squeezed = ints("squeeze_dims", (int64_t[]){1}, 1);
    struct tfc_output flat = tfc_add(m.b, "Squeeze", NULL, &y, 1, &squeezed, 1);
    struct tfc_output whole =
        tfc_add(m.b, "BatchToSpaceND", NULL, (struct tfc_output[]){flat, block, numbers(&m, (int64_t[]){0, 1}, 1, 2)},
                3, NULL, 0);
    const struct tfc_output others[] = {tfc_add1(m.b, "Softmax", padded), tfc_add1(m.b, "Softmax", pictures),
                                        tfc_add1(m.b, "Softmax", flat)};
    const struct tfc_output fetches[2] = {followed(&m, whole), others[how]};
    // with the padded image only the dilation is folded; the pictures must be made, and without them nothing is
    static const uint32_t operations[] = {3, 6, 6};
    assert_int_equal(compare(&m, fetches, 2), operations[how]);
  }
}

// Adds an assertion that holds, which has an effect: what follows it in an order must not run before it.
static uint32_t assertion(struct made *m, struct tfc_output x) {
  const struct tfc_attr types = {
      .name = TFC_STR("T"), .kind = TFC_ATTR_LIST_TYPE, .types = (tfc_dtype[]){TFC_FLOAT}, .count = 1};
  const struct tfc_output same = tfc_add2(m->b, "Equal", x, x),
                          axes = tfc_add_i32_vector(m->b, (int32_t[]){0, 1, 2, 3}, 4);
  const struct tfc_output all = tfc_add2(m->b, "All", same, axes);
  return tfc_add(m->b, "Assert", NULL, (struct tfc_output[]){all, x}, 2, &types, 1).node;
}

// A border that an assertion is ordered before stays an operation, because the order would be lost with it.
static void an_order_is_kept(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t count[2];
  tfc_random_init(&r, 23);
  for (int how = 0; how < 2; how++) {
    struct made m = begin(&r, TFC_SHAPE(2, 9, 9, 8), TFC_SHAPE(2, 2, 8, 6));
    const struct tfc_attr attrs[] = {ints("strides", (int64_t[]){1, 1, 1, 1}, 4),
                                     tfc_attr_string("padding", TFC_STR("VALID"))};
    const uint32_t first = assertion(&m, m.feeds[X]);
    const struct tfc_output padded =
        tfc_add2(m.b, "Pad", m.feeds[X], numbers(&m, (int64_t[]){0, 0, 2, 0, 0, 1, 0, 0}, 4, 2));
    const struct tfc_output y = tfc_add(m.b, "Conv2D", NULL, (struct tfc_output[]){padded, m.feeds[W]}, 2, attrs, 2);
    const uint32_t second = assertion(&m, y);
    const struct tfc_output fetches[] = {tfc_add1(m.b, "Softmax", m.feeds[X]), tfc_add1(m.b, "Neg", y)};
    tfc_builder_add_control(m.b, fetches[0].node, first);
    tfc_builder_add_control(m.b, fetches[1].node, second);
    if (how == 1) tfc_builder_add_control(m.b, padded.node, first);
    count[how] = compare(&m, fetches, 2);
  }
  assert_int_equal(count[1], count[0] + 1);
}

// A border before a depthwise convolution that has padding of its own stays.
static void depthwise_padding_stays(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 26);
  for (int same = 0; same < 2; same++) {
    struct made m = begin(&r, TFC_SHAPE(2, 6, 7, 19), TFC_SHAPE(3, 3, 19, 1));
    const struct tfc_attr attrs[] = {ints("strides", (int64_t[]){1, 2, 2, 1}, 4),
                                     tfc_attr_string("padding", same ? TFC_STR("SAME") : TFC_STR("VALID"))};
    const struct tfc_output x =
        tfc_add2(m.b, "Pad", m.feeds[X], numbers(&m, (int64_t[]){0, 0, 4, 0, 1, 5, 0, 0}, 4, 2));
    const struct tfc_output y =
        tfc_add(m.b, "DepthwiseConv2dNative", NULL, (struct tfc_output[]){x, m.feeds[W]}, 2, attrs, 2);
    assert_int_equal(compare(&m, &y, 1), same ? 2 : 1);
  }
}

// The kernels that take a border as part of their image compute float32 alone.
static void doubles_stay(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 25);
  for (int wide = 0; wide < 2; wide++) {
    struct made m = begin(&r, TFC_SHAPE(2, 6, 7, 3), TFC_SHAPE(2, 2, 3, 4));
    struct tfc_output in[2] = {m.feeds[X], m.feeds[W]};
    const struct tfc_attr attrs[] = {ints("strides", (int64_t[]){1, 1, 1, 1}, 4),
                                     tfc_attr_string("padding", TFC_STR("VALID"))},
                          as = tfc_attr_type("DstT", TFC_DOUBLE);
    for (int i = 0; i < 2 && wide; i++) in[i] = tfc_add(m.b, "Cast", NULL, &in[i], 1, &as, 1);
    in[0] = tfc_add2(m.b, "Pad", in[0], numbers(&m, (int64_t[]){0, 0, 2, 0, 0, 1, 0, 0}, 4, 2));
    const struct tfc_output y = tfc_add(m.b, "Conv2D", NULL, in, 2, attrs, 2);
    assert_int_equal(compare(&m, &y, 1), wide ? 4 : 1); // two conversions, the border and the convolution
  }
}

#ifndef TFC_SANITIZED // which takes memory of its own
// What planning takes grows with the number of borders, not with its square.
static uint64_t most_memory(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return (uint64_t)usage.ru_maxrss * 1024;
}
static void many_borders(void **state) {
  (void)state;
  enum { MANY = 2000, BYTES_EACH = 16 << 10 };
  struct tfc_random r;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  tfc_random_init(&r, 24);
  struct made m = begin(&r, TFC_SHAPE(1, 4, 4, 1), TFC_SHAPE(3, 3, 1, 1));
  const struct tfc_output around = numbers(&m, (int64_t[]){0, 0, 1, 1, 1, 1, 0, 0}, 4, 2);
  const struct tfc_attr attrs[] = {ints("strides", (int64_t[]){1, 1, 1, 1}, 4),
                                   tfc_attr_string("padding", TFC_STR("VALID"))};
  struct tfc_output x = m.feeds[X];
  for (int i = 0; i < MANY; i++)
    x = tfc_add(m.b, "Conv2D", NULL, (struct tfc_output[]){tfc_add2(m.b, "Pad", x, around), m.feeds[W]}, 2, attrs, 2);
  assert_ok(tfc_builder_finish(m.b, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  const struct tfc_run_spec spec = {
      .feeds = m.feeds, .feed_count = FEEDS, .feed_shapes = m.shapes, .fetches = &x, .fetch_count = 1};
  const uint64_t before = most_memory();
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_int_equal(tfc_plan_info(plan)->op_count, MANY);
  const uint64_t taken = most_memory() - before;
  print_message("%llu bytes for each border\n", (unsigned long long)(taken / MANY));
  assert_in_range(taken, 0, (uint64_t)MANY * BYTES_EACH);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  for (uint32_t i = 0; i < FEEDS; i++) tfc_tensor_release(&m.values[i]);
  tfc_graph_release(g);
  tfc_builder_free(m.b);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
#ifndef TFC_SANITIZED
      cmocka_unit_test(many_borders), // first: it looks at the most memory that the process has had
#endif
      cmocka_unit_test(the_same_bits), cmocka_unit_test(others_read_between),     cmocka_unit_test(an_order_is_kept),
      cmocka_unit_test(doubles_stay),  cmocka_unit_test(depthwise_padding_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
