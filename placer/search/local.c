#include "placer/search/local.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/pack.h"
#include "placer/simulate/loads.h"
#include "runtime/base/clock.h"
#include "runtime/base/union_find.h"

#define PACK_ROUNDS 64

void tfc_meter_init(struct tfc_meter *m, const struct tfc_budget *budget) {
  *m = (struct tfc_meter){.budget = budget, .begin = tfc_now_s()};
}

bool tfc_meter_spend(struct tfc_meter *m, uint32_t clock_every) {
  if (m->over) return false;
  m->used++;
  if (m->budget->evaluations && m->used >= m->budget->evaluations) return m->over = true, false;
  if (m->countdown-- == 0) {
    m->countdown = clock_every;
    if (tfc_budget_over(m->budget)) return m->over = true, false;
  }
  return true;
}

double tfc_meter_share(const struct tfc_meter *m) {
  double share = 0;
  if (m->over) return 1;
  if (m->budget->evaluations) share = (double)m->used / (double)m->budget->evaluations;
  if (m->budget->deadline > 0) {
    double span = m->budget->deadline - m->begin, time = span > 0 ? (tfc_now_s() - m->begin) / span : 1;
    if (time > share) share = time;
  }
  return share < 1 ? share : 1;
}

// --- Repairing placements ------------------------------------------------------------------------------------------

struct trouble {
  uint64_t missing, excess;
};
static struct trouble trouble_of(const struct tfc_loads *l) {
  return (struct trouble){l->missing, tfc_loads_excess(l)};
}
static bool less_trouble(struct trouble a, struct trouble b) {
  return a.missing != b.missing ? a.missing < b.missing : a.excess < b.excess;
}

struct packing {
  const struct tfc_problem *p;
  const bool *kept;
};
static bool may_pack(const void *user, uint32_t unit, uint32_t device) {
  const struct packing *q = user;
  return !(q->kept && q->kept[unit]) && tfc_problem_allows(q->p, unit, device);
}

// For placements that still exceed memory limits after moves and exchanges of units: takes two devices at a time and
// divides their units between them again.
static struct trouble pack_units(struct tfc_loads *l, struct tfc_random *r, const bool *kept, struct trouble now) {
  const struct tfc_problem *p = l->problem;
  const struct packing packing = {p, kept};
  const struct tfc_pack pack = {p->unit_count, p->device_count, p->unit_memory, p->limit, may_pack, &packing, false};
  tfc_device_id *before = malloc(sizeof *before * ((size_t)p->unit_count + 1)),
                *after = malloc(sizeof *after * ((size_t)p->unit_count + 1));
  if (before && after) {
    memcpy(before, l->device, sizeof *before * p->unit_count);
    memcpy(after, before, sizeof *after * p->unit_count);
    tfc_pack_bins(&pack, r, PACK_ROUNDS, after);
    tfc_loads_reset(l, after);
    if (less_trouble(trouble_of(l), now))
      now = trouble_of(l);
    else
      tfc_loads_reset(l, before);
  }
  free(before), free(after);
  return now;
}

// Draws a unit of `heavy`, mostly one of a device that is too full.
static uint32_t draw_heavy(const struct tfc_loads *l, struct tfc_random *r, const uint32_t *heavy, uint32_t count) {
  uint32_t u = heavy[tfc_random_below(r, count)];
  for (int k = 0; k < 8 && l->memory[l->device[u]] <= l->problem->limit[l->device[u]]; k++)
    u = heavy[tfc_random_below(r, count)];
  return u;
}

bool tfc_local_repair(const struct tfc_problem *p, struct tfc_random *r, tfc_device_id *device, const bool *kept) {
  struct tfc_loads l;
  tfc_status s = tfc_loads_init(&l, p);
  if (s) {
    tfc_status_free(s);
    return false;
  }
  uint32_t *heavy = malloc(sizeof *heavy * ((size_t)p->unit_count + 1)), heavy_count = 0; // units that need memory
  for (uint32_t u = 0; heavy && u < p->unit_count; u++)
    if (p->unit_memory[u]) heavy[heavy_count++] = u;
  tfc_loads_reset(&l, device);
  struct trouble now = trouble_of(&l);
  uint64_t tries = 0, patience = 60 * (uint64_t)p->unit_count + 2000, since = 0;
  while ((now.missing || now.excess) && since < patience && tries++ < 40 * patience) {
    since++;
    uint32_t u = (uint32_t)tfc_random_below(r, p->unit_count);
    // If only memory is short, it pays to try only units that need memory and are on devices that are too full.
    if (!now.missing && heavy_count) {
      patience = 60 * (uint64_t)heavy_count + 20000;
      u = draw_heavy(&l, r, heavy, heavy_count);
    }
    if (kept && kept[u]) continue;
    tfc_device_id from = l.device[u], to = (tfc_device_id)tfc_random_below(r, p->device_count);
    if (to == from || !tfc_problem_allows(p, u, to)) continue;
    tfc_loads_move(&l, u, to);
    struct trouble then = trouble_of(&l);
    uint32_t v = TFC_NONE;
    if (!less_trouble(then, now) && tfc_random_below(r, 2)) { // the move alone does not help: tries an exchange with
                                                              // another unit
      v = (uint32_t)tfc_random_below(r, p->unit_count);
      for (int k = 0; k < 8 && l.device[v] != to; k++) v = (uint32_t)tfc_random_below(r, p->unit_count);
      if (v == u || l.device[v] != to || (kept && kept[v]) || !tfc_problem_allows(p, v, from)) {
        v = TFC_NONE;
      } else {
        tfc_loads_move(&l, v, from);
        then = trouble_of(&l);
      }
    }
    // Moves that change nothing are kept now and then, so that the search leaves plateaus.
    if (less_trouble(then, now) || (!less_trouble(now, then) && tfc_random_below(r, 4) == 0)) {
      if (less_trouble(then, now)) since = 0;
      now = then;
    } else {
      if (v != TFC_NONE) tfc_loads_move(&l, v, to);
      tfc_loads_move(&l, u, from);
    }
  }
  if (now.excess && !now.missing) now = pack_units(&l, r, kept, now);
  memcpy(device, l.device, sizeof *device * p->unit_count);
  free(heavy);
  tfc_loads_deinit(&l);
  return !now.missing && !now.excess;
}

bool tfc_local_any(const struct tfc_problem *p, struct tfc_random *r, tfc_device_id *device) {
  bool fine = false;
  for (uint32_t attempt = 0; attempt < p->device_count + 4u && attempt < 24 && !fine; attempt++) {
    uint32_t home = attempt < p->device_count ? attempt : (uint32_t)tfc_random_below(r, p->device_count);
    bool spread = attempt >= p->device_count;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t d = spread ? (uint32_t)tfc_random_below(r, p->device_count) : home;
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
      device[u] = (tfc_device_id)d;
    }
    fine = tfc_local_repair(p, r, device, NULL);
  }
  return fine;
}

// --- Making clusters -----------------------------------------------------------------------------------------------

struct join {
  double weight;
  uint32_t a, b;
};
static int compare_joins(const void *x, const void *y) {
  const struct join *a = x, *b = y;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  if (a->a != b->a) return a->a < b->a ? -1 : 1;
  return (a->b > b->b) - (a->b < b->b);
}

// Returns a unit's weight: its shortest time on any device, ps. (Each unit may be on some device.)
static double weight_of(const struct tfc_problem *p, uint32_t u) {
  int64_t best = INT64_MAX;
  for (uint32_t d = 0; d < p->device_count && (d == 0 || p->class_count > 1); d++)
    if (tfc_problem_unit_time(p, u, d) >= 0 && tfc_problem_unit_time(p, u, d) < best)
      best = tfc_problem_unit_time(p, u, d);
  return (double)best;
}

uint32_t tfc_local_coarsen(const struct tfc_problem *p, struct tfc_random *r, const tfc_device_id *device,
                           uint32_t target, uint32_t *out) {
  const uint32_t units = p->unit_count;
  uint32_t *parent = malloc(sizeof *parent * (units + 1u)), count = units;
  double *weight = malloc(sizeof *weight * (units + 1u)), *heaviest = malloc(sizeof *heaviest * (units + 1u)),
         total = 0;
  size_t ends = p->net_first[p->net_count];
  struct join *joins = malloc(sizeof *joins * (ends + 1));
  size_t join_count = 0;
  uint32_t result = 0;
  if (!parent || !weight || !heaviest || !joins) goto out;
  const struct tfc_pair *pair = NULL; // any link will do: its latency and bandwidth turn bytes into a time
  for (size_t i = 0; i < (size_t)p->device_count * p->device_count && !pair; i++)
    if (p->pair[i].linked) pair = &p->pair[i];
  tfc_union_find_init(parent, units);
  for (uint32_t u = 0; u < units; u++) weight[u] = weight_of(p, u), total += weight[u];
  double extra = total / (8.0 * units) + 1, limit;
  for (uint32_t u = 0; u < units; u++) weight[u] += extra;
  total += extra * units;
  limit = 2 * total / (target ? target : 1);
  memcpy(heaviest, weight, sizeof *heaviest * units); // [root] the heaviest unit of the cluster
  for (uint32_t u = 0; u < units; u++)
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      double cost = pair ? (double)tfc_problem_wire_time(p, p->net_tensor[i], pair) : 1;
      uint32_t fan = p->net_first[i + 1] - p->net_first[i];
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        uint32_t v = p->net_unit[j];
        if (device && device[u] != device[v]) continue;
        joins[join_count++] =
            (struct join){(cost + 1) / fan * (0.5 + tfc_random_unit(r)) / (weight[u] + weight[v]), u, v};
      }
    }
  qsort(joins, join_count, sizeof *joins, compare_joins);
  for (int pass = 0; pass < 4 && count > target; pass++) {
    double bound = limit * (double)(pass + 1) / 4; // the first passes join only to small clusters
    for (size_t i = 0; i < join_count && count > target; i++) {
      uint32_t a = tfc_union_find_root(parent, joins[i].a), b = tfc_union_find_root(parent, joins[i].b);
      if (a == b) continue;
      // A cluster with a unit that is heavier than the bound may still grow to 1.3 times the weight of that unit,
      // because otherwise it would never be joined.
      double heavy = fmax(heaviest[a], heaviest[b]);
      if (weight[a] + weight[b] > fmax(bound, 1.3 * heavy)) continue;
      // Only units that may be on the same devices are joined: compares the pins and the allowed devices of the two
      // clusters' roots.
      bool alike = p->unit_pin[a] == p->unit_pin[b];
      for (uint32_t d = 0; alike && d < p->device_count && p->class_count > 1; d++)
        alike = tfc_problem_allows(p, a, d) == tfc_problem_allows(p, b, d);
      if (!alike) continue;
      parent[b] = a, weight[a] += weight[b], heaviest[a] = heavy, count--;
    }
  }
  memset(out, 0xff, sizeof *out * units);
  for (uint32_t u = 0; u < units; u++) {
    uint32_t root = tfc_union_find_root(parent, u);
    if (out[root] == TFC_NONE) out[root] = result++;
    out[u] = out[root];
  }
out:
  free(parent), free(weight), free(heaviest), free(joins);
  return result;
}

// --- The order of operations ---------------------------------------------------------------------------------------

struct tail {
  int64_t length;
  int32_t tie;
  uint32_t node;
};
static int compare_tails(const void *a, const void *b) {
  const struct tail *x = a, *y = b;
  if (x->length != y->length) return x->length > y->length ? -1 : 1;
  if (x->tie != y->tie) return x->tie < y->tie ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

tfc_status tfc_local_rerank(const struct tfc_problem *p, const tfc_device_id *device, const int32_t *tie,
                            uint32_t *out_rank) {
  const struct tfc_cost_graph *g = p->graph;
  struct tail *tails = malloc(sizeof *tails * ((size_t)p->node_count + 1));
  if (!tails) return tfc_status_no_memory("an order");
  for (size_t i = p->node_count; i-- > 0;) {
    const uint32_t n = g->topological[i], from = device[p->unit[n]];
    int64_t longest = 0;
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++)
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
        const uint32_t m = g->consumer[c], to = device[p->unit[m]];
        int64_t length = tails[m].length;
        if (to != from && tfc_problem_pair(p, from, to)->linked)
          length += tfc_problem_wire_time(p, t, tfc_problem_pair(p, from, to));
        if (length > longest) longest = length;
      }
    int64_t own = tfc_problem_time(p, n, from);
    tails[n] = (struct tail){longest + (own > 0 ? own : 0), tie ? tie[p->unit[n]] : 0, n};
  }
  qsort(tails, p->node_count, sizeof *tails, compare_tails);
  for (uint32_t i = 0; i < p->node_count; i++) out_rank[tails[i].node] = i;
  free(tails);
  return NULL;
}

// Evaluates the solution's placement with `rank` and keeps that rank if it is better than *best.
static bool settles_on(struct tfc_simulator *simulator, const struct tfc_solution *solution, const uint32_t *rank,
                       struct tfc_score *best, uint64_t *evaluations) {
  struct tfc_verdict v = {0};
  tfc_simulate(simulator, solution->device, rank, TFC_TIME_MAX, &v);
  ++*evaluations;
  if (!tfc_score_better(tfc_score_of(&v), *best)) return false;
  *best = tfc_score_of(&v);
  return true;
}

tfc_status tfc_local_settle_within(const struct tfc_problem *p, struct tfc_simulator *simulator, uint64_t most,
                                   struct tfc_solution *solution, struct tfc_score *out_score, uint64_t *evaluations) {
  const bool ranked = p->objective == TFC_OBJECTIVE_STEP && solution->rank, anew = p->objective == TFC_OBJECTIVE_STEP;
  const bool plain = most >= (ranked ? 3 : 1);
  struct tfc_score best = TFC_SCORE_NONE;
  uint32_t *rank = NULL;
  tfc_status s = NULL;
  if (!most) return *out_score = best, NULL;
  if (plain) settles_on(simulator, solution, NULL, &best, evaluations);
  bool own = ranked && settles_on(simulator, solution, solution->rank, &best, evaluations);
  if (anew && most >= 2) {
    rank = malloc(sizeof *rank * ((size_t)p->node_count + 1));
    if (!rank) TFC_TRY(s, tfc_status_no_memory("an order"));
    TFC_TRY(s, tfc_local_rerank(p, solution->device, NULL, rank));
    if (settles_on(simulator, solution, rank, &best, evaluations)) {
      free(solution->rank);
      solution->rank = rank, rank = NULL, own = true;
    }
  }
  if (!own) {
    free(solution->rank);
    solution->rank = NULL;
  }
  *out_score = best;
out:
  free(rank);
  return s;
}

tfc_status tfc_local_settle(const struct tfc_problem *p, struct tfc_simulator *simulator, struct tfc_solution *solution,
                            struct tfc_score *out_score, uint64_t *evaluations) {
  return tfc_local_settle_within(p, simulator, UINT64_MAX, solution, out_score, evaluations);
}
