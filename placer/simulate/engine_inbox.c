// The engine's loop for machines in which a transfer waits only for the receiving device, and occupies it (`inbox` in
// engine.h): CPU devices that share memory. A device does one thing at a time and has a queue of transfers, which
// precede its operations. So there are no wires, and the list of waiting transfers is divided into these queues. In
// most rounds there is a single end: then only that device, and those that its tensors reach, can begin something.
#include "placer/simulate/engine_inbox.h"
#include "placer/simulate/engine_queues.h"

INLINE void begin_transfer(struct tfc_engine *e, uint32_t index, int64_t now, uint32_t leaves) {
  const struct tfc_engine_transfer *t = &e->transfers.data[index];
  const int64_t time = tfc_problem_wire_time(e->problem, t->tensor, tfc_problem_pair(e->problem, t->from, t->to));
  e->idle[0] &= ~(UINT64_C(1) << t->to);
  e->busy[t->to] += time;
  e->running[t->to] = EVENT_TRANSFER | index;
  tree_set(e, t->to, (uint64_t)(now + time) << e->leaf_bits | t->to, leaves);
}
INLINE void begin_first_transfer(struct tfc_engine *e, uint32_t device, int64_t now, uint32_t leaves) {
  const uint32_t index = e->inbox_head[device];
  e->inbox_head[device] = e->transfers.data[index].next;
  e->transfers.data[index].next = TFC_NONE;
  begin_transfer(e, index, now, leaves);
}

// False: the value cannot be below the cutoff.
INLINE bool begin_operation(struct tfc_engine *e, uint32_t device, int64_t now, int64_t cutoff, uint32_t levels,
                            uint32_t leaves, bool recorded) {
  const struct tfc_problem *p = e->problem;
  const struct tfc_engine_pace *pace = &e->pace[device];
  const uint32_t n = e->by_rank_now[ready_pop(e, device, levels)];
  const int64_t own = tfc_problem_time(p, n, device);
  int64_t time = own;
  e->idle[0] &= ~(UINT64_C(1) << device);
  if (pace->slowdown_count && own) {
    const uint32_t busy = (uint32_t)__builtin_popcountll(~e->idle[0] & pace->neighbours);
    const double factor = pace->slowdown[(busy < pace->slowdown_count ? busy : pace->slowdown_count) - 1];
    if (factor != 1) // times are not negative, so the conversion to an integer rounds down
      time = (int64_t)(pace->time_us[(size_t)n * pace->stride] * factor * 1e6 + 0.5) + pace->dispatch;
  }
  if (recorded) {
    e->start[n] = now, e->end[n] = now + time;
    e->sequence[n] = e->starts++;
  }
  if (cutoff != TFC_TIME_MAX) {
    if (e->tail && e->position[n] > e->tail_from && now + e->tail[n] >= cutoff) return false;
    if (now + p->remaining[n] >= cutoff || now + e->left[device] >= cutoff) return false;
  }
  e->left[device] -= own;
  e->busy[device] += time;
  e->running[device] = n;
  tree_set(e, device, (uint64_t)(now + time) << e->leaf_bits | device, leaves);
  return true;
}

// Appends a transfer to its receiver's queue; `at_once`: it begins if the receiver is idle. False: no link, or out of
// memory.
INLINE bool send(struct tfc_engine *e, uint32_t tensor, uint32_t from, uint32_t to, int64_t now, uint32_t leaves,
                 bool at_once, bool recorded) {
  const uint32_t index = e->scalars->transfer_count;
  if (__builtin_expect(!tfc_problem_pair(e->problem, from, to)->linked, 0)) return false;
  if (__builtin_expect(index >= e->transfers.capacity, 0) && !tfc_array_reserve(&e->transfers, (size_t)index + 1))
    return e->failed = true, false;
  e->scalars->transfer_count = index + 1;
  if (e->count_bytes) e->scalars->transfer_bytes += e->problem->graph->bytes[tensor];
  e->transfers.data[index] = (struct tfc_engine_transfer){
      .tensor = tensor, .next = TFC_NONE, .holds = TFC_NONE, .from = (tfc_device_id)from, .to = (tfc_device_id)to};
  if (recorded && e->rides) {
    const struct tfc_engine_ride ride = {
        .joined = now, .ended = TFC_TIME_MAX, .tensor = tensor, .from = (tfc_device_id)from, .to = (tfc_device_id)to};
    if (!tfc_array_push(&e->rides[to].list, ride)) e->failed = true;
  }
  if (at_once && (e->idle[0] >> to & 1)) {
    begin_transfer(e, index, now, leaves);
  } else {
    if (e->inbox_head[to] == TFC_NONE)
      e->inbox_head[to] = index;
    else
      e->transfers.data[e->inbox_tail[to]].next = index;
    e->inbox_tail[to] = index;
  }
  return true;
}

INLINE void end_transfer(struct tfc_engine *e, uint32_t index, int64_t now, uint32_t levels, bool recorded) {
  struct tfc_engine_transfer *t = &e->transfers.data[index];
  t->next = TFC_ENGINE_OVER;
  if (recorded) {
    if (e->arrived) e->arrived[(size_t)t->tensor * e->problem->device_count + t->to] = now;
    if (e->rides) e->rides[t->to].list.data[e->rides[t->to].over++].ended = now;
  }
  arrive(e, t->tensor, t->to, levels, recorded);
}

INLINE bool end_operation(struct tfc_engine *e, uint32_t n, uint32_t device, int64_t now, uint32_t levels,
                          uint32_t leaves, bool at_once, bool recorded) {
  const struct tfc_cost_graph *g = e->problem->graph;
  if (recorded && e->ends) e->ends->position[n] = e->scalars->ended, e->ends->node[e->scalars->ended] = n;
  if (e->end_position && e->end_position[n] >= e->reach) e->reach = e->end_position[n] + 1;
  e->scalars->ended++;
  for (uint32_t tensor = g->first_tensor[n]; tensor < g->first_tensor[n + 1]; tensor++) {
    uint64_t away =
        arrive(e, tensor, device, levels, recorded) & ~(UINT64_C(1) << device | UINT64_C(1) << FILLER_DEVICE);
    for (; away; away &= away - 1)
      if (!send(e, tensor, device, (uint32_t)__builtin_ctzll(away), now, leaves, at_once, recorded)) return false;
  }
  return true;
}

// Handles all ends of this instant if there are several; transfers begin after that.
INLINE bool end_all(struct tfc_engine *e, int64_t now, uint32_t levels, uint32_t leaves, bool recorded) {
  uint32_t ended = 0;
  do {
    const uint32_t device = (uint32_t)e->tree[1] & (leaves - 1), item = e->running[device];
    tree_set(e, device, UINT64_MAX, leaves);
    e->idle[0] |= UINT64_C(1) << device;
    if (item & EVENT_TRANSFER) {
      end_transfer(e, item & ~EVENT_TRANSFER, now, levels, recorded);
    } else {
      uint32_t i = ended++;
      for (; i && e->ended_nodes[i - 1] > item; i--) e->ended_nodes[i] = e->ended_nodes[i - 1];
      e->ended_nodes[i] = item;
    }
  } while ((int64_t)(e->tree[1] >> e->leaf_bits) == now && e->tree[1] != UINT64_MAX);
  for (uint32_t i = 0; i < ended; i++)
    if (!end_operation(e, e->ended_nodes[i], e->device[e->ended_nodes[i]], now, levels, leaves, false, recorded))
      return false;
  for (uint64_t idle = e->idle[0]; idle; idle &= idle - 1) {
    const uint32_t device = (uint32_t)__builtin_ctzll(idle);
    if (e->inbox_head[device] != TFC_NONE) begin_first_transfer(e, device, now, leaves);
  }
  return true;
}

INLINE tfc_engine_stop run(struct tfc_engine *e, int64_t cutoff, uint32_t pause, uint32_t levels, uint32_t leaves,
                           bool recorded) {
  struct tfc_engine_scalars *s = e->scalars;
  bool first = s->ended == 0 && e->tree[1] == UINT64_MAX;
  uint32_t noted = s->ended;
  for (;; first = false) {
    const uint64_t least = e->tree[1];
    const int64_t now = first ? 0 : (int64_t)(least >> e->leaf_bits);
    const uint32_t device = (uint32_t)least & (leaves - 1);
    if (!first) {
      if (__builtin_expect(least == UINT64_MAX, 0)) break;
      if (now > s->now) {
        if (recorded && e->ends && s->ended != noted) e->ends->started[noted = s->ended] = e->starts;
        if (s->ended >= pause || is_watched_for(e)) return TFC_ENGINE_PAUSED;
      }
      s->now = now;
      if ((int64_t)(tree_without(e, device, leaves) >> e->leaf_bits) != now) { // a single end
        const uint32_t item = e->running[device];
        if (item & EVENT_TRANSFER)
          end_transfer(e, item & ~EVENT_TRANSFER, now, levels, recorded);
        else if (!end_operation(e, item, device, now, levels, leaves, true, recorded))
          return TFC_ENGINE_NO_LINK;
        if (e->inbox_head[device] != TFC_NONE) {
          begin_first_transfer(e, device, now, leaves);
        } else if (e->has_ready[0] >> device & 1) {
          if (!begin_operation(e, device, now, cutoff, levels, leaves, recorded)) return TFC_ENGINE_CUT;
        } else {
          e->idle[0] |= UINT64_C(1) << device;
          tree_set(e, device, UINT64_MAX, leaves);
        }
        continue;
      }
      if (!end_all(e, now, levels, leaves, recorded)) return TFC_ENGINE_NO_LINK;
    }
    for (uint64_t can = e->idle[0] & e->has_ready[0]; can; can &= can - 1)
      if (!begin_operation(e, (uint32_t)__builtin_ctzll(can), now, cutoff, levels, leaves, recorded))
        return TFC_ENGINE_CUT;
    if (__builtin_expect(e->failed, 0)) return TFC_ENGINE_NO_LINK;
  }
  s->value = s->now;
  return TFC_ENGINE_ENDED;
}

TFC_ENGINE_CLONES
tfc_engine_stop tfc_engine_run_inbox(struct tfc_engine *e, int64_t cutoff, uint32_t pause) {
  // the usual size: its numbers are passed as constants, so that the compiler unrolls loops
  const bool small = e->levels == 2 && e->leaves == 1 << INBOX_LEAF_BITS;
  const tfc_engine_stop stop = e->start ? run(e, cutoff, pause, e->levels, e->leaves, true)
                               : small  ? run(e, cutoff, pause, 2, 1 << INBOX_LEAF_BITS, false)
                                        : run(e, cutoff, pause, e->levels, e->leaves, false);
  return e->failed ? TFC_ENGINE_NO_LINK : stop;
}
