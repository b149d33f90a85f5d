#include "placer/exact/border.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/exact/inner.h"
#include "placer/exact/mincut.h"
#include "runtime/base/arena.h"
#include "runtime/base/clock.h"

enum {
  MOST_BRANCHES = 20, // of one unit, before a lower rate is tried
  MOST_OPEN = 200,    // branches that wait
  MOST_SETS = 500,    // sets that are remembered
  MOST_PASSES = 5     // values of T
};
static const double slack = 1e-8; // of T: no set's border is smaller than its rate says by more (rounded minimum cuts)

struct border {
  const struct tfc_problem *p;
  const struct tfc_border_limits *limits;
  uint64_t arcs; // spent
  struct tfc_mincut_graph g;
  struct tfc_mincut *cut;
  uint32_t *first, *pin; // of g
  int64_t *cost, *work;
  double *relieved; // [unit] scratch
  bool *barred;     // [unit] no inner device may have it
  struct heavy {
    int64_t work;
    uint32_t unit;
  } * heavy; // units with work, the largest first
  uint32_t heavy_count;
  uint32_t *along; // [unit] the units as the graph's topological order meets them
  int64_t limit;   // T: loads are below it
  double *rate;    // [unit] 0: not known
  bool *known;     // [unit]
  struct tfc_mincut_set large, small, other;
  uint8_t *open[MOST_OPEN]; // [unit] what a branch fixes
  struct {
    bool *inside;
    double quotient;
  } set[MOST_SETS]; // small sets, with small quotients
  uint32_t set_count;
};

static bool is_over(const struct border *b) {
  const struct tfc_border_limits *l = b->limits;
  return (l->arcs && b->arcs >= l->arcs) || (l->deadline > 0 && tfc_now_s() >= l->deadline) ||
         (l->stop && atomic_load(l->stop));
}

static void solve(struct border *b, double border_price, double work_price, const uint8_t *fixed,
                  struct tfc_mincut_set *out) {
  b->arcs += tfc_mincut_arcs(b->cut);
  tfc_mincut_solve(b->cut, border_price, work_price, fixed, out);
}

static bool fits(const struct border *b, const struct tfc_mincut_set *s) {
  return s->border + s->work < b->limit;
}
static bool is_smaller(const struct tfc_mincut_set *s, double rate) {
  return (double)s->border < rate * (double)s->work * (1 - 1e-12);
}
static double quotient_of(struct border *b, const struct tfc_mincut_set *s) {
  const double quotient = (double)s->border / (double)s->work;
  if (b->set_count < MOST_SETS) {
    const uint32_t i = b->set_count++;
    memcpy(b->set[i].inside, s->inside, b->g.unit_count * sizeof *s->inside);
    b->set[i].quotient = quotient;
  }
  return quotient;
}
static void swap_sets(struct tfc_mincut_set *a, struct tfc_mincut_set *b) {
  const struct tfc_mincut_set x = *a;
  *a = *b, *b = x;
}

// Whether every set that fits and respects `fixed` has a border of at least rate * work. If not, *out_quotient is that
// of a set for which this is wrong, or INFINITY if that is not known: then sets that do not fit (`large`) stand against
// smaller ones that do (`small`).
//
// For each price m >= 0 of load, min over S of border - rate * work + m (border + work - T) is a lower bound for the
// sets that fit. It is concave in m; its maximum lies where the line of a set that does not fit meets that of one that
// does.
static bool holds(struct border *b, double rate, const uint8_t *fixed, double *out_quotient) {
  const double limit = (double)b->limit, least = -slack * limit;
  *out_quotient = INFINITY;
  solve(b, 1, -rate, fixed, &b->large);
  if ((double)b->large.border - rate * (double)b->large.work >= least) return true;
  if (fits(b, &b->large)) return *out_quotient = quotient_of(b, &b->large), false;
  solve(b, 1, 1, fixed, &b->small);
  if (!fits(b, &b->small)) return true; // nothing fits
  if (is_smaller(&b->small, rate)) return *out_quotient = quotient_of(b, &b->small), false;
  for (int i = 0; i < 40 && !is_over(b); i++) {
    const double high = (double)b->large.border - rate * (double)b->large.work;
    const double low = (double)b->small.border - rate * (double)b->small.work;
    const double over = (double)(b->large.border + b->large.work) - limit;
    const double under = (double)(b->small.border + b->small.work) - limit;
    const double price = fmax((low - high) / (over - under), 0), at_most = high + price * over;
    solve(b, 1 + price, price - rate, fixed, &b->other);
    const double value = (double)b->other.border - rate * (double)b->other.work +
                         price * ((double)(b->other.border + b->other.work) - limit);
    if (value >= least) return true;
    const bool fit = fits(b, &b->other);
    if (fit && is_smaller(&b->other, rate)) return *out_quotient = quotient_of(b, &b->other), false;
    if (value >= at_most - 1e-7 * limit) break;
    swap_sets(&b->other, fit ? &b->small : &b->large);
  }
  return false;
}

// Chooses the unit to branch on, among those that `large` contains and `small` does not. In topological order, it is
// the one at which half of the work of all of them is reached. TFC_NONE: there is no such unit.
static uint32_t choose_branch(const struct border *b, const uint8_t *fixed) {
  double all = 0, sum = 0;
  uint32_t chosen = TFC_NONE;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < b->g.unit_count; i++) {
      const uint32_t u = b->along[i];
      if (fixed[u] != TFC_MINCUT_FREE || !b->large.inside[u] || b->small.inside[u]) continue;
      chosen = u;
      if (pass == 0) all += (double)b->work[u];
      if (pass == 1 && (sum += (double)b->work[u]) >= all / 2) return u;
    }
  return chosen;
}

// Returns a rate of the unit; 0: out of time.
static double find_rate(struct border *b, uint32_t unit) {
  const uint32_t units = b->g.unit_count;
  double rate = 10; // a higher one is of no use
  uint32_t open = 1, branches = 0;
  for (uint32_t i = 0; i < b->set_count; i++)
    if (b->set[i].inside[unit]) rate = fmin(rate, b->set[i].quotient);
  for (uint32_t u = 0; u < units; u++)
    b->open[0][u] = u == unit                                             ? TFC_MINCUT_INSIDE
                    : b->barred[u] || (b->known[u] && b->rate[u] >= rate) ? TFC_MINCUT_OUTSIDE
                                                                          : TFC_MINCUT_FREE;
  while (open) {
    uint8_t *fixed = b->open[open - 1];
    double quotient;
    if (is_over(b) || rate < 1e-9) return 0;
    if (++branches > MOST_BRANCHES) rate *= 0.9, branches = MOST_BRANCHES / 2;
    if (holds(b, rate, fixed, &quotient)) {
      open--;
      continue;
    }
    if (quotient < INFINITY) {
      rate = fmin(rate, quotient);
      continue;
    }
    const uint32_t branch = open < MOST_OPEN ? choose_branch(b, fixed) : TFC_NONE;
    if (branch == TFC_NONE) {
      rate *= 0.97;
      continue;
    }
    memcpy(b->open[open], fixed, units);
    fixed[branch] = TFC_MINCUT_OUTSIDE, b->open[open++][branch] = TFC_MINCUT_INSIDE;
  }
  return rate;
}

// All loads are below T: returns what the largest is then at least, in ps.
static double below(struct border *b, uint32_t devices, double relief) {
  double all = 0, paid = 0, rest = relief * (double)b->limit;
  memset(b->known, 0, b->g.unit_count * sizeof *b->known);
  memset(b->rate, 0, b->g.unit_count * sizeof *b->rate);
  b->set_count = 0;
  for (uint32_t i = 0; i < b->heavy_count; i++) all += (double)b->heavy[i].work;
  double left = all;
  for (uint32_t i = 0; i < b->heavy_count && left > 1e-3 * all && !is_over(b); i++) {
    const uint32_t u = b->heavy[i].unit;
    left -= (double)b->work[u];
    b->rate[u] = find_rate(b, u), b->known[u] = true;
    paid += b->rate[u] * (double)b->work[u];
  }
  // Outer devices have those units that pay most.
  memcpy(b->relieved, b->rate, b->g.unit_count * sizeof *b->rate);
  while (rest > 0) {
    uint32_t dearest = TFC_NONE;
    for (uint32_t i = 0; i < b->heavy_count; i++) {
      const uint32_t u = b->heavy[i].unit;
      if (b->relieved[u] > 0 && (dearest == TFC_NONE || b->relieved[u] > b->relieved[dearest])) dearest = u;
    }
    if (dearest == TFC_NONE) break;
    const double work = fmin(rest, (double)b->work[dearest]);
    paid -= work * b->relieved[dearest], rest -= work;
    b->relieved[dearest] = 0;
  }
  return (all - relief * (double)b->limit + paid) / devices * (1 - 1e-9) - slack * (double)b->limit - 1;
}

static int longest_first(const void *a, const void *b) {
  const struct heavy *x = a, *y = b;
  return x->work != y->work ? (x->work < y->work) - (x->work > y->work) : (x->unit > y->unit) - (x->unit < y->unit);
}

// Takes what the graph and the machine say of the inner devices. False: they may pay nothing, or out of memory.
static bool describe(struct border *b, uint32_t class, int64_t best) {
  const struct tfc_problem *p = b->p;
  uint32_t pins = 0, nets = 0;
  int64_t *cost = malloc(((size_t)p->net_count + 1) * sizeof *cost);
  const bool pay = cost && tfc_inner_net_costs(p, class, cost);
  for (uint32_t n = 0; n < p->net_count && pay; n++) {
    if (cost[n] <= 0) continue;
    b->first[nets] = pins;
    b->cost[nets++] = cost[n] < best ? cost[n] : best; // no set that fits has it in its border
    b->pin[pins++] = p->unit[p->graph->producer[p->net_tensor[n]]];
    for (uint32_t k = p->net_first[n]; k < p->net_first[n + 1]; k++) b->pin[pins++] = p->net_unit[k];
  }
  b->first[nets] = pins;
  free(cost);
  b->heavy_count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const int64_t work = tfc_inner_times_of(p, class, u).inner;
    b->barred[u] = work == INT64_MAX;
    b->work[u] = b->barred[u] ? 0 : work;
    if (b->work[u] > 0) b->heavy[b->heavy_count++] = (struct heavy){work, u};
  }
  qsort(b->heavy, b->heavy_count, sizeof *b->heavy, longest_first);
  b->g = (struct tfc_mincut_graph){p->unit_count, nets, b->first, b->pin, b->cost, b->work};
  return pay;
}

// The bound from the inner devices of a class.
static int64_t bound_of(struct border *b, uint32_t class, int64_t best) {
  const uint32_t devices = tfc_inner_count(b->p, class);
  if (!devices || !describe(b, class, best) || !b->heavy_count) return 0;
  for (uint32_t u = 0; u < b->p->unit_count; u++) b->relieved[u] = (double)b->work[u];
  const double relief = tfc_inner_relief(b->p, class, b->relieved);
  b->cut = isfinite(relief) ? tfc_mincut_create(&b->g) : NULL;
  int64_t low = 0, high = best;
  b->limit = best;
  for (int pass = 0; pass < MOST_PASSES && b->cut && !is_over(b) && high - low > high / 500; pass++) {
    const double load = below(b, devices, relief);
    if (load >= (double)b->limit)
      low = b->limit; // no placement is below it
    else
      low = load > (double)low ? (int64_t)load : low, high = b->limit;
    b->limit = low + (high - low) / 2;
  }
  tfc_mincut_free(b->cut);
  return low;
}

static void order_units(struct border *b) {
  const struct tfc_problem *p = b->p;
  uint32_t count = 0;
  memset(b->known, 0, p->unit_count * sizeof *b->known);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t u = p->unit[p->graph->topological[i]];
    if (!b->known[u]) b->known[u] = true, b->along[count++] = u;
  }
}

int64_t tfc_border_bound(const struct tfc_problem *p, int64_t best, const struct tfc_border_limits *limits) {
  const uint32_t units = p->unit_count, pins = p->net_first[p->net_count] + p->net_count;
  struct border *b = calloc(1, sizeof *b);
  struct tfc_arena arena = {0};
  int64_t bound = 0;
  if (!b || units > TFC_BORDER_UNITS || best <= 0 || best == TFC_TIME_MAX) return free(b), 0;
  b->p = p, b->limits = limits;
  bool fine = true;
#define TAKE(array, count) fine = fine && (array = tfc_arena_alloc(&arena, ((size_t)(count) + 1) * sizeof *(array)))
  TAKE(b->first, p->net_count), TAKE(b->cost, p->net_count), TAKE(b->pin, pins);
  TAKE(b->work, units), TAKE(b->relieved, units), TAKE(b->rate, units), TAKE(b->along, units), TAKE(b->heavy, units);
  TAKE(b->barred, units), TAKE(b->known, units);
  TAKE(b->large.inside, units), TAKE(b->small.inside, units), TAKE(b->other.inside, units);
  for (int i = 0; i < MOST_OPEN; i++) TAKE(b->open[i], units);
  for (int i = 0; i < MOST_SETS; i++) TAKE(b->set[i].inside, units);
#undef TAKE
  if (fine) {
    order_units(b);
    bound = bound_of(b, TFC_NONE, best);
    for (uint32_t c = 0; c < p->class_count && p->class_count > 1 && p->class_count <= TFC_INNER_MOST_CLASSES; c++) {
      const int64_t of_class = bound_of(b, c, best);
      if (of_class > bound) bound = of_class;
    }
  }
  tfc_arena_deinit(&arena);
  free(b);
  return bound;
}
