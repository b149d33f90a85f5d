// Convolutions whose filter was transposed before, through the plug-in's own code that calls cuDNN, on a fake of it,
// and by the plain loops: the same bits in every form of the filter, and no launch for one that cuDNN can read as it
// is.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernels/conv.h"
#include "runtime/graph/builder.h"
#include "tests/cuda_kernels/host.h"

enum {
  BATCH = 2,
  HEIGHT = 5,
  WIDTH = 4,
  IN = 3,
  OUT = 4,
  FORMS = TFC_FILTER_CHANNELS_FIRST + 1,
  ROWS = 3,
  MOST = 1024
};
static const struct tfc_shape image = {.rank = 4, .dims = {BATCH, HEIGHT, WIDTH, IN}},
                              filter = {.rank = 4, .dims = {3, 2, IN, OUT}},
                              result = {.rank = 4, .dims = {BATCH, HEIGHT, WIDTH, OUT}};

static struct tfc_tensor numbers(const struct tfc_shape *shape, int step) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++) ((float *)t.data)[i] = (float)((i * step) % 23 - 11) * 0.125f;
  return t;
}
static struct tfc_tensor in_form(tfc_filter_form form) {
  struct tfc_tensor from = numbers(&filter, 7), to = numbers(&filter, 1);
  tfc_filter_transpose(form, &filter, sizeof(float), from.data, to.data);
  tfc_tensor_release(&from);
  return to;
}

// --- Which order a form is ------------------------------------------------------------------------------------------
static void what_forms_are(void **state) {
  (void)state;
  struct tfc_tensor all[FORMS];
  for (int f = 0; f < FORMS; f++) all[f] = in_form((tfc_filter_form)f);
  for (int cell = 0; cell < 3 * 2; cell++)
    for (int in = 0; in < IN; in++)
      for (int out = 0; out < OUT; out++) {
        const float want = ((const float *)all[TFC_FILTER_OF_GRAPH].data)[(cell * IN + in) * OUT + out];
        assert_true(((const float *)all[TFC_FILTER_CHANNELS_LAST].data)[(out * 6 + cell) * IN + in] == want);
        assert_true(((const float *)all[TFC_FILTER_CHANNELS_FIRST].data)[(out * IN + in) * 6 + cell] == want);
      }
  for (int f = 0; f < FORMS; f++) tfc_tensor_release(&all[f]);
}

// --- Rows -----------------------------------------------------------------------------------------------------------
static const struct tfc_cuda_kernel *rows[ROWS];
static int row_count;
static void find_row(void *arg, const struct tfc_cuda_kernel *r) {
  if (!strcmp(r->op, arg) && row_count < ROWS) rows[row_count++] = r;
}
static uint32_t launches;
static int count(void *stream, void (*run)(void *argument), const void *argument, size_t size) {
  (void)stream, (void)size;
  launches++;
  run((void *)(uintptr_t)argument);
  return 0;
}
static tfc_status allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  (void)env;
  return tfc_buffer_create_host(bytes, out);
}

struct outcome {
  float values[MOST];
  uint32_t launches;
  tfc_filter_form wanted;
};
// Runs a row of a convolution, or of its gradient, whose filter has this form.
static void run(const struct tfc_graph *g, uint32_t node, const char *op, int row, bool gradient, tfc_filter_form form,
                struct outcome *out) {
  struct tfc_arena arena = {0};
  struct tfc_tensor x = numbers(&image, 5), w = in_form(form), dy = numbers(&result, 3), sizes = {0};
  assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE(4), &sizes));
  for (int i = 0; i < 4; i++) ((int32_t *)sizes.data)[i] = (int32_t)image.dims[i];
  const struct tfc_tensor *inputs[3] = {gradient ? &sizes : &x, &w, &dy},
                          *values[3] = {gradient ? &sizes : NULL, NULL, NULL};
  struct tfc_shape shapes[3];
  tfc_dtype types[3];
  for (int i = 0; i < 3; i++) shapes[i] = inputs[i]->shape, types[i] = inputs[i]->dtype;
  const struct tfc_segment_op made = {.prepared = true, .state = &form};
  struct tfc_prepare_ctx base = {.graph = g,
                                 .node = &g->nodes[node],
                                 .def = g->nodes[node].def,
                                 .input_shapes = shapes,
                                 .output_shapes = gradient ? &image : &result,
                                 .input_dtypes = types,
                                 .input_values = values,
                                 .arena = &arena};
  row_count = 0;
  cuda_host_each_row(find_row, (void *)(uintptr_t)op);
  assert_int_equal(row_count, ROWS);
  struct tfc_cuda_prepare prepare = {.base = &base,
                                     .op = &made,
                                     .library = cuda_host_library(),
                                     .host_inputs = gradient,
                                     .variant = tfc_cuda_variant(rows[row]->flags)};
  assert_ok(rows[row]->prepare(&prepare));
  out->wanted = prepare.filter_form;
  struct tfc_tensor y = numbers(gradient ? &image : &result, 1), *outputs[] = {&y};
  struct tfc_kernel_env env = {.allocate = allocate};
  struct tfc_kernel_ctx ctx = {.env = &env,
                               .graph = g,
                               .node = &g->nodes[node],
                               .inputs = inputs,
                               .outputs = outputs,
                               .input_count = gradient ? 3 : 2,
                               .output_count = 1,
                               .state = base.state};
  launches = 0;
  cuda_host_enqueue = count;
  assert_ok(cuda_host_launch(rows[row], &ctx, prepare.scratch));
  cuda_host_enqueue = NULL;
  out->launches = launches;
  memset(out->values, 0, sizeof out->values);
  memcpy(out->values, outputs[0]->data, outputs[0]->size);
  tfc_tensor_release(&x);
  tfc_tensor_release(&w);
  tfc_tensor_release(&dy);
  tfc_tensor_release(&sizes);
  tfc_tensor_release(&y);
  tfc_arena_deinit(&arena);
}

static void the_same_bits_in_every_form(void **state) {
  (void)state;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  static const int64_t ones[4] = {1, 1, 1, 1};
  const struct tfc_attr attrs[] = {{.name = TFC_STR("strides"), .kind = TFC_ATTR_LIST_INT, .ints = ones, .count = 4},
                                   tfc_attr_string("padding", TFC_STR("SAME"))};
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_output x = tfc_add_placeholder(b, "", TFC_FLOAT, &image),
                          w = tfc_add_placeholder(b, "", TFC_FLOAT, &filter),
                          dy = tfc_add_placeholder(b, "", TFC_FLOAT, &result),
                          sizes = tfc_add_i32_vector(b, (int32_t[]){BATCH, HEIGHT, WIDTH, IN}, 4);
  const uint32_t nodes[2] = {
      tfc_add(b, "Conv2D", NULL, (struct tfc_output[]){x, w}, 2, attrs, 2).node,
      tfc_add(b, "Conv2DBackpropInput", NULL, (struct tfc_output[]){sizes, w, dy}, 3, attrs, 2).node};
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  static const char *const plain[2] = {"Conv2D", "Conv2DBackpropInput"}, *const transposed[2] = {
                                                                             "_TransposedFilterConvolution",
                                                                             "_TransposedFilterConvolutionGradient"};
  for (int gradient = 0; gradient < 2; gradient++)
    for (int row = 0; row < ROWS; row++) {
      static struct outcome want, got;
      const uint32_t before = cuda_fake_convolutions;
      run(g, nodes[gradient], plain[gradient], row, gradient, TFC_FILTER_OF_GRAPH, &want);
      assert_int_equal(cuda_fake_convolutions - before, row == 0); // the others are plain loops
      assert_true((want.wanted == TFC_FILTER_OF_GRAPH) == (row != 0));
      for (int form = 0; form < FORMS; form++) {
        run(g, nodes[gradient], transposed[gradient], row, gradient, (tfc_filter_form)form, &got);
        assert_memory_equal(want.values, got.values, sizeof want.values);
        assert_int_equal(got.wanted, want.wanted);
        // Plain loops read the graph's form.
        const bool as_it_is = (tfc_filter_form)form == want.wanted, of_graph = form == TFC_FILTER_OF_GRAPH;
        assert_int_equal(got.launches + as_it_is, want.launches + (row != 0));
        assert_true(row == 0 || as_it_is == of_graph);
      }
    }
  tfc_graph_release(g);
}

// --- Layouts of images ----------------------------------------------------------------------------------------------
static struct tfc_cuda_layout layout(bool first, int64_t height, int64_t width, int64_t channels) {
  const int64_t step = first ? 1 : channels;
  return (struct tfc_cuda_layout){.size = {1, height, width},
                                  .stride = {height * width * step, width * step, step},
                                  .batch_stride = height * width * channels,
                                  .channel_stride = first ? height * width : 1};
}
// A convolution runs in the layout that is faster, whichever the graph has, and says what the other one would gain.
static void the_faster_layout_runs(void **state) {
  (void)state;
  for (int graph = 0; graph < 2; graph++)
    for (int faster = 0; faster < 2; faster++) {
      struct tfc_cuda_launch launch = {.library = cuda_host_library()};
      struct tfc_cuda_conv c;
      memset(&c, 0, sizeof c);
      c.role = TFC_CUDA_CONV_FORWARD, c.type = TFC_FLOAT, c.spatial = 2, c.channels_first = graph;
      const int64_t out = OUT + faster; // so that each case has a plan of its own
      c.slide = (struct tfc_cuda_slide){.batch = BATCH,
                                        .x = layout(graph, HEIGHT, WIDTH, IN),
                                        .y = layout(graph, HEIGHT - 2, WIDTH - 1, out),
                                        .size = {1, 3, 2},
                                        .step = {1, 1, 1},
                                        .dilation = {1, 1, 1},
                                        .channels = IN,
                                        .filters = out,
                                        .groups = 1};
      const struct tfc_cuda_conv_plan *plan = NULL;
      cuda_fake_slower_ms[faster] = 0, cuda_fake_slower_ms[!faster] = 10;
      assert_ok(tfc_cuda_conv_find(launch.library, &c, &plan));
      cuda_fake_slower_ms[0] = cuda_fake_slower_ms[1] = 0;
      assert_int_equal(tfc_cuda_conv_form(plan), faster ? TFC_FILTER_CHANNELS_FIRST : TFC_FILTER_CHANNELS_LAST);
      // Where the other layout than the graph's is faster, the two launches that convert images would be gained; where
      // it is slower, it is so by 10 ms.
      const double last = tfc_cuda_conv_channels_last_gain_us(plan), gain = graph ? last : -last;
      assert_true(graph == faster ? gain < -7000 : gain > 3.9 && gain < 4.2);
      const struct tfc_shape ys = TFC_SHAPE(BATCH, HEIGHT - 2, WIDTH - 1, out), ws = TFC_SHAPE(3, 2, IN, out);
      struct tfc_tensor x = numbers(&image, 5), w = numbers(&ws, 7), got = numbers(&ys, 1), want = numbers(&ys, 1);
      void *scratch = aligned_alloc(256, (tfc_cuda_conv_scratch(plan) + 255) / 256 * 256);
      assert_non_null(scratch);
      assert_ok(tfc_cuda_conv_run(&launch, plan, x.data, w.data, TFC_FILTER_OF_GRAPH, got.data, scratch));
      assert_int_equal(tfc_cuda_conv_forward(TFC_FLOAT, &c.slide, x.data, w.data, want.data, NULL), 0);
      for (int64_t i = 0; i < tfc_tensor_elements(&want); i++) // numbers that float32 holds exactly
        assert_true(((const float *)got.data)[i] == ((const float *)want.data)[i]);
      free(scratch);
      tfc_tensor_release(&x);
      tfc_tensor_release(&w);
      tfc_tensor_release(&got);
      tfc_tensor_release(&want);
    }
}

// What cuDNN's indices, which are ints, do not reach is declined before anything is asked of it.
static void too_large_is_declined(void **state) {
  (void)state;
  struct tfc_cuda_conv c;
  memset(&c, 0, sizeof c);
  c.type = TFC_FLOAT, c.spatial = 2;
  const int64_t side = (int64_t)1 << 16;
  c.slide = (struct tfc_cuda_slide){.batch = 1,
                                    .x = layout(false, side, side, 1),
                                    .y = layout(false, side, side, 1),
                                    .size = {1, 1, 1},
                                    .step = {1, 1, 1},
                                    .dilation = {1, 1, 1},
                                    .channels = 1,
                                    .filters = 1,
                                    .groups = 1};
  const struct tfc_cuda_conv_plan *plan = NULL;
  cuda_host_no_room = true; // nor is memory for measuring asked for
  tfc_status s = tfc_cuda_conv_find(cuda_host_library(), &c, &plan);
  cuda_host_no_room = false;
  assert_int_equal(tfc_status_code(s), TFC_UNIMPLEMENTED);
  assert_non_null(strstr(tfc_status_message(s), "indices"));
  tfc_status_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_forms_are), cmocka_unit_test(the_same_bits_in_every_form),
                                     cmocka_unit_test(the_faster_layout_runs), cmocka_unit_test(too_large_is_declined)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
