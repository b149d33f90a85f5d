// Graphs whose layout is not the one in which a device convolves faster (runtime/exec/rewrites/layouts.c), on the CUDA
// driver with its kernels: a chain of layers launches as much as in a graph with the other layout, and the
// transpositions at its ends; results are those of the CPU.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "runtime/pass/pass.h"
#include "tests/cuda_kernels/host.h"
#include "tests/cuda_kernels/streams.h"

enum { BATCH = 2, HEIGHT = 9, WIDTH = 8, CHANNELS = 3, STEPS = 6, MOST = 8192 };
enum { X, W1, W2, W3, W4, SCALE, OFFSET, BIAS, FEEDS, CONVOLUTIONS = 4 };

// --- A net in either layout ---------------------------------------------------------------------------------------
static struct tfc_builder *b;
static bool first; // it has channels first

static struct tfc_attr list(const char *name, const int64_t *ints, uint32_t count) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_LIST_INT, .ints = ints, .count = count};
}
static struct tfc_attr format(void) {
  return tfc_attr_string("data_format", first ? TFC_STR("NCHW") : TFC_STR("NHWC"));
}
// In the order of the image's dimensions.
static void by_dimension(int64_t height, int64_t width, int64_t out[4]) {
  const int64_t last[4] = {1, height, width, 1};
  for (int k = 0; k < 4; k++) out[k] = last[first ? (int[]){0, 3, 1, 2}[k] : k];
}
static struct tfc_output conv(struct tfc_output x, struct tfc_output w, int64_t height, int64_t width,
                              const char *padding) {
  int64_t strides[4], paddings[8] = {0};
  by_dimension(height, width, strides);
  const int axis = first ? 2 : 1;
  paddings[2 * axis] = 2, paddings[2 * axis + 1] = 1, paddings[2 * axis + 3] = 1; // for EXPLICIT
  const struct tfc_attr attrs[] = {list("strides", strides, 4), tfc_attr_string("padding", tfc_str_from(padding)),
                                   format(), list("explicit_paddings", paddings, 8)};
  return tfc_add(b, "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, strcmp(padding, "EXPLICIT") ? 3 : 4);
}
static struct tfc_output pool(const char *op, struct tfc_output x, int64_t height, int64_t width, int64_t step) {
  int64_t size[4], strides[4];
  by_dimension(height, width, size);
  by_dimension(step, step, strides);
  const struct tfc_attr attrs[] = {list("ksize", size, 4), list("strides", strides, 4),
                                   tfc_attr_string("padding", TFC_STR("SAME")), format()};
  return tfc_add(b, op, NULL, &x, 1, attrs, 4);
}
static struct tfc_shape image(int64_t height, int64_t width, int64_t channels) {
  return first ? TFC_SHAPE(BATCH, channels, height, width) : TFC_SHAPE(BATCH, height, width, channels);
}

struct net {
  struct tfc_graph *graph;
  struct tfc_output feeds[FEEDS], fetches[FEEDS + 2];
  struct tfc_shape shapes[FEEDS];
  uint32_t fetch_count, inside; // fetches[inside ...] are images of the net
  uint32_t transposed;          // how many transpositions it needs with channels first
};
// fetches: the loss and its gradients. `seen`: an image in the middle, too. `dropout`: random numbers, which are in the
// order of the graph's layout.
static void build(bool channels_first, bool seen, bool dropout, struct net *out) {
  first = channels_first;
  memset(out, 0, sizeof *out);
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_shape shapes[FEEDS] = {image(HEIGHT, WIDTH, CHANNELS),
                                          TFC_SHAPE(3, 3, CHANNELS, 4),
                                          TFC_SHAPE(3, 2, 4, 6),
                                          TFC_SHAPE(1, 1, 4, 6),
                                          TFC_SHAPE(2, 3, 12, 5),
                                          TFC_SHAPE(4),
                                          TFC_SHAPE(4),
                                          TFC_SHAPE(6)};
  memcpy(out->shapes, shapes, sizeof shapes);
  struct tfc_output in[FEEDS];
  for (int i = 0; i < FEEDS; i++) out->feeds[i] = in[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &shapes[i]);
  const struct tfc_attr norm[] = {format(), tfc_attr_float("epsilon", 0.01)}, layout[] = {format()};
  struct tfc_output given[5] = {conv(in[X], in[W1], 1, 1, "SAME"), in[SCALE], in[OFFSET]};
  struct tfc_tensor nothing = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(0), &nothing));
  given[3] = given[4] = tfc_add_const(b, "", &nothing);
  tfc_tensor_release(&nothing);
  struct tfc_output x = tfc_add(b, "FusedBatchNormV3", NULL, given, 5, norm, 2);
  x = tfc_add1(b, "Relu", x); // [2, 9, 8, 4]
  if (dropout) {
    const struct tfc_shape shape = image(HEIGHT, WIDTH, 4);
    const struct tfc_attr attrs[] = {tfc_attr_int("seed", 3), tfc_attr_int("seed2", 5),
                                     tfc_attr_type("dtype", TFC_FLOAT)};
    const struct tfc_output sizes = tfc_add_i32_vector(
        b, (int32_t[]){(int32_t)shape.dims[0], (int32_t)shape.dims[1], (int32_t)shape.dims[2], (int32_t)shape.dims[3]},
        4);
    const struct tfc_output drawn = tfc_add(b, "RandomUniform", NULL, &sizes, 1, attrs, 3);
    x = tfc_add2(b, "Mul", x, tfc_add2(b, "AddV2", drawn, tfc_add_scalar(b, TFC_FLOAT, 0.5)));
    out->transposed++; // the numbers
  }
  x = pool("MaxPool", x, 3, 2, 2); // [2, 5, 4, 4]
  struct tfc_output shortcut = conv(x, in[W3], 1, 1, "VALID");
  struct tfc_output y = conv(x, in[W2], 1, 1, "EXPLICIT"); // [2, 6, 4, 6]
  y = tfc_add(b, "BiasAdd", NULL, (struct tfc_output[]){y, in[BIAS]}, 2, layout, 1);
  // [2, 5, 4, 6] of it, with the shortcut
  const struct tfc_shape part = image(5, 4, 6);
  int32_t sizes[4], pads[8] = {0};
  for (int k = 0; k < 4; k++) sizes[k] = (int32_t)part.dims[k];
  y = tfc_add3(b, "Slice", y, tfc_add_i32_vector(b, first ? (int32_t[]){0, 0, 1, 0} : (int32_t[]){0, 1, 0, 0}, 4),
               tfc_add_i32_vector(b, sizes, 4));
  x = tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", y, shortcut));
  const struct tfc_output middle = x;
  y = pool("AvgPool", x, 3, 2, 1);
  x = tfc_add(b, "ConcatV2", NULL, (struct tfc_output[]){x, y, tfc_add_i32(b, first ? -3 : 3)}, 3, NULL, 0);
  pads[first ? 5 : 3] = 1, pads[first ? 6 : 4] = 2; // one row after, two columns before
  struct tfc_tensor border = {0};
  assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE(4, 2), &border));
  memcpy(border.data, pads, sizeof pads);
  x = tfc_add2(b, "Pad", x, tfc_add_const(b, "", &border)); // [2, 6, 6, 12]
  tfc_tensor_release(&border);
  x = conv(x, in[W4], 2, 1, "VALID"); // [2, 3, 4, 5]
  x = tfc_add2(b, "Mean", x, tfc_add_i32_vector(b, first ? (int32_t[]){2, -1} : (int32_t[]){1, -2}, 2));
  x = tfc_add1(b, "Square", x);
  out->fetches[0] = tfc_add2(b, "Sum", x, tfc_add_i32_vector(b, (int32_t[]){0, 1}, 2));
  assert_ok(tfc_builder_gradients(b, out->fetches, 1, in + W1, FEEDS - W1, NULL, out->fetches + 1));
  out->fetch_count = out->inside = FEEDS;
  out->transposed++; // what is fed; the gradient of the mean is repeated along the positions in either layout
  if (seen) {
    out->fetches[out->fetch_count++] = middle;
    out->transposed++;
  }
  assert_ok(tfc_builder_finish(b, &out->graph));
  tfc_builder_free(b);
}

// --- Running it ---------------------------------------------------------------------------------------------------
static float number(uint32_t i, uint32_t feed) {
  return (float)((i * 7919 + feed * 104729) % 211) * 0.006f - 0.6f;
}
// Images are fed with the same elements in either layout, and are compared as with channels last.
static void fill(struct tfc_tensor *t, uint32_t feed, bool channels_first) {
  const uint32_t n = (uint32_t)tfc_tensor_elements(t), positions = HEIGHT * WIDTH;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t image_size = positions * CHANNELS, at = i % image_size;
    const uint32_t last = i - at + (at % positions) * CHANNELS + at / positions;
    ((float *)t->data)[i] = number(feed == X && channels_first ? last : i, feed);
  }
}
static size_t take(const struct tfc_tensor *t, bool channels_first, float *out) {
  const uint32_t n = (uint32_t)tfc_tensor_elements(t);
  if (!channels_first || t->shape.rank != 4) {
    memcpy(out, t->data, n * sizeof *out);
    return n;
  }
  const uint32_t channels = (uint32_t)t->shape.dims[1], positions = (uint32_t)(t->shape.dims[2] * t->shape.dims[3]);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t image_size = channels * positions, at = i % image_size;
    out[i - at + (at % positions) * channels + at / positions] = ((const float *)t->data)[i];
  }
  return n;
}

struct outcome {
  float values[STEPS][MOST];
  size_t count;
  uint64_t works; // of the last step
};
struct how {
  const char *devices;
  int captures;
  bool all;
  const uint16_t *placement;
};
static void run(const struct net *m, bool channels_first, const struct how *how, struct outcome *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor fed[FEEDS] = {{0}};
  assert_ok(tfc_devices_open(how->devices, NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  with.execution.captures = how->captures, with.execution.seed = 7;
  with.execution.rewrites = how->all ? TFC_REWRITES_ALL : TFC_REWRITES_EXACT;
  with.execution.gpu_math = TFC_MATH_FLOAT32;
  assert_ok(tfc_session_create(m->graph, &with, &session));
  const struct tfc_run_spec spec = {.feeds = m->feeds,
                                    .feed_count = FEEDS,
                                    .feed_shapes = m->shapes,
                                    .fetches = m->fetches,
                                    .fetch_count = m->fetch_count,
                                    .placement = how->placement};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (uint32_t i = 0; i < FEEDS; i++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &m->shapes[i], &fed[i]));
    fill(&fed[i], i, channels_first);
  }
  memset(out, 0, sizeof *out);
  for (int s = 0; s < STEPS; s++) {
    struct tfc_tensor got[FEEDS + 2] = {{0}};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, fed, got, NULL));
    out->works = tfc_cuda_fake_works() - before;
    out->count = 0;
    for (uint32_t k = 0; k < m->fetch_count; k++) {
      assert_true(out->count + (size_t)tfc_tensor_elements(&got[k]) <= MOST);
      // Gradients of filters are no images.
      out->count += take(&got[k], channels_first && k >= m->inside, out->values[s] + out->count);
      tfc_tensor_release(&got[k]);
    }
  }
  for (int i = 0; i < FEEDS; i++) tfc_tensor_release(&fed[i]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
}

static void assert_close(const struct outcome *want, const struct outcome *got) {
  assert_int_equal(want->count, got->count);
  for (int s = 0; s < STEPS; s++)
    for (size_t i = 0; i < want->count; i++)
      if (!(fabsf(want->values[s][i] - got->values[s][i]) <= 2e-5f * (1 + fabsf(want->values[s][i]))))
        fail_msg("step %d, number %zu of %zu: %g instead of %g", s, i, want->count, (double)got->values[s][i],
                 (double)want->values[s][i]);
}

// want_first: the device convolves with channels first. [0]: with channels last; [1]: with channels first.
static void a_chain_keeps(bool want_first) {
  static struct outcome host, exact[2], all[2], own;
  const double gain = cuda_host_channels_last_gain_us;
  cuda_host_channels_first = want_first;
  cuda_host_channels_last_gain_us = want_first ? -30 : 30;
  for (int captures = TFC_CAPTURES_AUTO; captures <= TFC_CAPTURES_BRANCHES; captures++)
    for (int seen = 0; seen < 2; seen++) {
      struct net nets[2];
      for (int layout = 0; layout < 2; layout++) build(layout, seen, false, &nets[layout]);
      cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
      run(&nets[1], true, &(struct how){.devices = "cpu:0"}, &host);
      for (int layout = 0; layout < 2; layout++) {
        struct how how = {.devices = "gpu:0", .captures = captures};
        run(&nets[layout], layout, &how, &exact[layout]);
        how.all = true;
        run(&nets[layout], layout, &how, &all[layout]);
        assert_close(&host, &exact[layout]);
        assert_close(&host, &all[layout]);
      }
      // Alone, each convolution, gradient of an image (the first has none) and gradient of a filter transposes two
      // images; a chain only those at its ends.
      const bool other = !want_first;
      cuda_host_channels_first = other;
      run(&nets[other], other, &(struct how){.devices = "gpu:0", .captures = captures}, &own);
      cuda_host_channels_first = want_first;
      assert_int_equal(exact[other].works, own.works + 2 * (3 * CONVOLUTIONS - 1));
      assert_int_equal(all[other].works, all[!other].works + nets[other].transposed);
      assert_int_equal(tfc_cuda_fake_bytes(), 0);
      assert_int_equal(tfc_cuda_fake_violations(), 0);
      for (int layout = 0; layout < 2; layout++) tfc_graph_release(nets[layout].graph);
    }
  cuda_host_channels_first = false;
  cuda_host_channels_last_gain_us = gain;
}
static void a_chain_keeps_channels_last(void **state) {
  (void)state;
  a_chain_keeps(false);
}
static void a_chain_keeps_channels_first(void **state) {
  (void)state;
  a_chain_keeps(true);
}

// Where channels last gain nothing, or less than the transpositions at the ends take, images keep the graph's layout.
static void a_chain_that_gains_nothing_stays(void **state) {
  (void)state;
  static struct outcome exact, all, gains;
  struct net m;
  const double gain = cuda_host_channels_last_gain_us;
  build(true, true, false, &m);
  const struct how with = {.devices = "gpu:0", .all = true};
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  run(&m, true, &(struct how){.devices = "gpu:0"}, &exact);
  run(&m, true, &with, &gains);
  static const double none[] = {-1, 0, 0.3, NAN};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    cuda_host_channels_last_gain_us = none[i];
    run(&m, true, &with, &all);
    assert_memory_equal(exact.values, all.values, sizeof exact.values);
    assert_true(all.works > gains.works);
  }
  cuda_host_channels_last_gain_us = gain;
  tfc_graph_release(m.graph);
}

// Random numbers are drawn in the order of the graph's layout, and go on from step to step.
static void random_numbers_stay_where_they_are(void **state) {
  (void)state;
  static struct outcome host, all, last_all;
  struct net nchw, nhwc;
  build(true, true, true, &nchw);
  build(false, true, true, &nhwc);
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  run(&nchw, true, &(struct how){.devices = "cpu:0"}, &host);
  run(&nchw, true, &(struct how){.devices = "gpu:0", .all = true}, &all);
  run(&nhwc, false, &(struct how){.devices = "gpu:0", .all = true}, &last_all);
  assert_close(&host, &all);
  assert_int_equal(all.works, last_all.works + nchw.transposed);
  assert_true(memcmp(all.values[0], all.values[1], sizeof all.values[0]) != 0);
  tfc_graph_release(nchw.graph);
  tfc_graph_release(nhwc.graph);
}

// An image of a chain that is also read in another shape: as rows, and by another chain with all elements as channels,
// which have the same order in both layouts.
static void other_shapes_are_read_as_they_are(void **state) {
  (void)state;
  static struct outcome host, all;
  struct net m = {.fetch_count = 3, .inside = 3, .shapes = {{0}}};
  first = true;
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_shape shapes[FEEDS] = {image(HEIGHT, WIDTH, CHANNELS),
                                          TFC_SHAPE(3, 3, CHANNELS, 4),
                                          TFC_SHAPE(3, 3, 4, 6),
                                          TFC_SHAPE(1, 1, 6, 6),
                                          TFC_SHAPE(1, 1, HEIGHT * WIDTH * 4, 2),
                                          TFC_SHAPE(1),
                                          TFC_SHAPE(1),
                                          TFC_SHAPE(1)};
  memcpy(m.shapes, shapes, sizeof shapes);
  for (int i = 0; i < FEEDS; i++) m.feeds[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &shapes[i]);
  const struct tfc_output y = tfc_add1(b, "Relu", conv(m.feeds[X], m.feeds[W1], 1, 1, "SAME"));
  const struct tfc_output rows = tfc_add2(b, "Reshape", y, tfc_add_i32_vector(b, (int32_t[]){BATCH, -1}, 2)),
                          channels = tfc_add2(b, "Reshape", y, tfc_add_i32_vector(b, (int32_t[]){BATCH, -1, 1, 1}, 4));
  m.fetches[0] = conv(conv(y, m.feeds[W2], 1, 1, "SAME"), m.feeds[W3], 1, 1, "SAME");
  m.fetches[1] = tfc_add1(b, "Tanh", rows);
  m.fetches[2] = conv(tfc_add1(b, "Tanh", channels), m.feeds[W4], 1, 1, "VALID");
  assert_ok(tfc_builder_finish(b, &m.graph));
  tfc_builder_free(b);
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  run(&m, true, &(struct how){.devices = "cpu:0"}, &host);
  run(&m, true, &(struct how){.devices = "gpu:0", .all = true}, &all);
  assert_close(&host, &all);
  tfc_graph_release(m.graph);
}

// Pictures with channels last that the graph transposes before its first layer are read as they are.
static void what_the_graph_transposes_is_read_before(void **state) {
  (void)state;
  static struct outcome host, all, last;
  struct net nets[2] = {{.fetch_count = 1, .inside = 1}, {.fetch_count = 1, .inside = 1}};
  for (int layout = 0; layout < 2; layout++) {
    struct net *m = &nets[layout];
    first = layout;
    assert_ok(tfc_builder_create(NULL, &b));
    for (int i = 0; i < FEEDS; i++) m->shapes[i] = TFC_SHAPE(1);
    m->shapes[X] = TFC_SHAPE(BATCH, HEIGHT, WIDTH, CHANNELS);
    m->shapes[W1] = TFC_SHAPE(3, 3, CHANNELS, 4);
    m->shapes[W2] = TFC_SHAPE(3, 3, 4, 6);
    for (int i = 0; i < FEEDS; i++) m->feeds[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &m->shapes[i]);
    struct tfc_output x = m->feeds[X];
    if (first) x = tfc_add2(b, "Transpose", x, tfc_add_i32_vector(b, (int32_t[]){0, 3, 1, 2}, 4));
    x = tfc_add1(b, "Relu", conv(x, m->feeds[W1], 1, 1, "SAME"));
    m->fetches[0] = conv(x, m->feeds[W2], 1, 1, "SAME");
    assert_ok(tfc_builder_finish(b, &m->graph));
    tfc_builder_free(b);
  }
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  run(&nets[1], false, &(struct how){.devices = "cpu:0"}, &host);
  run(&nets[1], false, &(struct how){.devices = "gpu:0", .all = true}, &all);
  run(&nets[0], false, &(struct how){.devices = "gpu:0", .all = true}, &last);
  assert_close(&host, &all);
  assert_int_equal(all.works, last.works + 1); // the result
  for (int layout = 0; layout < 2; layout++) tfc_graph_release(nets[layout].graph);
}

// Chains end where the device changes.
static void chains_on_several_devices(void **state) {
  (void)state;
  static struct outcome host, all;
  struct net m;
  build(true, true, false, &m);
  uint16_t *placement = calloc(m.graph->node_count, sizeof *placement);
  assert_non_null(placement);
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 2});
  run(&m, true, &(struct how){.devices = "cpu:0"}, &host);
  for (uint32_t seed = 1; seed <= 6; seed++) {
    uint32_t random = seed * 2654435761u;
    for (uint32_t i = 0; i < m.graph->node_count; i++) {
      random = random * 1664525 + 1013904223;
      placement[i] = (uint16_t)(seed == 1 ? i * 2 > m.graph->node_count : random >> 31);
    }
    run(&m, true, &(struct how){.devices = "gpu:0-1", .all = true, .placement = placement}, &all);
    assert_close(&host, &all);
    assert_int_equal(tfc_cuda_fake_violations(), 0);
  }
  free(placement);
  tfc_graph_release(m.graph);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_keeps_channels_last),       cmocka_unit_test(a_chain_keeps_channels_first),
      cmocka_unit_test(a_chain_that_gains_nothing_stays),  cmocka_unit_test(random_numbers_stay_where_they_are),
      cmocka_unit_test(other_shapes_are_read_as_they_are), cmocka_unit_test(what_the_graph_transposes_is_read_before),
      cmocka_unit_test(chains_on_several_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
