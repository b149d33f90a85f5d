// Tests chains of element-wise operations in one kernel, and several optimizer updates in one launch, on the CUDA
// driver with its kernels: they give the same bits as one launch for each operation, with fewer launches.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/common/example.h"
#include "tests/cuda_kernels/streams.h"

enum { BATCH = 3, TIME = 5, MOST = BATCH * TIME * 64, STEPS = 5 }; // the first steps are not captured
struct inputs { // `whole` is [batch, time, width]; the others broadcast to it
  struct tfc_output whole, row, column, scalar, each;
};

static struct tfc_output one(struct tfc_builder *b, const char *op, struct tfc_output x) {
  return tfc_add1(b, op, x);
}
static struct tfc_output two(struct tfc_builder *b, const char *op, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(b, op, x, y);
}

// Uses every op that can be in a chain, with operands of every kind of broadcast; the values stay small.
static struct tfc_output all_steps(struct tfc_builder *b, const struct inputs *in) {
  static const char *const unary[] = {"Neg",     "Abs",   "Square", "Sign",  "Floor",    "Ceil",
                                      "Rint",    "Round", "Relu",   "Relu6", "Expm1",    "Tanh",
                                      "Sigmoid", "Erf",   "Elu",    "Selu",  "Softplus", "Softsign"};
  static const char *const positive[] = {"Sqrt", "Rsqrt", "Reciprocal", "Inv", "Log", "Log1p"};
  static const char *const binary[] = {"Add",      "AddV2",        "Sub",          "Mul",       "Maximum",
                                       "Minimum",  "DivNoNan",     "MulNoNan",     "TanhGrad",  "SigmoidGrad",
                                       "SqrtGrad", "RsqrtGrad",    "ReluGrad",     "Relu6Grad", "EluGrad",
                                       "SeluGrad", "SoftplusGrad", "SoftsignGrad", "InvGrad",   "ReciprocalGrad"};
  struct tfc_output x = two(b, "BiasAdd", in->whole, in->row);
  struct tfc_output y = two(b, "SquaredDifference", two(b, "Mul", in->whole, in->column), in->each);
  const struct tfc_output size = one(b, "Exp", two(b, "Mul", in->whole, in->scalar));
  for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
    y = two(b, "AddV2", one(b, unary[i], y), two(b, "Mul", x, in->scalar));
  for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
    y = two(b, "Sub", one(b, positive[i], two(b, "AddV2", one(b, "Square", y), size)), in->each);
  for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
    y = one(b, "Tanh", two(b, binary[i], y, two(b, "AddV2", size, x)));
  return two(b, "RealDiv", two(b, "Div", y, size), two(b, "AddV2", size, in->row));
}

static struct tfc_output placeholder(struct tfc_builder *b, const char *name, struct tfc_shape shape) {
  return tfc_add_placeholder(b, name, TFC_FLOAT, &shape);
}

struct outcome {
  float y[MOST], between[MOST];
  uint32_t ops;
  uint64_t works; // pieces of GPU work in the last step
};

static void run(const char *devices, bool no_rewrites, int64_t width, struct outcome *out) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[5] = {{0}};
  assert_ok(tfc_builder_create(NULL, &b));
  const struct inputs in = {
      placeholder(b, "whole", TFC_SHAPE(BATCH, TIME, width)), placeholder(b, "row", TFC_SHAPE(width)),
      placeholder(b, "column", TFC_SHAPE(BATCH, TIME, 1)), placeholder(b, "scalar", (struct tfc_shape){.rank = 0}),
      placeholder(b, "each", TFC_SHAPE(BATCH, 1, width))};
  const struct tfc_output feeds[5] = {in.whole, in.row, in.column, in.scalar, in.each};
  struct tfc_output fetches[2] = {all_steps(b, &in)};
  // The chain continues after a tensor that is fetched.
  fetches[1] = one(b, "Sigmoid", two(b, "Mul", fetches[0], in.each));
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  const struct tfc_shape shapes[5] = {TFC_SHAPE(BATCH, TIME, width),
                                      TFC_SHAPE(width),
                                      TFC_SHAPE(BATCH, TIME, 1),
                                      {.rank = 0},
                                      TFC_SHAPE(BATCH, 1, width)};
  for (int k = 0; k < 5; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++)
      ((float *)values[k].data)[i] = (float)((i + k) * 37 % 101 - 50) * 0.019f + 0.31f;
  }
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 5, .feed_shapes = shapes, .fetches = fetches, .fetch_count = 2};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  out->ops = tfc_plan_info(plan)->op_count;
  for (int i = 0; i < STEPS; i++) {
    struct tfc_tensor got[2] = {{0}};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    tfc_cuda_fake_idle();
    out->works = tfc_cuda_fake_works() - before;
    memcpy(out->y, got[1].data, got[1].size);
    memcpy(out->between, got[0].data, got[0].size);
    for (int k = 0; k < 2; k++) tfc_tensor_release(&got[k]);
  }
  for (int k = 0; k < 5; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

static void same_bits_in_fewer_launches(void **state) {
  (void)state;
  static struct outcome apart, fused, host;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (int64_t width = 61; width <= 64; width += 3) { // the kernel takes elements one by one, or four at a time
    const size_t n = (size_t)(BATCH * TIME * width);
    run("gpu:0", true, width, &apart);
    run("gpu:0", false, width, &fused);
    run("cpu:0", true, width, &host);
    print_message("width %d: %u operations and %llu launches, fused %u and %llu\n", (int)width, apart.ops,
                  (unsigned long long)apart.works, fused.ops, (unsigned long long)fused.works);
    assert_true(apart.ops > 100 && fused.ops < 30);
    assert_true(apart.works > 100 && fused.works < 40);
    assert_memory_equal(apart.y, fused.y, n * sizeof(float));
    assert_memory_equal(apart.between, fused.between, n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
      assert_true(isfinite(fused.y[i]));
      assert_true(fabsf(fused.y[i] - host.y[i]) <= 1e-4f);
    }
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// One step of an LSTM cell and its gradient: the gates are split from one product with a bias, the gates' gradients are
// concatenated and multiplied by the weights, and two slices of that product are used. Some widths need another stride,
// and some slices begin at an offset that is not a multiple of four.
enum { ROWS = 6, DEPTH = 7 };
static uint32_t run_cell(bool no_rewrites, int64_t width, float *out, size_t *out_count) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[4] = {{0}}, got[3] = {{0}};
  const struct tfc_shape shapes[4] = {TFC_SHAPE(ROWS, DEPTH), TFC_SHAPE(DEPTH, 4 * width), TFC_SHAPE(4 * width),
                                      TFC_SHAPE(ROWS, width)};
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_output feeds[4] = {placeholder(b, "x", shapes[0]), placeholder(b, "w", shapes[1]),
                                      placeholder(b, "bias", shapes[2]), placeholder(b, "c", shapes[3])};
  const struct tfc_output sum = two(b, "BiasAdd", two(b, "MatMul", feeds[0], feeds[1]), feeds[2]);
  struct tfc_attr parts = tfc_attr_int("num_split", 4);
  const uint32_t split = tfc_add(b, "Split", NULL, (struct tfc_output[]){tfc_add_i32(b, 1), sum}, 2, &parts, 1).node;
  struct tfc_output gates[4], back[5];
  for (int i = 0; i < 4; i++) gates[i] = one(b, i == 1 ? "Tanh" : "Sigmoid", (struct tfc_output){split, i});
  const struct tfc_output c = two(b, "AddV2", two(b, "Mul", gates[0], gates[1]), two(b, "Mul", gates[2], feeds[3]));
  const struct tfc_output h = two(b, "Mul", one(b, "Tanh", c), gates[3]);
  for (int i = 0; i < 4; i++) back[i] = two(b, i == 1 ? "TanhGrad" : "SigmoidGrad", gates[i], two(b, "Mul", h, c));
  back[4] = tfc_add_i32(b, 1);
  const struct tfc_output together = tfc_add(b, "ConcatV2", NULL, back, 5, NULL, 0);
  struct tfc_attr transposed = tfc_attr_bool("transpose_b", true);
  const struct tfc_output dx =
      tfc_add(b, "MatMul", NULL, (struct tfc_output[]){together, feeds[1]}, 2, &transposed, 1); // [rows, depth]
  struct tfc_output ends[2];
  for (int i = 0; i < 2; i++)
    ends[i] = tfc_add(b, "Slice", NULL,
                      (struct tfc_output[]){dx, tfc_add_i32_vector(b, (int32_t[]){0, i ? 3 : 0}, 2),
                                            tfc_add_i32_vector(b, (int32_t[]){i ? ROWS : -1, i ? 3 : 3}, 2)},
                      3, NULL, 0);
  const struct tfc_output last = one(b, "Tanh", two(b, "Mul", one(b, "Neg", ends[0]), one(b, "Square", ends[1])));
  const struct tfc_output fetches[3] = {h, dx, last};
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  for (int k = 0; k < 4; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++)
      ((float *)values[k].data)[i] = (float)((i + 3 * k) * 37 % 101 - 50) * 0.013f;
  }
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 4, .feed_shapes = shapes, .fetches = fetches, .fetch_count = 3};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  const uint32_t ops = tfc_plan_info(plan)->op_count;
  for (uint32_t i = 0; getenv("VERBOSE") && i < ops; i++)
    print_message("  %.*s\n", TFC_STR_ARG(g->nodes[tfc_plan_info(plan)->ops[i].node].name));
  for (int i = 0; i < STEPS; i++) {
    *out_count = 0;
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    for (int k = 0; k < 3; k++) {
      memcpy(out + *out_count, got[k].data, got[k].size);
      *out_count += got[k].size / sizeof(float);
      tfc_tensor_release(&got[k]);
    }
  }
  for (int k = 0; k < 4; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return ops;
}

static void columns_are_read_and_written_where_they_are(void **state) {
  (void)state;
  static float apart[ROWS * 64], fused[ROWS * 64];
  size_t count = 0, same = 0;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (int64_t width = 5; width <= 8; width += 3) {
    const uint32_t many = run_cell(true, width, apart, &count), few = run_cell(false, width, fused, &same);
    print_message("width %d: %u operations, fused %u\n", (int)width, many, few);
    assert_int_equal(count, same);
    assert_memory_equal(apart, fused, count * sizeof(float));
    assert_true(many > 20);
    assert_int_equal(few, 4); // two products, the cell forward, its gradient with the operations after the slices
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// Trains an example: the losses are TensorFlow's, whether updates share a launch or not. Returns the pieces of GPU work
// in the last step.
static uint64_t train(const char *name, bool captures, bool all, float *losses) {
  struct example e = {0};
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec spec;
  uint64_t works = 0;
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  if (!captures) with.execution.captures = TFC_CAPTURES_OFF;
  if (all) with.execution.rewrites = TFC_REWRITES_ALL, with.execution.gpu_math = TFC_MATH_FLOAT32;
  assert_ok(tfc_session_create(e.graph, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  example_spec(&e, &spec);
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (uint32_t i = 0; i < STEPS; i++) {
    struct tfc_tensor loss = {0};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
    tfc_cuda_fake_idle();
    works = tfc_cuda_fake_works() - before;
    losses[i] = *(float *)loss.data;
    tfc_tensor_release(&loss);
    assert_true(fabs((double)losses[i] - e.losses[i]) <= 1e-4 * fabs(e.losses[i]));
  }
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  example_deinit(&e);
  return works;
}

static void updates_go_together(void **state) {
  (void)state;
  float exact[STEPS], losses[STEPS];
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  const uint64_t works = train("mlp", true, false, exact);
  assert_int_equal(train("mlp", false, false, losses), works); // captures do not change the number of pieces of work
  assert_memory_equal(losses, exact, sizeof exact);
  for (int captures = 0; captures < 2; captures++) { // six updates share one launch
    const uint64_t fewer = train("mlp", captures, true, losses);
    print_message("mlp: %llu launches a step, %llu with all rewrites\n", (unsigned long long)works,
                  (unsigned long long)fewer);
    assert_int_equal(fewer, works - 8); // and three products add their biases
    assert_memory_equal(losses, exact, sizeof exact);
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits_in_fewer_launches),
                                     cmocka_unit_test(columns_are_read_and_written_where_they_are),
                                     cmocka_unit_test(updates_go_together)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
