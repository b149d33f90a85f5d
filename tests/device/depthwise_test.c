// Tests depthwise convolutions of the CPU device and their gradients: against the reference kernels, over random
// geometries; lines by each instruction set against a plain sum; and several cores against one.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/instructions.h"
#include "runtime/base/random.h"
#include "runtime/device/cpu/depthwise/lines.h"
#include "runtime/exec/session.h"
#include "tests/common/fast.h"

static int64_t between(struct tfc_random *r, int64_t low, int64_t high) {
  return low + (int64_t)tfc_random_below(r, (uint64_t)(high - low + 1));
}

static struct tfc_attr ints(const char *name, const int64_t *values, uint32_t count) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_LIST_INT, .ints = values, .count = count};
}

enum padding { SAME, VALID, EXPLICIT };
struct geometry {
  int64_t batch, in[2], size[2], stride[2], dilation[2], paddings[8], channels, multiplier;
  enum padding padding;
  tfc_dtype dtype;
  bool groups; // use a Conv2D with one group for each channel
};

static int64_t positions(const struct geometry *g, int k) {
  const int64_t reach = (g->size[k] - 1) * g->dilation[k] + 1, *pad = g->paddings + 2 + 2 * k;
  if (g->padding == SAME) return (g->in[k] + g->stride[k] - 1) / g->stride[k];
  return (g->in[k] + (g->padding == EXPLICIT ? pad[0] + pad[1] : 0) - reach) / g->stride[k] + 1;
}

static struct geometry draw(struct tfc_random *r, int round) {
  struct geometry g = {.batch = between(r, 1, 3), .dtype = round % 3 == 2 ? TFC_DOUBLE : TFC_FLOAT};
  g.channels = tfc_random_below(r, 3) ? between(r, 1, 40) : 16 * between(r, 1, 9);
  g.multiplier = tfc_random_below(r, 3) ? 1 : between(r, 2, 5);
  g.padding = (enum padding)tfc_random_below(r, 3);
  for (int k = 0; k < 2; k++) {
    g.size[k] = tfc_random_below(r, 3) ? between(r, 1, 3) : between(r, 1, 7);
    g.stride[k] = tfc_random_below(r, 2) ? 1 : between(r, 1, 4);
    g.dilation[k] = tfc_random_below(r, 3) ? 1 : between(r, 1, 3);
    if (g.padding == EXPLICIT) g.paddings[2 + 2 * k] = between(r, 0, 4), g.paddings[3 + 2 * k] = between(r, 0, 4);
    const int64_t reach = (g.size[k] - 1) * g.dilation[k] + 1;
    g.in[k] = between(r, g.padding == SAME ? 1 : reach, reach + 14);
  }
  // TensorFlow allows neither different strides nor strides with dilations; the kernels here allow both.
  if (round % 16 == 5) g.batch = 0;
  if (round % 16 == 11) g.channels = 0;
  g.groups = round % 4 == 1 && round % 16 != 5;
  return g;
}

// Builds, from placeholders x, w and dy, the convolution of x with w and its gradients for x and for w. With `holes` a
// few elements of x and dy are NaN.
static void build(struct tfc_builder *b, const struct geometry *g, bool holes, struct tfc_output outputs[3]) {
  const int64_t k = g->channels * g->multiplier;
  const struct tfc_shape xs = TFC_SHAPE(g->batch, g->in[0], g->in[1], g->channels);
  const struct tfc_shape ws = g->groups ? TFC_SHAPE(g->size[0], g->size[1], 1, k)
                                        : TFC_SHAPE(g->size[0], g->size[1], g->channels, g->multiplier);
  struct tfc_output x = tfc_add_placeholder(b, "x", g->dtype, &xs), w = tfc_add_placeholder(b, "w", g->dtype, &ws);
  struct tfc_output dy =
      tfc_add_placeholder(b, "dy", g->dtype, &TFC_SHAPE(g->batch, positions(g, 0), positions(g, 1), k));
  if (holes) { // log(1 - 2 x^32) is near 0 for most elements, and NaN for those near -1 and 1
    struct tfc_output *of[] = {&x, &dy};
    for (int i = 0; i < 2; i++) {
      struct tfc_output y = tfc_add1(b, "Neg", *of[i]);
      for (int times = 0; times < 5; times++) y = tfc_add1(b, "Square", y);
      struct tfc_output half = tfc_add1(b, "Log1p", tfc_add1(b, "Neg", tfc_add2(b, "AddV2", y, y)));
      *of[i] = tfc_add2(b, "AddV2", *of[i], half);
    }
  }
  int64_t strides[] = {1, g->stride[0], g->stride[1], 1}, dilations[] = {1, g->dilation[0], g->dilation[1], 1};
  const char *padding = g->padding == SAME ? "SAME" : g->padding == VALID ? "VALID" : "EXPLICIT";
  struct tfc_attr attrs[] = {ints("strides", strides, 4), ints("dilations", dilations, 4),
                             tfc_attr_string("padding", tfc_str_from(padding)),
                             ints("explicit_paddings", g->paddings, 8)};
  const uint32_t n = g->padding == EXPLICIT ? 4 : 3;
  int32_t x_sizes[4], w_sizes[4];
  for (int i = 0; i < 4; i++) x_sizes[i] = (int32_t)xs.dims[i], w_sizes[i] = (int32_t)ws.dims[i];
  outputs[0] =
      tfc_add(b, g->groups ? "Conv2D" : "DepthwiseConv2dNative", NULL, (struct tfc_output[]){x, w}, 2, attrs, n);
  outputs[1] = tfc_add(b, g->groups ? "Conv2DBackpropInput" : "DepthwiseConv2dNativeBackpropInput", NULL,
                       (struct tfc_output[]){tfc_add_i32_vector(b, x_sizes, 4), w, dy}, 3, attrs, n);
  outputs[2] = tfc_add(b, g->groups ? "Conv2DBackpropFilter" : "DepthwiseConv2dNativeBackpropFilter", NULL,
                       (struct tfc_output[]){x, tfc_add_i32_vector(b, w_sizes, 4), dy}, 3, attrs, n);
}

static void show(const struct geometry *g, char *out, size_t size) {
  snprintf(
      out, size,
      "%s %s x %lldx%lldx%lldx%lld w %lldx%lldx%lld strides %lld %lld dilations %lld %lld padding %d (%lld %lld %lld "
      "%lld)",
      g->groups ? "groups" : "depthwise", g->dtype == TFC_FLOAT ? "float" : "double", (long long)g->batch,
      (long long)g->in[0], (long long)g->in[1], (long long)g->channels, (long long)g->size[0], (long long)g->size[1],
      (long long)g->multiplier, (long long)g->stride[0], (long long)g->stride[1], (long long)g->dilation[0],
      (long long)g->dilation[1], (int)g->padding, (long long)g->paddings[2], (long long)g->paddings[3],
      (long long)g->paddings[4], (long long)g->paddings[5]);
}

static void geometries(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 7);
  for (int round = 0; round < 192; round++) {
    struct geometry g = draw(&r, round);
    struct tfc_builder *b = NULL;
    struct tfc_output outputs[3];
    char what[256];
    show(&g, what, sizeof what);
    assert_ok(tfc_builder_create(NULL, &b));
    build(b, &g, round % 8 == 7, outputs);
    fast_compare(b, outputs, 3, g.dtype == TFC_FLOAT ? 1e-5 : 1e-13, what);
    tfc_builder_free(b);
  }
}

// --- Instruction sets --------------------------------------------------------------------------------------------
static double element(const void *p, int64_t i, bool single) {
  return single ? (double)((const float *)p)[i] : ((const double *)p)[i];
}
static void *numbers(struct tfc_random *r, int64_t n, bool single) {
  void *p = malloc((size_t)(n + 1) * sizeof(double));
  for (int64_t i = 0; i < n; i++) {
    const double v = 2 * tfc_random_unit(r) - 1;
    if (single)
      ((float *)p)[i] = (float)v;
    else
      ((double *)p)[i] = v;
  }
  return p;
}

static void lines_of(const struct tfc_depthwise_kernel *kernel, const char *name, uint64_t seed) {
  struct tfc_random r;
  tfc_random_init(&r, seed);
  for (int round = 0; round < 60; round++) {
    const bool single = round % 2;
    const struct tfc_depthwise_lines *lines = single ? &kernel->of_float : &kernel->of_double;
    const double tolerance = single ? 1e-5 : 1e-13;
    enum { CELLS = 23, POSITIONS = 19, CHANNELS = 70, STEPS = 3, LINES = 9 };
    const int64_t count = between(&r, 0, CELLS), n = between(&r, 1, POSITIONS), c = between(&r, 1, CHANNELS);
    const int64_t step = between(&r, 1, STEPS) * c, out_step = between(&r, 1, STEPS) * c;
    const struct tfc_depthwise_block block = {.lines = between(&r, 1, LINES),
                                              .positions = n,
                                              .in_step = step,
                                              .in_line = between(&r, 1, 2 * POSITIONS) * c,
                                              .out_step = out_step,
                                              .out_line = n * out_step + between(&r, 0, STEPS) * c};
    struct tfc_depthwise_cell cells[CELLS];
    for (int64_t q = 0; q < count; q++) {
      const int64_t first = tfc_random_below(&r, 2) ? 0 : between(&r, 0, n - 1);
      cells[q] = (struct tfc_depthwise_cell){
          .in = between(&r, 0, 5) * c, .filter = q * c, .first = first, .last = between(&r, first + 1, n)};
    }
    void *in = numbers(&r, 5 * c + n * step + c + block.lines * block.in_line, single),
         *w = numbers(&r, CELLS * c, single);
    void *dy = numbers(&r, n * c, single), *out = numbers(&r, block.lines * block.out_line, single),
         *sums = numbers(&r, CELLS * c, single);
    void *before = malloc((size_t)(CELLS * c) * sizeof(double));
    memcpy(before, sums, (size_t)(CELLS * c) * (single ? sizeof(float) : sizeof(double)));
    lines->lines(cells, count, &block, in, w, out, c);
    lines->filter(cells, count, in, step, dy, sums, c);
    for (int64_t at = 0; at < block.lines * n; at++)
      for (int64_t i = 0; i < c; i++) {
        const int64_t l = at / n, p = at % n;
        double want = 0;
        for (int64_t q = 0; q < count; q++)
          if (p >= cells[q].first && p < cells[q].last)
            want += element(in, cells[q].in + l * block.in_line + p * step + i, single) * element(w, q * c + i, single);
        if (!(fabs(element(out, l * block.out_line + p * out_step + i, single) - want) <= tolerance * CELLS))
          fail_msg("%s, round %d: line %lld, position %lld, channel %lld", name, round, (long long)l, (long long)p,
                   (long long)i);
      }
    for (int64_t q = 0; q < count; q++)
      for (int64_t i = 0; i < c; i++) {
        double want = element(before, q * c + i, single);
        for (int64_t p = cells[q].first; p < cells[q].last; p++)
          want += element(in, cells[q].in + p * step + i, single) * element(dy, p * c + i, single);
        if (!(fabs(element(sums, q * c + i, single) - want) <= tolerance * POSITIONS))
          fail_msg("%s, round %d: cell %lld, channel %lld", name, round, (long long)q, (long long)i);
      }
    free(in), free(w), free(dy), free(out), free(sums), free(before);
  }
}

static void instruction_sets(void **state) {
  (void)state;
  lines_of(&tfc_depthwise_generic, "generic", 1);
#if defined(__x86_64__)
  if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX2)) lines_of(&tfc_depthwise_avx2, "avx2", 2);
  if (tfc_instructions_allowed(TFC_INSTRUCTIONS_AVX512)) lines_of(&tfc_depthwise_avx512, "avx512", 3);
#endif
}

// --- Cores -------------------------------------------------------------------------------------------------------
static void run_on(const char *list, const struct geometry *g, struct tfc_tensor got[3]) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *graph = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_output outputs[3], feeds[3];
  struct tfc_tensor values[3] = {0};
  struct tfc_shape shapes[3];
  struct tfc_random r;
  tfc_random_init(&r, 5);
  assert_ok(tfc_builder_create(NULL, &b));
  build(b, g, false, outputs);
  assert_ok(tfc_builder_finish(b, &graph));
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t node = tfc_graph_find(graph, tfc_str_from(i == 0 ? "x" : i == 1 ? "w" : "dy"));
    feeds[i] = (struct tfc_output){node, 0}, shapes[i] = *tfc_node_attr(graph, &graph->nodes[node], "shape")->shape;
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[i], &values[i]));
    for (int64_t k = 0; k < tfc_tensor_elements(&values[i]); k++)
      ((float *)values[i].data)[k] = (float)tfc_random_unit(&r);
  }
  assert_ok(tfc_devices_open(list, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 3, .feed_shapes = shapes, .fetches = outputs, .fetch_count = 3};
  assert_ok(tfc_session_run(session, &spec, values, got, NULL));
  for (int i = 0; i < 3; i++) tfc_tensor_release(&values[i]);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(graph);
  tfc_builder_free(b);
}

static void cores_do_not_change_bits(void **state) {
  (void)state;
  struct geometry all[] = {{.batch = 3,
                            .in = {19, 40},
                            .size = {3, 3},
                            .stride = {1, 1},
                            .dilation = {1, 1},
                            .channels = 88,
                            .multiplier = 1},
                           {.batch = 2,
                            .in = {17, 31},
                            .size = {5, 5},
                            .stride = {2, 2},
                            .dilation = {1, 1},
                            .channels = 37,
                            .multiplier = 2}};
  for (int i = 0; i < 2; i++) {
    struct tfc_tensor one[3] = {0}, several[3] = {0};
    all[i].dtype = TFC_FLOAT;
    run_on("cpu:0", &all[i], one);
    run_on("cpu:0-2", &all[i], several);
    for (int k = 0; k < 3; k++) {
      assert_memory_equal(one[k].data, several[k].data, one[k].size);
      tfc_tensor_release(&one[k]), tfc_tensor_release(&several[k]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(geometries), cmocka_unit_test(instruction_sets),
                                     cmocka_unit_test(cores_do_not_change_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
