// Ends that come are kept in a tournament tree with a leaf for each device and each wire: a change is a walk of
// compares without branches to the root. Transfers on no wire go to a binary heap.
//
// A round: all ends of one instant are taken from there (operations make their local consumers ready and
// append their transfers to the list, in the order of the rule; transfers make their consumers ready), then waiting
// transfers start, then idle devices start their first ready operation.
//
// The list of waiting transfers is walked without looking at all of it: a transfer can start only if it is the first
// of its wire, so there is a queue for each wire, and only wires that became free or got their first transfer are
// looked at. Where transfers occupy devices, those that found one busy wait in a heap of that device, by their place in
// the list, and come back when it is idle; a small heap merges all of them in the order of the list.
#include "placer/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_TRANSFER TFC_ENGINE_TRANSFER
#define INLINE static inline __attribute__((always_inline))

// --- sets of ready operations -------------------------------------------------------------------------------------

// All levels are always written: branches on what was there would be guessed wrong half of the time.
INLINE void ready_add(struct tfc_engine *e, uint32_t device, uint32_t rank) {
  uint64_t *words = e->ready + (size_t)device * e->words;
  uint32_t i = rank;
  for (uint32_t level = 0; level < e->levels; level++) {
    words[e->level_at[level] + (i >> 6)] |= UINT64_C(1) << (i & 63);
    i >>= 6;
  }
  e->has_ready[device >> 6] |= UINT64_C(1) << (device & 63);
}
INLINE uint32_t ready_pop(struct tfc_engine *e, uint32_t device) {
  uint64_t *words = e->ready + (size_t)device * e->words;
  uint32_t i = 0;
  for (uint32_t level = e->levels; level-- > 0;)
    i = (i << 6) | (uint32_t)__builtin_ctzll(words[e->level_at[level] + i]);
  const uint32_t rank = i;
  uint64_t empty = 1;
  for (uint32_t level = 0; level < e->levels; level++) {
    uint64_t *word = &words[e->level_at[level] + (i >> 6)];
    *word &= ~(empty << (i & 63));
    empty = *word == 0;
    i >>= 6;
  }
  e->has_ready[device >> 6] &= ~(empty << (device & 63));
  return rank;
}

// --- tree of ends ----------------------------------------------------------------------------------------------------

INLINE void tree_set(struct tfc_engine *e, uint32_t leaf, uint64_t key) {
  uint64_t *tree = e->tree;
  uint32_t i = e->leaves + leaf;
  tree[i] = key;
  for (; i > 1; i >>= 1) {
    uint64_t other = tree[i ^ 1];
    key = other < key ? other : key;
    tree[i >> 1] = key;
  }
}

// --- heap of events ------------------------------------------------------------------------------------------------

INLINE void event_push(struct tfc_engine *e, int64_t time, uint32_t item) {
  uint32_t i = e->scalars->event_count;
  if (__builtin_expect(i >= e->events.capacity, 0) && !tfc_array_reserve(&e->events, i + 1)) {
    e->failed = true;
    return;
  }
  struct tfc_engine_event *heap = e->events.data;
  e->scalars->event_count = i + 1;
  while (i) {
    uint32_t parent = (i - 1) / 2;
    if (heap[parent].time <= time) break;
    heap[i] = heap[parent];
    i = parent;
  }
  heap[i] = (struct tfc_engine_event){time, item};
}
INLINE uint32_t event_pop(struct tfc_engine *e) {
  struct tfc_engine_event *heap = e->events.data, last;
  uint32_t item = heap[0].item, count = --e->scalars->event_count, i = 0;
  last = heap[count];
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= count) break;
    if (child + 1 < count && heap[child + 1].time < heap[child].time) child++;
    if (heap[child].time >= last.time) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return item;
}

// An end at `time`, on a leaf or (TFC_NONE) on none.
INLINE void end_at(struct tfc_engine *e, int64_t time, uint32_t item, uint32_t leaf) {
  if (leaf == TFC_NONE || !e->leaves) {
    event_push(e, time, item);
    return;
  }
  e->running[leaf] = item;
  tree_set(e, leaf, (uint64_t)time << e->leaf_bits | leaf);
}
// The next end, or -1.
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
  tree_set(e, leaf, UINT64_MAX);
  return item;
}

// --- devices -------------------------------------------------------------------------------------------------------

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

// An input of the node is there, if `comes`: written so that only becoming ready is a branch.
INLINE void input_there(struct tfc_engine *e, uint32_t node, uint32_t device, bool comes) {
  const uint32_t pending = e->pending[node] - comes;
  e->pending[node] = pending;
  if ((pending == 0) & comes) {
    if (e->arrival) e->arrival[node] = e->scalars->now;
    ready_add(e, device, e->rank_now[node]);
  }
}

// --- transfers -----------------------------------------------------------------------------------------------------

// Pairing heap over transfers, by index (Fredman, Sedgewick, Sleator, Tarjan 1986).
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
  while (i != TFC_NONE) { // left to right, melding pairs onto a list
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

static void walk_push(struct tfc_engine *e, uint32_t transfer) {
  if (!tfc_array_push(&e->walk, transfer)) {
    e->failed = true;
    return;
  }
  uint32_t *heap = e->walk.data;
  size_t i = e->walk.count - 1;
  for (; i && heap[(i - 1) / 2] > transfer; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = transfer;
}
static uint32_t walk_pop(struct tfc_engine *e) {
  uint32_t *heap = e->walk.data, top = heap[0], last = heap[--e->walk.count];
  size_t i = 0, count = e->walk.count;
  for (size_t child; (child = 2 * i + 1) < count; i = child) {
    if (child + 1 < count && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= last) break;
    heap[i] = heap[child];
  }
  if (count) heap[i] = last;
  return top;
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
  if (e->problem->has_live) hold(e, t->to, e->problem->graph->live[t->tensor]);
  if (e->log_transfers) {
    e->log.data[index].start = e->scalars->now, e->log.data[index].end = e->scalars->now + time;
    e->log_sequence.data[index] = e->all_starts++;
  }
}

static void log_transfer(struct tfc_engine *e, const struct tfc_engine_transfer *t) {
  struct tfc_transfer entry = {.tensor = t->tensor, .from = t->from, .to = t->to, .ready = e->scalars->now};
  if (!tfc_array_push(&e->log, entry) || !tfc_array_push(&e->log_sequence, 0u)) e->failed = true;
}

// Appends a transfer to the list. In the plain case it starts at once where its wire is free with nobody before it:
// nothing else that happens in this round could keep it from that.
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

static void start_transfers(struct tfc_engine *e) { // the list is walked, with occupancy
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
    // The next of a device's heap comes out as long as the device stays idle: it came in because this one left.
    for (int end = 0; end < 2; end++) {
      uint32_t d = end ? t->to : t->from;
      if (!(pair->occupies & (end ? TFC_OCCUPIES_RECEIVER : TFC_OCCUPIES_SENDER))) continue;
      if (!is_idle(e, d) || e->heap_root[d] == TFC_NONE) continue;
      walk_push(e, e->heap_root[d]);
      e->heap_root[d] = heap_drop_root(e->transfers.data, e->heap_root[d]);
    }
  }
}

// --- rounds --------------------------------------------------------------------------------------------------------

INLINE void end_transfer(struct tfc_engine *e, uint32_t index, uint32_t *touched, bool plain) {
  const struct tfc_cost_graph *g = e->problem->graph;
  struct tfc_engine_transfer *t = &e->transfers.data[index];
  const uint32_t to = t->to, tensor = t->tensor;
  const struct tfc_pair *pair = tfc_problem_pair(e->problem, t->from, to);
  uint32_t here = 0;
  t->next = TFC_ENGINE_OVER;
  if (e->arrived) e->arrived[(size_t)tensor * e->problem->device_count + to] = e->scalars->now;
  if (pair->wire != TFC_NONE) {
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
  if (e->problem->has_live) {
    t->holds = here;
    if (--e->holds[tensor] == 0) e->memory[t->from] -= g->live[tensor];
  }
}

// The inputs of an operation that ended are let go.
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
      if (!plain && e->problem->has_live) e->first_transfer[tensor] = e->scalars->transfer_count;
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
      if (!plain && e->problem->has_live) e->first_transfer[tensor] = e->scalars->transfer_count;
      for (uint32_t w = 0; w < e->masks; w++)
        for (; away[w]; away[w] &= away[w] - 1, holds++)
          if (!join(e, tensor, device, w * 64 + (uint32_t)__builtin_ctzll(away[w]), touched, plain)) return false;
    }
    if (!plain && e->problem->has_live) e->holds[tensor] = holds;
  }
  if (!plain && e->problem->has_live) release_inputs(e, n, device);
  return true;
}

// False: the value cannot be below the cutoff.
INLINE bool start_node(struct tfc_engine *e, uint32_t device, int64_t cutoff, bool plain) {
  const struct tfc_problem *p = e->problem;
  const uint32_t n = e->by_rank_now[ready_pop(e, device)];
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
    if (p->has_live)
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

INLINE tfc_engine_stop run(struct tfc_engine *e, int64_t cutoff, uint32_t pause, bool plain) {
  struct tfc_engine_scalars *s = e->scalars;
  if (!e->problem->is_bounded) cutoff = TFC_TIME_MAX;
  int64_t now = next_end(e);
  bool first = s->ended == 0 && now < 0; // at time 0 the sources start without an end before them
  for (; now >= 0 || first; now = next_end(e)) {
    uint32_t touched = 0;
    if (!first) {
      uint32_t ended = 0;
      if (now > s->now && s->ended >= pause) return TFC_ENGINE_PAUSED;
      s->now = now;
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
        if (!end_node(e, e->ended_nodes[i], &touched, plain)) return TFC_ENGINE_NO_LINK;
    }
    first = false;
    for (uint32_t i = 0; i < touched; i++) {
      uint32_t wire = e->touched_wires[i];
      e->wire_touched[wire] = 0;
      uint32_t index = take_head(e, wire);
      e->wire_busy[wire] = 1; // also while the first one waits for a device: those behind it wait for the wire
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
        if (!start_node(e, w * 64 + (uint32_t)__builtin_ctzll(can), cutoff, plain)) return TFC_ENGINE_CUT;
    if (__builtin_expect(e->failed, 0)) return TFC_ENGINE_NO_LINK;
  }
  s->value = s->now;
  return TFC_ENGINE_ENDED;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
tfc_engine_stop
tfc_engine_run(struct tfc_engine *e, int64_t cutoff, uint32_t pause) {
  tfc_engine_stop stop = e->plain && !e->log_transfers ? run(e, cutoff, pause, true) : run(e, cutoff, pause, false);
  if (stop == TFC_ENGINE_CUT || stop == TFC_ENGINE_NO_LINK) { // leave the work space clean
    memset(e->wire_touched, 0, e->problem->wire_count);
    e->walk.count = 0;
  }
  return stop;
}

// --- making and moving states --------------------------------------------------------------------------------------

static size_t carve(size_t *at, size_t count, size_t size) {
  size_t here = (*at + 63) & ~(size_t)63;
  *at = here + count * size;
  return here;
}

tfc_status tfc_engine_init(struct tfc_engine *e, const struct tfc_problem *p) {
  *e = (struct tfc_engine){.problem = p};
  const size_t nodes = p->node_count, devices = p->device_count, wires = p->wire_count + 1;
  const size_t live = p->has_live ? p->tensor_count : 0;
  e->plain = !p->has_live && !p->has_occupancy && !p->has_slowdown;
  e->masks = (uint32_t)(devices + 63) / 64;
  size_t bits = nodes;
  do { // a level of words for each factor of 64
    e->level_at[e->levels++] = e->words;
    bits = (bits + 63) / 64;
    e->words += (uint32_t)bits;
  } while (bits > 1);
  // Times are packed with the number of a leaf in 64 bits, where the longest step that could be allows it.
  for (e->leaf_bits = 1; (UINT64_C(1) << e->leaf_bits) < devices + p->wire_count; e->leaf_bits++) continue;
  if (p->horizon < (double)(UINT64_C(1) << (62 - e->leaf_bits))) e->leaves = UINT32_C(1) << e->leaf_bits;
  size_t at = 0, tree = carve(&at, 2 * (size_t)e->leaves, sizeof *e->tree);
  size_t running = carve(&at, e->leaves, sizeof *e->running);
  size_t scalars = carve(&at, 1, sizeof *e->scalars), pending = carve(&at, nodes, sizeof *e->pending);
  size_t ready = carve(&at, devices * e->words, sizeof *e->ready), left = carve(&at, devices, sizeof *e->left);
  size_t busy = carve(&at, devices, sizeof *e->busy), idle = carve(&at, e->masks, sizeof *e->idle);
  size_t has_ready = carve(&at, e->masks, sizeof *e->has_ready), head = carve(&at, wires, sizeof *e->wire_head);
  size_t tail = carve(&at, wires, sizeof *e->wire_tail), wire_busy = carve(&at, wires, sizeof *e->wire_busy);
  size_t root = carve(&at, devices, sizeof *e->heap_root), class = carve(&at, devices, sizeof *e->class_busy);
  size_t holds = carve(&at, live, sizeof *e->holds), memory = carve(&at, devices, sizeof *e->memory);
  size_t peak = carve(&at, devices, sizeof *e->peak), first_transfer = carve(&at, live, sizeof *e->first_transfer);
  e->block_size = (at + 63) & ~(size_t)63;
  e->block = aligned_alloc(64, e->block_size);
  e->device = calloc(nodes, sizeof *e->device);
  e->rank = calloc(nodes, sizeof *e->rank);
  e->by_rank = calloc(nodes, sizeof *e->by_rank);
  e->ended_nodes = calloc(devices, sizeof *e->ended_nodes);
  e->touched_wires = calloc(wires, sizeof *e->touched_wires);
  e->wire_touched = calloc(wires, 1);
  e->kind_of = calloc(devices, sizeof *e->kind_of);
  e->inputs = calloc(nodes, sizeof *e->inputs);
  e->sources = calloc(nodes, sizeof *e->sources);
  if (!e->inputs || !e->sources || !e->block || !e->device || !e->rank || !e->by_rank || !e->ended_nodes ||
      !e->touched_wires || !e->wire_touched || !e->kind_of || !tfc_array_reserve(&e->events, devices + wires + 16)) {
    tfc_engine_deinit(e);
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a simulator");
  }
  uint8_t *b = e->block;
  e->tree = (void *)(b + tree), e->running = (void *)(b + running);
  e->scalars = (void *)(b + scalars), e->pending = (void *)(b + pending), e->ready = (void *)(b + ready);
  e->left = (void *)(b + left), e->busy = (void *)(b + busy), e->idle = (void *)(b + idle);
  e->has_ready = (void *)(b + has_ready), e->wire_head = (void *)(b + head), e->wire_tail = (void *)(b + tail);
  e->wire_busy = b + wire_busy, e->heap_root = (void *)(b + root), e->class_busy = (void *)(b + class);
  e->holds = (void *)(b + holds), e->memory = (void *)(b + memory), e->peak = (void *)(b + peak);
  e->first_transfer = (void *)(b + first_transfer);
  for (uint32_t d = 0; d < devices; d++) {
    e->kind_of[d] = d;
    for (uint32_t c = 0; c < d && e->kind_of[d] == d; c++)
      if (tfc_str_equal(p->machine->devices[c].kind, p->machine->devices[d].kind)) e->kind_of[d] = c;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    e->inputs[n] = p->graph->first_input[n + 1] - p->graph->first_input[n];
    if (!e->inputs[n]) e->sources[e->source_count++] = n;
  }
  e->rank_now = p->rank, e->by_rank_now = p->by_rank;
  return NULL;
}

void tfc_engine_deinit(struct tfc_engine *e) {
  free(e->block), free(e->device), free(e->rank), free(e->by_rank), free(e->ended_nodes), free(e->touched_wires);
  free(e->wire_touched), free(e->kind_of), free(e->inputs), free(e->sources);
  tfc_array_free(&e->events);
  tfc_array_free(&e->transfers);
  tfc_array_free(&e->walk);
  tfc_array_free(&e->log);
  tfc_array_free(&e->log_sequence);
  *e = (struct tfc_engine){0};
}

bool tfc_engine_place(struct tfc_engine *e, const tfc_device_id *unit_device, const uint32_t *rank) {
  const struct tfc_problem *p = e->problem;
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (unit_device[u] >= p->device_count || !tfc_problem_allows(p, u, unit_device[u])) return false;
  for (uint32_t n = 0; n < p->node_count; n++) e->device[n] = unit_device[p->unit[n]];
  if (rank && rank != p->rank) {
    memcpy(e->rank, rank, sizeof *rank * p->node_count);
    for (uint32_t n = 0; n < p->node_count; n++) e->by_rank[rank[n]] = n;
    e->rank_now = e->rank, e->by_rank_now = e->by_rank;
  } else {
    e->rank_now = p->rank, e->by_rank_now = p->by_rank;
  }
  return true;
}

void tfc_engine_begin(struct tfc_engine *e) {
  const struct tfc_problem *p = e->problem;
  memset(e->block, 0, e->block_size);
  memset(e->tree, 0xff, sizeof *e->tree * 2 * e->leaves);
  memset(e->wire_head, 0xff, sizeof *e->wire_head * p->wire_count);
  memset(e->heap_root, 0xff, sizeof *e->heap_root * p->device_count);
  for (uint32_t d = 0; d < p->device_count; d++) e->idle[d >> 6] |= UINT64_C(1) << (d & 63);
  e->starts = e->all_starts = 0;
  e->log.count = e->log_sequence.count = 0;
  e->walk.count = 0;
  memcpy(e->pending, e->inputs, sizeof *e->pending * p->node_count);
  for (uint32_t n = 0; n < p->node_count; n++) e->left[e->device[n]] += tfc_problem_time(p, n, e->device[n]);
  for (uint32_t i = 0; i < e->source_count; i++) {
    const uint32_t n = e->sources[i];
    if (e->arrival) e->arrival[n] = 0;
    ready_add(e, e->device[n], e->rank_now[n]);
  }
}

bool tfc_engine_save(struct tfc_engine *e, struct tfc_engine_save *save) {
  struct tfc_engine_scalars *s = e->scalars;
  if (!e->problem->has_live)
    while (s->transfer_low < s->transfer_count && e->transfers.data[s->transfer_low].next == TFC_ENGINE_OVER)
      s->transfer_low++;
  size_t count = s->transfer_count - s->transfer_low;
  if (!save->block) save->block = malloc(e->block_size);
  if (!save->block || !tfc_array_reserve(&save->events, s->event_count + 1u) ||
      !tfc_array_reserve(&save->transfers, count + 1))
    return false;
  memcpy(save->block, e->block, e->block_size);
  memcpy(save->events.data, e->events.data, sizeof *e->events.data * s->event_count);
  if (count) memcpy(save->transfers.data, e->transfers.data + s->transfer_low, sizeof *e->transfers.data * count);
  save->transfers.count = count;
  save->time = next_end(e) < 0 ? 0 : next_end(e);
  save->starts = e->starts;
  return true;
}

void tfc_engine_restore(struct tfc_engine *e, const struct tfc_engine_save *save) {
  memcpy(e->block, save->block, e->block_size);
  memcpy(e->events.data, save->events.data, sizeof *e->events.data * e->scalars->event_count);
  if (save->transfers.count)
    memcpy(e->transfers.data + e->scalars->transfer_low, save->transfers.data,
           sizeof *e->transfers.data * save->transfers.count);
  e->starts = save->starts;
  e->walk.count = 0;
}

// A member of the block in a saved state.
#define SAVED(e, save, member) ((const void *)((save)->block + ((const uint8_t *)(e)->member - (e)->block)))

uint32_t tfc_engine_save_ended(const struct tfc_engine *e, const struct tfc_engine_save *save) {
  return ((const struct tfc_engine_scalars *)SAVED(e, save, scalars))->ended;
}

static bool same_transfer(const struct tfc_engine_transfer *a, const struct tfc_engine_transfer *b) {
  return a->tensor == b->tensor && a->from == b->from && a->to == b->to;
}

bool tfc_engine_meets(const struct tfc_engine *e, const struct tfc_engine_save *save) {
  const struct tfc_problem *p = e->problem;
  const struct tfc_engine_scalars *s = e->scalars, *t = SAVED(e, save, scalars);
  if (!e->plain || !e->leaves || s->ended != t->ended || s->event_count || t->event_count || next_end(e) != save->time)
    return false;
  if (memcmp(e->tree, SAVED(e, save, tree), sizeof *e->tree * 2 * e->leaves) != 0 ||
      memcmp(e->pending, SAVED(e, save, pending), sizeof *e->pending * p->node_count) != 0 ||
      memcmp(e->ready, SAVED(e, save, ready), sizeof *e->ready * e->words * p->device_count) != 0)
    return false;
  const uint32_t *running = SAVED(e, save, running), *head = SAVED(e, save, wire_head);
  for (uint32_t d = 0; d < p->device_count; d++)
    if (e->tree[e->leaves + d] != UINT64_MAX && e->running[d] != running[d]) return false;
  for (uint32_t w = 0; w < p->wire_count; w++) {
    const uint32_t leaf = p->device_count + w;
    if (e->tree[e->leaves + leaf] == UINT64_MAX) continue; // then nobody waits for it either
    if (!same_transfer(&e->transfers.data[e->running[leaf] & ~EVENT_TRANSFER],
                       &save->transfers.data[(running[leaf] & ~EVENT_TRANSFER) - t->transfer_low]))
      return false;
    uint32_t i = e->wire_head[w], j = head[w];
    while (i != TFC_NONE && j != TFC_NONE) {
      const struct tfc_engine_transfer *a = &e->transfers.data[i], *b = &save->transfers.data[j - t->transfer_low];
      if (!same_transfer(a, b)) return false;
      i = a->next, j = b->next;
    }
    if (i != j) return false;
  }
  return true;
}

void tfc_engine_save_deinit(struct tfc_engine_save *save) {
  free(save->block);
  tfc_array_free(&save->events);
  tfc_array_free(&save->transfers);
  *save = (struct tfc_engine_save){0};
}

uint64_t tfc_engine_transfer_bytes(const struct tfc_engine *e) {
  uint64_t bytes = 0;
  if (e->count_bytes) return e->scalars->transfer_bytes;
  for (uint32_t i = 0; i < e->scalars->transfer_count; i++)
    bytes += e->problem->graph->bytes[e->transfers.data[i].tensor];
  return bytes;
}
