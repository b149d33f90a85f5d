// Simulated annealing over devices and precedences. It moves single units, connected regions, units of one kind and
// clusters, and exchanges units; some moves begin at operations that the step waits for. For the step objective,
// tfc_delta evaluates each trial; the acceptance threshold is drawn beforehand and is the cutoff of the evaluation. For
// throughput, the largest load alone is the same after almost all moves, so the energy is the 16-norm of the loads. If
// memory is nearly full, hardly any move fits: then bytes above the limits may be allowed at a price, which rises.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/anneal.h"
#include "placer/search/kinds.h"
#include "placer/search/local.h"
#include "placer/search/slack.h"
#include "placer/simulate/loads.h"
#include "runtime/base/array.h"

#define REGION 48
#define FRESH 4     // the critical operations are found again after so many changes of the placement
#define NEARLY 1e-4 // an operation whose slack is below this share of the step time counts as critical
#define SAMPLES 48  // number of moves that are tried to choose a temperature

struct annealer {
  const struct tfc_problem *p;
  const struct tfc_anneal_options *o;
  struct tfc_random random;
  const tfc_device_id *device; // [unit] current placement
  uint32_t *first, *members;   // the units of each cluster
  struct tfc_move *moves;      // [unit_count]
  uint32_t move_count;
  uint32_t swaps[2], swap_count;
  uint32_t *mark; // [unit]
  uint32_t stamp;
  double room;                    // sum of the bytes of all units
  struct tfc_slack slack;         // the slack in a placement of at most FRESH changes ago; with options.critical
  struct tfc_kinds kinds;         // with options.kinds
  const int64_t *start, *arrival; // [node] of the current placement
  bool tells;                     // its scores are values of the objective, so they may be reported as progress
};

static uint32_t below(struct annealer *a, uint64_t n) {
  return (uint32_t)tfc_random_below(&a->random, n);
}

// Returns a random neighbour of `u`: a producer or consumer of one of its nets; u itself if it has none.
static uint32_t neighbour(struct annealer *a, uint32_t u) {
  const struct tfc_problem *p = a->p;
  uint32_t nets = p->first_net[u + 1] - p->first_net[u], needs = p->first_need[u + 1] - p->first_need[u];
  if (!(nets + needs)) return u;
  uint32_t i = below(a, nets + needs);
  if (i < needs) return p->unit[p->graph->producer[p->net_tensor[p->need[p->first_need[u] + i]]]];
  uint32_t net = p->first_net[u] + i - needs;
  return p->net_unit[p->net_first[net] + below(a, p->net_first[net + 1] - p->net_first[net])];
}

// Returns a unit to begin a move with: any unit, or the one of a critical operation (then *out_node is that operation).
static uint32_t any_unit(struct annealer *a, uint32_t *out_node) {
  const struct tfc_problem *p = a->p;
  *out_node = TFC_NONE;
  if (!a->slack.count || tfc_random_unit(&a->random) >= a->o->critical) return below(a, p->unit_count);
  *out_node = a->slack.critical[below(a, a->slack.count)];
  return p->unit[*out_node];
}

static void add_move(struct annealer *a, uint32_t unit, tfc_device_id to) {
  if (a->device[unit] != to) a->moves[a->move_count++] = (struct tfc_move){unit, to};
}

static tfc_device_id other_device(struct annealer *a, uint32_t u) {
  const tfc_device_id now = a->device[u];
  if (below(a, 10) < 6) { // to the device of a neighbour
    for (int k = 0; k < 3; k++) {
      tfc_device_id d = a->device[neighbour(a, u)];
      if (d != now) return d;
    }
  }
  if (a->p->device_count == 1) return now;
  tfc_device_id d = (tfc_device_id)below(a, a->p->device_count - 1u);
  return d >= now ? (tfc_device_id)(d + 1) : d;
}

// Moves a connected set of units of one device around u together.
static void move_region(struct annealer *a, uint32_t u) {
  uint32_t queue[REGION], size = 2 + below(a, 1u << (1 + below(a, 5))), count = 1;
  if (size > REGION) size = REGION;
  const tfc_device_id from = a->device[u], to = other_device(a, u);
  queue[0] = u;
  a->mark[u] = ++a->stamp;
  for (uint32_t tries = 0; count < size && tries < 4 * size; tries++) {
    uint32_t v = neighbour(a, queue[below(a, count)]);
    if (a->mark[v] == a->stamp || a->device[v] != from) continue;
    a->mark[v] = a->stamp;
    queue[count++] = v;
  }
  for (uint32_t i = 0; i < count; i++)
    if (tfc_problem_allows(a->p, queue[i], to)) add_move(a, queue[i], to);
}

// Moves units of one kind that share a device: `u` and some before and after it in topological order, which are the
// same operation in other time steps.
static void move_kind(struct annealer *a, uint32_t u) {
  const uint32_t k = a->kinds.of[u], first = a->kinds.first[k], end = a->kinds.first[k + 1];
  const tfc_device_id from = a->device[u], to = other_device(a, u);
  const double most = end - first;
  const uint32_t wanted = (uint32_t)(2 * pow(most, tfc_random_unit(&a->random)));
  const uint32_t back = below(a, wanted);
  uint32_t i = a->kinds.at[u], count = 0;
  while (i > first && a->kinds.at[u] - i < back) i--;
  for (; i < end && count < wanted; i++, count++)
    if (a->device[a->kinds.unit[i]] == from && tfc_problem_allows(a->p, a->kinds.unit[i], to))
      add_move(a, a->kinds.unit[i], to);
}

static void propose(struct annealer *a) {
  const struct tfc_problem *p = a->p;
  a->move_count = a->swap_count = 0;
  if (a->o->cluster) {
    uint32_t c = below(a, a->o->cluster_count), u = a->members[a->first[c]];
    tfc_device_id to = other_device(a, a->members[a->first[c] + below(a, a->first[c + 1] - a->first[c])]);
    if (below(a, 5) == 0) { // an exchange with a neighbouring cluster
      uint32_t e = a->o->cluster[neighbour(a, u)];
      if (e == c) e = below(a, a->o->cluster_count);
      tfc_device_id there = a->device[a->members[a->first[e]]], here = a->device[u];
      if (e != c && there != here) {
        for (uint32_t i = a->first[e]; i < a->first[e + 1]; i++) add_move(a, a->members[i], here);
        to = there;
      }
    }
    for (uint32_t i = a->first[c]; i < a->first[c + 1]; i++) add_move(a, a->members[i], to);
    return;
  }
  const uint32_t regions = a->o->regions ? a->o->regions : 3;
  uint32_t node, kind = below(a, 16), u = any_unit(a, &node);
  if (kind == 0 && node != TFC_NONE && a->o->orders) { // a critical operation that waits for its device is moved ahead
                                                       // of the one that runs there
    uint32_t m = a->slack.before[node];
    while (m != TFC_NONE && below(a, 2) && a->slack.before[m] != TFC_NONE &&
           a->start[a->slack.before[m]] >= a->arrival[node])
      m = a->slack.before[m];
    if (m != TFC_NONE) a->swaps[0] = node, a->swaps[1] = m, a->swap_count = 1;
  } else if (kind == 0 && a->o->orders) { // exchanges the precedence of two operations that are near each other in the
                                          // order
    const uint32_t n = p->member[p->first_member[u] + below(a, p->first_member[u + 1] - p->first_member[u])];
    uint32_t m = n;
    for (int k = 0; k < 4 && m == n; k++) {
      uint32_t v = below(a, 2) ? neighbour(a, neighbour(a, u)) : below(a, p->unit_count);
      if (a->device[v] == a->device[u]) m = p->member[p->first_member[v]];
    }
    if (m != n) a->swaps[0] = n, a->swaps[1] = m, a->swap_count = 1;
  } else if (a->kinds.of && kind >= 12) {
    move_kind(a, u);
  } else if (kind < 1 + regions) {
    move_region(a, u);
  } else if (kind < 1 + regions + (a->o->regions ? 2 : 3)) {
    uint32_t v = below(a, 2) ? neighbour(a, u) : below(a, p->unit_count);
    if (a->device[u] == a->device[v]) v = below(a, p->unit_count);
    tfc_device_id x = a->device[u], y = a->device[v];
    if (x != y) add_move(a, u, y), add_move(a, v, x);
  } else {
    add_move(a, u, other_device(a, u));
  }
}

static bool allowed(const struct annealer *a) {
  for (uint32_t i = 0; i < a->move_count; i++)
    if (!tfc_problem_allows(a->p, a->moves[i].unit, a->moves[i].device)) return false;
  return a->move_count || a->swap_count;
}

static double temperature(const struct tfc_anneal_options *o, double share) {
  if (o->hot <= 0) return 0;
  return o->hot * pow(o->cold / o->hot, share);
}

// Returns the price of a byte above the limits, as a share of the value. It rises with the share of the budget that is
// spent.
static double price_of(const struct annealer *a, double share) {
  return a->o->price > 0 ? a->o->price * pow(100, share) / a->room : 0;
}

static bool is_better(const struct annealer *a, struct tfc_score x, struct tfc_score y) {
  if (a->o->price <= 0 || x.value == TFC_TIME_MAX || y.value == TFC_TIME_MAX) return tfc_score_better(x, y);
  const double last = price_of(a, 1);
  return (double)x.value * (1 + last * (double)x.excess) < (double)y.value * (1 + last * (double)y.excess);
}

static tfc_status anneal_step(struct annealer *a, struct tfc_meter *meter, struct tfc_solution *best,
                              struct tfc_score *score) {
  const struct tfc_problem *p = a->p;
  struct tfc_delta *delta = NULL;
  struct tfc_verdict v = {0};
  TFC_RETURN_IF_ERROR(tfc_delta_create(p, &delta));
  tfc_status s = NULL;
  tfc_delta_reset(delta, best->device, best->rank, &v);
  a->device = tfc_delta_device(delta);
  struct tfc_score now = tfc_score_of(&v);
  *score = now;
  uint64_t rounds = 0, last_best = 0;
  double heat = temperature(a->o, 0), price = price_of(a, 0);
  bool spare_rank = best->rank != NULL;
  const bool directed = a->o->critical > 0 && !a->o->cluster;
  uint32_t changes = FRESH;
  if (directed) TFC_TRY(s, tfc_slack_init(&a->slack, p));
  if (a->o->kinds && !a->o->cluster) TFC_TRY(s, tfc_kinds_find(&a->kinds, p));
  while (tfc_meter_spend(meter, p->node_count > 3000 ? 3 : 63)) {
    if (rounds++ % 32 == 0) {
      const double share = tfc_meter_share(meter);
      heat = temperature(a->o, share), price = price_of(a, share);
    }
    // A descent ends after many rounds without improvement.
    if (a->o->hot <= 0 && rounds - last_best > 40 * (uint64_t)p->unit_count + 4000) break;
    a->start = tfc_delta_start(delta), a->arrival = tfc_delta_arrival(delta);
    if (directed && changes >= FRESH && now.value != TFC_TIME_MAX) {
      tfc_slack_compute(&a->slack, a->device, a->start, tfc_delta_end(delta), now.value, NEARLY);
      changes = 0;
    }
    propose(a);
    if (!allowed(a)) {
      if (p->device_count == 1 && !a->o->orders) break;
      continue;
    }
    double slack = heat > 0 ? -log(tfc_random_unit(&a->random) + 1e-300) * heat * (double)now.value : 0;
    int64_t cutoff = TFC_TIME_MAX;
    // The largest score that a move may lead to: that of the current placement, with bytes above the limits at their
    // present price, plus the random `slack`.
    const double most = (double)now.value * (1 + price * (double)now.excess) + slack;
    if (price > 0 && now.value != TFC_TIME_MAX && most < 9.2e18)
      cutoff = 1 + (int64_t)most;
    else if (!now.excess && now.value != TFC_TIME_MAX && (double)now.value + slack < 9.2e18)
      cutoff = now.value + 1 + (int64_t)slack;
    tfc_delta_try(delta, a->moves, a->move_count, a->swaps, a->swap_count, cutoff, &v);
    if (!v.legal || v.cut) continue;
    struct tfc_score then = tfc_score_of(&v);
    if (price > 0 ? (double)then.value * (1 + price * (double)then.excess) > most : then.excess > now.excess) continue;
    if (then.excess == now.excess && then.value >= cutoff) continue;
    tfc_delta_commit(delta);
    changes++;
    now = then;
    if (!is_better(a, now, *score)) continue;
    *score = now;
    if (a->tells) tfc_budget_found(meter->budget, now);
    last_best = rounds;
    memcpy(best->device, a->device, sizeof *best->device * p->unit_count);
    if (a->o->orders || spare_rank) {
      if (!best->rank) best->rank = malloc(sizeof *best->rank * p->node_count);
      if (!best->rank) TFC_TRY(s, tfc_status_no_memory("annealing"));
      memcpy(best->rank, tfc_delta_rank(delta), sizeof *best->rank * p->node_count);
    }
  }
out:
  tfc_slack_deinit(&a->slack);
  tfc_kinds_deinit(&a->kinds);
  tfc_delta_free(delta);
  return s;
}

static inline double raised(double x, uint32_t squarings) {
  for (uint32_t i = 0; i < squarings; i++) x *= x;
  return x;
}

// Returns the norm to the power of 2^squarings: the sum over devices of (load * scale)^(2^squarings).
static double power_of(const struct tfc_problem *p, const int64_t *load, double scale, uint32_t squarings) {
  double sum = 0;
  for (uint32_t d = 0; d < p->device_count; d++) sum += raised((double)load[d] * scale, squarings);
  return sum;
}

// Anneals for throughput. The energy is a norm of the loads. Powers of norms are compared, so that no root is computed.
static tfc_status anneal_throughput(struct annealer *a, struct tfc_meter *meter, struct tfc_solution *best,
                                    struct tfc_score *score) {
  const struct tfc_problem *p = a->p;
  const uint32_t squarings = a->o->squarings ? a->o->squarings : 4;
  struct tfc_loads l;
  TFC_RETURN_IF_ERROR(tfc_loads_init(&l, p));
  tfc_loads_reset(&l, best->device);
  a->device = l.device;
  *score = (struct tfc_score){tfc_loads_excess(&l), tfc_loads_value(&l)};
  uint64_t excess = score->excess, rounds = 0, last_best = 0;
  double scale = score->value == TFC_TIME_MAX || !score->value ? 1e-9 : 1.0 / (double)score->value;
  double price = price_of(a, 0), heat = temperature(a->o, 0);
  double energy = power_of(p, l.load, scale, squarings);
  tfc_device_id *was = malloc(sizeof *was * ((size_t)p->unit_count + 1));
  if (!was) {
    tfc_loads_deinit(&l);
    return tfc_status_no_memory("annealing");
  }
  while (tfc_meter_spend(meter, 1023)) {
    if (rounds++ % 256 == 0) {
      const double share = tfc_meter_share(meter);
      heat = temperature(a->o, share), price = price_of(a, share);
    }
    if (a->o->hot <= 0 && rounds - last_best > 100 * (uint64_t)p->unit_count + 10000) break;
    propose(a);
    if (!allowed(a)) {
      if (p->device_count == 1) break;
      continue;
    }
    const bool alone = a->move_count == 1;
    const uint64_t missing = l.missing;
    uint64_t then_missing, over = 0;
    double then;
    if (alone) {
      tfc_loads_peek(&l, a->moves[0].unit, a->moves[0].device);
      then = power_of(p, l.peek, scale, squarings), then_missing = l.peek_missing;
      if (p->has_limits) over = tfc_loads_peek_excess(&l, a->moves[0].unit, a->moves[0].device);
    } else {
      for (uint32_t i = 0; i < a->move_count; i++) {
        was[i] = l.device[a->moves[i].unit];
        tfc_loads_move(&l, a->moves[i].unit, a->moves[i].device);
      }
      then = power_of(p, l.load, scale, squarings), then_missing = l.missing;
      if (p->has_limits) over = tfc_loads_excess(&l);
    }
    bool take;
    if (price > 0) { // compares with the price of bytes above the limits included
      const double now = energy * raised(1 + price * (double)excess, squarings);
      const double slack = heat > 0 ? 1 - log(tfc_random_unit(&a->random) + 1e-300) * heat : 1;
      take = then_missing != missing
                 ? then_missing < missing
                 : then * raised(1 + price * (double)over, squarings) <= now * raised(slack, squarings);
    } else if (then_missing != missing) {
      take = then_missing < missing;
    } else if (over != excess) {
      take = over < excess;
    } else if (then <= energy || heat <= 0) {
      take = then <= energy;
    } else { // accepts if norm' < norm * (1 + slack)
      double slack = 1 - log(tfc_random_unit(&a->random) + 1e-300) * heat;
      take = then < energy * raised(slack, squarings);
    }
    if (!take) {
      for (uint32_t i = a->move_count; i-- > 0 && !alone;) tfc_loads_move(&l, a->moves[i].unit, was[i]);
      continue;
    }
    if (alone) tfc_loads_move(&l, a->moves[0].unit, a->moves[0].device);
    energy = then, excess = over;
    struct tfc_score now = {excess, tfc_loads_value(&l)};
    if (!is_better(a, now, *score)) continue;
    *score = now;
    if (a->tells) tfc_budget_found(meter->budget, now);
    last_best = rounds;
    memcpy(best->device, l.device, sizeof *best->device * p->unit_count);
  }
  free(was);
  tfc_loads_deinit(&l);
  return NULL;
}

tfc_status tfc_local_anneal(const struct tfc_problem *p, const struct tfc_budget *budget,
                            const struct tfc_anneal_options *options, struct tfc_solution *solution,
                            struct tfc_score *score, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct annealer a = {.p = p, .o = options};
  struct tfc_meter meter;
  tfc_meter_init(&meter, budget);
  tfc_random_init(&a.random, budget->seed);
  for (uint32_t u = 0; u < p->unit_count; u++) a.room += (double)p->unit_memory[u];
  if (a.room <= 0) a.room = 1;
  a.tells = !options->by_loads || p->objective == TFC_OBJECTIVE_THROUGHPUT;
  a.moves = malloc(sizeof *a.moves * ((size_t)p->unit_count + 1));
  a.mark = calloc((size_t)p->unit_count + 1, sizeof *a.mark);
  if (options->cluster) {
    a.first = calloc((size_t)options->cluster_count + 2, sizeof *a.first);
    a.members = malloc(sizeof *a.members * ((size_t)p->unit_count + 1));
  }
  if (!a.moves || !a.mark || (options->cluster && (!a.first || !a.members)))
    TFC_TRY(s, tfc_status_no_memory("annealing"));
  if (options->cluster) {
    for (uint32_t u = 0; u < p->unit_count; u++) a.first[options->cluster[u] + 2]++;
    for (uint32_t c = 0; c < options->cluster_count; c++) a.first[c + 2] += a.first[c + 1];
    for (uint32_t u = 0; u < p->unit_count; u++) a.members[a.first[options->cluster[u] + 1]++] = u;
  }
  if (p->objective == TFC_OBJECTIVE_STEP && !options->by_loads)
    TFC_TRY(s, anneal_step(&a, &meter, solution, score));
  else
    TFC_TRY(s, anneal_throughput(&a, &meter, solution, score));
  *out_evaluations += meter.used;
out:
  free(a.moves), free(a.mark), free(a.first), free(a.members);
  return s;
}

// --- The first temperature -----------------------------------------------------------------------------------------

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

tfc_status tfc_local_temperature(const struct tfc_problem *p, const struct tfc_budget *budget,
                                 const struct tfc_solution *from, double chance, struct tfc_random *random,
                                 double *out_temperature, uint64_t *evaluations) {
  struct tfc_delta *delta = NULL;
  struct tfc_verdict v = {0};
  double worse[SAMPLES];
  uint32_t count = 0;
  uint64_t most = SAMPLES;
  if (budget->evaluations && budget->evaluations / 20 < most) most = budget->evaluations / 20;
  TFC_RETURN_IF_ERROR(tfc_delta_create(p, &delta));
  tfc_delta_reset(delta, from->device, from->rank, &v);
  const double value = (double)v.value;
  for (uint64_t i = 0; i < most && v.legal && !tfc_budget_over(budget); i++) {
    struct tfc_move move = {(uint32_t)tfc_random_below(random, p->unit_count),
                            (tfc_device_id)tfc_random_below(random, p->device_count)};
    struct tfc_verdict then = {0};
    if (budget->evaluations && *evaluations >= budget->evaluations) break;
    if (from->device[move.unit] == move.device || !tfc_problem_allows(p, move.unit, move.device)) continue;
    tfc_delta_try(delta, &move, 1, NULL, 0, TFC_TIME_MAX, &then);
    ++*evaluations;
    if (then.legal && (double)then.value > value) worse[count++] = (double)then.value / value - 1;
  }
  qsort(worse, count, sizeof *worse, ascending);
  *out_temperature = (count ? worse[count / 2] : 0.001) / -log(chance);
  tfc_delta_free(delta);
  return NULL;
}
