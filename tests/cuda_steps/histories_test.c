// Random sequences of actions on a session's variables, on the CUDA driver with its kernels and on the CPU: updates in
// captured segments, variables set, restored or replaced between steps, plans in ready order, other placements, several
// sessions. After each action, every value must be equal to the CPU's.
#include "tests/common/test.h"

#include <string.h>

#include "runtime/base/random.h"
#include "runtime/device/cuda/device.h"
#include "runtime/exec/session.h"
#include "tests/cuda_kernels/streams.h"

enum { ROWS = 6, COLUMNS = 5, N = ROWS * COLUMNS, FETCHES = 4, SESSIONS = 2 };

static struct tfc_graph *graph;
static uint32_t inits[3], updates[2], replace, node_count;
static struct tfc_output x, fetches[FETCHES];

static struct tfc_output constant(struct tfc_builder *b, float value) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(ROWS, COLUMNS), &t));
  for (int i = 0; i < N; i++) ((float *)t.data)[i] = value + (float)i;
  struct tfc_output o = tfc_add_const(b, "", &t);
  tfc_tensor_release(&t);
  return o;
}
static uint32_t add(struct tfc_builder *b, const char *op, struct tfc_output first, struct tfc_output second) {
  struct tfc_output inputs[2] = {first, second};
  return tfc_builder_add(b, &(struct tfc_node_spec){.op = op, .inputs = inputs, .input_count = 2});
}
static struct tfc_output result(uint32_t node) {
  return (struct tfc_output){node, 0};
}
static struct tfc_output read_of(struct tfc_builder *b, struct tfc_output variable, uint32_t after) {
  struct tfc_attr type = tfc_attr_type("dtype", TFC_FLOAT);
  return result(tfc_builder_add(b, &(struct tfc_node_spec){.op = "ReadVariableOp",
                                                           .inputs = &variable,
                                                           .input_count = 1,
                                                           .attrs = &type,
                                                           .attr_count = 1,
                                                           .controls = &after,
                                                           .control_count = after != TFC_NONE}));
}

// Builds the step: before = v + x; v += x; after = v x; w = after; r += before; last = r + w. A separate plan: v = w +
// 7.
static void build(void) {
  struct tfc_builder *b = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  const struct tfc_shape shape = TFC_SHAPE(ROWS, COLUMNS);
  struct tfc_attr attrs[2] = {tfc_attr_type("dtype", TFC_FLOAT), tfc_attr_shape("shape", &shape)};
  x = tfc_add(b, "Placeholder", "x", NULL, 0, attrs, 2);
  struct tfc_output v = tfc_add(b, "VarHandleOp", "v", NULL, 0, attrs, 2);
  struct tfc_output w = tfc_add(b, "VarHandleOp", "w", NULL, 0, attrs, 2);
  struct tfc_output r = tfc_add(b, "VariableV2", "r", NULL, 0, attrs, 2);
  inits[0] = add(b, "AssignVariableOp", v, constant(b, 1));
  inits[1] = add(b, "AssignVariableOp", w, constant(b, 2));
  inits[2] = add(b, "Assign", r, constant(b, 3));
  fetches[0] = result(add(b, "AddV2", read_of(b, v, TFC_NONE), x));
  updates[0] = add(b, "AssignAddVariableOp", v, x);
  tfc_builder_add_control(b, updates[0], fetches[0].node);
  fetches[1] = result(add(b, "Mul", read_of(b, v, updates[0]), x));
  updates[1] = add(b, "AssignVariableOp", w, fetches[1]);
  fetches[2] = result(add(b, "AssignAdd", r, fetches[0]));
  fetches[3] = result(add(b, "AddV2", fetches[2], read_of(b, w, updates[1])));
  replace = add(b, "AssignVariableOp", v, result(add(b, "AddV2", read_of(b, w, TFC_NONE), constant(b, 7))));
  assert_ok(tfc_builder_finish(b, &graph));
  tfc_builder_free(b);
  node_count = graph->node_count;
}

struct side { // the session on the GPUs, or the one on the CPU
  struct tfc_session *session;
  struct tfc_plan *plans[3]; // the step, the step in ready order, replacing v
  struct tfc_snapshot *snapshots[2];
};

static void make_plans(struct side *s, const uint16_t *placement) {
  const struct tfc_shape shape = TFC_SHAPE(ROWS, COLUMNS);
  for (int i = 0; i < 3; i++) {
    struct tfc_run_spec spec = {.feeds = &x,
                                .feed_count = i < 2,
                                .fetches = fetches,
                                .fetch_count = i < 2 ? FETCHES : 0,
                                .targets = i < 2 ? updates : &replace,
                                .target_count = i < 2 ? 2 : 1,
                                .feed_shapes = &shape,
                                .placement = placement,
                                .dynamic = i == 1};
    tfc_plan_free(s->plans[i]);
    assert_ok(tfc_plan_create(s->session, &spec, &s->plans[i]));
  }
}

static void open_side(struct side *s, const struct tfc_device_set *set) {
  *s = (struct side){0};
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = set, .no_rewrites = true}, &s->session));
  assert_ok(tfc_session_run(s->session, &(struct tfc_run_spec){.targets = inits, .target_count = 3}, NULL, NULL, NULL));
  assert_ok(tfc_session_snapshot(s->session, &s->snapshots[0]));
  make_plans(s, NULL);
}
static void close_side(struct side *s) {
  for (int i = 0; i < 3; i++) tfc_plan_free(s->plans[i]);
  for (int i = 0; i < 2; i++) tfc_snapshot_free(s->snapshots[i]);
  tfc_session_free(s->session);
}

static void same(const struct tfc_tensor *a, const struct tfc_tensor *b, const char *what, int at) {
  assert_int_equal(a->size, b->size);
  if (memcmp(a->data, b->data, a->size))
    fail_msg("%s at %d: %g, not %g", what, at, (double)*(float *)a->data, (double)*(float *)b->data);
}

static void step(struct side *gpu, struct side *cpu, int plan, float with, int at) {
  struct tfc_tensor feed = {0}, got[FETCHES] = {0}, want[FETCHES] = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(ROWS, COLUMNS), &feed));
  for (int i = 0; i < N; i++) ((float *)feed.data)[i] = with * (float)(i + 1);
  assert_ok(tfc_plan_run(gpu->plans[plan], &feed, got, NULL));
  assert_ok(tfc_plan_run(cpu->plans[plan], &feed, want, NULL));
  for (int i = 0; i < FETCHES && plan < 2; i++) {
    same(&got[i], &want[i], "a fetch", at);
    tfc_tensor_release(&got[i]);
    tfc_tensor_release(&want[i]);
  }
  tfc_tensor_release(&feed);
}

static void set_both(struct side *gpu, struct side *cpu, const char *name, float with) {
  struct tfc_tensor t = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(ROWS, COLUMNS), &t));
  for (int i = 0; i < N; i++) ((float *)t.data)[i] = with;
  assert_ok(tfc_session_set_variable(gpu->session, tfc_str_from(name), &t));
  assert_ok(tfc_session_set_variable(cpu->session, tfc_str_from(name), &t));
  tfc_tensor_release(&t);
}

static void take_snapshot(struct side *s) {
  tfc_snapshot_free(s->snapshots[1]);
  s->snapshots[1] = NULL;
  assert_ok(tfc_session_snapshot(s->session, &s->snapshots[1]));
}

static void history(const char *devices, uint64_t seed, int length) {
  static const char *const names[] = {"v", "w", "r"};
  struct tfc_device_set gpus = {0}, cpus = {0};
  struct side gpu[SESSIONS], cpu[SESSIONS];
  struct tfc_random random;
  uint16_t placement[64];
  assert_true(node_count <= 64);
  tfc_random_init(&random, seed);
  assert_ok(tfc_devices_open(devices, NULL, 0, &gpus));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &cpus));
  for (int i = 0; i < SESSIONS; i++) {
    open_side(&gpu[i], &gpus);
    open_side(&cpu[i], &cpus);
  }
  for (int at = 0; at < length; at++) {
    const uint32_t k = (uint32_t)tfc_random_below(&random, SESSIONS);
    struct side *g = &gpu[k], *c = &cpu[k];
    const float with = (float)tfc_random_below(&random, 5) - 2;
    switch (tfc_random_below(&random, 12)) {
    case 0: set_both(g, c, names[tfc_random_below(&random, 3)], with); break;
    case 1: // restores the variables, as from a checkpoint
      assert_ok(tfc_session_restore(g->session, g->snapshots[0]));
      assert_ok(tfc_session_restore(c->session, c->snapshots[0]));
      break;
    case 2:
      take_snapshot(g);
      take_snapshot(c);
      break;
    case 3:
      if (!g->snapshots[1]) break;
      assert_ok(tfc_session_restore(g->session, g->snapshots[1]));
      assert_ok(tfc_session_restore(c->session, c->snapshots[1]));
      break;
    case 4: step(g, c, 1, with, at); break;
    case 5: step(g, c, 2, with, at); break;
    case 6: // a new placement; a variable and the nodes that update it stay together
      if (tfc_random_below(&random, 3)) break;
      for (uint32_t i = 0; i < node_count; i++) placement[i] = (uint16_t)tfc_random_below(&random, gpus.count);
      for (uint32_t i = 0; i < node_count; i++)
        if (graph->nodes[i].def && graph->nodes[i].def->flags & (TFC_OP_VARIABLE | TFC_OP_UPDATE))
          placement[i] = placement[0];
      make_plans(g, placement);
      break;
    default:
      for (uint64_t n = 1 + tfc_random_below(&random, 5); n; n--) step(g, c, 0, with, at);
    }
    for (int i = 0; i < 3 && at % 7 == 0; i++) {
      struct tfc_tensor got = {0}, want = {0};
      assert_ok(tfc_session_get_variable(g->session, tfc_str_from(names[i]), &got));
      assert_ok(tfc_session_get_variable(c->session, tfc_str_from(names[i]), &want));
      same(&got, &want, names[i], at);
      tfc_tensor_release(&got);
      tfc_tensor_release(&want);
    }
  }
  for (int i = 0; i < SESSIONS; i++) {
    close_side(&gpu[i]);
    close_side(&cpu[i]);
  }
  for (uint32_t i = 0; i < gpus.count; i++) assert_true(gpus.devices[i]->driver->in_use(gpus.devices[i]) == 0);
  tfc_devices_close(&gpus);
  tfc_devices_close(&cpus);
  assert_int_equal(tfc_cuda_fake_bytes(), 0);
  assert_int_equal(tfc_cuda_fake_violations(), 0);
}

#ifdef TFC_SANITIZED
enum { LENGTH = 60 };
#else
enum { LENGTH = 300 };
#endif

static void histories(void **state) {
  (void)state;
  static const char *const devices[] = {"gpu:0", "gpu:0-1", "vgpu:0-1", "vgpu:0-1,shared"};
  build();
  for (uint64_t i = 0; i < 4; i++) {
    cuda_streams_install(&(struct tfc_cuda_fake_options){.devices = 2});
    tfc_cuda_fake_delay(20000);
    tfc_cuda_fake_shuffle(i + 1);
    history(devices[i], 11 + i, LENGTH);
    const uint64_t replays = tfc_cuda_fake_calls(TFC_CUDA_FAKE_GRAPH_LAUNCH);
    print_message("%s: %llu replays\n", devices[i], (unsigned long long)replays);
    assert_true(replays > LENGTH / 4);
  }
  tfc_graph_release(graph);
}

int main(void) {
  tfc_driver_add(&tfc_driver_gpu);
  tfc_driver_add(&tfc_driver_vgpu);
  const struct CMUnitTest tests[] = {cmocka_unit_test(histories)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
