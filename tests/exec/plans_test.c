// Tests the stages that make a static plan on random steps, each against a second, plain implementation or against what
// must hold for every step: the order of operations, the idle time that packing fills, who waits for whom, which
// tensors share memory, and the lanes of one device.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"
#include "runtime/exec/plan/plan_internal.h"

enum { MOST_OPS = 40, MOST_ITEMS = 256, MOST_DEVICES = 3 };

static const struct tfc_op_def plain = {.name = "Plain"}, anywhere = {.name = "Anywhere", .flags = TFC_OP_INPLACE},
                               first_only = {.name = "First", .flags = TFC_OP_INPLACE_FIRST},
                               update = {.name = "Update", .flags = TFC_OP_UPDATE};

struct step {
  struct tfc_ir ir;
  struct tfc_graph graph;
  struct tfc_device devices[MOST_DEVICES], *pointers[MOST_DEVICES];
  struct tfc_ir_input inputs[MOST_OPS][4];
  uint32_t outputs[MOST_OPS][2];
};

static void step_begin(struct step *s, uint32_t devices, bool own_memory) {
  *s = (struct step){0};
  for (uint32_t d = 0; d < devices; d++) {
    s->pointers[d] = &s->devices[d];
    s->devices[d].info.address_space = own_memory ? d + 1 : 0;
  }
  s->graph.node_count = MOST_OPS;
  s->ir.graph = &s->graph;
  s->ir.devices = s->pointers;
  s->ir.device_count = devices;
}

static void step_end(struct step *s) {
  tfc_array_free(&s->ir.ops);
  tfc_array_free(&s->ir.values);
  tfc_array_free(&s->ir.edges);
  tfc_array_free(&s->ir.variables);
  tfc_array_free(&s->ir.fused);
}

static uint32_t add_value(struct step *s, struct tfc_ir_value v) {
  v.dtype = TFC_FLOAT;
  v.alias = TFC_NONE32;
  assert_true(tfc_array_push(&s->ir.values, v));
  return (uint32_t)s->ir.values.count - 1;
}

static uint32_t add_op(struct step *s, uint16_t device, double us) {
  uint32_t id = (uint32_t)s->ir.ops.count;
  assert_true(id < MOST_OPS);
  struct tfc_ir_op op = {
      .node = id, .def = &plain, .device = device, .inputs = s->inputs[id], .outputs = s->outputs[id], .cost_us = us};
  assert_true(tfc_array_push(&s->ir.ops, op));
  return id;
}

static uint32_t add_output(struct step *s, uint32_t op, uint64_t bytes) {
  struct tfc_ir_op *o = &s->ir.ops.data[op];
  uint32_t v = add_value(
      s,
      (struct tfc_ir_value){.kind = TFC_IR_OP, .op = op, .output = o->output_count, .bytes = bytes, .planned = true});
  s->outputs[op][o->output_count++] = v;
  return v;
}

static void add_input(struct step *s, uint32_t op, uint32_t value) {
  struct tfc_ir_op *o = &s->ir.ops.data[op];
  s->inputs[op][o->input_count++] = (struct tfc_ir_input){.value = value, .variable = TFC_NONE32};
}

static void add_edge(struct step *s, uint32_t from, uint32_t to) {
  assert_true(tfc_array_push(&s->ir.edges, (struct tfc_ir_edge){from, to}));
}

// Operations in random numbering, of which each reads up to three earlier values; joints, edges, dead operations.
static void random_step(struct step *s, struct tfc_random *r, uint32_t devices, bool own_memory, bool prepared) {
  step_begin(s, devices, own_memory);
  uint32_t n = 4 + (uint32_t)tfc_random_below(r, MOST_OPS - 4), order[MOST_OPS], made[3 * MOST_OPS], made_count = 0;
  for (uint32_t i = 0; i < n; i++) {
    add_op(s, (uint16_t)tfc_random_below(r, devices), 1 + (double)tfc_random_below(r, 12));
    order[i] = i;
  }
  for (uint32_t i = n; i-- > 1;) {
    uint32_t k = (uint32_t)tfc_random_below(r, i + 1), t = order[i];
    order[i] = order[k], order[k] = t;
  }
  uint32_t feed = add_value(s, (struct tfc_ir_value){.kind = TFC_IR_FEED, .op = TFC_NONE32, .bytes = 128});
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = order[i];
    struct tfc_ir_op *op = &s->ir.ops.data[id];
    uint64_t kind = tfc_random_below(r, 20);
    op->node = (uint32_t)tfc_random_below(r, 8) ? id : order[tfc_random_below(r, n)];
    op->dead = kind == 0;
    op->joint = kind == 1 || kind == 2;
    op->prepared = prepared && kind == 3;
    op->def = kind < 6 ? &plain : kind < 14 ? &anywhere : kind < 18 ? &first_only : &update;
    if (own_memory && kind == 4) op->host = (struct tfc_host_memory){UINT32_MAX, UINT32_MAX, true};
    if (own_memory && kind == 5) op->host = (struct tfc_host_memory){1, 1, false};
    for (uint32_t k = (uint32_t)tfc_random_below(r, 3); k-- > 0 && i > 0;) {
      uint32_t from = order[tfc_random_below(r, i)];
      add_edge(s, from, id);
    }
    if (op->dead || op->joint) continue;
    for (uint32_t k = (uint32_t)tfc_random_below(r, 4); k-- > 0 && made_count;) {
      uint32_t back = (uint32_t)tfc_random_below(r, made_count < 6 ? made_count : 6);
      add_input(s, id, tfc_random_below(r, 10) ? made[made_count - 1 - back] : feed);
    }
    for (uint32_t k = 1 + (uint32_t)(tfc_random_below(r, 5) == 0); k-- > 0;)
      made[made_count++] = add_output(s, id, 64 * tfc_random_below(r, 4) + tfc_random_below(r, 2) * 8);
    struct tfc_ir_value *out = &s->ir.values.data[s->outputs[id][0]];
    out->fetched = tfc_random_below(r, 12) == 0;
    if (op->output_count != 1 || !op->input_count || out->fetched || tfc_random_below(r, 8)) continue;
    const struct tfc_ir_value *in = &s->ir.values.data[op->inputs[0].value]; // a view
    if (in->kind == TFC_IR_OP && !in->fetched && in->alias == TFC_NONE32 && !own_memory && in->bytes == out->bytes)
      out->alias = op->inputs[0].value;
  }
}

// --- What must come before what --------------------------------------------------------------------------------------
static bool depends(const struct tfc_ir *ir, uint32_t from, uint32_t to) { // true if `to` depends directly on `from`
  if (ir->ops.data[from].dead || ir->ops.data[to].dead) return false;
  for (size_t e = 0; e < ir->edges.count; e++)
    if (ir->edges.data[e].from == from && ir->edges.data[e].to == to) return true;
  for (uint32_t k = 0; k < ir->ops.data[to].input_count; k++) {
    uint32_t v = ir->ops.data[to].inputs[k].value;
    if (ir->values.data[v].op == from) return true;
  }
  return false;
}

static bool before_of[MOST_OPS][MOST_OPS]; // [to][from] true: `to` depends directly on `from`

static uint32_t find_dependencies(const struct tfc_ir *ir) {
  uint32_t alive = 0;
  for (uint32_t to = 0; to < ir->ops.count; to++) {
    alive += !ir->ops.data[to].dead;
    for (uint32_t from = 0; from < ir->ops.count; from++) before_of[to][from] = depends(ir, from, to);
  }
  return alive;
}

// --- The order, a second time ----------------------------------------------------------------------------------------
static double arrival(const struct tfc_ir *ir, uint32_t from, uint32_t to, double end) {
  const struct tfc_ir_op *a = &ir->ops.data[from], *b = &ir->ops.data[to];
  double bytes = 0;
  if (a->joint || b->joint || a->device == b->device) return end;
  for (uint32_t k = 0; k < b->input_count; k++) {
    const struct tfc_ir_value *v = &ir->values.data[b->inputs[k].value];
    if (v->op == from) bytes += (double)v->bytes;
  }
  return end + (5 + bytes / 1e4);
}

static double longest_to_end(const struct tfc_ir *ir, uint32_t id) {
  double longest = 0;
  for (uint32_t to = 0; to < ir->ops.count; to++)
    if (before_of[to][id]) longest = fmax(longest, longest_to_end(ir, to));
  return longest + ir->ops.data[id].cost_us;
}

// Always the ready operation with the smallest key, then the lowest id.
static void keyed(const struct tfc_ir *ir, const double *keys, uint32_t *out) {
  bool done[MOST_OPS] = {0};
  for (uint32_t count = 0;; count++) {
    uint32_t best = TFC_NONE32;
    for (uint32_t i = 0; i < ir->ops.count; i++) {
      bool ready = !done[i] && !ir->ops.data[i].dead;
      for (uint32_t k = 0; k < ir->ops.count; k++) ready &= !before_of[i][k] || done[k];
      if (ready && (best == TFC_NONE32 || keys[i] < keys[best])) best = i;
    }
    if (best == TFC_NONE32) return;
    done[out[count] = best] = true;
  }
}

static double key_with_readers(const struct tfc_ir *ir, const double *keys, uint32_t id) {
  double key = keys[id];
  for (uint32_t to = 0; to < ir->ops.count; to++)
    if (ir->ops.data[id].prepared && before_of[to][id] && !ir->ops.data[to].joint)
      key = fmin(key, key_with_readers(ir, keys, to));
  return key;
}

// Each device starts, of its ready operations, the one with the lowest number in `first`, then the longest path to the
// end, then the lowest id. At one moment operations end before others become ready.
static uint32_t scheduled(const struct tfc_ir *ir, const double *first, uint32_t *out) {
  enum { WAITS, COMES, READY, RUNS, DONE } state[MOST_OPS] = {0};
  double at[MOST_OPS] = {0}, now = 0, remaining[MOST_OPS];
  uint32_t n = (uint32_t)ir->ops.count, count = 0;
  for (uint32_t i = 0; i < n; i++) remaining[i] = longest_to_end(ir, i);
  for (;;) {
    for (uint32_t i = 0; i < n; i++) { // finds an operation whose predecessors have all run
      bool comes = state[i] == WAITS && !ir->ops.data[i].dead;
      for (uint32_t k = 0; k < n; k++) comes &= !before_of[i][k] || state[k] == DONE;
      if (comes) state[i] = COMES;
    }
    uint32_t event = TFC_NONE32;
    for (uint32_t i = 0; i < n; i++) {
      if (state[i] != COMES && state[i] != RUNS) continue;
      bool sooner =
          event == TFC_NONE32 || at[i] < at[event] || (at[i] == at[event] && state[i] == RUNS && state[event] == COMES);
      if (sooner) event = i;
    }
    if (event != TFC_NONE32 && at[event] == now) {
      if (state[event] == COMES && !ir->ops.data[event].joint) {
        state[event] = READY;
        continue;
      }
      if (state[event] == COMES) out[count++] = event;
      state[event] = DONE;
      for (uint32_t to = 0; to < n; to++)
        if (before_of[to][event]) at[to] = fmax(at[to], arrival(ir, event, to, now));
      continue;
    }
    for (uint16_t d = 0; d < ir->device_count; d++) { // everything that happens at this time has happened
      uint32_t best = TFC_NONE32;
      bool busy = false;
      for (uint32_t i = 0; i < n; i++) {
        if (ir->ops.data[i].device != d || ir->ops.data[i].joint) continue;
        busy |= state[i] == RUNS;
        if (state[i] != READY) continue;
        double a = first && !isnan(first[ir->ops.data[i].node]) ? first[ir->ops.data[i].node] : INFINITY, b = 0;
        if (best != TFC_NONE32)
          b = first && !isnan(first[ir->ops.data[best].node]) ? first[ir->ops.data[best].node] : INFINITY;
        if (best == TFC_NONE32 || a < b || (a == b && remaining[i] > remaining[best])) best = i;
      }
      if (busy || best == TFC_NONE32) continue;
      state[best] = RUNS;
      at[best] = now + ir->ops.data[best].cost_us;
      out[count++] = best;
    }
    now = INFINITY;
    for (uint32_t i = 0; i < n; i++)
      if (state[i] == COMES || state[i] == RUNS) now = fmin(now, at[i]);
    if (now == INFINITY) return count;
  }
}

static double replayed(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count, double *idle) {
  double end[MOST_OPS] = {0}, free_at[MOST_DEVICES] = {0}, length = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t id = sequence[i];
    const struct tfc_ir_op *op = &ir->ops.data[id];
    double start = 0;
    for (uint32_t from = 0; from < ir->ops.count; from++)
      if (before_of[id][from]) start = fmax(start, arrival(ir, from, id, end[from]));
    idle[i] = op->joint ? 0 : fmax(0, start - free_at[op->device]);
    end[id] = op->joint ? start : fmax(start, free_at[op->device]) + op->cost_us;
    if (!op->joint) free_at[op->device] = end[id];
    length = fmax(length, end[id]);
  }
  return length;
}

static void same_order(const uint32_t *a, const uint32_t *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) assert_int_equal(a[i], b[i]);
}

static void orders(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 4);
  for (int round = 0; round < 240; round++) {
    struct step s;
    uint32_t devices = 1 + (uint32_t)round % 3, *sequence = NULL, count = 0, wanted[MOST_OPS];
    double keys[MOST_OPS], lowered[MOST_OPS], first[MOST_OPS];
    random_step(&s, &r, devices, round % 2, devices == 1);
    uint32_t n = (uint32_t)s.ir.ops.count, alive = find_dependencies(&s.ir);
    // In the order that the caller gives, as far as dependencies allow.
    uint32_t given[MOST_OPS], given_count = (uint32_t)tfc_random_below(&r, n + 1);
    for (uint32_t i = 0; i < given_count; i++) given[i] = (uint32_t)tfc_random_below(&r, n);
    struct tfc_ir_fused fused = {given_count ? given[0] : 0, (uint32_t)tfc_random_below(&r, n)};
    assert_true(tfc_array_push(&s.ir.fused, fused));
    double of_node[MOST_OPS];
    for (uint32_t i = 0; i < MOST_OPS; i++) of_node[i] = given_count;
    for (uint32_t i = 0; i < given_count; i++) of_node[given[i]] = i;
    if (of_node[fused.node] < given_count) of_node[fused.into] = fmax(of_node[fused.into], of_node[fused.node]);
    for (uint32_t i = 0; i < n; i++) keys[i] = s.ir.ops.data[i].joint ? -1 : of_node[s.ir.ops.data[i].node];
    for (uint32_t i = 0; i < n; i++) lowered[i] = key_with_readers(&s.ir, keys, i);
    keyed(&s.ir, lowered, wanted);
    struct tfc_run_spec spec = {.sequence = given, .sequence_count = given_count};
    assert_ok(tfc_order_make(&s.ir, &spec, &sequence, &count));
    assert_int_equal(count, alive);
    same_order(sequence, wanted, count);
    free(sequence);
    // By node, or by a list schedule on several devices; `first` is followed on one as well.
    bool one = true, priorities = round % 5 < 2;
    uint16_t device = UINT16_MAX;
    for (uint32_t i = 0; i < n; i++) {
      const struct tfc_ir_op *op = &s.ir.ops.data[i];
      first[i] = tfc_random_below(&r, 2) ? NAN : (double)tfc_random_below(&r, 5);
      keys[i] = op->joint || op->def == &update ? -1.0 : op->node;
      if (op->dead || op->joint) continue;
      one &= device == UINT16_MAX || device == op->device;
      device = op->device;
    }
    for (uint32_t i = n; i < MOST_OPS; i++) first[i] = NAN;
    if (one && !priorities)
      keyed(&s.ir, keys, wanted);
    else
      assert_int_equal(scheduled(&s.ir, priorities ? first : NULL, wanted), alive);
    assert_ok(tfc_order_make(&s.ir, &(struct tfc_run_spec){.order = priorities ? first : NULL}, &sequence, &count));
    assert_int_equal(count, alive);
    same_order(sequence, wanted, count);
    // The times of that order.
    struct tfc_order_graph g;
    double idle[MOST_OPS + 1], own_idle[MOST_OPS], us = 0, best, other_us, dummy[MOST_OPS];
    bool waits[MOST_OPS] = {0};
    assert_ok(tfc_order_graph_make(&s.ir, &g));
    memset(idle, 0, sizeof idle);
    assert_ok(tfc_order_replay(&s.ir, &g, sequence, count, idle, waits, &us));
    best = replayed(&s.ir, sequence, count, own_idle);
    assert_true(us == best);
    for (uint32_t i = 0; i < count; i++) {
      bool any = false;
      for (uint32_t k = 0; k < n; k++) any |= before_of[sequence[i]][k];
      assert_true(idle[i] == own_idle[i]);
      assert_int_equal(waits[sequence[i]], any);
    }
    tfc_order_graph_deinit(&g);
    // Better orders of the same operations, starting from the one in which they are numbered.
    if (devices > 1) {
      uint32_t by_path[MOST_OPS], by_place[MOST_OPS], *improved = NULL, improved_count = 0;
      double place[MOST_OPS];
      bool better = false;
      for (uint32_t i = 0; i < n; i++) keys[i] = i;
      keyed(&s.ir, keys, wanted);
      for (uint32_t i = 0; i < MOST_OPS; i++) place[i] = NAN;
      for (uint32_t i = alive; i-- > 0;) place[s.ir.ops.data[wanted[i]].node] = i;
      scheduled(&s.ir, NULL, by_path);
      scheduled(&s.ir, place, by_place);
      double given_us = replayed(&s.ir, wanted, alive, dummy);
      us = replayed(&s.ir, by_path, alive, dummy), other_us = replayed(&s.ir, by_place, alive, dummy);
      assert_ok(tfc_order_improve(&s.ir, wanted, alive, &improved, &improved_count, &better));
      assert_int_equal(improved_count, alive);
      assert_int_equal(better, us < given_us || other_us < given_us);
      same_order(improved, other_us < us && other_us < given_us ? by_place : by_path, alive);
      free(improved);
    }
    free(sequence);
    step_end(&s);
  }
  struct step s;
  step_begin(&s, 1, false);
  add_op(&s, 0, 1);
  uint32_t unknown = MOST_OPS, *sequence = NULL, count = 0;
  struct tfc_run_spec spec = {.sequence = &unknown, .sequence_count = 1};
  assert_fails(tfc_order_make(&s.ir, &spec, &sequence, &count), TFC_INVALID_ARGUMENT, "names node 40 of 40");
  add_op(&s, 0, 1);
  add_edge(&s, 0, 1);
  add_edge(&s, 1, 0);
  assert_fails(tfc_order_make(&s.ir, &(struct tfc_run_spec){0}, &sequence, &count), TFC_INTERNAL, "2 of 2 operations");
  step_end(&s);
}

// --- Idle time -------------------------------------------------------------------------------------------------------
// Device 1 computes a (10 µs), waits 20 µs longer for device 0's b (which takes 25 µs and arrives after 5), computes c,
// which reads b, then p and the q that reads p. p depends on nothing.
static void fill(double long_us, double p_us, bool held, const char *expected) {
  struct step s;
  struct tfc_order_graph g;
  step_begin(&s, 2, false);
  uint32_t a = add_op(&s, 1, 10), b = add_op(&s, 0, long_us), c = add_op(&s, 1, 40), p = add_op(&s, 1, p_us),
           q = add_op(&s, 1, 10);
  uint32_t sequence[] = {b, a, c, p, q};
  add_input(&s, c, add_output(&s, b, 0));
  add_input(&s, q, add_output(&s, p, 0));
  s.ir.ops.data[p].prepared = true;
  if (held) add_edge(&s, b, p);
  assert_ok(tfc_order_graph_make(&s.ir, &g));
  assert_ok(tfc_order_fill_idle(&s.ir, &g, sequence, 5));
  for (int i = 0; i < 5; i++) assert_int_equal(sequence[i], expected[i] - '0');
  tfc_order_graph_deinit(&g);
  step_end(&s);
}

static void idle(void **state) {
  (void)state;
  fill(25, 20, false, "10324"); // the operation fits exactly
  fill(25, 20.5, false, "10234");
  fill(25, 3, false, "10324");
  fill(24, 3, false, "10234"); // a wait of 19 µs is too short to be used
  fill(25, 20, true, "10234"); // the operation waits for another one
  // Two of which one fits: the later one moves. With room for both, both do, in their order.
  for (int room = 0; room < 2; room++) {
    struct step s;
    struct tfc_order_graph g;
    step_begin(&s, 2, false);
    uint32_t b = add_op(&s, 0, room ? 115 : 95), c = add_op(&s, 1, 40), p = add_op(&s, 1, 60), q = add_op(&s, 1, 60);
    uint32_t sequence[] = {b, c, p, q};
    add_input(&s, c, add_output(&s, b, 0));
    s.ir.ops.data[p].prepared = s.ir.ops.data[q].prepared = true;
    assert_ok(tfc_order_graph_make(&s.ir, &g));
    assert_ok(tfc_order_fill_idle(&s.ir, &g, sequence, 4));
    assert_int_equal(sequence[1], room ? p : q);
    assert_int_equal(sequence[2], room ? q : c);
    assert_int_equal(sequence[3], room ? c : p);
    // The second continues the first: where it goes, the first must have been.
    uint32_t again[] = {b, c, p, q};
    add_input(&s, q, add_output(&s, p, 0));
    s.ir.ops.data[q].goes_on = true;
    tfc_order_graph_deinit(&g);
    assert_ok(tfc_order_graph_make(&s.ir, &g));
    assert_ok(tfc_order_fill_idle(&s.ir, &g, again, 4));
    uint32_t at_p = 0, at_q = 0;
    for (uint32_t i = 0; i < 4; i++) {
      if (again[i] == p) at_p = i;
      if (again[i] == q) at_q = i;
    }
    assert_int_equal(at_q, 2);
    assert_int_equal(at_p, 1);
    tfc_order_graph_deinit(&g);
    step_end(&s);
  }
}

// --- Who waits for whom ----------------------------------------------------------------------------------------------
static bool ended[MOST_ITEMS][MOST_ITEMS]; // [item][other] has certainly ended when `item` starts

static void find_ended(const struct tfc_arrangement *a) {
  uint32_t last[64], previous[MOST_ITEMS];
  assert_true(a->item_count <= MOST_ITEMS && a->queue_count <= 64);
  memset(ended, 0, sizeof ended);
  for (uint32_t q = 0; q < a->queue_count; q++) last[q] = TFC_NONE32;
  for (uint32_t i = 0; i < a->item_count; i++) {
    const struct tfc_item *it = &a->items[i];
    previous[i] = last[it->queue];
    last[it->queue] = i;
    assert_int_equal(it->position, previous[i] == TFC_NONE32 ? 0 : a->items[previous[i]].position + 1);
    for (uint32_t k = 0; k <= it->wait_count; k++) {
      uint32_t from = previous[i];
      for (uint32_t o = 0; k > 0 && o < a->item_count; o++) {
        const struct tfc_wait *w = &a->waits[it->wait_begin + k - 1];
        if (a->items[o].queue == w->queue && a->items[o].position == w->position) from = o;
      }
      if (from == TFC_NONE32) continue;
      assert_true(from < i);
      if (k > 0) assert_true(a->items[from].signals);
      ended[i][from] = true;
      for (uint32_t o = 0; o < a->item_count; o++) ended[i][o] |= ended[from][o];
    }
  }
  for (uint32_t q = 0; q < a->queue_count; q++) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->item_count; i++) count += a->items[i].queue == q;
    assert_int_equal(a->queue_items[q], count);
    if (last[q] != TFC_NONE32) assert_true(a->items[last[q]].signals);
  }
  for (uint32_t i = 0; i < a->item_count; i++) {
    for (uint32_t q = 0; q < a->queue_count; q++) {
      uint32_t count = 0;
      for (uint32_t o = 0; o < a->item_count; o++) count += ended[i][o] && a->items[o].queue == q;
      assert_int_equal(a->clocks[i * a->queue_count + q], count);
    }
    for (uint32_t k = 0; k < a->items[i].wait_count; k++) { // checks that no wait follows from the other waits
      struct tfc_wait w = a->waits[a->items[i].wait_begin + k];
      for (uint32_t o = 0; o < a->item_count; o++) {
        if (a->items[o].queue != w.queue || a->items[o].position != w.position) continue;
        if (previous[i] != TFC_NONE32) assert_false(ended[previous[i]][o] || previous[i] == o);
        for (uint32_t m = 0; m < a->items[i].wait_count; m++) {
          struct tfc_wait other = a->waits[a->items[i].wait_begin + m];
          for (uint32_t x = 0; x < a->item_count && m != k; x++)
            if (a->items[x].queue == other.queue && a->items[x].position == other.position) assert_false(ended[x][o]);
        }
      }
    }
  }
}

// Operations that must have ended, through joints.
static void comes_after(const struct tfc_arrangement *a, const struct tfc_ir *ir, uint32_t item, uint32_t op) {
  if (!ir->ops.data[op].joint) {
    assert_true(ended[item][a->item_of_op[op]]);
    return;
  }
  for (uint32_t from = 0; from < ir->ops.count; from++)
    if (before_of[op][from]) comes_after(a, ir, item, from);
}

static uint16_t home(const struct tfc_ir *ir, const struct tfc_ir_value *v) {
  if (v->kind != TFC_IR_OP) return (uint16_t)ir->device_count;
  const struct tfc_ir_op *op = &ir->ops.data[v->op];
  bool host = ir->devices[op->device]->info.address_space && (op->host.outputs >> v->output & 1);
  return host ? (uint16_t)ir->device_count : op->device;
}

// Where the operation reads its input: the copy's index, or TFC_NONE32 for the value itself.
static uint32_t read_from(const struct tfc_ir *ir, const struct tfc_arrangement *a, uint32_t id, uint32_t k) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  uint32_t v = op->inputs[k].value;
  bool own = ir->devices[op->device]->info.address_space, host = own && (op->host.inputs >> k & 1);
  uint16_t there = host ? (uint16_t)ir->device_count : op->device, from = home(ir, &ir->values.data[v]);
  if (!own || from == there) return TFC_NONE32;
  for (uint32_t t = 0; t < a->transfer_count; t++)
    if (a->transfers[t].value == v && a->transfers[t].target == there) {
      assert_int_equal(a->transfers[t].source, from);
      return t;
    }
  fail_msg("no copy of value %u to %u", v, there);
  return TFC_NONE32;
}

static void check_waits(const struct tfc_ir *ir, const struct tfc_arrangement *a, const uint32_t *sequence,
                        uint32_t count, const struct tfc_lane_schedule *lanes) {
  find_ended(a);
  uint32_t copies = 0, seen = 0;
  bool used[MOST_ITEMS] = {0};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t id = sequence[i], item = a->item_of_op[id];
    const struct tfc_ir_op *op = &ir->ops.data[id];
    if (op->joint) continue;
    seen++;
    assert_int_equal(a->items[item].op, id);
    assert_int_equal(a->items[item].queue, lanes ? lanes->lane[id] : op->device);
    for (uint32_t from = 0; from < ir->ops.count; from++)
      if (before_of[id][from]) comes_after(a, ir, item, from);
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t t = read_from(ir, a, id, k);
      if (t == TFC_NONE32) continue;
      used[t] = true;
      assert_true(a->transfers[t].item != TFC_NONE32 && ended[item][a->transfers[t].item]);
    }
  }
  for (uint32_t t = 0; t < a->transfer_count; t++) {
    const struct tfc_plan_copy *c = &a->transfers[t];
    if (c->item == TFC_NONE32) continue;
    copies++;
    assert_true(used[t]);
    assert_int_equal(a->items[c->item].transfer, t);
    assert_int_equal(a->items[c->item].op, TFC_NONE32);
    assert_int_equal(a->items[c->item].queue,
                     ir->device_count + (c->target == ir->device_count ? c->source : c->target));
    if (ir->values.data[c->value].kind == TFC_IR_OP) comes_after(a, ir, c->item, ir->values.data[c->value].op);
  }
  assert_int_equal(a->item_count, seen + copies);
}

// --- Memory ----------------------------------------------------------------------------------------------------------
struct held { // memory of a value or a copy: what writes it, what reads it
  uint64_t offset, bytes;
  uint16_t location;
  uint32_t writer, users[MOST_ITEMS], user_count;
  bool fetched;
};

static bool all_ended(const struct held *h, uint32_t item) {
  for (uint32_t i = 0; i < h->user_count; i++)
    if (!ended[item][h->users[i]]) return false;
  return !h->fetched;
}

// `late` is computed in the memory of `early`, which its operation reads and nothing else reads later.
static bool in_place(const struct tfc_ir *ir, const struct tfc_arrangement *a, const struct held *early,
                     const struct held *late) {
  if (late->writer == early->writer || early->fetched || early->offset != late->offset) return false;
  if (a->items[late->writer].op == TFC_NONE32 || early->bytes != late->bytes) return false;
  bool reads = false;
  for (uint32_t i = 0; i < early->user_count; i++) {
    if (early->users[i] == late->writer)
      reads = true;
    else if (!ended[late->writer][early->users[i]])
      return false;
  }
  return reads && ir->ops.data[a->items[late->writer].op].def->flags & (TFC_OP_INPLACE | TFC_OP_INPLACE_FIRST);
}

static void check_memory(const struct tfc_ir *ir, const struct tfc_arrangement *a, const struct tfc_memory_plan *plan,
                         uint64_t *sizes, uint64_t *peaks) {
  static struct held held[MOST_ITEMS];
  uint32_t count = 0, of_value[MOST_ITEMS], of_copy[MOST_ITEMS];
  for (uint32_t v = 0; v < ir->values.count; v++) {
    const struct tfc_ir_value *value = &ir->values.data[v];
    of_value[v] = TFC_NONE32;
    if (value->kind != TFC_IR_OP || ir->ops.data[value->op].dead || value->alias != TFC_NONE32) continue;
    struct held h = {plan->value_offset[v], value->bytes, home(ir, value), a->item_of_op[value->op], {0}, 1,
                     value->fetched};
    h.users[0] = h.writer;
    held[of_value[v] = count++] = h;
  }
  for (uint32_t v = 0; v < ir->values.count; v++)
    if (ir->values.data[v].alias != TFC_NONE32 && !ir->ops.data[ir->values.data[v].op].dead)
      of_value[v] = of_value[ir->values.data[v].alias];
  for (uint32_t t = 0; t < a->transfer_count; t++) {
    const struct tfc_plan_copy *c = &a->transfers[t];
    of_copy[t] = TFC_NONE32;
    if (c->item == TFC_NONE32) continue;
    struct held h = {plan->copy_offset[t], ir->values.data[c->value].bytes, c->target, c->item, {c->item}, 1, false};
    held[of_copy[t] = count++] = h;
    if (of_value[c->value] != TFC_NONE32)
      held[of_value[c->value]].users[held[of_value[c->value]].user_count++] = c->item;
  }
  for (uint32_t i = 0; i < a->item_count; i++) {
    if (a->items[i].op == TFC_NONE32) continue;
    const struct tfc_ir_op *op = &ir->ops.data[a->items[i].op];
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t t = read_from(ir, a, a->items[i].op, k);
      uint32_t h = t != TFC_NONE32 ? of_copy[t] : of_value[op->inputs[k].value];
      if (h != TFC_NONE32) held[h].users[held[h].user_count++] = i;
    }
    for (uint32_t k = 0; k < op->output_count; k++) { // a view is held by its own readers, too
      uint32_t h = of_value[op->outputs[k]];
      if (h != TFC_NONE32 && held[h].writer != i) held[h].users[held[h].user_count++] = i;
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    struct held *x = &held[i];
    assert_true(x->offset != UINT64_MAX && x->offset % 64 == 0);
    assert_true(x->offset + x->bytes <= plan->size[x->location]);
    for (uint32_t k = 0; k < i; k++) {
      struct held *y = &held[k];
      if (x->location != y->location || x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes)
        continue;
      bool fine = all_ended(x, y->writer) || all_ended(y, x->writer) || in_place(ir, a, x, y) || in_place(ir, a, y, x);
      if (!fine)
        fail_msg("%u and %u share memory: [%llu, +%llu) and [%llu, +%llu)", i, k, (unsigned long long)x->offset,
                 (unsigned long long)x->bytes, (unsigned long long)y->offset, (unsigned long long)y->bytes);
    }
  }
  uint64_t peak = 0; // on one device: what must be held at one time, if nothing is computed in place
  for (uint32_t i = 0; i < a->item_count; i++) {
    uint64_t sum = 0;
    for (uint32_t h = 0; h < count; h++) {
      bool later = held[h].fetched;
      for (uint32_t u = 0; u < held[h].user_count; u++) later |= held[h].users[u] >= i;
      if (held[h].writer <= i && later) sum += held[h].bytes ? (held[h].bytes + 63) / 64 * 64 : 64;
    }
    if (sum > peak) peak = sum;
  }
  *peaks += peak;
  *sizes += plan->size[0];
}

static void memory(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 11);
  uint64_t sizes = 0, peaks = 0, own_sizes = 0, own_peaks = 0;
  for (int round = 0; round < 300; round++) {
    struct step s;
    struct tfc_arena arena = {0};
    struct tfc_arrangement a;
    struct tfc_memory_plan plan;
    uint32_t devices = 1 + (uint32_t)round % 3, *sequence = NULL, count = 0;
    random_step(&s, &r, devices, round / 3 % 2, false);
    find_dependencies(&s.ir);
    assert_ok(tfc_order_make(&s.ir, &(struct tfc_run_spec){0}, &sequence, &count));
    assert_ok(tfc_arrange(&s.ir, sequence, count, NULL, &arena, &a));
    check_waits(&s.ir, &a, sequence, count, NULL);
    assert_ok(tfc_memory_plan_make(&s.ir, &a, &arena, &plan));
    bool one = devices == 1 && round / 3 % 2 == 0;
    check_memory(&s.ir, &a, &plan, one ? &sizes : &own_sizes, one ? &peaks : &own_peaks);
    free(sequence);
    tfc_arena_deinit(&arena);
    step_end(&s);
  }
  // On one device what is held at the same time is nearly all that is needed; computing in place makes up for gaps.
  assert_true(sizes > 0 && (double)sizes <= 1.01 * (double)peaks);
}

// A chain of equal tensors needs two places, one if each is computed in place of the last; one more for each fetched.
static uint64_t chain_size(const struct tfc_op_def *def, uint32_t fetched, uint64_t bytes) {
  struct step s;
  struct tfc_arena arena = {0};
  struct tfc_arrangement a;
  struct tfc_memory_plan plan;
  uint32_t *sequence = NULL, count = 0, last = TFC_NONE32;
  step_begin(&s, 1, false);
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t op = add_op(&s, 0, 1);
    if (last != TFC_NONE32) add_input(&s, op, last);
    s.ir.ops.data[op].def = def;
    last = add_output(&s, op, bytes);
    s.ir.values.data[last].fetched = i >= 3 && i < 3 + fetched;
  }
  find_dependencies(&s.ir);
  assert_ok(tfc_order_make(&s.ir, &(struct tfc_run_spec){0}, &sequence, &count));
  assert_ok(tfc_arrange(&s.ir, sequence, count, NULL, &arena, &a));
  assert_ok(tfc_memory_plan_make(&s.ir, &a, &arena, &plan));
  uint64_t size = plan.size[0];
  assert_true(plan.size[1] == 0);
  free(sequence);
  tfc_arena_deinit(&arena);
  step_end(&s);
  return size;
}

static void chains(void **state) {
  (void)state;
  assert_true(chain_size(&plain, 0, 100) == 2 * 128);
  assert_true(chain_size(&anywhere, 0, 100) == 128);
  assert_true(chain_size(&first_only, 0, 64) == 64);
  assert_true(chain_size(&plain, 1, 65) == 3 * 128);
  assert_true(chain_size(&anywhere, 1, 100) == 2 * 128);
  assert_true(chain_size(&anywhere, 2, 100) == 3 * 128);
  assert_true(chain_size(&plain, 0, 0) == 2 * 64);
}

// --- Lanes -----------------------------------------------------------------------------------------------------------
static uint64_t ticks(double us) {
  return (uint64_t)llround(us * 1e3 / tfc_ns_per_tick());
}

static struct tfc_op_time takes(double wall, double split, double work) {
  return (struct tfc_op_time){ticks(wall), ticks(split), ticks(work)};
}

static void close_to(double a, double b) {
  if (fabs(a - b) > 0.02) fail_msg("%g is not %g", a, b);
}

// What lanes wait for: paths over `after`; operations that touch the same memory are ordered if one writes it.
static void check_lanes(const struct tfc_ir *ir, const struct tfc_arrangement *a, const struct tfc_memory_plan *plan,
                        const struct tfc_lane_schedule *by, const struct tfc_lanes *l) {
  static bool path[MOST_OPS][MOST_OPS];
  uint32_t step_of[MOST_OPS], before[MOST_OPS] = {0}, item = 0;
  memset(path, 0, sizeof path);
  assert_int_equal(l->count, by->lanes);
  assert_int_equal(l->step_count, by->sequence_count);
  for (uint32_t i = 0; i < l->step_count; i++) {
    const struct tfc_lane_step *step = &l->steps[i];
    uint32_t id = by->sequence[i];
    step_of[id] = i;
    bool joint = ir->ops.data[id].joint;
    assert_int_equal(step->op, joint ? TFC_NONE32 : item++);
    assert_int_equal(step->lanes, joint ? 0 : by->helpers[id] | 1u << by->lane[id]);
    assert_int_equal(step->open, by->open[id]);
    if (!joint) assert_int_equal(a->items[step->op].op, id);
    for (uint32_t k = 0; k < step->after_count; k++) {
      uint32_t to = l->after[step->after_begin + k];
      assert_true(to > i);
      before[to]++;
      path[to][i] = true;
    }
  }
  for (uint32_t i = 0; i < l->step_count; i++) {
    assert_int_equal(l->steps[i].before, before[i]);
    for (uint32_t k = 0; k < i; k++)
      for (uint32_t m = 0; m < k && path[i][k]; m++) path[i][m] |= path[k][m];
  }
  for (uint32_t to = 0; to < ir->ops.count; to++)
    for (uint32_t from = 0; from < ir->ops.count; from++)
      if (before_of[to][from]) assert_true(path[step_of[to]][step_of[from]]);
  for (uint32_t x = 0; x < ir->values.count; x++) { // writes of x, uses of y
    const struct tfc_ir_value *vx = &ir->values.data[x];
    if (vx->kind != TFC_IR_OP || vx->alias != TFC_NONE32 || ir->ops.data[vx->op].dead) continue;
    for (uint32_t id = 0; id < ir->ops.count; id++) {
      const struct tfc_ir_op *op = &ir->ops.data[id];
      for (uint32_t k = 0; k < op->input_count + op->output_count && !op->dead && id != vx->op; k++) {
        bool output = k >= op->input_count;
        uint32_t y = output ? op->outputs[k - op->input_count] : op->inputs[k].value;
        if (output && ir->values.data[y].alias != TFC_NONE32) continue;
        while (ir->values.data[y].alias != TFC_NONE32) y = ir->values.data[y].alias;
        uint64_t at = plan->value_offset[x], other = plan->value_offset[y];
        if (!vx->bytes || !ir->values.data[y].bytes || other == UINT64_MAX || at >= other + ir->values.data[y].bytes ||
            other >= at + vx->bytes)
          continue;
        uint32_t i = step_of[vx->op], m = step_of[id];
        assert_true(i < m ? path[m][i] : path[i][m]);
      }
    }
  }
}

static void lanes(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 2);
  for (int round = 0; round < 150; round++) {
    struct step s;
    struct tfc_arena arena = {0};
    struct tfc_arrangement a;
    struct tfc_memory_plan plan;
    struct tfc_lane_schedule by;
    const struct tfc_lanes *l = NULL;
    struct tfc_op_time times[MOST_OPS];
    uint32_t cores = 1 + (uint32_t)round % 5;
    double sum = 0, one = 0, span = 0, end[MOST_OPS] = {0}, busy[16] = {0};
    random_step(&s, &r, 1, false, false);
    uint32_t n = (uint32_t)s.ir.ops.count, alive = find_dependencies(&s.ir);
    for (uint32_t i = 0; i < n; i++) { // no loop can be split, so the times are known
      double us = 1 + (double)tfc_random_below(&r, 20);
      times[i] = s.ir.ops.data[i].joint || s.ir.ops.data[i].dead ? takes(0, 0, 0) : takes(us, 0, 0);
      if (times[i].wall) sum += us + 0.1, one += us;
    }
    assert_ok(tfc_lane_schedule_make(&s.ir, times, cores, &by));
    assert_int_equal(by.lanes, cores);
    assert_int_equal(by.sequence_count, alive);
    for (uint32_t i = 0; i < alive; i++) { // the times of this schedule
      uint32_t id = by.sequence[i];
      double start = 0, us = (double)times[id].wall * tfc_ns_per_tick() * 1e-3 + 0.1;
      for (uint32_t from = 0; from < n; from++)
        if (before_of[id][from]) start = fmax(start, end[from]);
      end[id] = start;
      if (!s.ir.ops.data[id].joint) {
        assert_true(by.lane[id] < cores && !by.helpers[id] && !by.open[id]);
        end[id] = busy[by.lane[id]] = fmax(start, busy[by.lane[id]]) + us;
      }
      span = fmax(span, end[id]);
    }
    assert_true(span <= by.predicted_us + 0.02);
    assert_true(by.predicted_us >= sum / cores - 0.02 && by.predicted_us <= sum + 0.02);
    if (cores == 1) close_to(by.predicted_us, sum);
    close_to(by.one_by_one_us, one);
    assert_ok(tfc_arrange(&s.ir, by.sequence, alive, &by, &arena, &a));
    check_waits(&s.ir, &a, by.sequence, alive, &by);
    assert_ok(tfc_memory_plan_make(&s.ir, &a, &arena, &plan));
    check_memory(&s.ir, &a, &plan, &(uint64_t){0}, &(uint64_t){0});
    assert_ok(tfc_lane_steps_make(&s.ir, &a, &plan, &by, &arena, &l));
    check_lanes(&s.ir, &a, &plan, &by, l);
    tfc_lane_schedule_deinit(&by);
    tfc_arena_deinit(&arena);
    step_end(&s);
  }
}

// The predicted time of `count` operations on `cores` lanes. With `chain`, each waits for the one before it.
static double predicted(uint32_t count, const struct tfc_op_time *times, bool chain, uint32_t cores,
                        struct tfc_lane_schedule *out) {
  struct step s;
  step_begin(&s, 1, false);
  for (uint32_t i = 0; i < count; i++) add_op(&s, 0, 1);
  for (uint32_t i = 1; i < count && chain; i++) add_edge(&s, i - 1, i);
  tfc_lane_schedule_deinit(out);
  assert_ok(tfc_lane_schedule_make(&s.ir, times, cores, out));
  step_end(&s);
  return out->predicted_us;
}

static void widths(void **state) {
  (void)state;
  struct tfc_lane_schedule by = {0};
  struct tfc_op_time alone[] = {takes(100, 0, 0), takes(100, 0, 0), takes(100, 0, 0), takes(100, 0, 0)};
  close_to(predicted(4, alone, false, 2, &by), 200.2);
  close_to(predicted(4, alone, false, 4, &by), 100.1);
  close_to(predicted(4, alone, true, 4, &by), 400.4);
  close_to(by.one_by_one_us, 400);
  // 100 µs of work that took 50 on two cores: 51.1 on two lanes, with what splitting costs. On one it takes 100.1.
  struct tfc_op_time split[] = {takes(50, 50, 100), takes(50, 50, 100)};
  close_to(predicted(1, split, false, 2, &by), 51.1);
  assert_int_equal(by.helpers[0] | 1u << by.lane[0], 3);
  close_to(predicted(2, split, true, 2, &by), 102.2);
  close_to(predicted(2, split, false, 2, &by), 100.1);
  assert_int_equal(by.helpers[0] | by.helpers[1], 0);
  assert_int_equal(by.lane[0] ^ by.lane[1], 1);
  close_to(predicted(1, split, false, 1, &by), 100.1);
  // 30 µs in one piece, and 100 µs of work that took 60 on two cores: with a loss of 20, which both lanes share.
  struct tfc_op_time mixed[] = {takes(90, 60, 100)};
  close_to(predicted(1, mixed, false, 2, &by), 30 + 60 + 0.1 + 1);
  // A gain of less than 8 % is not worth a second lane.
  struct tfc_op_time poor[] = {takes(100, 8, 15)};
  close_to(predicted(1, poor, false, 2, &by), 107.1);
  assert_int_equal(by.helpers[0], 0);
  // Idle lanes may help with what is long and splits well.
  struct tfc_op_time open[] = {takes(80, 80, 160), takes(80, 80, 99), takes(45, 45, 90)};
  predicted(3, open, false, 2, &by);
  assert_true(by.open[0]);
  assert_false(by.open[1]); // not open, because it cannot be split well
  assert_false(by.open[2]); // not open, because it is short
  tfc_lane_schedule_deinit(&by);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(orders), cmocka_unit_test(idle),  cmocka_unit_test(memory),
      cmocka_unit_test(chains), cmocka_unit_test(lanes), cmocka_unit_test(widths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
