// The simulation's loop. The ends that are still to come, of operations and transfers, are in a tournament tree with a
// leaf for each device and each wire: a change is a walk from a leaf to the root by comparisons without branches. Ends
// of transfers that use no wire are in a binary heap.
//
// A round: all ends of one instant are taken from the tree and the heap (operations make their local consumers ready
// and append their transfers to the list, in the order of the rule; transfers make their consumers ready), then waiting
// transfers start, then idle devices start their first ready operation.
//
// The list of waiting transfers is walked without looking at all of it: a transfer can start only if it is the first of
// its wire, so there is a queue for each wire, and only wires that became free or got their first transfer are looked
// at. Where transfers occupy devices, those that found one busy wait in a heap of that device, by their place in the
// list, and come back when it is idle; a small heap merges all of them in the order of the list.
#include <math.h>
#include <string.h>

#include "placer/simulate/engine_inbox.h"
#include "placer/simulate/engine_lean.h"
#include "placer/simulate/engine_queues.h"

// --- Devices -------------------------------------------------------------------------------------------------------

INLINE bool is_idle(const struct tfc_engine *e, uint32_t device) {
  return e->idle[device >> 6] >> (device & 63) & 1;
}
INLINE void set_busy(struct tfc_engine *e, uint32_t device) {
  e->idle[device >> 6] &= ~(UINT64_C(1) << (device & 63));
  e->class_busy[e->kind_of[device]]++;
}
INLINE void set_idle(struct tfc_engine *e, uint32_t device) {
  e->idle[device >> 6] |= UINT64_C(1) << (device & 63);
  e->class_busy[e->kind_of[device]]--;
}
INLINE void hold(struct tfc_engine *e, uint32_t device, uint64_t bytes) {
  e->memory[device] += bytes;
  if (e->memory[device] > e->peak[device]) e->peak[device] = e->memory[device];
}

// If `comes`, counts one input of the node as arrived. The only branch is on whether the node becomes ready.
INLINE void input_there(struct tfc_engine *e, uint32_t node, uint32_t device, bool comes) {
  const uint32_t pending = e->pending[node] - comes;
  e->pending[node] = pending;
  if ((pending == 0) & comes) {
    if (e->arrival) e->arrival[node] = e->scalars->now;
    ready_add(e, device, e->rank_now[node], e->levels);
  }
}

// --- Transfers -----------------------------------------------------------------------------------------------------

// Joins two pairing heaps of transfers, given by the indices of their roots (Fredman, Sedgewick, Sleator, Tarjan 1986).
static uint32_t heap_meld(struct tfc_engine_transfer *t, uint32_t a, uint32_t b) {
  if (a == TFC_NONE) return b;
  if (b == TFC_NONE) return a;
  if (b < a) {
    uint32_t c = a;
    a = b, b = c;
  }
  t[b].next = t[a].holds;
  t[a].holds = b;
  return a;
}
static uint32_t heap_drop_root(struct tfc_engine_transfer *t, uint32_t root) {
  uint32_t pairs = TFC_NONE, i = t[root].holds, result = TFC_NONE;
  while (i != TFC_NONE) { // goes from left to right, melds pairs, and links them in a list
    uint32_t a = i, b = t[a].next, after = TFC_NONE;
    t[a].next = TFC_NONE;
    if (b != TFC_NONE) {
      after = t[b].next;
      t[b].next = TFC_NONE;
      a = heap_meld(t, a, b);
    }
    t[a].next = pairs;
    pairs = a;
    i = after;
  }
  while (pairs != TFC_NONE) {
    uint32_t after = t[pairs].next;
    t[pairs].next = TFC_NONE;
    result = heap_meld(t, result, pairs);
    pairs = after;
  }
  return result;
}

static inline bool is_less(const void *none, uint32_t a, uint32_t b) {
  (void)none;
  return a < b;
}
TFC_HEAP(indices, uint32_t, const void *, is_less)

static void walk_push(struct tfc_engine *e, uint32_t transfer) {
  if (!tfc_array_push(&e->walk, transfer)) {
    e->failed = true;
    return;
  }
  indices_push(e->walk.data, e->walk.count - 1, transfer, NULL);
}
static uint32_t walk_pop(struct tfc_engine *e) {
  return indices_pop(e->walk.data, e->walk.count--, NULL);
}

INLINE void touch_wire(struct tfc_engine *e, uint32_t wire, uint32_t *touched) {
  if (e->wire_touched[wire]) return;
  e->wire_touched[wire] = 1;
  e->touched_wires[(*touched)++] = wire;
}

INLINE void start_transfer(struct tfc_engine *e, uint32_t index, const struct tfc_pair *pair, bool plain) {
  const struct tfc_engine_transfer *t = &e->transfers.data[index];
  int64_t time = tfc_problem_wire_time(e->problem, t->tensor, pair);
  end_at(e, e->scalars->now + time, EVENT_TRANSFER | index,
         pair->wire == TFC_NONE ? TFC_NONE : e->problem->device_count + pair->wire);
  if (plain) return;
  if (pair->occupies & TFC_OCCUPIES_SENDER) set_busy(e, t->from), e->busy[t->from] += time;
  if (pair->occupies & TFC_OCCUPIES_RECEIVER) set_busy(e, t->to), e->busy[t->to] += time;
  if (e->live) hold(e, t->to, e->problem->graph->live[t->tensor]);
  if (e->log_transfers) {
    e->log.data[index].start = e->scalars->now, e->log.data[index].end = e->scalars->now + time;
    e->log_sequence.data[index] = e->all_starts++;
  }
}

static void log_transfer(struct tfc_engine *e, const struct tfc_engine_transfer *t) {
  struct tfc_transfer entry = {.tensor = t->tensor, .from = t->from, .to = t->to, .ready = e->scalars->now};
  if (!tfc_array_push(&e->log, entry) || !tfc_array_push(&e->log_sequence, 0u)) e->failed = true;
}

// Adds a transfer. `plain`: the problem is a plain one (engine.h). In a plain problem, a transfer starts at once if its
// wire is free and no other transfer waits for that wire, because no other event of the same instant can change that.
// Otherwise it waits, and start_transfers() decides when all events of the instant are known.
INLINE bool join(struct tfc_engine *e, uint32_t tensor, uint32_t from, uint32_t to, uint32_t *touched, bool plain) {
  const struct tfc_pair *pair = tfc_problem_pair(e->problem, from, to);
  if (__builtin_expect(!pair->linked, 0)) return false;
  uint32_t index = e->scalars->transfer_count;
  if (__builtin_expect(index >= e->transfers.capacity, 0) && !tfc_array_reserve(&e->transfers, (size_t)index + 1)) {
    e->failed = true;
    return false;
  }
  e->scalars->transfer_count = index + 1;
  if (e->count_bytes) e->scalars->transfer_bytes += e->problem->graph->bytes[tensor];
  struct tfc_engine_transfer *t = &e->transfers.data[index];
  *t = (struct tfc_engine_transfer){
      .tensor = tensor, .next = TFC_NONE, .holds = TFC_NONE, .from = (tfc_device_id)from, .to = (tfc_device_id)to};
  if (!plain && e->log_transfers) log_transfer(e, t);
  uint32_t wire = pair->wire;
  if (plain && e->rides && wire != TFC_NONE) {
    const struct tfc_engine_ride ride = {
        .joined = e->scalars->now, .ended = TFC_TIME_MAX, .tensor = tensor, .from = t->from, .to = t->to};
    if (!tfc_array_push(&e->rides[wire].list, ride)) e->failed = true;
  }
  if (wire == TFC_NONE) {
    if (plain)
      start_transfer(e, index, pair, true);
    else
      walk_push(e, index);
    return true;
  }
  if (plain && !e->wire_busy[wire] && e->wire_head[wire] == TFC_NONE) {
    e->wire_busy[wire] = 1;
    start_transfer(e, index, pair, true);
    return true;
  }
  if (e->wire_head[wire] == TFC_NONE)
    e->wire_head[wire] = index;
  else
    e->transfers.data[e->wire_tail[wire]].next = index;
  e->wire_tail[wire] = index;
  if (!e->wire_busy[wire]) touch_wire(e, wire, touched);
  return true;
}

// Takes the first transfer off its wire's queue.
INLINE uint32_t take_head(struct tfc_engine *e, uint32_t wire) {
  uint32_t index = e->wire_head[wire];
  e->wire_head[wire] = e->transfers.data[index].next;
  e->transfers.data[index].next = TFC_NONE;
  return index;
}

static void start_transfers(struct tfc_engine *e) { // with occupancy; it goes through the list of waiting transfers
  for (uint32_t d = 0; d < e->problem->device_count; d++)
    if (e->heap_root[d] != TFC_NONE && is_idle(e, d)) {
      walk_push(e, e->heap_root[d]);
      e->heap_root[d] = heap_drop_root(e->transfers.data, e->heap_root[d]);
    }
  while (e->walk.count && !e->failed) {
    uint32_t index = walk_pop(e), blocked = TFC_NONE;
    struct tfc_engine_transfer *t = &e->transfers.data[index];
    const struct tfc_pair *pair = tfc_problem_pair(e->problem, t->from, t->to);
    if ((pair->occupies & TFC_OCCUPIES_SENDER) && !is_idle(e, t->from)) blocked = t->from;
    if ((pair->occupies & TFC_OCCUPIES_RECEIVER) && !is_idle(e, t->to)) blocked = t->to;
    if (blocked != TFC_NONE) {
      t->next = t->holds = TFC_NONE;
      e->heap_root[blocked] = heap_meld(e->transfers.data, e->heap_root[blocked], index);
    } else {
      start_transfer(e, index, pair, false);
    }
    // A device that stays idle gets its next transfer from its heap. Only the first transfer of each heap is in the
    // walk, so the next one takes its place.
    for (int end = 0; end < 2; end++) {
      uint32_t d = end ? t->to : t->from;
      if (!(pair->occupies & (end ? TFC_OCCUPIES_RECEIVER : TFC_OCCUPIES_SENDER))) continue;
      if (!is_idle(e, d) || e->heap_root[d] == TFC_NONE) continue;
      walk_push(e, e->heap_root[d]);
      e->heap_root[d] = heap_drop_root(e->transfers.data, e->heap_root[d]);
    }
  }
}

// --- Rounds --------------------------------------------------------------------------------------------------------

INLINE void end_transfer(struct tfc_engine *e, uint32_t index, uint32_t *touched, bool plain) {
  const struct tfc_cost_graph *g = e->problem->graph;
  struct tfc_engine_transfer *t = &e->transfers.data[index];
  const uint32_t to = t->to, tensor = t->tensor;
  const struct tfc_pair *pair = tfc_problem_pair(e->problem, t->from, to);
  uint32_t here = 0;
  t->next = TFC_ENGINE_OVER;
  if (e->arrived) e->arrived[(size_t)tensor * e->problem->device_count + to] = e->scalars->now;
  if (pair->wire != TFC_NONE) {
    if (plain && e->rides) e->rides[pair->wire].list.data[e->rides[pair->wire].over++].ended = e->scalars->now;
    e->wire_busy[pair->wire] = 0;
    if (e->wire_head[pair->wire] != TFC_NONE) touch_wire(e, pair->wire, touched);
  }
  for (uint32_t c = g->first_consumer[tensor]; c < g->first_consumer[tensor + 1]; c++) {
    uint32_t n = g->consumer[c];
    const bool comes = e->device[n] == to;
    here += comes;
    input_there(e, n, to, comes);
  }
  if (plain) return;
  if (pair->occupies & TFC_OCCUPIES_SENDER) set_idle(e, t->from);
  if (pair->occupies & TFC_OCCUPIES_RECEIVER) set_idle(e, to);
  if (e->live) {
    t->holds = here;
    if (--e->holds[tensor] == 0) e->memory[t->from] -= g->live[tensor];
  }
}

// Releases the memory of the inputs of an operation that ended.
static void release_inputs(struct tfc_engine *e, uint32_t n, uint32_t device) {
  const struct tfc_cost_graph *g = e->problem->graph;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    uint32_t tensor = g->input[i];
    if (!g->live[tensor]) continue;
    if (e->device[g->producer[tensor]] == device) {
      if (--e->holds[tensor] == 0) e->memory[device] -= g->live[tensor];
      continue;
    }
    uint32_t t = e->first_transfer[tensor];
    while (e->transfers.data[t].to != device) t++;
    if (--e->transfers.data[t].holds == 0) e->memory[device] -= g->live[tensor];
  }
}

INLINE bool end_node(struct tfc_engine *e, uint32_t n, uint32_t *touched, bool plain) {
  const struct tfc_cost_graph *g = e->problem->graph;
  const uint32_t device = e->device[n];
  if (e->ends) e->ends->position[n] = e->scalars->ended, e->ends->node[e->scalars->ended] = n;
  if (e->end_position && e->end_position[n] >= e->reach) e->reach = e->end_position[n] + 1;
  e->scalars->ended++;
  for (uint32_t tensor = g->first_tensor[n]; tensor < g->first_tensor[n + 1]; tensor++) {
    const uint32_t first = g->first_consumer[tensor], last = g->first_consumer[tensor + 1];
    uint32_t holds = 0;
    if (e->masks == 1) {
      uint64_t away = 0;
      for (uint32_t c = first; c < last; c++) {
        uint32_t m = g->consumer[c], there = e->device[m];
        const bool comes = there == device;
        away |= UINT64_C(1) << there;
        holds += comes;
        input_there(e, m, device, comes);
      }
      away &= ~(UINT64_C(1) << device);
      if (!plain && e->live) e->first_transfer[tensor] = e->scalars->transfer_count;
      for (; away; away &= away - 1, holds++)
        if (!join(e, tensor, device, (uint32_t)__builtin_ctzll(away), touched, plain)) return false;
    } else {
      uint64_t away[TFC_MAX_DEVICES / 64] = {0};
      for (uint32_t c = first; c < last; c++) {
        uint32_t m = g->consumer[c], there = e->device[m];
        if (there == device)
          holds++, input_there(e, m, device, true);
        else
          away[there >> 6] |= UINT64_C(1) << (there & 63);
      }
      if (!plain && e->live) e->first_transfer[tensor] = e->scalars->transfer_count;
      for (uint32_t w = 0; w < e->masks; w++)
        for (; away[w]; away[w] &= away[w] - 1, holds++)
          if (!join(e, tensor, device, w * 64 + (uint32_t)__builtin_ctzll(away[w]), touched, plain)) return false;
    }
    if (!plain && e->live) e->holds[tensor] = holds;
  }
  if (!plain && e->live) release_inputs(e, n, device);
  return true;
}

// Starts the device's first ready operation. False: the value cannot be below the cutoff.
INLINE bool start_node(struct tfc_engine *e, uint32_t device, int64_t cutoff, bool plain) {
  const struct tfc_problem *p = e->problem;
  const uint32_t n = e->by_rank_now[ready_pop(e, device, e->levels)];
  const int64_t now = e->scalars->now, own = tfc_problem_time(p, n, device);
  int64_t time = own;
  if (plain) {
    e->idle[device >> 6] &= ~(UINT64_C(1) << (device & 63));
  } else {
    set_busy(e, device);
    const struct tfc_machine_device *d = &p->machine->devices[device];
    if (d->slowdown_count && own) {
      uint32_t busy = e->class_busy[e->kind_of[device]];
      double factor = d->slowdown[(busy < d->slowdown_count ? busy : d->slowdown_count) - 1];
      if (factor != 1) {
        const struct tfc_cost_graph *g = p->graph;
        uint32_t kind = 0;
        while (!tfc_str_equal(g->kind_names[kind], d->kind)) kind++;
        double us = g->time_us[(size_t)n * g->kind_count + kind];
        int64_t dispatch = own - (int64_t)floor(us * 1e6 + 0.5);
        time = (int64_t)floor(us * factor * 1e6 + 0.5) + dispatch;
      }
    }
    if (e->live)
      for (uint32_t t = p->graph->first_tensor[n]; t < p->graph->first_tensor[n + 1]; t++)
        hold(e, device, p->graph->live[t]);
    if (e->log_transfers) e->step_sequence[n] = e->all_starts++;
  }
  if (e->start) {
    e->start[n] = now, e->end[n] = now + time;
    e->sequence[n] = e->starts++;
  }
  if (e->tail && e->position[n] > e->tail_from && now + e->tail[n] >= cutoff) return false;
  if (now + p->remaining[n] >= cutoff || now + e->left[device] >= cutoff) return false;
  e->left[device] -= own;
  e->busy[device] += time;
  end_at(e, now + time, n, device);
  return true;
}

// Runs the next round; false: *stop says why there is none. `first`: at time 0, when nothing has ended yet, nodes
// without inputs start.
INLINE bool one_round(struct tfc_engine *e, int64_t now, bool first, int64_t cutoff, bool plain,
                      tfc_engine_stop *stop) {
  uint32_t touched = 0;
  if (!first) {
    uint32_t ended = 0;
    e->scalars->now = now;
    do {
      uint32_t item = take_end(e, now);
      if (item & EVENT_TRANSFER) {
        end_transfer(e, item & ~EVENT_TRANSFER, &touched, plain);
      } else {
        uint32_t i = ended++, device = e->device[item];
        if (plain)
          e->idle[device >> 6] |= UINT64_C(1) << (device & 63);
        else
          set_idle(e, device);
        for (; i && e->ended_nodes[i - 1] > item; i--) e->ended_nodes[i] = e->ended_nodes[i - 1];
        e->ended_nodes[i] = item;
      }
    } while (next_end(e) == now);
    for (uint32_t i = 0; i < ended; i++)
      if (!end_node(e, e->ended_nodes[i], &touched, plain)) return *stop = TFC_ENGINE_NO_LINK, false;
  }
  for (uint32_t i = 0; i < touched; i++) {
    uint32_t wire = e->touched_wires[i];
    e->wire_touched[wire] = 0;
    uint32_t index = take_head(e, wire);
    e->wire_busy[wire] = 1; // this is set also while the first transfer waits for a device, because those after it wait
                            // for the wire
    if (plain) {
      const struct tfc_engine_transfer *t = &e->transfers.data[index];
      start_transfer(e, index, tfc_problem_pair(e->problem, t->from, t->to), true);
    } else {
      walk_push(e, index);
    }
  }
  if (!plain) start_transfers(e);
  for (uint32_t w = 0; w < e->masks; w++)
    for (uint64_t can = e->idle[w] & e->has_ready[w]; can; can &= can - 1)
      if (!start_node(e, w * 64 + (uint32_t)__builtin_ctzll(can), cutoff, plain)) return *stop = TFC_ENGINE_CUT, false;
  return __builtin_expect(!e->failed, 1) || (*stop = TFC_ENGINE_NO_LINK, false);
}

INLINE tfc_engine_stop run(struct tfc_engine *e, int64_t cutoff, uint32_t pause, bool plain) {
  struct tfc_engine_scalars *s = e->scalars;
  tfc_engine_stop stop = TFC_ENGINE_ENDED;
  int64_t now = next_end(e);
  uint32_t noted = s->ended;
  for (bool first = s->ended == 0 && now < 0; now >= 0 || first; first = false, now = next_end(e)) {
    if (!first && now > s->now) {
      if (e->ends && s->ended != noted) e->ends->started[noted = s->ended] = e->starts;
      if (s->ended >= pause || is_watched_for(e)) return TFC_ENGINE_PAUSED;
    }
    if (!one_round(e, now, first, cutoff, plain, &stop)) return stop;
  }
  s->value = s->now;
  return TFC_ENGINE_ENDED;
}

TFC_ENGINE_CLONES
bool tfc_engine_round(struct tfc_engine *e, int64_t now, bool first, int64_t cutoff, tfc_engine_stop *stop) {
  return one_round(e, now, first, cutoff, true, stop);
}

TFC_ENGINE_CLONES
static tfc_engine_stop run_any(struct tfc_engine *e, int64_t cutoff, uint32_t pause) {
  return e->plain && !e->log_transfers ? run(e, cutoff, pause, true) : run(e, cutoff, pause, false);
}

tfc_engine_stop tfc_engine_run(struct tfc_engine *e, int64_t cutoff, uint32_t pause) {
  if (!e->problem->is_bounded) cutoff = TFC_TIME_MAX;
  const bool recorded = e->start || e->arrival || e->arrived || e->rides || e->ends || e->log_transfers;
  tfc_engine_stop stop = e->inbox && !e->log_transfers ? tfc_engine_run_inbox(e, cutoff, pause)
                         : e->lean && !recorded        ? tfc_engine_run_lean(e, cutoff, pause)
                                                       : run_any(e, cutoff, pause);
  if (stop == TFC_ENGINE_CUT || stop == TFC_ENGINE_NO_LINK) { // the work space must be clean for the next run
    memset(e->wire_touched, 0, e->problem->wire_count);
    e->walk.count = 0;
  }
  return stop;
}
