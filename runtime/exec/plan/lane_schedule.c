// Schedules operations side by side on the cores of one device: list scheduling by the longest remaining path (HEFT),
// in which an operation may also be split over several idle lanes. Splitting pays if fewer operations are ready than
// lanes are idle, and if the operation's loops can be split; it always costs a little. The scheduling is simulated with
// several settings (struct manner), and the shortest schedule is taken.
#include <math.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/order_heap.h"
#include "runtime/exec/plan/lane_schedule.h"
#include "runtime/exec/plan/order.h"
#include "runtime/exec/plan/plan_internal.h"

enum { MOST_LANES = 16, MOST_OPS_TRIED = 20000 };
// Idle lanes may help with an operation that takes at least `worth_helping_us` on one lane, if with all lanes it is at
// least `helped_well` times the number of lanes as fast.
static const double worth_helping_us = 100, helped_well = 0.75;

struct scheduler {
  const struct tfc_ir *ir;
  struct tfc_order_graph graph;
  uint32_t lanes, wanted;
  double *took; // [ops * lanes] µs on 1, 2, ... lanes
  double *rank; // [ops] longest path to the end
  uint32_t *topological, *waiting;
  double *ready_at;
  struct tfc_order_heap events, ready; // have room for all operations
  // State of the running simulation.
  uint32_t idle; // a bit for each idle lane
  double busy_until[MOST_LANES], ready_work;
  uint32_t *sequence, count;
  uint16_t *lane;
  uint32_t *helpers;
  bool *open;
};
struct manner {    // settings of one simulation
  uint32_t widest; // most lanes of one operation
  // An operation is split over all idle lanes, even if others are ready, if its speed-up on `widest` lanes is at least
  // this share of their number; > 1: never.
  double efficiency;
  double patience; // the operation waits for more lanes if it then ends earlier by at least this share of its time; 0:
                   // never
};

static double took(const struct scheduler *s, uint32_t op, uint32_t lanes) {
  return s->took[(size_t)op * s->lanes + lanes - 1];
}

// Estimates the time of each operation on 1, 2, ... lanes. The part that cannot be split takes the same time on any
// number; the rest is the work of all cores divided by the lanes, with a loss from splitting that grows with their
// number.
static void estimate(struct scheduler *s, const struct tfc_op_time *times) {
  double us = tfc_ns_per_tick() * 1e-3;
  for (size_t i = 0; i < s->ir->ops.count; i++) {
    const struct tfc_op_time *t = &times[i];
    double wall = (double)t->wall * us, split = (double)t->split * us, work = (double)t->work * us;
    double lost = split * s->lanes > work ? split * s->lanes - work : 0;
    for (uint32_t m = 1; m <= s->lanes; m++) {
      double share = s->lanes > 1 ? (double)(m - 1) / (double)(s->lanes - 1) : 0;
      s->took[i * s->lanes + m - 1] =
          wall - split + (work + lost * share) / m + (wall > 0 ? 0.1 : 0) + (m > 1 && split > 0 ? 1 : 0);
    }
  }
}

static tfc_status sort(struct scheduler *s) {
  const struct tfc_order_graph *g = &s->graph;
  uint32_t n = (uint32_t)s->ir->ops.count, count = 0;
  memcpy(s->waiting, g->waiting, n * sizeof *s->waiting);
  for (uint32_t i = 0; i < n; i++)
    if (!s->ir->ops.data[i].dead && !s->waiting[i]) s->topological[count++] = i;
  for (uint32_t k = 0; k < count; k++)
    for (uint32_t e = g->begin[s->topological[k]]; e < g->begin[s->topological[k] + 1]; e++)
      if (--s->waiting[g->to[e]] == 0) s->topological[count++] = g->to[e];
  if (count != s->wanted) return tfc_status_make(TFC_INTERNAL, "operations could not be ordered");
  return NULL;
}

// Returns the idle lane that computed most of the operation's inputs, else the first idle one.
static uint32_t leader_of(const struct scheduler *s, uint32_t id, uint32_t idle) {
  const struct tfc_ir_op *op = &s->ir->ops.data[id];
  uint64_t bytes[MOST_LANES] = {0};
  uint32_t best = (uint32_t)__builtin_ctz(idle);
  for (uint32_t k = 0; k < op->input_count; k++) {
    uint32_t v = op->inputs[k].value;
    uint32_t from = v == TFC_NONE ? TFC_NONE : s->ir->values.data[v].op;
    if (from != TFC_NONE && !s->ir->ops.data[from].joint) bytes[s->lane[from]] += s->ir->values.data[v].bytes;
  }
  for (uint32_t l = 0; l < s->lanes; l++)
    if ((idle >> l & 1) && bytes[l] > bytes[best]) best = l;
  return best;
}

static uint32_t width_for(const struct scheduler *s, uint32_t id, uint32_t room) {
  uint32_t width = 1;
  for (uint32_t m = 2; m <= room; m++)
    if (took(s, id, m) < 0.92 * took(s, id, width)) width = m;
  return width;
}

// Returns the time at which the operation should start, if it ends earlier by waiting for more lanes; otherwise 0.
static double better_later(const struct scheduler *s, uint32_t id, uint32_t width, struct manner manner, double now) {
  double until[MOST_LANES], best = now + took(s, id, width) * manner.patience, start = 0;
  if (manner.patience == 0) return 0;
  memcpy(until, s->busy_until, sizeof until);
  for (uint32_t i = 1; i < s->lanes; i++) // insertion sort, as there are at most MOST_LANES
    for (uint32_t k = i; k > 0 && until[k] < until[k - 1]; k--) {
      double t = until[k];
      until[k] = until[k - 1], until[k - 1] = t;
    }
  for (uint32_t m = width + 1; m <= manner.widest; m++) {
    if (until[m - 1] <= now || until[m - 1] + took(s, id, m) >= best) continue;
    best = until[m - 1] + took(s, id, m);
    start = until[m - 1];
  }
  return start;
}

// Starts ready operations on idle lanes, the longest path first. An operation that should wait lets shorter ones run if
// they end before it starts.
static void start_ready(struct scheduler *s, struct manner manner, double now) {
  enum { MOST_HELD = 64 };
  struct tfc_order_entry held[MOST_HELD];
  uint32_t held_count = 0;
  double limit = INFINITY;
  while (s->idle && s->ready.count && held_count < MOST_HELD) {
    struct tfc_order_entry top = tfc_order_heap_pop(&s->ready);
    uint32_t id = top.id, idle_count = (uint32_t)__builtin_popcount(s->idle);
    double alone = took(s, id, 1), others = fmax(s->ready_work - alone, 0);
    // How many ready operations want lanes, too, if each of them takes as long as this one.
    uint32_t rivals = alone > 0 && others < alone * s->ready.count ? (uint32_t)ceil(others / alone) : s->ready.count;
    uint32_t room = idle_count / (rivals + 1);
    if (alone >= manner.efficiency * manner.widest * took(s, id, manner.widest)) room = idle_count;
    uint32_t width = width_for(s, id, room < manner.widest ? room : manner.widest);
    double later = better_later(s, id, width, manner, now);
    if (later > 0 || now + took(s, id, width) > limit) {
      if (later > 0 && later < limit) limit = later;
      held[held_count++] = top;
      continue;
    }
    s->ready_work = others;
    uint32_t lane = leader_of(s, id, s->idle);
    s->idle &= ~(1u << lane);
    s->busy_until[lane] = now + took(s, id, width);
    for (uint32_t m = 1; m < width; m++) {
      uint32_t helper = (uint32_t)__builtin_ctz(s->idle);
      s->idle &= ~(1u << helper);
      s->helpers[id] |= 1u << helper;
      s->busy_until[helper] = s->busy_until[lane];
    }
    s->lane[id] = (uint16_t)lane;
    s->sequence[s->count++] = id;
    tfc_order_heap_push(&s->events, (struct tfc_order_entry){s->busy_until[lane], 0, id});
  }
  for (uint32_t i = 0; i < held_count; i++) tfc_order_heap_push(&s->ready, held[i]);
}

static double simulate(struct scheduler *s, struct manner manner) {
  const struct tfc_ir *ir = s->ir;
  const struct tfc_order_graph *g = &s->graph;
  uint32_t n = (uint32_t)ir->ops.count;
  double now = 0;
  s->idle = (1u << s->lanes) - 1;
  s->ready_work = 0;
  memset(s->busy_until, 0, sizeof s->busy_until);
  for (uint32_t i = s->wanted; i-- > 0;) {
    uint32_t id = s->topological[i];
    double longest = ir->ops.data[id].tail_us;
    for (uint32_t k = g->begin[id]; k < g->begin[id + 1]; k++) longest = fmax(longest, s->rank[g->to[k]]);
    s->rank[id] = longest + took(s, id, s->lanes);
  }
  memcpy(s->waiting, g->waiting, n * sizeof *s->waiting);
  memset(s->helpers, 0, n * sizeof *s->helpers);
  s->count = 0;
  s->events.count = s->ready.count = 0;
  for (uint32_t i = 0; i < n; i++)
    if (!ir->ops.data[i].dead && !s->waiting[i]) tfc_order_heap_push(&s->events, (struct tfc_order_entry){0, 1, i});
  while (s->events.count) { // an operation ends (tie 0) or becomes ready (tie 1)
    now = s->events.data[0].key;
    while (s->events.count && s->events.data[0].key == now) {
      struct tfc_order_entry e = tfc_order_heap_pop(&s->events);
      bool joint = ir->ops.data[e.id].joint;
      if (e.tie > 0 && !joint) {
        tfc_order_heap_push(&s->ready, (struct tfc_order_entry){-s->rank[e.id], 0, e.id});
        s->ready_work += took(s, e.id, 1);
        continue;
      }
      if (joint) {
        s->sequence[s->count++] = e.id;
      } else {
        s->idle |= s->helpers[e.id] | 1u << s->lane[e.id];
      }
      for (uint32_t k = g->begin[e.id]; k < g->begin[e.id + 1]; k++)
        if (--s->waiting[g->to[k]] == 0) tfc_order_heap_push(&s->events, (struct tfc_order_entry){now, 1, g->to[k]});
    }
    start_ready(s, manner, now);
  }
  return now;
}

static tfc_status make_room(struct scheduler *s) {
  size_t n = s->ir->ops.count;
  s->took = malloc((n * s->lanes + 1) * sizeof *s->took);
  s->rank = malloc((n + 1) * sizeof *s->rank);
  s->topological = malloc((n + 1) * sizeof *s->topological);
  s->waiting = malloc((n + 1) * sizeof *s->waiting);
  bool heaps =
      tfc_order_heap_reserve(&s->events, (uint32_t)(2 * n + 2)) && tfc_order_heap_reserve(&s->ready, (uint32_t)(n + 1));
  s->sequence = malloc((n + 1) * sizeof *s->sequence);
  s->lane = calloc(n + 1, sizeof *s->lane);
  s->helpers = calloc(n + 1, sizeof *s->helpers);
  s->open = calloc(n + 1, sizeof *s->open);
  bool room =
      s->took && s->rank && s->topological && s->waiting && heaps && s->sequence && s->lane && s->helpers && s->open;
  return room ? NULL : tfc_status_no_memory("planning a step");
}

tfc_status tfc_lane_schedule_make(const struct tfc_ir *ir, const struct tfc_op_time *times, uint32_t cores,
                                  struct tfc_lane_schedule *out) {
  tfc_status s = NULL;
  struct scheduler sch = {.ir = ir, .lanes = cores < MOST_LANES ? cores : MOST_LANES};
  static const struct manner manners[] = {
      {MOST_LANES, 2, 0},
      {MOST_LANES, 0.7, 0.6},
      {1, 2, 0},
      {2, 2, 0},
      {MOST_LANES, 2, 0.6},
      {MOST_LANES, 0.85, 0.6},
      {MOST_LANES, 0.55, 0.6},
      {MOST_LANES, 0.4, 0.6},
      {MOST_LANES, 0.55, 0.9},
  };
  struct manner best = {0};
  double shortest = INFINITY, one_by_one = 0;
  TFC_TRY(s, make_room(&sch));
  TFC_TRY(s, tfc_order_graph_make(ir, &sch.graph));
  for (size_t i = 0; i < ir->ops.count; i++) {
    sch.wanted += !ir->ops.data[i].dead;
    one_by_one += (double)times[i].wall * tfc_ns_per_tick() * 1e-3;
  }
  estimate(&sch, times);
  TFC_TRY(s, sort(&sch));
  uint32_t manner_count = ir->ops.count > MOST_OPS_TRIED ? 2 : sizeof manners / sizeof *manners;
  for (uint32_t i = 0; i < manner_count; i++) {
    struct manner manner = manners[i];
    if (manner.widest > sch.lanes) manner.widest = sch.lanes;
    double length = simulate(&sch, manner);
    if (length < shortest) shortest = length, best = manner;
  }
  shortest = simulate(&sch, best);
  if (sch.count != sch.wanted) TFC_FAIL(s, TFC_INTERNAL, "operations could not be ordered");
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    double alone = took(&sch, i, 1), together = sch.lanes * took(&sch, i, sch.lanes);
    sch.open[i] = alone > worth_helping_us && alone > helped_well * together;
  }
  *out = (struct tfc_lane_schedule){sch.lanes,   sch.sequence, sch.count, sch.lane,
                                    sch.helpers, sch.open,     shortest,  one_by_one};
  sch.sequence = NULL, sch.lane = NULL, sch.helpers = NULL, sch.open = NULL;
out:
  tfc_order_graph_deinit(&sch.graph);
  free(sch.took);
  free(sch.rank);
  free(sch.topological);
  free(sch.waiting);
  tfc_order_heap_deinit(&sch.events);
  tfc_order_heap_deinit(&sch.ready);
  free(sch.sequence);
  free(sch.lane);
  free(sch.helpers);
  free(sch.open);
  return s;
}

void tfc_lane_schedule_deinit(struct tfc_lane_schedule *s) {
  free(s->sequence);
  free(s->lane);
  free(s->helpers);
  free(s->open);
  *s = (struct tfc_lane_schedule){0};
}
