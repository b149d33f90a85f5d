// Both bounds are computed for the devices of each class, and for all devices together; the largest is the result.
#include "placer/exact/division.h"

#include <math.h>
#include <stdlib.h>

#include "placer/exact/inner.h"
#include "runtime/base/union_find.h"

// --- Crowding ------------------------------------------------------------------------------------------------------
static int longest_first(const void *a, const void *b) {
  const struct tfc_inner_times *x = a, *y = b;
  return (x->inner < y->inner) - (x->inner > y->inner);
}

// The largest load that crowding forces, if every load is below `limit`: a unit that takes that long on each outer
// device is on an inner one. `sum`: [count + 1], scratch.
static int64_t crowded(const struct tfc_inner_times *items, uint32_t count, uint32_t devices, int64_t limit,
                       int64_t *sum) {
  uint32_t n = 0;
  int64_t most = 0;
  sum[0] = 0;
  for (uint32_t i = 0; i < count; i++)
    if (items[i].outer >= limit) sum[n + 1] = sum[n] + items[i].inner, n++;
  for (uint64_t j = 0; j * devices + 1 <= n; j++) {
    const int64_t load = sum[j * devices + 1] - sum[j * devices - j];
    if (load > most) most = load;
  }
  return most;
}

static int64_t crowding_of(const struct tfc_problem *p, uint32_t class, struct tfc_inner_times *items, int64_t *sum) {
  uint32_t count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    items[count] = tfc_inner_times_of(p, class, u);
    count += items[count].inner != INT64_MAX;
  }
  qsort(items, count, sizeof *items, longest_first);
  // With a higher limit fewer units are known to be on inner devices. The bound is the highest limit at which the load
  // reaches it: no placement keeps below.
  const uint32_t devices = tfc_inner_count(p, class);
  int64_t low = 0, high = crowded(items, count, devices, 0, sum);
  if (high > 0 && crowded(items, count, devices, high, sum) >= high) return high;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (crowded(items, count, devices, middle, sum) >= middle)
      low = middle;
    else
      high = middle;
  }
  return low;
}

int64_t tfc_division_crowding(const struct tfc_problem *p) {
  struct tfc_inner_times *items = malloc(sizeof *items * ((size_t)p->unit_count + 1));
  int64_t *sum = malloc(sizeof *sum * ((size_t)p->unit_count + 1)), best = 0;
  if (items && sum) {
    best = crowding_of(p, TFC_NONE, items, sum);
    for (uint32_t c = 0; c < p->class_count && p->class_count > 1 && p->class_count <= TFC_INNER_MOST_CLASSES; c++) {
      const int64_t bound = tfc_inner_count(p, c) ? crowding_of(p, c, items, sum) : 0;
      if (bound > best) best = bound;
    }
  }
  free(items), free(sum);
  return best;
}

// --- Severing ------------------------------------------------------------------------------------------------------
struct net {
  uint32_t index;
  // The least time, in ps, that an inner device is charged for it if some of its units are there and others are not.
  int64_t cost;
};
static int dearest_first(const void *a, const void *b) {
  const struct net *x = a, *y = b;
  return x->cost != y->cost ? (x->cost < y->cost) - (x->cost > y->cost) : (x->index > y->index) - (x->index < y->index);
}

struct severing {
  const struct tfc_problem *p;
  struct net *nets;
  int64_t *cost; // [net]
  double *work;  // [unit] ps, on an inner device; of a root: of all that is connected to it
  uint32_t *parent;
};

// The work of all units is `total`, that of the connected ones total - rest. Let every load be at most T. Outer devices
// take over at most T * relief of the work. Then (1) all inner devices have connected units and pay, or (2) all but one
// do, and that one has only the rest, or (3) one has all connected units, and the others have the rest.
static double severed(double total, double rest, double cost, double devices, double relief) {
  const double all = (total + devices * cost) / (devices + relief);
  const double but_one =
      devices - 1 + relief > 0 ? (total - rest + (devices - 1) * cost) / (devices - 1 + relief) : INFINITY;
  return fmin(fmin(all, but_one), (total - rest) / (1 + relief));
}

static int64_t severing_of(struct severing *s, uint32_t class) {
  const struct tfc_problem *p = s->p;
  double total = 0, most = 0, best = 0;
  if (!tfc_inner_net_costs(p, class, s->cost)) return 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const struct tfc_inner_times item = tfc_inner_times_of(p, class, u);
    s->work[u] = item.inner == INT64_MAX ? 0 : (double)item.inner;
    total += s->work[u];
  }
  const double relief = tfc_inner_relief(p, class, s->work);
  if (!isfinite(relief)) return 0;
  for (uint32_t i = 0; i < p->net_count; i++) s->nets[i] = (struct net){i, s->cost[i]};
  qsort(s->nets, p->net_count, sizeof *s->nets, dearest_first);
  tfc_union_find_init(s->parent, p->unit_count);
  for (uint32_t i = 0; i < p->net_count; i++) {
    const uint32_t net = s->nets[i].index, producer = p->unit[p->graph->producer[p->net_tensor[net]]];
    for (uint32_t k = p->net_first[net]; k < p->net_first[net + 1]; k++) {
      const uint32_t a = tfc_union_find_root(s->parent, producer), b = tfc_union_find_root(s->parent, p->net_unit[k]);
      if (a == b) continue;
      const double both = s->work[a] + s->work[b];
      tfc_union_find_join(s->parent, a, b);
      s->work[tfc_union_find_root(s->parent, a)] = both;
      most = fmax(most, both);
    }
    best = fmax(best, severed(total, total - most, (double)s->nets[i].cost, tfc_inner_count(p, class), relief));
  }
  best = best * (1 - 1e-12) - 1; // the rounding errors of the sums
  return best > 0 ? (int64_t)best : 0;
}

int64_t tfc_division_severing(const struct tfc_problem *p) {
  struct severing s = {.p = p,
                       .nets = malloc(sizeof *s.nets * ((size_t)p->net_count + 1)),
                       .cost = malloc(sizeof *s.cost * ((size_t)p->net_count + 1)),
                       .work = malloc(sizeof *s.work * ((size_t)p->unit_count + 1)),
                       .parent = malloc(sizeof *s.parent * ((size_t)p->unit_count + 1))};
  int64_t best = 0;
  if (s.nets && s.cost && s.work && s.parent) {
    best = severing_of(&s, TFC_NONE);
    for (uint32_t c = 0; c < p->class_count && p->class_count > 1 && p->class_count <= TFC_INNER_MOST_CLASSES; c++) {
      const int64_t bound = tfc_inner_count(p, c) ? severing_of(&s, c) : 0;
      if (bound > best) best = bound;
    }
  }
  free(s.nets), free(s.cost), free(s.work), free(s.parent);
  return best;
}
