// Placements are enumerated like numbers, one digit for each unit. Orders are the sequences that respect the edges. Two
// sequences are equivalent if they differ only by exchanging neighbours that are independent (no edge, different
// devices); of each class only the lexicographically first is tried (Anisimov and Knuth 1979: no later item may be
// moved in front of a larger one).
#include "placer/exact/exhaust.h"

#include <stdlib.h>
#include <string.h>

struct walk {
  const struct tfc_problem *p;
  const struct tfc_budget *budget;
  struct tfc_simulator *sim; // NULL: evaluations are only counted
  uint64_t most, used, steps;
  int64_t target;
  bool failed;                                                   // out of memory
  uint32_t before[TFC_EXHAUST_NODES], linked[TFC_EXHAUST_NODES]; // [node] bits: producers; producers and consumers
  uint32_t sequence[TFC_EXHAUST_NODES], rank[TFC_EXHAUST_NODES];
  tfc_device_id device[TFC_EXHAUST_NODES]; // [unit]
  struct tfc_solution *best;
  struct tfc_score score;
};

static void walk_init(struct walk *w, const struct tfc_problem *p) {
  const struct tfc_cost_graph *g = p->graph;
  *w = (struct walk){.p = p, .score = TFC_SCORE_NONE};
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++) {
      const uint32_t m = g->consumer[c];
      w->before[m] |= 1u << n;
      w->linked[m] |= 1u << n, w->linked[n] |= 1u << m;
    }
}

// Evaluates one placement with one order, or only counts it. False: the search must end.
static bool try_one(struct walk *w, const uint32_t *rank) {
  struct tfc_verdict v = {0};
  if (w->used >= w->most || (w->budget && tfc_budget_over(w->budget))) return false;
  w->used++;
  if (!w->sim) return true;
  tfc_simulate(w->sim, w->device, rank, TFC_TIME_MAX, &v);
  const struct tfc_score score = tfc_score_of(&v);
  if (!tfc_score_better(score, w->score)) return true;
  if (rank && !w->best->rank && !(w->best->rank = malloc(sizeof *rank * w->p->node_count)))
    return w->failed = true, false;
  w->score = score;
  memcpy(w->best->device, w->device, sizeof *w->device * w->p->unit_count);
  if (rank) memcpy(w->best->rank, rank, sizeof *rank * w->p->node_count);
  tfc_budget_found(w->budget, score);
  return score.excess > 0 || score.value > w->target;
}

// Whether node n may follow in the lexicographically first sequence: it must not be possible to move it in front of a
// larger one.
static bool comes_here(const struct walk *w, uint32_t n, uint32_t at) {
  const struct tfc_problem *p = w->p;
  for (uint32_t i = at; i-- > 0;) {
    const uint32_t m = w->sequence[i];
    if ((w->linked[n] >> m & 1) || w->device[p->unit[m]] == w->device[p->unit[n]]) return true;
    if (m > n) return false;
  }
  return true;
}

static bool try_orders(struct walk *w, uint32_t at, uint32_t done) {
  const struct tfc_problem *p = w->p;
  if (at == p->node_count) {
    for (uint32_t i = 0; i < at; i++) w->rank[w->sequence[i]] = i;
    return try_one(w, w->rank);
  }
  // Some prefixes cannot be continued to a sequence that is lexicographically first, so the number of prefixes is
  // limited, too.
  if (w->steps++ > 5 * (uint64_t)TFC_EXHAUST_EVALUATIONS) return false;
  for (uint32_t n = 0; n < p->node_count; n++) {
    if ((done >> n & 1) || (w->before[n] & ~done) || !comes_here(w, n, at)) continue;
    w->sequence[at] = n;
    if (!try_orders(w, at + 1, done | 1u << n)) return false;
  }
  return true;
}

static bool next_device(struct walk *w, uint32_t u, uint32_t from) {
  for (uint32_t d = from; d < w->p->device_count; d++)
    if (tfc_problem_allows(w->p, u, d)) return w->device[u] = (tfc_device_id)d, true;
  return false;
}

// Tries every placement, each once or with all orders. False: it ended before all were tried.
static bool try_placements(struct walk *w, bool orders) {
  const struct tfc_problem *p = w->p;
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (!next_device(w, u, 0)) return false;
  for (;;) {
    if (orders ? !try_orders(w, 0, 0) : !try_one(w, NULL)) return false;
    uint32_t u = p->unit_count;
    while (u-- > 0) { // the last unit changes fastest
      if (next_device(w, u, w->device[u] + 1u)) break;
      next_device(w, u, 0);
      if (u == 0) return true;
    }
    if (u == TFC_NONE) return true; // no units
  }
}

uint64_t tfc_exhaust_count(const struct tfc_problem *p, uint64_t most, bool orders) {
  struct walk w;
  if (!p->node_count || p->node_count > TFC_EXHAUST_NODES || p->unit_count > TFC_EXHAUST_NODES) return UINT64_MAX;
  uint64_t placements = 1;
  for (uint32_t u = 0; u < p->unit_count && placements <= most; u++) {
    uint32_t allowed = 0;
    for (uint32_t d = 0; d < p->device_count; d++) allowed += tfc_problem_allows(p, u, d);
    placements *= allowed;
  }
  if (!placements || placements > most) return UINT64_MAX;
  if (!orders) return placements;
  walk_init(&w, p);
  w.most = most - placements;
  return try_placements(&w, true) ? placements + w.used : UINT64_MAX;
}

tfc_status tfc_exhaust(const struct tfc_problem *p, const struct tfc_budget *budget, bool orders, int64_t target,
                       struct tfc_solution *solution, struct tfc_score *out_score, uint64_t *out_evaluations,
                       bool *out_complete) {
  tfc_status s = NULL;
  struct walk w = {0};
  *out_complete = false;
  *out_score = TFC_SCORE_NONE, *out_evaluations = 0;
  if (!p->node_count || p->node_count > TFC_EXHAUST_NODES || p->unit_count > TFC_EXHAUST_NODES)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "too large for trying everything");
  walk_init(&w, p);
  w.budget = budget, w.best = solution, w.target = target;
  w.most = budget->evaluations ? budget->evaluations : UINT64_MAX;
  TFC_TRY(s, tfc_simulator_create(p, &w.sim));
  bool complete = try_placements(&w, false);
  if (complete && orders) complete = try_placements(&w, true);
  if (w.failed) TFC_TRY(s, tfc_status_no_memory("a search"));
  *out_complete = complete && (orders || p->objective == TFC_OBJECTIVE_THROUGHPUT);
  *out_score = w.score, *out_evaluations = w.used;
out:
  tfc_simulator_free(w.sim);
  return s;
}
