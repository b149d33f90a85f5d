// The engine's loop for the usual problems (`lean` in engine.h). In most rounds there is a single end. Then no lists
// are needed: the device or wire begins its next item at once, and one walk through the tree of ends handles both.
// Nothing is recorded.
#include "placer/simulate/engine_lean.h"
#include "placer/simulate/engine_queues.h"

// Starts the device's first ready operation. *key: its end, as the tree stores it. False: the value cannot be below the
// cutoff.
INLINE bool start_next(struct tfc_engine *e, uint32_t device, int64_t now, int64_t cutoff, uint32_t levels,
                       uint64_t *key) {
  const struct tfc_problem *p = e->problem;
  const uint32_t n = e->by_rank_now[ready_pop(e, device, levels)];
  const int64_t time = tfc_problem_time(p, n, device);
  if (cutoff != TFC_TIME_MAX) {
    if (e->tail && e->position[n] > e->tail_from && now + e->tail[n] >= cutoff) return false;
    if (now + p->remaining[n] >= cutoff || now + e->left[device] >= cutoff) return false;
  }
  e->left[device] -= time;
  e->busy[device] += time;
  e->running[device] = n;
  *key = (uint64_t)(now + time) << e->leaf_bits | device;
  return true;
}

INLINE uint64_t wire_key(const struct tfc_engine *e, const struct tfc_engine_transfer *t, const struct tfc_pair *pair,
                         int64_t now, uint32_t leaf) {
  return (uint64_t)(now + tfc_problem_wire_time(e->problem, t->tensor, pair)) << e->leaf_bits | leaf;
}

// Starts a transfer, or appends it to its wire's queue. False: no link, or out of memory.
INLINE bool send(struct tfc_engine *e, uint32_t tensor, uint32_t from, uint32_t to, int64_t now, uint32_t leaves) {
  const struct tfc_pair *pair = tfc_problem_pair(e->problem, from, to);
  const uint32_t index = e->scalars->transfer_count, wire = pair->wire;
  if (__builtin_expect(!pair->linked, 0)) return false;
  if (__builtin_expect(index >= e->transfers.capacity, 0) && !tfc_array_reserve(&e->transfers, (size_t)index + 1))
    return e->failed = true, false;
  e->scalars->transfer_count = index + 1;
  struct tfc_engine_transfer *t = &e->transfers.data[index];
  *t = (struct tfc_engine_transfer){
      .tensor = tensor, .next = TFC_NONE, .holds = TFC_NONE, .from = (tfc_device_id)from, .to = (tfc_device_id)to};
  if (!e->wire_busy[wire]) {
    const uint32_t leaf = e->problem->device_count + wire;
    e->wire_busy[wire] = 1;
    e->running[leaf] = EVENT_TRANSFER | index;
    tree_set(e, leaf, wire_key(e, t, pair, now, leaf), leaves);
  } else {
    uint32_t *const behind[2] = {&e->wire_head[wire], &e->transfers.data[e->wire_tail[wire]].next};
    *behind[e->wire_head[wire] != TFC_NONE] = index;
    e->wire_tail[wire] = index;
  }
  return true;
}

// Ends the transfer on a leaf; returns the key of the next one on its wire, or UINT64_MAX.
INLINE uint64_t end_transfer(struct tfc_engine *e, uint32_t leaf, int64_t now, uint32_t levels) {
  const uint32_t wire = leaf - e->problem->device_count, head = e->wire_head[wire];
  struct tfc_engine_transfer *t = &e->transfers.data[e->running[leaf] & ~EVENT_TRANSFER];
  const uint32_t to = t->to, tensor = t->tensor;
  t->next = TFC_ENGINE_OVER;
  arrive(e, tensor, to, levels, false);
  if (head == TFC_NONE) {
    e->wire_busy[wire] = 0;
    return UINT64_MAX;
  }
  struct tfc_engine_transfer *next = &e->transfers.data[head];
  e->wire_head[wire] = next->next;
  next->next = TFC_NONE;
  e->running[leaf] = EVENT_TRANSFER | head;
  return wire_key(e, next, tfc_problem_pair(e->problem, next->from, next->to), now, leaf);
}

INLINE tfc_engine_stop run(struct tfc_engine *e, int64_t cutoff, uint32_t pause, uint32_t levels, uint32_t leaves) {
  const struct tfc_cost_graph *g = e->problem->graph;
  const uint32_t devices = e->problem->device_count;
  struct tfc_engine_scalars *s = e->scalars;
  tfc_engine_stop stop = TFC_ENGINE_ENDED;
  bool first = s->ended == 0 && e->tree[1] == UINT64_MAX;
  for (;; first = false) {
    const uint64_t least = e->tree[1];
    const int64_t now = (int64_t)(least >> e->leaf_bits);
    const uint32_t leaf = (uint32_t)least & (leaves - 1);
    if (__builtin_expect(least == UINT64_MAX, 0) && !first) break;
    if (now > s->now && !first && (s->ended >= pause || is_watched_for(e))) return TFC_ENGINE_PAUSED;
    if (!first && leaf >= devices && (e->apart || (int64_t)(tree_without(e, leaf, leaves) >> e->leaf_bits) != now)) {
      // Only transfers end at this instant, because device leaves come first; none that begins now ends now.
      s->now = now;
      for (uint32_t at = leaf; at != TFC_NONE;) {
        tree_set(e, at, end_transfer(e, at, now, levels), leaves);
        at = (int64_t)(e->tree[1] >> e->leaf_bits) == now ? (uint32_t)e->tree[1] & (leaves - 1) : TFC_NONE;
        if (!e->apart) break;
      }
      for (uint64_t can = e->idle[0] & e->has_ready[0]; can; can &= can - 1) {
        const uint32_t device = (uint32_t)__builtin_ctzll(can);
        uint64_t key;
        if (!start_next(e, device, now, cutoff, levels, &key)) return TFC_ENGINE_CUT;
        e->idle[0] &= ~(UINT64_C(1) << device);
        tree_set(e, device, key, leaves);
      }
    } else if (first || (int64_t)(tree_without(e, leaf, leaves) >> e->leaf_bits) == now) {
      if (!tfc_engine_round(e, now, first, cutoff, &stop)) return stop;
    } else { // a single operation ends
      const uint32_t n = e->running[leaf], device = leaf;
      uint64_t key = UINT64_MAX;
      s->now = now;
      s->ended++;
      if (e->end_position && e->end_position[n] >= e->reach) e->reach = e->end_position[n] + 1;
      for (uint32_t tensor = g->first_tensor[n]; tensor < g->first_tensor[n + 1]; tensor++) {
        uint64_t away =
            arrive(e, tensor, device, levels, false) & ~(UINT64_C(1) << device | UINT64_C(1) << FILLER_DEVICE);
        for (; away; away &= away - 1)
          if (!send(e, tensor, device, (uint32_t)__builtin_ctzll(away), now, leaves)) return TFC_ENGINE_NO_LINK;
      }
      if (e->has_ready[0] >> device & 1) {
        if (!start_next(e, device, now, cutoff, levels, &key)) return TFC_ENGINE_CUT;
      } else {
        e->idle[0] |= UINT64_C(1) << device;
      }
      tree_set(e, leaf, key, leaves); // until now the leaf had its old key, which was the smallest
    }
  }
  s->value = s->now;
  return TFC_ENGINE_ENDED;
}

// The usual sizes are constants, so that the compiler unrolls the loops: up to 4,096 and up to 262,144 operations on up
// to four devices.
TFC_ENGINE_CLONES
tfc_engine_stop tfc_engine_run_lean(struct tfc_engine *e, int64_t cutoff, uint32_t pause) {
  if (e->leaves == 1 << LEAST_LEAF_BITS && e->levels == 2) return run(e, cutoff, pause, 2, 1 << LEAST_LEAF_BITS);
  if (e->leaves == 1 << LEAST_LEAF_BITS && e->levels == 3) return run(e, cutoff, pause, 3, 1 << LEAST_LEAF_BITS);
  return run(e, cutoff, pause, e->levels, e->leaves);
}
