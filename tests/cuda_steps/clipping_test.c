// What training does to every gradient and every activation takes few launches, on the CUDA driver with its kernels,
// and gives the same bits as one launch for each operation: norms (runtime/exec/rewrites/squares.c), clipping
// (scaled.c) and dropout (masks.c).
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/cuda_kernels/streams.h"

enum { VARIABLES = 8, STEPS = 4, FETCHES = 2, MOST = 160000 };
enum { APART, EXACT, ALL };

// --- Clipping by a global norm, and a decay of some variables --------------------------------------------------------
static const struct tfc_shape shapes[VARIABLES] = {{.rank = 1, .dims = {1}},      {.rank = 1, .dims = {7}},
                                                   {.rank = 2, .dims = {64, 64}}, {.rank = 2, .dims = {300, 123}},
                                                   {.rank = 2, .dims = {3, 5}},   {.rank = 2, .dims = {2, 0}},
                                                   {.rank = 1, .dims = {4097}},   {.rank = 1, .dims = {2}}};

struct training {
  struct tfc_graph *graph;
  struct tfc_output feeds[VARIABLES], fetches[FETCHES], values[2 * VARIABLES];
  uint32_t inits[2 * VARIABLES], updates[VARIABLES];
};

static uint32_t node(struct tfc_builder *b, const char *op, const struct tfc_output *inputs, uint32_t count) {
  return tfc_builder_add(b, &(struct tfc_node_spec){.op = op, .inputs = inputs, .input_count = count});
}

static struct tfc_output filled(struct tfc_builder *b, const struct tfc_shape *shape, float value) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, shape, &t));
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++) ((float *)t.data)[i] = value + 0.01f * (float)(i % 13);
  struct tfc_output o = tfc_add_const(b, "", &t);
  tfc_tensor_release(&t);
  return o;
}

// Adds a variable, by reference or by handle. *value: what reads it.
static struct tfc_output variable(struct tfc_builder *b, int i, float first, uint32_t *init, struct tfc_output *value) {
  const struct tfc_attr attrs[2] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &shapes[i])};
  const struct tfc_output v = tfc_add(b, i % 2 ? "VarHandleOp" : "VariableV2", NULL, NULL, 0, attrs, 2);
  *init = node(b, i % 2 ? "AssignVariableOp" : "Assign", (struct tfc_output[]){v, filled(b, &shapes[i], first)}, 2);
  *value = v;
  if (i % 2) *value = tfc_add(b, "ReadVariableOp", NULL, &v, 1, attrs, 1);
  return v;
}

static void build_training(struct training *t) {
  struct tfc_builder *b = NULL;
  struct tfc_output squares[VARIABLES], gradients[VARIABLES], decays[3];
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_output clip = tfc_add_scalar(b, TFC_FLOAT, 0.37), rate = tfc_add_scalar(b, TFC_FLOAT, 0.1);
  for (int i = 0; i < VARIABLES; i++) {
    t->feeds[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &shapes[i]);
    gradients[i] = tfc_add1(b, "Tanh", t->feeds[i]);
    squares[i] = tfc_add1(b, "L2Loss", gradients[i]);
  }
  const struct tfc_output sum = tfc_add2(b, "Sum", tfc_add(b, "Pack", NULL, squares, VARIABLES, NULL, 0),
                                         tfc_add_i32_vector(b, (int32_t[]){0}, 1));
  const struct tfc_output norm = tfc_add1(b, "Sqrt", tfc_add2(b, "Mul", sum, tfc_add_scalar(b, TFC_FLOAT, 2)));
  const struct tfc_output scale = tfc_add2(
      b, "Mul", clip, tfc_add2(b, "Minimum", tfc_add1(b, "Reciprocal", norm), tfc_add1(b, "Reciprocal", clip)));
  for (int i = 0; i < VARIABLES; i++) {
    struct tfc_output slot, unread;
    const bool handle = i % 2;
    const struct tfc_output var = variable(b, i, 0.5f, &t->inits[2 * i], &t->values[2 * i]);
    slot = variable(b, i, 0.125f, &t->inits[2 * i + 1], &t->values[2 * i + 1]);
    unread = i % 3 ? tfc_add2(b, "Mul", gradients[i], scale) : tfc_add2(b, "Mul", scale, gradients[i]);
    if (i == 3) t->fetches[0] = unread; // it is read by the caller, too, so it has to be computed
    if (i < 3) decays[i] = tfc_add1(b, "L2Loss", t->values[2 * i]);
    const struct tfc_output momentum[5] = {var, slot, rate, unread, clip}, descent[3] = {var, rate, unread};
    t->updates[i] = i == 4 ? node(b, "ApplyGradientDescent", descent, 3)
                           : node(b, handle ? "ResourceApplyMomentum" : "ApplyMomentum", momentum, 5);
  }
  t->fetches[1] = tfc_add(b, "AddN", NULL, decays, 3, NULL, 0);
  for (int i = 0; i < VARIABLES; i++) tfc_builder_add_control(b, t->updates[i], t->fetches[1].node);
  assert_ok(tfc_builder_finish(b, &t->graph));
  tfc_builder_free(b);
}

struct outcome {
  float values[MOST];
  size_t count;
  uint64_t works; // pieces of GPU work in the last step
};

static void keep(struct outcome *out, struct tfc_tensor *t) {
  const size_t count = t->size / sizeof(float);
  assert_true(out->count + count <= MOST);
  if (count) memcpy(out->values + out->count, t->data, t->size);
  out->count += count;
  tfc_tensor_release(t);
}

static struct tfc_session_options how(const struct tfc_device_set *set, int rewrites) {
  struct tfc_session_options with = {.devices = set, .no_rewrites = rewrites == APART};
  if (rewrites == ALL) with.execution.rewrites = TFC_REWRITES_ALL, with.execution.gpu_math = TFC_MATH_FLOAT32;
  return with;
}

static void train(const struct training *t, const char *devices, int rewrites, bool captures, struct outcome *out) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor feeds[VARIABLES] = {0}, got[FETCHES] = {0}, read[2 * VARIABLES] = {0};
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  struct tfc_session_options with = how(&set, rewrites);
  if (!captures) with.execution.captures = TFC_CAPTURES_OFF;
  assert_ok(tfc_session_create(t->graph, &with, &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = t->inits, .target_count = 2 * VARIABLES}, NULL,
                            NULL, NULL));
  for (int i = 0; i < VARIABLES; i++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[i], &feeds[i]));
    for (int64_t k = 0; k < tfc_tensor_elements(&feeds[i]); k++)
      ((float *)feeds[i].data)[k] = (float)((k + 3 * i) * 37 % 101 - 50) * 0.019f;
  }
  const struct tfc_run_spec spec = {.feeds = t->feeds,
                                    .feed_count = VARIABLES,
                                    .feed_shapes = shapes,
                                    .fetches = t->fetches,
                                    .fetch_count = FETCHES,
                                    .targets = t->updates,
                                    .target_count = VARIABLES};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  out->count = 0;
  for (int step = 0; step < STEPS; step++) {
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, feeds, got, NULL));
    tfc_cuda_fake_idle();
    out->works = tfc_cuda_fake_works() - before;
    for (int i = 0; i < FETCHES && step + 1 == STEPS; i++) keep(out, &got[i]);
    for (int i = 0; i < FETCHES; i++) tfc_tensor_release(&got[i]);
  }
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.fetches = t->values, .fetch_count = 2 * VARIABLES}, NULL,
                            read, NULL));
  for (int i = 0; i < 2 * VARIABLES; i++) {
    if (i == 9)
      tfc_tensor_release(&read[i]); // the slot that no update has
    else
      keep(out, &read[i]);
  }
  for (int i = 0; i < VARIABLES; i++) tfc_tensor_release(&feeds[i]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
}

static void gradients_are_clipped_in_few_launches(void **state) {
  (void)state;
  static struct outcome apart, exact, all, host;
  struct training t = {0};
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  build_training(&t);
  train(&t, "gpu:0", APART, true, &apart);
  train(&t, "cpu:0", APART, true, &host);
  for (int captures = 0; captures < 2; captures++) {
    train(&t, "gpu:0", EXACT, captures, &exact);
    train(&t, "gpu:0", ALL, captures, &all);
    print_message("%llu launches and copies, %llu with exact rewrites, %llu with all\n",
                  (unsigned long long)apart.works, (unsigned long long)exact.works, (unsigned long long)all.works);
    // Two launches for eight norms, one for three; seven of eight gradients need no launch to be scaled. With all
    // rewrites the updates by one rule go together.
    assert_int_equal(exact.works, apart.works - 15);
    assert_true(all.works < exact.works);
    assert_int_equal(apart.count, exact.count);
    assert_memory_equal(apart.values, exact.values, apart.count * sizeof(float));
    assert_memory_equal(apart.values, all.values, apart.count * sizeof(float));
  }
  for (size_t i = 0; i < host.count; i++)
    assert_true(fabsf(host.values[i] - apart.values[i]) <= 1e-5f * (1 + fabsf(host.values[i])));
  tfc_graph_release(t.graph);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// --- Dropout ---------------------------------------------------------------------------------------------------------
enum { ROWS = 6, WIDTH = 12 };
enum form { ZEROS, ONES, MASK_IS_READ, FORMS }; // what is chosen where the mask is false; the mask is fetched, too

static uint32_t drop(enum form form, const char *devices, int rewrites, struct outcome *out) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  const struct tfc_shape sizes[3] = {TFC_SHAPE(ROWS, WIDTH), TFC_SHAPE(ROWS, WIDTH), TFC_SHAPE(WIDTH, WIDTH)};
  struct tfc_tensor values[3] = {{0}}, got[3] = {{0}};
  struct tfc_output feeds[3];
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < 3; i++) feeds[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &sizes[i]);
  const struct tfc_output x = tfc_add1(b, "Neg", feeds[0]), draw = tfc_add1(b, "Abs", feeds[1]);
  const struct tfc_output grown = tfc_add_scalar(b, TFC_FLOAT, 1 / 0.75);
  const struct tfc_output mask = tfc_add2(b, "GreaterEqual", draw, tfc_add_scalar(b, TFC_FLOAT, 0.25));
  const struct tfc_output other = tfc_add_scalar(b, TFC_FLOAT, form == ONES);
  const struct tfc_output y = tfc_add1(b, "Tanh", tfc_add3(b, "SelectV2", mask, tfc_add2(b, "Mul", x, grown), other));
  const struct tfc_output z = tfc_add2(b, "MatMul", y, feeds[2]);
  const struct tfc_output back = tfc_add3(b, "SelectV2", mask, tfc_add2(b, "TanhGrad", y, z), other);
  const struct tfc_output fetches[3] = {z, tfc_add2(b, "Mul", back, grown), mask};
  const uint32_t fetch_count = form == MASK_IS_READ ? 3 : 2;
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  const struct tfc_session_options with = how(&set, rewrites);
  assert_ok(tfc_session_create(g, &with, &session));
  for (int k = 0; k < 3; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &sizes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++)
      ((float *)values[k].data)[i] = (float)((i + 3 * k) * 37 % 101 - 50) * 0.013f;
  }
  ((float *)values[1].data)[3] = NAN; // is not at least anything
  ((float *)values[1].data)[4] = 0;
  ((float *)values[0].data)[4] = INFINITY; // is not kept, and 0 times it would be NaN
  ((float *)values[1].data)[5] = 0.25f;
  const struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 3, .feed_shapes = sizes, .fetches = fetches, .fetch_count = fetch_count};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  const uint32_t ops = tfc_plan_info(plan)->op_count;
  for (int i = 0; i < STEPS; i++) {
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    out->count = 0;
    for (int k = 0; k < 2; k++) keep(out, &got[k]);
    if (fetch_count == 3) {
      for (int64_t e = 0; e < ROWS * WIDTH; e++) out->values[out->count++] = ((const bool *)got[2].data)[e];
      tfc_tensor_release(&got[2]);
    }
  }
  for (int k = 0; k < 3; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return ops;
}

static void dropout_is_part_of_chains(void **state) {
  (void)state;
  static struct outcome apart, fused, host;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (enum form form = 0; form < FORMS; form++) {
    const uint32_t many = drop(form, "gpu:0", APART, &apart), few = drop(form, "gpu:0", EXACT, &fused);
    drop(form, "cpu:0", APART, &host);
    print_message("%u operations, %u with rewrites\n", many, few);
    assert_int_equal(apart.count, fused.count);
    assert_memory_equal(apart.values, fused.values, apart.count * sizeof(float));
    for (size_t i = 0; i < host.count; i++) assert_true(fabsf(host.values[i] - fused.values[i]) <= 1e-5f);
    if (form == ZEROS) assert_int_equal(few, 3); // a chain, the product, a chain
    assert_true(form == ZEROS || few > 3);
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_clipped_in_few_launches),
                                     cmocka_unit_test(dropout_is_part_of_chains)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
