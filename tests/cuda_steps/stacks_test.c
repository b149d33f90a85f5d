// What an unrolled loop repeats is computed for all steps at once (runtime/exec/rewrites/stacks.c), on the CUDA driver
// with its kernels: the same numbers but for rounding, in fewer launches.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/common/example.h"
#include "tests/cuda_kernels/streams.h"

enum { STEPS = 6, BATCH = 3, LENGTH = 5, WIDTH = 4, CLASSES = 7, RUNS = 4, MOST = 4096 };

// How the loop is written.
enum form {
  PLAIN,
  TRANSPOSED, // one step multiplies by the transposed matrix
  WAITS,      // one step's query depends on another step's answer
  WANTED,     // the logits of one step are fetched, too
  FORMS
};

static struct tfc_output product(struct tfc_builder *b, struct tfc_output x, struct tfc_output y, bool turn_x,
                                 bool turn_y) {
  const struct tfc_attr attrs[2] = {tfc_attr_bool("transpose_a", turn_x), tfc_attr_bool("transpose_b", turn_y)};
  return tfc_add(b, "MatMul", NULL, (struct tfc_output[]){x, y}, 2, attrs, 2);
}
static struct tfc_output sum(struct tfc_builder *b, struct tfc_output x, int32_t axis) {
  return tfc_add2(b, "Sum", x, tfc_add_i32_vector(b, &axis, 1));
}
static struct tfc_output shaped(struct tfc_builder *b, struct tfc_output x, int32_t d0, int32_t d1, int32_t d2) {
  return tfc_add2(b, "Reshape", x, tfc_add_i32_vector(b, (int32_t[]){d0, d1, d2}, 3));
}

// A recurrent cell whose states attend to keys, with an output layer, the gradients of that layer, and sums over steps.
enum { X, KEYS, CELL, QUERY, SCORE, OUTPUT, BIAS, LABELS, FEEDS };
static uint32_t build(struct tfc_builder *b, enum form form, const struct tfc_output *in, struct tfc_output *fetches) {
  struct tfc_output states[STEPS + 1] = {in[X]}, answers[STEPS], losses[STEPS], weights[STEPS], biases[STEPS];
  struct tfc_output backs[STEPS + 1], columns[STEPS + 1], logits[STEPS];
  const struct tfc_attr parts = tfc_attr_int("num", STEPS);
  const uint32_t labels = tfc_add(b, "Unpack", NULL, &in[LABELS], 1, &parts, 1).node;
  for (int t = 0; t < STEPS; t++) {
    struct tfc_output h =
        tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", product(b, states[t], in[CELL], false, false), in[X]));
    states[t + 1] = h;
    if (form == WAITS && t == 4) h = tfc_add2(b, "AddV2", h, answers[1]);
    const struct tfc_output q =
        shaped(b, product(b, h, in[QUERY], false, form == TRANSPOSED && t == 2), BATCH, 1, WIDTH);
    const struct tfc_output near = tfc_add1(b, "Tanh", tfc_add2(b, "AddV2", in[KEYS], q));
    const struct tfc_output scores = tfc_add1(b, "Softmax", sum(b, tfc_add2(b, "Mul", in[SCORE], near), 2));
    answers[t] = sum(b, tfc_add2(b, "Mul", shaped(b, scores, BATCH, LENGTH, 1), in[KEYS]), -2);
    const struct tfc_output both =
        tfc_add(b, "ConcatV2", NULL, (struct tfc_output[]){answers[t], h, tfc_add_i32(b, 1)}, 3, NULL, 0);
    logits[t] = tfc_add2(b, "BiasAdd", product(b, both, in[OUTPUT], false, false), in[BIAS]);
    losses[t] = tfc_add2(b, "SparseSoftmaxCrossEntropyWithLogits", logits[t], (struct tfc_output){labels, t});
    const struct tfc_output back = {losses[t].node, 1};
    weights[t] = product(b, both, back, true, false);
    biases[t] = tfc_add1(b, "BiasAddGrad", back);
    backs[t] = product(b, back, in[OUTPUT], false, true);
    columns[t] = tfc_add(b, "Slice", NULL,
                         (struct tfc_output[]){back, tfc_add_i32_vector(b, (int32_t[]){0, 2}, 2),
                                               tfc_add_i32_vector(b, (int32_t[]){BATCH, WIDTH}, 2)},
                         3, NULL, 0);
  }
  backs[STEPS] = tfc_add2(b, "Sub", backs[0], backs[STEPS - 1]); // two pieces are read one by one
  columns[STEPS] = states[STEPS];                                // another term of the sum
  fetches[0] = tfc_add(b, "AddN", NULL, losses, STEPS, NULL, 0);
  fetches[1] = tfc_add(b, "AddN", NULL, weights, STEPS, NULL, 0);
  fetches[2] = tfc_add(b, "AddN", NULL, biases, STEPS, NULL, 0);
  fetches[3] = tfc_add(b, "AddN", NULL, backs, STEPS + 1, NULL, 0);
  fetches[4] = tfc_add(b, "AddN", NULL, columns, STEPS + 1, NULL, 0);
  fetches[5] = logits[2];
  return form == WANTED ? 6 : 5;
}

struct outcome {
  float values[MOST];
  size_t count;
  uint32_t ops;
  uint64_t works; // pieces of GPU work in the last step
};

static void run(enum form form, bool together, struct outcome *out) {
  static const char *const names[] = {"x", "keys", "cell", "query", "score", "output", "bias", "labels"};
  const struct tfc_shape shapes[FEEDS] = {
      TFC_SHAPE(BATCH, WIDTH), TFC_SHAPE(BATCH, LENGTH, WIDTH), TFC_SHAPE(WIDTH, WIDTH), TFC_SHAPE(WIDTH, WIDTH),
      TFC_SHAPE(WIDTH),        TFC_SHAPE(2 * WIDTH, CLASSES),   TFC_SHAPE(CLASSES),      TFC_SHAPE(STEPS, BATCH)};
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[FEEDS] = {{0}};
  struct tfc_output feeds[FEEDS], fetches[6];
  assert_ok(tfc_builder_create(NULL, &b));
  for (int k = 0; k < FEEDS; k++)
    feeds[k] = tfc_add_placeholder(b, names[k], k == LABELS ? TFC_INT32 : TFC_FLOAT, &shapes[k]);
  const uint32_t fetch_count = build(b, form, feeds, fetches);
  assert_ok(tfc_builder_finish(b, &g));
  assert_ok(tfc_devices_open("gpu:0", NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  if (together) with.execution.rewrites = TFC_REWRITES_ALL, with.execution.gpu_math = TFC_MATH_FLOAT32;
  assert_ok(tfc_session_create(g, &with, &session));
  for (int k = 0; k < FEEDS; k++) {
    assert_ok(tfc_tensor_create(k == LABELS ? TFC_INT32 : TFC_FLOAT, &shapes[k], &values[k]));
    for (int64_t i = 0; i < tfc_tensor_elements(&values[k]); i++) {
      if (k == LABELS)
        ((int32_t *)values[k].data)[i] = (int32_t)(i * 5 % CLASSES);
      else
        ((float *)values[k].data)[i] = (float)((i + 3 * k) * 37 % 101 - 50) * 0.019f;
    }
  }
  struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = FEEDS, .feed_shapes = shapes, .fetches = fetches, .fetch_count = fetch_count};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  out->ops = tfc_plan_info(plan)->op_count;
  for (int i = 0; i < RUNS; i++) {
    struct tfc_tensor got[6] = {{0}};
    const uint64_t before = tfc_cuda_fake_works();
    assert_ok(tfc_plan_run(plan, values, got, NULL));
    tfc_cuda_fake_idle();
    out->works = tfc_cuda_fake_works() - before;
    out->count = 0;
    for (uint32_t k = 0; k < fetch_count; k++) {
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

static void steps_are_computed_together(void **state) {
  (void)state;
  static struct outcome apart, together;
  // What is left: the recurrence (a product and a chain for each step), and what all steps do together.
  static const uint32_t most[FORMS] = {47, 65, 79, 54};
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 1});
  for (enum form form = PLAIN; form < FORMS; form++) {
    run(form, false, &apart);
    run(form, true, &together);
    print_message("form %d: %u operations and %llu launches, together %u and %llu\n", (int)form, apart.ops,
                  (unsigned long long)apart.works, together.ops, (unsigned long long)together.works);
    assert_int_equal(apart.count, together.count);
    for (size_t i = 0; i < apart.count; i++) {
      assert_true(isfinite(apart.values[i]));
      assert_true(fabsf(apart.values[i] - together.values[i]) <= 1e-5f * (1 + fabsf(apart.values[i])));
    }
    assert_true(together.works <= most[form] && together.works < apart.works);
  }
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

// Trains an example with all rewrites, on one device and with its upper layer on another: the losses are TensorFlow's.
static void an_unrolled_example_trains(void **state) {
  (void)state;
  struct example e = {0};
  struct tfc_run_spec spec;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 2});
  assert_ok(example_load("rnnlm", &e));
  uint16_t *placement = calloc(e.graph->node_count, sizeof *placement);
  assert_non_null(placement);
  for (uint32_t devices = 1; devices <= 2; devices++) {
    struct tfc_device_set set = {0};
    struct tfc_session *session = NULL;
    struct tfc_plan *plan = NULL;
    assert_ok(tfc_devices_open(devices == 1 ? "gpu:0" : "gpu:0-1", NULL, 0, &set));
    struct tfc_session_options with = {.devices = &set};
    with.execution.rewrites = TFC_REWRITES_ALL, with.execution.gpu_math = TFC_MATH_FLOAT32;
    assert_ok(tfc_session_create(e.graph, &with, &session));
    for (uint32_t i = 0; i < e.graph->node_count; i++) { // sums of gradients are where their first term is
      const struct tfc_node *n = &e.graph->nodes[i];
      placement[i] = devices > 1 && memmem(n->name.data, n->name.size, "layer2", 6) != NULL;
      if (tfc_node_role(n) == TFC_ROLE_ADD_N) placement[i] = placement[tfc_node_inputs(e.graph, n)[0].node];
    }
    assert_ok(tfc_session_run(session,
                              &(struct tfc_run_spec){.targets = &e.init, .target_count = 1, .placement = placement},
                              NULL, NULL, NULL));
    example_spec(&e, &spec);
    spec.placement = placement;
    assert_ok(tfc_plan_create(session, &spec, &plan));
    print_message("rnnlm: %u operations on %u\n", tfc_plan_info(plan)->op_count, devices);
    assert_true(tfc_plan_info(plan)->op_count < 320); // without stacking, these are 400 operations
    for (uint32_t i = 0; i < 2; i++) {
      struct tfc_tensor loss = {0};
      assert_ok(tfc_plan_run(plan, e.values[i % e.set_count], &loss, NULL));
      assert_true(fabs((double)*(float *)loss.data - e.losses[i]) <= 1e-5 * fabs(e.losses[i]));
      tfc_tensor_release(&loss);
    }
    tfc_plan_free(plan);
    tfc_session_free(session);
    tfc_devices_close(&set);
  }
  free(placement);
  example_deinit(&e);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_computed_together),
                                     cmocka_unit_test(an_unrolled_example_trains)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
