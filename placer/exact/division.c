// Both bounds are computed for the devices of each class (of equal times), and for all devices together; the largest
// is the result. The devices in question are called inner, the others outer.
#include "placer/exact/division.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/union_find.h"

enum { MOST_CLASSES = 16 }; // with more, only all devices together

// Whether a device is inner. `class` TFC_NONE: all are.
static bool is_inner(const struct tfc_problem *p, uint32_t class, uint32_t device) {
  return class == TFC_NONE || p->device_class[device] == class;
}
static uint32_t inner_count(const struct tfc_problem *p, uint32_t class) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < p->device_count; d++) count += is_inner(p, class, d);
  return count;
}

struct item {
  int64_t inner, outer; // a unit's shortest times on inner and on outer devices, in ps; INT64_MAX: none may have it
};

static struct item item_of(const struct tfc_problem *p, uint32_t class, uint32_t unit) {
  struct item item = {INT64_MAX, INT64_MAX};
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!tfc_problem_allows(p, unit, d)) continue;
    int64_t *least = is_inner(p, class, d) ? &item.inner : &item.outer;
    const int64_t time = tfc_problem_unit_time(p, unit, d);
    if (time < *least) *least = time;
  }
  return item;
}

// --- Crowding ------------------------------------------------------------------------------------------------------
static int longest_first(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  return (x->inner < y->inner) - (x->inner > y->inner);
}

// The largest load that crowding forces, if every load is below `limit`: a unit that takes that long on each outer
// device is on an inner one. `sum`: [count + 1], scratch.
static int64_t crowded(const struct item *items, uint32_t count, uint32_t devices, int64_t limit, int64_t *sum) {
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

static int64_t crowding_of(const struct tfc_problem *p, uint32_t class, struct item *items, int64_t *sum) {
  uint32_t count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    items[count] = item_of(p, class, u);
    count += items[count].inner != INT64_MAX;
  }
  qsort(items, count, sizeof *items, longest_first);
  // With a higher limit fewer units are known to be on inner devices. The bound is the highest limit at which the load
  // reaches it: no placement keeps below.
  const uint32_t devices = inner_count(p, class);
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
  struct item *items = malloc(sizeof *items * ((size_t)p->unit_count + 1));
  int64_t *sum = malloc(sizeof *sum * ((size_t)p->unit_count + 1)), best = 0;
  if (items && sum) {
    best = crowding_of(p, TFC_NONE, items, sum);
    for (uint32_t c = 0; c < p->class_count && p->class_count > 1 && p->class_count <= MOST_CLASSES; c++) {
      const int64_t bound = inner_count(p, c) ? crowding_of(p, c, items, sum) : 0;
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

// Sets pays[s] for each speed s of which an inner device is charged for a transfer. False: there may be a transfer that
// charges none.
static bool find_speeds(const struct tfc_problem *p, uint32_t class, bool *pays) {
  memset(pays, 0, p->speed_count * sizeof *pays);
  for (uint32_t d = 0; d < p->device_count; d++)
    for (uint32_t e = 0; e < p->device_count && is_inner(p, class, d); e++) {
      const struct tfc_pair *out = tfc_problem_pair(p, d, e), *in = tfc_problem_pair(p, e, d);
      if (d == e) continue;
      if (out->linked && !(out->occupies & TFC_OCCUPIES_SENDER)) return false;
      if (in->linked && !(in->occupies & TFC_OCCUPIES_RECEIVER)) return false;
      if (out->linked) pays[out->speed] = true;
      if (in->linked) pays[in->speed] = true;
    }
  return true;
}

static int64_t cost_of(const struct tfc_problem *p, uint32_t tensor, const bool *pays,
                       const struct tfc_pair *const *example) {
  int64_t least = INT64_MAX;
  for (uint32_t s = 0; s < p->speed_count; s++) {
    const int64_t time = pays[s] ? tfc_problem_wire_time(p, tensor, example[s]) : INT64_MAX;
    if (time < least) least = time;
  }
  return least;
}

struct severing {
  const struct tfc_problem *p;
  struct net *nets;
  bool *pays;                      // [speed]
  const struct tfc_pair **example; // [speed]
  double *work;                    // [unit] ps, on an inner device; of a root: of all that is connected to it
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
  double total = 0, relief = 0, most = 0, best = 0;
  if (!find_speeds(p, class, s->pays)) return 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const struct item item = item_of(p, class, u);
    s->work[u] = item.inner == INT64_MAX ? 0 : (double)item.inner;
    total += s->work[u];
  }
  for (uint32_t d = 0; d < p->device_count; d++) {
    double ratio = 0;
    for (uint32_t u = 0; u < p->unit_count && !is_inner(p, class, d); u++)
      if (s->work[u] > 0 && tfc_problem_allows(p, u, d))
        ratio = fmax(ratio, s->work[u] / (double)tfc_problem_unit_time(p, u, d)); // of no time: infinite
    relief += ratio;
  }
  if (!isfinite(relief)) return 0;
  for (uint32_t i = 0; i < p->net_count; i++)
    s->nets[i] = (struct net){i, cost_of(p, p->net_tensor[i], s->pays, s->example)};
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
    best = fmax(best, severed(total, total - most, (double)s->nets[i].cost, inner_count(p, class), relief));
  }
  best = best * (1 - 1e-12) - 1; // the rounding errors of the sums
  return best > 0 ? (int64_t)best : 0;
}

int64_t tfc_division_severing(const struct tfc_problem *p) {
  struct severing s = {.p = p,
                       .nets = malloc(sizeof *s.nets * ((size_t)p->net_count + 1)),
                       .pays = malloc(sizeof *s.pays * ((size_t)p->speed_count + 1)),
                       .example = calloc((size_t)p->speed_count + 1, sizeof *s.example),
                       .work = malloc(sizeof *s.work * ((size_t)p->unit_count + 1)),
                       .parent = malloc(sizeof *s.parent * ((size_t)p->unit_count + 1))};
  int64_t best = 0;
  if (s.nets && s.pays && s.example && s.work && s.parent) {
    for (uint32_t d = 0; d < p->device_count; d++)
      for (uint32_t e = 0; e < p->device_count; e++) {
        const struct tfc_pair *pair = tfc_problem_pair(p, d, e);
        if (d != e && pair->linked) s.example[pair->speed] = pair;
      }
    best = severing_of(&s, TFC_NONE);
    for (uint32_t c = 0; c < p->class_count && p->class_count > 1 && p->class_count <= MOST_CLASSES; c++) {
      const int64_t bound = inner_count(p, c) ? severing_of(&s, c) : 0;
      if (bound > best) best = bound;
    }
  }
  free(s.nets), free(s.pays), free(s.example), free(s.work), free(s.parent);
  return best;
}
