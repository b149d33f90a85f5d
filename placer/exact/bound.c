// Lower bounds on every placement of a problem. All of them count each operation with its shortest time on any allowed
// device, so they hold for every placement. Sums of doubles are reduced by a margin for rounding errors, so that they
// remain lower bounds.
#include "placer/exact/bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/exact/division.h"
#include "placer/exact/ilp.h"
#include "runtime/base/clock.h"
#include "runtime/base/union_find.h"

#define GRID 96

const char *tfc_bound_name(tfc_bound_kind kind) {
  static const char *const names[] = {
#define TFC_BOUND_NAME(name, text) text,
      TFC_BOUNDS(TFC_BOUND_NAME)
#undef TFC_BOUND_NAME
  };
  return names[kind];
}

struct bounder {
  const struct tfc_problem *p;
  int64_t *least;       // [node] ps, its shortest time over the devices that its unit may be on
  int64_t *head, *tail; // [node] ps: the longest path that ends before the node, and that begins after it
  double *weight;       // [device] multipliers, summing to 1
};

static void find_least(struct bounder *b) {
  const struct tfc_problem *p = b->p;
  for (uint32_t n = 0; n < p->node_count; n++) {
    const uint32_t u = p->unit[n];
    int64_t least = INT64_MAX;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (tfc_problem_allows(p, u, d) && tfc_problem_time(p, n, d) < least) least = tfc_problem_time(p, n, d);
    b->least[n] = least;
  }
}

static int64_t find_paths(struct bounder *b) {
  const struct tfc_problem *p = b->p;
  const struct tfc_cost_graph *g = p->graph;
  int64_t longest = 0;
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = g->topological[i];
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (b->head[n] + b->least[n] > b->head[g->consumer[c]]) b->head[g->consumer[c]] = b->head[n] + b->least[n];
    if (b->head[n] + b->least[n] > longest) longest = b->head[n] + b->least[n];
  }
  for (uint32_t i = p->node_count; i-- > 0;) {
    const uint32_t n = g->topological[i];
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++) {
      const uint32_t m = g->consumer[c];
      if (b->tail[m] + b->least[m] > b->tail[n]) b->tail[n] = b->tail[m] + b->least[m];
    }
  }
  return longest;
}

// Rounds a sum of `terms` doubles down by at least its rounding error.
static int64_t safe(double ps, size_t terms) {
  ps = ps * (1 - 4e-16 * ((double)terms + 16)) - 1;
  return ps > 0 ? (int64_t)ps : 0;
}

// The linear program is: minimise T, where for each device the sum over units of time * share is at most T. By duality,
// for any weights of the devices that sum to 1, T is at least the sum over units of the smallest weighted time. A
// subgradient method improves the weights: a device with too much work gets more weight.
static int64_t work_bound(struct bounder *b) {
  const struct tfc_problem *p = b->p;
  const uint32_t devices = p->device_count;
  double *load = calloc(devices, sizeof *load), *trial = malloc(sizeof *trial * devices), best = 0;
  uint32_t *rare = calloc((size_t)p->unit_count + 1, sizeof *rare);
  if (!load || !trial || !rare) {
    free(load), free(trial), free(rare);
    return 0;
  }
  for (uint32_t d = 0; d < devices; d++) b->weight[d] = trial[d] = 1.0 / devices;
  bool alike = p->class_count == 1;
  for (uint32_t u = 0; u < p->unit_count && alike; u++) alike = p->unit_pin[u] == TFC_NONE;
  double cells = (double)p->unit_count * devices;
  int rounds = alike ? 1 : cells > 2e6 ? 60 : cells > 2e5 ? 200 : 600;
  for (int round = 0; round < rounds; round++) {
    double sum = 0, heaviest = 0;
    memset(load, 0, sizeof *load * devices);
    for (uint32_t u = 0; u < p->unit_count; u++) {
      double least = INFINITY;
      uint32_t where = 0, ties = 0;
      for (uint32_t d = 0; d < devices; d++) {
        if (!tfc_problem_allows(p, u, d)) continue;
        double t = (double)tfc_problem_unit_time(p, u, d), w = trial[d] * t;
        if (w < least)
          least = w, where = d, ties = 1;
        else if (w == least && (u + d) % ++ties == 0)
          where = d;
      }
      sum += least;
      load[where] += (double)tfc_problem_unit_time(p, u, where);
    }
    if (sum > best) {
      best = sum;
      memcpy(b->weight, trial, sizeof *trial * devices);
    }
    double total = 0, pace = 0.5 / sqrt(1 + round);
    for (uint32_t d = 0; d < devices; d++)
      if (load[d] > heaviest) heaviest = load[d];
    if (heaviest <= 0) break;
    for (uint32_t d = 0; d < devices; d++) trial[d] *= exp(pace * (load[d] / heaviest - 0.5)), total += trial[d];
    for (uint32_t d = 0; d < devices; d++) trial[d] /= total;
  }
  int64_t bound;
  if (alike) {
    unsigned __int128 work = 0;
    for (uint32_t u = 0; u < p->unit_count; u++) work += (uint64_t)tfc_problem_unit_time(p, u, 0);
    bound = (int64_t)((work + devices - 1) / devices);
  } else {
    bound = safe(best, p->unit_count);
  }
  for (uint32_t u = 0; u < p->unit_count; u++) { // a unit is never divided, so its time alone is a bound, too
    int64_t least = INT64_MAX;
    for (uint32_t d = 0; d < devices; d++)
      if (tfc_problem_allows(p, u, d) && tfc_problem_unit_time(p, u, d) < least) least = tfc_problem_unit_time(p, u, d);
    if (least > bound) bound = least;
  }
  free(load), free(trial), free(rare);
  return bound;
}

static int compare_times(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}
static uint32_t cell_of(const int64_t *level, uint32_t levels, int64_t time) { // the last level <= time
  uint32_t low = 0, high = levels;
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    if (level[middle] <= time)
      low = middle;
    else
      high = middle;
  }
  return low;
}
// Chooses at most GRID levels among the values [node], the smallest first.
static uint32_t make_levels(const int64_t *values, uint32_t count, int64_t *sorted, int64_t *level) {
  uint32_t levels = 0;
  memcpy(sorted, values, sizeof *values * count);
  qsort(sorted, count, sizeof *sorted, compare_times);
  for (uint32_t i = 0; i < GRID; i++) {
    int64_t v = sorted[(uint64_t)i * (count - 1) / (GRID - 1)];
    if (!levels || v > level[levels - 1]) level[levels++] = v;
  }
  return levels;
}

// All operations with a path of at least h before them and one of at least q after them must run within T - h - q.
static int64_t window_bound(struct bounder *b) {
  const struct tfc_problem *p = b->p;
  static const size_t cells = (size_t)GRID * GRID;
  int64_t heads[GRID], tails[GRID], best = 0, *sorted = malloc(sizeof *sorted * ((size_t)p->node_count + 1));
  double *work = calloc(cells, sizeof *work);
  if (!sorted || !work) {
    free(sorted), free(work);
    return 0;
  }
  uint32_t head_count = make_levels(b->head, p->node_count, sorted, heads);
  uint32_t tail_count = make_levels(b->tail, p->node_count, sorted, tails);
  for (uint32_t n = 0; n < p->node_count; n++) {
    double least = INFINITY;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!tfc_problem_allows(p, p->unit[n], d)) continue;
      double w = b->weight[d] * (double)tfc_problem_time(p, n, d);
      if (w < least) least = w;
    }
    work[cell_of(heads, head_count, b->head[n]) * GRID + cell_of(tails, tail_count, b->tail[n])] += least;
  }
  for (uint32_t i = head_count; i-- > 0;)
    for (uint32_t j = tail_count; j-- > 0;) {
      double *w = &work[i * GRID + j];
      if (i + 1 < head_count) *w += w[GRID];
      if (j + 1 < tail_count) *w += w[1];
      if (i + 1 < head_count && j + 1 < tail_count) *w -= w[GRID + 1];
      if (*w <= 0) continue;
      // The sums by inclusion and exclusion have a rounding error in each cell, for which safe() does not allow; the
      // factor 1 - 1e-12 does.
      int64_t bound = heads[i] + safe(*w * (1 - 1e-12), p->node_count) + tails[j];
      if (*w * (1 - 1e-12) > 1 && bound > best) best = bound;
    }
  free(sorted), free(work);
  return best;
}

// A connected component that fits on no single device is divided in every placement, so at least one of its nets needs
// a transfer.
static int64_t memory_bound(struct bounder *b) {
  const struct tfc_problem *p = b->p;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t units = p->unit_count;
  uint32_t *parent = malloc(sizeof *parent * (units + 1u));
  uint64_t *memory = calloc(units + 1u, sizeof *memory);
  int64_t *cheapest = malloc(sizeof *cheapest * (units + 1u)), best = 0;
  if (!parent || !memory || !cheapest) goto out;
  tfc_union_find_init(parent, units);
  for (uint32_t u = 0; u < units; u++) cheapest[u] = INT64_MAX;
  for (uint32_t i = 0; i < p->net_count; i++)
    for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++)
      tfc_union_find_join(parent, p->net_unit[j], p->unit[g->producer[p->net_tensor[i]]]);
  for (uint32_t u = 0; u < units; u++) memory[tfc_union_find_root(parent, u)] += p->unit_memory[u];
  // For each component: the smallest value that a placement can have if it cuts one of the component's nets.
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    const uint32_t n = g->producer[t], root = tfc_union_find_root(parent, p->unit[n]);
    int64_t wire = INT64_MAX, shares = INT64_MAX;
    for (uint32_t from = 0; from < p->device_count; from++)
      for (uint32_t to = 0; to < p->device_count; to++) {
        const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
        if (from == to || !pair->linked) continue;
        int64_t time = tfc_problem_wire_time(p, t, pair);
        if (time < wire) wire = time;
        int64_t stands = pair->occupies ? time : 0;
        if (stands < shares) shares = stands;
      }
    if (wire == INT64_MAX) continue; // no link at all: nothing can be cut
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
      const uint32_t m = g->consumer[c];
      if (p->unit[m] == p->unit[n]) continue;
      int64_t cost =
          p->objective == TFC_OBJECTIVE_STEP ? b->head[n] + b->least[n] + wire + b->least[m] + b->tail[m] : shares;
      if (cost < cheapest[root]) cheapest[root] = cost;
    }
  }
  for (uint32_t u = 0; u < units; u++) {
    if (parent[u] != u || cheapest[u] == INT64_MAX) continue;
    bool held = false; // one device alone has room for it
    for (uint32_t d = 0; d < p->device_count && !held; d++) held = memory[u] <= p->limit[d];
    if (!held && cheapest[u] > best) best = cheapest[u];
  }
out:
  free(parent), free(memory), free(cheapest);
  return best;
}

static void choose_largest(struct tfc_bound *bound) {
  bound->value = 0, bound->kind = TFC_BOUND_NONE;
  for (int k = 1; k < TFC_BOUND_COUNT; k++)
    if (bound->each[k] > bound->value) bound->value = bound->each[k], bound->kind = (tfc_bound_kind)k;
}

void tfc_bound_raise(struct tfc_bound *bound, tfc_bound_kind kind, int64_t value) {
  if (value > bound->each[kind]) bound->each[kind] = value;
  if (value > bound->value) bound->value = value, bound->kind = kind;
}

void tfc_bound_share_cores(struct tfc_bound *bound, uint32_t device_count, uint32_t cores) {
  if (cores == 0 || device_count <= cores) return;
  bound->each[TFC_BOUND_WORK] = (int64_t)((double)bound->each[TFC_BOUND_WORK] * device_count / cores);
  choose_largest(bound);
}

tfc_status tfc_bound_compute(const struct tfc_problem *p, const struct tfc_budget *budget, struct tfc_bound *out) {
  tfc_status s = NULL;
  struct bounder b = {.p = p};
  struct tfc_bound bound = {0};
  uint32_t *cluster = NULL;
  tfc_device_id *device = NULL;
  b.least = calloc(p->node_count, sizeof *b.least);
  b.head = calloc(p->node_count, sizeof *b.head);
  b.tail = calloc(p->node_count, sizeof *b.tail);
  b.weight = calloc(p->device_count, sizeof *b.weight);
  if (!b.least || !b.head || !b.tail || !b.weight) TFC_TRY(s, tfc_status_no_memory("bounds"));
  find_least(&b);
  const bool step = p->objective == TFC_OBJECTIVE_STEP;
  // Calibration may make operations faster than their times (a slowdown below 1): then these bounds would be wrong.
  // Throughput ignores slowdowns.
  if (p->is_bounded || !step) {
    int64_t path = find_paths(&b);
    bound.each[TFC_BOUND_PATH] = step ? path : 0;
    bound.each[TFC_BOUND_WORK] = work_bound(&b);
    if (step) bound.each[TFC_BOUND_WINDOW] = window_bound(&b);
    bound.each[TFC_BOUND_CROWDING] = tfc_division_crowding(p);
    if (!step) bound.each[TFC_BOUND_SEVERING] = tfc_division_severing(p);
    if (p->has_limits) bound.each[TFC_BOUND_MEMORY] = memory_bound(&b);
    if (budget && p->unit_count <= TFC_ILP_UNITS && p->node_count <= 2000 && p->device_count <= 16) {
      struct tfc_ilp_answer answer;
      cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
      device = calloc((size_t)p->unit_count + 1, sizeof *device);
      if (!cluster || !device) TFC_TRY(s, tfc_status_no_memory("bounds"));
      for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u;
      const bool timed = budget->deadline > 0;
      const struct tfc_program_limits limits = {.seconds = timed ? fmax(0.05, budget->deadline - tfc_now_s()) : 0,
                                                .nodes = timed ? 0 : 500,
                                                .cancel = budget->cancel};
      TFC_TRY(s, tfc_ilp_solve(p, cluster, p->unit_count, &limits, NULL, device, &answer));
      bound.each[TFC_BOUND_ILP] = answer.bound;
    }
  }
  choose_largest(&bound);
  *out = bound;
out:
  free(b.least), free(b.head), free(b.tail), free(b.weight), free(cluster), free(device);
  return s;
}
