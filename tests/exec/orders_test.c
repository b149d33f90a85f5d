// Tests the order of operations in static plans on random steps, against a second, plain implementation; and the idle
// time that packing fills.
#include "runtime/exec/plan/idle.h"
#include "tests/exec/random_step.h"

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
    uint32_t best = TFC_NONE;
    for (uint32_t i = 0; i < ir->ops.count; i++) {
      bool ready = !done[i] && !ir->ops.data[i].dead;
      for (uint32_t k = 0; k < ir->ops.count; k++) ready &= !before_of[i][k] || done[k];
      if (ready && (best == TFC_NONE || keys[i] < keys[best])) best = i;
    }
    if (best == TFC_NONE) return;
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
    uint32_t event = TFC_NONE;
    for (uint32_t i = 0; i < n; i++) {
      if (state[i] != COMES && state[i] != RUNS) continue;
      bool sooner =
          event == TFC_NONE || at[i] < at[event] || (at[i] == at[event] && state[i] == RUNS && state[event] == COMES);
      if (sooner) event = i;
    }
    if (event != TFC_NONE && at[event] == now) {
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
      uint32_t best = TFC_NONE;
      bool busy = false;
      for (uint32_t i = 0; i < n; i++) {
        if (ir->ops.data[i].device != d || ir->ops.data[i].joint) continue;
        busy |= state[i] == RUNS;
        if (state[i] != READY) continue;
        double a = first && !isnan(first[ir->ops.data[i].node]) ? first[ir->ops.data[i].node] : INFINITY, b = 0;
        if (best != TFC_NONE)
          b = first && !isnan(first[ir->ops.data[best].node]) ? first[ir->ops.data[best].node] : INFINITY;
        if (best == TFC_NONE || a < b || (a == b && remaining[i] > remaining[best])) best = i;
      }
      if (busy || best == TFC_NONE) continue;
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
  // Two operations could fill the wait. If only one of them fits, the later one is moved into it; if there is room for
  // both, both are moved, and keep their order.
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(orders), cmocka_unit_test(idle)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
