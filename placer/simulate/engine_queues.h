// For the engine*.c files only: the sets of ready operations and the tree of ends, which are in the engine's block.
#ifndef TFC_PLACER_SIMULATE_ENGINE_QUEUES_H
#define TFC_PLACER_SIMULATE_ENGINE_QUEUES_H

#include "placer/simulate/engine.h"
#include "runtime/base/heap.h"

#define EVENT_TRANSFER TFC_ENGINE_TRANSFER
#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TFC_SANITIZED) && defined(__OPTIMIZE__)
#define TFC_ENGINE_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TFC_ENGINE_CLONES
#endif
#define LEAST_LEAF_BITS 4 // 16 leaves: enough for four devices with a wire in each direction
#define INBOX_LEAF_BITS 2 // enough for four devices without wires

#define FILLER_DEVICE 63 // the device of the nodes that fill up groups of consumers; no device of a lean problem has it

// --- Sets of ready operations -------------------------------------------------------------------------------------

// Always writes all levels: a branch on the old value would be mispredicted half of the time. `levels`: e->levels, or
// a constant equal to it, so that the loop can be unrolled.
INLINE void ready_add_if(struct tfc_engine *e, uint32_t device, uint32_t rank, uint32_t levels, bool is) {
  uint64_t *words = e->ready + (size_t)device * e->words;
  uint32_t i = rank;
#pragma GCC unroll 4
  for (uint32_t level = 0; level < levels; level++) {
    words[e->level_at[level] + (i >> 6)] |= (uint64_t)is << (i & 63);
    i >>= 6;
  }
  e->has_ready[device >> 6] |= (uint64_t)is << (device & 63);
}
INLINE void ready_add(struct tfc_engine *e, uint32_t device, uint32_t rank, uint32_t levels) {
  ready_add_if(e, device, rank, levels, true);
}
INLINE uint32_t ready_pop(struct tfc_engine *e, uint32_t device, uint32_t levels) {
  uint64_t *words = e->ready + (size_t)device * e->words;
  uint32_t i = 0;
#pragma GCC unroll 4
  for (uint32_t level = levels; level-- > 0;) i = (i << 6) | (uint32_t)__builtin_ctzll(words[e->level_at[level] + i]);
  const uint32_t rank = i;
  uint64_t empty = 1;
#pragma GCC unroll 4
  for (uint32_t level = 0; level < levels; level++) {
    uint64_t *word = &words[e->level_at[level] + (i >> 6)];
    *word &= ~(empty << (i & 63));
    empty = *word == 0;
    i >>= 6;
  }
  e->has_ready[device >> 6] &= ~(empty << (device & 63));
  return rank;
}

// --- The tree of ends ----------------------------------------------------------------------------------------------

// `leaves`: e->leaves, or a constant that is the same.
INLINE void tree_set(struct tfc_engine *e, uint32_t leaf, uint64_t key, uint32_t leaves) {
  uint64_t *tree = e->tree;
  uint32_t i = leaves + leaf;
  tree[i] = key;
#pragma GCC unroll 5
  for (uint32_t width = leaves; width > 1; width >>= 1) {
    uint64_t other = tree[i ^ 1];
    key = other < key ? other : key;
    i >>= 1;
    tree[i] = key;
  }
}
// Returns the smallest key of all leaves except one, without writing to the tree.
INLINE uint64_t tree_without(const struct tfc_engine *e, uint32_t leaf, uint32_t leaves) {
  const uint64_t *tree = e->tree;
  uint64_t least = UINT64_MAX;
  uint32_t i = leaves + leaf;
#pragma GCC unroll 5
  for (uint32_t width = leaves; width > 1; width >>= 1, i >>= 1) least = tree[i ^ 1] < least ? tree[i ^ 1] : least;
  return least;
}

// --- The heap of events --------------------------------------------------------------------------------------------

INLINE bool ends_before(const void *none, struct tfc_engine_event a, struct tfc_engine_event b) {
  (void)none;
  return a.time < b.time;
}
TFC_HEAP(events, struct tfc_engine_event, const void *, ends_before)

INLINE void event_push(struct tfc_engine *e, int64_t time, uint32_t item) {
  uint32_t i = e->scalars->event_count;
  if (__builtin_expect(i >= e->events.capacity, 0) && !tfc_array_reserve(&e->events, i + 1)) {
    e->failed = true;
    return;
  }
  e->scalars->event_count = i + 1;
  events_push(e->events.data, i, (struct tfc_engine_event){time, item}, NULL);
}
INLINE uint32_t event_pop(struct tfc_engine *e) {
  return events_pop(e->events.data, e->scalars->event_count--, NULL).item;
}

// Adds an end at `time`: on a leaf or, if `leaf` is TFC_NONE, to the heap.
INLINE void end_at(struct tfc_engine *e, int64_t time, uint32_t item, uint32_t leaf) {
  if (leaf == TFC_NONE || !e->leaves) {
    event_push(e, time, item);
    return;
  }
  e->running[leaf] = item;
  tree_set(e, leaf, (uint64_t)time << e->leaf_bits | leaf, e->leaves);
}
// Returns the time of the next end, or -1.
INLINE int64_t next_end(const struct tfc_engine *e) {
  const uint64_t key = e->leaves ? e->tree[1] : UINT64_MAX;
  int64_t time = key == UINT64_MAX ? -1 : (int64_t)(key >> e->leaf_bits);
  if (__builtin_expect(e->scalars->event_count, 0) && (time < 0 || e->events.data[0].time < time))
    time = e->events.data[0].time;
  return time;
}
INLINE uint32_t take_end(struct tfc_engine *e, int64_t now) {
  if (__builtin_expect(e->scalars->event_count, 0) && e->events.data[0].time == now) return event_pop(e);
  const uint32_t leaf = (uint32_t)e->tree[1] & (e->leaves - 1);
  const uint32_t item = e->running[leaf];
  tree_set(e, leaf, UINT64_MAX, e->leaves);
  return item;
}

// A tensor has arrived on a device: its consumers there wait for one input less. Returns the set of devices of all its
// consumers. Consumers come in groups of four, filled up with a node on the device FILLER_DEVICE, so that few branches
// depend on the graph.
INLINE uint64_t arrive(struct tfc_engine *e, uint32_t tensor, uint32_t device, uint32_t levels, bool recorded) {
  uint64_t where = 0;
  for (uint32_t c = e->first_four[tensor]; c < e->first_four[tensor + 1]; c++) {
    const uint32_t *four = e->fours + 4 * (size_t)c;
    uint32_t ready = 0;
#pragma GCC unroll 4
    for (uint32_t k = 0; k < 4; k++) {
      const uint32_t n = four[k], there = e->device[n], comes = there == device, pending = e->pending[n] - comes;
      e->pending[n] = pending;
      ready |= (comes & (pending == 0)) << k;
      where |= UINT64_C(1) << there;
    }
    for (uint32_t left = ready; recorded && left; left &= left - 1)
      e->arrival[four[__builtin_ctz(left)]] = e->scalars->now;
    // Usually one consumer becomes ready, or none. A branch on that would be mispredicted about every second time, so
    // there is none. The first of four is always a node.
    const uint32_t one = (uint32_t)__builtin_ctz(ready | 16) & 3;
    ready_add_if(e, device, e->rank_now[four[one]], levels, ready != 0);
    for (ready &= ready - 1; __builtin_expect(ready != 0, 0); ready &= ready - 1) {
      const uint32_t n = four[__builtin_ctz(ready)];
      ready_add(e, device, e->rank_now[n], levels);
    }
  }
  return where;
}

// Whether the engine has to pause at the end of this instant (`end_position` in engine.h).
INLINE bool is_watched_for(const struct tfc_engine *e) {
  return e->end_position && e->scalars->ended == e->reach && e->reach >= e->watch_from;
}

#endif
