// Distributes the sequence over queues. Decides which values are copied or handed over to which devices, and which
// items wait for which others, with as few waits as possible.
//
// Each item (an operation or a copy) has a vector clock: for every queue, how many of its items have certainly ended
// when this one starts, because of the queues' own order and of waits. A dependency that the clock already covers needs
// no wait. The memory plan uses the same clocks to tell which memory is certainly free.
//
// Operations on the host that depend only on feeds come first, then all copies of their results to the device; every
// reader waits for all these copies at once, because single waits and signals would divide the segment, and with it a
// captured graph.
#include <stdlib.h>

#include "runtime/exec/plan/arrange.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/exec/variables.h"

bool tfc_location_on_host(const struct tfc_ir *ir, uint16_t location) {
  return location == ir->device_count || ir->devices[location]->info.address_space == 0;
}

uint16_t tfc_value_location(const struct tfc_ir *ir, const struct tfc_ir_value *v) {
  if (v->kind == TFC_IR_VARIABLE) {
    uint16_t device = ir->variables.data[v->variable].device;
    bool host = !tfc_dtype_is_plain(v->dtype) || tfc_variable_beside(ir->devices[device], v->dtype);
    return host ? (uint16_t)ir->device_count : device;
  }
  if (v->kind != TFC_IR_OP) return (uint16_t)ir->device_count;
  const struct tfc_ir_op *op = &ir->ops.data[v->op];
  if (tfc_location_on_host(ir, op->device)) return op->device;
  bool host = !tfc_dtype_is_plain(v->dtype) || tfc_host_bit(op->host.outputs, v->output);
  return host ? (uint16_t)ir->device_count : op->device;
}

uint16_t tfc_input_location(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t input) {
  if (tfc_location_on_host(ir, op->device)) return op->device;
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[input].value];
  bool host = !tfc_dtype_is_plain(v->dtype) || tfc_host_bit(op->host.inputs, input);
  return host ? (uint16_t)ir->device_count : op->device;
}

static bool same_memory(const struct tfc_ir *ir, uint16_t a, uint16_t b) {
  if (a == b || (tfc_location_on_host(ir, a) && tfc_location_on_host(ir, b))) return true;
  if (a == ir->device_count || b == ir->device_count) return false;
  // Virtual devices with `,shared` have the same address space.
  return ir->devices[a]->info.address_space == ir->devices[b]->info.address_space;
}

// State of arranging. All copies of a value are a linked list in `transfers`.
struct arranger {
  const struct tfc_ir *ir;
  const struct tfc_lane_schedule *lanes; // NULL: none
  struct tfc_arrangement *a;
  struct tfc_arena *arena;
  uint32_t *first; // [values] first transfer, TFC_NONE
  TFC_ARRAY(uint32_t) next;
  TFC_ARRAY(struct tfc_plan_copy) transfers;
  TFC_ARRAY(struct tfc_item) items;
  TFC_ARRAY(struct tfc_wait) waits;
  TFC_ARRAY(uint32_t) arrivals;
  TFC_ARRAY(uint32_t) clocks;
  uint32_t *known;   // [queue * queue_count] clock after the last item of each queue
  uint32_t *need;    // [queue_count] scratch
  uint32_t **queues; // [queue] its items by position
  uint32_t *queue_capacity;
  uint32_t *joint_clocks; // [ops] index of a joint's clock in joint_data, or TFC_NONE
  TFC_ARRAY(uint32_t) joint_data;
  bool *arrived;                     // [transfers] it is handed over, and its first reader has recorded that
  bool *early;                       // [ops] computed on the host from feeds alone
  uint32_t *early_begin, *early_end; // [queue_count] the range of items that are early operations (on the host, from
                                     // feeds alone) or their copies
};

static uint32_t find(const struct arranger *r, uint32_t value, uint16_t location) {
  for (uint32_t t = r->first[value]; t != TFC_NONE; t = r->next.data[t])
    if (r->transfers.data[t].target == location) return t;
  return TFC_NONE;
}

uint32_t tfc_find_copy(const struct tfc_arrangement *a, const struct tfc_ir *ir, uint32_t value, uint16_t location) {
  if (same_memory(ir, tfc_value_location(ir, &ir->values.data[value]), location)) return TFC_NONE;
  for (uint32_t t = a->first_copy[value]; t != TFC_NONE; t = a->next_copy[t])
    if (a->transfers[t].target == location) return t;
  return TFC_NONE;
}

// Adds a transfer for each value and each place that needs it and does not have it. Constants are copied when the plan
// is made.
static tfc_status find_transfers(struct arranger *r) {
  const struct tfc_ir *ir = r->ir;
  for (size_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    for (uint32_t k = 0; !op->dead && k < op->input_count; k++) {
      uint32_t v = op->inputs[k].value;
      if (v == TFC_NONE || ir->values.data[v].kind == TFC_IR_CONST) continue;
      if (op->inputs[k].variable != TFC_NONE) continue; // a reference to the variable: nothing moves
      uint16_t from = tfc_value_location(ir, &ir->values.data[v]), to = tfc_input_location(ir, op, k);
      bool feed = ir->values.data[v].kind == TFC_IR_FEED;
      if (from == to || (feed && same_memory(ir, from, to)) || find(r, v, to) != TFC_NONE) continue;
      struct tfc_plan_copy t = {.value = v, .source = from, .target = to, .item = TFC_NONE};
      if (!tfc_array_push(&r->next, r->first[v]) || !tfc_array_push(&r->transfers, t))
        return tfc_status_no_memory("planning a step");
      r->first[v] = (uint32_t)r->transfers.count - 1;
    }
  }
  r->arrived = TFC_ARENA_ARRAY(r->arena, bool, r->transfers.count + 1);
  return r->arrived ? NULL : tfc_status_no_memory("planning a step");
}

static void need_item(struct arranger *r, uint32_t item) {
  const struct tfc_item *it = &r->items.data[item];
  uint32_t end = it->position + 1;
  if (it->position >= r->early_begin[it->queue] && end < r->early_end[it->queue]) end = r->early_end[it->queue];
  if (end > r->need[it->queue]) r->need[it->queue] = end;
}

static void need_op(struct arranger *r, uint32_t op) {
  if (op == TFC_NONE) return;
  if (r->ir->ops.data[op].joint) {
    const uint32_t *clock = r->joint_data.data + r->joint_clocks[op];
    for (uint32_t q = 0; q < r->a->queue_count; q++)
      if (clock[q] > r->need[q]) r->need[q] = clock[q];
  } else {
    need_item(r, r->a->item_of_op[op]);
  }
}

// Appends an item to its queue, with waits for those entries of `need` that its clock does not cover.
static tfc_status add_item(struct arranger *r, struct tfc_item item, uint32_t *out) {
  uint32_t q = item.queue, n = r->a->queue_count;
  uint32_t *known = r->known + (size_t)q * n;
  item.position = r->a->queue_items[q]++;
  item.wait_begin = (uint32_t)r->waits.count;
  for (uint32_t o = 0; o < n; o++) {
    if (o == q || r->need[o] <= known[o]) continue;
    bool covered = false; // `need` also has an item of another queue that starts only after this one has ended
    for (uint32_t other = 0; other < n && !covered; other++) {
      if (other == o || other == q || r->need[other] <= known[other]) continue;
      const uint32_t *clock = r->clocks.data + (size_t)r->queues[other][r->need[other] - 1] * n;
      covered = clock[o] >= r->need[o];
    }
    if (covered) continue;
    if (!tfc_array_push(&r->waits, (struct tfc_wait){(uint16_t)o, r->need[o] - 1}))
      return tfc_status_no_memory("planning a step");
    item.wait_count++;
    r->items.data[r->queues[o][r->need[o] - 1]].signals = true;
  }
  for (uint32_t w = item.wait_begin; w < r->waits.count; w++) {
    struct tfc_wait wait = r->waits.data[w];
    const uint32_t *clock = r->clocks.data + (size_t)r->queues[wait.queue][wait.position] * n;
    for (uint32_t o = 0; o < n; o++)
      if (clock[o] > known[o]) known[o] = clock[o];
    if (wait.position + 1 > known[wait.queue]) known[wait.queue] = wait.position + 1;
  }
  known[q] = item.position;
  for (uint32_t o = 0; o < n; o++)
    if (!tfc_array_push(&r->clocks, known[o])) return tfc_status_no_memory("planning a step");
  *out = (uint32_t)r->items.count;
  if (!tfc_array_push(&r->items, item)) return tfc_status_no_memory("planning a step");
  if (item.position >= r->queue_capacity[q]) {
    uint32_t capacity = r->queue_capacity[q] ? 2 * r->queue_capacity[q] : 64;
    uint32_t *grown = realloc(r->queues[q], capacity * sizeof *grown);
    if (!grown) return tfc_status_no_memory("planning a step");
    r->queues[q] = grown;
    r->queue_capacity[q] = capacity;
  }
  r->queues[q][item.position] = *out;
  return NULL;
}

// Appends the copies of a new value directly after its producer.
static tfc_status add_copies(struct arranger *r, uint32_t value, uint32_t producer) {
  const struct tfc_ir *ir = r->ir;
  for (uint16_t target = 0; target <= ir->device_count; target++) {
    uint32_t t = find(r, value, target);
    if (t == TFC_NONE) continue;
    struct tfc_plan_copy *copy = &r->transfers.data[t];
    if (same_memory(ir, copy->source, copy->target)) continue; // handed over
    uint16_t device = target == ir->device_count ? copy->source : target;
    memset(r->need, 0, r->a->queue_count * sizeof *r->need);
    if (producer != TFC_NONE) need_op(r, producer);
    struct tfc_item item = {.op = TFC_NONE, .transfer = t, .queue = (uint16_t)(ir->device_count + device)};
    TFC_RETURN_IF_ERROR(add_item(r, item, &copy->item));
  }
  return NULL;
}

struct edges { // ordering edges by the operation that waits, CSR
  uint32_t *begin, *from;
};

static tfc_status edges_by_end(const struct tfc_ir *ir, struct tfc_arena *arena, struct edges *out) {
  out->begin = TFC_ARENA_ARRAY(arena, uint32_t, ir->ops.count + 2);
  out->from = TFC_ARENA_ARRAY(arena, uint32_t, ir->edges.count + 1);
  if (!out->begin || !out->from) return tfc_status_no_memory("planning a step");
  for (size_t i = 0; i < ir->edges.count; i++) out->begin[ir->edges.data[i].to + 2]++;
  for (size_t i = 1; i <= ir->ops.count; i++) out->begin[i + 1] += out->begin[i];
  for (size_t i = 0; i < ir->edges.count; i++)
    out->from[out->begin[ir->edges.data[i].to + 1]++] = ir->edges.data[i].from;
  return NULL;
}

static tfc_status add_op(struct arranger *r, const struct edges *edges, uint32_t id) {
  const struct tfc_ir *ir = r->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  uint32_t n = r->a->queue_count;
  memset(r->need, 0, n * sizeof *r->need);
  for (uint32_t e = edges->begin[id]; e < edges->begin[id + 1]; e++)
    if (!ir->ops.data[edges->from[e]].dead) need_op(r, edges->from[e]);
  struct tfc_item item = {.op = id, .transfer = TFC_NONE, .queue = r->lanes ? r->lanes->lane[id] : op->device};
  item.arrival_begin = (uint32_t)r->arrivals.count;
  for (uint32_t k = 0; k < op->input_count; k++) {
    uint32_t v = op->inputs[k].value;
    if (v == TFC_NONE) continue;
    const struct tfc_ir_value *value = &ir->values.data[v];
    uint32_t t = value->kind == TFC_IR_CONST || op->inputs[k].variable != TFC_NONE
                     ? TFC_NONE
                     : find(r, v, tfc_input_location(ir, op, k));
    if (t != TFC_NONE && r->transfers.data[t].item != TFC_NONE) {
      need_item(r, r->transfers.data[t].item);
      continue;
    }
    need_op(r, value->op);
    if (t != TFC_NONE && !r->arrived[t]) { // it is handed over and not recorded yet: the first reader records it
      r->arrived[t] = true;
      if (!tfc_array_push(&r->arrivals, t)) return tfc_status_no_memory("planning a step");
      item.arrival_count++;
    }
  }
  if (op->joint) {
    r->joint_clocks[id] = (uint32_t)r->joint_data.count;
    for (uint32_t q = 0; q < n; q++)
      if (!tfc_array_push(&r->joint_data, r->need[q])) return tfc_status_no_memory("planning a step");
    return NULL;
  }
  TFC_RETURN_IF_ERROR(add_item(r, item, &r->a->item_of_op[id]));
  // Lanes that help with an operation do not continue before it has ended.
  for (uint32_t h = 0; r->lanes && h < n; h++) {
    if (!(r->lanes->helpers[id] >> h & 1)) continue;
    const uint32_t *clock = r->clocks.data + (size_t)r->a->item_of_op[id] * n;
    uint32_t *known = r->known + (size_t)h * n;
    for (uint32_t q = 0; q < n; q++)
      if (clock[q] > known[q]) known[q] = clock[q];
    known[item.queue] = r->a->queue_items[item.queue];
  }
  for (uint32_t i = 0; i < op->output_count && !r->early[id]; i++)
    if (op->outputs[i] != TFC_NONE) TFC_RETURN_IF_ERROR(add_copies(r, op->outputs[i], id));
  return NULL;
}

static bool is_early(const struct arranger *r, const struct edges *edges, uint32_t id) {
  const struct tfc_ir *ir = r->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (op->joint || !op->host.all || tfc_location_on_host(ir, op->device) || !op->def ||
      op->def->flags & (TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_ASYNC | TFC_OP_SAVES))
    return false;
  for (uint32_t e = edges->begin[id]; e < edges->begin[id + 1]; e++)
    if (!ir->ops.data[edges->from[e]].dead && !r->early[edges->from[e]]) return false;
  for (uint32_t k = 0; k < op->input_count; k++) {
    if (op->inputs[k].value == TFC_NONE) continue;
    const struct tfc_ir_value *v = &ir->values.data[op->inputs[k].value];
    bool made = v->kind == TFC_IR_OP && r->early[v->op] && ir->ops.data[v->op].device == op->device;
    if (!made && v->kind != TFC_IR_FEED && v->kind != TFC_IR_CONST) return false;
  }
  return true;
}

static tfc_status add_early(struct arranger *r, const struct edges *edges, const uint32_t *sequence, uint32_t count) {
  const struct tfc_ir *ir = r->ir;
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    if (!(r->early[sequence[i]] = is_early(r, edges, sequence[i]))) continue;
    TFC_RETURN_IF_ERROR(add_op(r, edges, sequence[i]));
    any = true;
  }
  if (!any) return NULL;
  for (uint32_t q = 0; q < ir->device_count; q++) r->early_end[q] = r->a->queue_items[q];
  for (uint32_t q = ir->device_count; q < r->a->queue_count; q++) r->early_begin[q] = r->a->queue_items[q];
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[sequence[i]];
    for (uint32_t k = 0; r->early[sequence[i]] && k < op->output_count; k++)
      if (op->outputs[k] != TFC_NONE) TFC_RETURN_IF_ERROR(add_copies(r, op->outputs[k], sequence[i]));
  }
  for (uint32_t q = ir->device_count; q < r->a->queue_count; q++) r->early_end[q] = r->a->queue_items[q];
  return NULL;
}

static void *take(struct tfc_arena *arena, const void *data, size_t count, size_t size) {
  void *copy = tfc_arena_alloc(arena, (count + 1) * size);
  if (copy && count) memcpy(copy, data, count * size);
  return copy;
}

tfc_status tfc_arrange(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count,
                       const struct tfc_lane_schedule *lanes, struct tfc_arena *arena, struct tfc_arrangement *out) {
  tfc_status s = NULL;
  struct tfc_arrangement a = {.queue_count = lanes ? lanes->lanes : 2 * ir->device_count};
  struct arranger r = {.ir = ir, .lanes = lanes, .a = &a, .arena = arena};
  struct edges edges = {0};
  uint32_t q = a.queue_count;
  TFC_ARRAY(uint32_t) versions = {0}; // for each operation, the values that are a variable's value after it
  r.first = TFC_ARENA_ARRAY(arena, uint32_t, ir->values.count + 1);
  r.known = TFC_ARENA_ARRAY(arena, uint32_t, (size_t)q * q);
  r.need = TFC_ARENA_ARRAY(arena, uint32_t, q);
  r.queues = TFC_ARENA_ARRAY(arena, uint32_t *, q);
  r.queue_capacity = TFC_ARENA_ARRAY(arena, uint32_t, q);
  r.joint_clocks = TFC_ARENA_ARRAY(arena, uint32_t, ir->ops.count + 1);
  a.queue_items = TFC_ARENA_ARRAY(arena, uint32_t, q);
  a.item_of_op = TFC_ARENA_ARRAY(arena, uint32_t, ir->ops.count + 1);
  r.early = TFC_ARENA_ARRAY(arena, bool, ir->ops.count + 1);
  r.early_begin = TFC_ARENA_ARRAY(arena, uint32_t, q);
  r.early_end = TFC_ARENA_ARRAY(arena, uint32_t, q);
  if (!r.first || !r.known || !r.need || !r.queues || !r.queue_capacity || !r.joint_clocks || !a.queue_items ||
      !a.item_of_op || !r.early || !r.early_begin || !r.early_end)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (size_t i = 0; i < ir->values.count; i++) r.first[i] = TFC_NONE;
  for (size_t i = 0; i < ir->ops.count; i++) a.item_of_op[i] = TFC_NONE;
  TFC_TRY(s, find_transfers(&r));
  TFC_TRY(s, edges_by_end(ir, arena, &edges));
  if (!tfc_array_reserve(&r.items, count + r.transfers.count) ||
      !tfc_array_reserve(&r.clocks, (count + r.transfers.count) * q))
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (uint32_t v = 0; v < ir->values.count; v++) { // values that exist when the step begins
    const struct tfc_ir_value *value = &ir->values.data[v];
    if (r.first[v] == TFC_NONE) continue;
    if (value->kind == TFC_IR_FEED || (value->kind == TFC_IR_VARIABLE && value->op == TFC_NONE))
      TFC_TRY(s, add_copies(&r, v, TFC_NONE));
    else if (value->kind == TFC_IR_VARIABLE && !tfc_array_push(&versions, v))
      TFC_TRY(s, tfc_status_no_memory("planning a step"));
  }
  TFC_TRY(s, add_early(&r, &edges, sequence, count));
  for (uint32_t i = 0; i < count; i++) {
    if (!r.early[sequence[i]]) TFC_TRY(s, add_op(&r, &edges, sequence[i]));
    for (size_t k = 0; k < versions.count; k++)
      if (ir->values.data[versions.data[k]].op == sequence[i])
        TFC_TRY(s, add_copies(&r, versions.data[k], sequence[i]));
  }
  for (uint32_t k = 0; k < q; k++) // the step ends when all queues have ended
    if (a.queue_items[k]) r.items.data[r.queues[k][a.queue_items[k] - 1]].signals = true;
  a.item_count = (uint32_t)r.items.count;
  a.transfer_count = (uint32_t)r.transfers.count;
  a.items = take(arena, r.items.data, r.items.count, sizeof *a.items);
  a.waits = take(arena, r.waits.data, r.waits.count, sizeof *a.waits);
  a.arrivals = take(arena, r.arrivals.data, r.arrivals.count, sizeof *a.arrivals);
  a.transfers = take(arena, r.transfers.data, r.transfers.count, sizeof *a.transfers);
  a.first_copy = r.first;
  a.next_copy = take(arena, r.next.data, r.next.count, sizeof *a.next_copy);
  a.clocks = take(arena, r.clocks.data, r.clocks.count, sizeof *a.clocks);
  if (!a.items || !a.waits || !a.arrivals || !a.transfers || !a.clocks || !a.next_copy)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  *out = a;
out:
  for (uint32_t k = 0; r.queues && k < q; k++) free(r.queues[k]);
  tfc_array_free(&versions);
  tfc_array_free(&r.next);
  tfc_array_free(&r.transfers);
  tfc_array_free(&r.items);
  tfc_array_free(&r.waits);
  tfc_array_free(&r.arrivals);
  tfc_array_free(&r.clocks);
  tfc_array_free(&r.joint_data);
  return s;
}
