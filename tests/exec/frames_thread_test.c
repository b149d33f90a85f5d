// Tests control flow in ready order: loops, nested loops, branches that are not taken, errors, deadlines; on one
// device, on several, and from several threads at once.
#include "tests/common/test.h"

#include <pthread.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/exec/session.h"

static struct tfc_output node(struct tfc_builder *b, const char *op, const struct tfc_output *in, uint32_t n,
                              const struct tfc_attr *attrs, uint32_t attr_count, int32_t output) {
  struct tfc_output o = tfc_add(b, op, "", in, n, attrs, attr_count);
  o.index = output;
  return o;
}
static struct tfc_output enter(struct tfc_builder *b, const char *frame, struct tfc_output x, bool constant) {
  struct tfc_attr attrs[] = {tfc_attr_string("frame_name", tfc_str_from(frame)), tfc_attr_bool("is_constant", constant),
                             tfc_attr_int("parallel_iterations", 3)};
  return node(b, "Enter", &x, 1, attrs, 3, 0);
}

struct loop {
  struct tfc_output merge, body, next, exit;
};
// Begins the loop while (x < limit) x = body(x). The body computes its result from `body`, and loop_end finishes the
// loop.
static struct loop loop_begin(struct tfc_builder *b, const char *frame, struct tfc_output x, struct tfc_output limit) {
  struct loop l;
  struct tfc_output e = enter(b, frame, x, false), most = enter(b, frame, limit, true);
  l.merge = node(b, "Merge", (struct tfc_output[]){e, e}, 2, NULL, 0, 0);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", l.merge, most));
  struct tfc_output sw = tfc_add2(b, "Switch", l.merge, go);
  l.exit = tfc_add1(b, "Exit", sw);
  l.body = (struct tfc_output){sw.node, 1};
  return l;
}
static void loop_end(struct tfc_builder *b, struct loop *l, struct tfc_output result) {
  l->next = tfc_add1(b, "NextIteration", result);
  tfc_builder_set_input(b, l->merge.node, 1, l->next);
}

static struct tfc_graph *graph; // x placeholder; loops and branches over it
static struct tfc_output x, total, nested, branch, not_taken, bad, handed, behind, swapped, itself, held;

// A variable of a loop has a Merge and a Switch. The Switches of all variables of a loop have the same condition.
struct variable {
  struct tfc_output merge, body, exit;
};
static struct tfc_output variable_begin(struct tfc_builder *b, const char *frame, struct tfc_output from) {
  struct tfc_output e = enter(b, frame, from, false);
  return node(b, "Merge", (struct tfc_output[]){e, e}, 2, NULL, 0, 0);
}
static struct variable variable_switch(struct tfc_builder *b, struct tfc_output merge, struct tfc_output go) {
  struct tfc_output sw = tfc_add2(b, "Switch", merge, go);
  return (struct variable){merge, {sw.node, 1}, tfc_add1(b, "Exit", sw)};
}
static void variable_end(struct tfc_builder *b, struct variable v, struct tfc_output next) {
  tfc_builder_set_input(b, v.merge.node, 1, tfc_add1(b, "NextIteration", next));
}

// Computes (i, p, q) = (x, x, 3); while (i < 1000) (i, p, q) = (i + 1, q, p + 2), where 2 is a constant of the loop
// (Enter). The result is p - 7 q.
static struct tfc_output build_swap(struct tfc_builder *b, struct tfc_output limit, struct tfc_output one) {
  struct tfc_output i = variable_begin(b, "swap", x), p = variable_begin(b, "swap", x);
  struct tfc_output q = variable_begin(b, "swap", tfc_add_i32(b, 3)), most = enter(b, "swap", limit, true);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, most));
  struct variable vi = variable_switch(b, i, go), vp = variable_switch(b, p, go), vq = variable_switch(b, q, go);
  struct tfc_output two = tfc_add1(b, "Identity", enter(b, "swap", tfc_add_i32(b, 2), true));
  variable_end(b, vi, tfc_add2(b, "Add", vi.body, enter(b, "swap", one, true)));
  variable_end(b, vp, vq.body);
  variable_end(b, vq, tfc_add2(b, "Add", vp.body, two));
  return tfc_add2(b, "Sub", vp.exit, tfc_add2(b, "Mul", vq.exit, tfc_add_i32(b, 7)));
}
static int32_t swap_in_c(int32_t from) {
  int32_t p = from, q = 3;
  for (int32_t i = from; i < 1000; i++) {
    int32_t next = p + 2;
    p = q, q = next;
  }
  return p - 7 * q;
}

// A second loop variable enters the loop when the first has already left it: until then the iterations must not be
// released.
static struct tfc_output build_itself(struct tfc_builder *b, struct tfc_output limit, struct tfc_output one) {
  struct tfc_output i = variable_begin(b, "itself", x), most = enter(b, "itself", limit, true);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, most));
  struct variable vi = variable_switch(b, i, go);
  struct variable late = variable_switch(b, variable_begin(b, "itself", vi.exit), go);
  struct tfc_output step = enter(b, "itself", one, true);
  variable_end(b, vi, tfc_add2(b, "Add", vi.body, step));
  variable_end(b, late, tfc_add2(b, "Add", late.body, step));
  return late.exit;
}

// Computes (i, p) = (x, 3); while (i < 1000) (i, p) = (i + 1, i + 1), where p's next value is computed before the
// condition, and a control edge from the body holds its NextIteration. The result is p.
static struct tfc_output build_held(struct tfc_builder *b, struct tfc_output limit, struct tfc_output one) {
  struct tfc_output i = variable_begin(b, "held", x), most = enter(b, "held", limit, true);
  struct tfc_output next = tfc_add2(b, "Add", i, enter(b, "held", one, true));
  struct tfc_output p = variable_begin(b, "held", tfc_add_i32(b, 3));
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, most));
  struct variable vi = variable_switch(b, i, go), vp = variable_switch(b, p, go);
  struct tfc_output body = tfc_add1(b, "Identity", vp.body);
  uint32_t holds = tfc_builder_add(b, &(struct tfc_node_spec){.op = "NextIteration",
                                                              .name = "held_next",
                                                              .inputs = &next,
                                                              .input_count = 1,
                                                              .controls = &body.node,
                                                              .control_count = 1});
  tfc_builder_set_input(b, p.node, 1, (struct tfc_output){holds, 0});
  variable_end(b, vi, tfc_add2(b, "Add", vi.body, enter(b, "held", one, true)));
  return vp.exit;
}

static void build(void) {
  struct tfc_builder *b = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  x = tfc_add_placeholder(b, "x", TFC_INT32, &TFC_SHAPE_SCALAR);
  struct tfc_output limit = tfc_add_i32(b, 1000), one = tfc_add_i32(b, 1), ten = tfc_add_i32(b, 10);
  struct loop l = loop_begin(b, "count", x, limit);
  loop_end(b, &l, tfc_add2(b, "Add", l.body, enter(b, "count", one, true)));
  total = l.exit;
  // while (y < 1000) { z = y; while (z < y + 10) z = z + 1; y = z; }
  struct loop outer = loop_begin(b, "outer", x, limit);
  struct tfc_output bound = tfc_add2(b, "Add", outer.body, enter(b, "outer", ten, true));
  struct loop inner = loop_begin(b, "inner", outer.body, bound);
  loop_end(b, &inner, tfc_add2(b, "Add", inner.body, enter(b, "inner", enter(b, "outer", one, true), true)));
  loop_end(b, &outer, inner.exit);
  nested = outer.exit;
  // x < 1000 ? x + 1 : (a loop from x)
  struct tfc_output pred = tfc_add2(b, "Less", x, limit), sw = tfc_add2(b, "Switch", x, pred);
  struct tfc_output yes = tfc_add2(b, "Add", (struct tfc_output){sw.node, 1}, one);
  struct loop dead = loop_begin(b, "dead", sw, tfc_add_i32(b, 2000));
  loop_end(b, &dead, tfc_add2(b, "Add", dead.body, enter(b, "dead", ten, true)));
  branch = node(b, "Merge", (struct tfc_output[]){dead.exit, yes}, 2, NULL, 0, 0);
  not_taken = tfc_add2(b, "Add", sw, one);
  // x < 1000 ? (the loop to 1000, through Identity nodes) : 42, a constant with a control edge from one of them
  struct tfc_output first = tfc_add1(b, "Identity", tfc_add1(b, "Identity", (struct tfc_output){sw.node, 1}));
  struct loop passing = loop_begin(b, "passing", first, limit);
  struct tfc_output in_body = tfc_add1(b, "Identity", passing.body);
  in_body = tfc_add2(b, "Add", in_body, enter(b, "passing", tfc_add1(b, "Identity", one), true));
  loop_end(b, &passing, tfc_add1(b, "StopGradient", in_body));
  struct tfc_output otherwise = tfc_add1(b, "Identity", sw), constant = tfc_add_i32(b, 42);
  uint32_t waiting = tfc_builder_add(b, &(struct tfc_node_spec){.op = "Identity",
                                                                .name = "waiting",
                                                                .inputs = &constant,
                                                                .input_count = 1,
                                                                .controls = &otherwise.node,
                                                                .control_count = 1});
  struct tfc_output ends[] = {{waiting, 0}, tfc_add1(b, "Identity", passing.exit)};
  handed = tfc_add1(b, "Identity", node(b, "Merge", ends, 2, NULL, 0, 0));
  behind = tfc_add1(b, "Identity", tfc_add1(b, "Identity", sw)); // two Identity nodes after one output of a Switch
  swapped = build_swap(b, limit, one);
  itself = build_itself(b, limit, one);
  held = build_held(b, limit, one);
  struct loop wrong = loop_begin(b, "wrong", x, limit);
  struct tfc_output zero = tfc_add2(b, "Sub", wrong.body, wrong.body);
  loop_end(b, &wrong, tfc_add2(b, "FloorDiv", wrong.body, zero));
  bad = wrong.exit;
  assert_ok(tfc_builder_finish(b, &graph));
  tfc_builder_free(b);
}

static tfc_status run(struct tfc_session *session, struct tfc_output fetch, int32_t value, const uint16_t *placement,
                      int32_t *out) {
  struct tfc_tensor t = {0}, got = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &t));
  *(int32_t *)t.data = value;
  struct tfc_run_spec spec = {
      .feeds = &x, .feed_count = 1, .fetches = &fetch, .fetch_count = 1, .placement = placement};
  tfc_status s = tfc_session_run(session, &spec, &t, &got, NULL);
  if (!s) *out = *(int32_t *)got.data;
  tfc_tensor_release(&got);
  tfc_tensor_release(&t);
  return s;
}

static void check_all(struct tfc_session *session, const uint16_t *placement) {
  int32_t y = 0;
  assert_ok(run(session, total, 7, placement, &y));
  assert_int_equal(y, 1000);
  assert_ok(run(session, total, 5000, placement, &y));
  assert_int_equal(y, 5000);
  assert_ok(run(session, nested, 7, placement, &y));
  assert_int_equal(y, 1007);
  assert_ok(run(session, branch, 7, placement, &y)); // the loop in the other branch is dead
  assert_int_equal(y, 8);
  assert_ok(run(session, branch, 1001, placement, &y));
  assert_int_equal(y, 2001);
  assert_ok(run(session, not_taken, 1001, placement, &y));
  assert_int_equal(y, 1002);
  assert_fails(run(session, not_taken, 7, placement, &y), TFC_INVALID_ARGUMENT, "its branch was not taken");
  assert_ok(run(session, handed, 7, placement, &y));
  assert_int_equal(y, 1000);
  assert_ok(run(session, handed, 1001, placement, &y));
  assert_int_equal(y, 42);
  assert_ok(run(session, behind, 1001, placement, &y));
  assert_int_equal(y, 1001);
  assert_fails(run(session, behind, 7, placement, &y), TFC_INVALID_ARGUMENT, "its branch was not taken");
  for (int32_t from = 985; from < 1002; from++) {
    assert_ok(run(session, swapped, from, placement, &y));
    assert_int_equal(y, swap_in_c(from));
  }
  assert_ok(run(session, itself, 998, placement, &y));
  assert_int_equal(y, 1002);
  for (int32_t from = 997; from < 1002; from++) {
    assert_ok(run(session, held, from, placement, &y));
    assert_int_equal(y, from < 1000 ? 1000 : 3);
  }
  assert_fails(run(session, bad, 7, placement, &y), TFC_INVALID_ARGUMENT, "FloorDiv");
  assert_ok(run(session, total, 999, placement, &y)); // the session can still be used
  assert_int_equal(y, 1000);
}

static void on(const char *devices) {
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  uint16_t placement[256];
  assert_true(graph->node_count < 256);
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  check_all(session, NULL);
  for (uint32_t round = 0; round < 2 && set.count > 1; round++) {
    for (uint32_t i = 0; i < graph->node_count; i++) placement[i] = (uint16_t)((i * 7 + round) % set.count);
    check_all(session, placement);
  }
  tfc_session_free(session);
  for (uint32_t d = 0; d < set.count; d++) assert_true(set.devices[d]->driver->in_use(set.devices[d]) == 0);
  tfc_devices_close(&set);
}

static void one_device(void **state) {
  (void)state, on("cpu:0");
}
static void several_devices(void **state) {
  (void)state, on("cpu:0-1");
}
static void emulated(void **state) {
  (void)state, on("emu:0-1");
}
static void mixed(void **state) {
  (void)state, on("cpu:0,emu:0");
}

struct worker {
  struct tfc_session *session;
  tfc_status status;
  int32_t sum;
};
static void *work(void *arg) {
  struct worker *w = arg;
  for (int32_t i = 0; i < 10 && !w->status; i++) {
    int32_t y = 0;
    w->status = run(w->session, nested, i, NULL, &y);
    w->sum += y - i;
  }
  return NULL;
}

static void several_threads(void **state) { // several threads run steps of one session at once
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
  pthread_t threads[4];
  struct worker workers[4] = {{session, NULL, 0}, {session, NULL, 0}, {session, NULL, 0}, {session, NULL, 0}};
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) {
    assert_ok(workers[i].status);
    assert_int_equal(workers[i].sum, 10000);
  }
  tfc_session_free(session);
  tfc_devices_close(&set);
}

static void a_stray_next_iteration(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *stray = NULL;
  struct tfc_tensor got = {0};
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output fetch = tfc_add1(b, "Neg", tfc_add1(b, "NextIteration", tfc_add_i32(b, 1)));
  assert_ok(tfc_builder_finish(b, &stray));
  tfc_builder_free(b);
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(stray, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {.fetches = &fetch, .fetch_count = 1};
  assert_fails(tfc_session_run(session, &spec, NULL, &got, NULL), TFC_INVALID_ARGUMENT, "outside of a loop");
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(stray);
}

static void deadlines(void **state) {
  (void)state;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *endless = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  struct loop l = loop_begin(b, "endless", tfc_add_i32(b, 0), tfc_add_i32(b, 1));
  loop_end(b, &l, tfc_add1(b, "Identity", l.body));
  assert_ok(tfc_builder_finish(b, &endless));
  tfc_builder_free(b);
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &set));
  assert_ok(tfc_session_create(endless, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_tensor got = {0};
  struct tfc_run_spec spec = {.fetches = &l.exit, .fetch_count = 1};
  assert_fails(tfc_session_run(session, &spec, NULL, &got, &(struct tfc_run_options){.deadline_ns = 20000000}),
               TFC_DEADLINE_EXCEEDED, "did not end within 20 ms: '");
  _Atomic bool cancel = true;
  assert_fails(tfc_session_run(session, &spec, NULL, &got, &(struct tfc_run_options){.cancel = &cancel}), TFC_CANCELLED,
               "cancelled");
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(endless);
}

// --- Loops that are alike -------------------------------------------------------------------------------------------
// h = x; for (i = 0; i < 300; i += step) h = op(h . w). The result is h.
static struct tfc_output build_cell(struct tfc_builder *b, const char *frame, const char *op, struct tfc_output from,
                                    struct tfc_output w, int32_t step) {
  struct tfc_output i = variable_begin(b, frame, tfc_add_i32(b, 0)), h = variable_begin(b, frame, from);
  struct tfc_output most = enter(b, frame, tfc_add_i32(b, 300), true), weight = enter(b, frame, w, true);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, most));
  struct variable vi = variable_switch(b, i, go), vh = variable_switch(b, h, go);
  variable_end(b, vi, tfc_add2(b, "Add", vi.body, enter(b, frame, tfc_add_i32(b, step), true)));
  variable_end(b, vh, tfc_add1(b, op, tfc_add2(b, "MatMul", vh.body, weight)));
  return vh.exit;
}

enum { CELL = 24 };
static struct tfc_graph *build_cells(int32_t step, const char *second, struct tfc_output fetches[2]) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output in[4];
  const char *const names[] = {"x0", "x1", "w0", "w1"};
  for (int i = 0; i < 4; i++) in[i] = tfc_add_placeholder(b, names[i], TFC_FLOAT, &TFC_SHAPE_UNKNOWN);
  for (int i = 0; i < 2; i++)
    fetches[i] = build_cell(b, i ? "backward" : "forward", i ? second : "Tanh", in[i], in[2 + i], step);
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  return g;
}

// w1 has `rows` rows.
static void feed_cells(const struct tfc_graph *g, int64_t rows, struct tfc_output feeds[4],
                       struct tfc_tensor values[4]) {
  const char *const names[] = {"x0", "x1", "w0", "w1"};
  for (int i = 0; i < 4; i++) {
    feeds[i] = (struct tfc_output){tfc_graph_find(g, tfc_str_from(names[i])), 0};
    const struct tfc_shape shape = TFC_SHAPE(i < 2 ? 5 : i == 3 ? rows : CELL, CELL);
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &values[i]));
    for (int64_t k = 0; k < tfc_tensor_elements(&values[i]); k++)
      ((float *)values[i].data)[k] = (float)((k * 37 + i * 11) % 23 - 11) / 29.0f;
  }
}

// Runs both cells. w1 has `rows` rows. One device has all cores, or each core is a device and all runs on the first.
static tfc_status run_cells(const struct tfc_graph *g, const struct tfc_output fetches[2], int64_t rows,
                            const char *devices, int64_t deadline_ns, struct tfc_tensor out[2]) {
  tfc_status s = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor values[4] = {{0}};
  struct tfc_output feeds[4];
  feed_cells(g, rows, feeds, values);
  TFC_TRY(s, tfc_devices_open(devices, NULL, 0, &set));
  TFC_TRY(s, tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {.feeds = feeds, .feed_count = 4, .fetches = fetches, .fetch_count = 2};
  for (int i = 0; i < 8 && !s; i++) {
    for (int k = 0; k < 2; k++) tfc_tensor_release(&out[k]);
    s = tfc_session_run(session, &spec, values, out, &(struct tfc_run_options){.deadline_ns = deadline_ns});
  }
out:
  tfc_session_free(session);
  tfc_devices_close(&set);
  for (int i = 0; i < 4; i++) tfc_tensor_release(&values[i]);
  return s;
}

// On a device of several cores loops that are alike run side by side: with the same bits as one after the other, and
// with the same errors and limits of time.
static void loops_that_are_alike(void **state) {
  (void)state;
  struct tfc_output fetches[2];
  struct tfc_tensor together[2] = {{0}}, alone[2] = {{0}};
  struct tfc_graph *g = build_cells(1, "Tanh", fetches);
  const int64_t limit = 100 * (int64_t)1000000000;
  assert_ok(run_cells(g, fetches, CELL, "1", limit, together));
  assert_ok(run_cells(g, fetches, CELL, "2", limit, alone));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(together[i].size, alone[i].size);
    assert_memory_equal(together[i].data, alone[i].data, alone[i].size);
    tfc_tensor_release(&together[i]), tfc_tensor_release(&alone[i]);
  }
  assert_fails(run_cells(g, fetches, CELL + 1, "1", limit, together), TFC_INVALID_ARGUMENT, "MatMul");
  tfc_graph_release(g);
  g = build_cells(0, "Tanh", fetches); // without end
  const int64_t before = tfc_now_ns(); // an error in one loop ends the other
  assert_fails(run_cells(g, fetches, CELL + 1, "1", limit / 5, together), TFC_INVALID_ARGUMENT, "MatMul");
  assert_true(tfc_now_ns() - before < limit / 10);
  assert_fails(run_cells(g, fetches, CELL, "1", 50 * (int64_t)1000000, together), TFC_DEADLINE_EXCEEDED, "50 ms");
  tfc_graph_release(g);
}

// h = x; for (i = 0; i < 60; i++) h = (h * w) . h, twice; h * w is large. Returns the most memory that the first device
// took.
enum { WIDE = 600 };
static uint64_t run_wide(const struct tfc_memory_limit *limits, uint32_t limit_count, const char *devices) {
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor values[2] = {{0}}, out[2] = {{0}};
  struct tfc_output feeds[2], fetches[2];
  assert_ok(tfc_builder_create(NULL, &b));
  for (int i = 0; i < 2; i++) {
    const struct tfc_shape shape = TFC_SHAPE(i ? 1 : WIDE, i ? WIDE : 1);
    feeds[i] = tfc_add_placeholder(b, i ? "w" : "x", TFC_FLOAT, &TFC_SHAPE_UNKNOWN);
    assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &values[i]));
    for (int k = 0; k < WIDE; k++) ((float *)values[i].data)[k] = (float)(k % 7) / WIDE;
  }
  for (int k = 0; k < 2; k++) {
    const char *frame = k ? "second" : "first";
    struct tfc_output i = variable_begin(b, frame, tfc_add_i32(b, 0)), h = variable_begin(b, frame, feeds[0]);
    struct tfc_output most = enter(b, frame, tfc_add_i32(b, 60), true), w = enter(b, frame, feeds[1], true);
    struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, most));
    struct variable vi = variable_switch(b, i, go), vh = variable_switch(b, h, go);
    variable_end(b, vi, tfc_add2(b, "Add", vi.body, enter(b, frame, tfc_add_i32(b, 1), true)));
    variable_end(b, vh, tfc_add2(b, "MatMul", tfc_add2(b, "Mul", vh.body, w), vh.body));
    fetches[k] = vh.exit;
  }
  assert_ok(tfc_builder_finish(b, &g));
  tfc_builder_free(b);
  assert_ok(tfc_devices_open(devices, limits, limit_count, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {.feeds = feeds, .feed_count = 2, .fetches = fetches, .fetch_count = 2};
  for (int i = 0; i < 4; i++) {
    assert_ok(tfc_session_run(session, &spec, values, out, NULL));
    for (int k = 0; k < 2; k++) tfc_tensor_release(&out[k]);
  }
  const uint64_t peak = set.devices[0]->driver->peak(set.devices[0], false);
  tfc_session_free(session);
  tfc_devices_close(&set);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&values[i]);
  tfc_graph_release(g);
  return peak;
}

// Side by side, loops hold more memory. A device with a limit runs them one after the other.
static void loops_in_little_memory(void **state) {
  (void)state;
  const uint64_t large = sizeof(float) * WIDE * WIDE, peak = run_wide(NULL, 0, "2");
  assert_true(peak >= large);
  const struct tfc_memory_limit limit = {.pattern = "cpu:*", .bytes = peak + large / 2};
  (void)run_wide(&limit, 1, "1");
}

// Of two cells the first has Tanh and the second has `op`. together: the counts of alike loops of both.
static void count_alike(const char *op, uint32_t together) {
  struct tfc_output fetches[2];
  struct tfc_graph *g = build_cells(1, op, fetches);
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_output feeds[4];
  uint32_t alike = 0;
  const char *const names[] = {"x0", "x1", "w0", "w1"};
  for (int i = 0; i < 4; i++) feeds[i] = (struct tfc_output){tfc_graph_find(g, tfc_str_from(names[i])), 0};
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {.feeds = feeds, .feed_count = 4, .fetches = fetches, .fetch_count = 2};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_int_equal(plan->dynamic->frame_count, 3);
  for (uint32_t f = 1; f < 3; f++) {
    assert_non_null(plan->dynamic->frames[f].loop);
    alike += plan->dynamic->frames[f].loop->alike;
  }
  assert_int_equal(alike, together);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

// Loops that ended with an error are not measured: they may have ended at once.
static void failed_loops_are_not_measured(void **state) {
  (void)state;
  struct tfc_output fetches[2], feeds[4];
  struct tfc_graph *g = build_cells(1, "Tanh", fetches);
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor values[4] = {{0}}, out[2] = {{0}};
  feed_cells(g, CELL + 1, feeds, values);
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set}, &session));
  struct tfc_run_spec spec = {.feeds = feeds, .feed_count = 4, .fetches = fetches, .fetch_count = 2};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_fails(tfc_plan_run(plan, values, out, NULL), TFC_INVALID_ARGUMENT, "MatMul");
  for (uint32_t f = 1; f < 3; f++)
    for (int way = 0; way < 2; way++) assert_int_equal(plan->dynamic->frames[f].loop->times[way].count, 0);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  for (int i = 0; i < 4; i++) tfc_tensor_release(&values[i]);
  tfc_graph_release(g);
}

// The plan knows which loops are alike; those with other operations are not, and those with state may not run beside
// others at all.
static void plans_know_alike_loops(void **state) {
  (void)state;
  count_alike("Tanh", 2 + 2);
  count_alike("Sin", 1 + 1);
  count_alike("RandomShuffle", 1 + 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_device),
      cmocka_unit_test(several_devices),
      cmocka_unit_test(emulated),
      cmocka_unit_test(mixed),
      cmocka_unit_test(several_threads),
      cmocka_unit_test(a_stray_next_iteration),
      cmocka_unit_test(deadlines),
      cmocka_unit_test(loops_that_are_alike),
      cmocka_unit_test(loops_in_little_memory),
      cmocka_unit_test(plans_know_alike_loops),
      cmocka_unit_test(failed_loops_are_not_measured),
  };
  build();
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_graph_release(graph);
  return failed;
}
