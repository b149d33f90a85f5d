// The products of unrolled recurrent cells are divided (runtime/exec/rewrites/cells.c), on the CUDA driver with its
// kernels: the same numbers but for rounding, forward and backward, in fewer launches.
#include "tests/common/test.h"

#include <math.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "runtime/pass/pass.h"
#include "tests/cuda_kernels/streams.h"

enum { STEPS = 6, BATCH = 3, INPUT = 5, HIDDEN = 4, RUNS = 4, MOST = 2048, FETCHES = 5 };

enum form {
  LSTM,     // two layers
  GRU,      // its candidate multiplies with another state than its gates
  SWAPPED,  // the state is in front of the input
  FEEDBACK, // a step's input depends on the step before: there is nothing to divide
  APART,    // the upper layer is on another device, whose steps do not wait for all steps of the lower one
  FORMS
};

static struct tfc_output multiply(struct tfc_builder *b, struct tfc_output x, struct tfc_output y) {
  const struct tfc_attr attrs[2] = {tfc_attr_bool("transpose_a", false), tfc_attr_bool("transpose_b", false)};
  return tfc_add(b, "MatMul", NULL, (struct tfc_output[]){x, y}, 2, attrs, 2);
}
static struct tfc_output join(struct tfc_builder *b, struct tfc_output x, struct tfc_output y) {
  return tfc_add(b, "ConcatV2", NULL, (struct tfc_output[]){x, y, tfc_add_i32(b, 1)}, 3, NULL, 0);
}
static struct tfc_output mul(struct tfc_builder *b, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(b, "Mul", x, y);
}
static struct tfc_output add(struct tfc_builder *b, struct tfc_output x, struct tfc_output y) {
  return tfc_add2(b, "AddV2", x, y);
}

struct cell {
  struct tfc_output weights, candidate, bias;
};

// Computes a step of a cell; *c is its memory, *h its state.
static void advance(struct tfc_builder *b, enum form form, const struct cell *cell, struct tfc_output x,
                    struct tfc_output *c, struct tfc_output *h) {
  const struct tfc_output both = form == SWAPPED ? join(b, *h, x) : join(b, x, *h);
  const struct tfc_attr parts = tfc_attr_int("num_split", 4);
  const struct tfc_output all = tfc_add2(b, "BiasAdd", multiply(b, both, cell->weights), cell->bias);
  const uint32_t split = tfc_add(b, "Split", NULL, (struct tfc_output[]){tfc_add_i32(b, 1), all}, 2, &parts, 1).node;
  struct tfc_output gates[4];
  for (int i = 0; i < 4; i++) gates[i] = tfc_add1(b, i == 1 ? "Tanh" : "Sigmoid", (struct tfc_output){split, i});
  if (form == GRU) {
    const struct tfc_output new = tfc_add1(b, "Tanh", multiply(b, join(b, x, mul(b, gates[0], *h)), cell->candidate));
    *h = add(b, *h, mul(b, gates[2], tfc_add2(b, "Sub", new, *h)));
    return;
  }
  *c = add(b, mul(b, gates[2], *c), mul(b, gates[0], gates[1]));
  *h = mul(b, tfc_add1(b, "Tanh", *c), gates[3]);
}

struct outcome {
  float values[MOST];
  size_t count;
  uint32_t ops;
  uint64_t works; // pieces of GPU work in the last step
};

static void run(enum form form, bool divided, struct outcome *out) {
  static const struct tfc_shape shapes[] = {
      {.rank = 2, .dims = {STEPS * BATCH, INPUT}},   {.rank = 2, .dims = {INPUT + HIDDEN, 4 * HIDDEN}},
      {.rank = 2, .dims = {2 * HIDDEN, 4 * HIDDEN}}, {.rank = 1, .dims = {4 * HIDDEN}},
      {.rank = 2, .dims = {INPUT + HIDDEN, HIDDEN}}, {.rank = 2, .dims = {2 * HIDDEN, HIDDEN}},
      {.rank = 2, .dims = {BATCH, HIDDEN}}};
  enum { FEEDS = sizeof shapes / sizeof *shapes, X = 0, LOWER, UPPER, BIAS, LOWER_CANDIDATE, UPPER_CANDIDATE, STATE };
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[FEEDS] = {{0}};
  struct tfc_output feeds[FEEDS], outputs[STEPS], fetches[FETCHES];
  uint16_t placement[4096] = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < FEEDS; i++) feeds[i] = tfc_add_placeholder(b, "", TFC_FLOAT, &shapes[i]);
  const struct tfc_attr steps = tfc_attr_int("num_split", STEPS);
  const struct tfc_output x = tfc_add1(b, "Tanh", feeds[X]);
  const uint32_t pieces = tfc_add(b, "Split", NULL, (struct tfc_output[]){tfc_add_i32(b, 0), x}, 2, &steps, 1).node;
  const struct cell cells[2] = {{feeds[LOWER], feeds[LOWER_CANDIDATE], feeds[BIAS]},
                                {feeds[UPPER], feeds[UPPER_CANDIDATE], feeds[BIAS]}};
  struct tfc_output c[2] = {feeds[STATE], feeds[STATE]}, h[2] = {feeds[STATE], feeds[STATE]};
  for (int t = 0; t < STEPS; t++) {
    struct tfc_output in = {pieces, t};
    if (form == FEEDBACK)
      in = tfc_add2(b, "Sub", in, tfc_add2(b, "Sum", h[1], tfc_add_i32_vector(b, (int32_t[]){0, 1}, 2)));
    advance(b, form, &cells[0], in, &c[0], &h[0]);
    const uint32_t first = tfc_builder_node_count(b);
    advance(b, form, &cells[1], h[0], &c[1], &h[1]);
    for (uint32_t i = first; form == APART && i < tfc_builder_node_count(b); i++) placement[i] = 1;
    outputs[t] = h[1];
  }
  fetches[0] = tfc_add(b, "AddN", NULL, outputs, STEPS, NULL, 0);
  const struct tfc_output loss = tfc_add1(b, "L2Loss", fetches[0]);
  const struct tfc_output of[4] = {feeds[LOWER], feeds[UPPER], feeds[BIAS], x};
  assert_ok(tfc_builder_gradients(b, &loss, 1, of, 4, NULL, fetches + 1));
  assert_true(tfc_builder_node_count(b) <= sizeof placement / sizeof *placement);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open(form == APART ? "gpu:0-1" : "gpu:0", NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  if (divided) with.execution.rewrites = TFC_REWRITES_ALL, with.execution.gpu_math = TFC_MATH_FLOAT32;
  assert_ok(tfc_session_create(g, &with, &session));
  for (int k = 0; k < FEEDS; k++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++)
      ((float *)values[k].data)[i] = (float)((i + 3 * k) * 37 % 101 - 50) * 0.013f;
  }
  const struct tfc_run_spec spec = {.feeds = feeds,
                                    .feed_count = FEEDS,
                                    .feed_shapes = shapes,
                                    .fetches = fetches,
                                    .fetch_count = FETCHES,
                                    .placement = placement};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  out->ops = tfc_plan_info(plan)->op_count;
  for (int i = 0; i < RUNS; i++) {
    struct tfc_tensor got[FETCHES] = {{0}};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    tfc_cuda_fake_idle();
    out->works = tfc_cuda_fake_works() - before;
    out->count = 0;
    for (int k = 0; k < FETCHES; k++) {
      assert_true(out->count + got[k].size / sizeof(float) <= MOST);
      memcpy(out->values + out->count, got[k].data, got[k].size);
      out->count += got[k].size / sizeof(float);
      tfc_tensor_release(&got[k]);
    }
  }
  for (int k = 0; k < FEEDS; k++) tfc_tensor_release(&values[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_builder_free(b);
}

static void cells_are_divided(void **state) {
  (void)state;
  static struct outcome whole, divided;
  static const uint64_t most[FORMS] = {87, 247, 87, 132, 139};
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 2});
  for (enum form form = LSTM; form < FORMS; form++) {
    run(form, false, &whole);
    run(form, true, &divided);
    print_message("form %d: %u operations and %llu launches, divided %u and %llu\n", (int)form, whole.ops,
                  (unsigned long long)whole.works, divided.ops, (unsigned long long)divided.works);
    assert_int_equal(whole.count, divided.count);
    for (size_t i = 0; i < whole.count; i++) {
      assert_true(isfinite(whole.values[i]));
      assert_true(fabsf(whole.values[i] - divided.values[i]) <= 1e-5f * (1 + fabsf(whole.values[i])));
    }
    assert_true(divided.works <= most[form]);
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(cells_are_divided)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
