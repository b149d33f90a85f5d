// Tests the later stages that make a static plan on random steps, against what must hold for every step: who waits for
// whom, which tensors share memory, and the lanes of one device.
#include "tests/exec/random_step.h"

#include "runtime/base/clock.h"
#include "runtime/exec/plan/lane_steps.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/segment_order.h"

enum { MOST_ITEMS = 256 };

// --- Who waits for whom ----------------------------------------------------------------------------------------------
static bool ended[MOST_ITEMS][MOST_ITEMS]; // [item][other] has certainly ended when `item` starts

static void find_ended(const struct tfc_arrangement *a) {
  uint32_t last[64], previous[MOST_ITEMS];
  assert_true(a->item_count <= MOST_ITEMS && a->queue_count <= 64);
  memset(ended, 0, sizeof ended);
  for (uint32_t q = 0; q < a->queue_count; q++) last[q] = TFC_NONE;
  for (uint32_t i = 0; i < a->item_count; i++) {
    const struct tfc_item *it = &a->items[i];
    previous[i] = last[it->queue];
    last[it->queue] = i;
    assert_int_equal(it->position, previous[i] == TFC_NONE ? 0 : a->items[previous[i]].position + 1);
    for (uint32_t k = 0; k <= it->wait_count; k++) {
      uint32_t from = previous[i];
      for (uint32_t o = 0; k > 0 && o < a->item_count; o++) {
        const struct tfc_wait *w = &a->waits[it->wait_begin + k - 1];
        if (a->items[o].queue == w->queue && a->items[o].position == w->position) from = o;
      }
      if (from == TFC_NONE) continue;
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
    if (last[q] != TFC_NONE) assert_true(a->items[last[q]].signals);
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
        if (previous[i] != TFC_NONE) assert_false(ended[previous[i]][o] || previous[i] == o);
        for (uint32_t m = 0; m < a->items[i].wait_count; m++) {
          struct tfc_wait other = a->waits[a->items[i].wait_begin + m];
          for (uint32_t x = 0; x < a->item_count && m != k; x++)
            if (a->items[x].queue == other.queue && a->items[x].position == other.position) assert_false(ended[x][o]);
        }
      }
    }
  }
}

// Checks that operation `op` has ended before the item begins. A joint runs nothing itself, so for a joint this checks
// the operations that it waits for.
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

// Returns the index of the transfer whose copy operation `id` reads as input k, or TFC_NONE if it reads the value
// itself.
static uint32_t read_from(const struct tfc_ir *ir, const struct tfc_arrangement *a, uint32_t id, uint32_t k) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  uint32_t v = op->inputs[k].value;
  bool own = ir->devices[op->device]->info.address_space, host = own && (op->host.inputs >> k & 1);
  uint16_t there = host ? (uint16_t)ir->device_count : op->device, from = home(ir, &ir->values.data[v]);
  if (!own || from == there) return TFC_NONE;
  for (uint32_t t = 0; t < a->transfer_count; t++)
    if (a->transfers[t].value == v && a->transfers[t].target == there) {
      assert_int_equal(a->transfers[t].source, from);
      return t;
    }
  fail_msg("no copy of value %u to %u", v, there);
  return TFC_NONE;
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
      if (t == TFC_NONE) continue;
      used[t] = true;
      assert_true(a->transfers[t].item != TFC_NONE && ended[item][a->transfers[t].item]);
    }
  }
  for (uint32_t t = 0; t < a->transfer_count; t++) {
    const struct tfc_plan_copy *c = &a->transfers[t];
    if (c->item == TFC_NONE) continue;
    copies++;
    assert_true(used[t]);
    assert_int_equal(a->items[c->item].transfer, t);
    assert_int_equal(a->items[c->item].op, TFC_NONE);
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
  if (a->items[late->writer].op == TFC_NONE || early->bytes != late->bytes) return false;
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
                         uint64_t *out_size, uint64_t *out_peak) {
  static struct held held[MOST_ITEMS];
  uint32_t count = 0, of_value[MOST_ITEMS], of_copy[MOST_ITEMS];
  for (uint32_t v = 0; v < ir->values.count; v++) {
    const struct tfc_ir_value *value = &ir->values.data[v];
    of_value[v] = TFC_NONE;
    if (value->kind != TFC_IR_OP || ir->ops.data[value->op].dead || value->alias != TFC_NONE) continue;
    struct held h = {plan->value_offset[v], value->bytes, home(ir, value), a->item_of_op[value->op], {0}, 1,
                     value->fetched};
    h.users[0] = h.writer;
    held[of_value[v] = count++] = h;
  }
  for (uint32_t v = 0; v < ir->values.count; v++)
    if (ir->values.data[v].alias != TFC_NONE && !ir->ops.data[ir->values.data[v].op].dead)
      of_value[v] = of_value[ir->values.data[v].alias];
  for (uint32_t t = 0; t < a->transfer_count; t++) {
    const struct tfc_plan_copy *c = &a->transfers[t];
    of_copy[t] = TFC_NONE;
    if (c->item == TFC_NONE) continue;
    struct held h = {plan->copy_offset[t], ir->values.data[c->value].bytes, c->target, c->item, {c->item}, 1, false};
    held[of_copy[t] = count++] = h;
    if (of_value[c->value] != TFC_NONE) held[of_value[c->value]].users[held[of_value[c->value]].user_count++] = c->item;
  }
  for (uint32_t i = 0; i < a->item_count; i++) {
    if (a->items[i].op == TFC_NONE) continue;
    const struct tfc_ir_op *op = &ir->ops.data[a->items[i].op];
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t t = read_from(ir, a, a->items[i].op, k);
      uint32_t h = t != TFC_NONE ? of_copy[t] : of_value[op->inputs[k].value];
      if (h != TFC_NONE) held[h].users[held[h].user_count++] = i;
    }
    for (uint32_t k = 0; k < op->output_count; k++) { // a view is held by its own readers, too
      uint32_t h = of_value[op->outputs[k]];
      if (h != TFC_NONE && held[h].writer != i) held[h].users[held[h].user_count++] = i;
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
  *out_peak = peak;
  *out_size = plan->size[0];
}

static void memory(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 11);
  uint64_t sizes = 0, peaks = 0;
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
    uint64_t size, peak;
    check_memory(&s.ir, &a, &plan, &size, &peak);
    if (devices == 1 && round / 3 % 2 == 0) sizes += size, peaks += peak;
    free(sequence);
    tfc_arena_deinit(&arena);
    step_end(&s);
  }
  // On one device an arena is hardly larger than the most that is held at the same time: gaps cost little, because many
  // operations compute in place.
  assert_true(sizes > 0 && (double)sizes <= 1.01 * (double)peaks);
}

// A chain of equal tensors needs two places, one if each is computed in place of the last; one more for each fetched.
static uint64_t chain_size(const struct tfc_op_def *def, uint32_t fetched, uint64_t bytes) {
  struct step s;
  struct tfc_arena arena = {0};
  struct tfc_arrangement a;
  struct tfc_memory_plan plan;
  uint32_t *sequence = NULL, count = 0, last = TFC_NONE;
  step_begin(&s, 1, false);
  for (uint32_t i = 0; i < 8; i++) {
    uint32_t op = add_op(&s, 0, 1);
    if (last != TFC_NONE) add_input(&s, op, last);
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

// --- Side by side ----------------------------------------------------------------------------------------------------
// Operations that a device may run between two of its waits and signals are one segment. Returns the number of the
// segment of each item.
static void find_segments(const struct tfc_arrangement *a, uint32_t *segment) {
  uint32_t last[64], count = 0;
  for (uint32_t q = 0; q < a->queue_count; q++) last[q] = TFC_NONE;
  for (uint32_t i = 0; i < a->item_count; i++) {
    const struct tfc_item *it = &a->items[i];
    const uint32_t before = last[it->queue];
    const bool begins = it->op == TFC_NONE || before == TFC_NONE || it->wait_count || a->items[before].signals;
    segment[i] = begins ? count++ : segment[before];
    last[it->queue] = i;
  }
}

// The memory of its device that an operation uses: inputs are read, outputs are written.
struct use {
  uint64_t begin, end;
  bool writes;
};
static uint32_t find_uses(const struct tfc_ir *ir, const struct tfc_arrangement *a, const struct tfc_memory_plan *plan,
                          uint32_t id, struct use *out) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  uint32_t count = 0;
  for (uint32_t k = 0; k < op->input_count + op->output_count; k++) {
    const bool writes = k >= op->input_count;
    const uint32_t v = writes ? op->outputs[k - op->input_count] : op->inputs[k].value;
    const struct tfc_ir_value *value = &ir->values.data[v];
    uint64_t at = plan->value_offset[v];
    if (!value->bytes || (writes ? home(ir, value) != op->device : op->host.inputs >> k & 1)) continue;
    const uint32_t t = writes ? TFC_NONE : read_from(ir, a, id, k);
    if (t != TFC_NONE) at = plan->copy_offset[t];
    out[count++] = (struct use){at, at + value->bytes, writes};
  }
  return count;
}

// Operations of one segment that use the same memory are ordered if one writes it, and so are those that depend on each
// other. Returns the number of pairs that share memory.
static uint32_t check_sides(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                            const struct tfc_memory_plan *plan, const struct tfc_item_order *order) {
  static bool path[MOST_ITEMS][MOST_ITEMS]; // [item][earlier]
  uint32_t segment[MOST_ITEMS], shared = 0;
  find_segments(a, segment);
  memset(path, 0, sizeof path);
  for (uint32_t i = 0; i < a->item_count; i++) {
    struct use mine[8], other[8];
    if (a->items[i].op == TFC_NONE) continue;
    for (uint32_t e = order->begin[i]; e < order->end[i]; e++) {
      const uint32_t from = order->from[e];
      assert_true(from < i && a->items[from].queue == a->items[i].queue);
      if (segment[from] != segment[i]) continue;
      path[i][from] = true;
      for (uint32_t k = 0; k < from; k++) path[i][k] |= path[from][k];
    }
    const uint32_t mine_count = find_uses(ir, a, plan, a->items[i].op, mine);
    for (uint32_t k = 0; k < i; k++) {
      if (segment[k] != segment[i]) continue;
      if (before_of[a->items[i].op][a->items[k].op]) assert_true(path[i][k]);
      const uint32_t other_count = find_uses(ir, a, plan, a->items[k].op, other);
      bool shares = false;
      for (uint32_t m = 0; m < mine_count; m++)
        for (uint32_t o = 0; o < other_count; o++)
          shares |= (mine[m].writes || other[o].writes) && mine[m].begin < other[o].end && other[o].begin < mine[m].end;
      shared += shares;
      if (shares && !path[i][k]) fail_msg("operation %u does not wait for %u, whose memory it uses", i, k);
    }
  }
  return shared;
}

static void sides(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t shared = 0;
  tfc_random_init(&r, 5);
  for (int round = 0; round < 300; round++) {
    struct step s;
    struct tfc_arena arena = {0};
    struct tfc_arrangement a;
    struct tfc_memory_plan plan;
    struct tfc_item_order order;
    uint32_t devices = 1 + (uint32_t)round % 3, *sequence = NULL, count = 0;
    random_step(&s, &r, devices, true, false);
    find_dependencies(&s.ir);
    assert_ok(tfc_order_make(&s.ir, &(struct tfc_run_spec){0}, &sequence, &count));
    assert_ok(tfc_arrange(&s.ir, sequence, count, NULL, &arena, &a));
    assert_ok(tfc_memory_plan_make(&s.ir, &a, &arena, &plan));
    assert_ok(tfc_item_order_make(&s.ir, &a, &plan, &arena, &order));
    shared += check_sides(&s.ir, &a, &plan, &order);
    free(sequence);
    tfc_arena_deinit(&arena);
    step_end(&s);
  }
  assert_true(shared > 1000);
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
    assert_int_equal(step->op, joint ? TFC_NONE : item++);
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
    if (vx->kind != TFC_IR_OP || vx->alias != TFC_NONE || ir->ops.data[vx->op].dead) continue;
    for (uint32_t id = 0; id < ir->ops.count; id++) {
      const struct tfc_ir_op *op = &ir->ops.data[id];
      for (uint32_t k = 0; k < op->input_count + op->output_count && !op->dead && id != vx->op; k++) {
        bool output = k >= op->input_count;
        uint32_t y = output ? op->outputs[k - op->input_count] : op->inputs[k].value;
        if (output && ir->values.data[y].alias != TFC_NONE) continue;
        while (ir->values.data[y].alias != TFC_NONE) y = ir->values.data[y].alias;
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

// The schedule a second time, for operations that cannot be split: whenever something ends, idle lanes get the ready
// operations with the longest paths, each the lane that computed most of its input. At one moment operations end before
// others become ready. Returns the length.
static double plain_lanes(const struct tfc_ir *ir, const double *us, uint32_t cores, uint32_t *sequence,
                          uint32_t *lane) {
  enum { WAITS, COMES, READY, RUNS, DONE } state[MOST_OPS] = {0};
  double until[MOST_OPS] = {0}, path[MOST_OPS], now = 0;
  uint32_t n = (uint32_t)ir->ops.count, count = 0;
  for (uint32_t left = n; left > 0; left--) // paths get longer until all are right
    for (uint32_t i = 0; i < n; i++) {
      path[i] = left == n ? 0 : path[i];
      double longest = 0;
      for (uint32_t to = 0; to < n; to++)
        if (before_of[to][i] && !ir->ops.data[to].dead && left < n) longest = fmax(longest, path[to]);
      path[i] = longest + us[i];
    }
  for (uint32_t i = 0; i < n; i++) {
    bool first = !ir->ops.data[i].dead;
    for (uint32_t k = 0; k < n; k++) first = first && !before_of[i][k];
    if (first) state[i] = COMES;
  }
  for (;;) {
    uint32_t event = TFC_NONE, best, idle = TFC_NONE;
    for (int kind = 0; kind < 2; kind++) // what ends, else what becomes ready
      for (uint32_t i = 0; i < n && event == TFC_NONE; i++)
        if (state[i] == (kind ? COMES : RUNS) && until[i] == now) event = i;
    if (event != TFC_NONE) {
      bool joint = ir->ops.data[event].joint;
      if (state[event] == COMES && !joint) {
        state[event] = READY;
        continue;
      }
      if (joint) sequence[count++] = event;
      state[event] = DONE;
      for (uint32_t to = 0; to < n; to++) {
        bool comes = before_of[to][event] && !ir->ops.data[to].dead && state[to] == WAITS;
        for (uint32_t k = 0; k < n; k++) comes = comes && (!before_of[to][k] || state[k] == DONE);
        if (comes) state[to] = COMES, until[to] = now;
      }
      continue;
    }
    for (;;) { // starts what can be started
      double most = -1;
      best = idle = TFC_NONE;
      for (uint32_t i = 0; i < n; i++)
        if (state[i] == READY && (best == TFC_NONE || path[i] > path[best])) best = i;
      for (uint32_t l = 0; l < cores && best != TFC_NONE; l++) {
        double bytes = 0;
        bool busy = false;
        for (uint32_t i = 0; i < n; i++) busy = busy || (state[i] == RUNS && lane[i] == l);
        for (uint32_t k = 0; k < ir->ops.data[best].input_count; k++) {
          const struct tfc_ir_value *v = &ir->values.data[ir->ops.data[best].inputs[k].value];
          if (v->op != TFC_NONE && !ir->ops.data[v->op].joint && lane[v->op] == l) bytes += (double)v->bytes;
        }
        if (!busy && bytes > most) most = bytes, idle = l;
      }
      if (idle == TFC_NONE) break;
      state[best] = RUNS, lane[best] = idle, until[best] = now + us[best], sequence[count++] = best;
    }
    double next = INFINITY;
    for (uint32_t i = 0; i < n; i++)
      if (state[i] == RUNS) next = fmin(next, until[i]);
    if (next == INFINITY) return now;
    now = next;
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
    double us[MOST_OPS];
    uint32_t sequence[MOST_OPS], lane[MOST_OPS] = {0};
    for (uint32_t i = 0; i < n; i++)
      us[i] = times[i].wall ? (double)times[i].wall * (tfc_ns_per_tick() * 1e-3) + 0.1 : 0;
    close_to(by.predicted_us, plain_lanes(&s.ir, us, cores, sequence, lane));
    for (uint32_t i = 0; i < alive; i++) {
      assert_int_equal(by.sequence[i], sequence[i]);
      if (!s.ir.ops.data[sequence[i]].joint) assert_int_equal(by.lane[sequence[i]], lane[sequence[i]]);
    }
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

// The predicted time of operations of which the second waits for the first.
static double predicted_after(uint32_t count, const struct tfc_op_time *times, uint32_t cores) {
  struct step s;
  struct tfc_lane_schedule by = {0};
  step_begin(&s, 1, false);
  for (uint32_t i = 0; i < count; i++) add_op(&s, 0, 1);
  add_edge(&s, 0, 1);
  assert_ok(tfc_lane_schedule_make(&s.ir, times, cores, &by));
  const double us = by.predicted_us;
  tfc_lane_schedule_deinit(&by);
  step_end(&s);
  return us;
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
  // On four cores, 100 us of work take 25.1 us, and 1 us more for splitting it. Two operations share the lanes. Three
  // run one after the other, each on all lanes, because 3 * 26.1 us is shorter than each on a lane of its own.
  struct tfc_op_time quarter[] = {takes(25, 25, 100), takes(25, 25, 100), takes(25, 25, 100)};
  close_to(predicted(2, quarter, false, 4, &by), 51.1);
  assert_int_equal(__builtin_popcount(by.helpers[0] | 1u << by.lane[0]), 2);
  assert_int_equal((by.helpers[0] | 1u << by.lane[0]) ^ (by.helpers[1] | 1u << by.lane[1]), 15);
  close_to(predicted(3, quarter, false, 4, &by), 78.3);
  // 100 us of work beside something short that cannot be split: both lanes for the long one first.
  struct tfc_op_time beside[] = {takes(50, 50, 100), takes(10, 0, 0)};
  close_to(predicted(2, beside, false, 2, &by), 61.2);
  tfc_lane_schedule_deinit(&by);
  // The second operation becomes ready after 5.1 us, where the third still has a lane for 5 or 15 us more. It waits for
  // that lane: it ends at 10.1 + 51.1 or 20.1 + 51.1 us, and not at 105.2.
  struct tfc_op_time waits[] = {takes(5, 0, 0), takes(50, 50, 100), takes(10, 0, 0), takes(10, 0, 0)};
  close_to(predicted_after(3, waits, 2), 61.2);
  waits[2] = takes(20, 0, 0);
  close_to(predicted_after(3, waits, 2), 71.2);
  // Meanwhile what ends before it starts may use the idle lane: 10 us, but not 16.
  close_to(predicted_after(4, waits, 2), 71.2);
  waits[3] = takes(16, 0, 0);
  close_to(predicted_after(4, waits, 2), 87.3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory), cmocka_unit_test(chains), cmocka_unit_test(sides),
                                     cmocka_unit_test(lanes), cmocka_unit_test(widths)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
