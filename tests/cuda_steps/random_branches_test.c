// Random steps with branches in captured segments (`--cuda-graphs branches`), on the CUDA driver with its kernels and a
// fake of the CUDA calls: feeds, variables of both styles with updates, known and unknown shapes, one and two devices.
// Each fetch has the same bits as with chains, whatever streams are delayed.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"
#include "tests/cuda_kernels/streams.h"

enum { SIDE = 8, MOST_VALUES = 48, STEPS = 9, FEEDS = 2, FETCHES = 6, VARIABLES = 4, MOST_NODES = 512 };

struct made {
  struct tfc_graph *graph;
  struct tfc_output feeds[FEEDS], fetches[FETCHES];
  uint32_t init[VARIABLES], updates[MOST_VALUES], update_count;
  bool unknown; // shapes of feeds
  uint16_t placement[MOST_NODES];
};

// --- Making a step ---------------------------------------------------------------------------------------------------
struct maker {
  struct tfc_builder *b;
  struct tfc_random random;
  struct tfc_output values[MOST_VALUES], variables[VARIABLES];
  uint32_t count;
  struct made *out;
};

static uint32_t below(struct maker *m, uint32_t n) {
  return (uint32_t)tfc_random_below(&m->random, n);
}
static bool has_handle(uint32_t variable) {
  return variable < VARIABLES / 2; // the others are references
}

static void add_variables(struct maker *m) {
  struct tfc_tensor start = {0};
  const struct tfc_shape shape = TFC_SHAPE(SIDE, SIDE);
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &start));
  for (uint32_t v = 0; v < VARIABLES; v++) {
    char name[16];
    snprintf(name, sizeof name, "v%u", v);
    struct tfc_attr attrs[] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &shape),
                               tfc_attr_string("shared_name", tfc_str_from(name))};
    m->variables[v] = tfc_add(m->b, has_handle(v) ? "VarHandleOp" : "VariableV2", name, NULL, 0, attrs, 3);
    for (uint32_t k = 0; k < SIDE * SIDE; k++) ((float *)start.data)[k] = (float)((k * 7 + v) % 13) / 13;
    struct tfc_output inputs[] = {m->variables[v], tfc_add_const(m->b, "", &start)};
    m->out->init[v] = tfc_builder_add(m->b, &(struct tfc_node_spec){.op = has_handle(v) ? "AssignVariableOp" : "Assign",
                                                                    .inputs = inputs,
                                                                    .input_count = 2});
  }
  tfc_tensor_release(&start);
}

static struct tfc_output value_of(struct maker *m, uint32_t v) {
  const struct tfc_attr type = tfc_attr_type("dtype", TFC_FLOAT);
  return has_handle(v) ? tfc_add(m->b, "ReadVariableOp", NULL, &m->variables[v], 1, &type, 1) : m->variables[v];
}

// Adds an update, sometimes after the one before it. Returns a value that follows from it or from what it adds.
static struct tfc_output add_update(struct maker *m, uint32_t v, struct tfc_output x) {
  struct made *out = m->out;
  const struct tfc_output change = tfc_add1(m->b, "Sin", x);
  const bool adds = below(m, 2);
  const uint32_t *last = out->update_count ? &out->updates[out->update_count - 1] : NULL;
  struct tfc_output inputs[] = {m->variables[v], adds ? change : tfc_add_scalar(m->b, TFC_FLOAT, 0.01), change};
  const char *op = adds            ? has_handle(v) ? "AssignAddVariableOp" : "AssignAdd"
                   : has_handle(v) ? "ResourceApplyGradientDescent"
                                   : "ApplyGradientDescent";
  const struct tfc_node_spec spec = {
      .op = op, .inputs = inputs, .input_count = adds ? 2 : 3, .controls = last, .control_count = last && below(m, 2)};
  const uint32_t update = tfc_builder_add(m->b, &spec);
  out->updates[out->update_count++] = update;
  return has_handle(v) || below(m, 2) ? change : tfc_add1(m->b, "Sin", (struct tfc_output){update, 0});
}

static struct tfc_output add_value(struct maker *m) {
  const uint32_t recent = m->count < 8 ? m->count : 8;
  const struct tfc_output x = m->values[below(m, 3) ? m->count - 1 - below(m, recent) : below(m, m->count)];
  const struct tfc_output y = m->values[below(m, m->count)];
  const uint32_t v = below(m, VARIABLES), kind = below(m, 10);
  const struct tfc_attr keeps = tfc_attr_bool("keep_dims", true);
  switch (kind) {
  case 0:
    if (m->out->unknown) return tfc_add1(m->b, "Sin", x); // a transposed one would no longer fit the others
    return tfc_add2(m->b, "Transpose", x, tfc_add_i32_vector(m->b, (int32_t[]){1, 0}, 2));
  case 1: return tfc_add1(m->b, "Sin", x);
  case 2: return tfc_add1(m->b, "Sin", tfc_add2(m->b, "MatMul", x, value_of(m, v)));
  case 3: return tfc_add1(m->b, "Tanh", tfc_add2(m->b, "AddV2", x, y));
  case 4: return tfc_add2(m->b, "Mul", x, y);
  case 5: return tfc_add1(m->b, "Softmax", x);
  case 6: {
    struct tfc_output in[] = {x, tfc_add_i32_vector(m->b, (int32_t[]){1}, 1)};
    const struct tfc_output sum = tfc_add1(m->b, "Sin", tfc_add(m->b, "Sum", NULL, in, 2, &keeps, 1));
    return tfc_add1(m->b, "Sin", tfc_add2(m->b, "AddV2", y, sum));
  }
  case 7: return tfc_add1(m->b, "Sin", tfc_add2(m->b, "Sub", x, value_of(m, v)));
  default: return add_update(m, v, x);
  }
}

// Places nodes on two devices at random, and what uses a variable where the variable is.
static void place(struct maker *m, struct made *out) {
  assert_true(out->graph->node_count <= MOST_NODES);
  for (uint32_t i = 0; i < out->graph->node_count; i++) {
    const struct tfc_node *n = &out->graph->nodes[i];
    out->placement[i] = (uint16_t)below(m, 2);
    if (n->def->flags & TFC_OP_VARIABLE) continue;
    for (uint32_t k = 0; k < n->input_count; k++) {
      const struct tfc_output o = tfc_node_inputs(out->graph, n)[k];
      const tfc_dtype t = tfc_output_dtype(out->graph, o);
      if (t == TFC_RESOURCE || tfc_dtype_is_ref(t)) out->placement[i] = out->placement[o.node];
    }
  }
}

static void make(uint64_t seed, struct made *out) {
  struct maker m = {.out = out};
  const struct tfc_shape known = TFC_SHAPE(SIDE, SIDE), unknown = TFC_SHAPE(-1, SIDE);
  *out = (struct made){0};
  tfc_random_init(&m.random, seed);
  assert_ok(tfc_builder_create(NULL, &m.b));
  out->unknown = below(&m, 4) == 0;
  for (int i = 0; i < FEEDS; i++)
    m.values[m.count++] = out->feeds[i] = tfc_add_placeholder(m.b, "", TFC_FLOAT, out->unknown ? &unknown : &known);
  add_variables(&m);
  for (uint32_t left = 14 + below(&m, 24); left > 0; left--) {
    const struct tfc_output made = add_value(&m);
    m.values[m.count++] = made;
  }
  for (int i = 0; i < FETCHES; i++) out->fetches[i] = tfc_add1(m.b, "Cos", m.values[m.count - 1 - below(&m, 14)]);
  assert_ok(tfc_builder_finish(m.b, &out->graph));
  tfc_builder_free(m.b);
  place(&m, out);
}

// --- Running it ------------------------------------------------------------------------------------------------------
static uint32_t lanes; // the most of any graph that was launched
static void look(const struct tfc_cuda_fake_graph *g) {
  if (g->lanes > lanes) lanes = g->lanes;
}

static float expected[STEPS][FETCHES][SIDE * SIDE], got[STEPS][FETCHES][SIDE * SIDE];

static void run(const struct made *m, int captures, bool two, uint64_t seed, float (*out)[FETCHES][SIDE * SIDE]) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor in[FEEDS] = {{0}};
  const struct tfc_shape shapes[FEEDS] = {TFC_SHAPE(SIDE, SIDE), TFC_SHAPE(SIDE, SIDE)};
  const uint16_t *placement = two ? m->placement : NULL;
  cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 2});
  if (captures == TFC_CAPTURES_BRANCHES) tfc_cuda_fake_delay(100000), tfc_cuda_fake_shuffle(seed);
  assert_ok(tfc_devices_open(two ? "gpu:0-1" : "gpu:0", NULL, 0, &set));
  struct tfc_session_options with = {.devices = &set};
  with.execution.captures = captures;
  if (seed & 1) with.execution.rewrites = TFC_REWRITES_ALL;
  assert_ok(tfc_session_create(m->graph, &with, &session));
  const struct tfc_run_spec init = {.targets = m->init, .target_count = VARIABLES, .placement = placement};
  assert_ok(tfc_session_run(session, &init, NULL, NULL, NULL));
  const struct tfc_run_spec spec = {.feeds = m->feeds,
                                    .feed_count = FEEDS,
                                    .feed_shapes = m->unknown ? NULL : shapes,
                                    .fetches = m->fetches,
                                    .fetch_count = FETCHES,
                                    .targets = m->updates,
                                    .target_count = m->update_count,
                                    .placement = placement};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  lanes = 0;
  tfc_cuda_fake_watch_graphs(look);
  for (int k = 0; k < FEEDS; k++) assert_ok(tfc_tensor_create(TFC_FLOAT, &shapes[k], &in[k]));
  for (int s = 0; s < STEPS; s++) {
    struct tfc_tensor fetched[FETCHES] = {{0}};
    for (int k = 0; k < FEEDS; k++)
      for (int i = 0; i < SIDE * SIDE; i++) ((float *)in[k].data)[i] = (float)((i * 5 + k * 3 + s * 11) % 29) / 29;
    assert_ok(tfc_plan_run(plan, in, fetched, NULL));
    for (int f = 0; f < FETCHES; f++) {
      assert_int_equal(fetched[f].size, sizeof out[s][f]);
      memcpy(out[s][f], fetched[f].data, fetched[f].size);
      tfc_tensor_release(&fetched[f]);
    }
  }
  tfc_cuda_fake_watch_graphs(NULL);
  for (int k = 0; k < FEEDS; k++) tfc_tensor_release(&in[k]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

static void same_bits(uint64_t count, bool two) {
  uint64_t several = 0;
  for (uint64_t seed = 1; seed <= count; seed++) {
    struct made m;
    make(seed, &m);
    run(&m, TFC_CAPTURES_AUTO, two, seed, expected);
    run(&m, TFC_CAPTURES_BRANCHES, two, seed, got);
    several += lanes > 1;
    for (int s = 0; s < STEPS; s++)
      for (int f = 0; f < FETCHES; f++)
        if (memcmp(got[s][f], expected[s][f], sizeof got[s][f]))
          fail_msg("seed %d: fetch %d of step %d differs", (int)seed, f, s);
    tfc_graph_release(m.graph);
  }
  assert_true(several * 3 > count * 2); // most of these graphs have branches
}

static void one_device(void **state) {
  (void)state;
  same_bits(24, false);
}
static void two_devices(void **state) {
  (void)state;
  same_bits(16, true);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_device), cmocka_unit_test(two_devices)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
